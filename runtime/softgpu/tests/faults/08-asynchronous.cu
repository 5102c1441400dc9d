// 8. Asynchronous copies and mbarriers.

__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void copy16(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory");
}

__device__ void init(unsigned long long* bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(bar)), "r"(count) : "memory");
}

__device__ void arrive(unsigned long long* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(bar)) : "memory");
}

__device__ void arrive_and_expect(unsigned long long* bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}

__device__ void wait(unsigned long long* bar, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(at(bar)), "r"(parity)
        : "memory");
  }
}

__device__ void bulk_in(void* to, const void* from, unsigned bytes, unsigned long long* bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)),
      "l"(from), "r"(bytes), "r"(at(bar))
      : "memory");
}

__device__ void bulk_out(void* to, const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// @run copy_not_waited_for grid=1 block=32 args=iota:128,zeros:128 fault=async-race earlier
extern "C" __global__ void copy_not_waited_for(const unsigned* x, unsigned* out) {
  __shared__ __align__(16) unsigned s[128];
  copy16(s + 4 * threadIdx.x, x + 4 * threadIdx.x);
  asm volatile("cp.async.commit_group;" ::: "memory");
  out[threadIdx.x] = s[4 * threadIdx.x] + 1;
}

// It waits, but only for its own copies: the barrier is missing.
// @run waited_for_by_another grid=1 block=64 args=iota:256,zeros:64 fault=async-race earlier
extern "C" __global__ void waited_for_by_another(const unsigned* x, unsigned* out) {
  __shared__ __align__(16) unsigned s[256];
  s[4 * threadIdx.x] = 0;
  __syncthreads();
  copy16(s + 4 * threadIdx.x, x + 4 * threadIdx.x);
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = s[4 * (63 - threadIdx.x)] + 1;
}

// One group too many may still be on its way.
// @run one_group_too_many grid=1 block=32 args=iota:256,zeros:32 fault=async-race earlier
extern "C" __global__ void one_group_too_many(const unsigned* x, unsigned* out) {
  __shared__ __align__(16) unsigned s[2][128];
  for (int stage = 0; stage < 2; ++stage) {
    copy16(s[stage] + 4 * threadIdx.x, x + 128 * stage + 4 * threadIdx.x);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  out[threadIdx.x] = s[1][4 * threadIdx.x] + 1;
}

// @run source_written_too_early grid=1 block=32 args=zeros:128,zeros:32 fault=async-race earlier
extern "C" __global__ void source_written_too_early(unsigned* x, unsigned* out) {
  __shared__ __align__(16) unsigned s[128];
  copy16(s + 4 * threadIdx.x, x + 4 * threadIdx.x);
  asm volatile("cp.async.commit_group;" ::: "memory");
  x[4 * threadIdx.x] = 9;
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  out[threadIdx.x] = s[4 * threadIdx.x];
}

// @run bulk_not_waited_for grid=1 block=32 args=iota:64,zeros:32 fault=async-race earlier
extern "C" __global__ void bulk_not_waited_for(const unsigned* x, unsigned* out) {
  __shared__ __align__(16) unsigned s[64];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) init(&bar, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_and_expect(&bar, 256);
    bulk_in(s, x, 256, &bar);
  }
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x] + 1;
}

// The threads that wrote the source made no proxy fence.
// @run proxy_fence_forgotten grid=1 block=64 args=zeros:64 fault=async-race earlier
extern "C" __global__ void proxy_fence_forgotten(unsigned* out) {
  __shared__ __align__(16) unsigned s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.async;" ::: "memory");
    bulk_out(out, s, 256);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// @run too_many_arrivals grid=1 block=64 args=zeros:1 fault=mbarrier
extern "C" __global__ void too_many_arrivals(unsigned* out) {
  __shared__ unsigned long long bar, other;
  if (threadIdx.x == 0) {
    init(&bar, 63);
    init(&other, 1);
    arrive_and_expect(&bar, 16);
  }
  __syncthreads();
  if (threadIdx.x > 0) arrive(&bar);
  if (threadIdx.x == 0) *out = 1;
}

// @run used_before_it_was_initialised grid=1 block=64 args=zeros:1 fault=mbarrier
extern "C" __global__ void used_before_it_was_initialised(unsigned* out) {
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) init(&bar, 64);
  arrive(&bar);
  if (threadIdx.x == 0) *out = 1;
}

// Thread 40 looks at the parity of a phase that is two phases old.
// @run slow_waiter grid=1 block=64 args=zeros:1 fault=mbarrier
extern "C" __global__ void slow_waiter(unsigned* out) {
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) init(&bar, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive(&bar);
    arrive(&bar);
    *(volatile unsigned*)out = 1;
  }
  if (threadIdx.x == 40) {
    while (*(volatile unsigned*)out == 0) {}
    wait(&bar, 0);
  }
}

// Near miss: two stages of copies by groups.
// @run copies_in_stages grid=2 block=32 args=iota:768,zeros:384
extern "C" __global__ void copies_in_stages(const unsigned* x, unsigned* out) {
  __shared__ __align__(16) unsigned s[2][128];
  for (int step = 0; step < 7; ++step) {
    if (step < 6) copy16(s[step % 2] + 4 * threadIdx.x, x + 128 * step + 4 * threadIdx.x);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    if (step > 0) out[192 * blockIdx.x + 32 * (step - 1) + threadIdx.x] = s[(step - 1) % 2][127 - 4 * threadIdx.x];
    __syncthreads();
  }
}

// Near miss: bulk copies in, through two stages and their mbarriers, and out again.
// @run bulk_in_and_out grid=2 block=64 args=iota:320,zeros:640
extern "C" __global__ void bulk_in_and_out(const unsigned* x, unsigned* out) {
  __shared__ __align__(16) unsigned s[2][64], t[64];
  __shared__ unsigned long long full[2];
  if (threadIdx.x < 2) init(&full[threadIdx.x], 1);
  __syncthreads();
  for (int step = 0; step < 2; ++step) {
    if (threadIdx.x == 0) {
      arrive_and_expect(&full[step], 256);
      bulk_in(s[step], x + 64 * step, 256, &full[step]);
    }
  }
  for (int step = 0; step < 5; ++step) {
    wait(&full[step % 2], step / 2 % 2);
    unsigned v = s[step % 2][63 - threadIdx.x];
    t[threadIdx.x] = v + 1;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_out(out + 320 * blockIdx.x + 64 * step, t, 256);
      if (step + 2 < 5) {
        arrive_and_expect(&full[step % 2], 256);
        bulk_in(s[step % 2], x + 64 * (step + 2), 256, &full[step % 2]);
      }
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// 4. Races in global memory, after the memory model.

// A flag that is only volatile: polling it is no race, but it orders nothing.
// @run volatile_flag grid=2 block=32 cooperative args=zeros:32,zeros:1,zeros:32 fault=global-race earlier
extern "C" __global__ void volatile_flag(unsigned* data, volatile unsigned* flag, unsigned* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;
    __syncwarp();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) {}
    out[threadIdx.x] = data[threadIdx.x];
  }
}

// A grid's counter without any fence.
// @run counter_without_fences grid=5 block=64 cooperative args=zeros:320,zeros:1,zeros:320 fault=global-race earlier
extern "C" __global__ void counter_without_fences(unsigned* data, unsigned* counter, unsigned* out) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  data[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(counter, 1);
    while (*(volatile unsigned*)counter < 5) {}
  }
  __syncthreads();
  out[i] = data[319 - i];
}

// The fence is of the block: too narrow.
// @run fence_of_the_block grid=5 block=64 cooperative args=zeros:320,zeros:1,zeros:320 fault=global-race earlier
extern "C" __global__ void fence_of_the_block(unsigned* data, unsigned* counter, unsigned* out) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  data[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_block();
    atomicAdd(counter, 1);
    while (*(volatile unsigned*)counter < 5) {}
    __threadfence_block();
  }
  __syncthreads();
  out[i] = data[319 - i];
}

// The other threads never met thread 0 before it told the others.
// @run barrier_forgotten grid=2 block=64 cooperative args=zeros:128,zeros:1,zeros:128 fault=global-race earlier
extern "C" __global__ void barrier_forgotten(unsigned* data, unsigned* counter, unsigned* out) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  data[i] = i;
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1);
    while (*(volatile unsigned*)counter < 2) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = data[127 - i];
}

// Near miss: fences on both sides, and everybody meets.
// @run counter_with_fences grid=5 block=64 cooperative args=zeros:320,zeros:1,zeros:320
extern "C" __global__ void counter_with_fences(unsigned* data, unsigned* counter, unsigned* out) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  data[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1);
    while (*(volatile unsigned*)counter < 5) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = data[319 - i];
}

// Near miss: a release and an acquire, in several rounds, with two buffers.
// @run release_and_acquire grid=3 block=64 cooperative args=zeros:384,zeros:1,zeros:192
extern "C" __global__ void release_and_acquire(unsigned* data, unsigned* counter, unsigned* out) {
  unsigned i = blockIdx.x * 64 + threadIdx.x, sum = 0;
  for (unsigned step = 0; step < 4; ++step) {
    unsigned* now = data + step % 2 * 192;
    now[i] = i + step;
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
      unsigned seen;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
      while (seen < 3 * (step + 1));
    }
    __syncthreads();
    sum += now[191 - i];
  }
  out[i] = sum;
}

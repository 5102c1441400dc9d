// 13. Counters that begin at 2^32 - 3 wrap on the way. The base is an argument, as a host that starts counters late gives it.

__device__ unsigned look(const unsigned* p) {
  unsigned seen;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(p) : "memory");
  return seen;
}

__device__ void add(unsigned* p) { asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory"); }

// Waits for a count in 64 bits, which 32 bits never reach.
// @run never_reached grid=4 block=32 cooperative args=fill:1:4294967293,u32:4294967293,zeros:128 fault=deadlock|budget
// @run reached_far_from_the_wrap grid=4 block=32 cooperative args=fill:1:5,u32:5,zeros:128
extern "C" __global__ void never_reached(unsigned* counter, unsigned base, unsigned* x) {
  if (threadIdx.x == 0) {
    unsigned long long want = (unsigned long long)base + 4;
    add(counter);
    while (look(counter) < want) {}
  }
  __syncthreads();
  x[blockIdx.x * 32 + threadIdx.x] = 1;
}

// Compares by size: past the wrap the count that is wanted is small, and nobody waits.
// @run waits_for_nobody grid=4 block=32 cooperative args=fill:1:4294967293,u32:4294967293,zeros:128,zeros:128 fault=global-race earlier
// @run waits_far_from_the_wrap grid=4 block=32 cooperative args=fill:1:5,u32:5,zeros:128,zeros:128
extern "C" __global__ void waits_for_nobody(unsigned* counter, unsigned base, unsigned* x, unsigned* out) {
  unsigned i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    add(counter);
    while (look(counter) < base + 4) {}
  }
  __syncthreads();
  out[i] = x[127 - i];
}

// Near miss: compares the difference.
// @run wraps grid=4 block=32 cooperative args=fill:1:4294967293,u32:4294967293,zeros:128,zeros:128
extern "C" __global__ void wraps(unsigned* counter, unsigned base, unsigned* x, unsigned* out) {
  unsigned i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    add(counter);
    while ((int)(look(counter) - (base + 4)) < 0) {}
  }
  __syncthreads();
  out[i] = x[127 - i];
}

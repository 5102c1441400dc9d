// 2. What nobody wrote.

// @run shared_never_written grid=1 block=64 args=zeros:64 fault=uninitialised
extern "C" __global__ void shared_never_written(unsigned* x) {
  __shared__ unsigned s[64];
  if (threadIdx.x != 17) s[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x] * 3;
}

// @run global_never_written grid=1 block=64 args=zeros:64,raw:64 fault=uninitialised
extern "C" __global__ void global_never_written(float* x, const float* y) { x[threadIdx.x] = y[threadIdx.x] + 1.0f; }

// A branch on what nobody wrote.
// @run decided_by_nothing grid=1 block=32 args=zeros:32,raw:32 fault=uninitialised
extern "C" __global__ void decided_by_nothing(unsigned* x, const unsigned* y) {
  if (y[threadIdx.x] > 5) x[threadIdx.x] = 1;
}

// Near miss: only what was written is used, though more is loaded.
// @run loaded_and_not_used grid=1 block=32 args=zeros:32,raw:64
extern "C" __global__ void loaded_and_not_used(unsigned* x, unsigned* y) {
  y[2 * threadIdx.x] = threadIdx.x;
  unsigned low, high;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(y + 2 * threadIdx.x) : "memory");
  x[threadIdx.x] = low + 1;
}

// 1. Out of bounds, misaligned, freed.

// @run one_too_far grid=1 block=64 args=zeros:63 fault=out-of-bounds
extern "C" __global__ void one_too_far(unsigned* x) { x[threadIdx.x] = threadIdx.x; }

// @run before_the_start grid=1 block=32 args=zeros:32 fault=out-of-bounds
extern "C" __global__ void before_the_start(unsigned* x) { x[(int)threadIdx.x - 1] = 1; }

// @run shared_too_small grid=1 block=64 shared=252 args=zeros:64 fault=out-of-bounds
extern "C" __global__ void shared_too_small(unsigned* x) {
  extern __shared__ unsigned s[];
  s[threadIdx.x] = threadIdx.x;
  x[threadIdx.x] = s[threadIdx.x];
}

// @run crooked grid=1 block=4 args=zeros:64 fault=misaligned
extern "C" __global__ void crooked(unsigned* x) {
  uint4* y = reinterpret_cast<uint4*>(x + 1);
  y[threadIdx.x] = make_uint4(1, 2, 3, 4);
}

// @run gone grid=1 block=32 args=zeros:32,freed:32 fault=use-after-free
extern "C" __global__ void gone(unsigned* x, const unsigned* y) { x[threadIdx.x] = y[threadIdx.x]; }

// Near miss: the last words of everything, and vectors at their alignment.
// @run just_inside grid=3 block=37 shared=148 args=zeros:111,zeros:128
extern "C" __global__ void just_inside(unsigned* x, uint4* y) {
  extern __shared__ unsigned s[];
  s[36 - threadIdx.x] = threadIdx.x;
  __syncthreads();
  x[blockIdx.x * 37 + threadIdx.x] = s[threadIdx.x];
  if (blockIdx.x == 2 && threadIdx.x < 32) y[threadIdx.x] = make_uint4(1, 2, 3, 4);
}

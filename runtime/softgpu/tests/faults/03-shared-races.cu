// 3. Races in shared memory, thread by thread.

// @run no_barrier grid=1 block=64 args=zeros:64 fault=shared-race earlier
extern "C" __global__ void no_barrier(unsigned* x) {
  __shared__ unsigned s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = threadIdx.x;
  x[threadIdx.x] = s[63 - threadIdx.x] + 1;
}

// Within a warp: lanes are not in step.
// @run no_syncwarp grid=1 block=32 args=zeros:32 fault=shared-race earlier
extern "C" __global__ void no_syncwarp(unsigned* x) {
  __shared__ unsigned s[32];
  s[threadIdx.x] = threadIdx.x;
  x[threadIdx.x] = s[threadIdx.x ^ 1] + 1;
}

// The buffer is written again while others still read it.
// @run written_again_too_early grid=1 block=64 args=zeros:64 fault=shared-race earlier
extern "C" __global__ void written_again_too_early(unsigned* x) {
  __shared__ unsigned s[64];
  unsigned sum = 0;
  for (unsigned step = 0; step < 3; ++step) {
    s[threadIdx.x] = step;
    __syncthreads();
    sum += s[63 - threadIdx.x];
  }
  x[threadIdx.x] = sum;
}

// Near miss: the same with both barriers; a warp with __syncwarp.
// @run both_barriers grid=2 block=96 args=zeros:192
extern "C" __global__ void both_barriers(unsigned* x) {
  __shared__ unsigned s[96];
  unsigned sum = 0;
  for (unsigned step = 0; step < 3; ++step) {
    s[threadIdx.x] = step;
    __syncthreads();
    sum += s[95 - threadIdx.x];
    __syncthreads();
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    sum += s[threadIdx.x ^ 1];
    __syncwarp();
  }
  x[blockIdx.x * 96 + threadIdx.x] = sum;
}

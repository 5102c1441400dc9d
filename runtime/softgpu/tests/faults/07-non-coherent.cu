// 7. Loads through the non-coherent cache of what the kernel writes.

// @run written_after grid=1 block=64 args=zeros:64,zeros:64 fault=non-coherent
extern "C" __global__ void written_after(unsigned* x, unsigned* out) {
  out[threadIdx.x] = __ldg(x + threadIdx.x);
  __syncthreads();
  x[63 - threadIdx.x] = 1;
}

// In order by a barrier, and wrong all the same.
// @run written_before grid=1 block=64 args=zeros:64,zeros:64 fault=non-coherent
extern "C" __global__ void written_before(unsigned* x, unsigned* out) {
  x[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = __ldg(x + 63 - threadIdx.x);
}

// `const __restrict__` promises what the arguments break: x and out overlap.
// @run promised grid=1 block=64 args=zeros:128,same:0 fault=non-coherent
extern "C" __global__ void promised(unsigned* out, const unsigned* __restrict__ x) {
  unsigned v = x[threadIdx.x];
  __syncthreads();
  out[(threadIdx.x + 1) % 64] = v + 1;
}

// Near miss: other words of the same buffer.
// @run other_words grid=1 block=64 args=zeros:128
extern "C" __global__ void other_words(unsigned* x) { x[64 + threadIdx.x] = __ldg(x + threadIdx.x) + 1; }

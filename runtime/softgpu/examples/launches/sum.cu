// A block-wise sum with a bug: the last step of the tree reads what another warp writes, and no barrier lies between them.

extern "C" __global__ void sum(float* out, const float* in, int n) {
  __shared__ float part[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    if (half > 64) __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

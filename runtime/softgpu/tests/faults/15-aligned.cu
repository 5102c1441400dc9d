// 15. Instructions that the whole warp must reach together.

__device__ unsigned multiply(unsigned a) {
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a));
  return __float_as_uint(c0 + c1 + c2 + c3);
}

// @run half_a_product grid=1 block=32 args=zeros:32 fault=unaligned|warp-mask
extern "C" __global__ void half_a_product(unsigned* x) {
  unsigned v = 0;
  if (threadIdx.x < 16) v = multiply(__float_as_uint(1.0f));
  x[threadIdx.x] = v;
}

// @run half_a_matrix grid=1 block=32 args=zeros:32 fault=unaligned|warp-mask
extern "C" __global__ void half_a_matrix(unsigned* x) {
  __shared__ __align__(16) unsigned s[32];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  unsigned v = 0, from = (unsigned)__cvta_generic_to_shared(s + threadIdx.x % 8 * 4);
  if (threadIdx.x != 9) asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(from) : "memory");
  x[threadIdx.x] = v;
}

// @run half_a_warp_at_the_cluster grid=2 block=32 args=zeros:64 fault=unaligned|deadlock|barrier-divergence
extern "C" __global__ void __cluster_dims__(2, 1, 1) half_a_warp_at_the_cluster(unsigned* x) {
  if (threadIdx.x < 16) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  else asm volatile("bar.sync 0;" ::: "memory");
  x[blockIdx.x * 32 + threadIdx.x] = 1;
}

// Near miss: whole warps, each in its branch.
// @run whole_warps grid=1 block=64 args=zeros:64
extern "C" __global__ void whole_warps(unsigned* x) {
  __shared__ __align__(16) unsigned s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  unsigned v = 0, from = (unsigned)__cvta_generic_to_shared(s + threadIdx.x % 8 * 4);
  if (threadIdx.x < 32) v = multiply(__float_as_uint(1.0f));
  else asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(from) : "memory");
  x[threadIdx.x] = v;
}

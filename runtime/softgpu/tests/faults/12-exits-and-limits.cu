// 12. Blocks that exit while peers write to them; launches that the device refuses.

__device__ unsigned peer(const void* p, unsigned of) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(of));
  return there;
}

__device__ void put(unsigned there, unsigned value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(value) : "memory");
}

__device__ void meet() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// @run exits_while_written_to grid=2 block=32 args=zeros:1 fault=cluster
extern "C" __global__ void __cluster_dims__(2, 1, 1) exits_while_written_to(unsigned* out) {
  __shared__ unsigned s[32];
  s[threadIdx.x] = 0;
  meet();
  if (blockIdx.x == 0) put(peer(s + threadIdx.x, 1), 1);
  if (blockIdx.x == 1 && threadIdx.x == 0) *out = 1;
}

// @run too_much_shared grid=1 block=32 shared=240000 args=zeros:32 fault=launch
// @run as_much_as_there_is grid=1 block=32 shared=200000 args=zeros:32
extern "C" __global__ void too_much_shared(unsigned* out) {
  extern __shared__ unsigned s[];
  s[threadIdx.x + 1000] = threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x + 1000];
}

// @run too_many_blocks grid=16 block=32 cluster=16 args=zeros:512 fault=launch
// @run eight_blocks grid=16 block=32 cluster=8 args=zeros:512
extern "C" __global__ void too_many_blocks(unsigned* out) { out[blockIdx.x * 32 + threadIdx.x] = 1; }

// Near miss: they meet before they exit.
// @run meets_before_it_exits grid=4 block=32 args=zeros:128
extern "C" __global__ void __cluster_dims__(2, 1, 1) meets_before_it_exits(unsigned* out) {
  __shared__ unsigned s[32];
  s[threadIdx.x] = 0;
  meet();
  if (blockIdx.x % 2 == 0) put(peer(s + threadIdx.x, 1), 1);
  meet();
  out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
}

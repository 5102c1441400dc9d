// 9. Shared memory of a peer before the cluster has met, or after the peer is gone.

__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ unsigned rank() {
  unsigned r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

__device__ unsigned peer(const void* p, unsigned of) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at(p)), "r"(of));
  return there;
}

__device__ void put(unsigned there, unsigned value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(value) : "memory");
}

__device__ unsigned get(unsigned there) {
  unsigned value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
  return value;
}

__device__ void meet() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// @run before_they_met grid=2 block=32 args=zeros:64 fault=cluster
extern "C" __global__ void __cluster_dims__(2, 1, 1) before_they_met(unsigned* out) {
  __shared__ unsigned s[32];
  put(peer(s + threadIdx.x, 1 - rank()), threadIdx.x);
  meet();
  out[32 * blockIdx.x + threadIdx.x] = s[threadIdx.x];
}

// @run after_it_is_gone grid=2 block=32 args=zeros:64 fault=cluster
extern "C" __global__ void __cluster_dims__(2, 1, 1) after_it_is_gone(unsigned* out) {
  __shared__ unsigned s[32];
  s[threadIdx.x] = threadIdx.x;
  meet();
  out[32 * blockIdx.x + threadIdx.x] = get(peer(s + threadIdx.x, 1 - rank()));
}

// The barrier does not release what was written before it.
// @run met_without_release grid=2 block=32 args=zeros:64 fault=shared-race earlier
extern "C" __global__ void __cluster_dims__(2, 1, 1) met_without_release(unsigned* out) {
  __shared__ unsigned s[32];
  meet();
  put(peer(s + threadIdx.x, 1 - rank()), threadIdx.x);
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  out[32 * blockIdx.x + threadIdx.x] = s[threadIdx.x];
  meet();
}

// Near miss: they meet before, between and after.
// @run always_met grid=6 block=32 args=zeros:192
extern "C" __global__ void __cluster_dims__(2, 1, 1) always_met(unsigned* out) {
  __shared__ unsigned s[32];
  meet();
  put(peer(s + threadIdx.x, 1 - rank()), 7 * threadIdx.x);
  meet();
  out[32 * blockIdx.x + threadIdx.x] = s[threadIdx.x] + get(peer(s + 31 - threadIdx.x, 1 - rank()));
  meet();
}

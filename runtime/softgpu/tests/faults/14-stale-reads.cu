// 14. Reads that may return what was there before.

__device__ void put(unsigned* p, unsigned v) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

__device__ unsigned get(const unsigned* p) {
  unsigned v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

// Everything is relaxed: no race, but the data may be older than the flag.
// @run relaxed_message grid=2 block=32 cooperative args=zeros:1,zeros:1,zeros:1 varies
extern "C" __global__ void relaxed_message(unsigned* data, unsigned* flag, unsigned* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    put(data, 1);
    put(flag, 1);
  } else {
    while (get(flag) == 0) {}
    *out = get(data) + 10;
  }
}

// A weak read of what another block writes, after a flag that orders nothing.
// @run weak_after_relaxed_flag grid=2 block=32 cooperative args=zeros:1,zeros:1,zeros:1 fault=global-race earlier
extern "C" __global__ void weak_after_relaxed_flag(unsigned* data, unsigned* flag, unsigned* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    put(data, 1);
    put(flag, 1);
  } else {
    while (get(flag) == 0) {}
    *out = *data;
  }
}

// Near miss: a tag in the same 64-bit word is as old as its value.
// @run value_with_its_tag grid=2 block=32 cooperative args=zeros:64,zeros:32
extern "C" __global__ void value_with_its_tag(unsigned long long* words, unsigned* out) {
  if (blockIdx.x == 0) {
    unsigned long long word = (unsigned long long)(threadIdx.x * 3) << 32 | 1;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(words + threadIdx.x), "l"(word) : "memory");
  } else {
    unsigned long long word;
    do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(words + threadIdx.x) : "memory");
    while ((unsigned)word != 1);
    out[threadIdx.x] = (unsigned)(word >> 32);
  }
}

// Near miss: the flag is released and acquired.
// @run acquired_message grid=2 block=32 cooperative args=zeros:1,zeros:1,zeros:1
extern "C" __global__ void acquired_message(unsigned* data, unsigned* flag, unsigned* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    put(data, 1);
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    while (seen == 0);
    *out = get(data) + 10;
  }
}

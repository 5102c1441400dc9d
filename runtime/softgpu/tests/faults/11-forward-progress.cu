// 11. Blocks of a plain grid come in any order, and a block that runs keeps its place.

__device__ void tell(unsigned* flag) { asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory"); }

__device__ void wait(const unsigned* flag) {
  unsigned seen;
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  while (seen == 0);
}

// Each waits for the block of the number below.
// @run by_block_index grid=150 block=32 shared=200000 args=zeros:150,zeros:150 fault=deadlock|budget some
extern "C" __global__ void by_block_index(unsigned* flags, unsigned* x) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x > 0) {
    wait(flags + blockIdx.x - 1);
    x[blockIdx.x] = x[blockIdx.x - 1] + 1;
  }
  tell(flags + blockIdx.x);
}

// All wait for the last block, which may never get a place.
// @run for_the_last grid=150 block=32 shared=200000 args=zeros:1,zeros:150 fault=deadlock|budget some
extern "C" __global__ void for_the_last(unsigned* flag, unsigned* x) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 149) tell(flag);
  else wait(flag);
  x[blockIdx.x] = 1;
}

// Near miss: each takes a ticket, and waits for the ticket below, whose block runs.
// @run by_ticket budget=10000000 grid=150 block=32 shared=200000 args=zeros:1,zeros:150,zeros:150
extern "C" __global__ void by_ticket(unsigned* tickets, unsigned* flags, unsigned* x) {
  if (threadIdx.x != 0) return;
  unsigned ticket = atomicAdd(tickets, 1);
  if (ticket > 0) {
    wait(flags + ticket - 1);
    x[ticket] = x[ticket - 1] + 1;
  }
  tell(flags + ticket);
}

// 5. Barriers and masks that disagree with who arrives.

// @run barrier_in_a_branch grid=1 block=64 args=zeros:64 fault=barrier-divergence|unaligned|deadlock
extern "C" __global__ void barrier_in_a_branch(unsigned* x) {
  if (threadIdx.x < 40) __syncthreads();
  x[threadIdx.x] = 1;
}

// Named barriers: half of the block at each, with the count of the whole.
// @run two_barriers_crossed grid=1 block=64 args=zeros:64 fault=barrier-divergence|deadlock
extern "C" __global__ void two_barriers_crossed(unsigned* x) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  x[threadIdx.x] = 1;
}

// @run shuffle_of_absent_lanes grid=1 block=32 args=zeros:32 fault=warp-mask|deadlock|barrier-divergence
extern "C" __global__ void shuffle_of_absent_lanes(unsigned* x) {
  unsigned v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffffu, v, 1);
  else asm volatile("bar.sync 0;" ::: "memory");
  x[threadIdx.x] = v;
}

// @run shuffle_outside_its_mask grid=1 block=32 args=zeros:32 fault=warp-mask
extern "C" __global__ void shuffle_outside_its_mask(unsigned* x) {
  unsigned v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_sync(0x0000ffffu, v, 20);
  x[threadIdx.x] = v;
}

// @run vote_without_being_asked grid=1 block=32 args=zeros:32 fault=warp-mask
extern "C" __global__ void vote_without_being_asked(unsigned* x) {
  x[threadIdx.x] = __ballot_sync(0x0000ffffu, threadIdx.x & 1);
}

// Near miss: branches that whole warps take, masks of those who arrive, a barrier of half the block.
// @run all_agree grid=2 block=96 args=zeros:192
extern "C" __global__ void all_agree(unsigned* x) {
  unsigned v = threadIdx.x, lane = threadIdx.x % 32;
  if (lane < 16) v = __shfl_xor_sync(0x0000ffffu, v, 5);
  else v = __shfl_xor_sync(0xffff0000u, v, 3);
  if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  v += __popc(__ballot_sync(0xffffffffu, lane & 1));
  __syncthreads();
  x[blockIdx.x * 96 + threadIdx.x] = v;
}

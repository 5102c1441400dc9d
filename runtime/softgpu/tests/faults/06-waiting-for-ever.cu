// 6. Nothing goes on; grids that cannot be resident.

// @run nobody_sets_it grid=2 block=32 args=zeros:1,zeros:64 fault=deadlock|budget
extern "C" __global__ void nobody_sets_it(volatile unsigned* flag, unsigned* x) {
  while (*flag == 0) {}
  x[blockIdx.x * 32 + threadIdx.x] = 1;
}

// Each waits for the other first.
// @run each_waits_for_the_other grid=2 block=32 cooperative args=zeros:2,zeros:64 fault=deadlock|budget
extern "C" __global__ void each_waits_for_the_other(volatile unsigned* flags, unsigned* x) {
  while (flags[1 - blockIdx.x] == 0) {}
  flags[blockIdx.x] = 1;
  x[blockIdx.x * 32 + threadIdx.x] = 1;
}

// A counter that one block never adds to.
// @run one_too_few grid=4 block=32 cooperative args=zeros:1,zeros:128 fault=deadlock|budget
extern "C" __global__ void one_too_few(unsigned* counter, unsigned* x) {
  if (threadIdx.x == 0) {
    if (blockIdx.x != 2) atomicAdd(counter, 1);
    while (*(volatile unsigned*)counter < 4) {}
  }
  __syncthreads();
  x[blockIdx.x * 32 + threadIdx.x] = 1;
}

// @run too_large_to_be_resident grid=20000 block=1024 cooperative args=zeros:1 fault=co-residency|launch
extern "C" __global__ void too_large_to_be_resident(unsigned* counter) { atomicAdd(counter, 1); }

// Near miss: all wait, and somebody comes.
// @run somebody_comes grid=4 block=32 cooperative args=zeros:1,zeros:128
extern "C" __global__ void somebody_comes(unsigned* counter, unsigned* x) {
  if (threadIdx.x == 0) {
    atomicAdd(counter, 1);
    while (*(volatile unsigned*)counter < 4) {}
  }
  __syncthreads();
  x[blockIdx.x * 32 + threadIdx.x] = 1;
}

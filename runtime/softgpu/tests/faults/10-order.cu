// 10. What depends on the order of warps, blocks and lanes: seeds must show it.

// @run first_come grid=7 block=32 args=zeros:1,zeros:7 varies
extern "C" __global__ void first_come(unsigned* ticket, unsigned* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(ticket, 1);
}

// @run warps_come_as_they_like grid=1 block=256 args=zeros:1,zeros:8 varies
extern "C" __global__ void warps_come_as_they_like(unsigned* ticket, unsigned* out) {
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = atomicAdd(ticket, 1);
}

// @run lanes_come_as_they_like grid=1 block=32 args=zeros:1,zeros:32 varies
extern "C" __global__ void lanes_come_as_they_like(unsigned* ticket, unsigned* out) {
  unsigned mine;
  asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(mine) : "l"(ticket) : "memory");
  out[threadIdx.x] = mine;
}

// A grid barrier that never waits may give the right numbers; it is a race whatever they are.
// @run never_waits grid=3 block=64 cooperative args=zeros:192,zeros:1,zeros:192 fault=global-race earlier
extern "C" __global__ void never_waits(unsigned* data, unsigned* counter, unsigned* out) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  data[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1);
    __threadfence();
  }
  __syncthreads();
  out[i] = data[191 - i];
}

// Near miss: the sum of tickets is the same in any order.
// @run any_order_will_do grid=7 block=64 args=zeros:1,zeros:1
extern "C" __global__ void any_order_will_do(unsigned* ticket, unsigned* sum) {
  if (threadIdx.x == 0) atomicAdd(sum, atomicAdd(ticket, 1));
}

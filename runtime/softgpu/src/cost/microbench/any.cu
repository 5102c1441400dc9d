// Microbenchmarks for any card from sm_80 on. Each kernel does `n` steps of one thing and nothing else that takes time; the
// time of a step is the slope between two n. They run on a simulated GPU, where they show what the model makes of published
// figures, and on a card, where they measure them.

typedef unsigned long long u64;

// A load from shared memory that needs the one before. Lanes chase words `ways` apart, so that `ways` of them share a bank.
extern "C" __global__ void chase_shared(unsigned* memory, int n, int ways)
{
    __shared__ unsigned s[32 * 32];
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * ways]);
    s[threadIdx.x * ways] = at;
    __syncwarp();
    for (int i = 0; i < n; i += 8) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory");
        }
    }
    memory[threadIdx.x] = at;
}

// A load from device memory that needs the one before: a ring of addresses that the host has laid out.
extern "C" __global__ void chase_global(u64* memory, int n, int unused)
{
    u64 at = (u64)memory;
    for (int i = 0; i < n; i += 8) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            asm volatile("ld.global.u64 %0, [%0];" : "+l"(at)::"memory");
        }
    }
    if (at == 1) {
        memory[0] = at;
    }
}

// Lays a ring of `count` addresses, `stride` bytes apart, for chase_global.
extern "C" __global__ void lay_ring(char* memory, int count, int stride)
{
    for (long long i = threadIdx.x; i < count; i += blockDim.x) {
        *(u64*)(memory + i * stride) = (u64)(memory + (i + 1) % count * stride);
    }
}

// n cycles of the clock.
extern "C" __global__ void spin(unsigned* memory, int n, int unused)
{
    const long long start = clock64();
    while (clock64() - start < n) {
    }
    memory[threadIdx.x] = n;
}

__device__ __forceinline__ void product(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// C chains of matrix products, m16n8k16 with 32-bit sums.
template <int C> __device__ __forceinline__ void products(float* memory, int n)
{
    const unsigned a[4] = {threadIdx.x, 1, 2, 3}, b[2] = {4, threadIdx.x};
    float d[C][4] = {};
    for (int i = 0; i < n; i += 8) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
#pragma unroll
            for (int c = 0; c < C; ++c) {
                product(d[c], a, b);
            }
        }
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < C; ++c) {
        sum += d[c][0] + d[c][1] + d[c][2] + d[c][3];
    }
    memory[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void mma_chain(float* memory, int n, int unused)
{
    products<1>(memory, n);
}

extern "C" __global__ void mma_rate(float* memory, int n, int unused)
{
    products<8>(memory, n);
}

// A shuffle that needs the one before.
extern "C" __global__ void shuffle(unsigned* memory, int n, int unused)
{
    unsigned x = threadIdx.x;
    for (int i = 0; i < n; i += 8) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x));
        }
    }
    memory[threadIdx.x] = x;
}

// A barrier of the block.
extern "C" __global__ void barrier(unsigned* memory, int n, int unused)
{
    for (int i = 0; i < n; ++i) {
        asm volatile("bar.sync 0;" ::: "memory");
    }
    memory[blockIdx.x * blockDim.x + threadIdx.x] = n;
}

// A store and a fence that makes it visible to the device.
extern "C" __global__ void fence(unsigned* memory, int n, int unused)
{
    for (int i = 0; i < n; ++i) {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(memory), "r"(i) : "memory");
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
}

// Two blocks hand a number to each other through words in device memory: two hand-overs a step.
extern "C" __global__ void ping_pong(unsigned* memory, int n, int unused)
{
    unsigned* const mine = memory + 64 * blockIdx.x;
    unsigned* const theirs = memory + 64 * (1 - blockIdx.x);
    for (unsigned i = 1; i <= n; ++i) {
        if (blockIdx.x == 0) {
            asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(theirs), "r"(i) : "memory");
        }
        unsigned got;
        do {
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(got) : "l"(mine) : "memory");
        } while (got != i);
        if (blockIdx.x == 1) {
            asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(theirs), "r"(i) : "memory");
        }
    }
}

// Every thread has stored something before, since a barrier of the grid without anything to hand over would have no purpose.
extern "C" __global__ void grid_sync(unsigned* memory, int n, int unused)
{
    unsigned* const counter = memory;
    for (int i = 0; i < n; ++i) {
        memory[32 + blockIdx.x * blockDim.x + threadIdx.x] = i;
        grid_barrier(counter);
    }
}

// A copy of n kilobytes a block, four times 16 bytes of each thread under way at once.
extern "C" __global__ void copy(uint4* memory, int n, int unused)
{
    const int pieces = n * 64;
    const uint4* const from = memory + (long long)blockIdx.x * pieces;
    uint4* const to = memory + (long long)(gridDim.x + blockIdx.x) * pieces;
    for (int i = threadIdx.x; i < pieces; i += 4 * blockDim.x) {
        uint4 x[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (i + j * blockDim.x < pieces) {
                x[j] = from[i + j * blockDim.x];
            }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (i + j * blockDim.x < pieces) {
                to[i + j * blockDim.x] = x[j];
            }
        }
    }
}

// Loads of 16 bytes from shared memory while matrix products run: do they hide behind each other? A step is a load and two
// products of each warp.
extern "C" __global__ void load_and_mma(float* memory, int n, int unused)
{
    __shared__ uint4 s[512];
    for (int i = threadIdx.x; i < 512; i += blockDim.x) {
        s[i] = make_uint4(i, i, i, i);
    }
    __syncthreads();
    const unsigned b[2] = {4, threadIdx.x};
    float d[8][4] = {};
    for (int i = 0; i < n; i += 8) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint4 w = s[(threadIdx.x + 32 * (j + half) + i) % 512];
                const unsigned a[4] = {w.x, w.y, w.z, w.w};
                product(d[2 * j + half], a, b);
                product(d[(2 * j + half + 4) % 8], a, b);
            }
        }
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        sum += d[c][0] + d[c][1] + d[c][2] + d[c][3];
    }
    memory[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Microbenchmarks of clusters, for sm_90 and later. As in any.cu: n steps of one thing, the time is the slope.

// On a card the size of the cluster is part of the kernel; a simulated launch says it.
#ifdef CLUSTER_BLOCKS
#define KERNEL extern "C" __global__ __cluster_dims__(CLUSTER_BLOCKS, 1, 1)
#else
#define KERNEL extern "C" __global__
#endif

__device__ __forceinline__ unsigned rank()
{
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ __forceinline__ unsigned blocks()
{
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}

__device__ __forceinline__ unsigned peer(unsigned at, unsigned block)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(block));
    return there;
}

__device__ __forceinline__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// A load from the shared memory of the next block that needs the one before.
KERNEL void chase_peer(unsigned* memory, int n, int unused)
{
    __shared__ unsigned s[32];
    const unsigned own = (unsigned)__cvta_generic_to_shared(s);
    unsigned at = peer(own, (rank() + 1) % blocks());
    s[0] = peer(own, rank());
    meet();
    if (rank() == 0) {
        for (int i = 0; i < n; i += 8) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(at)::"memory");
            }
        }
        memory[0] = at;
    }
    meet();
}

// A barrier of the cluster.
KERNEL void cluster_barrier(unsigned* memory, int n, int unused)
{
    for (int i = 0; i < n; ++i) {
        meet();
    }
    memory[blockIdx.x * blockDim.x + threadIdx.x] = n;
}

__device__ __forceinline__ void await(unsigned at, unsigned parity)
{
    asm volatile(
        "{\n"
        "    .reg .pred done;\n"
        "LOOK:\n"
        "    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "    @!done bra LOOK;\n"
        "}" ::"r"(at),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ void expect(unsigned at, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

// An arrival at an mbarrier of the own block, and the wait that it ends.
KERNEL void mbarrier(unsigned* memory, int n, int unused)
{
    __shared__ unsigned long long full;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&full);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    for (int i = 0; i < n; ++i) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
        await(at, i & 1);
    }
    memory[0] = n;
}

// Pairs of blocks hand each other a word at the same time and wait for the other's: `st.async`, one hand-over a step.
KERNEL void hand_over(unsigned* memory, int n, int unused)
{
    __shared__ unsigned long long full[2];
    __shared__ unsigned word[2];
    const unsigned at = (unsigned)__cvta_generic_to_shared(full), to = (unsigned)__cvta_generic_to_shared(word);
    const unsigned next = rank() ^ 1;
    for (int i = 0; i < 2; ++i) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at + 8 * i) : "memory");
        expect(at + 8 * i, 4);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    meet();
    unsigned token = rank();
    for (int i = 0; i < n; ++i) {
        const unsigned half = i & 1;
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                         peer(to + 4 * half, next)),
                     "r"(token), "r"(peer(at + 8 * half, next))
                     : "memory");
        await(at + 8 * half, i >> 1 & 1);
        token = word[half];
        expect(at + 8 * half, 4);
    }
    memory[blockIdx.x] = token;
    meet();
}

// All blocks push to all others at once: n steps of 16 bytes from each thread to each peer in turn, then a barrier.
KERNEL void push(uint4* memory, int n, int unused)
{
    extern __shared__ uint4 s[];
    const unsigned own = (unsigned)__cvta_generic_to_shared(s);
    s[threadIdx.x] = make_uint4(0, 0, 0, 0);
    meet();
    for (int i = 0; i < n; ++i) {
        const unsigned there = peer(own + 16 * (threadIdx.x + blockDim.x * rank()), (rank() + 1 + i % (blocks() - 1)) % blocks());
        asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(there), "r"(i) : "memory");
    }
    meet();
    memory[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x];
}

// What emitted CUDA text needs in order to run on a host: a thread of a block is a fiber, a block is a thread. Fibers
// meet at barriers and shuffles; a barrier that not all of a block reach, and a shuffle that a lane of the mask misses,
// end the process.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <ucontext.h>
#include <vector>

// The text brings its own.
#undef INFINITY
#undef NAN

#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define __align__(n) __attribute__((aligned(n)))

struct Coordinate {
    unsigned x;
};
static thread_local Coordinate threadIdx, blockIdx, blockDim, gridDim;

struct float4 {
    float x, y, z, w;
};
struct float2 {
    float x, y;
};

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }

template <class To, class From> static inline To bits_as(From from)
{
    To to;
    static_assert(sizeof to == sizeof from, "a cast keeps the size");
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline float __int_as_float(int x) { return bits_as<float>(x); }
static inline int __float_as_int(float x) { return bits_as<int>(x); }
static inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static inline void __nanosleep(unsigned) {}

struct f16 {
    _Float16 value;
    f16() = default;
    explicit f16(float x) : value((_Float16)x) {}
    f16& operator=(float x) { return *this = f16(x); }
    operator float() const { return (float)value; }
};

struct bf16 {
    unsigned short bits;
    bf16() = default;
    explicit bf16(float x)
    {
        const unsigned word = __float_as_uint(x);
        bits = (unsigned short)((x != x ? word | 0x400000u : word + 0x7fffu + (word >> 16 & 1u)) >> 16);
    }
    bf16& operator=(float x) { return *this = bf16(x); }
    operator float() const { return __uint_as_float((unsigned)bits << 16); }
};

namespace host {

[[noreturn]] static void fail(const char* what)
{
    fprintf(stderr, "block %u: %s\n", blockIdx.x, what);
    abort();
}

enum class Waits { Nothing, Barrier, Shuffle };

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool done;
    Waits waits;
    unsigned mask;
    uint64_t given, got;
    unsigned from;
};

// A block that runs: its fibers, and which of them does.
struct Block {
    std::vector<Fiber> fibers;
    ucontext_t scheduler;
    unsigned current;
    std::function<void()> kernel;
};
static thread_local Block block;
static thread_local std::vector<char> dynamic_shared;

static void yield(Waits why)
{
    Fiber& fiber = block.fibers[block.current];
    fiber.waits = why;
    swapcontext(&fiber.context, &block.scheduler);
}

static void enter()
{
    block.kernel();
    block.fibers[block.current].done = true;
    yield(Waits::Nothing);
}

static void start(Fiber& fiber)
{
    fiber.stack.resize(256 << 10);
    fiber.done = false;
    fiber.waits = Waits::Nothing;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
}

// Lets every fiber that can run do so; says whether there was one.
static bool run_all()
{
    bool ran = false;
    for (unsigned i = 0; i < block.fibers.size(); ++i) {
        Fiber& fiber = block.fibers[i];
        if (fiber.done || fiber.waits != Waits::Nothing) {
            continue;
        }
        ran = true;
        block.current = i;
        threadIdx.x = i;
        swapcontext(&block.scheduler, &fiber.context);
    }
    return ran;
}

// Exchanges values where all lanes of a mask have come to a shuffle.
static bool release_shuffles()
{
    bool released = false;
    for (unsigned i = 0; i < block.fibers.size(); ++i) {
        const unsigned warp = i & ~31u;
        if (block.fibers[i].done || block.fibers[i].waits != Waits::Shuffle) {
            continue;
        }
        const unsigned mask = block.fibers[i].mask;
        if (!(mask >> (i & 31) & 1)) {
            fail("a lane shuffles outside its own mask");
        }
        bool complete = true;
        for (unsigned lane = 0; lane < 32; ++lane) {
            if (mask >> lane & 1) {
                const unsigned j = warp + lane;
                complete = complete && j < block.fibers.size() && !block.fibers[j].done
                    && block.fibers[j].waits == Waits::Shuffle && block.fibers[j].mask == mask;
            }
        }
        if (!complete) {
            continue;
        }
        for (unsigned lane = 0; lane < 32; ++lane) {
            if (mask >> lane & 1) {
                Fiber& fiber = block.fibers[warp + lane];
                fiber.got = block.fibers[warp + fiber.from].given;
            }
        }
        for (unsigned lane = 0; lane < 32; ++lane) {
            if (mask >> lane & 1) {
                block.fibers[warp + lane].waits = Waits::Nothing;
            }
        }
        released = true;
    }
    return released;
}

static void run_block(unsigned index, unsigned grid, unsigned threads, unsigned shared, const std::function<void()>& kernel)
{
    blockIdx.x = index;
    gridDim.x = grid;
    blockDim.x = threads;
    dynamic_shared.assign(shared + 16, (char)0xcd);
    block.kernel = kernel;
    block.fibers.resize(threads);
    for (Fiber& fiber : block.fibers) {
        start(fiber);
    }
    for (;;) {
        if (run_all() || release_shuffles()) {
            continue;
        }
        unsigned done = 0;
        for (Fiber& fiber : block.fibers) {
            done += fiber.done;
        }
        if (done == threads) {
            return;
        }
        for (Fiber& fiber : block.fibers) {
            if (fiber.done || fiber.waits != Waits::Barrier) {
                fail("not all threads come to a barrier or a shuffle");
            }
        }
        for (Fiber& fiber : block.fibers) {
            fiber.waits = Waits::Nothing;
        }
    }
}

// All blocks at once if they wait for each other, else one after another, last first: no block may count on an earlier one.
static void launch(unsigned grid, unsigned threads, unsigned shared, bool together, const std::function<void()>& kernel)
{
    std::vector<std::thread> running;
    for (unsigned i = grid; i-- > 0;) {
        running.emplace_back([=] { run_block(i, grid, threads, shared, kernel); });
        if (!together) {
            running.back().join();
            running.pop_back();
        }
    }
    for (std::thread& thread : running) {
        thread.join();
    }
}

template <class T> static T shuffle(unsigned mask, T value, unsigned from)
{
    Fiber& fiber = block.fibers[block.current];
    fiber.mask = mask;
    fiber.given = 0;
    memcpy(&fiber.given, &value, sizeof value);
    fiber.from = from;
    yield(Waits::Shuffle);
    T got;
    memcpy(&got, &fiber.got, sizeof got);
    return got;
}

} // namespace host

static inline void __syncthreads() { host::yield(host::Waits::Barrier); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { host::shuffle(mask, 0, threadIdx.x & 31); }
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int lanes)
{
    return host::shuffle(mask, value, (threadIdx.x & 31) ^ lanes);
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane)
{
    return host::shuffle(mask, value, lane & 31);
}

// Runs emitted CUDA text on the CPU: every CUDA thread is a fiber, and a seed decides which of them goes on.
//
// What is here: threads, blocks, barriers, shuffles, shared memory with guard pages, 16-bit types, exchanged words whose
// stores become visible late and out of order. What is not: any other weakness of the device's memory model.

#pragma once
#include <math.h>
#include <string.h>

#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// Only where blocks run one after another.
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
    unsigned x, y, z;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

struct alignas(8) uint2 {
    unsigned x, y;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(8) float2 {
    float x, y;
};

namespace shim {

[[noreturn]] void fail(const char* what);

// The fiber at hand, and what it is told about itself.
struct Self {
    uint3 thread, block, block_size, grid_size;
    void* memory;
};
extern Self self;

// Lets others go on.
void yield();

// Waits for all threads of the block.
void meet_block();

// What lane `from` brings, once all lanes of the mask have brought something; the own `x` where there is no such lane.
float exchange(unsigned mask, float x, int from);

// A number below n, by the seed.
unsigned draw(unsigned n);

// A store of 16 bytes that lands at some later time, in one piece.
void store_later(void* at, const void* bits);

// Runs `kernel(context)` in every thread of a launch.
void launch(unsigned grid, unsigned block, size_t shared, bool cooperative, void (*kernel)(void*), void* context);

template <class Kernel> void launch(unsigned grid, unsigned block, size_t shared, bool cooperative, Kernel kernel)
{
    launch(grid, block, shared, cooperative, [](void* context) { (*(Kernel*)context)(); }, &kernel);
}

inline unsigned lane()
{
    return self.thread.x % 32;
}

// A run, as a script says it.
struct Run {
    int T, B;
    unsigned grid;
    void* (*buffer)(int number);
    void* (*workspace)(int number);
    unsigned (*epoch)(int workspace);
};

int follow(char** files, void (*launch_number)(int number, Run& run));

} // namespace shim

#define threadIdx (shim::self.thread)
#define blockIdx (shim::self.block)
#define blockDim (shim::self.block_size)
#define gridDim (shim::self.grid_size)

inline void __syncthreads()
{
    shim::meet_block();
}

inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    shim::exchange(mask, 0.0f, -1);
}

inline float __shfl_xor_sync(unsigned mask, float x, int other)
{
    return shim::exchange(mask, x, (int)shim::lane() ^ other);
}

inline float __shfl_sync(unsigned mask, float x, int from, int width = 32)
{
    return shim::exchange(mask, x, (int)shim::lane() / width * width + from % width);
}

inline float __shfl_down_sync(unsigned mask, float x, unsigned by, int width = 32)
{
    const int to = (int)(shim::lane() + by);
    return shim::exchange(mask, x, to / width == (int)shim::lane() / width ? to : -1);
}

inline void __nanosleep(unsigned)
{
    shim::yield();
}

inline float __uint_as_float(unsigned x)
{
    float y;
    memcpy(&y, &x, 4);
    return y;
}

inline float __int_as_float(int x)
{
    return __uint_as_float((unsigned)x);
}

inline unsigned __float_as_uint(float x)
{
    unsigned y;
    memcpy(&y, &x, 4);
    return y;
}

inline int __float_as_int(float x)
{
    return (int)__float_as_uint(x);
}

inline float __fdividef(float a, float b)
{
    return a / b;
}

inline float __expf_shim(float x)
{
    return expf(x);
}

inline float __logf_shim(float x)
{
    return logf(x);
}

#define __expf __expf_shim
#define __logf __logf_shim

inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

inline int min(int a, int b)
{
    return a < b ? a : b;
}

inline int max(int a, int b)
{
    return a > b ? a : b;
}

inline long long min(long long a, long long b)
{
    return a < b ? a : b;
}

inline long long max(long long a, long long b)
{
    return a > b ? a : b;
}

// Stands in for the entries of the prelude that are written in PTX.

struct f16 {
    _Float16 value;

    f16() = default;

    explicit f16(float x) : value((_Float16)x)
    {
    }

    f16& operator=(float x)
    {
        value = (_Float16)x;
        return *this;
    }

    operator float() const
    {
        return (float)value;
    }
};

struct bf16 {
    unsigned short bits;

    bf16() = default;

    explicit bf16(float x)
    {
        const unsigned word = __float_as_uint(x);
        bits = (unsigned short)((x != x ? word | 0x400000u : word + 0x7fffu + (word >> 16 & 1u)) >> 16);
    }

    bf16& operator=(float x)
    {
        return *this = bf16(x);
    }

    operator float() const
    {
        return __uint_as_float((unsigned)bits << 16);
    }
};

inline float tanh_fast(float x)
{
    return tanhf(x);
}

struct Word {
    float number[3];
    unsigned epoch;
};

inline void publish(Word* at, const Word& word)
{
    shim::store_later(at, &word);
}

inline Word peek(const Word* at)
{
    if (shim::draw(2) == 0) {
        shim::yield();
    }
    Word word;
    memcpy(&word, at, 16);
    return word;
}

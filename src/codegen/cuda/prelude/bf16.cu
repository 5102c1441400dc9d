// bfloat16 as storage; arithmetic is in float.
struct bf16 {
    unsigned short bits;

    bf16() = default;

    explicit __device__ __forceinline__ bf16(float x)
    {
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    }

    __device__ __forceinline__ bf16& operator=(float x)
    {
        return *this = bf16(x);
    }

    __device__ __forceinline__ operator float() const
    {
        return __uint_as_float((unsigned)bits << 16);
    }
};

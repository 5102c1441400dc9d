// IEEE half as storage; arithmetic is in float.
struct f16 {
    unsigned short bits;

    f16() = default;

    explicit __device__ __forceinline__ f16(float x)
    {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    }

    __device__ __forceinline__ f16& operator=(float x)
    {
        return *this = f16(x);
    }

    __device__ __forceinline__ operator float() const
    {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};

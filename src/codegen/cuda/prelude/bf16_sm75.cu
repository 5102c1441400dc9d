// bfloat16 as storage; arithmetic is in float. This architecture has no conversion, so it is done on the bits:
// to nearest, ties to even, NaN kept.
struct bf16 {
    unsigned short bits;

    bf16() = default;

    explicit __device__ __forceinline__ bf16(float x)
    {
        const unsigned word = __float_as_uint(x);
        const unsigned rounded = word + 0x7fffu + (word >> 16 & 1u);
        bits = (unsigned short)((x != x ? word | 0x400000u : rounded) >> 16);
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

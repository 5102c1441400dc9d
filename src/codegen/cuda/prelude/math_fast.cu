// The device's approximate tangent, relative error about 2^-11.
__device__ __forceinline__ float tanh_fast(float x)
{
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 1 / (1 + exp(-x)) from approximate parts.
__device__ __forceinline__ float sigmoid_fast(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

// x sigmoid(x) from approximate parts.
__device__ __forceinline__ float silu_fast(float x)
{
    return x * sigmoid_fast(x);
}

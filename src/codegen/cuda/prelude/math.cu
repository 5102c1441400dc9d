// 1 / (1 + exp(-x)); exp overflows to infinity where the result is 0.
__device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

// The larger; NaN if either is.
__device__ __forceinline__ float maximum(float a, float b)
{
    return a > b || a != a ? a : b;
}

// The smaller; NaN if either is.
__device__ __forceinline__ float minimum(float a, float b)
{
    return a < b || a != a ? a : b;
}

// x, at least lo, then at most hi.
__device__ __forceinline__ float clamp(float x, float lo, float hi)
{
    return minimum(maximum(x, lo), hi);
}

// max(x, 0), keeping NaN.
__device__ __forceinline__ float relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

// log(1 + exp(x)) without overflow.
__device__ __forceinline__ float softplus(float x)
{
    return relu(x) + log1pf(expf(-fabsf(x)));
}

// log(sigmoid(x)) without overflow.
__device__ __forceinline__ float logsigmoid(float x)
{
    return -softplus(-x);
}

// log(exp(a) + exp(b)) without overflow; equal operands, infinite ones too, have an exact difference of 0.
__device__ __forceinline__ float logaddexp(float a, float b)
{
    const float distance = a == b ? 0.0f : fabsf(a - b);
    return maximum(a, b) + log1pf(expf(-distance));
}

// x times the normal distribution function of x; erfc keeps the left tail exact.
__device__ __forceinline__ float gelu(float x)
{
    return 0.5f * x * erfcf(-0.70710678f * x);
}

// x sigmoid(x)
__device__ __forceinline__ float silu(float x)
{
    return x / (1.0f + expf(-x));
}

// -1, 0 or 1; NaN stays NaN.
__device__ __forceinline__ float sign(float x)
{
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

// clamp(x / 6 + 1/2, 0, 1)
__device__ __forceinline__ float hard_sigmoid(float x)
{
    return clamp(x / 6.0f + 0.5f, 0.0f, 1.0f);
}

// x * x
__device__ __forceinline__ float square(float x)
{
    return x * x;
}

// The remainder of a / b with the sign of b.
__device__ __forceinline__ float modulo(float a, float b)
{
    const float remainder = fmodf(a, b);
    return remainder != 0.0f && (remainder < 0.0f) != (b < 0.0f) ? remainder + b : remainder;
}

// The nearest row of a table with so many rows.
__device__ __forceinline__ int nearest_row(int row, int rows)
{
    return min(max(row, 0), rows - 1);
}

// The same for a row that was computed; NaN gives row 0.
__device__ __forceinline__ int nearest_row(float row, int rows)
{
    return (int)fminf(fmaxf(row, 0.0f), (float)(rows - 1));
}

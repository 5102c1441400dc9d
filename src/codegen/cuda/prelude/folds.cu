// The sum over a warp, the same in every lane.
__device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

// The largest of a warp; NaN if there is one.
__device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        x = maximum(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}

// The sum of term(k) for k below extent. A whole warp computes it, and every lane gets it.
template <class Term> __device__ __forceinline__ float fold_sum(int extent, int lane, const Term& term)
{
    float sum = 0.0f;
    for (int k = lane; k < extent; k += 32) {
        sum += term(k);
    }
    return warp_sum(sum);
}

// The arithmetic mean of term(k).
template <class Term> __device__ __forceinline__ float fold_mean(int extent, int lane, const Term& term)
{
    return fold_sum(extent, lane, term) / (float)extent;
}

// The mean of the squared distances from the mean.
template <class Term> __device__ __forceinline__ float fold_var(int extent, int lane, const Term& term)
{
    const float mean = fold_mean(extent, lane, term);
    return fold_mean(extent, lane, [&](int k) {
        const float distance = term(k) - mean;
        return distance * distance;
    });
}

// The largest term(k); NaN if there is one.
template <class Term> __device__ __forceinline__ float fold_max(int extent, int lane, const Term& term)
{
    float largest = -INFINITY;
    for (int k = lane; k < extent; k += 32) {
        largest = maximum(largest, term(k));
    }
    return warp_max(largest);
}

// The smallest term(k); NaN if there is one.
template <class Term> __device__ __forceinline__ float fold_min(int extent, int lane, const Term& term)
{
    return -fold_max(extent, lane, [&](int k) { return -term(k); });
}

// The logarithm of the sum of exp(term(k)), without overflow.
template <class Term> __device__ __forceinline__ float fold_logsumexp(int extent, int lane, const Term& term)
{
    const float largest = fold_max(extent, lane, term);
    const float shift = fabsf(largest) == INFINITY ? 0.0f : largest;
    return shift + logf(fold_sum(extent, lane, [&](int k) { return expf(term(k) - shift); }));
}

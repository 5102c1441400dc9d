// The mask of the N neighbouring lanes that work on one channel.
template <int N> __device__ __forceinline__ unsigned lane_group()
{
    return 0xffffffffu >> (32 - N) << (threadIdx.x & 31 & ~(N - 1));
}

// The sum over N neighbouring lanes, in an order that depends on N alone; the same in all of them.
template <int N> __device__ __forceinline__ float sum_of_lanes(float x, unsigned group)
{
    #pragma unroll
    for (int distance = N / 2; distance > 0; distance /= 2) {
        x += __shfl_xor_sync(group, x, distance);
    }
    return x;
}

// The largest over N neighbouring lanes; NaN if any is.
template <int N> __device__ __forceinline__ float maximum_of_lanes(float x, unsigned group)
{
    #pragma unroll
    for (int distance = N / 2; distance > 0; distance /= 2) {
        x = maximum(x, __shfl_xor_sync(group, x, distance));
    }
    return x;
}

// The smallest over N neighbouring lanes; NaN if any is.
template <int N> __device__ __forceinline__ float minimum_of_lanes(float x, unsigned group)
{
    #pragma unroll
    for (int distance = N / 2; distance > 0; distance /= 2) {
        x = minimum(x, __shfl_xor_sync(group, x, distance));
    }
    return x;
}

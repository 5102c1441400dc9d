// x = the V numbers at from, which is aligned to all V of them; zeros unless they exist.
template <int V, class E> __device__ __forceinline__ void load_row(float (&x)[V], const E* from, bool exist = true)
{
    struct alignas(V * sizeof(E)) Row {
        E e[V];
    };
    Row row = {};
    if (exist) {
        row = *(const Row*)from;
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
        x[v] = (float)row.e[v];
    }
}

// x[i] = the V numbers at from + i * stride, which is aligned to all V of them.
template <int N, int V, class E> __device__ __forceinline__ void load_rows(float (&x)[N][V], const E* from, int stride)
{
#pragma unroll
    for (int i = 0; i < N; ++i) {
        load_row(x[i], from + i * stride);
    }
}

// sum[g * N + n] += w[g] * x[n], as vectors.
template <int G, int N, int V> __device__ __forceinline__ void add_products(float* sum, const float (&w)[G][V], const float (&x)[N][V])
{
#pragma unroll
    for (int v = 0; v < V; ++v) {
#pragma unroll
        for (int g = 0; g < G; ++g) {
#pragma unroll
            for (int n = 0; n < N; ++n) {
                sum[g * N + n] = fmaf(w[g][v], x[n][v], sum[g * N + n]);
            }
        }
    }
}

// Adds the first M of an array of sums (all of them if M is 0) up over strips of L lanes, in a fixed order. A lane is left
// with the totals of the sums from the returned number on: M / L of them, or one that L / M neighbouring lanes share. Both
// are powers of two.
template <int L, int M = 0, int N> __device__ __forceinline__ int total_over_lanes(float (&sum)[N], int lane)
{
    if constexpr (L == 1) {
        return 0;
    } else if constexpr (M == 1 || (M == 0 && N == 1)) {
        sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], L / 2);
        return total_over_lanes<L / 2, 1>(sum, lane);
    } else {
        constexpr int half = (M == 0 ? N : M) / 2;
        const bool upper = (lane & L / 2) != 0;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float sent = upper ? sum[i] : sum[i + half];
            const float kept = upper ? sum[i + half] : sum[i];
            sum[i] = kept + __shfl_xor_sync(0xffffffffu, sent, L / 2);
        }
        return (upper ? half : 0) + total_over_lanes<L / 2, half>(sum, lane);
    }
}

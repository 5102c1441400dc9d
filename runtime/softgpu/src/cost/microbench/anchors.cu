// Two recurrent loops of a known kind, as anchors of the model: an LSTM, H = 768, B = 16, in bf16, whose blocks keep their
// rows of R in registers and meet at two grid-wide barriers a frame, because h has one buffer. FlashRNN's fused kernel is of
// this kind: it reads h from device memory straight into the operands of its products and syncs the grid with cooperative
// groups. Here the barrier is either a counter that is released and acquired, or the one of cooperative groups.
//
// 48 blocks of 8 warps own 16 units each: 64 rows in 4 tiles of 16, the warps halve K.

#define H 768
#define B 16
#define BLOCKS 48

__device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + __expf(-x));
}

__device__ __forceinline__ float squash(float x)
{
    return 2.0f * sigmoid(2.0f * x) - 1.0f;
}

struct Counter {
    static __device__ __forceinline__ void meet(unsigned* counter, unsigned& phase)
    {
        phase += BLOCKS;
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
            unsigned now;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
            } while ((int)(now - phase) < 0);
        }
        __syncthreads();
    }
};

struct Grid {
    static __device__ __forceinline__ void meet(unsigned* counter, unsigned& phase)
    {
        grid_barrier(counter);
    }
};

// R as fragments: [block][warp][tile of K][lane] of 4 words; x: [T][B][4 H] as f32; h: [B][H] as bf16; y: [T][B][H].
// IN_FLIGHT tiles of h are asked for before the first is needed: how many ptxas keeps under way is not to be seen in PTX.
template <class Barrier, int IN_FLIGHT>
__device__ __forceinline__ void loop(
    const uint4* r, const float* x, unsigned short* h, float* y, unsigned* counter, int T)
{
    __shared__ float sums[2][64][17];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tile = warp % 4, part = warp / 4;
    uint4 w[24];
#pragma unroll
    for (int k = 0; k < 24; ++k) {
        w[k] = r[((blockIdx.x * 8 + warp) * 24 + k) * 32 + lane];
    }
    // A thread finishes a unit of a sequence: 16 units by 16 sequences.
    const int unit = threadIdx.x % 16, seq = threadIdx.x / 16, own = blockIdx.x * 16 + unit;
    float c = 0.0f;
    unsigned phase = 0;
    for (int t = 0; t < T; ++t) {
        float in[4];
#pragma unroll
        for (int g = 0; g < 4; ++g) {
            in[g] = x[((long long)t * B + seq) * 4 * H + g * H + own];
        }
        float d[2][4] = {};
        const unsigned short* const from = h + lane / 4 * H + part * 24 * 16 + lane % 4 * 2;
#pragma unroll
        for (int first = 0; first < 24; first += IN_FLIGHT) {
            unsigned b[IN_FLIGHT][2][2];
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    asm volatile("ld.global.cg.u32 %0, [%1];"
                                 : "=r"(b[k][i / 2][i % 2])
                                 : "l"(from + i / 2 * 8 * H + (first + k) * 16 + i % 2 * 8)
                                 : "memory");
                }
            }
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) {
                const uint4 a = w[first + k];
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                                 "{%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
                                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b[k][n][0]), "r"(b[k][n][1]));
                }
            }
        }
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums[part][tile * 16 + lane / 4 + i / 2 * 8][n * 8 + lane % 4 * 2 + i % 2] = d[n][i];
            }
        }
        // Everybody has read h: it may be written.
        Barrier::meet(counter, phase);
        float gate[4];
#pragma unroll
        for (int g = 0; g < 4; ++g) {
            gate[g] = in[g] + sums[0][g * 16 + unit][seq] + sums[1][g * 16 + unit][seq];
        }
        c = sigmoid(gate[1]) * c + sigmoid(gate[0]) * squash(gate[2]);
        const float out = sigmoid(gate[3]) * squash(c);
        unsigned short half;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(out));
        h[seq * H + own] = half;
        y[((long long)t * B + seq) * H + own] = out;
        Barrier::meet(counter, phase);
    }
}

#define ANCHOR(name, barrier, in_flight)                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                                  \
        name(const uint4* r, const float* x, unsigned short* h, float* y, unsigned* counter, int T)                      \
    {                                                                                                                     \
        loop<barrier, in_flight>(r, x, h, y, counter, T);                                                                 \
    }

ANCHOR(lstm_counter, Counter, 1)
ANCHOR(lstm_counter_ahead, Counter, 4)
ANCHOR(lstm_grid_sync, Grid, 1)

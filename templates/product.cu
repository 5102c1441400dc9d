{{ comment }}extern "C" __global__ void __launch_bounds__({{ threads }}, {{ resident }}) {{ name }}(
{{ parameters }})
{
    __shared__ __align__(16) union {
        struct {
            float operand[2][{{ depth }}][{{ operand_pitch }}];
            float weight[2][{{ depth }}][{{ weight_pitch }}];
        } slice;
        float sums[{{ tile_copies }}][{{ weight_pitch }}];
    } shared;

    const int thread = threadIdx.x;
    const int line = thread / {{ columns }};
    const int column = thread % {{ columns }};
    const long long copies = {{ copies }};
    const long long tiles = (copies + {{ last_copy }}) / {{ tile_copies }} * {{ strips }};
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const long long first_copy = tile / {{ strips }} * {{ tile_copies }};
        const int last_copy = (int)min(copies - 1 - first_copy, {{ last_copy }}LL);
{{ segment }}
        // The next slice: elements of the operand and of the tile's rows of weights, on their way in registers.
        float operand_next[{{ operand_each }}];
        float weight_next[{{ weight_each }}];
        float total[{{ copies_each }}][{{ rows_each }}] = {};
        for (int slice = 0; slice <= {{ slices }}; ++slice) {
            const int half = slice % 2;
            if (slice < {{ slices }}) {
{{ fetch }}            }
            // Meanwhile the slice before it is multiplied.
            if (slice > 0) {
                #pragma unroll 4
                for (int step = 0; step < {{ depth }}; ++step) {
                    float4 x[{{ copy_quads }}], w[{{ row_quads }}];
                    #pragma unroll
                    for (int i = 0; i < {{ copy_quads }}; ++i) {
                        x[i] = *(const float4*)&shared.slice.operand[1 - half][step][line * 4 + i * {{ copy_spacing }}];
                    }
                    #pragma unroll
                    for (int j = 0; j < {{ row_quads }}; ++j) {
                        w[j] = *(const float4*)&shared.slice.weight[1 - half][step][column * 4 + j * {{ row_spacing }}];
                    }
                    #pragma unroll
                    for (int i = 0; i < {{ copies_each }}; ++i) {
                        #pragma unroll
                        for (int j = 0; j < {{ rows_each }}; ++j) {
                            total[i][j] += (&x[i / 4].x)[i % 4] * (&w[j / 4].x)[j % 4];
                        }
                    }
                }
            }
            if (slice < {{ slices }}) {
                #pragma unroll
                for (int i = 0; i < {{ operand_each }}; ++i) {
                    shared.slice.operand[half][{{ operand_k }}][{{ operand_copy }}] = operand_next[i];
                }
                #pragma unroll
                for (int i = 0; i < {{ weight_each }}; ++i) {
                    shared.slice.weight[half][{{ weight_k }}][{{ weight_row }}] = weight_next[i];
                }
            }
            __syncthreads();
        }

        // Sums change hands, so that neighbouring threads finish neighbouring rows.
        #pragma unroll
        for (int i = 0; i < {{ copies_each }}; ++i) {
            #pragma unroll
            for (int j = 0; j < {{ row_quads }}; ++j) {
                const float* const quad = total[i] + j * 4;
                *(float4*)&shared.sums[line * 4 + i / 4 * {{ copy_spacing }} + i % 4][column * 4 + j * {{ row_spacing }}] = {quad[0], quad[1], quad[2], quad[3]};
            }
        }
        __syncthreads();
        const int row = first_row + thread % {{ tile_rows }};
        #pragma unroll 2
        for (int copy = thread / {{ tile_rows }}; copy <= last_copy{{ and_row_exists }}; copy += {{ copies_at_once }}) {
            const float sum = shared.sums[copy][thread % {{ tile_rows }}];
{{ finish }}        }
        __syncthreads();
    }
}

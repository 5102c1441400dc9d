{{ comment }}extern "C" __global__ void __launch_bounds__({{ threads }}) {{ name }}(
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
        const auto fetch = [&](int slice) {
{{ fetch }}        };

        float total[{{ copies_each }}][{{ rows_each }}] = {};
        fetch(0);
        for (int slice = 0; slice < {{ slices }}; ++slice) {
            const int half = slice % 2;
            #pragma unroll
            for (int i = 0; i < {{ operand_each }}; ++i) {
                shared.slice.operand[half][{{ operand_k }}][{{ operand_copy }}] = operand_next[i];
            }
            #pragma unroll
            for (int i = 0; i < {{ weight_each }}; ++i) {
                shared.slice.weight[half][{{ weight_k }}][{{ weight_row }}] = weight_next[i];
            }
            __syncthreads();
            if (slice + 1 < {{ slices }}) {
                fetch(slice + 1);
            }
            #pragma unroll 4
            for (int step = 0; step < {{ depth }}; ++step) {
                float4 x[{{ copy_quads }}], w[{{ row_quads }}];
                #pragma unroll
                for (int i = 0; i < {{ copy_quads }}; ++i) {
                    x[i] = *(const float4*)&shared.slice.operand[half][step][line * 4 + i * {{ copy_spacing }}];
                }
                #pragma unroll
                for (int j = 0; j < {{ row_quads }}; ++j) {
                    w[j] = *(const float4*)&shared.slice.weight[half][step][column * 4 + j * {{ row_spacing }}];
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
        __syncthreads();

        // Sums change hands, so that neighbouring threads finish neighbouring rows.
        #pragma unroll
        for (int i = 0; i < {{ copies_each }}; ++i) {
            #pragma unroll
            for (int j = 0; j < {{ rows_each }}; ++j) {
                shared.sums[line * 4 + i / 4 * {{ copy_spacing }} + i % 4][column * 4 + j / 4 * {{ row_spacing }} + j % 4] = total[i][j];
            }
        }
        __syncthreads();
        for (int item = thread; item < {{ tile_items }}; item += {{ threads }}) {
            const int copy = item / {{ tile_rows }};
            const int row = first_row + item % {{ tile_rows }};
            if (copy <= last_copy{{ and_row_exists }}) {
                const float sum = shared.sums[copy][item % {{ tile_rows }}];
{{ finish }}            }
        }
        __syncthreads();
    }
}

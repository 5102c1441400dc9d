{{ comment }}extern "C" __global__ void __launch_bounds__({{ threads }}, 2) {{ name }}(
{{ parameters }})
{
    // Four floats more than needed: columns then start in different banks, and quads stay aligned.
    __shared__ __align__(16) float left[{{ depth }}][{{ pitch }}];
    __shared__ __align__(16) float right[{{ depth }}][{{ pitch }}];

    const int thread = threadIdx.x;
    const int line = thread / {{ across }};
    const int column = thread % {{ across }};
    const long long terms = {{ terms }};
    const long long tiles = {{ tiles }};
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
{{ place }}
        float total[{{ each }}][{{ each }}] = {};
        for (long long first = 0; first < terms; first += {{ depth }}) {
            #pragma unroll
            for (int i = 0; i < {{ loads }}; ++i) {
                const int step = (thread + i * {{ threads }}) / {{ side }};
                const int item = (thread + i * {{ threads }}) % {{ side }};
                const long long term = first + step;
                float value = 0.0f;
                if (term < terms && first_row + item < {{ rows }}) {
{{ load_left }}                }
                left[step][item] = value;
            }
            #pragma unroll
            for (int i = 0; i < {{ loads }}; ++i) {
                const int step = (thread + i * {{ threads }}) / {{ side }};
                const int item = (thread + i * {{ threads }}) % {{ side }};
                const long long term = first + step;
                float value = 0.0f;
                if (term < terms && first_column + item < {{ columns }}) {
{{ load_right }}                }
                right[step][item] = value;
            }
            __syncthreads();
            #pragma unroll 2
            for (int step = 0; step < {{ depth }}; ++step) {
                const float4 x = *(const float4*)&left[step][line * {{ each }}];
                const float4 w = *(const float4*)&right[step][column * {{ each }}];
                #pragma unroll
                for (int i = 0; i < {{ each }}; ++i) {
                    #pragma unroll
                    for (int j = 0; j < {{ each }}; ++j) {
                        total[i][j] += (&x.x)[i] * (&w.x)[j];
                    }
                }
            }
            __syncthreads();
        }
        #pragma unroll
        for (int i = 0; i < {{ each }}; ++i) {
            #pragma unroll
            for (int j = 0; j < {{ each }}; ++j) {
                const int own_row = first_row + line * {{ each }} + i;
                const int own_column = first_column + column * {{ each }} + j;
                if (own_row < {{ rows }} && own_column < {{ columns }}) {
                    const float sum = total[i][j];
{{ finish }}                }
            }
        }
    }
}

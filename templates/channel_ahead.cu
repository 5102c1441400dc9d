{{ comment }}extern "C" __global__ void __launch_bounds__({{ threads }}, {{ resident }}) {{ name }}(
{{ parameters }})
{
    const long long item = (long long)blockIdx.x * {{ threads }} + threadIdx.x;
    if (item >= {{ count }}) {
        return;
    }
{{ coordinates }}
{{ before }}
    // Frames are read {{ frames }} at a time, while the {{ frames }} before are computed.
{{ next }}    #pragma unroll
    for (int slot = 0; slot < {{ frames }}; ++slot) {
        const int frame = min(slot, T - 1);
        const long long later = (long long)frame * B + seq;
{{ loads }}    }

    for (int first = 0; first < T; first += {{ frames }}) {
{{ now }}        #pragma unroll
        for (int slot = 0; slot < {{ frames }}; ++slot) {
{{ moves }}            const int frame = min(first + {{ frames }} + slot, T - 1);
            const long long later = (long long)frame * B + seq;
{{ next_loads }}        }
        #pragma unroll
        for (int slot = 0; slot < {{ frames }}; ++slot) {
            const int t = first + slot;
            if (t == T) {
                break;
            }
{{ body }}        }
    }
{{ after }}}

{{ comment }}extern "C" __global__ void __launch_bounds__({{ threads }}, {{ resident }}) {{ name }}(
{{ parameters }})
{
    const long long item = (long long)blockIdx.x * {{ threads }} + threadIdx.x;
    if (item >= {{ count }}) {
        return;
    }
{{ coordinates }}
{{ before }}
    for (int t = 0; t < T; ++t) {
{{ body }}    }
{{ after }}}

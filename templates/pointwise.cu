{{ comment }}extern "C" __global__ void __launch_bounds__({{ threads }}) {{ name }}(
{{ parameters }})
{
    const long long count = {{ count }};
    const long long stride = (long long)gridDim.x * {{ threads }};
    for (long long item = (long long)blockIdx.x * {{ threads }} + threadIdx.x; item < count; item += stride) {
{{ coordinates }}{{ body }}    }
}

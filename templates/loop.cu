{{ comment }}extern "C" __global__ void __launch_bounds__({{ threads }}, 1) {{ name }}(
{{ parameters }})
{
{{ setup }}
    for (long long first = {{ first }}; first < B; first += {{ step }}) {
{{ start }}
        for (int t = 0; t < T; ++t) {
{{ frame }}        }
    }
}

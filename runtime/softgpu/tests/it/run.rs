//! Kernels of CUDA text, compiled by NVRTC, against values computed here.

use crate::host::{hosts, line};
use softgpu::fault::Kind;
use softgpu::{Arg, Launch};

#[test]
fn a_saxpy_with_a_ragged_end() {
    let text = r#"
        extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = a * x[i] + y[i];
        }"#;
    for mut host in hosts(text, "sm_90") {
        let n = 1000;
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let y: Vec<f32> = (0..n).map(|i| 1.0 / (1.0 + i as f32)).collect();
        let (dy, dx) = (host.floats("y", &y), host.floats("x", &x));
        let arguments = [Arg::U64(dy), Arg::U64(dx), Arg::F32(3.0), Arg::I32(n)];
        let report = host.run(&line(9, 128), &arguments).unwrap();
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3f32.mul_add(*x, *y)).collect();
        assert_eq!(host.read_floats(dy, n as usize), expected, "{}", host.version);
        assert!(report.warp_instructions > 32 * 9);
    }
}

const REVERSE: &str = r#"
    extern "C" __global__ void reverse(int* out, const int* in, int n) {
        extern __shared__ int tile[];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        tile[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = tile[blockDim.x - 1 - threadIdx.x] + n;
    }"#;

#[test]
fn dynamic_shared_memory_and_a_barrier_under_several_seeds() {
    for mut host in hosts(REVERSE, "sm_80") {
        let input: Vec<u32> = (0..500).collect();
        for seed in 0..8 {
            let (out, given) = (host.words("out", &[0; 500]), host.words("in", &input));
            let launch = Launch {
                shared: 400,
                seed,
                ..line(5, 100)
            };
            host.run(&launch, &[Arg::U64(out), Arg::U64(given), Arg::I32(7)])
                .unwrap();
            let expected: Vec<u32> = (0..500).map(|i| i / 100 * 100 + 99 - i % 100 + 7).collect();
            assert_eq!(host.read(out, 500), expected, "{} seed {seed}", host.version);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for mut host in hosts(REVERSE, "sm_80") {
        let mut reports = Vec::new();
        for seed in [3, 3, 4] {
            let (out, given) = (host.words("out", &[0; 500]), host.words("in", &[1; 500]));
            let launch = Launch {
                shared: 400,
                seed,
                ..line(5, 100)
            };
            reports.push(
                host.run(&launch, &[Arg::U64(out), Arg::U64(given), Arg::I32(7)])
                    .unwrap(),
            );
        }
        assert_eq!(reports[0], reports[1]);
    }
}

#[test]
fn shared_bytes_beyond_the_launch_are_a_fault() {
    for mut host in hosts(REVERSE, "sm_80") {
        let (out, given) = (host.words("out", &[0; 100]), host.words("in", &[1; 100]));
        let launch = Launch {
            shared: 396,
            ..line(1, 100)
        };
        let fault = host
            .run(&launch, &[Arg::U64(out), Arg::U64(given), Arg::I32(7)])
            .unwrap_err();
        assert_eq!(fault.kind, Kind::OutOfBounds, "{fault:?}");
        assert_eq!(fault.thread.unwrap().thread, [99, 0, 0]);
        assert!(fault.place.unwrap().source.is_some());
    }
}

#[test]
fn a_call_local_memory_and_a_divergent_loop() {
    let text = r#"
        __device__ __noinline__ int collatz(int n, int* trail) {
            int steps = 0;
            while (n != 1) {
                n = n % 2 ? 3 * n + 1 : n / 2;
                trail[steps % 8] = n;
                ++steps;
            }
            return steps;
        }
        extern "C" __global__ void k(int* out) {
            int trail[8] = {};
            int n = blockIdx.x * blockDim.x + threadIdx.x + 1;
            int steps = collatz(n, trail);
            int sum = 0;
            for (int i = 0; i < 8; ++i) sum += trail[(i + n) % 8];
            out[n - 1] = steps * 1000 + sum;
        }"#;
    let expected: Vec<u32> = (1..=96u32)
        .map(|start| {
            let (mut n, mut steps, mut trail) = (start, 0usize, [0u32; 8]);
            while n != 1 {
                n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
                trail[steps % 8] = n;
                steps += 1;
            }
            steps as u32 * 1000 + trail.iter().sum::<u32>()
        })
        .collect();
    for mut host in hosts(text, "sm_90") {
        for seed in 0..4 {
            let out = host.words("out", &[0; 96]);
            host.run(&Launch { seed, ..line(2, 48) }, &[Arg::U64(out)]).unwrap();
            assert_eq!(host.read(out, 96), expected, "{}", host.version);
        }
    }
}

#[test]
fn lanes_that_spin_on_lanes_of_their_own_warp_make_progress() {
    let text = r#"
        extern "C" __global__ void k(int* out, int* lock) {
            bool done = false;
            while (!done) {
                if (atomicCAS(lock, 0, 1) == 0) {
                    __threadfence();
                    out[0] = ((volatile int*)out)[0] + 1;
                    __threadfence();
                    atomicExch(lock, 0);
                    done = true;
                }
            }
        }"#;
    for mut host in hosts(text, "sm_90") {
        let (out, lock) = (host.words("out", &[0]), host.words("lock", &[0]));
        host.run(&line(2, 64), &[Arg::U64(out), Arg::U64(lock)]).unwrap();
        assert_eq!(host.read(out, 1), [128], "{}", host.version);
    }
}

//! Asynchronous copies, mbarriers and atomic operations, from CUDA text with inline assembly.

use crate::host::{hosts, line};
use softgpu::{Arg, Launch};

/// Runs a kernel `k(out, in)` for every NVRTC and a few seeds.
fn expect(text: &str, launch: &Launch, input: &[u32], expected: &[u32]) {
    for mut host in hosts(text, "sm_90") {
        for seed in 0..4 {
            let (out, given) = (host.words("out", &vec![0; expected.len()]), host.words("in", input));
            let launch = Launch { seed, ..launch.clone() };
            let done = host.run(&launch, &[Arg::U64(out), Arg::U64(given)]);
            done.unwrap_or_else(|fault| panic!("{} seed {seed}: {fault:#?}", host.version));
            assert_eq!(host.read(out, expected.len()), expected, "{} seed {seed}", host.version);
        }
    }
}

#[test]
fn groups_of_copies_arrive_in_order() {
    let text = r#"extern "C" __global__ void k(int* out, const int* in) {
        __shared__ __align__(16) int tile[2][96 * 4];
        unsigned t = threadIdx.x;
        for (int i = 0; i < 2; ++i) {
            unsigned to = (unsigned)__cvta_generic_to_shared(&tile[i][t * 4]);
            // The second copy takes 8 of 16 bytes, and zeros.
            asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                :: "r"(to), "l"(in + i * 384 + t * 4), "r"(16 - 8 * i) : "memory");
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        int first = tile[0][(t * 4 + 5) % 384];
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        out[t] = first + 10000 * tile[1][(t * 4 + 5) % 384];
        out[96 + t] = tile[1][t * 4 + 3];
        }"#;
    let input: Vec<u32> = (0..768).collect();
    let first = (0..96).map(|t| (t * 4 + 5) % 384).map(|at| at + 10_000 * (384 + at));
    expect(text, &line(1, 96), &input, &first.chain([0; 96]).collect::<Vec<_>>());
}

#[test]
fn an_mbarrier_hands_over_between_warps() {
    let text = r#"
        __device__ void wait(unsigned bar, unsigned parity) {
            unsigned done = 0;
            while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                : "=r"(done) : "r"(bar), "r"(parity) : "memory");
        }
        extern "C" __global__ void k(int* out, const int* in) {
            __shared__ unsigned long long full, empty;
            __shared__ int box[32];
            unsigned f = (unsigned)__cvta_generic_to_shared(&full), e = (unsigned)__cvta_generic_to_shared(&empty);
            unsigned t = threadIdx.x;
            if (t == 0) {
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(f) : "memory");
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(e) : "memory");
            }
            __syncthreads();
            for (int i = 0; i < 5; ++i) {
                if (t < 32) {
                    if (i > 0) wait(e, (i - 1) & 1);
                    box[t] = in[i * 32 + t];
                    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(f) : "memory");
                } else {
                    wait(f, i & 1);
                    out[i * 32 + t - 32] = box[63 - t] * 2;
                    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(e) : "memory");
                }
            }
        }"#;
    let input: Vec<u32> = (0..160).collect();
    let expected: Vec<u32> = (0..160).map(|i| (i / 32 * 32 + 31 - i % 32) * 2).collect();
    expect(text, &line(1, 64), &input, &expected);
}

#[test]
fn atomic_operations_of_many_types() {
    let text = r#"extern "C" __global__ void k(unsigned* out, const unsigned* in) {
        __shared__ unsigned sum;
        __shared__ float real;
        unsigned t = threadIdx.x;
        if (t == 0) { sum = 0; real = 0.0f; }
        __syncthreads();
        atomicAdd(&sum, t);
        atomicAdd(&real, 0.5f);
        atomicMax((int*)out + 1, (int)t - 20);
        atomicMin(out + 2, ~t);
        atomicXor(out + 3, 1u << t % 32);
        atomicAdd((unsigned long long*)(out + 4), 0x100000001ull);
        atomicInc(out + 6, 9);
        atomicAdd((double*)(out + 8), 0.25);
        unsigned seen = out[7], before;
        do { before = seen; seen = atomicCAS(out + 7, before, before + 3); } while (seen != before);
        __syncthreads();
        if (t == 0) { out[0] = sum; out[10] = (unsigned)real; }
        }"#;
    let text = text.replace("unsigned seen = out[7]", "unsigned seen = ((volatile unsigned*)out)[7]");
    for mut host in hosts(&text, "sm_90") {
        for seed in 0..3 {
            let out = host.words("out", &[0, 0, u32::MAX, 0, 0, 0, 0, 0, 0, 0, 0]);
            host.run(&Launch { seed, ..line(1, 75) }, &[Arg::U64(out), Arg::U64(0)])
                .unwrap();
            let words = host.read(out, 11);
            assert_eq!(words[..4], [2775, 54, u32::MAX - 74, 0x7FF]);
            assert_eq!(words[4..8], [75, 75, 75 % 10, 225]);
            let double = f64::from_bits(u64::from(words[8]) | u64::from(words[9]) << 32);
            assert_eq!((double, words[10]), (18.75, 37));
        }
    }
}

#[test]
fn bulk_copies_and_remote_stores_complete_their_mbarriers() {
    let text = r#"
        __device__ void wait(unsigned bar) {
            unsigned done = 0;
            while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;"
                " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
        }
        extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* out, const int* in) {
            __shared__ __align__(16) int tile[64];
            __shared__ int mail[32];
            __shared__ unsigned long long bar;
            unsigned b = (unsigned)__cvta_generic_to_shared(&bar), t = threadIdx.x, rank = blockIdx.x % 2;
            if (t == 0) {
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b) : "memory");
                asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 384;" :: "r"(b) : "memory");
            }
            asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
            if (t == 0) {
                unsigned to = (unsigned)__cvta_generic_to_shared(tile);
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                    :: "r"(to), "l"(in + 64 * rank), "r"(b) : "memory");
            }
            unsigned there = (unsigned)__cvta_generic_to_shared(mail + t), peer, peer_bar;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(there), "r"(1 - rank));
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer_bar) : "r"(b), "r"(1 - rank));
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                :: "r"(peer), "r"(1000 * rank + t), "r"(peer_bar) : "memory");
            wait(b);
            out[blockIdx.x * 32 + t] = mail[t] + tile[2 * t];
            asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
        }"#;
    let input: Vec<u32> = (0..128).map(|i| 7 * i).collect();
    let expected: Vec<u32> = (0..64u32)
        .map(|i| (i / 32, i % 32))
        .map(|(rank, t)| 1000 * (1 - rank) + t + 7 * (64 * rank + 2 * t))
        .collect();
    expect(text, &line(2, 32), &input, &expected);
}

#[test]
fn recursion_and_a_switch() {
    let text = r#"
        __device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        extern "C" __global__ void k(int* out, const int* in) {
            int t = threadIdx.x, r;
            switch (in[t] % 7) {
                case 0: r = fib(t % 9); break;
                case 1: r = t * 3; break;
                case 2: r = t ^ 5; break;
                case 3: r = t + 100; break;
                case 4: r = -t; break;
                case 5: r = t << 3; break;
                default: r = 9;
            }
            out[t] = r;
        }"#;
    let input: Vec<u32> = (0..40).map(|i| i * 5).collect();
    let fib = [0, 1, 1, 2, 3, 5, 8, 13, 21];
    let expected: Vec<u32> = (0..40u32)
        .map(|t| match t * 5 % 7 {
            0 => fib[t as usize % 9],
            1 => t * 3,
            2 => t ^ 5,
            3 => t + 100,
            4 => t.wrapping_neg(),
            5 => t << 3,
            _ => 9,
        })
        .collect();
    expect(text, &line(1, 40), &input, &expected);
}

//! What lanes, warps and blocks do together, and what goes wrong when some do not come.

use crate::host::{hosts, line};
use softgpu::fault::{Fault, Kind};
use softgpu::{Arg, Launch};

/// Runs a kernel of one array of words for every NVRTC and a few seeds; it must leave the expected words.
fn expect(text: &str, launch: &Launch, expected: &[u32]) {
    for mut host in hosts(text, "sm_90") {
        for seed in 0..4 {
            let out = host.words("out", &vec![0; expected.len()]);
            let launch = Launch { seed, ..launch.clone() };
            let done = host.run(&launch, &[Arg::U64(out)]);
            done.unwrap_or_else(|fault| panic!("{} seed {seed}: {fault:#?}", host.version));
            assert_eq!(host.read(out, expected.len()), expected, "{} seed {seed}", host.version);
        }
    }
}

/// Runs it and returns the fault of every NVRTC and seed, which must be of this kind.
fn refuse(text: &str, launch: &Launch, kind: Kind) -> Vec<Fault> {
    let mut faults = Vec::new();
    for mut host in hosts(text, "sm_90") {
        for seed in 0..3 {
            let out = host.words("out", &[0; 4096]);
            let launch = Launch { seed, ..launch.clone() };
            let fault = host.run(&launch, &[Arg::U64(out)]).expect_err(&host.version);
            assert_eq!(fault.kind, kind, "{} seed {seed}: {fault:#?}", host.version);
            faults.push(*fault);
        }
    }
    faults
}

#[test]
fn shuffles_of_every_mode_in_segments() {
    let text = r#"extern "C" __global__ void k(int* out) {
        int lane = threadIdx.x, v = lane * 3 + 1;
        out[lane] = __shfl_up_sync(~0u, v, 3, 8) + 1000 * __shfl_down_sync(~0u, v, 5, 16)
            + 1000000 * __shfl_xor_sync(~0u, v, 9);
        out[32 + lane] = __shfl_sync(~0u, v, lane * 7, 16); }"#;
    let v = |lane: u32| lane * 3 + 1;
    let up = |lane: u32| if lane % 8 >= 3 { v(lane - 3) } else { v(lane) };
    let down = |lane: u32| if lane % 16 + 5 < 16 { v(lane + 5) } else { v(lane) };
    let first = (0..32).map(|lane| up(lane) + 1000 * down(lane) + 1_000_000 * v(lane ^ 9));
    let second = (0..32).map(|lane| v(lane / 16 * 16 + lane * 7 % 16));
    expect(text, &line(1, 32), &first.chain(second).collect::<Vec<_>>());
}

#[test]
fn votes_matches_reductions_and_masks_in_divergent_code() {
    let text = r#"extern "C" __global__ void k(unsigned* out) {
        unsigned lane = threadIdx.x;
        unsigned odd = __ballot_sync(~0u, lane & 1), r;
        if (lane & 1) {
            r = __ballot_sync(odd, lane > 16) + __all_sync(odd, lane > 0) + 2 * __any_sync(odd, lane == 31);
        } else {
            r = __reduce_add_sync(~odd, lane) + __reduce_max_sync(~odd, lane);
        }
        __syncwarp();
        int pred;
        unsigned same = __match_any_sync(~0u, lane / 5), all = __match_all_sync(~0u, 7, &pred);
        out[lane] = r + same * 3 + (all == ~0u) + pred;
        }"#;
    let expected: Vec<u32> = (0..32u32)
        .map(|lane| {
            let upper = (17..32).step_by(2).fold(0u32, |mask, l| mask | 1 << l);
            let r = if lane % 2 == 1 { upper.wrapping_add(3) } else { 240 + 30 };
            let same = (0..32)
                .filter(|l| l / 5 == lane / 5)
                .fold(0u32, |mask, l| mask | 1 << l);
            r.wrapping_add(same.wrapping_mul(3)).wrapping_add(2)
        })
        .collect();
    expect(text, &line(1, 32), &expected);
}

#[test]
fn reducing_and_named_barriers() {
    let text = r#"extern "C" __global__ void k(int* out) {
        __shared__ int box[2];
        int t = threadIdx.x;
        int count = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(t < 96), any = __syncthreads_or(t == 50);
        // Warp 0 hands over to warp 1 through barrier 3; warp 2 takes no part.
        if (t < 32) {
            if (t == 0) box[0] = 41;
            asm volatile("bar.arrive 3, 64;" ::: "memory");
        } else if (t < 64) {
            asm volatile("bar.sync 3, 64;" ::: "memory");
            if (t == 40) box[1] = box[0] + 1;
        }
        __syncthreads();
        out[t] = count + 100 * (all != 0) + 1000 * (any != 0) + 10000 * box[1];
        }"#;
    expect(text, &line(1, 96), &[421_132; 96]);
}

#[test]
fn a_grid_barrier_of_a_cooperative_grid() {
    let text = r#"
        __device__ unsigned arrived;
        extern "C" __global__ void k(int* out) {
            if (threadIdx.x == 0) {
                out[blockIdx.x] = blockIdx.x + 1;
                __threadfence();
                atomicAdd(&arrived, 1);
                unsigned seen;
                do { asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(&arrived) : "memory"); }
                while (seen < gridDim.x);
            }
            __syncthreads();
            if (threadIdx.x == 1) out[gridDim.x + blockIdx.x] = ((volatile int*)out)[(blockIdx.x + 1) % gridDim.x];
        }"#;
    let expected: Vec<u32> = (1..=7).chain((1..=7).map(|i| i % 7 + 1)).collect();
    for mut host in hosts(text, "sm_90") {
        let out = host.words("out", &[0; 14]);
        let launch = Launch {
            cooperative: true,
            ..line(7, 64)
        };
        let done = host.run(&launch, &[Arg::U64(out)]);
        done.unwrap_or_else(|fault| panic!("{}: {fault:#?}", host.version));
        assert_eq!(host.read(out, 14), expected, "{}", host.version);
    }
}

#[test]
fn a_cooperative_grid_that_is_not_resident_is_refused() {
    let text = r#"extern "C" __global__ void k(int* out) { out[0] = 1; }"#;
    let launch = Launch {
        cooperative: true,
        registers: 128,
        ..line(132 * 2 + 1, 256)
    };
    let faults = refuse(text, &launch, Kind::CoResidency);
    assert!(
        faults.iter().all(|fault| fault.message.contains("264 at once")),
        "{faults:?}"
    );
    let fits = Launch {
        cooperative: true,
        registers: 128,
        ..line(132 * 2, 256)
    };
    for mut host in hosts(r#"extern "C" __global__ void k(int* out) { }"#, "sm_90") {
        host.run(&fits, &[Arg::U64(0)]).unwrap();
    }
}

#[test]
fn a_spin_that_nobody_ends_is_a_deadlock() {
    let text = r#"extern "C" __global__ void k(int* out) {
        while (((volatile int*)out)[0] == 0) { } }"#;
    let faults = refuse(text, &line(2, 32), Kind::Deadlock);
    assert!(faults.iter().all(|fault| fault.place.is_some()), "{faults:?}");
}

#[test]
fn an_endless_loop_that_works_is_stopped_by_the_budget() {
    let text = r#"extern "C" __global__ void k(int* out) {
        for (int i = 0;; ++i) ((volatile int*)out)[threadIdx.x] = i; }"#;
    refuse(
        text,
        &Launch {
            budget: 1_000_000,
            ..line(1, 32)
        },
        Kind::Budget,
    );
}

#[test]
fn barriers_that_not_all_reach() {
    let half = r#"extern "C" __global__ void k(int* out) {
        if (threadIdx.x < 48) { out[threadIdx.x] = 1; __syncthreads(); out[threadIdx.x + 64] = 2; } }"#;
    refuse(half, &line(1, 64), Kind::BarrierDivergence);
    let exited = r#"extern "C" __global__ void k(int* out) {
        if (threadIdx.x >= 32) return;
        out[threadIdx.x] = 1; __syncthreads(); out[threadIdx.x] = 2; }"#;
    refuse(exited, &line(1, 64), Kind::BarrierDivergence);
    let elsewhere = r#"extern "C" __global__ void k(int* out) {
        if (threadIdx.x < 32) { out[0] = 1; __syncthreads(); out[1] = 2; }
        else { out[2] = 1; __syncthreads(); out[3] = 2; } }"#;
    refuse(elsewhere, &line(1, 64), Kind::BarrierDivergence);
    let counts = r#"extern "C" __global__ void k(int* out) {
        if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 1, 96;"); out[0] = 1; }"#;
    refuse(counts, &line(1, 96), Kind::BarrierDivergence);
}

#[test]
fn masks_that_disagree_with_the_lanes() {
    let missing = r#"extern "C" __global__ void k(int* out) {
        if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(~0u, (int)threadIdx.x, 1);
        else { asm volatile("bar.sync 2, 32;"); out[threadIdx.x] = 2; } }"#;
    for mut host in hosts(missing, "sm_90") {
        let out = host.words("out", &[0; 32]);
        let fault = host.run(&line(1, 32), &[Arg::U64(out)]).unwrap_err();
        assert!(
            matches!(fault.kind, Kind::WarpMask | Kind::BarrierDivergence),
            "{fault:?}"
        );
    }
    let unnamed = r#"extern "C" __global__ void k(int* out) {
        out[threadIdx.x] = __shfl_xor_sync(0xFFFFu, (int)threadIdx.x, 1); }"#;
    refuse(unnamed, &line(1, 32), Kind::WarpMask);
    let inactive = r#"extern "C" __global__ void k(int* out) {
        if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xFFFFu, (int)threadIdx.x, 20); }"#;
    refuse(inactive, &line(1, 32), Kind::WarpMask);
}

#[test]
fn lanes_of_an_exited_warp_part_are_not_waited_for() {
    let text = r#"extern "C" __global__ void k(int* out) {
        if (threadIdx.x >= 20) return;
        int v = threadIdx.x;
        v += __shfl_down_sync(~0u, v, 1, 4);
        __syncwarp();
        out[threadIdx.x] = v; }"#;
    let expected: Vec<u32> = (0..20).map(|t| if t % 4 < 3 { 2 * t + 1 } else { 2 * t }).collect();
    expect(text, &line(1, 32), &expected);
}

#[test]
fn unwritten_values_that_decide_or_are_stored() {
    let text = r#"extern "C" __global__ void k(int* out) {
        int x;
        asm volatile("{ .reg .b32 t; add.s32 %0, t, 1; }" : "=r"(x));
        out[threadIdx.x] = x; }"#;
    refuse(text, &line(1, 32), Kind::Uninitialised);
    let chosen = r#"extern "C" __global__ void k(int* out) {
        int x;
        asm volatile("{ .reg .b32 t; .reg .pred p; setp.ge.s32 p, %1, 0; selp.b32 %0, %1, t, p; }"
            : "=r"(x) : "r"((int)threadIdx.x));
        out[threadIdx.x] = x; }"#;
    expect(chosen, &line(1, 32), &(0..32).collect::<Vec<_>>());
}

#[test]
fn a_cluster_reads_its_neighbours_memory_after_its_barrier() {
    let text = r#"extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int* out) {
        __shared__ int mine;
        unsigned rank, at, peer;
        asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        if (threadIdx.x == 0) mine = 100 + blockIdx.x;
        asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
        at = (unsigned)__cvta_generic_to_shared(&mine);
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(at), "r"((rank + 1) % 4));
        int value;
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(peer) : "memory");
        asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
        if (threadIdx.x == 3) out[blockIdx.x] = value;
        }"#;
    let expected: Vec<u32> = (0..12).map(|block| 100 + block / 4 * 4 + (block + 1) % 4).collect();
    expect(text, &line(12, 40), &expected);
}

#[test]
fn launches_that_the_device_refuses() {
    let text = r#"extern "C" __global__ void __launch_bounds__(128) k(int* out) { out[0] = 1; }"#;
    refuse(text, &line(1, 160), Kind::Launch);
    refuse(
        text,
        &Launch {
            shared: 228 * 1024,
            ..line(1, 32)
        },
        Kind::Launch,
    );
    refuse(
        text,
        &Launch {
            cluster: Some([16, 1, 1]),
            ..line(16, 32)
        },
        Kind::Launch,
    );
    refuse(
        text,
        &Launch {
            cluster: Some([4, 1, 1]),
            ..line(6, 32)
        },
        Kind::Launch,
    );
    for mut host in hosts(text, "sm_90") {
        let fault = host.run(&line(1, 32), &[Arg::U32(1)]).unwrap_err();
        assert_eq!(fault.kind, Kind::Launch);
    }
}

//! Memory, called directly.

mod agents;
mod order;
mod scene;

use super::*;
use crate::fault::Kind;
use crate::ptx::ast::Space;

const W: Warp = Warp { block: 0, warp: 0 };

fn shape() -> Shape {
    Shape {
        blocks: 2,
        threads: 64,
        cluster: 1,
        shared: 1000,
        local: 40,
        params: vec![1, 2, 3, 4],
    }
}

fn access(addresses: &Lanes<u64>, space: Space, bytes: u32, elements: u32) -> Access<'_> {
    Access {
        warp: W,
        lanes: u32::MAX,
        space,
        own_block: false,
        addresses,
        bytes,
        elements,
        order: Order::Weak,
        scope: Scope::Block,
        at: 7,
    }
}

fn row(base: u64, stride: u64) -> Lanes<u64> {
    std::array::from_fn(|lane| base + lane as u64 * stride)
}

fn started() -> Memory {
    let mut memory = Memory::new(1);
    memory.begin(&shape());
    memory.start_block(0);
    memory
}

#[test]
fn what_is_stored_is_loaded() {
    let mut memory = started();
    let h = memory.allocate(4 * 33, "h");
    for (space, base) in [
        (Space::Global, h),
        (Space::Generic, h),
        (Space::Shared, 0),
        (Space::Local, 8),
    ] {
        let stride = if space == Space::Local { 0 } else { 4 };
        let addresses = row(base, stride);
        let values = [std::array::from_fn(|lane| 100 + lane as u64)];
        memory
            .store(&access(&addresses, space, 4, 1), &values, &[0xffff_fffe])
            .unwrap();
        let (mut out, mut valid) = ([[0; 32]], [0]);
        memory
            .load(&access(&addresses, space, 4, 1), &mut out, &mut valid)
            .unwrap();
        assert_eq!((out, valid), (values, [0xffff_fffe]), "{space:?}");
    }
}

#[test]
fn vectors_and_wide_elements_take_rows() {
    let mut memory = started();
    let addresses = row(0, 16);
    let values: [Lanes<u64>; 4] = std::array::from_fn(|e| std::array::from_fn(|lane| (e * 32 + lane) as u64));
    memory
        .store(&access(&addresses, Space::Shared, 4, 4), &values, &[u32::MAX; 4])
        .unwrap();
    let (mut out, mut valid) = ([[0; 32]; 2], [0; 2]);
    memory
        .load(&access(&addresses, Space::Shared, 16, 1), &mut out, &mut valid)
        .unwrap();
    assert_eq!(out[0][3], 3 | ((32 + 3) << 32));
    assert_eq!(out[1][3], (64 + 3) | ((96 + 3) << 32));
    assert_eq!(valid, [u32::MAX; 2]);
}

#[test]
fn strays_are_named() {
    let mut memory = started();
    let h = memory.allocate(4 * 31, "h");
    let load = |memory: &mut Memory, base, stride, bytes| {
        memory
            .load(
                &access(&row(base, stride), Space::Global, bytes, 1),
                &mut [[0; 32]],
                &mut [0],
            )
            .unwrap_err()
    };
    let wrong = load(&mut memory, h, 4, 4);
    assert_eq!(
        (wrong.kind, wrong.lane, wrong.address.unwrap().as_str()),
        (Kind::OutOfBounds, 31, "h + 124")
    );
    assert_eq!(load(&mut memory, h - 4, 4, 4).lane, 0);
    assert_eq!(load(&mut memory, h + 2, 4, 4).kind, Kind::Misaligned);
    assert_eq!(load(&mut memory, 64, 4, 4).kind, Kind::OutOfBounds);
    memory.free(h).unwrap();
    assert_eq!(load(&mut memory, h, 0, 4).kind, Kind::UseAfterFree);
}

#[test]
fn an_atomic_gives_each_lane_its_turn() {
    let mut memory = started();
    let counter = memory.allocate(4, "counter");
    memory.write(counter, &5u32.to_le_bytes()).unwrap();
    let mut out = [0; 32];
    let addresses = [counter; 32];
    let a = Access {
        order: Order::Relaxed,
        scope: Scope::Gpu,
        ..access(&addresses, Space::Global, 4, 1)
    };
    memory.atomic(&a, Atomic::Add, &[1; 32], &[0; 32], &mut out).unwrap();
    out.sort_unstable();
    assert_eq!(out, std::array::from_fn(|i| 5 + i as u64));
    let mut now = [0; 4];
    memory.read(counter, &mut now).unwrap();
    assert_eq!(u32::from_le_bytes(now), 37);
}

#[test]
fn the_host_reads_only_what_was_written() {
    let mut memory = started();
    let x = memory.allocate(8, "x");
    memory.write(x, &[1, 2, 3]).unwrap();
    assert_eq!(memory.read(x, &mut [0; 4]).unwrap_err().kind, Kind::Uninitialised);
    assert_eq!(memory.write(x + 6, &[0; 3]).unwrap_err().kind, Kind::OutOfBounds);
}

#[test]
fn sums_of_halves_are_rounded_once() {
    // 1 + 2^-8 lies between two bf16, and so does 1 + 2^-8 + 2^-20, beyond the tie: from the tables of the format.
    let bf16 = |x: f32| u64::from(x.to_bits() >> 16);
    assert_eq!(
        atomic::apply(Atomic::AddBF16, 2, bf16(1.0), bf16(0.003_906_25), 0),
        bf16(1.0),
        "a tie goes to even"
    );
    assert_eq!(
        atomic::apply(Atomic::AddBF16, 2, bf16(1.007_812_5), bf16(0.003_906_25), 0),
        bf16(1.015_625)
    );
    assert_eq!(
        atomic::apply(Atomic::AddF16x2, 4, 0x3c00_4000, 0x3c00_3c00, 0),
        0x4000_4200,
        "1 + 1, and 2 + 1"
    );
}

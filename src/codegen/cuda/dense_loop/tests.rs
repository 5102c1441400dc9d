//! Layouts: what they promise, for plans of several kinds and many shapes.

use super::choose::choose;
use super::dots::WeightPlace;
use super::layout::{Layout, PAYLOAD, ValuePlace};
use super::machine::Machine;
use super::places::{Memory, Shape};
use rnnc_runtime::plan::{
    Body, Buffer, BufferId, Elem, Index, Initial, Loop, LoopPart, LoopValue, Phase, Plan, Reg, Role, Scope, Slot, Step,
};

/// A plan with one parameter, whose loop has `gates` rows a unit and, beside h, a value of the own unit.
fn gated(units: usize, gates: usize, window: usize) -> (Plan, Loop) {
    let buffer = |name: &str, role, scope, shape: &[usize]| Buffer {
        name: name.to_string(),
        role,
        scope,
        shape: shape.to_vec(),
        elem: Elem::F32,
    };
    let initial = Role::Initial(Initial::Fill(0.0));
    let plan = Plan {
        cell: "gated".to_string(),
        dims: vec![],
        buffers: vec![
            buffer("R", Role::Param, Scope::Const, &[gates * units, units]),
            buffer("h", initial.clone(), Scope::Window(window), &[units]),
            buffer("c", initial, Scope::Window(1), &[units]),
        ],
        prologue: vec![],
        initial: vec![],
        launches: vec![],
        finals: vec![],
        against_time: false,
    };
    let slots = (0..gates).map(|g| Slot::Dot {
        extent: units,
        weight: BufferId(0),
        weight_index: Index::var(0)
            .plus((g * units) as i64)
            .times(units as i64)
            .add(&Index::var(1)),
        value: 0,
        delay: window,
        value_index: Index::var(1),
    });
    let mut steps: Vec<Step> = (0..gates).map(Step::Slot).collect();
    steps.push(Step::Value {
        value: 1,
        delay: 1,
        index: Index::var(0),
    });
    let value = |name: &str, window, shared, buffer| LoopValue {
        name: name.to_string(),
        extent: units,
        window,
        shared,
        initial: Some(BufferId(buffer)),
    };
    let looped = Loop {
        values: vec![value("h", window, true, 1), value("c", 1, false, 2)],
        phases: vec![Phase {
            parts: vec![LoopPart {
                units,
                slots: slots.collect(),
                body: Body {
                    steps,
                    ..Body::default()
                },
                sets: vec![(0, Reg(0)), (1, Reg(gates as u32))],
            }],
        }],
    };
    (plan, looped)
}

fn shape(blocks: usize, warps: usize, sequences: usize) -> Shape {
    Shape {
        blocks,
        warps,
        sequences,
    }
}

fn shapes() -> impl Iterator<Item = Shape> {
    let each = |blocks| [1, 4, 8].map(move |warps| (blocks, warps));
    [1, 3, 16]
        .into_iter()
        .flat_map(each)
        .flat_map(|(b, w)| [1, 4, 8].map(move |n| shape(b, w, n)))
}

/// Regions of shared memory, as (start, end).
fn regions(layout: &Layout) -> Vec<(usize, usize)> {
    let Shape { warps, sequences, .. } = layout.shape;
    let common: usize = layout
        .phases
        .iter()
        .map(|p| p.common.len() * sequences * 4)
        .max()
        .unwrap_or(0);
    let mut all = vec![(layout.sums, warps * layout.area * 4), (layout.common, common)];
    all.extend(layout.rings.iter().map(|r| (r.memory, r.slots * r.frame * 4)));
    let shared = |(memory, bytes)| match memory {
        Memory::Shared(at) => Some((at, at + bytes)),
        Memory::Scratch(_) => None,
    };
    let mut all: Vec<(usize, usize)> = all.into_iter().filter_map(shared).collect();
    for group in layout.dots() {
        if let WeightPlace::Shared(at) = group.weights {
            all.push((at, at + group.shared_bytes(warps)));
        }
    }
    all
}

#[test]
fn nothing_overlaps_and_everything_fits() {
    for (units, gates, window) in [(1, 1, 1), (37, 4, 1), (100, 3, 3), (700, 4, 2)] {
        let (plan, looped) = gated(units, gates, window);
        for sm in [75, 80, 120] {
            let machine = Machine::new(sm, None);
            for shape in shapes() {
                let layout = Layout::new(&plan, &looped, shape, &machine);
                assert!(layout.shared <= machine.shared);
                let mut regions = regions(&layout);
                regions.retain(|(start, end)| start < end);
                regions.sort_unstable();
                assert!(regions.windows(2).all(|w| w[0].1 <= w[1].0), "{shape:?}: {regions:?}");
                assert!(regions.iter().all(|r| r.1 <= layout.shared), "{shape:?}");
            }
        }
    }
}

/// What owners of padding publish, and what long loads read, stays within a sequence's row.
#[test]
fn rows_hold_all_units_and_all_padding() {
    let (plan, looped) = gated(37, 4, 1);
    for shape in shapes() {
        let layout = Layout::new(&plan, &looped, shape, &Machine::new(80, None));
        let ValuePlace::Gathered { offset, row, .. } = layout.values[0] else {
            panic!("h is shared")
        };
        let slice = layout.phases[0].parts[0].slice;
        assert!(row >= slice.per_block * shape.blocks && row >= 37);
        assert!(layout.dots().all(|d| row >= d.tile.row()));
        assert!(offset + shape.sequences * row <= layout.rings[0].frame);
        let exchange = layout.phases[0].exchange.as_ref().unwrap();
        assert!(exchange.words * PAYLOAD >= slice.items && exchange.words * PAYLOAD < slice.items + PAYLOAD);
    }
}

#[test]
fn values_of_the_own_unit_are_not_exchanged() {
    let (plan, looped) = gated(64, 4, 1);
    let layout = Layout::new(&plan, &looped, shape(4, 8, 4), &Machine::new(90, None));
    assert_eq!(layout.values[1], ValuePlace::Registers);
    assert_eq!(
        (
            layout.exchanges(),
            layout.phases[0].exchange.as_ref().unwrap().payloads.len()
        ),
        (1, 1)
    );
    assert_eq!(
        Layout::new(&plan, &looped, shape(1, 8, 4), &Machine::new(90, None)).exchanges(),
        0
    );
}

#[test]
fn weights_stay_where_there_is_room() {
    let (plan, looped) = gated(512, 4, 1);
    let place = |blocks, warps, sm| {
        let layout = Layout::new(&plan, &looped, shape(blocks, warps, 1), &Machine::new(sm, None));
        layout.dots().next().unwrap().weights
    };
    assert_eq!(place(64, 8, 90), WeightPlace::Registers);
    // Few threads have few registers, but a block of them has all the shared memory.
    assert!(matches!(place(32, 2, 90), WeightPlace::Shared(_)));
    assert_eq!(place(24, 8, 75), WeightPlace::Global);
}

/// A long window does not fit into the shared memory of one block.
#[test]
fn long_windows_go_to_global_memory() {
    let (plan, looped) = gated(256, 1, 300);
    let layout = Layout::new(&plan, &looped, shape(8, 8, 1), &Machine::new(75, None));
    assert_eq!(layout.rings[0].memory, Memory::Scratch(0));
    assert!(layout.scratch >= 301 * 256 * 4);
    assert_eq!(layout.group_bytes() % 256, 0);
}

#[test]
fn the_model_spreads_what_is_large() {
    let blocks = |units, sm, batch| {
        let (plan, looped) = gated(units, 4, 1);
        let layout = choose(&plan, &looped, &Machine::new(sm, None), batch);
        assert!(layout.shape.blocks <= Machine::new(sm, None).sms);
        let kept = layout.dots().all(|d| d.weights != WeightPlace::Global);
        (layout.shape.blocks, layout.shape.sequences, kept)
    };
    assert_eq!(blocks(32, 90, 1), (1, 1, true));
    assert!(blocks(256, 90, 1).0 >= 8);
    let (spread, sequences, kept) = blocks(768, 90, 16);
    assert!(spread >= 24 && sequences > 1 && kept);
    // Many sequences: groups side by side rather than one large group.
    assert!(blocks(256, 90, 64).0 < blocks(256, 90, 1).0);
}

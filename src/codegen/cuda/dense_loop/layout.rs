//! Where everything of a dense loop lives, as data: a loop and the shape of its blocks in, places and sizes out. Nothing
//! is printed here, and nothing that is printed later is decided elsewhere.

use super::dots::{self, DotGroup, WeightPlace};
use super::machine::Machine;
use super::places::{Memory, Places, Shape, Slice};
use super::slots;
use rnnc_runtime::plan::{Elem, Index, Loop, LoopPart, Phase, Plan, Slot};

/// Payload words of one exchanged word; the fourth is the epoch.
pub const PAYLOAD: usize = 3;

/// Bytes of one exchanged word.
pub const WORD: usize = 16;

/// Words a thread asks for before it looks at the first.
pub const IN_FLIGHT: usize = 8;

/// Registers for addresses, counters and what a body computes on the way.
const WORKING: usize = 72;

/// Loads that a thread keeps ahead of time, at most.
const KEPT_LOADS: usize = 32;

/// Rounds over a thread's items that are unrolled, so that each may keep numbers in registers.
pub const UNROLLED: usize = 4;

/// Numbers of non-shared values that a thread keeps in registers, at most.
const OWN_REGISTERS: usize = 24;

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Blocks, warps, sequences.
    pub shape: Shape,
    /// One a value of the loop.
    pub values: Vec<ValuePlace>,
    /// One a phase that sets values which other units read.
    pub rings: Vec<Ring>,
    /// One a phase.
    pub phases: Vec<PhaseLayout>,
    /// The warps' areas for the results of slots.
    pub sums: Memory,
    /// Floats of one area.
    pub area: usize,
    /// Results of the slots with one value for all units.
    pub common: Memory,
    /// Bytes of shared memory of a block.
    pub shared: usize,
    /// Bytes of global memory that a block uses for what does not fit.
    pub scratch: usize,
    /// Words that a block publishes in the phase with most of them; 0 if nothing is exchanged.
    pub words: usize,
    /// Registers of a thread, estimated.
    pub registers: usize,
}

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePlace {
    /// In full in every block: element u of sequence n is `offset + n * row + u` of a frame of the ring.
    Gathered {
        /// Index into [`Layout::rings`].
        ring: usize,
        /// Floats into a frame.
        offset: usize,
        /// Floats of a sequence.
        row: usize,
    },
    /// In registers of the thread that sets it, one a round and frame.
    Registers,
    /// In memory of the block, read and written by the thread that sets it only: number `(frame slot * rounds + round) *
    /// threads + thread` of the floats there.
    Block(Memory),
}

/// The frames of the values that one phase sets and all blocks receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Which phase.
    pub phase: usize,
    /// Frames kept: this one and the largest window.
    pub slots: usize,
    /// Floats of a frame.
    pub frame: usize,
    /// Where.
    pub memory: Memory,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseLayout {
    /// Its parts.
    pub parts: Vec<PartLayout>,
    /// Slots with one value for all units: (part, slot).
    pub common: Vec<(usize, usize)>,
    /// What is exchanged at its end.
    pub exchange: Option<Exchange>,
}

/// One part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartLayout {
    /// Who computes which unit.
    pub slice: Slice,
    /// Its dot products.
    pub dots: Vec<DotGroup>,
    /// Its other slots that depend on the unit.
    pub folds: Vec<usize>,
    /// Where each slot's results are.
    pub slots: Vec<SlotPlace>,
    /// Whether the body's loads are kept in registers, one frame ahead.
    pub kept: bool,
}

/// Where the result of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotPlace {
    /// `offset + item` of the warp's area.
    Own(usize),
    /// `offset + sequence` of the common slots.
    Common(usize),
}

/// What a phase publishes: each warp some words, one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Index into [`Layout::rings`].
    pub ring: usize,
    /// The values, in order.
    pub payloads: Vec<Payload>,
    /// Words of one warp.
    pub words: usize,
}

/// A value in a warp's words: item i of the value is number `offset + i` of the warp's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Index into the loop's values.
    pub value: usize,
    /// Who owns its units.
    pub slice: Slice,
    /// Its first number.
    pub offset: usize,
}

impl Layout {
    /// Lays a loop out for blocks of this shape. What does not fit into shared memory is placed in global memory, so
    /// there always is a layout.
    pub fn new(plan: &Plan, looped: &Loop, shape: Shape, machine: &Machine) -> Layout {
        let mut layout = Layout::without_places(plan, looped, shape);
        let mut places = Places::new(machine.shared);
        layout.place_slots(&mut places);
        layout.place_values(looped, &mut places);
        layout.place_loads(looped);
        layout.place_weights(&mut places);
        layout.shared = places.shared.used();
        layout.scratch = places.scratch.used();
        layout
    }

    /// Who computes what, but nothing has an address.
    fn without_places(plan: &Plan, looped: &Loop, shape: Shape) -> Layout {
        let phases = looped
            .phases
            .iter()
            .map(|phase| PhaseLayout::new(plan, looped, phase, shape))
            .collect();
        Layout {
            shape,
            values: vec![ValuePlace::Registers; looped.values.len()],
            rings: Vec::new(),
            phases,
            sums: Memory::Shared(0),
            area: 0,
            common: Memory::Shared(0),
            shared: 0,
            scratch: 0,
            words: 0,
            registers: WORKING,
        }
    }

    /// Results of slots: each warp an area of its own, and one area for what is common.
    fn place_slots(&mut self, places: &mut Places) {
        let mut common = 0;
        for phase in &mut self.phases {
            let (area, shared) = phase.place_slots(self.shape.sequences);
            self.area = self.area.max(area);
            common = common.max(shared);
        }
        self.sums = places.take(self.shape.warps * self.area * 4);
        self.common = places.take(common * 4);
    }

    /// Values that all units read get rows of rings, the others registers, or shared memory where they are many.
    fn place_values(&mut self, looped: &Loop, places: &mut Places) {
        let gathered = gathered(looped);
        let mut own = 0;
        for (p, phase) in looped.phases.iter().enumerate() {
            let mut ring = RingBuilder::default();
            for (part, layout) in phase.parts.iter().zip(&self.phases[p].parts) {
                for (value, _) in &part.sets {
                    let window = looped.values[*value].window;
                    let numbers = layout.slice.rounds * (window + 1);
                    self.values[*value] = if gathered[*value] {
                        let row = self.row_length(*value, layout.slice);
                        ring.push(
                            *value,
                            layout.slice,
                            window,
                            row,
                            self.shape.sequences,
                            self.rings.len(),
                        )
                    } else if layout.slice.rounds <= UNROLLED && own + numbers <= OWN_REGISTERS {
                        own += numbers;
                        ValuePlace::Registers
                    } else {
                        ValuePlace::Block(places.take(numbers * self.shape.threads() * 4))
                    };
                }
            }
            if !ring.payloads.is_empty() {
                self.phases[p].exchange = Some(ring.exchange(self.rings.len()));
                let bytes = ring.slots * ring.frame * 4;
                self.rings.push(ring.ring(p, places.take(bytes)));
            }
        }
        self.registers += own;
        if self.shape.blocks > 1 {
            let words = self.phases.iter().filter_map(|p| p.exchange.as_ref()).map(|e| e.words);
            self.words = words.max().unwrap_or(0) * self.shape.warps;
        }
    }

    /// Floats of one sequence of a gathered value: what owners of padding units write, and what long loads read, stays
    /// within the row.
    fn row_length(&self, value: usize, slice: Slice) -> usize {
        let read = self
            .dots()
            .filter(|d| d.dense && d.value == value)
            .map(|d| d.tile.row())
            .max()
            .unwrap_or(0);
        read.max(slice.per_block * self.shape.blocks).next_multiple_of(4)
    }

    /// All groups of dot products.
    pub fn dots(&self) -> impl Iterator<Item = &DotGroup> {
        self.phases.iter().flat_map(|p| &p.parts).flat_map(|p| &p.dots)
    }

    /// Loads that bodies make are kept one frame ahead, as long as registers are left for them.
    fn place_loads(&mut self, looped: &Loop) {
        let mut kept = 0;
        for (phase, layout) in looped.phases.iter().zip(&mut self.phases) {
            for (part, layout) in phase.parts.iter().zip(&mut layout.parts) {
                let numbers = slots::loads(&part.body).count() * layout.slice.rounds;
                layout.kept = layout.slice.rounds <= UNROLLED && kept + numbers <= KEPT_LOADS;
                kept += if layout.kept { numbers } else { 0 };
            }
        }
        self.registers += kept;
    }

    /// Weights go to registers while there are some, then to shared memory; what does not fit is read in every frame.
    fn place_weights(&mut self, places: &mut Places) {
        let shape = self.shape;
        let exchange = if self.words > 0 { IN_FLIGHT * 4 } else { 0 };
        let sums = |d: &DotGroup| d.sums(shape.sequences) + d.tile.vector * (shape.sequences + 1);
        let passing = self.dots().map(sums).max().unwrap_or(0).max(exchange);
        self.registers += passing;
        let most = Machine::registers(shape.threads());
        for phase in &mut self.phases {
            for part in &mut phase.parts {
                for group in &mut part.dots {
                    let kept = group.register_weights();
                    let bytes = group.shared_bytes(shape.warps);
                    if group.elem == Elem::F32 && self.registers + kept <= most {
                        self.registers += kept;
                        group.weights = WeightPlace::Registers;
                    } else if let Some(at) = places.take_shared(bytes) {
                        group.weights = WeightPlace::Shared(at);
                    } else {
                        group.make_global(part.slice, shape);
                    }
                }
            }
        }
    }

    /// Bytes that a group of blocks needs for its words: two halves, by the epoch's parity.
    pub fn word_bytes(&self) -> usize {
        2 * self.shape.blocks * self.words * WORD
    }

    /// Bytes of global memory that a group needs: its words, then the scratch of its blocks.
    pub fn group_bytes(&self) -> usize {
        (self.word_bytes() + self.shape.blocks * self.scratch).next_multiple_of(256)
    }

    /// Exchanges of a frame.
    pub fn exchanges(&self) -> usize {
        if self.shape.blocks == 1 {
            return 0;
        }
        self.phases.iter().filter(|p| p.exchange.is_some()).count()
    }
}

impl PhaseLayout {
    fn new(plan: &Plan, looped: &Loop, phase: &Phase, shape: Shape) -> PhaseLayout {
        let parts = phase
            .parts
            .iter()
            .map(|part| PartLayout::new(plan, looped, part, shape))
            .collect();
        let common = phase.parts.iter().enumerate().flat_map(|(p, part)| {
            let slots = part.slots.iter().enumerate().filter(|(_, s)| slots::is_common(s));
            slots.map(move |(s, _)| (p, s))
        });
        PhaseLayout {
            parts,
            common: common.collect(),
            exchange: None,
        }
    }

    /// Gives every slot its place; returns the floats of a warp's area and of the common slots.
    fn place_slots(&mut self, sequences: usize) -> (usize, usize) {
        for (number, (part, slot)) in self.common.iter().enumerate() {
            self.parts[*part].slots[*slot] = SlotPlace::Common(number * sequences);
        }
        let mut area = 0;
        for part in &mut self.parts {
            let own: Vec<usize> = part
                .dots
                .iter()
                .flat_map(|d| d.slots.clone())
                .chain(part.folds.clone())
                .collect();
            for slot in own {
                part.slots[slot] = SlotPlace::Own(area);
                area += part.slice.items;
            }
        }
        (area, self.common.len() * sequences)
    }
}

impl PartLayout {
    fn new(plan: &Plan, looped: &Loop, part: &LoopPart, shape: Shape) -> PartLayout {
        let slice = Slice::new(part.units, shape);
        let is_fold = |s: &Slot| matches!(s, Slot::Fold { .. }) && !slots::is_common(s);
        let folds = part
            .slots
            .iter()
            .enumerate()
            .filter(|(_, s)| is_fold(s))
            .map(|(i, _)| i);
        PartLayout {
            slice,
            dots: dots::group(plan, looped, part, slice, shape),
            folds: folds.collect(),
            slots: vec![SlotPlace::Own(0); part.slots.len()],
            kept: false,
        }
    }
}

/// Collects what a phase gathers.
#[derive(Default)]
struct RingBuilder {
    payloads: Vec<Payload>,
    payload: usize,
    frame: usize,
    slots: usize,
}

impl RingBuilder {
    fn push(
        &mut self,
        value: usize,
        slice: Slice,
        window: usize,
        row: usize,
        sequences: usize,
        ring: usize,
    ) -> ValuePlace {
        self.payloads.push(Payload {
            value,
            slice,
            offset: self.payload,
        });
        self.payload += slice.items;
        self.slots = self.slots.max(window + 1);
        let offset = self.frame;
        self.frame += sequences * row;
        ValuePlace::Gathered { ring, offset, row }
    }

    fn ring(&self, phase: usize, memory: Memory) -> Ring {
        Ring {
            phase,
            slots: self.slots,
            frame: self.frame,
            memory,
        }
    }

    fn exchange(&self, ring: usize) -> Exchange {
        Exchange {
            ring,
            payloads: self.payloads.clone(),
            words: self.payload.div_ceil(PAYLOAD),
        }
    }
}

/// Which values every block must have in full: those read by slots, at elements other than the reader's own, or by a
/// part that divides its units otherwise than the part that sets them.
pub fn gathered(looped: &Loop) -> Vec<bool> {
    let mut all: Vec<bool> = looped.values.iter().map(|v| v.shared).collect();
    for part in looped.phases.iter().flat_map(|p| &p.parts) {
        for read in slots::slot_reads(part) {
            all[read.value] = true;
        }
        for read in slots::body_reads(&part.body) {
            let own = *read.index == Index::var(0) && part.units == looped.values[read.value].extent;
            all[read.value] |= !own;
        }
    }
    all
}

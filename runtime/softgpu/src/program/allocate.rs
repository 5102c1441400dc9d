//! Gives registers that do not live at the same time one place: NVRTC never uses a register twice, and a warp whose thousand
//! registers have a row each does not fit into a cache.
//!
//! In comes a function with a register for each name; out it goes with few. What then holds: a register that a lane may read
//! before it writes it has a place of its own, so that the mask of written lanes still tells (it is live at the function's
//! start); so have constants, parameters and results. The others are placed by a linear scan over their live ranges (Poletto
//! and Sarkar, 1999).

use super::registers::{Role, Shape, each_register};
use super::{Action, Function, Guard, Inst};
use crate::ops::File;
use std::collections::BTreeSet;

/// Renumbers the registers of a function whose code is `code`, which begins at `function.start`.
pub(super) fn run(code: &mut [Inst], shapes: &[Shape], function: &mut Function) {
    let words = function.registers[File::Word as usize];
    let total = words + function.registers[File::Double as usize];
    let touches = touches(code, shapes, words);
    let blocks = blocks(code, function.start as usize);
    let live = live_at_start(code, &touches, &blocks, total);
    let ranges = ranges(&touches, &blocks, &live, total);
    let mut pinned = pinned(function, &touches, words, total);
    pinned.join(&live[0]);
    let (numbers, counts) = place(&ranges, &pinned, words, total);
    let renumber = |file: File, register: &mut u32| {
        let base = if file == File::Double { words } else { 0 };
        *register = numbers[base + *register as usize];
    };
    for (inst, shape) in code.iter_mut().zip(shapes) {
        each_register(inst, shape, &mut |file, register, _| {
            if file != File::Predicate {
                renumber(file, register);
            }
        });
    }
    rename_tables(function, renumber);
    function.registers[File::Word as usize] = counts[0] as usize;
    function.registers[File::Double as usize] = counts[1] as usize;
}

fn rename_tables(function: &mut Function, renumber: impl Fn(File, &mut u32)) {
    for (file, register, _) in function.constants.iter_mut().chain(&mut function.locals) {
        if *file != File::Predicate {
            renumber(*file, register);
        }
    }
    for (_, file, register) in &mut function.specials {
        if *file != File::Predicate {
            renumber(*file, register);
        }
    }
    for register in function.params.iter_mut().chain(&mut function.results) {
        renumber(File::Word, register);
    }
}

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(size: usize) -> Set {
        Set(vec![0; size.div_ceil(64)])
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn remove(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 != 0
    }

    /// Adds another set; whether that changed anything.
    fn join(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            changed |= *more & !*word != 0;
            *word |= more;
        }
        changed
    }

    fn each(&self) -> impl Iterator<Item = usize> {
        let bits = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64)
                .filter(move |bit| word >> bit & 1 != 0)
                .map(move |bit| 64 * at + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

/// What each instruction does to registers, counted through both files.
type Touches = Vec<Vec<(usize, Role)>>;

fn touches(code: &mut [Inst], shapes: &[Shape], words: usize) -> Touches {
    let of = |(inst, shape): (&mut Inst, &Shape)| {
        let mut list = Vec::new();
        each_register(inst, shape, &mut |file, register, role| match file {
            File::Predicate => {}
            File::Word => list.push((*register as usize, role)),
            File::Double => list.push((words + *register as usize, role)),
        });
        list
    };
    code.iter_mut().zip(shapes).map(of).collect()
}

/// A run of instructions without branches, and where it leads.
struct Block {
    first: usize,
    end: usize,
    next: Vec<usize>,
}

fn blocks(code: &[Inst], start: usize) -> Vec<Block> {
    let mut leaders: BTreeSet<usize> = [0].into();
    for (at, inst) in code.iter().enumerate() {
        let targets = targets(inst, start);
        if !targets.is_empty() || ends(inst) {
            leaders.insert(at + 1);
        }
        leaders.extend(targets);
    }
    let leaders: Vec<usize> = leaders.into_iter().filter(|at| *at < code.len()).collect();
    let block_of = |at: usize| leaders.binary_search(&at).ok();
    let block = |(number, first): (usize, &usize)| {
        let end = leaders.get(number + 1).copied().unwrap_or(code.len());
        let last = &code[end - 1];
        let mut next: Vec<usize> = targets(last, start).into_iter().filter_map(block_of).collect();
        let leaves = last.guard == Guard::NONE && (ends(last) || matches!(last.action, Action::Jump(_)));
        if !leaves {
            next.extend(block_of(end));
        }
        Block {
            first: *first,
            end,
            next,
        }
    };
    leaders.iter().enumerate().map(block).collect()
}

/// Where an instruction may jump, counted from the function's start.
fn targets(inst: &Inst, start: usize) -> Vec<usize> {
    match &inst.action {
        Action::Jump(target) => vec![*target as usize - start],
        Action::JumpTable(table) => table.iter().map(|target| *target as usize - start).collect(),
        _ => Vec::new(),
    }
}

fn ends(inst: &Inst) -> bool {
    matches!(inst.action, Action::Exit | Action::Return | Action::Trap(_))
}

/// The registers that are live where each block begins. A guarded write leaves what was there in some lanes.
fn live_at_start(code: &[Inst], touches: &Touches, blocks: &[Block], total: usize) -> Vec<Set> {
    let mut live = vec![Set::new(total); blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (number, block) in blocks.iter().enumerate().rev() {
            let mut set = Set::new(total);
            for next in &block.next {
                set.join(&live[*next]);
            }
            for at in (block.first..block.end).rev() {
                let whole = code[at].guard == Guard::NONE;
                for (register, role) in &touches[at] {
                    if *role == Role::Define && whole {
                        set.remove(*register);
                    }
                }
                let uses = touches[at].iter().filter(|(_, role)| *role == Role::Use);
                uses.for_each(|(register, _)| set.insert(*register));
            }
            changed |= live[number].join(&set);
        }
    }
    live
}

/// The first and last instruction at which each register is needed; none where it never is.
fn ranges(touches: &Touches, blocks: &[Block], live: &[Set], total: usize) -> Vec<Option<(usize, usize)>> {
    let mut ranges: Vec<Option<(usize, usize)>> = vec![None; total];
    let mut extend = |register: usize, at: usize| {
        let (first, last) = ranges[register].unwrap_or((at, at));
        ranges[register] = Some((first.min(at), last.max(at)));
    };
    for (number, block) in blocks.iter().enumerate() {
        live[number].each().for_each(|register| extend(register, block.first));
        for next in &block.next {
            live[*next].each().for_each(|register| extend(register, block.end - 1));
        }
        for (at, touched) in touches.iter().enumerate().take(block.end).skip(block.first) {
            touched.iter().for_each(|(register, _)| extend(*register, at));
        }
    }
    ranges
}

/// Registers that keep a place of their own whatever their range.
fn pinned(function: &Function, touches: &Touches, words: usize, total: usize) -> Set {
    let mut pinned = Set::new(total);
    let mut pin = |file: File, register: u32| match file {
        File::Predicate => {}
        File::Word => pinned.insert(register as usize),
        File::Double => pinned.insert(words + register as usize),
    };
    for (file, register, _) in function.constants.iter().chain(&function.locals) {
        pin(*file, *register);
    }
    for (_, file, register) in &function.specials {
        pin(*file, *register);
    }
    for register in function.params.iter().chain(&function.results) {
        pin(File::Word, *register);
    }
    for (register, _) in touches.iter().flatten().filter(|(_, role)| *role == Role::Pin) {
        pinned.insert(*register);
    }
    pinned
}

/// New numbers, and how many of each file.
fn place(ranges: &[Option<(usize, usize)>], pinned: &Set, words: usize, total: usize) -> (Vec<u32>, [u32; 2]) {
    let mut numbers = vec![0; total];
    let mut counts = [0u32; 2];
    let file_of = |register: usize| usize::from(register >= words);
    for register in pinned.each() {
        let count = &mut counts[file_of(register)];
        numbers[register] = *count;
        *count += 1;
    }
    let needed = |register: &usize| !pinned.has(*register) && ranges[*register].is_some();
    let mut order: Vec<usize> = (0..total).filter(needed).collect();
    order.sort_by_key(|register| (ranges[*register], *register));
    // Those in use, by the end of their range; and places that are free, the latest freed first: it is in the cache.
    let mut active: [BTreeSet<(usize, u32)>; 2] = Default::default();
    let mut free: [Vec<u32>; 2] = Default::default();
    for register in order {
        let Some((first, last)) = ranges[register] else {
            continue;
        };
        let file = file_of(register);
        while let Some(done) = active[file].first().copied().filter(|(end, _)| *end < first) {
            active[file].pop_first();
            free[file].push(done.1);
        }
        let place = free[file].pop().unwrap_or_else(|| {
            counts[file] += 1;
            counts[file] - 1
        });
        numbers[register] = place;
        active[file].insert((last, place));
    }
    (numbers, counts)
}

//! Writes the trace of a launch while it runs: the machine tells of each instruction and of each barrier.
//!
//! It also keeps a rough clock of each warp, so that the machine can run the one that is behind: then warps that poll see
//! what they would see, and not what an arbitrary order lets them see. Looks in vain are taken back: how often a warp looks
//! says nothing about the time.

use super::board::{Board, Mark, Pending};
use super::cache::Caches;
use super::counts::Counts;
use super::kind::{Class, Facts};
use super::rates::Rates;
use super::trace::{Ends, From, Join, Node, Segment, Term, Trace, Wait};
use super::words::{Key, Words, code};
use crate::memory::hash::QuickMap;
use std::collections::VecDeque;

/// A warp of the grid at an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// The block.
    pub block: u32,
    /// The warp in the block.
    pub warp: u32,
    /// The frame of registers.
    pub frame: usize,
    /// The instruction.
    pub at: u32,
}

/// What is known of a warp.
#[derive(Debug)]
pub(super) struct Warp {
    pub board: Board,
    /// When the open segment began, about.
    clock: f64,
    /// How long it has looked in vain.
    pub spin: f64,
    /// When its segments began and ended, about.
    times: Vec<(f64, f64)>,
    /// The join after which the open segment began.
    after: Option<u32>,
    /// Looks since it last did something that others can see.
    looks: Vec<(u32, u64)>,
    /// Where it stood after the first of each.
    mark: Option<Mark>,
    /// What it knows of words.
    pub seen: QuickMap<u64, usize>,
    /// Copies that are in no group yet, and groups.
    pub copies: Option<Pending>,
    pub groups: VecDeque<Pending>,
}

/// Who arrived somewhere, and the join that the last arrivals made.
#[derive(Debug, Default)]
struct Meeting {
    arrivals: Vec<Node>,
    join: Option<u32>,
}

/// Records a launch.
#[derive(Debug)]
pub struct Recorder {
    pub(super) rates: [Rates; 2],
    pub(super) counts: Counts,
    pub(super) warps: Vec<Warp>,
    pub(super) caches: Caches,
    pub(super) words: Words,
    /// Arrivals at mbarriers by phase: who, and the latency from there.
    pub(super) signals: QuickMap<u64, VecDeque<(u64, Vec<Wait>)>>,
    /// Whether a block stored anything since its last fence.
    pub(super) stored: QuickMap<u32, bool>,
    trace: Trace,
    barriers: QuickMap<u64, Meeting>,
    clusters: QuickMap<u32, Meeting>,
    joins: Vec<f64>,
    pub(super) cluster_blocks: u32,
}

/// A launch as the recorder needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Blocks.
    pub blocks: u32,
    /// Warps a block.
    pub warps: u32,
    /// Blocks a cluster.
    pub cluster: u32,
    /// Blocks that a multiprocessor holds at once.
    pub blocks_a_processor: u32,
    /// Multiprocessors.
    pub processors: u32,
    /// Bytes of shared memory of a block, which the first-level cache lacks.
    pub shared: u32,
}

impl Recorder {
    /// For a launch on a card of these rates.
    pub fn new(shape: Shape, rates: [Rates; 2]) -> Recorder {
        let (first, second) = rates[0].caches;
        let taken = u64::from(shape.shared) * u64::from(shape.blocks_a_processor);
        let warp = |number: u32| Warp {
            board: Board::new(number),
            clock: 0.0,
            spin: 0.0,
            times: Vec::new(),
            after: None,
            looks: Vec::new(),
            mark: None,
            seen: QuickMap::default(),
            copies: None,
            groups: VecDeque::new(),
        };
        Recorder {
            rates,
            counts: Counts::default(),
            warps: (0..shape.blocks * shape.warps).map(warp).collect(),
            caches: Caches::new(first.saturating_sub(taken).max(1 << 13), second),
            words: Words::default(),
            signals: QuickMap::default(),
            stored: QuickMap::default(),
            trace: Trace {
                warps: vec![Vec::new(); (shape.blocks * shape.warps) as usize],
                block_warps: shape.warps,
                blocks_a_processor: shape.blocks_a_processor.max(1),
                processors: shape.processors,
                ..Trace::default()
            },
            barriers: QuickMap::default(),
            clusters: QuickMap::default(),
            joins: Vec::new(),
            cluster_blocks: shape.cluster,
        }
    }

    pub(super) fn number(&self, block: u32, warp: u32) -> u32 {
        block * self.trace.block_warps + warp
    }

    pub(super) fn warp(&mut self, who: Who) -> &mut Warp {
        let number = self.number(who.block, who.warp);
        &mut self.warps[number as usize]
    }

    /// A latency at both ends.
    pub(super) fn ends(&self, of: impl Fn(&Rates) -> f64) -> Ends {
        [of(&self.rates[0]), of(&self.rates[1])]
    }

    /// How far a warp has come, about.
    pub fn clock(&self, block: u32, warp: u32) -> f64 {
        let warp = &self.warps[self.number(block, warp) as usize];
        warp.clock + warp.board.cursor[0] + warp.spin
    }

    /// A warp was picked: it comes later next time, whatever it does.
    pub fn picked(&mut self, block: u32, warp: u32) {
        let number = self.number(block, warp) as usize;
        self.warps[number].spin += 1.0;
    }

    /// A block begins.
    pub fn start_block(&mut self, block: u32) {
        self.trace.order.push(block);
    }

    /// A block has ended.
    pub fn end_block(&mut self, block: u32) {
        self.caches.forget(block);
    }

    /// An instruction that computes, and every other one's issue.
    pub fn issue(&mut self, who: Who, facts: &Facts) {
        let rates = self.rates;
        let kind = facts.kind;
        let warp = self.warp(who);
        if kind.class == Class::Free {
            warp.board.forward(who.frame, &facts.reads, &facts.writes);
            return;
        }
        let board = &mut warp.board;
        board.issue(who.frame, &facts.reads, f64::from(kind.slots));
        board.open.work.reals += f64::from(kind.reals);
        board.open.work.special += f64::from(kind.special);
        let (latency, term) = match (kind.tensor, kind.special) {
            (Some((tensor, thousands)), _) => {
                board.open.work.tensor[tensor as usize] += f64::from(thousands);
                let cycles = |r: &Rates| r.mma.max(r.product(tensor, f64::from(thousands)));
                (rates.each_ref().map(cycles), Term::Mma)
            }
            _ if kind.class == Class::Shuffle => {
                board.open.work.lsu += 1.0;
                (rates.each_ref().map(|r| r.shuffle), Term::Shuffle)
            }
            (None, 1..) => (rates.each_ref().map(|r| r.special), Term::Special),
            _ => (rates.each_ref().map(|r| r.arithmetic), Term::Arithmetic),
        };
        let value = board.later(latency, term, false);
        board.set(who.frame, &facts.writes, value);
        self.counts.instruction(kind.class);
    }

    /// An instruction that needs its operands, and whose result comes after a latency.
    pub(super) fn issue_for(&mut self, who: Who, facts: &Facts, class: Class, result: (Ends, Term, bool)) {
        let board = &mut self.warp(who).board;
        board.issue(who.frame, &facts.reads, 1.0);
        let value = board.later(result.0, result.1, result.2);
        board.set(who.frame, &facts.writes, value);
        self.counts.instruction(class);
    }

    /// Ends the open segment of a warp: something that others can see happened.
    pub(super) fn cut(&mut self, number: u32) -> Node {
        let at = number as usize;
        let warp = &mut self.warps[at];
        let node = (number, warp.board.segment);
        let mut segment = warp.board.close();
        segment.after = warp.after.take();
        warp.looks.clear();
        warp.mark = None;
        warp.spin = 0.0;
        let begun = warp.clock;
        let end = self.about(&segment, begun);
        let warp = &mut self.warps[at];
        warp.clock = end;
        warp.times.push((begun, end));
        self.trace.warps[at].push(segment);
        node
    }

    /// About when a segment ends.
    fn about(&self, segment: &Segment, begun: f64) -> f64 {
        let ends = segment.waits.iter().filter_map(|wait| {
            let from = match wait.from {
                From::Start((warp, number)) => self.warps[warp as usize].times.get(number as usize)?.0,
                From::End((warp, number)) => self.warps[warp as usize].times.get(number as usize)?.1,
            };
            Some(from + wait.latency[0] + segment.chain[0] - wait.at[0])
        });
        ends.fold(begun + segment.chain[0], f64::max)
    }

    /// A warp looks at something: true where it looked at it before and has done nothing since, so that the look before was
    /// in vain; what came after it is forgotten.
    pub(super) fn looks_again(&mut self, who: Who, what: u64) -> bool {
        let latency = self.rates[0].l2;
        let warp = self.warp(who);
        let again = warp.looks.contains(&(who.at, what));
        if again {
            if let Some(mark) = &warp.mark {
                warp.board.restore(mark);
            }
            warp.spin += latency;
        } else {
            warp.looks.push((who.at, what));
        }
        again
    }

    /// The place to which a look in vain goes back.
    pub(super) fn mark(&mut self, who: Who) {
        let warp = self.warp(who);
        warp.mark = Some(warp.board.mark());
    }

    /// A warp arrives at a barrier of its block.
    pub fn arrive(&mut self, block: u32, warp: u32, number: u32) {
        let node = self.cut(self.number(block, warp));
        let meeting = self
            .barriers
            .entry(u64::from(block) << 4 | u64::from(number))
            .or_default();
        meeting.arrivals.push(node);
    }

    /// A barrier of a block is complete: (warp, lanes) of those that wait.
    pub fn barrier(&mut self, block: u32, number: u32, waiting: &[(u32, u32)]) {
        let meeting = self
            .barriers
            .remove(&(u64::from(block) << 4 | u64::from(number)))
            .unwrap_or_default();
        let warps = meeting.arrivals.len() as f64;
        let latency = self.ends(|r| r.barrier.0 + r.barrier.1 * warps);
        let join = self.join(meeting.arrivals, latency, Term::Barrier);
        self.counts.barriers += 1;
        for (warp, _) in waiting {
            self.resume(self.number(block, *warp), join);
        }
    }

    fn join(&mut self, arrivals: Vec<Node>, latency: Ends, term: Term) -> u32 {
        let last = arrivals
            .iter()
            .map(|(warp, number)| self.warps[*warp as usize].times[*number as usize].1);
        self.joins.push(last.fold(0.0, f64::max) + latency[0]);
        self.trace.joins.push(Join {
            arrivals,
            latency,
            term,
        });
        self.trace.joins.len() as u32 - 1
    }

    fn resume(&mut self, number: u32, join: u32) {
        let time = self.joins[join as usize];
        let warp = &mut self.warps[number as usize];
        warp.after = Some(join);
        warp.clock = warp.clock.max(time);
    }

    /// A warp arrives at the barrier of its cluster.
    pub fn cluster_arrive(&mut self, block: u32, warp: u32, release: bool) {
        let number = self.number(block, warp);
        if release {
            let cycles = self.ends(|r| r.cluster_release);
            self.warps[number as usize].board.spend(Term::Fence, cycles);
        }
        let node = self.cut(number);
        let cluster = block / self.cluster_blocks.max(1);
        self.clusters.entry(cluster).or_default().arrivals.push(node);
    }

    /// All threads of the cluster of a block have arrived.
    pub fn cluster_complete(&mut self, block: u32) {
        let cluster = block / self.cluster_blocks.max(1);
        let arrivals = std::mem::take(&mut self.clusters.entry(cluster).or_default().arrivals);
        let latency = self.ends(|r| r.peer);
        let join = self.join(arrivals, latency, Term::Cluster);
        self.clusters.entry(cluster).or_default().join = Some(join);
        self.counts.cluster_barriers += 1;
    }

    /// A warp no longer waits for its cluster.
    pub fn cluster_wait(&mut self, block: u32, warp: u32) {
        let number = self.number(block, warp);
        self.cut(number);
        let join = self
            .clusters
            .get(&(block / self.cluster_blocks.max(1)))
            .and_then(|meeting| meeting.join);
        if let Some(join) = join {
            self.resume(number, join);
        }
    }

    /// What others wait for when they see a word or signal of these.
    pub(super) fn news(&mut self, who: Who, at: Key) -> Vec<Node> {
        let number = self.number(who.block, who.warp);
        let mut news = Vec::new();
        let warp = &mut self.warps[number as usize];
        self.words.look(at, &mut warp.seen, number, &mut news);
        news
    }

    /// The phases of an mbarrier that somebody arrived in.
    pub(super) fn phases(&mut self, at: Key) -> &mut VecDeque<(u64, Vec<Wait>)> {
        self.signals.entry(code(at)).or_default()
    }

    /// The launch has ended.
    pub fn finish(mut self) -> (Trace, Counts) {
        for number in 0..self.warps.len() as u32 {
            self.cut(number);
        }
        (self.trace, self.counts)
    }
}

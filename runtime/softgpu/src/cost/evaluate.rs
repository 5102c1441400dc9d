//! The longest path through a trace at one end of a card's rates, and what it is made of.
//!
//! Segments are taken in the order of the times at which they begin. Each waits in line at the units that it needs: the issue
//! slots, pipes and tensor core of a quarter of a multiprocessor, its shared memory, its port, the caches and memory of the
//! device. It ends when all of these are done with it, when its own chain of instructions is, and when what it waits for has
//! come. Every end remembers which of these was last; from the last end of the launch, that is the longest path.

use super::rates::Rates;
use super::trace::{From, Node, Segment, TERMS, Term, Terms, Trace};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The longest path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Its cycles.
    pub cycles: f64,
    /// What they are spent on.
    pub terms: Terms,
}

/// Which of the things that an end waits for was last.
#[derive(Clone, Copy, Debug)]
enum Last {
    Chain,
    Unit(Term),
    Wait(usize),
}

/// What the start of a segment waited for.
#[derive(Clone, Copy, Debug)]
enum Before {
    Launch,
    Own,
    Join(u32),
    /// The last segment of a block that had the place.
    Place(Node),
}

#[derive(Clone, Copy, Debug)]
struct Times {
    start: f64,
    end: f64,
    bytes: f64,
    before: Before,
    last: Last,
}

/// Units of a quarter: issue, reals, tensor, special functions.
const QUARTER: [Term; 4] = [Term::Issue, Term::Arithmetic, Term::Mma, Term::Special];

struct State<'a> {
    trace: &'a Trace,
    rates: &'a Rates,
    end: usize,
    times: Vec<Vec<Times>>,
    /// Segments that can begin: (start in 1/1024 cycles, warp).
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    /// Warps that wait for a segment of another.
    parked: std::collections::BTreeMap<Node, Vec<u32>>,
    starts: Vec<(f64, Before)>,
    quarters: Vec<[f64; 4]>,
    lsu: Vec<f64>,
    ports: Vec<f64>,
    peers: Vec<f64>,
    cache: f64,
    memory: f64,
    /// The place of each block: its multiprocessor.
    places: Vec<u32>,
    waiting_blocks: std::vec::IntoIter<u32>,
    unfinished: Vec<u32>,
}

/// The longest path at the fast (0) or slow (1) end of the rates.
pub fn longest_path(trace: &Trace, rates: &Rates, end: usize) -> Path {
    let mut state = State::new(trace, rates, end);
    let room = trace.processors * trace.blocks_a_processor;
    for at in 0..room {
        if !state.next_block(at % trace.processors, (0.0, Before::Launch)) {
            break;
        }
    }
    while let Some(Reverse((_, warp))) = state.ready.pop() {
        state.run(warp);
    }
    state.path()
}

impl<'a> State<'a> {
    fn new(trace: &'a Trace, rates: &'a Rates, end: usize) -> State<'a> {
        let (processors, blocks) = (trace.processors as usize, trace.order.len());
        State {
            trace,
            rates,
            end,
            times: vec![Vec::new(); trace.warps.len()],
            ready: BinaryHeap::new(),
            parked: std::collections::BTreeMap::new(),
            starts: vec![(0.0, Before::Launch); trace.warps.len()],
            quarters: vec![[0.0; 4]; 4 * processors],
            lsu: vec![0.0; processors],
            ports: vec![0.0; processors],
            peers: vec![0.0; processors],
            cache: 0.0,
            memory: 0.0,
            places: vec![0; blocks],
            waiting_blocks: trace.order.clone().into_iter(),
            unfinished: vec![trace.block_warps; blocks],
        }
    }

    /// Gives a free place to the next block; false where there is none.
    fn next_block(&mut self, processor: u32, start: (f64, Before)) -> bool {
        let Some(block) = self.waiting_blocks.next() else {
            return false;
        };
        self.places[block as usize] = processor;
        for warp in 0..self.trace.block_warps {
            let number = block * self.trace.block_warps + warp;
            self.starts[number as usize] = start;
            self.push(number, start.0);
        }
        true
    }

    fn push(&mut self, warp: u32, start: f64) {
        self.ready.push(Reverse(((start * 1024.0) as u64, warp)));
    }

    fn done(&self, (warp, segment): Node) -> Option<&Times> {
        self.times[warp as usize].get(segment as usize)
    }

    /// A segment that this one needs and that has not been taken yet.
    fn missing(&self, segment: &Segment) -> Option<Node> {
        let joined = segment
            .after
            .iter()
            .flat_map(|join| &self.trace.joins[*join as usize].arrivals);
        let waited = segment.waits.iter().map(|wait| match wait.from {
            From::Start(node) | From::End(node) => node,
        });
        joined.copied().chain(waited).find(|node| self.done(*node).is_none())
    }

    /// Takes the next segment of a warp, or puts the warp aside until it can be.
    fn run(&mut self, warp: u32) {
        let trace = self.trace;
        let number = self.times[warp as usize].len();
        let Some(segment) = trace.warps[warp as usize].get(number) else {
            self.warp_done(warp);
            return;
        };
        if let Some(node) = self.missing(segment) {
            self.parked.entry(node).or_default().push(warp);
            return;
        }
        let (mut start, mut before) = self.starts[warp as usize];
        if let Some(join) = segment.after {
            let time = self.join_time(join);
            if time > start {
                // Others may begin before that.
                (start, before) = (time, Before::Join(join));
                if self
                    .ready
                    .peek()
                    .is_some_and(|Reverse((next, _))| *next < (time * 1024.0) as u64)
                {
                    self.starts[warp as usize] = (start, before);
                    self.push(warp, start);
                    return;
                }
            }
        }
        let times = self.take(warp, segment, (start, before));
        self.times[warp as usize].push(times);
        self.starts[warp as usize] = (times.end, Before::Own);
        self.push(warp, times.end);
        for other in self.parked.remove(&(warp, number as u32)).unwrap_or_default() {
            self.push(other, self.starts[other as usize].0);
        }
    }

    fn join_time(&self, join: u32) -> f64 {
        let join = &self.trace.joins[join as usize];
        let ends = join
            .arrivals
            .iter()
            .filter_map(|node| self.done(*node))
            .map(|times| times.end);
        ends.fold(0.0, f64::max) + join.latency[self.end]
    }

    fn take(&mut self, warp: u32, segment: &Segment, (start, before): (f64, Before)) -> Times {
        let chain = segment.chain[self.end];
        let mut last = (start + chain, Last::Chain);
        let mut later = |time: f64, what: Last| {
            if time > last.0 {
                last = (time, what);
            }
        };
        for (term, time) in self.line_up(warp, segment, start) {
            later(time, Last::Unit(term));
        }
        let bytes = self.transfer(warp, segment, start);
        if segment.uses_bytes {
            later(bytes, Last::Unit(Term::Bytes));
        }
        for (at, wait) in segment.waits.iter().enumerate() {
            let from = match wait.from {
                From::Start(node) => self.done(node).map(|t| (t.start + wait.latency[self.end]).max(t.bytes)),
                From::End(node) => self.done(node).map(|t| t.end.max(t.bytes) + wait.latency[self.end]),
            };
            later(from.unwrap_or(start) + chain - wait.at[self.end], Last::Wait(at));
        }
        Times {
            start,
            end: last.0,
            bytes,
            before,
            last: last.1,
        }
    }

    /// The units of the multiprocessor: when each is done with the segment.
    fn line_up(&mut self, warp: u32, segment: &Segment, start: f64) -> [(Term, f64); 5] {
        let block = warp / self.trace.block_warps;
        let processor = self.places[block as usize] as usize;
        let quarter = &mut self.quarters[4 * processor + warp as usize % 4];
        let work = &segment.work;
        let tensor: f64 = work
            .tensor
            .iter()
            .zip(self.rates.tensor)
            .map(|(count, cycles)| count * cycles)
            .sum();
        let cycles = [
            work.issue,
            work.reals * self.rates.reals,
            tensor,
            work.special * self.rates.special_each,
        ];
        let mut done = [(Term::Shared, 0.0); 5];
        for (at, cycles) in cycles.into_iter().enumerate().filter(|(_, cycles)| *cycles > 0.0) {
            quarter[at] = quarter[at].max(start) + cycles;
            done[at] = (QUARTER[at], quarter[at]);
        }
        if work.lsu > 0.0 {
            self.lsu[processor] = self.lsu[processor].max(start) + work.lsu;
            done[4].1 = self.lsu[processor];
        }
        done
    }

    /// Bytes beyond the multiprocessor: when the last has come or gone.
    fn transfer(&mut self, warp: u32, segment: &Segment, start: f64) -> f64 {
        let processor = self.places[(warp / self.trace.block_warps) as usize] as usize;
        let [cache, port, memory] = self.rates.bytes;
        let mut done = start;
        let mut through = |line: &mut f64, bytes: f64, rate: f64| {
            if bytes > 0.0 {
                *line = line.max(start) + bytes / rate;
                done = done.max(*line);
            }
        };
        through(&mut self.ports[processor], segment.work.cache, port);
        through(&mut self.cache, segment.work.cache, cache);
        through(&mut self.memory, segment.work.memory, memory);
        through(&mut self.peers[processor], segment.work.peer, self.rates.peer_bytes);
        done
    }

    fn warp_done(&mut self, warp: u32) {
        let block = (warp / self.trace.block_warps) as usize;
        self.unfinished[block] -= 1;
        if self.unfinished[block] > 0 {
            return;
        }
        let first = block as u32 * self.trace.block_warps;
        let ends = (first..first + self.trace.block_warps).filter_map(|warp| self.last_end(warp));
        let last = ends.max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((end, node)) = last {
            self.next_block(self.places[block], (end, Before::Place(node)));
        }
    }

    fn last_end(&self, warp: u32) -> Option<(f64, Node)> {
        let times = &self.times[warp as usize];
        Some((times.last()?.end, (warp, times.len() as u32 - 1)))
    }

    /// From the last end back to the launch.
    fn path(&self) -> Path {
        let warps = 0..self.trace.warps.len() as u32;
        let last = warps
            .filter_map(|warp| self.last_end(warp))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((end, mut node)) = last else {
            return Path::default();
        };
        let mut path = Path {
            cycles: end,
            terms: [0.0; TERMS],
        };
        // What was stored must have arrived.
        let bytes = self.times.iter().flatten().map(|times| times.bytes).fold(end, f64::max);
        path.terms[Term::Bytes as usize] += bytes - end;
        path.cycles = bytes;
        while let Some(before) = self.step(node, &mut path.terms) {
            node = before;
        }
        path
    }

    /// Adds what lies between a segment's end and the end of another that decided it; none at the launch.
    fn step(&self, node: Node, terms: &mut Terms) -> Option<Node> {
        let times = self.done(node)?;
        let segment = &self.trace.warps[node.0 as usize][node.1 as usize];
        let mut spent = |term: Term, cycles: f64| terms[term as usize] += cycles;
        let mut start = (node, times);
        match times.last {
            Last::Chain => Term::ALL
                .into_iter()
                .for_each(|term| spent(term, segment.terms[self.end][term as usize])),
            Last::Unit(term) => spent(term, times.end - times.start),
            Last::Wait(at) => {
                let wait = &segment.waits[at];
                let rest = segment.chain[self.end] - wait.at[self.end];
                spent(Term::Issue, rest);
                match wait.from {
                    From::End(other) => {
                        let from = self.done(other)?;
                        spent(wait.term, wait.latency[self.end]);
                        spent(Term::Bytes, (from.bytes - from.end).max(0.0));
                        return Some(other);
                    }
                    From::Start(other) => {
                        let from = self.done(other)?;
                        let by_bytes = from.bytes > from.start + wait.latency[self.end];
                        let term = if by_bytes { Term::Bytes } else { wait.term };
                        spent(term, times.end - rest - from.start);
                        start = (other, from);
                    }
                }
            }
        }
        let ((warp, number), times) = start;
        match times.before {
            Before::Launch => None,
            Before::Own => Some((warp, number.checked_sub(1)?)),
            Before::Place(other) => Some(other),
            Before::Join(join) => {
                let join = &self.trace.joins[join as usize];
                spent(join.term, join.latency[self.end]);
                let end = |node: &Node| self.done(*node).map_or(0.0, |times| times.end);
                join.arrivals.iter().copied().max_by(|a, b| end(a).total_cmp(&end(b)))
            }
        }
    }
}

//! The open segment of a warp: when each register is ready, how far the chain of dependent instructions has come, what the
//! segment takes and waits for.
//!
//! A warp issues in order. An instruction is issued when its operands are ready, at the earliest a slot after the one before;
//! its result is ready after its latency. Where a value that an earlier segment has loaded is not known to be ready, the
//! segment waits for it as an event: how long the warp stood at a barrier in between is not known yet.

use super::kind::Register;
use super::trace::{Ends, From, Segment, Term, Terms, Wait};

/// When a value is ready.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pending {
    /// The segment that asked for it.
    segment: u32,
    /// When it is ready, from the start of that segment.
    ready: Ends,
    /// What is waited for; none where nothing is.
    term: Option<Term>,
    /// Whether it comes as bytes of device memory.
    bytes: bool,
}

impl Pending {
    /// One that is there.
    pub const NOW: Pending = Pending {
        segment: 0,
        ready: [0.0; 2],
        term: None,
        bytes: false,
    };
}

/// How far a segment has come.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    work: super::trace::Work,
    cursor: Ends,
    terms: [Terms; 2],
}

/// The open segment of a warp.
#[derive(Debug)]
pub struct Board {
    /// The warp, counted through the grid.
    warp: u32,
    /// The number of the open segment.
    pub segment: u32,
    /// What it takes and waits for so far.
    pub open: Segment,
    /// How far its chain has come.
    pub cursor: Ends,
    terms: [Terms; 2],
    /// Registers of each frame: words, doubles.
    frames: Vec<[Vec<Pending>; 2]>,
}

impl Board {
    /// Nothing yet.
    pub fn new(warp: u32) -> Board {
        Board {
            warp,
            segment: 0,
            open: Segment::default(),
            cursor: [0.0; 2],
            terms: [Terms::default(); 2],
            frames: Vec::new(),
        }
    }

    fn register(&mut self, frame: usize, (double, number): Register) -> &mut Pending {
        while self.frames.len() <= frame {
            self.frames.push([Vec::new(), Vec::new()]);
        }
        let file = &mut self.frames[frame][usize::from(double)];
        if file.len() <= number as usize {
            file.resize(number as usize + 1, Pending::NOW);
        }
        &mut file[number as usize]
    }

    /// Waits for the operands, then takes issue slots.
    pub fn issue(&mut self, frame: usize, reads: &[Register], slots: f64) {
        for read in reads {
            let pending = std::mem::replace(self.register(frame, *read), Pending::NOW);
            self.need(pending);
        }
        self.open.work.issue += slots;
        self.spend(Term::Issue, [slots; 2]);
    }

    /// Waits for a value.
    pub fn need(&mut self, value: Pending) {
        let Some(term) = value.term else { return };
        if value.segment == self.segment {
            let cursor = self.cursor;
            let stall = [0, 1].map(|end| (value.ready[end] - cursor[end]).max(0.0));
            self.spend(term, stall);
            self.open.uses_bytes |= value.bytes;
        } else if matches!(term, Term::Global | Term::Cluster) {
            let wait = Wait {
                from: From::Start((self.warp, value.segment)),
                latency: value.ready,
                at: self.cursor,
                term,
            };
            self.wait(wait);
        }
    }

    /// The chain becomes longer.
    pub fn spend(&mut self, term: Term, cycles: Ends) {
        for (end, cycles) in cycles.into_iter().enumerate() {
            self.cursor[end] += cycles;
            self.terms[end][term as usize] += cycles;
        }
    }

    /// The segment's end waits; of waits for the same moment the latest counts.
    pub fn wait(&mut self, wait: Wait) {
        let known = self
            .open
            .waits
            .iter_mut()
            .find(|w| w.from == wait.from && w.term == wait.term);
        let Some(known) = known else {
            self.open.waits.push(wait);
            return;
        };
        let slack = |w: &Wait, end: usize| w.latency[end] - w.at[end];
        for end in 0..2 {
            if slack(&wait, end) > slack(known, end) {
                (known.latency[end], known.at[end]) = (wait.latency[end], wait.at[end]);
            }
        }
    }

    /// A value that is there a latency after the last instruction was issued; its slot is part of the latency.
    pub fn later(&self, latency: Ends, term: Term, bytes: bool) -> Pending {
        Pending {
            segment: self.segment,
            ready: [0, 1].map(|end| self.cursor[end] + (latency[end] - 1.0).max(0.0)),
            term: Some(term),
            bytes,
        }
    }

    /// The later of two values.
    pub fn latest(a: Pending, b: Pending) -> Pending {
        let rank = |p: &Pending| (p.term.is_some(), p.segment, p.ready[0]);
        if rank(&a) >= rank(&b) { a } else { b }
    }

    /// Registers become ready with a value.
    pub fn set(&mut self, frame: usize, writes: &[Register], value: Pending) {
        for write in writes {
            *self.register(frame, *write) = value;
        }
    }

    /// A move: what it writes is ready when what it reads is.
    pub fn forward(&mut self, frame: usize, reads: &[Register], writes: &[Register]) {
        let values = reads.iter().map(|read| *self.register(frame, *read));
        let latest = values.fold(Pending::NOW, Board::latest);
        self.set(frame, writes, latest);
    }

    /// How far it has come.
    pub fn mark(&self) -> Mark {
        Mark {
            work: self.open.work,
            cursor: self.cursor,
            terms: self.terms,
        }
    }

    /// Forgets what came after a mark: a look in vain.
    pub fn restore(&mut self, mark: &Mark) {
        self.open.work = mark.work;
        self.cursor = mark.cursor;
        self.terms = mark.terms;
    }

    /// Ends the segment and begins the next.
    pub fn close(&mut self) -> Segment {
        self.segment += 1;
        let mut segment = std::mem::take(&mut self.open);
        segment.chain = std::mem::take(&mut self.cursor);
        segment.terms = std::mem::take(&mut self.terms);
        segment
    }
}

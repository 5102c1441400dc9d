//! Faults in words: places in the texts, threads, and who waits for what.

use super::Machine;
use super::warp::{Group, Wait, Warp};
use crate::fault::{Earlier, Fault, Kind, Place, Thread};
use crate::memory::access::Wrong;
use crate::program::{Origin, Program};
use std::sync::Arc;

/// The text of a module, for reports.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Its lines.
    pub lines: Vec<Arc<str>>,
    /// `.file` numbers and paths.
    pub files: Vec<(u32, String)>,
}

impl Text {
    /// The place of an instruction.
    pub fn place(&self, origin: Origin) -> Place {
        let line = self.lines.get(origin.line.wrapping_sub(1) as usize);
        let file = self.files.iter().find(|(number, _)| *number == origin.source.0);
        Place {
            ptx_line: origin.line,
            instruction: line.map_or(String::new(), |line| line.trim().to_owned()),
            source: file.map(|(_, path)| (path.clone(), origin.source.1)),
        }
    }

    /// The fault of a launch that never began.
    pub fn refused(&self, program: &Program, kind: Kind, message: String) -> Box<Fault> {
        Box::new(Fault {
            kind,
            kernel: program.kernel.to_string(),
            message,
            place: None,
            thread: None,
            address: None,
            earlier: None,
            hint: None,
        })
    }
}

impl Machine<'_> {
    /// A fault of a lane at an instruction.
    pub fn fault(&self, kind: Kind, message: String, warp: &Warp, pc: u32, lane: u32) -> Box<Fault> {
        let place = self
            .program
            .places
            .get(pc as usize)
            .map(|origin| self.text.place(*origin));
        Box::new(Fault {
            place,
            thread: Some(self.thread_name(warp.id.block, 32 * warp.id.warp + lane.min(31))),
            ..*self.text.refused(self.program, kind, message)
        })
    }

    /// A fault without a place.
    pub fn fault_somewhere(&self, kind: Kind, message: String) -> Box<Fault> {
        let first = self
            .blocks
            .iter()
            .flatten()
            .flat_map(|block| block.warps.iter().flatten());
        let waiting = first
            .filter_map(|warp| warp.groups.first().map(|group| (warp, group)))
            .next();
        match waiting {
            Some((warp, group)) => {
                let pc = wait_place(group);
                self.fault(kind, message, warp, pc, group.lanes.trailing_zeros())
            }
            None => self.text.refused(self.program, kind, message),
        }
    }

    fn thread_name(&self, block: u32, thread: u32) -> Thread {
        Thread {
            block: self.plan.block_at(self.launch, block),
            thread: self.thread(thread / 32, thread % 32),
        }
    }

    /// What memory found wrong, with names and places.
    #[cold]
    pub fn explain(&self, wrong: Wrong, warp: &Warp, pc: u32) -> Box<Fault> {
        let fault = self.fault(wrong.kind, wrong.message, warp, pc, wrong.lane);
        let earlier = wrong.earlier.map(|(block, thread, at, what)| Earlier {
            thread: self.thread_name(block, thread),
            place: self
                .text
                .place(self.program.places.get(at as usize).copied().unwrap_or_default()),
            what,
        });
        Box::new(Fault {
            address: wrong.address,
            earlier,
            hint: wrong.hint,
            ..*fault
        })
    }

    /// What memory found wrong at the end of a block, of a launch, or in an asynchronous operation.
    #[cold]
    pub fn explain_end(&self, wrong: Wrong) -> Box<Fault> {
        let fault = self.text.refused(self.program, wrong.kind, wrong.message);
        let earlier = wrong.earlier.map(|(block, thread, at, what)| Earlier {
            thread: self.thread_name(block, thread),
            place: self
                .text
                .place(self.program.places.get(at as usize).copied().unwrap_or_default()),
            what,
        });
        Box::new(Fault {
            place: earlier.as_ref().map(|earlier| earlier.place.clone()),
            thread: earlier.as_ref().map(|earlier| earlier.thread),
            address: wrong.address,
            earlier,
            hint: wrong.hint,
            ..*fault
        })
    }

    /// The line of an instruction, for messages.
    pub fn place_text(&self, pc: u32) -> String {
        let origin = self.program.places.get(pc as usize).copied().unwrap_or_default();
        let place = self.text.place(origin);
        format!("line {} `{}`", place.ptx_line, place.instruction)
    }

    /// A warp whose lanes wait for each other at different places.
    pub fn stuck_warp(&self, slot: usize, index: u32) -> Box<Fault> {
        let warp = self.blocks[slot]
            .as_ref()
            .and_then(|block| block.warps[index as usize].as_deref());
        let Some((warp, group)) = warp.and_then(|warp| Some((warp, warp.groups.first()?))) else {
            return self.fault_somewhere(Kind::Deadlock, "a warp is stuck".to_owned());
        };
        let needed = match group.wait {
            Wait::Lanes(needed) => needed,
            _ => warp.lanes,
        };
        let places: Vec<String> = warp.groups.iter().map(|group| self.lanes_at(group)).collect();
        let exited = match warp.exited & needed {
            0 => String::new(),
            lanes => format!("; lanes {lanes:#010x} have exited"),
        };
        let message = format!("lanes wait for others that never come: {}{exited}", places.join(", "));
        let kind = self.kind_of_wait(group.pc);
        self.fault(kind, message, warp, group.pc, group.lanes.trailing_zeros())
    }

    fn lanes_at(&self, group: &Group) -> String {
        format!("lanes {:#010x} at {}", group.lanes, self.place_text(wait_place(group)))
    }

    /// What it is called where lanes that an instruction needs do not come.
    fn kind_of_wait(&self, pc: u32) -> Kind {
        use crate::program::Action;
        match self.program.code.get(pc as usize).map(|inst| &inst.action) {
            Some(Action::Barrier(_)) => Kind::BarrierDivergence,
            Some(Action::Mma(_) | Action::Matrix(_) | Action::Transpose) => Kind::Unaligned,
            Some(Action::ClusterArrive { .. } | Action::ClusterWait { .. }) => Kind::Unaligned,
            _ => Kind::WarpMask,
        }
    }

    /// Where the threads are: the places with most of them first.
    pub fn describe_waits(&self) -> String {
        let mut places: Vec<(u32, u32)> = Vec::new();
        let warps = self
            .blocks
            .iter()
            .flatten()
            .flat_map(|block| block.warps.iter().flatten());
        for group in warps.flat_map(|warp| &warp.groups) {
            let (pc, threads) = (wait_place(group), group.lanes.count_ones());
            match places.iter_mut().find(|(at, _)| *at == pc) {
                Some((_, count)) => *count += threads,
                None => places.push((pc, threads)),
            }
        }
        places.sort_by_key(|(at, count)| (std::cmp::Reverse(*count), *at));
        let shown = places
            .iter()
            .take(4)
            .map(|(at, count)| format!("{count} threads at {}", self.place_text(*at)));
        let mut text = shown.collect::<Vec<_>>().join(", ");
        let exited: u32 = self.blocks.iter().flatten().map(|block| block.exited).sum();
        if exited > 0 {
            text += &format!("; {exited} threads of these blocks have exited");
        }
        if !self.queue.is_empty() {
            text += &format!(
                "; {} blocks are not admitted yet",
                self.queue.len() as u32 * self.plan.cluster_blocks
            );
        }
        text
    }

    /// Whether somebody waits at a barrier of a block some of whose threads have exited.
    pub fn exited_before_barrier(&self) -> bool {
        self.blocks
            .iter()
            .flatten()
            .any(|block| block.exited > 0 && block.barriers.iter().any(|barrier| !barrier.waiting.is_empty()))
    }
}

/// The instruction that a group waits at: one that joined a barrier stands behind it.
fn wait_place(group: &Group) -> u32 {
    match group.wait {
        Wait::Barrier(_) => group.pc.saturating_sub(1),
        _ => group.pc,
    }
}

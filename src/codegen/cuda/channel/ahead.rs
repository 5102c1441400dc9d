//! Reads issued ahead: the frames of the next batch are on their way while those of this batch are computed.
//!
//! A memory's latency is many frames of a small kernel: enough bytes are in flight only if the reads of several frames
//! are. They are issued together, so that a frame waits for a batch that was issued a whole batch ago.

use super::facts::{Phase, is_leaf};
use super::work::{Walk, Work};
use crate::codegen::cuda::place::{FrameNames, Place};
use crate::codegen::cuda::pointers::element_type;
use rnnc_runtime::plan::{Reg, Step};
use rnnc_runtime::scalar::{Binary, Unary};
use std::collections::BTreeMap;

/// Most frames in a batch.
const MOST: usize = 32;

/// Registers that the reads of a batch may take; there are two batches.
const BATCH_REGISTERS: usize = 48;

/// Registers that both batches and the states may take together.
const REGISTERS: usize = 160;

/// What the unrolled frames may cost the assembler, all together, in simple instructions.
const UNROLLED: usize = 700;

/// What is read ahead, and the text that does it.
pub struct Ahead {
    /// Frames a batch.
    pub frames: usize,
    /// The arrays of the next batch.
    pub next: Vec<String>,
    /// The arrays of this batch.
    pub now: Vec<String>,
    /// What was next is now, at `slot`.
    pub moves: Vec<String>,
    /// Loads slot `slot` of the next batch: frame `frame`, its copy `later`.
    pub loads: Vec<String>,
    values: BTreeMap<Reg, String>,
}

impl Ahead {
    /// Chooses how far ahead to read; `None` where nothing is read or registers are short.
    pub fn choose(work: &mut Work, place: &Place) -> Option<Ahead> {
        let leaves = leaves(work);
        let frames = depth(work, &leaves)?;
        let mut ahead = Ahead {
            frames,
            next: Vec::new(),
            now: Vec::new(),
            moves: Vec::new(),
            loads: Vec::new(),
            values: BTreeMap::new(),
        };
        let later = place.in_frame(FrameNames {
            at: "later".to_string(),
            seq: "seq".to_string(),
            t: Some("frame".to_string()),
        });
        let (mut moves, mut loads) = (Vec::new(), Vec::new());
        for reg in &leaves {
            let [next, now] = ahead.arrays(*reg, work, place);
            let array = is_array(work, *reg);
            moves.push((array, format!("{now} = {next};")));
            loads.push((array, format!("{next} = {};", work.statements.expr(*reg, &later).text)));
            ahead.values.insert(*reg, now);
        }
        ahead.moves = looped(moves, work);
        ahead.loads = looped(loads, work);
        Some(ahead)
    }

    /// Where the value of each read is when its frame comes.
    pub fn values(&self) -> BTreeMap<Reg, String> {
        self.values.clone()
    }

    /// Declares the arrays of a read; gives their elements.
    fn arrays(&mut self, reg: Reg, work: &mut Work, place: &Place) -> [String; 2] {
        let wanted = work.statements.wanted_name(reg, place).unwrap_or_default();
        let ty = match &work.channel.body.steps[reg.0 as usize] {
            Step::Load(load) => element_type(place.plan.buffer(load.buffer).elem),
            _ => "float",
        };
        let (extent, element) = match is_array(work, reg) {
            true => (format!("[{}]", work.space.lanes.each), "[round]"),
            false => (String::new(), ""),
        };
        let [next, now] = ["next", "now"].map(|when| work.names.unique(&format!("{wanted}_{when}")));
        self.next.push(format!("{ty} {next}[{}]{extent};", self.frames));
        self.now.push(format!("{ty} {now}[{}]{extent};", self.frames));
        [next, now].map(|name| format!("{name}[slot]{element}"))
    }
}

fn is_array(work: &Work, reg: Reg) -> bool {
    work.facts.looped && work.facts.get(reg).inner
}

fn leaves(work: &Work) -> Vec<Reg> {
    let all = work.channel.body.steps.iter().enumerate();
    all.filter(|(_, step)| is_leaf(step))
        .map(|(i, _)| Reg(i as u32))
        .filter(|reg| work.statements.is_used(*reg))
        .collect()
}

/// How many frames a batch has.
fn depth(work: &Work, leaves: &[Reg]) -> Option<usize> {
    let each = |inner: bool| if inner { work.space.lanes.each } else { 1 };
    let frame: usize = leaves.iter().map(|reg| each(is_array(work, *reg))).sum();
    let steps = work.channel.body.steps.iter().zip(&work.facts.steps);
    let in_frame = steps.filter(|(_, fact)| fact.phase == Phase::Frame);
    let work_a_frame: usize = in_frame.map(|(step, fact)| cost(step) * each(fact.inner)).sum();
    let states = work.channel.state_registers();
    let fits = |frames: &usize| {
        let batch = frames * frame;
        batch <= BATCH_REGISTERS && 2 * batch + states <= REGISTERS && frames * work_a_frame <= UNROLLED
    };
    let powers = std::iter::successors(Some(MOST), |n| Some(n / 2)).take_while(|n| *n >= 2);
    powers.into_iter().find(fits).filter(|_| frame > 0)
}

/// About how many instructions a step becomes.
fn cost(step: &Step) -> usize {
    match step {
        Step::Load(_) | Step::Gather { .. } => 4,
        Step::Reduce(..) => 12,
        Step::Binary(Binary::Pow, ..) => 60,
        Step::Binary(Binary::Div | Binary::Mod | Binary::LogAddExp, ..) => 20,
        Step::Unary(op, _) if is_cheap(*op) => 1,
        Step::Unary(Unary::Sin | Unary::Cos, _) => 60,
        Step::Unary(..) => 16,
        _ => 1,
    }
}

fn is_cheap(op: Unary) -> bool {
    matches!(
        op,
        Unary::Neg | Unary::Abs | Unary::Relu | Unary::Floor | Unary::Sign | Unary::HardSigmoid | Unary::StopGradient
    )
}

fn looped(lines: Vec<(bool, String)>, work: &Work) -> Vec<String> {
    let (in_loop, plain): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(array, _)| *array);
    let mut lines: Vec<String> = plain.into_iter().map(|(_, line)| line).collect();
    if !in_loop.is_empty() {
        let body = in_loop.into_iter().map(|(_, line)| line).collect();
        lines.extend(work.space.inner_loop(Walk::Unrolled, body));
    }
    lines
}

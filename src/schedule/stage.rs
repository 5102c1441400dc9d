//! When a value is there: before a run, within it, or after its frames.
//!
//! What exists once, or once a sequence, is there before the first frame, unless it is a total or made of one: then it is
//! there after the last.

use crate::ir::{Graph, Kind, NodeId, Op};

/// The stages of a run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Once, from parameters alone.
    Const,
    /// Once a sequence, before the frames.
    Static,
    /// Once a frame.
    Frame,
    /// Once a sequence, after the frames.
    LateStatic,
    /// Once, after the frames.
    LateConst,
}

impl Stage {
    fn of(kind: Kind, late: bool) -> Stage {
        match (kind, late) {
            (Kind::Const, false) => Stage::Const,
            (Kind::Static, false) => Stage::Static,
            (Kind::Frame, _) => Stage::Frame,
            (Kind::Static, true) => Stage::LateStatic,
            (Kind::Const, true) => Stage::LateConst,
        }
    }

    /// How often a value of this stage exists.
    pub fn kind(self) -> Kind {
        match self {
            Stage::Const | Stage::LateConst => Kind::Const,
            Stage::Static | Stage::LateStatic => Kind::Static,
            Stage::Frame => Kind::Frame,
        }
    }
}

/// The stage of every node, by index.
pub fn stages(graph: &Graph) -> Vec<Stage> {
    let mut stages = vec![Stage::Const; graph.bound()];
    for id in graph.topological() {
        let node = graph.node(id);
        let late = |read: &crate::ir::Read| read.delay == 0 && stages[read.node.index()] > Stage::Frame;
        let late = matches!(node.op, Op::Total { .. }) || graph.operands(id).iter().any(late);
        stages[id.index()] = Stage::of(node.kind, late);
    }
    stages
}

/// The stage of a node.
pub fn stage(stages: &[Stage], id: NodeId) -> Stage {
    stages[id.index()]
}

//! How kernels write: values to their buffers, states to their final windows.

use super::buffers::Buffers;
use super::fuse::Fusion;
use crate::ir::{Kind, NodeId, Op};
use rnnc_runtime::plan::{Body, Index, Reg, Scope, Store, StoreFrame};

/// What is to be written.
#[derive(Clone, Copy)]
pub struct Stores<'a> {
    /// What was decided.
    pub fusion: &'a Fusion<'a>,
    /// Where things lie.
    pub buffers: &'a Buffers,
}

impl Stores<'_> {
    /// Writes a node's value to every buffer that holds it, and to its final window if it is a state.
    pub fn value(&self, body: &mut Body, id: NodeId, at: &Index, value: Reg) {
        let kind = self.fusion.graph.node(id).kind;
        if self.fusion.stored_by.contains_key(&id) {
            if let Some(buffer) = self.buffers.value.get(&id) {
                let frame = frame(kind);
                body.stores.push(Store {
                    buffer: *buffer,
                    frame,
                    index: at.clone(),
                    value,
                });
            }
            if !self.fusion.repeated.contains_key(&id) {
                self.copies(body, id, at, value);
            }
        }
        let remembered = matches!(self.fusion.graph.node(id).op, Op::State { .. });
        let last = self.buffers.last.get(&id);
        if let Some(buffer) = last.filter(|_| remembered && self.fusion.input_of(id).is_none()) {
            body.stores.push(Store {
                buffer: *buffer,
                frame: StoreFrame::Final,
                index: at.clone(),
                value,
            });
        }
    }

    /// Writes a value to the outputs that repeat it in every frame (or, against time, hold it as often as it exists).
    pub fn copies(&self, body: &mut Body, id: NodeId, at: &Index, value: Reg) {
        let frame = match self.fusion.graph.against_time {
            true => frame(self.fusion.graph.node(id).kind),
            false => StoreFrame::Now,
        };
        for buffer in self.buffers.copies.get(&id).into_iter().flatten() {
            body.stores.push(Store {
                buffer: *buffer,
                frame,
                index: at.clone(),
                value,
            });
        }
    }
}

fn frame(kind: Kind) -> StoreFrame {
    match kind {
        Kind::Const => StoreFrame::Const,
        Kind::Static => StoreFrame::Batch,
        Kind::Frame => StoreFrame::Now,
    }
}

/// How often a kernel of this kind runs.
pub fn scope(kind: Kind) -> Scope {
    match kind {
        Kind::Const => Scope::Const,
        Kind::Static => Scope::Batch,
        Kind::Frame => Scope::Frame,
    }
}

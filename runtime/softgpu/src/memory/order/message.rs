//! What a strong write carries to whoever reads it: what its thread knew at its release, or at a fence before; atomic operations
//! pass on what they read.

use std::sync::Arc;

use super::super::access::Scope;
use super::clock::join;
use super::view::{Numbering, View};
use super::within;

/// What threads of some blocks released.
#[derive(Clone, Debug)]
struct Part {
    view: Arc<View>,
    /// Those that may take it: the scope of the release, or of the fence.
    scope: Scope,
    /// The blocks that released it, from the first to the last.
    blocks: (u32, u32),
}

/// What a location carries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    parts: Vec<Part>,
    /// Who wrote it last.
    pub by: u32,
}

impl Message {
    /// Whether it carries nothing.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds what a thread of `block` tells to those in `scope`.
    pub fn add(&mut self, view: View, scope: Scope, block: u32, ids: Numbering) {
        let scope = if scope == Scope::System { Scope::Gpu } else { scope };
        let same = |part: &&mut Part| part.scope == scope && within(scope, part.blocks.0, block, ids);
        let Some(part) = self.parts.iter_mut().find(same) else {
            self.parts.push(Part {
                view: Arc::new(view),
                scope,
                blocks: (block, block),
            });
            return;
        };
        join(&mut part.view, &Arc::new(view), ids);
        part.blocks = (part.blocks.0.min(block), part.blocks.1.max(block));
    }

    /// What a reader of `block` may take with an acquire of `scope`, each with the blocks that released it.
    pub fn for_reader(
        &self,
        scope: Scope,
        block: u32,
        ids: Numbering,
    ) -> impl Iterator<Item = (&Arc<View>, (u32, u32))> {
        let open = move |part: &&Part| {
            within(part.scope, part.blocks.0, block, ids)
                && within(scope, part.blocks.0, block, ids)
                && within(scope, part.blocks.1, block, ids)
        };
        self.parts.iter().filter(open).map(|part| (&part.view, part.blocks))
    }
}

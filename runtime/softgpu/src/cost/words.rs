//! Who wrote the words by which warps tell each other something, and who has seen it.

use super::trace::Node;
use crate::memory::access::{LOCAL_BASE, SHARED_BASE, SHARED_WINDOW};
use crate::memory::hash::QuickMap;
use crate::ptx::ast::Space;
use std::collections::VecDeque;

/// A place in memory: device memory by its address, shared memory by block and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Device memory.
    Global(u64),
    /// Shared memory.
    Shared {
        /// The block.
        block: u32,
        /// The offset.
        offset: u32,
    },
}

/// The place of an address as a block of a cluster of `cluster` names it; none for local memory.
pub fn place(space: Space, address: u64, block: u32, cluster: u32) -> Option<Key> {
    let shared = |address: u64| {
        let window = address / SHARED_WINDOW;
        let owner = match window {
            0 => block,
            _ => block / cluster.max(1) * cluster.max(1) + (window as u32 - 1),
        };
        Some(Key::Shared {
            block: owner,
            offset: (address % SHARED_WINDOW) as u32,
        })
    };
    match space {
        Space::Shared => shared(address),
        Space::Generic if (SHARED_BASE..LOCAL_BASE).contains(&address) => shared(address - SHARED_BASE),
        Space::Generic if address >= LOCAL_BASE => None,
        Space::Global | Space::Generic => Some(Key::Global(address)),
        _ => None,
    }
}

/// Writes of a word, the last ones.
#[derive(Debug, Default)]
struct Writes {
    list: VecDeque<Node>,
    /// How many came before those of the list.
    before: usize,
}

/// Writes that are kept of a word.
const KEPT: usize = 4096;

/// All words that were written strongly.
#[derive(Debug, Default)]
pub struct Words {
    words: QuickMap<u64, Writes>,
}

impl Words {
    /// A store replaces what was there.
    pub fn store(&mut self, at: Key, writer: Node) {
        let writes = self.words.entry(code(at)).or_default();
        writes.before += writes.list.len();
        writes.list.clear();
        writes.list.push_back(writer);
    }

    /// An atomic operation builds on what was there.
    pub fn update(&mut self, at: Key, writer: Node) {
        let writes = self.words.entry(code(at)).or_default();
        writes.list.push_back(writer);
        if writes.list.len() > KEPT {
            writes.list.pop_front();
            writes.before += 1;
        }
    }

    /// The writes that a warp sees for the first time, its own left out. `seen` is what it knows.
    pub fn look(&self, at: Key, seen: &mut QuickMap<u64, usize>, warp: u32, news: &mut Vec<Node>) {
        let Some(writes) = self.words.get(&code(at)) else {
            return;
        };
        let end = writes.before + writes.list.len();
        let known = seen.insert(code(at), end).unwrap_or(0);
        let new = writes.list.iter().skip(known.saturating_sub(writes.before));
        for writer in new.filter(|writer| writer.0 != warp) {
            if !news.contains(writer) {
                news.push(*writer);
            }
        }
    }
}

/// A number for each place.
pub fn code(at: Key) -> u64 {
    match at {
        Key::Global(address) => address,
        Key::Shared { block, offset } => 1 << 63 | u64::from(block) << 32 | u64::from(offset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(words: &Words, seen: &mut QuickMap<u64, usize>) -> Vec<Node> {
        let mut news = Vec::new();
        words.look(Key::Global(8), seen, 0, &mut news);
        news
    }

    #[test]
    fn stores_replace_and_updates_add_up() {
        let (mut words, mut seen) = (Words::default(), QuickMap::default());
        assert!(look(&words, &mut seen).is_empty());
        words.update(Key::Global(8), (1, 0));
        words.update(Key::Global(8), (2, 0));
        words.update(Key::Global(8), (0, 0));
        assert_eq!(look(&words, &mut seen), [(1, 0), (2, 0)]);
        assert!(look(&words, &mut seen).is_empty());
        words.store(Key::Global(8), (3, 5));
        words.store(Key::Global(8), (3, 6));
        assert_eq!(look(&words, &mut seen), [(3, 6)]);
    }

    #[test]
    fn places_of_a_cluster() {
        let far = 3 * SHARED_WINDOW + 16;
        let expected = Key::Shared { block: 6, offset: 16 };
        assert_eq!(place(Space::Shared, far, 5, 4), Some(expected));
        assert_eq!(place(Space::Generic, SHARED_BASE + far, 5, 4), Some(expected));
        assert_eq!(
            place(Space::Shared, 16, 5, 4),
            Some(Key::Shared { block: 5, offset: 16 })
        );
        assert_eq!(place(Space::Generic, LOCAL_BASE + 16, 5, 4), None);
        assert_eq!(place(Space::Global, 64, 5, 4), Some(Key::Global(64)));
    }
}

//! What scenarios are made of: threads that read, write, meet, one request after another.

use super::*;

/// One thread of a scenario: block, thread in the block.
pub type Thread = (u32, u32);

/// Memory with a launch of blocks of 64 threads that runs, and a buffer.
pub struct Scene {
    pub memory: Memory,
    pub x: u64,
}

pub const ALL: u32 = u32::MAX;

impl Scene {
    pub fn new(blocks: u32, cluster: u32) -> Self {
        let mut memory = Memory::new(1);
        let x = memory.allocate(4096, "x");
        memory.write(x, &[0; 4096]).unwrap();
        memory.begin(&Shape {
            blocks,
            threads: 64,
            cluster,
            shared: 1024,
            local: 0,
            params: vec![],
        });
        (0..blocks).for_each(|block| memory.start_block(block));
        Self { memory, x }
    }

    pub fn warp(thread: Thread) -> Warp {
        Warp {
            block: thread.0,
            warp: thread.1 / 32,
        }
    }

    pub fn request<'a>(
        &mut self,
        thread: Thread,
        addresses: &'a Lanes<u64>,
        how: (Order, Scope),
        bytes: u32,
    ) -> Access<'a> {
        Access {
            warp: Self::warp(thread),
            lanes: 1 << (thread.1 % 32),
            space: Space::Generic,
            own_block: false,
            addresses,
            bytes,
            elements: 1,
            order: how.0,
            scope: how.1,
            at: 1,
        }
    }

    /// The address of a word: of the buffer, or of the thread's shared memory.
    pub fn address(&self, word: Word) -> u64 {
        match word {
            Word::X(word) => self.x + 4 * word,
            Word::S(word) => access::SHARED_BASE + 4 * word,
            Word::Peer(rank, word) => access::SHARED_BASE + (rank + 1) * access::SHARED_WINDOW + 4 * word,
        }
    }

    pub fn get(&mut self, thread: Thread, word: Word, how: (Order, Scope)) -> Result<u64, Kind> {
        let addresses = [self.address(word); 32];
        let a = self.request(thread, &addresses, how, 4);
        let mut out = [[0; 32]];
        self.memory.load(&a, &mut out, &mut [0]).map_err(|w| w.kind)?;
        Ok(out[0][(thread.1 % 32) as usize])
    }

    pub fn put(&mut self, thread: Thread, word: Word, how: (Order, Scope), value: u64) -> Result<(), Kind> {
        let addresses = [self.address(word); 32];
        let a = self.request(thread, &addresses, how, 4);
        self.memory.store(&a, &[[value; 32]], &[ALL]).map_err(|w| w.kind)
    }

    pub fn add(&mut self, thread: Thread, word: Word, how: (Order, Scope)) -> Result<u64, Kind> {
        let addresses = [self.address(word); 32];
        let a = self.request(thread, &addresses, how, 4);
        let mut out = [0; 32];
        self.memory
            .atomic(&a, Atomic::Add, &[1; 32], &[0; 32], &mut out)
            .map_err(|w| w.kind)?;
        Ok(out[(thread.1 % 32) as usize])
    }

    pub fn fence(&mut self, thread: Thread, how: (Order, Scope)) {
        self.memory
            .fence(Self::warp(thread), 1 << (thread.1 % 32), how.0, how.1);
    }

    pub fn barrier(&mut self, block: u32) {
        self.memory.barrier(block, &[(0, ALL), (1, ALL)], &[(0, ALL), (1, ALL)]);
    }

    pub fn warp_sync(&mut self, thread: Thread, lanes: u32) {
        self.memory.warp_sync(Self::warp(thread), lanes);
    }

    pub fn cluster_barrier(&mut self, release: bool, acquire: bool) {
        for block in 0..2 {
            (0..2).for_each(|warp| self.memory.cluster_arrive(Warp { block, warp }, ALL, release));
        }
        self.memory.cluster_complete(0);
        for block in 0..2 {
            (0..2).for_each(|warp| self.memory.cluster_wait(Warp { block, warp }, ALL, acquire));
        }
    }
}

/// A word: of the buffer, of the thread's shared memory, of that of the block of a rank.
#[derive(Clone, Copy)]
pub enum Word {
    X(u64),
    S(u64),
    Peer(u64, u64),
}

pub use Word::{Peer, S, X};

/// A weak access.
pub const PLAIN: (Order, Scope) = (Order::Weak, Scope::Block);

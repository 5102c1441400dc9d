//! Asynchronous operations and mbarriers, in scenarios. Each runs under several seeds: what is wrong is found whichever way the
//! seed lets a copy go.

use super::scene::*;
use super::*;

use Order::{Acquire, Relaxed, Release};
use Scope::{Block, Cluster};

impl Scene {
    fn seeded(seed: u64, blocks: u32, cluster: u32) -> Self {
        let mut s = Self::new(blocks, cluster);
        s.memory.random = random::Random::new(seed);
        s
    }

    /// `cp.async` of 16 bytes from word `from` of the buffer to word `to` of shared memory.
    fn copy(&mut self, thread: Thread, to: u64, from: u64) -> Result<(), Kind> {
        let (to, from) = ([4 * to; 32], [self.x + 4 * from; 32]);
        let op = AsyncOp::Copy {
            to: &to,
            from: &from,
            bytes: 16,
            read: None,
        };
        let a = CopyAsync {
            warp: Self::warp(thread),
            lanes: 1 << (thread.1 % 32),
            at: 900,
            op,
        };
        self.memory.copy_async(&a).map_err(|w| w.kind)
    }

    fn commit(&mut self, thread: Thread) {
        self.memory.commit_group(Self::warp(thread), 1 << (thread.1 % 32));
    }

    fn wait(&mut self, thread: Thread, most: Option<u32>) {
        while !self.memory.groups_done(Self::warp(thread), 1 << (thread.1 % 32), most) {}
    }

    /// An operation on the mbarrier at byte 512 of the shared memory of a rank (none: the own).
    fn bar(&mut self, thread: Thread, rank: Option<u64>, op: Mbarrier, operand: u64) -> Result<u64, Kind> {
        self.bar_with(
            thread,
            rank,
            op,
            operand,
            if is_test(op) {
                (Acquire, Block)
            } else {
                (Release, Block)
            },
        )
    }

    fn bar_with(
        &mut self,
        thread: Thread,
        rank: Option<u64>,
        op: Mbarrier,
        operand: u64,
        how: (Order, Scope),
    ) -> Result<u64, Kind> {
        let address = rank.map_or(S(128), |rank| Peer(rank, 128));
        let addresses = [self.address(address); 32];
        let a = self.request(thread, &addresses, how, 8);
        let mut out = [0; 32];
        self.memory
            .mbarrier(&a, op, &[operand; 32], &mut out)
            .map_err(|w| w.kind)?;
        Ok(out[(thread.1 % 32) as usize])
    }

    /// Polls a phase until it is complete, letting copies go on; an error after long.
    fn poll(&mut self, thread: Thread, parity: u64, how: (Order, Scope)) -> Result<(), Kind> {
        for _ in 0..100 {
            if self.bar_with(thread, None, Mbarrier::TestParity { may_wait: true }, parity, how)? == 1 {
                return Ok(());
            }
            self.memory.step().map_err(|w| w.kind)?;
        }
        Err(Kind::Deadlock)
    }

    /// A bulk copy of 64 bytes from the buffer to word 0 of shared memory, counted at the mbarrier.
    fn bulk_in(&mut self, thread: Thread) -> Result<(), Kind> {
        let (to, from, bar) = ([0; 32], [self.x; 32], [512; 32]);
        let op = AsyncOp::Bulk {
            to: (Space::Shared, &to),
            from: (Space::Global, &from),
            bytes: &[64; 32],
            done: Done::Mbarrier(&bar),
            multicast: None,
            reduce: None,
        };
        let a = CopyAsync {
            warp: Self::warp(thread),
            lanes: 1 << (thread.1 % 32),
            at: 901,
            op,
        };
        self.memory.copy_async(&a).map_err(|w| w.kind)
    }

    /// A bulk copy of 64 bytes from word 0 of shared memory to the buffer, in a group.
    fn bulk_out(&mut self, thread: Thread) -> Result<(), Kind> {
        let (to, from) = ([self.x; 32], [0; 32]);
        let op = AsyncOp::Bulk {
            to: (Space::Global, &to),
            from: (Space::Shared, &from),
            bytes: &[64; 32],
            done: Done::Group,
            multicast: None,
            reduce: None,
        };
        let a = CopyAsync {
            warp: Self::warp(thread),
            lanes: 1 << (thread.1 % 32),
            at: 902,
            op,
        };
        self.memory.copy_async(&a).map_err(|w| w.kind)?;
        self.memory.commit_bulk_group(Self::warp(thread), 1 << (thread.1 % 32));
        Ok(())
    }

    fn wait_bulk(&mut self, thread: Thread, only_read: bool) {
        while !self
            .memory
            .bulk_groups_done(Self::warp(thread), 1 << (thread.1 % 32), 0, only_read)
        {}
    }

    /// `st.async` of one word to word 0 of a peer, counted at its mbarrier.
    fn store_async(&mut self, thread: Thread, rank: u64, value: u64) -> Result<(), Kind> {
        let window = (rank + 1) * access::SHARED_WINDOW;
        let (to, bar) = ([window; 32], [window + 512; 32]);
        let op = AsyncOp::Store {
            to: &to,
            values: &[[value; 32]],
            bytes: 4,
            mbarrier: &bar,
        };
        let a = CopyAsync {
            warp: Self::warp(thread),
            lanes: 1 << (thread.1 % 32),
            at: 903,
            op,
        };
        self.memory.copy_async(&a).map_err(|w| w.kind)
    }
}

fn is_test(op: Mbarrier) -> bool {
    matches!(op, Mbarrier::TestParity { .. } | Mbarrier::TestState { .. })
}

const ARRIVE: Mbarrier = Mbarrier::Arrive {
    count_given: false,
    drop: false,
    expect: false,
    no_complete: false,
};
const ARRIVE_AND_EXPECT: Mbarrier = Mbarrier::Arrive {
    count_given: false,
    drop: false,
    expect: true,
    no_complete: false,
};
const TEST: Mbarrier = Mbarrier::TestParity { may_wait: false };
const WAIT: (Order, Scope) = (Acquire, Block);
const T: Thread = (0, 3);
const U: Thread = (0, 40);

/// Runs a scenario under several seeds, which must agree.
fn always(scenario: impl Fn(u64) -> Result<u64, Kind>) -> Result<u64, Kind> {
    let first = scenario(0);
    (1..20).for_each(|seed| assert_eq!(scenario(seed), first, "seed {seed}"));
    first
}

#[test]
fn a_copy_must_be_waited_for() {
    let run = |wait: Option<Option<u32>>, groups: u32, reader: Thread, meet: bool| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 1, 1);
            s.put(T, X(0), PLAIN, 7).unwrap();
            for group in 0..groups {
                s.copy(T, u64::from(group) * 4, 0)?;
                s.commit(T);
            }
            if let Some(most) = wait {
                s.wait(T, most);
            }
            if meet {
                s.barrier(0);
            }
            s.get(reader, S(0), PLAIN)
        })
    };
    assert_eq!(run(Some(Some(0)), 1, T, false), Ok(7));
    assert_eq!(run(Some(None), 1, T, false), Ok(7));
    assert_eq!(
        run(Some(Some(1)), 2, T, false),
        Ok(7),
        "the older of two groups is complete"
    );
    assert_eq!(run(Some(Some(0)), 1, U, true), Ok(7));
    assert_eq!(run(None, 1, T, false), Err(Kind::AsyncRace), "no wait");
    assert_eq!(
        run(Some(Some(1)), 1, T, false),
        Err(Kind::AsyncRace),
        "waits for all groups but this"
    );
    assert_eq!(
        run(None, 1, U, true),
        Err(Kind::AsyncRace),
        "a barrier does not wait for copies"
    );
    assert_eq!(
        run(Some(Some(0)), 1, U, false),
        Err(Kind::AsyncRace),
        "who waited told nobody"
    );
}

#[test]
fn the_source_of_a_copy_must_rest() {
    let run = |wait: bool| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 1, 1);
            s.copy(T, 0, 0)?;
            s.commit(T);
            if wait {
                s.wait(T, Some(0));
            }
            s.put(T, X(2), PLAIN, 9).map(|()| 0)
        })
    };
    assert_eq!(run(true), Ok(0));
    assert_eq!(run(false), Err(Kind::AsyncRace));
}

#[test]
fn the_seed_decides_when_the_source_is_read() {
    let value = |seed| {
        let mut s = Scene::seeded(seed, 1, 1);
        s.copy(T, 0, 0).unwrap();
        s.commit(T);
        let _race = s.put(T, X(0), PLAIN, 9);
        s.wait(T, Some(0));
        s.get(T, S(0), PLAIN).unwrap()
    };
    let values: std::collections::BTreeSet<u64> = (0..20).map(value).collect();
    assert_eq!(values.into_iter().collect::<Vec<_>>(), [0, 9]);
}

#[test]
fn arrivals_order_who_waits() {
    let run = |arrive: (Order, Scope), wait: bool| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 1, 1);
            s.bar((0, 0), None, Mbarrier::Init, 1)?;
            s.barrier(0);
            s.put(T, S(0), PLAIN, 5)?;
            s.bar_with(T, None, ARRIVE, 0, arrive)?;
            if wait {
                s.poll(U, 0, WAIT)?;
            }
            s.get(U, S(0), PLAIN)
        })
    };
    assert_eq!(run((Release, Block), true), Ok(5));
    assert_eq!(run((Relaxed, Block), true), Err(Kind::SharedRace));
    assert_eq!(run((Release, Block), false), Err(Kind::SharedRace));
}

#[test]
fn an_mbarrier_counts_within_its_limits() {
    let begun = || {
        let mut s = Scene::new(1, 1);
        s.bar((0, 0), None, Mbarrier::Init, 2).unwrap();
        s.barrier(0);
        s
    };
    let mut s = begun();
    let give = |count| {
        (
            Mbarrier::Arrive {
                count_given: true,
                drop: false,
                expect: false,
                no_complete: false,
            },
            count,
        )
    };
    let (op, three) = give(3);
    assert_eq!(
        s.bar(T, None, op, three),
        Err(Kind::Mbarrier),
        "more arrivals than are expected"
    );
    assert_eq!(
        s.bar(T, None, Mbarrier::ExpectTx, 1 << 20),
        Err(Kind::Mbarrier),
        "more bytes than can be counted"
    );
    let mut s = begun();
    assert_eq!(
        s.bar(T, None, Mbarrier::CompleteTx, 64),
        Ok(0),
        "bytes may come before they are expected"
    );
    assert_eq!(s.bar(T, None, ARRIVE_AND_EXPECT, 64).map(|_| ()), Ok(()));
    assert_eq!(s.bar(U, None, ARRIVE, 0).map(|_| ()), Ok(()));
    assert_eq!(s.bar(U, None, TEST, 0), Ok(1));
    assert_eq!(
        s.bar(T, None, Mbarrier::Init, 2),
        Err(Kind::Mbarrier),
        "it is one already"
    );
    assert_eq!(s.get(T, S(128), PLAIN), Err(Kind::Mbarrier), "its words are not data");
}

#[test]
fn an_mbarrier_must_be_known_to_be_initialised() {
    let mut s = Scene::new(1, 1);
    assert_eq!(s.bar(T, None, ARRIVE, 0), Err(Kind::Mbarrier), "never");
    s.bar((0, 0), None, Mbarrier::Init, 2).unwrap();
    assert_eq!(s.bar(T, None, ARRIVE, 0), Err(Kind::Mbarrier), "nothing orders it");
    assert_eq!(s.bar((0, 0), None, ARRIVE, 0).map(|_| ()), Ok(()));
    s.barrier(0);
    assert_eq!(s.bar(T, None, ARRIVE, 0).map(|_| ()), Ok(()));
    let remote = |fence: bool| {
        let mut s = Scene::new(2, 2);
        s.bar((0, 0), None, Mbarrier::Init, 1).unwrap();
        if fence {
            s.memory.fence_mbarrier_init(Warp { block: 0, warp: 0 }, 1);
        }
        s.cluster_barrier(false, true);
        s.bar((1, 5), Some(0), ARRIVE, 0).map(|_| ())
    };
    assert_eq!(remote(true), Ok(()));
    assert_eq!(remote(false), Err(Kind::Mbarrier));
}

#[test]
fn a_parity_that_is_two_phases_old_is_found() {
    let mut s = Scene::new(1, 1);
    s.bar((0, 0), None, Mbarrier::Init, 1).unwrap();
    s.barrier(0);
    s.bar(T, None, ARRIVE, 0).unwrap();
    assert_eq!(s.bar(U, None, TEST, 0), Ok(1));
    s.bar(T, None, ARRIVE, 0).unwrap();
    assert_eq!(s.bar(U, None, TEST, 1), Ok(1));
    s.bar(T, None, ARRIVE, 0).unwrap();
    s.bar(T, None, ARRIVE, 0).unwrap();
    assert_eq!(
        s.bar(U, None, TEST, 0),
        Err(Kind::Mbarrier),
        "two phases since it looked"
    );
}

#[test]
fn a_bulk_copy_is_seen_once_its_mbarrier_is() {
    let run = |wait: bool, reader: Thread| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 1, 1);
            s.bar((0, 0), None, Mbarrier::Init, 1)?;
            s.barrier(0);
            s.bar(T, None, ARRIVE_AND_EXPECT, 64)?;
            s.bulk_in(T)?;
            if wait {
                s.poll(reader, 0, WAIT)?;
            }
            s.get(reader, S(3), PLAIN)
        })
    };
    assert_eq!(run(true, T), Ok(0));
    assert_eq!(run(true, U), Ok(0));
    assert_eq!(run(false, T), Err(Kind::AsyncRace));
}

#[test]
fn a_bulk_copy_out_needs_a_proxy_fence_of_each_writer() {
    let run = |fences: &[Thread]| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 1, 1);
            (0..16).for_each(|word| s.put((0, word * 4), S(u64::from(word)), PLAIN, 6).unwrap());
            for &thread in fences {
                s.memory.proxy_fence(Scene::warp(thread), 1 << (thread.1 % 32));
            }
            s.barrier(0);
            s.bulk_out((0, 0))?;
            s.wait_bulk((0, 0), false);
            s.get((0, 0), X(5), PLAIN)
        })
    };
    let everybody: Vec<Thread> = (0..16).map(|word| (0, word * 4)).collect();
    assert_eq!(run(&everybody), Ok(6));
    assert_eq!(run(&everybody[1..]), Err(Kind::AsyncRace));
    assert_eq!(run(&[]), Err(Kind::AsyncRace));
}

#[test]
fn waiting_for_the_read_of_a_bulk_copy_frees_the_source_and_no_more() {
    let run = |only_read, touch: Word, write| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 1, 1);
            (0..16).for_each(|word| s.put(T, S(word), PLAIN, 6).unwrap());
            s.memory.proxy_fence(Scene::warp(T), ALL);
            s.bulk_out(T)?;
            s.wait_bulk(T, only_read);
            if write {
                s.put(T, touch, PLAIN, 1).map(|()| 1)
            } else {
                s.get(T, touch, PLAIN)
            }
        })
    };
    assert_eq!(run(true, S(0), true), Ok(1));
    assert_eq!(run(false, X(0), false), Ok(6));
    assert_eq!(run(true, X(0), false), Err(Kind::AsyncRace));
}

#[test]
fn a_store_to_a_peer_is_acquired_at_the_scope_of_the_cluster() {
    let run = |wait: (Order, Scope)| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 2, 2);
            s.bar((1, 0), None, Mbarrier::Init, 1)?;
            s.memory.fence_mbarrier_init(Warp { block: 1, warp: 0 }, 1);
            s.cluster_barrier(true, true);
            s.bar((1, 0), None, ARRIVE_AND_EXPECT, 4)?;
            s.store_async((0, 7), 1, 42)?;
            s.poll((1, 5), 0, wait)?;
            s.get((1, 5), S(0), PLAIN)
        })
    };
    assert_eq!(run((Acquire, Cluster)), Ok(42));
    assert_eq!(run((Acquire, Block)), Err(Kind::AsyncRace));
    let mut alone = Scene::new(2, 1);
    assert_eq!(alone.store_async((0, 7), 0, 1), Err(Kind::Cluster), "without a cluster");
}

#[test]
fn a_peer_must_be_met_first_and_last() {
    let mut s = Scene::new(2, 2);
    assert_eq!(
        s.put((0, 0), Peer(1, 0), PLAIN, 1),
        Err(Kind::Cluster),
        "it may not run yet"
    );
    let exit = |meet: bool| {
        let mut s = Scene::new(2, 2);
        s.cluster_barrier(true, true);
        s.put((0, 0), Peer(1, 0), PLAIN, 1).unwrap();
        if meet {
            s.cluster_barrier(true, true);
        }
        s.memory.end_block(1).map_err(|w| w.kind)
    };
    assert_eq!(exit(true), Ok(()));
    assert_eq!(
        exit(false),
        Err(Kind::Cluster),
        "it exits while a peer may still write to it"
    );
    let mut s = Scene::new(2, 2);
    s.cluster_barrier(true, true);
    s.memory.end_block(1).unwrap();
    assert_eq!(s.put((0, 0), Peer(1, 0), PLAIN, 1), Err(Kind::Cluster), "it has exited");
}

#[test]
fn copies_can_arrive_at_an_mbarrier() {
    let run = |arrive: bool| {
        always(|seed| {
            let mut s = Scene::seeded(seed, 1, 1);
            s.put(T, X(0), PLAIN, 7).unwrap();
            s.bar((0, 0), None, Mbarrier::Init, 1)?;
            s.barrier(0);
            s.copy(T, 0, 0)?;
            if arrive {
                let addresses = [s.address(S(128)); 32];
                let a = s.request(T, &addresses, (Release, Block), 8);
                s.memory.cp_async_arrive(&a, true).map_err(|w| w.kind)?;
            } else {
                s.bar(T, None, ARRIVE, 0)?;
            }
            s.poll(U, 0, WAIT)?;
            s.get(U, S(0), PLAIN)
        })
    };
    assert_eq!(run(true), Ok(7));
    assert_eq!(
        run(false),
        Err(Kind::AsyncRace),
        "a plain arrival does not wait for copies"
    );
}

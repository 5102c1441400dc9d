//! The order of accesses, in scenarios: what races, and the near miss that does not.

use super::scene::*;
use super::*;

use Order::{Acquire, AcquireRelease, Relaxed, Release};
use Scope::{Block, Cluster, Gpu, System};

const FLAG: Word = X(100);
const DATA: Word = X(0);

/// A writes data, then tells; B learns, then reads the data.
fn hand_over(
    (a, b): (Thread, Thread),
    tell: impl Fn(&mut Scene, Thread),
    learn: impl Fn(&mut Scene, Thread),
) -> Result<u64, Kind> {
    let mut s = Scene::new(4, 2);
    s.put(a, DATA, PLAIN, 7).unwrap();
    tell(&mut s, a);
    learn(&mut s, b);
    s.get(b, DATA, PLAIN)
}

fn store(order: Order, scope: Scope) -> impl Fn(&mut Scene, Thread) {
    move |s, a| s.put(a, FLAG, (order, scope), 1).unwrap()
}

fn load(order: Order, scope: Scope) -> impl Fn(&mut Scene, Thread) {
    move |s, b| assert_eq!(s.get(b, FLAG, (order, scope)), Ok(1))
}

fn fence_and(order: Order, scope: Scope, then: impl Fn(&mut Scene, Thread)) -> impl Fn(&mut Scene, Thread) {
    move |s, t| {
        s.fence(t, (order, scope));
        then(s, t);
    }
}

fn and_fence(first: impl Fn(&mut Scene, Thread), order: Order, scope: Scope) -> impl Fn(&mut Scene, Thread) {
    move |s, t| {
        first(s, t);
        s.fence(t, (order, scope));
    }
}

const FAR: (Thread, Thread) = ((0, 3), (2, 40));
const RACE: Result<u64, Kind> = Err(Kind::GlobalRace);

#[test]
fn a_release_that_is_acquired_orders() {
    assert_eq!(hand_over(FAR, store(Release, Gpu), load(Acquire, Gpu)), Ok(7));
    assert_eq!(hand_over(FAR, store(Release, System), load(Acquire, Gpu)), Ok(7));
    assert_eq!(
        hand_over(((0, 3), (1, 3)), store(Release, Cluster), load(Acquire, Cluster)),
        Ok(7)
    );
    assert_eq!(
        hand_over(((0, 3), (0, 50)), store(Release, Block), load(Acquire, Block)),
        Ok(7)
    );
}

#[test]
fn a_flag_that_is_only_relaxed_orders_nothing() {
    assert_eq!(hand_over(FAR, store(Relaxed, Gpu), load(Relaxed, Gpu)), RACE);
    assert_eq!(hand_over(FAR, store(Release, Gpu), load(Relaxed, Gpu)), RACE);
    assert_eq!(hand_over(FAR, store(Relaxed, Gpu), load(Acquire, Gpu)), RACE);
}

#[test]
fn a_fence_makes_a_relaxed_flag_order() {
    let tell = || fence_and(AcquireRelease, Gpu, store(Relaxed, Gpu));
    let learn = || and_fence(load(Relaxed, System), AcquireRelease, Gpu);
    assert_eq!(hand_over(FAR, tell(), learn()), Ok(7));
    assert_eq!(hand_over(FAR, tell(), load(Acquire, Gpu)), Ok(7));
    assert_eq!(hand_over(FAR, store(Release, Gpu), learn()), Ok(7));
    // The fence on the wrong side of the flag, or of too narrow a scope.
    assert_eq!(
        hand_over(FAR, and_fence(store(Relaxed, Gpu), AcquireRelease, Gpu), learn()),
        RACE
    );
    assert_eq!(
        hand_over(FAR, tell(), fence_and(AcquireRelease, Gpu, load(Relaxed, Gpu))),
        RACE
    );
    assert_eq!(
        hand_over(FAR, fence_and(AcquireRelease, Block, store(Relaxed, Gpu)), learn()),
        RACE
    );
    assert_eq!(
        hand_over(FAR, tell(), and_fence(load(Relaxed, Gpu), AcquireRelease, Block)),
        RACE
    );
    assert_eq!(
        hand_over(FAR, tell(), and_fence(load(Relaxed, Gpu), Release, Gpu)),
        RACE
    );
}

#[test]
fn a_scope_too_narrow_is_a_race_on_the_flag() {
    let mut s = Scene::new(4, 2);
    s.put((0, 0), FLAG, (Release, Block), 1).unwrap();
    assert_eq!(s.get((1, 0), FLAG, (Acquire, Gpu)), RACE);
    let mut s = Scene::new(4, 2);
    s.put((0, 0), FLAG, (Release, Cluster), 1).unwrap();
    assert_eq!(s.get((1, 0), FLAG, (Acquire, Cluster)), Ok(1));
    assert_eq!(s.get((2, 0), FLAG, (Acquire, Cluster)), RACE);
}

#[test]
fn polling_with_a_weak_load_is_a_race_and_with_a_volatile_one_is_not() {
    let mut s = Scene::new(2, 1);
    s.put((0, 0), FLAG, (Relaxed, System), 1).unwrap();
    assert_eq!(s.get((1, 0), FLAG, (Relaxed, System)), Ok(1));
    assert_eq!(s.get((1, 0), FLAG, PLAIN), RACE);
}

#[test]
fn atomics_pass_on_what_they_read() {
    let mut s = Scene::new(3, 1);
    s.put((0, 0), DATA, PLAIN, 7).unwrap();
    s.fence((0, 0), (AcquireRelease, Gpu));
    s.add((0, 0), FLAG, (Relaxed, Gpu)).unwrap();
    // Another block adds without any fence; a third acquires what both wrote.
    s.add((1, 0), FLAG, (Relaxed, Gpu)).unwrap();
    assert_eq!(s.get((2, 0), FLAG, (Acquire, Gpu)), Ok(2));
    assert_eq!(s.get((2, 0), DATA, PLAIN), Ok(7));
    // A plain store in between breaks the chain.
    let mut s = Scene::new(3, 1);
    s.put((0, 0), DATA, PLAIN, 7).unwrap();
    s.add((0, 0), FLAG, (Release, Gpu)).unwrap();
    s.put((1, 0), FLAG, (Relaxed, Gpu), 9).unwrap();
    assert_eq!(s.get((2, 0), FLAG, (Acquire, Gpu)), Ok(9));
    assert_eq!(s.get((2, 0), DATA, PLAIN), RACE);
}

/// The barrier of a grid of blocks by a counter: all write a word, meet, and read the next block's.
fn grid_barrier(blocks: u32, release: Order, acquire: Order, whole: bool) -> Result<(), Kind> {
    let mut s = Scene::new(blocks, 1);
    for step in 0..3 {
        for block in 0..blocks {
            for thread in [1, 33] {
                s.put((block, thread), X(u64::from(block * 64 + thread)), PLAIN, 1)?;
            }
            if whole {
                s.barrier(block);
            }
            s.add((block, 0), X(1000), (release, Gpu))?;
        }
        for block in 0..blocks {
            assert_eq!(
                s.get((block, 0), X(1000), (acquire, Gpu)),
                Ok(u64::from(blocks * (step + 1)))
            );
            s.barrier(block);
            for thread in [1, 33] {
                s.get(
                    (block, 63 - thread),
                    X(u64::from((block + 1) % blocks * 64 + thread)),
                    PLAIN,
                )?;
            }
            // The readers meet before the next round writes: a second counter.
            s.barrier(block);
            s.add((block, 0), X(1001), (release, Gpu))?;
        }
        for block in 0..blocks {
            s.get((block, 0), X(1001), (acquire, Gpu))?;
            s.barrier(block);
        }
    }
    Ok(())
}

#[test]
fn a_counter_orders_a_grid() {
    assert_eq!(grid_barrier(5, Release, Acquire, true), Ok(()));
    assert_eq!(grid_barrier(5, Relaxed, Acquire, true), Err(Kind::GlobalRace));
    assert_eq!(grid_barrier(5, Release, Relaxed, true), Err(Kind::GlobalRace));
    assert_eq!(
        grid_barrier(5, Release, Acquire, false),
        Err(Kind::GlobalRace),
        "without the block's barrier before"
    );
}

#[test]
fn a_block_orders_its_shared_memory_by_its_barrier() {
    let mut s = Scene::new(1, 1);
    (0..64).for_each(|t| s.put((0, t), S(u64::from(t)), PLAIN, u64::from(t)).unwrap());
    assert_eq!(s.get((0, 5), S(5), PLAIN), Ok(5), "one's own write");
    assert_eq!(
        s.get((0, 5), S(6), PLAIN),
        Err(Kind::SharedRace),
        "a neighbour in the warp"
    );
    assert_eq!(s.get((0, 5), S(40), PLAIN), Err(Kind::SharedRace), "another warp");
    s.barrier(0);
    (0..64).for_each(|t| assert_eq!(s.get((0, t), S(u64::from(63 - t)), PLAIN), Ok(u64::from(63 - t))));
    assert_eq!(
        s.put((0, 5), S(6), PLAIN, 0),
        Err(Kind::SharedRace),
        "it was read since the barrier"
    );
    s.barrier(0);
    assert_eq!(s.put((0, 5), S(7), PLAIN, 0), Ok(()));
}

#[test]
fn a_warp_orders_by_syncwarp_only_those_in_the_mask() {
    let mut s = Scene::new(1, 1);
    s.put((0, 3), S(0), PLAIN, 1).unwrap();
    s.warp_sync((0, 3), 0xff);
    assert_eq!(s.get((0, 7), S(0), PLAIN), Ok(1));
    assert_eq!(s.get((0, 8), S(0), PLAIN), Err(Kind::SharedRace));
    s.warp_sync((0, 3), ALL);
    assert_eq!(s.put((0, 31), S(0), PLAIN, 2), Ok(()));
    assert_eq!(
        s.get((0, 32), S(0), PLAIN),
        Err(Kind::SharedRace),
        "the other warp was not there"
    );
}

#[test]
fn readers_together_are_all_remembered() {
    let mut s = Scene::new(3, 1);
    for block in 0..3 {
        (0..64).for_each(|t| assert_eq!(s.get((block, t), DATA, PLAIN), Ok(0)));
    }
    // Blocks 0 and 1 tell thread (2, 0); the other threads of block 2 do not.
    for block in 0..2 {
        s.barrier(block);
        s.add((block, 0), FLAG, (Release, Gpu)).unwrap();
    }
    s.get((2, 0), FLAG, (Acquire, Gpu)).unwrap();
    assert_eq!(s.put((2, 0), DATA, PLAIN, 1), Err(Kind::GlobalRace));
    let mut s = Scene::new(2, 1);
    (0..64).for_each(|t| assert_eq!(s.get((0, t), DATA, PLAIN), Ok(0)));
    s.barrier(0);
    s.add((0, 0), FLAG, (Release, Gpu)).unwrap();
    s.get((1, 0), FLAG, (Acquire, Gpu)).unwrap();
    assert_eq!(s.put((1, 0), DATA, PLAIN, 1), Ok(()));
}

#[test]
fn readers_that_release_one_by_one_are_known_one_by_one() {
    let mut s = Scene::new(2, 1);
    for t in 0..64 {
        s.get((0, t), DATA, PLAIN).unwrap();
        s.add((0, t), FLAG, (Release, Gpu)).unwrap();
    }
    s.get((1, 9), FLAG, (Acquire, Gpu)).unwrap();
    assert_eq!(s.put((1, 9), DATA, PLAIN, 1), Ok(()), "each reader released");
    let mut s = Scene::new(2, 1);
    for t in 0..64 {
        s.get((0, t), DATA, PLAIN).unwrap();
        if t != 17 {
            s.add((0, t), FLAG, (Release, Gpu)).unwrap();
        }
    }
    s.get((1, 9), FLAG, (Acquire, Gpu)).unwrap();
    assert_eq!(s.put((1, 9), DATA, PLAIN, 1), Err(Kind::GlobalRace), "one did not");
}

#[test]
fn bytes_of_one_word_are_apart() {
    let mut s = Scene::new(2, 1);
    let half = |s: &mut Scene, thread, half: u64, value| {
        let addresses = [s.x + 2 * half; 32];
        let a = s.request(thread, &addresses, PLAIN, 2);
        s.memory.store(&a, &[[value; 32]], &[ALL]).map_err(|w| w.kind)
    };
    assert_eq!(half(&mut s, (0, 0), 0, 1), Ok(()));
    assert_eq!(half(&mut s, (1, 0), 1, 2), Ok(()));
    assert_eq!(half(&mut s, (1, 0), 0, 2), Err(Kind::GlobalRace));
    let mut s = Scene::new(2, 1);
    s.put((0, 0), X(0), PLAIN, 1).unwrap();
    assert_eq!(
        half(&mut s, (1, 0), 1, 2),
        Err(Kind::GlobalRace),
        "a word was written before, then its half"
    );
}

#[test]
fn strong_accesses_of_different_size_race() {
    let mut s = Scene::new(2, 1);
    let addresses = [s.x; 32];
    let a = s.request((0, 0), &addresses, (Relaxed, Gpu), 8);
    s.memory.store(&a, &[[1; 32]], &[ALL]).unwrap();
    assert_eq!(s.get((1, 0), X(0), (Relaxed, Gpu)), RACE);
}

#[test]
fn lanes_of_one_store_may_agree_but_not_differ() {
    let mut s = Scene::new(1, 1);
    let addresses = [s.address(S(0)); 32];
    let a = Access {
        lanes: 0xf0f,
        ..s.request((0, 0), &addresses, PLAIN, 4)
    };
    s.memory.store(&a, &[[5; 32]], &[ALL]).unwrap();
    s.barrier(0);
    let values = std::array::from_fn(|lane| lane as u64);
    assert_eq!(
        s.memory.store(&a, &[values], &[ALL]).map_err(|w| w.kind),
        Err(Kind::SharedRace)
    );
}

#[test]
fn a_load_that_is_not_coherent_must_not_meet_a_write() {
    let mut s = Scene::new(1, 1);
    s.put((0, 0), X(5), PLAIN, 1).unwrap();
    s.barrier(0);
    assert_eq!(s.get((0, 0), X(4), (Order::NonCoherent, Block)), Ok(0));
    assert_eq!(
        s.get((0, 0), X(5), (Order::NonCoherent, Block)),
        Err(Kind::NonCoherent),
        "written before, if in order"
    );
    assert_eq!(s.put((0, 0), X(4), PLAIN, 1), Err(Kind::NonCoherent), "written after");
    assert_eq!(s.put((0, 0), X(3), PLAIN, 1), Ok(()));
}

#[test]
fn a_launch_comes_after_the_one_before() {
    let mut s = Scene::new(2, 1);
    s.put((0, 0), DATA, PLAIN, 3).unwrap();
    s.memory.end().unwrap();
    s.memory.begin(&Shape {
        blocks: 1,
        threads: 64,
        cluster: 1,
        ..Shape::default()
    });
    s.memory.start_block(0);
    assert_eq!(s.get((0, 50), DATA, (Order::NonCoherent, Block)), Ok(3));
}

#[test]
fn a_cluster_orders_by_its_barrier_unless_relaxed() {
    let exchange = |release, acquire| {
        let mut s = Scene::new(2, 2);
        s.cluster_barrier(true, true);
        s.put((0, 3), Peer(1, 0), PLAIN, 1)?;
        s.cluster_barrier(release, acquire);
        s.get((1, 60), S(0), PLAIN)
    };
    assert_eq!(exchange(true, true), Ok(1));
    assert_eq!(exchange(false, true), Err(Kind::SharedRace));
    assert_eq!(exchange(true, false), Err(Kind::SharedRace));
}

#[test]
fn a_named_barrier_orders_only_those_at_it() {
    let mut s = Scene::new(1, 1);
    s.put((0, 0), S(0), PLAIN, 1).unwrap();
    // Warp 0 arrives without waiting; warp 1 waits.
    s.memory.barrier(0, &[(0, ALL), (1, ALL)], &[(1, ALL)]);
    assert_eq!(s.get((0, 40), S(0), PLAIN), Ok(1));
    s.put((0, 40), S(1), PLAIN, 1).unwrap();
    assert_eq!(s.get((0, 0), S(1), PLAIN), Err(Kind::SharedRace), "warp 0 never waited");
}

/// What a thread may read of a word that another wrote last, over many seeds; `learn` may order it first.
fn readings(elements: u32, ordered: bool) -> Vec<Vec<u64>> {
    let reading = |seed| {
        let mut s = Scene::new(2, 1);
        s.memory.random = random::Random::new(seed);
        let addresses = [s.x; 32];
        let store = Access {
            elements,
            ..s.request((0, 0), &addresses, (Relaxed, Gpu), 4)
        };
        s.memory
            .store(
                &store,
                &[[7; 32]; 2][..elements as usize],
                &[ALL; 2][..elements as usize],
            )
            .unwrap();
        if ordered {
            s.put((0, 0), FLAG, (Release, Gpu), 1).unwrap();
            s.get((1, 0), FLAG, (Acquire, Gpu)).unwrap();
        }
        let load = Access {
            elements,
            ..s.request((1, 0), &addresses, (Relaxed, Gpu), 4)
        };
        let (mut out, mut valid) = ([[0; 32]; 2], [0; 2]);
        let rows = elements as usize;
        s.memory.load(&load, &mut out[..rows], &mut valid[..rows]).unwrap();
        (0..rows).map(|row| out[row][0]).collect::<Vec<_>>()
    };
    let all: std::collections::BTreeSet<Vec<u64>> = (0..64).map(reading).collect();
    all.into_iter().collect()
}

#[test]
fn a_relaxed_read_may_be_old_and_a_vector_may_tear() {
    assert_eq!(readings(1, false), [[0], [7]]);
    assert_eq!(readings(1, true), [[7]]);
    assert_eq!(readings(2, false), [[0, 0], [0, 7], [7, 0], [7, 7]]);
    assert_eq!(readings(2, true), [[7, 7]]);
}

#[test]
fn who_has_seen_a_value_never_sees_an_older_one() {
    for seed in 0..64 {
        let mut s = Scene::new(2, 1);
        s.memory.random = random::Random::new(seed);
        s.put((0, 0), DATA, (Relaxed, Gpu), 7).unwrap();
        let values: Vec<u64> = (0..20).map(|_| s.get((1, 0), DATA, (Relaxed, Gpu)).unwrap()).collect();
        assert!(values.is_sorted(), "{values:?}");
        assert_eq!(values.last(), Some(&7));
    }
}

#[test]
fn of_many_readers_a_sample_is_remembered() {
    // 60 blocks read 64 words; all but one tell the writer. Each word remembers some of them, and some word the one.
    let blocks = 60;
    let mut s = Scene::new(blocks, 1);
    for block in 0..blocks {
        (0..64).for_each(|word| assert_eq!(s.get((block, 0), X(word), PLAIN), Ok(0)));
        if block != 20 {
            s.add((block, 0), X(100), (Release, Gpu)).unwrap();
        }
    }
    s.get((3, 0), X(100), (Acquire, Gpu)).unwrap();
    let found = (0..64)
        .filter(|&word| s.put((3, 0), X(word), PLAIN, 1).is_err())
        .count();
    assert!(found > 16, "{found} of 64");
}

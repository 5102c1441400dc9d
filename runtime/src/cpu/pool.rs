//! A few threads that wait for work: runs a function on all of them at once, or tasks on whichever is free.
//!
//! Results never depend on the number of threads: tasks are cut by what is computed, and each computes its numbers in an
//! order of its own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A function that each member of the team runs once, given its number.
type Job = dyn Fn(usize) + Sync;

/// Memory that a thread keeps from task to task; it grows to what kernels need.
#[derive(Default)]
pub(super) struct Scratch {
    /// Registers of programs.
    pub(super) registers: Vec<f32>,
    /// Rows of a product.
    pub(super) operands: Vec<f32>,
    /// Sums of a product, or slots of a loop.
    pub(super) sums: Vec<f32>,
    /// Where the slots lie.
    pub(super) slots: Vec<super::vector::SlotView>,
    /// Factors and sums of a total.
    pub(super) areas: super::total::Areas,
}

/// The threads, each with scratch memory that it keeps.
pub(super) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    scratch: Vec<Mutex<Scratch>>,
}

struct Shared {
    state: Mutex<State>,
    start: Condvar,
    done: Condvar,
    /// Copy of `State::round`, to be watched without the lock.
    round: AtomicUsize,
}

#[derive(Default)]
struct State {
    round: usize,
    job: Option<JobPointer>,
    /// Workers that have not finished this round.
    running: usize,
    panic: Option<Box<dyn Any + Send>>,
    stop: bool,
}

/// A job whose lifetime is vouched for by [`Pool::team`], which waits until nobody uses it.
#[derive(Clone, Copy)]
struct JobPointer(*const Job);

// SAFETY: the pointee is Sync, and `Pool::team` keeps it alive until every worker is done with it.
unsafe impl Send for JobPointer {}

/// Looks at a flag that another thread is about to change so often before sleeping: some microseconds.
const LOOKS: usize = 2_000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of a job is carried to the caller; what the lock protects is sound all the same.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool of `threads` >= 1 threads, the caller's included.
    pub(super) fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            start: Condvar::new(),
            done: Condvar::new(),
            round: AtomicUsize::new(0),
        });
        let worker = |member: usize| {
            let shared = Arc::clone(&shared);
            let name = format!("rnnc-cpu-{member}");
            std::thread::Builder::new()
                .name(name)
                .spawn(move || work(&shared, member))
        };
        // A machine that grants fewer threads gets a smaller pool.
        let workers: Vec<JoinHandle<()>> = (1..threads).map_while(|member| worker(member).ok()).collect();
        let scratch = (0..=workers.len()).map(|_| Mutex::default()).collect();
        Pool {
            shared,
            workers,
            scratch,
        }
    }

    /// How many threads there are.
    pub(super) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs the function once on every thread at once, with the thread's number and scratch memory.
    pub(super) fn team(&self, f: impl Fn(usize, &mut Scratch) + Sync) {
        let job = |member: usize| f(member, &mut lock(&self.scratch[member]));
        if self.workers.is_empty() {
            return job(0);
        }
        self.start(&job);
        let own = catch_unwind(AssertUnwindSafe(|| job(0)));
        // Even after a panic: the workers still use what `job` borrows.
        let theirs = self.finish();
        if let Some(panic) = own.err().or(theirs) {
            resume_unwind(panic);
        }
    }

    fn start(&self, job: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes; `team` waits in `finish` before what the job borrows is gone.
        let job = JobPointer(unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Job>(job) });
        let mut state = lock(&self.shared.state);
        state.job = Some(job);
        state.running = self.workers.len();
        state.round += 1;
        self.shared.round.store(state.round, Ordering::Release);
        drop(state);
        self.shared.start.notify_all();
    }

    fn finish(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = lock(&self.shared.state);
        while state.running > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
        state.panic.take()
    }

    /// Runs tasks `0..tasks` in order on the calling thread.
    pub(super) fn alone(&self, tasks: usize, f: impl Fn(usize, &mut Scratch)) {
        let scratch = &mut lock(&self.scratch[0]);
        (0..tasks).for_each(|task| f(task, scratch));
    }

    /// Runs tasks `0..tasks`, each once, on whichever thread is free.
    pub(super) fn tasks(&self, tasks: usize, f: impl Fn(usize, &mut Scratch) + Sync) {
        if tasks <= 1 || self.workers.is_empty() {
            return self.alone(tasks, f);
        }
        let next = AtomicUsize::new(0);
        self.team(|_, scratch| {
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= tasks {
                    break;
                }
                f(task, scratch);
            }
        });
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).stop = true;
        self.shared.round.fetch_add(1, Ordering::Release);
        self.shared.start.notify_all();
        for worker in self.workers.drain(..) {
            // Panics of jobs were caught in the worker: it ends normally.
            let _ = worker.join();
        }
    }
}

fn work(shared: &Shared, member: usize) {
    let mut seen = 0;
    while let Some((round, job)) = next_job(shared, seen) {
        seen = round;
        // SAFETY: `Pool::team` keeps the job alive until `running` is 0.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*job.0)(member) }));
        let mut state = lock(&shared.state);
        if let Err(panic) = result {
            state.panic = Some(panic);
        }
        state.running -= 1;
        if state.running == 0 {
            shared.done.notify_one();
        }
    }
}

fn next_job(shared: &Shared, seen: usize) -> Option<(usize, JobPointer)> {
    let news = |_: &usize| shared.round.load(Ordering::Acquire) != seen;
    let _ = (0..LOOKS).inspect(|_| std::hint::spin_loop()).find(news);
    let mut state = lock(&shared.state);
    loop {
        match state.job {
            _ if state.stop => return None,
            Some(job) if state.round != seen => return Some((state.round, job)),
            _ => state = shared.start.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Lets members of a team wait for one another, again and again.
pub(super) struct Barrier {
    members: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    pub(super) fn new(members: usize) -> Barrier {
        Barrier {
            members,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Returns when all members have arrived; what they wrote before is visible after.
    pub(super) fn wait(&self) {
        if self.members == 1 {
            return;
        }
        let round = self.round.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round {
            assert!(
                !self.broken.load(Ordering::Relaxed),
                "another thread of the team panicked"
            );
            looks += 1;
            // The machine may have fewer free cores than threads.
            if looks > LOOKS {
                std::thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    }

    /// While it lives, a panic of its thread frees the others from waiting.
    pub(super) fn member(&self) -> Member<'_> {
        Member(self)
    }
}

/// A thread that takes part in a barrier.
pub(super) struct Member<'a>(&'a Barrier);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        let pool = Pool::new(3);
        for tasks in [0, 1, 2, 1000] {
            let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            pool.tasks(tasks, |task, _| {
                counts[task].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn members_see_what_others_wrote_before_the_barrier() {
        let pool = Pool::new(3);
        let barrier = Barrier::new(pool.threads());
        let turns: Vec<AtomicUsize> = (0..pool.threads()).map(|_| AtomicUsize::new(0)).collect();
        pool.team(|member, _| {
            for turn in 1..200 {
                turns[member].store(turn, Ordering::Relaxed);
                barrier.wait();
                assert!(turns.iter().all(|t| t.load(Ordering::Relaxed) == turn));
                barrier.wait();
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(3);
        let barrier = Barrier::new(pool.threads());
        let failed = catch_unwind(AssertUnwindSafe(|| {
            pool.team(|member, _| {
                let _member = barrier.member();
                assert!(member != 1, "a member fails");
                barrier.wait();
            });
        }));
        assert!(failed.is_err());
        pool.tasks(5, |_, _| {});
    }
}

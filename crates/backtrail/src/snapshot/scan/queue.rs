//! A work queue that grows while it is processed.

use std::sync::{Condvar, Mutex};
use std::thread;

use crate::error::Result;
use crate::sync::{lock, wait};

/// Work for several threads, newest first: recently found directories are still in the
/// cache, and the queue stays short.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState<T> {
    jobs: Vec<T>,
    /// The number of running jobs, which may add more.
    running: usize,
    waiting: usize,
    /// Whether a thread failed.
    stopped: bool,
}

impl<T: Send> Queue<T> {
    pub(super) fn new(first: T) -> Self {
        let state = QueueState {
            jobs: vec![first],
            running: 0,
            waiting: 0,
            stopped: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Runs `threads` threads until no work is left and returns the result of each. The
    /// first failure stops all of them.
    pub(super) fn work<R: Send>(
        &self,
        threads: usize,
        worker: impl Fn(&Self) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        in_parallel(threads, || {
            let stop = StopOnDrop(self);
            let done = worker(self);
            if done.is_ok() {
                std::mem::forget(stop);
            }
            done
        })
    }

    /// Takes a job, waiting while running jobs may add more. Returns `None` when
    /// everything is done.
    pub(super) fn next(&self) -> Option<(T, Running<'_, T>)> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return None;
            }
            if let Some(job) = state.jobs.pop() {
                state.running += 1;
                return Some((job, Running(self)));
            }
            if state.running == 0 {
                return None;
            }
            state.waiting += 1;
            state = wait(&self.changed, state);
            state.waiting -= 1;
        }
    }
}

/// A running job.
pub(super) struct Running<'a, T: Send>(&'a Queue<T>);

impl<T: Send> Running<'_, T> {
    /// Ends the job and adds the work that it found.
    pub(super) fn finish(self, found: Vec<T>) {
        lock(&self.0.state).jobs.extend(found);
    }
}

impl<T: Send> Drop for Running<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.running -= 1;
        if state.waiting > 0 && (!state.jobs.is_empty() || state.running == 0) {
            self.0.changed.notify_all();
        }
    }
}

/// Stops the other threads when a thread fails or panics.
struct StopOnDrop<'a, T: Send>(&'a Queue<T>);

impl<T: Send> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.state).stopped = true;
        self.0.changed.notify_all();
    }
}

/// Runs `worker` in several threads including this one and returns the result of each.
pub(crate) fn in_parallel<R: Send>(
    threads: usize,
    worker: impl Fn() -> Result<R> + Sync,
) -> Result<Vec<R>> {
    thread::scope(|scope| {
        // If the system refuses more threads, fewer do the work.
        let other = |_| thread::Builder::new().spawn_scoped(scope, &worker).ok();
        let others: Vec<_> = (1..threads.max(1)).filter_map(other).collect();
        let mut results = vec![worker()];
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results.into_iter().collect()
    })
}

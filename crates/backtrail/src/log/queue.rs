//! Decides which thread writes next: threads that append at the same time share the work.
//!
//! A thread that finds no leader becomes the leader: it writes everything that is
//! waiting, in order, while newcomers queue up for the next round. No other thread uses
//! the trail meanwhile, so a group commit needs no timer, and a single append pays
//! nothing for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::commit::{Commit, Slot};
use super::writer::{Durability, LogWriter, Pending};
use crate::error::{Error, Result};
use crate::sync::{lock, wait};

/// The records that are waiting to be written.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    /// Notified whenever a round ends.
    round: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<(Pending, Arc<Slot>)>,
    /// Whether a thread is leading a round.
    leading: bool,
    /// How many threads are waiting for the end of a round. Waking none would be a system
    /// call too.
    sleeping: usize,
    /// Whether a thread is writing records that no thread waits for.
    has_background_writer: bool,
    closed: bool,
}

/// The most bytes that one round writes: a larger group gains nothing, and its copy must
/// not take unbounded memory.
const ROUND_BYTES: usize = 8 << 20;

impl Queue {
    /// Appends one record and waits until it is durable.
    pub(crate) fn append(&self, live: &LogWriter, pending: Pending) -> Result<u64> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(closed());
        }
        if state.leading || !state.waiting.is_empty() {
            let slot = Arc::new(Slot::default());
            state.waiting.push_back((pending, Arc::clone(&slot)));
            return self.wait_for(live, state, &slot);
        }
        state.leading = true;
        drop(state);
        let lead = Lead(self);
        let result = live.write_one(&pending);
        drop(lead);
        result
    }

    /// Appends several records and waits until all are durable.
    pub(crate) fn append_batch(
        &self,
        live: &LogWriter,
        encoded: Vec<Result<Pending>>,
    ) -> Vec<Result<u64>> {
        let mut state = lock(&self.state);
        let mut slots = Vec::with_capacity(encoded.len());
        for pending in encoded {
            slots.push(match pending {
                _ if state.closed => Err(closed()),
                Err(error) => Err(error),
                Ok(pending) => {
                    let slot = Arc::new(Slot::default());
                    state.waiting.push_back((pending, Arc::clone(&slot)));
                    Ok(slot)
                }
            });
        }
        drop(state);
        slots
            .into_iter()
            .map(|slot| slot.and_then(|slot| self.wait_for(live, lock(&self.state), &slot)))
            .collect()
    }

    /// Queues one record; a background thread writes it.
    pub(crate) fn append_deferred(live: &Arc<LogWriter>, encoded: Result<Pending>) -> Commit {
        let queue = &live.queue;
        let slot = Arc::new(Slot::default());
        let mut state = lock(&queue.state);
        let pending = match encoded {
            _ if state.closed => Err(closed()),
            encoded => encoded,
        };
        match pending {
            Err(error) => slot.fill(Err(error)),
            Ok(pending) => {
                state.waiting.push_back((pending, Arc::clone(&slot)));
                if !state.has_background_writer {
                    state.has_background_writer = true;
                    drop(state);
                    spawn_background_writer(live);
                }
            }
        }
        slot.commit()
    }

    /// Runs `work` on the trail after all records that were queued before, while no other
    /// thread writes.
    pub(crate) fn alone<T>(&self, live: &LogWriter, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut state = lock(&self.state);
        while state.leading || !state.waiting.is_empty() {
            state = self.next_round(live, state);
        }
        if state.closed {
            return Err(closed());
        }
        state.leading = true;
        drop(state);
        let _lead = Lead(self);
        work()
    }

    /// Refuses new records and waits for the queued ones.
    pub(crate) fn close(&self, live: &LogWriter) {
        let mut state = lock(&self.state);
        state.closed = true;
        while state.leading || !state.waiting.is_empty() {
            state = self.next_round(live, state);
        }
    }

    /// Leads rounds until the queue is empty.
    fn write_all_waiting(&self, live: &LogWriter) {
        let mut state = lock(&self.state);
        while !state.waiting.is_empty() {
            state = self.next_round(live, state);
        }
        state.has_background_writer = false;
    }

    fn wait_for<'a>(
        &'a self,
        live: &LogWriter,
        mut state: MutexGuard<'a, QueueState>,
        slot: &Slot,
    ) -> Result<u64> {
        loop {
            if let Some(result) = slot.take() {
                return result;
            }
            state = self.next_round(live, state);
        }
    }

    /// Leads a round if there is no leader, otherwise waits for the end of the current
    /// one.
    fn next_round<'a>(
        &'a self,
        live: &LogWriter,
        mut state: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        if state.leading {
            state.sleeping += 1;
            state = wait(&self.round, state);
            state.sleeping -= 1;
            return state;
        }
        let (group, slots) = take_round(&mut state.waiting, live.durability);
        state.leading = true;
        drop(state);
        let lead = Lead(self);
        let results = live.write_group(&group);
        for (slot, result) in slots.iter().zip(results) {
            slot.fill(result);
        }
        drop(lead);
        lock(&self.state)
    }
}

/// Takes the records of one round from the front of the queue.
fn take_round(
    waiting: &mut VecDeque<(Pending, Arc<Slot>)>,
    durability: Durability,
) -> (Vec<Pending>, Vec<Arc<Slot>>) {
    let mut bytes = 0;
    let fits = waiting
        .iter()
        .take_while(|(pending, _)| {
            bytes += pending.body.len();
            bytes <= ROUND_BYTES
        })
        .count();
    let count = match durability {
        Durability::Record => 1,
        Durability::Batch | Durability::Os | Durability::Remote => fits.max(1),
    };
    waiting.drain(..count.min(waiting.len())).unzip()
}

/// The right to lead a round, released however the round ends.
struct Lead<'a>(&'a Queue);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.leading = false;
        let awaited = state.sleeping > 0;
        drop(state);
        if awaited {
            self.0.round.notify_all();
        }
    }
}

/// Writes records that no thread waits for, until none is left. The thread keeps the
/// session and its lock alive as long as it has work.
fn spawn_background_writer(live: &Arc<LogWriter>) {
    let theirs = Arc::clone(live);
    let work = move || theirs.queue.write_all_waiting(&theirs);
    let spawned = std::thread::Builder::new()
        .name("backtrail-commit".to_owned())
        .spawn(work);
    if spawned.is_err() {
        // If no thread can be started, this one does the work.
        live.queue.write_all_waiting(live);
    }
}

fn closed() -> Error {
    Error::invalid("the session is closed; open it again to append")
}

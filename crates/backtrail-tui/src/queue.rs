//! A queue between threads, in which newer things can take the place of older ones.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What becomes of what still waits when a queue is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// It is done.
    Done,
    /// It is dropped.
    Dropped,
}

/// Things that wait for a thread.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thing, and removes those that it makes useless.
    pub(crate) fn push(&self, thing: T, makes_useless: impl Fn(&T) -> bool) {
        let mut state = self.state();
        state.waiting.retain(|older| !makes_useless(older));
        state.waiting.push_back(thing);
        self.changed.notify_one();
    }

    /// Waits for a thing; returns `None` when the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.state();
        loop {
            if let Some(next) = state.waiting.pop_front() {
                return Some(next);
            }
            if state.is_closed {
                return None;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Closes the queue.
    pub(crate) fn close(&self, waiting: Waiting) {
        let mut state = self.state();
        if waiting == Waiting::Dropped {
            state.waiting.clear();
        }
        state.is_closed = true;
        self.changed.notify_all();
    }
}

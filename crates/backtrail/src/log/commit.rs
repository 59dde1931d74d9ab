//! A handle to a record that will be durable.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};

use crate::error::Result;
use crate::sync::{lock, wait};

/// A record that is being written.
///
/// Wait for it in a thread with [`wait`](Self::wait), or in an async task with `.await`.
/// Dropping it does not cancel the record.
#[derive(Debug)]
pub struct Commit(Arc<Slot>);

impl Commit {
    /// Waits until the record is durable, and returns its seq.
    ///
    /// # Errors
    ///
    /// Fails as the append itself would.
    pub fn wait(self) -> Result<u64> {
        let mut state = lock(&self.0.state);
        loop {
            if let Some(result) = state.result.take() {
                return result;
            }
            state = wait(&self.0.done, state);
        }
    }
}

impl Future for Commit {
    type Output = Result<u64>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.0.state);
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Passes the result of a record to the waiting caller.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    state: Mutex<SlotState>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct SlotState {
    result: Option<Result<u64>>,
    waker: Option<Waker>,
}

impl Slot {
    pub(crate) fn commit(self: &Arc<Self>) -> Commit {
        Commit(Arc::clone(self))
    }

    pub(crate) fn fill(&self, result: Result<u64>) {
        let waker = {
            let mut state = lock(&self.state);
            state.result = Some(result);
            state.waker.take()
        };
        self.done.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn take(&self) -> Option<Result<u64>> {
        lock(&self.state).result.take()
    }
}

//! Keeps the process from ending while files move.
//!
//! Until files move, the screen may be left at any time: nothing was touched. After that, leaving
//! waits until the move is done, which can be undone as a whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use backtrail::snapshot::{Progress, ScanProgress, ScanStage};

/// Whether something is being done that must not stop half way. A clone is the same gate.
#[derive(Debug, Default, Clone)]
pub(in crate::commands::library) struct Gate {
    inner: Arc<SharedGate>,
}

#[derive(Debug, Default)]
struct SharedGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    /// How many things move now.
    moving: usize,
    /// Whether nothing may begin to move any more.
    is_closed: bool,
}

impl SharedGate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to move, or waits for the end of the process.
    fn begin(&self) {
        let mut state = self.lock();
        while state.is_closed {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.moving += 1;
    }

    fn end(&self) {
        self.lock().moving -= 1;
        self.changed.notify_all();
    }
}

impl Gate {
    /// Begins work that reports when it begins to move files.
    pub(super) fn begin_looking(&self) -> Work {
        Work(Arc::new(Mover {
            inner: Arc::clone(&self.inner),
            is_moving: AtomicBool::new(false),
        }))
    }

    /// Begins work that must not stop.
    pub(super) fn begin_moving(&self) -> Work {
        let work = self.begin_looking();
        work.0.begin();
        work
    }

    /// Waits until nothing moves, and lets nothing begin to: the process ends then.
    pub(in crate::commands::library) fn close(&self) {
        let mut state = self.inner.lock();
        while state.moving > 0 {
            let waited = self.inner.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.is_closed = true;
    }
}

/// Work that is being done, until it is dropped.
#[derive(Debug)]
pub(super) struct Work(Arc<Mover>);

impl Work {
    /// Returns what the work reports its progress to.
    pub(super) fn progress(&self) -> Arc<dyn Progress> {
        Arc::clone(&self.0) as _
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.0.is_moving.swap(false, Ordering::SeqCst) {
            self.0.inner.end();
        }
    }
}

#[derive(Debug)]
struct Mover {
    inner: Arc<SharedGate>,
    is_moving: AtomicBool,
}

impl Mover {
    fn begin(&self) {
        if !self.is_moving.load(Ordering::SeqCst) {
            self.inner.begin();
            self.is_moving.store(true, Ordering::SeqCst);
        }
    }
}

impl Progress for Mover {
    fn update(&self, at: ScanProgress) {
        if at.stage == ScanStage::Moving {
            self.begin();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Long enough for a thread that does not wait to come by.
    const A_WHILE: Duration = Duration::from_millis(50);

    #[test]
    fn leaving_waits_for_what_moves_and_for_nothing_else() {
        let gate = Arc::new(Gate::default());
        let looking = gate.begin_looking();
        gate.close();
        drop(looking);

        let gate = Arc::new(Gate::default());
        let work = gate.begin_moving();
        work.0.begin();
        let (closed, is_closed) = channel();
        let closing = Arc::clone(&gate);
        let thread = thread::spawn(move || {
            closing.close();
            closed.send(()).unwrap();
        });
        assert!(is_closed.recv_timeout(A_WHILE).is_err());
        drop(work);
        is_closed.recv().unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn nothing_begins_to_move_once_the_screen_is_left() {
        let gate = Gate::default();
        let work = gate.begin_looking();
        gate.close();
        let (began, has_begun) = channel();
        let mover = Arc::clone(&work.0);
        // It never ends: the process does.
        thread::spawn(move || {
            mover.begin();
            began.send(()).unwrap();
        });
        assert!(has_begun.recv_timeout(A_WHILE).is_err());
    }
}

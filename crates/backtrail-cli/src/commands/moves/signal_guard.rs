//! Keeps signals from stopping a move half way.
//!
//! Until files move, Ctrl-C and the like end the process: nothing was touched. After that
//! they wait until the move is done, which can be undone as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backtrail::snapshot::{Progress, ScanProgress, ScanStage};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Holds back signals from the moment files move.
#[derive(Debug)]
pub(super) struct SignalGuard {
    shown: Option<Arc<dyn Progress>>,
    /// Whether a signal may end the process.
    may_end: Arc<AtomicBool>,
}

impl SignalGuard {
    /// Passes progress on to `shown`.
    pub(super) fn around(shown: Option<Arc<dyn Progress>>) -> Arc<dyn Progress> {
        let may_end = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // If this fails, the next command finishes a move that is stopped.
            flag::register_conditional_default(signal, Arc::clone(&may_end)).ok();
        }
        Arc::new(Self { shown, may_end })
    }
}

impl Progress for SignalGuard {
    fn update(&self, at: ScanProgress) {
        if at.stage == ScanStage::Moving {
            self.may_end.store(false, Ordering::SeqCst);
        }
        if let Some(shown) = &self.shown {
            shown.update(at);
        }
    }
}

#[cfg(test)]
#[path = "signal_guard_tests.rs"]
mod tests;

//! A move is not stopped half way.
//!
//! Until files move, Ctrl-C and its like end us: nothing was touched. Afterwards they
//! wait until the move is done, which can be taken back whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backtrail::{Progress, ScanProgress, ScanStage};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Tells how far a move is, and from when on it is not stopped.
#[derive(Debug)]
pub(super) struct Whole {
    shown: Option<Arc<dyn Progress>>,
    /// Whether a signal may end us.
    may_end: Arc<AtomicBool>,
}

impl Whole {
    pub(super) fn of(shown: Option<Arc<dyn Progress>>) -> Arc<dyn Progress> {
        let may_end = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Without it a move that is stopped is finished by the next command.
            flag::register_conditional_default(signal, Arc::clone(&may_end)).ok();
        }
        Arc::new(Self { shown, may_end })
    }
}

impl Progress for Whole {
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
#[path = "whole_tests.rs"]
mod tests;

//! Stopping a follower from another thread.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a follower, from any thread. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StopHandle {
    is_stopped: Arc<AtomicBool>,
    pipe: Arc<PipeWriter>,
}

impl StopHandle {
    /// Stops the follower: its wait returns at once, now and from then on.
    pub fn stop(&self) {
        if !self.is_stopped.swap(true, Ordering::AcqRel) {
            // Without a reader there is nobody to wake.
            (&*self.pipe).write_all(b"x").ok();
        }
    }
}

/// The end of what is stopped.
#[derive(Debug)]
pub struct Stop {
    is_stopped: Arc<AtomicBool>,
    pipe: PipeReader,
    handle: StopHandle,
}

impl Stop {
    /// Creates one that is not stopped.
    ///
    /// # Errors
    ///
    /// Fails if the system has no room for a pipe.
    pub fn new() -> io::Result<Self> {
        let (pipe, writer) = io::pipe()?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let handle = StopHandle {
            is_stopped: Arc::clone(&is_stopped),
            pipe: Arc::new(writer),
        };
        Ok(Self {
            is_stopped,
            pipe,
            handle,
        })
    }

    /// Returns a handle that stops it.
    pub fn handle(&self) -> StopHandle {
        self.handle.clone()
    }

    /// Returns whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Returns what can be read from once it is stopped: the byte stays there.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

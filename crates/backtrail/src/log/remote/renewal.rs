//! The thread that renews the lease of an idle session.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::Shared;
use crate::error::{Error, Result};
use crate::sync::lock;

/// Starts the thread. It ends, and gives the lease back, when the sender is dropped.
pub(super) fn start(shared: &Arc<Shared>) -> Result<Sender<()>> {
    let (sender, receiver) = channel();
    let theirs = Arc::clone(shared);
    thread::Builder::new()
        .name("backtrail-lease".to_owned())
        .spawn(move || renew(&theirs, &receiver))
        .map_err(|error| Error::machine("cannot renew the lease in the background", error))?;
    Ok(sender)
}

fn renew(shared: &Shared, open: &Receiver<()>) {
    let pause = (shared.remote.lease / 6).max(Duration::from_millis(1));
    while open.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        // If it is taken, an append is on its way, which prolongs the lease.
        if let Ok(mut link) = shared.link.try_lock() {
            link.tick(shared);
        }
    }
    lock(&shared.link).release(shared);
}

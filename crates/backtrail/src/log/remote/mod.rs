//! A log that is written to a replica as well: does what the [`Writer`] wants, and reads the
//! lines for it.
//!
//! The thread that leads a round of the group commit sends its records, while no other thread
//! writes. A thread of its own renews the lease of an idle session, and gives it back when the
//! session is dropped.

mod link;
mod renewal;
mod status;
mod unacknowledged;
mod unsent;

use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use super::directory::LogDir;
use crate::error::{Error, Result};
use crate::replica::local::key_of;
use crate::replica::{LogKey, Remote, Writer};
use crate::sync::lock;
use link::Link;
use status::Status;
use unacknowledged::{Unacknowledged, Written};

pub(crate) use unsent::Until;

/// The replica of a log that is open for writing.
#[derive(Debug)]
pub(crate) struct RemoteLog {
    shared: Arc<Shared>,
    unacknowledged: Mutex<Unacknowledged>,
    /// Dropped with the log: then the thread that renews the lease gives it back.
    _renewing: mpsc::Sender<()>,
}

/// What the thread that renews the lease uses, too.
#[derive(Debug)]
struct Shared {
    remote: Remote,
    dir: LogDir,
    key: LogKey,
    began: Instant,
    /// Held during requests.
    link: Mutex<Link>,
    /// Never held during a request.
    status: Mutex<Status>,
}

impl Shared {
    /// Returns the time of the machines.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl RemoteLog {
    /// Takes the lease of a log. Nothing is sent yet.
    pub(super) fn open(remote: &Remote, dir: &LogDir) -> Result<Self> {
        let key = key_of(dir);
        let writer = Writer::new(key.clone(), remote.holder.clone(), remote.lease_ms());
        let shared = Arc::new(Shared {
            remote: remote.clone(),
            dir: dir.clone(),
            key,
            began: Instant::now(),
            link: Mutex::new(Link::new(writer)),
            status: Mutex::default(),
        });
        lock(&shared.link).renew(&shared)?;
        Ok(Self {
            _renewing: renewal::start(&shared)?,
            shared,
            unacknowledged: Mutex::default(),
        })
    }

    /// Takes note that the log is up to date there, as far as the remote can be reached.
    pub(super) fn opened(&self) {
        lock(&self.shared.link).opened();
    }

    /// Returns the error that ended the writing, if another machine took over.
    pub(crate) fn stopped(&self) -> Option<Error> {
        lock(&self.shared.status).stopped()
    }

    /// Returns why the replica lacks lines that were acknowledged here.
    pub(crate) fn behind(&self) -> Option<Error> {
        lock(&self.shared.status).behind()
    }

    /// Makes sure that nobody else writes, before something that cannot be undone.
    pub(crate) fn renew(&self) -> Result<()> {
        lock(&self.shared.link).renew(&self.shared)
    }

    /// Takes note of where the log ends before something is written.
    pub(super) fn stands_at(&self, trail: u32, end: u64) {
        lock(&self.unacknowledged).stands_at(trail, end);
    }

    /// Takes note of what was written at the end.
    pub(super) fn wrote(&self, trail: u32, from: u64, to: u64) {
        lock(&self.unacknowledged).add(Written { trail, from, to });
    }

    /// Takes note that everything that was written stays, whatever the replica says.
    pub(crate) fn keep(&self) {
        lock(&self.unacknowledged).clear();
    }

    /// Sends everything up to a place, which is durable here. When this returns, it may be
    /// acknowledged.
    pub(super) fn send(&self, until: Until) -> Result<()> {
        let shared = &self.shared;
        lock(&shared.status).wants(until);
        let free = shared.link.try_lock().ok();
        let link = match free {
            // It is being asked whether it is back: a session that is behind goes on without it.
            None if self.behind().is_some() => None,
            None => Some(lock(&shared.link)),
            free => free,
        };
        if let Some(mut link) = link {
            link.send(shared, until)?;
        }
        self.keep();
        Ok(())
    }

    /// Returns the first byte of what was not acknowledged, if the log still ends with that.
    pub(super) fn take_unacknowledged(&self, trail: u32, end: u64) -> Option<u64> {
        let written = lock(&self.unacknowledged).take_at(trail, end);
        written.map(|written| written.from)
    }

    /// Gives the lease back.
    pub(super) fn release(&self) {
        lock(&self.shared.link).release(&self.shared);
    }
}

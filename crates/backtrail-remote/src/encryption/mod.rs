//! Encryption: a replica in front of another one, which sees ids, sizes and times, but no words.
//!
//! Each log has a data key of its own, made when the log is leased for the first time and wrapped
//! for [`Recipient`]s with age. Everything else follows from it. docs/format.md has the bytes and
//! what the replica below sees ("Remotes, encrypted").
//!
//! Nothing is written before the key of the log was opened: a wrong identity is an error of
//! [`ReplicaErrorKind::Denied`](backtrail::replica::ReplicaErrorKind::Denied). Whatever does not
//! open is an error as well, never something else than what was stored at that place.

mod answers;
mod blobs;
mod chunks;
mod errors;
mod keyring;
mod keys;
mod log_keys;
mod place;
mod requests;
mod seal;
mod sums;
mod wrapped_key;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use backtrail::replica::{Answer, BlobName, LogKey, Replica, ReplicaError, Request};

use keyring::Keyring;
use log_keys::LogKeys;

pub use keys::{Identities, KeyError, Recipient};

/// A replica that encrypts for the one below.
///
/// To the caller a log is as it would be without encryption, and has no
/// [`wrapped_key`](backtrail::replica::LogStatus::wrapped_key), with three exceptions: bytes are
/// counted as they are stored; objects and packs belong to one log, and another one neither finds
/// nor opens them; and [`Request::List`] and [`Request::Changes`] also return logs that no
/// identity opens, as they are stored. Whatever else is asked about those is refused.
#[derive(Debug)]
pub struct EncryptedReplica<R> {
    inner: R,
    keyring: Keyring,
}

/// A log as its key sees it.
enum Opened {
    Keys(Arc<LogKeys>),
    /// It has no key: it is absent, or was purged.
    Gone(Answer),
}

impl<R: Replica> EncryptedReplica<R> {
    /// Encrypts new logs for `recipients`, and opens all with `identities`. One of these has to
    /// belong to a recipient, or no log can be created.
    pub fn new(inner: R, recipients: Vec<Recipient>, identities: Identities) -> Self {
        Self {
            inner,
            keyring: Keyring::new(recipients, identities),
        }
    }

    /// Returns the replica below.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    fn keys(&self, log: &LogKey) -> Result<Opened, ReplicaError> {
        if let Some(keys) = self.keyring.opened(log) {
            return Ok(Opened::Keys(keys));
        }
        match self.inner.ask(&Request::Status { log: log.clone() })? {
            Answer::Log(status) => {
                let keys = self.keyring.open(log, &status.wrapped_key)?;
                Ok(Opened::Keys(keys))
            }
            gone @ (Answer::Absent | Answer::Purged(_)) => Ok(Opened::Gone(gone)),
            other => Err(answers::unexpected(log, &other)),
        }
    }
}

impl<R: Replica> Replica for EncryptedReplica<R> {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        self.answer(request)
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        self.has_sealed(log, names)
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        self.put_sealed(log, name, bytes)
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        match part {
            None => self.get_whole(log, name),
            Some((from, bytes)) => self.get_part(log, name, from, bytes),
        }
    }
}

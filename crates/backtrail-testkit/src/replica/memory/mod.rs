//! A replica in memory: the plainest code that does what the contract says.

mod log;
mod logs;
mod packs;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use backtrail::Clock;
use backtrail::replica::{
    Answer, BlobKind, BlobName, Change, LogKey, Replica, ReplicaError, ReplicaErrorKind, Request,
};

use crate::ManualClock;
use crate::lock::lock;
use log::Log;
use packs::Packs;

/// A replica in memory; clones share it.
///
/// Its clock is read once for each request.
#[derive(Clone)]
pub struct MemoryReplica {
    state: Arc<Mutex<State>>,
    clock: ManualClock,
}

impl MemoryReplica {
    /// Returns an empty replica. A blob's name has to be the BLAKE3 hash of its bytes.
    pub fn new(clock: ManualClock) -> Self {
        Self {
            state: Arc::default(),
            clock,
        }
    }

    /// Accepts any name for a blob, for a client that encrypts.
    pub fn with_keyed_names(self) -> Self {
        lock(&self.state).blobs_are_keyed = true;
        self
    }

    /// Alters a byte of a blob, if it is there and has one.
    pub fn damage_blob(&self, log: &LogKey, name: BlobName) {
        let mut state = lock(&self.state);
        if let Some(byte) = state
            .blob_mut(log, name)
            .and_then(|blob| blob.bytes.last_mut())
        {
            *byte ^= 1;
        }
    }

    /// Loses a blob, as a bucket might. Nothing that was recorded about it changes.
    pub fn lose_blob(&self, log: &LogKey, name: BlobName) {
        let mut state = lock(&self.state);
        match name.kind {
            BlobKind::Payload => drop(state.payloads.remove(&(log.clone(), name.hash))),
            BlobKind::Pack => state.packs.lose_bytes(&name.hash),
        }
    }
}

impl fmt::Debug for MemoryReplica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryReplica").finish_non_exhaustive()
    }
}

/// Everything that a replica knows.
#[derive(Default)]
struct State {
    logs: BTreeMap<LogKey, Log>,
    /// When logs were purged.
    purged: BTreeMap<LogKey, i64>,
    changes: Vec<Change>,
    /// The number of the newest change.
    newest_change: u64,
    payloads: BTreeMap<(LogKey, [u8; 32]), Blob>,
    packs: Packs,
    blobs_are_keyed: bool,
}

/// Bytes, and the hash that they had when they were stored.
struct Blob {
    bytes: Vec<u8>,
    stored: blake3::Hash,
}

impl Blob {
    fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            stored: blake3::hash(bytes),
        }
    }
}

impl State {
    fn answer(&mut self, request: &Request, now_ms: i64) -> Result<Answer, ReplicaError> {
        Ok(match request {
            Request::SealPack { objects, .. } => self.packs.seal(objects)?,
            Request::Locate { ids, .. } => self.packs.locate(ids),
            Request::Packs { after, limit } => self.packs.list(*after, *limit, now_ms),
            Request::Condemn { packs } => self.packs.condemn(packs, now_ms),
            Request::RemovePacks {
                condemned_ms,
                limit,
            } => self.packs.remove(*condemned_ms, *limit, now_ms),
            _ => self.answer_about_logs(request, now_ms)?,
        })
    }

    fn blob(&self, log: &LogKey, name: BlobName) -> Option<&Blob> {
        match name.kind {
            BlobKind::Payload => self.payloads.get(&(log.clone(), name.hash)),
            BlobKind::Pack => self.packs.bytes(&name.hash),
        }
    }

    fn blob_mut(&mut self, log: &LogKey, name: BlobName) -> Option<&mut Blob> {
        match name.kind {
            BlobKind::Payload => self.payloads.get_mut(&(log.clone(), name.hash)),
            BlobKind::Pack => self.packs.bytes_mut(&name.hash),
        }
    }

    fn put(&mut self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        if !self.blobs_are_keyed && blake3::hash(bytes) != name.hash {
            return Err(refused("a blob does not match its name"));
        }
        if self.purged.contains_key(log) || self.blob(log, name).is_some() {
            return Ok(());
        }
        match name.kind {
            BlobKind::Payload => {
                self.payloads
                    .insert((log.clone(), name.hash), Blob::new(bytes));
            }
            BlobKind::Pack => self.packs.put(name.hash, Blob::new(bytes)),
        }
        Ok(())
    }

    fn get(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        let Some(blob) = self.blob(log, name) else {
            return Ok(None);
        };
        if blake3::hash(&blob.bytes) != blob.stored {
            return Err(refused("a blob is damaged"));
        }
        let Some((from, bytes)) = part else {
            return Ok(Some(blob.bytes.clone()));
        };
        let end = from.checked_add(bytes).and_then(|end| end.try_into().ok());
        let range = usize::try_from(from).ok().zip(end);
        let part = range.and_then(|(from, end): (_, usize)| blob.bytes.get(from..end));
        part.map(|part| Some(part.to_vec()))
            .ok_or_else(|| refused("a blob does not have this part"))
    }
}

/// Returns the error for what cannot be right, asked or stored.
fn refused(message: &str) -> ReplicaError {
    ReplicaError {
        kind: ReplicaErrorKind::Corrupt,
        message: message.to_owned(),
    }
}

impl Replica for MemoryReplica {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        let mut state = lock(&self.state);
        let now_ms = self.clock.now().as_millis();
        state.answer(request, now_ms)
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        let state = lock(&self.state);
        let is_there = |name: &BlobName| state.blob(log, *name).is_some();
        Ok(names.iter().map(is_there).collect())
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        lock(&self.state).put(log, name, bytes)
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        lock(&self.state).get(log, name, part)
    }
}

//! The store that is imported into, and the staging store in which new sessions are made.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backtrail::plumbing::{KeptSource, SourceRecord, Staging};
use backtrail::{Block, ErrorKind, RecordKind, SessionId, SessionReader, Store};

use crate::container::Spool;
use crate::error::{Error, Result};
use crate::event::ForkPoint;
use crate::source::is_there;

/// The store, and the sessions that are being made.
pub(super) struct Destination<'s> {
    store: Option<&'s Store>,
    staging: Option<Staging>,
    /// Sessions that a thread is importing into.
    claimed: Mutex<HashSet<SessionId>>,
    /// The records of tool calls, by session and call.
    calls: Mutex<HashMap<SessionId, Arc<HashMap<String, u64>>>>,
}

/// Where a source record is: trail, seq, byte.
pub(super) type RecordPlace = (u32, u64, u64);

impl<'s> Destination<'s> {
    /// Creates one. Without a staging store nothing is written.
    pub(super) fn new(store: Option<&'s Store>, staging: Option<Staging>) -> Self {
        Self {
            store,
            staging,
            claimed: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// Returns whether nothing is written.
    pub(super) fn is_dry_run(&self) -> bool {
        self.staging.is_none()
    }

    /// Returns the store that is written to.
    pub(super) fn home(&self) -> Option<&Store> {
        self.store.filter(|_| !self.is_dry_run())
    }

    /// Returns the store in which new sessions are made.
    pub(super) fn staging_store(&self) -> Option<&Store> {
        self.staging.as_ref().map(Staging::aside)
    }

    /// Moves the sessions that were made so far to their store.
    pub(super) fn publish(&self) -> Result<()> {
        if let Some(staging) = &self.staging {
            staging.publish()?;
        }
        lock(&self.calls).clear();
        Ok(())
    }

    /// Returns the store of a session that exists.
    pub(super) fn find_store(&self, id: &SessionId) -> Result<Option<Store>> {
        for store in [self.staging_store(), self.store].into_iter().flatten() {
            match store.read_session(id) {
                Ok(_) => return Ok(Some(store.clone())),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // It is in the trash or purged: no session can continue it.
                Err(_) if self.was_deleted(id) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Returns whether a session was deleted here.
    pub(super) fn was_deleted(&self, id: &SessionId) -> bool {
        self.store.is_some_and(|store| store.was_deleted(id))
    }

    /// Claims a session until the claim is dropped. `None` if another thread has it.
    pub(super) fn claim(&self, id: &SessionId) -> Option<Claim<'_>> {
        let is_free = lock(&self.claimed).insert(id.clone());
        is_free.then(|| Claim {
            claimed: &self.claimed,
            id: id.clone(),
        })
    }

    pub(super) fn is_claimed(&self, id: &SessionId) -> bool {
        lock(&self.claimed).contains(id)
    }

    /// Returns the record of a tool call in a session; 0 if it is not there.
    pub(super) fn find_call(&self, reader: &SessionReader, tool_use_id: &str) -> Result<u64> {
        let known = lock(&self.calls).get(reader.id()).cloned();
        if let Some(seq) = known.as_ref().and_then(|calls| calls.get(tool_use_id)) {
            return Ok(*seq);
        }
        // The session may have new calls.
        let calls = Arc::new(tool_calls(reader)?);
        let seq = calls.get(tool_use_id).copied().unwrap_or(0);
        lock(&self.calls).insert(reader.id().clone(), calls);
        Ok(seq)
    }

    /// Forgets the tool calls of a session that has grown.
    pub(super) fn forget_calls(&self, id: &SessionId) {
        lock(&self.calls).remove(id);
    }

    /// Returns where the lines of a session can be written.
    pub(super) fn spool(&self) -> Spool {
        let staging = self.staging.as_ref();
        Spool::new(staging.map(|staging| staging.aside().root()))
    }

    /// Creates an unnamed file that is deleted when it is closed.
    pub(super) fn temp_file(&self) -> Result<File> {
        let made = match &self.staging {
            Some(staging) => tempfile::tempfile_in(staging.aside().root()),
            None => tempfile::tempfile(),
        };
        made.map_err(|error| {
            Error::io(
                "cannot create a temporary file",
                &std::env::temp_dir(),
                error,
            )
        })
    }
}

/// A session that this thread alone imports into.
pub(super) struct Claim<'s> {
    claimed: &'s Mutex<HashSet<SessionId>>,
    id: SessionId,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        lock(self.claimed).remove(&self.id);
    }
}

/// Locks a mutex; what a panicking thread left is still good.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tool_calls(reader: &SessionReader) -> Result<HashMap<String, u64>> {
    let mut calls = HashMap::new();
    let mut records = reader.records()?;
    while let Some(record) = records.next()? {
        let may_call = memchr::memmem::find(record.bytes(), b"\"tool_use\"").is_some();
        if !may_call || record.kind() != RecordKind::Message {
            continue;
        }
        let Ok(Some(message)) = record.stored_message() else {
            continue;
        };
        for block in &message.blocks {
            if let Block::ToolUse(call) = block {
                calls.insert(call.id.as_str().to_owned(), record.seq());
            }
        }
    }
    Ok(calls)
}

/// Returns whether a record is an event.
pub(super) fn is_event(kind: RecordKind<'_>) -> bool {
    matches!(
        kind,
        RecordKind::Message | RecordKind::Compaction | RecordKind::Usage
    )
}

/// Returns the record at a fork point; `None` if it is not there.
pub(super) fn find_fork_point(reader: &SessionReader, point: &ForkPoint) -> Result<Option<u64>> {
    let fits = |id: &str| match point {
        ForkPoint::Start => false,
        ForkPoint::After(key) => id == key,
        ForkPoint::AfterLastUpTo(key) => id.len() == key.len() && id <= key.as_str(),
    };
    if *point == ForkPoint::Start {
        return Ok(Some(0));
    }
    let mut back = reader.records_back()?;
    while let Some(record) = back.next()? {
        if is_event(record.kind()) && record.id().is_some_and(|id| fits(&id)) {
            return Ok(Some(record.seq()));
        }
    }
    Ok(None)
}

/// Returns a file that a session keeps. Reads all trails of the session.
pub(super) fn kept_file(reader: &SessionReader, path: &Path) -> Result<Option<KeptSource>> {
    let mut sources = reader.sources()?.into_iter();
    Ok(sources.find(|kept| kept.path == path && kept.held_by.is_none()))
}

/// Returns whether a session that keeps these files has no other one than `path` that still
/// exists.
pub(super) fn is_only_file(path: &Path, sources: &[KeptSource]) -> bool {
    let is_other = |kept: &KeptSource| kept.path != path && is_there(&kept.path);
    !sources.iter().any(is_other)
}

/// Returns the newest record of a file and its place, searching from where the cache says. `None`
/// if that is not enough. The cache may be older than the session, or of another store: what the
/// session has counts.
pub(super) fn newest_source_at(
    reader: &SessionReader,
    path: &Path,
    (trail, seq, byte): RecordPlace,
) -> Result<Option<(SourceRecord, RecordPlace)>> {
    let Some(record) = source_record_at(reader, path, (trail, seq, byte))? else {
        return Ok(None);
    };
    if reader.info()?.trails != trail + 1 {
        return Ok(None);
    }
    let mut newest = (record, (trail, seq, byte));
    let mut records = reader.trail_records(trail, byte)?;
    while let Some(found) = records.next()? {
        let source = found.record.source().filter(|source| source.path == path);
        if let Some(source) = source.filter(|_| found.record.seq() > seq) {
            newest = (source, (trail, found.record.seq(), found.byte));
        }
    }
    Ok(Some(newest))
}

/// Reads the record of a file at a place; `None` if there is another or none.
pub(super) fn source_record_at(
    reader: &SessionReader,
    path: &Path,
    (trail, seq, byte): RecordPlace,
) -> Result<Option<SourceRecord>> {
    let record = match reader.trail_record(trail, seq, byte) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        record => record?,
    };
    let source = record.and_then(|record| record.as_ref().source());
    Ok(source.filter(|source| source.path == path))
}

/// Returns whether a session has no event after a source record.
pub(super) fn has_no_event_after(
    reader: &SessionReader,
    (trail, seq, byte): RecordPlace,
) -> Result<bool> {
    if reader.info()?.trails != trail + 1 {
        return Ok(false);
    }
    let mut records = reader.trail_records(trail, byte)?;
    while let Some(found) = records.next()? {
        if found.record.seq() > seq && is_event(found.record.kind()) {
            return Ok(false);
        }
    }
    Ok(true)
}

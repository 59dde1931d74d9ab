//! Where sessions are found and made while files are taken in.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backtrail::{
    Block, ErrorKind, KeptSource, RecordKind, SessionId, SessionReader, SourceRecord, Staging,
    Store,
};

use crate::error::{Error, Result};
use crate::told::After;

/// The store, and the sessions that are made aside.
pub(super) struct Shop<'s> {
    home: Option<&'s Store>,
    staging: Option<Staging>,
    /// Sessions that somebody is taking in now.
    busy: Mutex<HashSet<SessionId>>,
    calls: Mutex<HashMap<SessionId, Arc<HashMap<String, u64>>>>,
}

/// Where a record of a source stands: trail, seq, byte.
pub(super) type Place = (u32, u64, u64);

impl<'s> Shop<'s> {
    /// Opens one. Without a staging nothing is written.
    pub(super) fn new(home: Option<&'s Store>, staging: Option<Staging>) -> Self {
        Self {
            home,
            staging,
            busy: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// Returns whether nothing is to be written.
    pub(super) fn is_dry(&self) -> bool {
        self.staging.is_none()
    }

    /// Returns the store in which new sessions are made.
    pub(super) fn aside(&self) -> Option<&Store> {
        self.staging.as_ref().map(Staging::aside)
    }

    /// Puts the sessions in place that were made so far.
    pub(super) fn publish(&self) -> Result<()> {
        if let Some(staging) = &self.staging {
            staging.publish()?;
        }
        lock(&self.calls).clear();
        Ok(())
    }

    /// Returns the store that has a session.
    pub(super) fn find(&self, id: &SessionId) -> Result<Option<Store>> {
        for store in [self.aside(), self.home].into_iter().flatten() {
            match store.read_session(id) {
                Ok(_) => return Ok(Some(store.clone())),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // In the trash, or purged: it is not there for whoever goes on from it.
                Err(_) if self.was_deleted(id) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Returns whether a session was deleted here.
    pub(super) fn was_deleted(&self, id: &SessionId) -> bool {
        self.home.is_some_and(|home| home.was_deleted(id))
    }

    /// Takes a session for whoever asks first, until the claim is dropped.
    pub(super) fn claim(&self, id: &SessionId) -> Option<Claim<'_>> {
        let is_free = lock(&self.busy).insert(id.clone());
        is_free.then(|| Claim {
            busy: &self.busy,
            id: id.clone(),
        })
    }

    pub(super) fn is_busy(&self, id: &SessionId) -> bool {
        lock(&self.busy).contains(id)
    }

    /// Returns the record of a tool call of a session; 0 where it is not there.
    pub(super) fn call(&self, reader: &SessionReader, tool_use_id: &str) -> Result<u64> {
        let known = lock(&self.calls).get(reader.id()).cloned();
        if let Some(seq) = known.as_ref().and_then(|calls| calls.get(tool_use_id)) {
            return Ok(*seq);
        }
        // One that grew since has calls that were not there.
        let calls = Arc::new(calls_of(reader)?);
        let seq = calls.get(tool_use_id).copied().unwrap_or(0);
        lock(&self.calls).insert(reader.id().clone(), calls);
        Ok(seq)
    }

    /// Forgets the tool calls of a session that goes on.
    pub(super) fn forget_calls(&self, id: &SessionId) {
        lock(&self.calls).remove(id);
    }

    /// Opens a file that nobody else sees and that is gone when it is closed.
    pub(super) fn scratch(&self) -> Result<File> {
        let made = match &self.staging {
            Some(staging) => tempfile::tempfile_in(staging.aside().root()),
            None => tempfile::tempfile(),
        };
        made.map_err(|error| Error::io("cannot unpack aside", &std::env::temp_dir(), error))
    }
}

/// A session that somebody is taking in.
pub(super) struct Claim<'s> {
    busy: &'s Mutex<HashSet<SessionId>>,
    id: SessionId,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        lock(self.busy).remove(&self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn calls_of(reader: &SessionReader) -> Result<HashMap<String, u64>> {
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

/// Returns whether a record tells an item of a file.
pub(super) fn tells_item(kind: RecordKind<'_>) -> bool {
    matches!(
        kind,
        RecordKind::Message | RecordKind::Compaction | RecordKind::Usage
    )
}

/// Finds a place in a conversation; `None` where it is not there.
pub(super) fn find_place(reader: &SessionReader, after: &After) -> Result<Option<u64>> {
    let fits = |id: &str| match after {
        After::Nothing => false,
        After::Key(key) => id == key,
        After::LastUpTo(key) => id.len() == key.len() && id <= key.as_str(),
    };
    if *after == After::Nothing {
        return Ok(Some(0));
    }
    let mut back = reader.records_back()?;
    while let Some(record) = back.next()? {
        if tells_item(record.kind()) && record.id().is_some_and(|id| fits(&id)) {
            return Ok(Some(record.seq()));
        }
    }
    Ok(None)
}

/// Returns a file as a session holds it. It reads all trails of the session.
pub(super) fn held(reader: &SessionReader, path: &Path) -> Result<Option<KeptSource>> {
    let mut sources = reader.sources()?.into_iter();
    Ok(sources.find(|kept| kept.path == path && kept.held_by.is_none()))
}

/// Reads the record of a file where it is expected.
pub(super) fn source_at(
    reader: &SessionReader,
    path: &Path,
    (trail, seq, byte): Place,
) -> Option<SourceRecord> {
    let record = reader.trail_record(trail, seq, byte).ok()??;
    record
        .as_ref()
        .source()
        .filter(|source| source.path == path)
}

/// Returns whether nothing was said in a session after the record of a source.
pub(super) fn is_last(reader: &SessionReader, (trail, seq, byte): Place) -> Result<bool> {
    if reader.info()?.trails != trail + 1 {
        return Ok(false);
    }
    let mut records = reader.trail_records(trail, byte)?;
    while let Some(found) = records.next()? {
        if found.record.seq() > seq && tells_item(found.record.kind()) {
            return Ok(false);
        }
    }
    Ok(true)
}

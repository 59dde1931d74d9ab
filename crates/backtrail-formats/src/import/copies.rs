//! The events of a file that are copies of another session's.
//!
//! The file of a session that was handed over to another agent begins with copies of what the
//! session continues. They are not events of the session itself: wherever the file has them,
//! they are skipped. Their keys tell them; an agent that writes its file again under other keys
//! is recognised by their content, place by place.

use std::collections::HashSet;

use backtrail::{Block, ErrorKind, SessionReader, Store};
use serde::{Deserialize, Serialize};

use super::destination::{find_fork_point, is_event};
use super::diff::Change;
use super::file_note::FileNote;
use crate::error::Result;
use crate::event::{Event, ForkPoint, Thread, ThreadId};

/// The copied events of a file in their order, as they are noted in the session: for each event
/// the first digits of two hashes, of its key and of its content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct CopiedEvents(String);

/// Among ten thousand copies and as many new events, the chance that any of these is taken for
/// a copy is one in three million.
const KEY_DIGITS: usize = 12;
/// The contents of only two events are compared at a time.
const CONTENT_DIGITS: usize = 8;

impl CopiedEvents {
    /// Adds the next event.
    pub(super) fn add(&mut self, event: &Event) {
        self.0.push_str(&hash_key(event.key()));
        self.0.push_str(&hash_content(event));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let events = self.0.as_bytes().chunks_exact(KEY_DIGITS + CONTENT_DIGITS);
        events.filter_map(|event| {
            std::str::from_utf8(event)
                .ok()?
                .split_at_checked(KEY_DIGITS)
        })
    }
}

/// Tells which changes of a file are copies.
#[derive(Debug)]
pub(super) struct Copies {
    keys: HashSet<String>,
    contents: Vec<String>,
    /// The place of the next event in the file, if that is known.
    next: Option<usize>,
    /// The last record that the session shares with the one that it continues.
    shared_to: u64,
    was_seen: bool,
}

impl Copies {
    fn new(events: &CopiedEvents, shared_to: u64) -> Self {
        let own = |text: &str| text.to_owned();
        Self {
            keys: events.iter().map(|(key, _)| own(key)).collect(),
            contents: events.iter().map(|(_, content)| own(content)).collect(),
            next: None,
            shared_to,
            was_seen: false,
        }
    }

    /// Returns the copies in the file of a session, if it was handed over.
    pub(super) fn of(reader: &SessionReader) -> Result<Option<Self>> {
        Ok(match shared_part(reader)? {
            Some((_, seq)) => noted_copies(reader)?.map(|events| Self::new(&events, seq)),
            None => None,
        })
    }

    /// Returns the copies in the file of a session, or of the one that it is a branch of.
    pub(super) fn inherited(store: &Store, reader: &SessionReader) -> Result<Option<Self>> {
        /// No conversation has as many branches of branches.
        const MAX_DEPTH: usize = 64;
        let mut parent = None;
        for _ in 0..MAX_DEPTH {
            let reader = parent.as_ref().unwrap_or(reader);
            let Some((id, _)) = shared_part(reader)? else {
                return Ok(None);
            };
            if let Some(copies) = Self::of(reader)? {
                return Ok(Some(copies));
            }
            let Ok(id) = id.parse() else {
                return Ok(None);
            };
            parent = match store.read_session(&id) {
                Ok(reader) => Some(reader),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(_) if store.was_deleted(&id) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(None)
    }

    /// The file is read from its beginning.
    pub(super) fn at_beginning(mut self) -> Self {
        self.next = Some(0);
        self
    }

    /// The places of the next events in the file are not known.
    pub(super) fn in_the_middle(mut self) -> Self {
        self.next = None;
        self
    }

    /// Returns the last record that the session shares with the one that it continues.
    pub(super) fn shared_to(&self) -> u64 {
        self.shared_to
    }

    /// Returns the record at which the session begins, if the file has copies.
    pub(super) fn seen_to(&self) -> Option<u64> {
        self.was_seen.then_some(self.shared_to)
    }

    /// Returns the record of the session `reader` at which a thread parts from it; `None` if it
    /// is not there. A point among the copies is the session's beginning.
    pub(super) fn fork_point(
        &self,
        reader: &SessionReader,
        thread: &Thread,
        point: &ForkPoint,
    ) -> Result<Option<u64>> {
        let begins_as_copy = matches!(&thread.id, ThreadId::Branch(first) if self.has(first));
        let is_copy = match point {
            ForkPoint::Start => begins_as_copy,
            ForkPoint::After(key) => self.has(key),
            ForkPoint::AfterLastUpTo(_) => {
                let own = find_fork_point(reader, point)?;
                return Ok(Some(own.unwrap_or(0).max(self.shared_to)));
            }
        };
        match is_copy {
            true => Ok(Some(self.shared_to)),
            false => find_fork_point(reader, point),
        }
    }

    fn has(&self, key: &str) -> bool {
        self.keys.contains(&hash_key(key))
    }

    /// Returns a change of the file as one of the session; `None` for a copy. Rewinding to a
    /// copy is rewinding to the session's own beginning.
    pub(super) fn own(&mut self, change: Change) -> Option<Change> {
        match change {
            Change::Add(event) => {
                let place = self.next;
                self.next = place.map(|place| place + 1);
                let is_copy = self.has(event.key()) || self.is_same_at(place, &event);
                self.was_seen |= is_copy;
                (!is_copy).then_some(Change::Add(event))
            }
            Change::RewindTo(key) => {
                self.next = None;
                Some(Change::RewindTo(key.filter(|key| !self.has(key))))
            }
        }
    }

    /// Returns whether the copy at a place has this content. Its new key is known from then on.
    fn is_same_at(&mut self, place: Option<usize>, event: &Event) -> bool {
        let copy = place.and_then(|place| self.contents.get(place));
        let is_same = copy.is_some_and(|copy| *copy == hash_content(event));
        if is_same {
            self.keys.insert(hash_key(event.key()));
        }
        is_same
    }
}

/// Returns the session that another one continues, and the last record that they share.
fn shared_part(reader: &SessionReader) -> Result<Option<(String, u64)>> {
    let fork = reader.info()?.forked_from;
    Ok(fork.and_then(|fork| Some((fork.parent_session_id, fork.seq?))))
}

/// Returns the copies that are noted in a session itself: before its first event.
pub(super) fn noted_copies(reader: &SessionReader) -> Result<Option<CopiedEvents>> {
    let mut records = match reader.trail_records(0, 0) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        records => records?,
    };
    while let Some(found) = records.next()? {
        if let Some(source) = found.record.source() {
            return Ok(FileNote::parse(source.note.as_ref()).handed_over);
        }
        if is_event(found.record.kind()) {
            break;
        }
    }
    Ok(None)
}

fn hash_key(key: &str) -> String {
    blake3::hash(key.as_bytes()).to_hex()[..KEY_DIGITS].to_owned()
}

/// Hashes what people and models see of an event.
fn hash_content(event: &Event) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    match event {
        Event::Message(event) => {
            add(event.message.role.as_str());
            add(event.message.text().trim());
            for block in &event.message.blocks {
                match block {
                    Block::ToolUse(call) => {
                        add(call.id.as_str());
                        add(call.name.as_str());
                    }
                    Block::ToolResult(result) => {
                        add(result.tool_use_id.as_str());
                        add(result.output.as_str());
                    }
                    Block::Media(media) => add(media.data.as_str()),
                    _ => {}
                }
            }
        }
        Event::Usage(event) => add(&format!("{:?}", event.usage)),
        Event::Summary(event) => add(event.summary.trim()),
    }
    hasher.finalize().to_hex()[..CONTENT_DIGITS].to_owned()
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;

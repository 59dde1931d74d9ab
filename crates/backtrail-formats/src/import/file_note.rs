//! What is noted in a session about a file that was imported, for the next time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backtrail::{Json, Timestamp};
use serde::{Deserialize, Serialize};

use super::copies::CopiedEvents;
use crate::error::Result;
use crate::event::{Details, ReadReport};
use crate::source::Source;

/// A note about one reading of a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FileNote {
    pub(super) name: String,
    pub(super) read_to: u64,
    lines: u64,
    /// The number of damaged lines and of unknown records, in all readings.
    pub(super) damaged: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) unknown: BTreeMap<String, u64>,
    /// The agent's details of the session, so that a user's changes are not overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    /// The time of the first event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_at: Option<Timestamp>,
    /// Hashes of the beginning and the end of what was read.
    head: String,
    tail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<Json>,
    /// The events that the session does not have itself, because they are copies of those that
    /// it continues. Only the first note of a session that was handed over has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) handed_over: Option<CopiedEvents>,
}

/// How much of both ends of a file is compared.
const ENDS: u64 = 4 << 10;

impl FileNote {
    /// Reads a note; an empty one if there is none that can be read.
    pub(super) fn parse(note: Option<&Json>) -> Self {
        note.and_then(|note| note.parse().ok()).unwrap_or_default()
    }

    /// Creates the note on a session whose agent calls it `name`.
    pub(super) fn new(name: &str, report: &ReadReport) -> Self {
        let mut note = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        note.add(report);
        note
    }

    /// Returns the note on the same file after more of it was read.
    pub(super) fn after(&self, name: &str, report: &ReadReport) -> Self {
        let mut note = Self {
            name: name.to_owned(),
            handed_over: None,
            ..self.clone()
        };
        note.add(report);
        note
    }

    fn add(&mut self, report: &ReadReport) {
        self.read_to = report.read_to;
        self.lines = report.lines;
        self.damaged += report.damage.count;
        for (kind, count) in &report.unknown {
            *self.unknown.entry(kind.clone()).or_default() += count;
        }
        self.state.clone_from(&report.state);
    }

    pub(super) fn details(&self) -> Details {
        Details {
            title: self.title.clone(),
            model: self.model.clone(),
            directory: self.directory.clone(),
            ..Details::default()
        }
    }

    pub(super) fn update_details(&mut self, details: &Details) {
        self.title = details.title.clone().or(self.title.take());
        self.model = details.model.clone().or(self.model.take());
        self.directory = details.directory.clone().or(self.directory.take());
    }

    /// Notes both ends of the whole file.
    pub(super) fn note_ends(&mut self, raw: &Source) -> Result<()> {
        (self.head, self.tail) = hash_ends(raw, raw.len())?;
        Ok(())
    }

    /// Returns whether the first `len` bytes of a file have the ends that were noted.
    pub(super) fn has_ends(&self, raw: &Source, len: u64) -> Result<bool> {
        let (head, tail) = hash_ends(raw, len)?;
        Ok((head, tail) == (self.head.clone(), self.tail.clone()))
    }
}

/// Hashes both ends of the first `len` bytes.
fn hash_ends(raw: &Source, len: u64) -> Result<(String, String)> {
    let hash = |bytes: Vec<u8>| blake3::hash(&bytes).to_hex()[..16].to_owned();
    let head = raw.read_range(0..len.min(ENDS))?;
    let tail = raw.read_range(len.saturating_sub(ENDS)..len)?;
    Ok((hash(head), hash(tail)))
}

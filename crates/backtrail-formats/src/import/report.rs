//! What came of taking files in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Error;
use crate::format::Format;
use crate::told::DamagedLine;

/// What came of an import.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// What was found of each agent, in the order in which formats are listed.
    pub agents: Vec<AgentReport>,
    /// Files in directories that were named, of no format that is known.
    pub strangers: Vec<PathBuf>,
    /// What could not be looked at, of no agent that is known.
    pub errors: Vec<Error>,
}

/// What was found of one agent. Each file is new, updated, unchanged or an error.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentReport {
    /// The agent's name.
    pub agent: &'static str,
    /// The agent as it calls itself.
    pub title: &'static str,
    /// How many session files were found.
    pub found: u64,
    /// How many of them were not known.
    pub new: u64,
    /// How many told something that was not known.
    pub updated: u64,
    /// How many told nothing new.
    pub unchanged: u64,
    /// How many of the unchanged ones are of sessions that were deleted here.
    pub deleted: u64,
    /// How many lines of all of them cannot be read.
    pub damaged_lines: u64,
    /// The first of the lines that could not be read this time.
    pub damaged: Vec<(PathBuf, DamagedLine)>,
    /// Records that are not understood, by kind. They are kept.
    pub unknown: BTreeMap<String, u64>,
    /// How many files end in half a line, which their agent may still be writing.
    pub unfinished: u64,
    /// Messages that were taken in.
    pub messages: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// What was not taken in.
    pub errors: Vec<Error>,
}

/// How many damaged lines are told one by one.
const FIRST: usize = 20;

impl AgentReport {
    pub(super) fn new(format: &dyn Format) -> Self {
        Self {
            agent: format.name(),
            title: format.title(),
            found: 0,
            new: 0,
            updated: 0,
            unchanged: 0,
            deleted: 0,
            damaged_lines: 0,
            damaged: Vec::new(),
            unknown: BTreeMap::new(),
            unfinished: 0,
            messages: 0,
            bytes: 0,
            errors: Vec::new(),
        }
    }

    /// Returns how many records are not understood.
    pub fn unknown_records(&self) -> u64 {
        self.unknown.values().sum()
    }

    pub(super) fn add(&mut self, path: &std::path::Path, taken: Taken) {
        match taken.outcome {
            Outcome::New => self.new += 1,
            Outcome::Updated => self.updated += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Deleted => {
                self.unchanged += 1;
                self.deleted += 1;
            }
        }
        self.damaged_lines += taken.damaged;
        for (kind, count) in taken.unknown {
            *self.unknown.entry(kind).or_default() += count;
        }
        let room = FIRST.saturating_sub(self.damaged.len());
        let lines = taken.lines.into_iter().take(room);
        self.damaged
            .extend(lines.map(|line| (path.to_owned(), line)));
        self.unfinished += u64::from(taken.unfinished);
        self.messages += taken.messages;
        self.bytes += taken.bytes;
    }
}

/// What came of one file.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) outcome: Outcome,
    pub(super) damaged: u64,
    pub(super) unknown: BTreeMap<String, u64>,
    pub(super) lines: Vec<DamagedLine>,
    pub(super) unfinished: bool,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Taken {
    pub(super) fn nothing(outcome: Outcome) -> Self {
        Self {
            outcome,
            damaged: 0,
            unknown: BTreeMap::new(),
            lines: Vec::new(),
            unfinished: false,
            messages: 0,
            bytes: 0,
        }
    }
}

/// What a file told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    New,
    Updated,
    Unchanged,
    /// Its session was deleted here.
    Deleted,
}

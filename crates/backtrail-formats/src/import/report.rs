//! The result of an import.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backtrail::SessionId;
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::event::{DamagedLine, DamagedLines};
use crate::format::Format;

/// The result of an import.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The results of each agent's files, in the order in which formats are listed.
    pub agents: Vec<AgentReport>,
    /// The files in the given directories that have no known format.
    #[serde(serialize_with = "serialize_paths")]
    pub other_files: Vec<PathBuf>,
    /// Errors about files of no known agent.
    pub errors: Vec<Error>,
}

/// The results of one agent's files. Each file is new, updated, unchanged, excluded, skipped or an
/// error.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct AgentReport {
    /// The agent's name on the command line.
    pub agent: &'static str,
    /// The agent's name for people.
    pub title: &'static str,
    /// How many session files were found.
    pub found: u64,
    /// How many of them were imported for the first time.
    pub new: u64,
    /// How many of them had something new.
    pub updated: u64,
    /// How many of them had nothing new.
    pub unchanged: u64,
    /// How many of the unchanged ones belong to sessions that were deleted here.
    pub deleted_here: u64,
    /// How many of the unchanged ones contain no conversation (yet).
    pub without_conversation: u64,
    /// How many of them were not imported because the user excludes them.
    pub excluded: u64,
    /// How many damaged lines all of them have.
    pub damaged_lines: u64,
    /// The first damaged lines that were found this time.
    pub first_damaged: Vec<DamagedFileLine>,
    /// The number of unknown records, by type. They are kept.
    pub unknown_types: BTreeMap<String, u64>,
    /// What is in a file with many sessions and was not imported, because it belongs to none of
    /// them.
    pub not_imported: BTreeMap<String, u64>,
    /// How many files end in an incomplete line, which their agent may still be writing.
    pub unfinished_files: u64,
    /// How many messages were imported.
    pub messages: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// The files that are not the agent's, though they are where it keeps its sessions.
    pub skipped: Vec<SkippedFile>,
    /// Why files were not imported.
    pub errors: Vec<Error>,
}

/// A file that is not a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedFile {
    /// The file.
    #[serde(serialize_with = "serialize_path")]
    pub file: PathBuf,
    /// Why it is not a session.
    pub reason: String,
}

/// A damaged line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DamagedFileLine {
    /// The file.
    #[serde(serialize_with = "serialize_path")]
    pub file: PathBuf,
    /// The line.
    #[serde(flatten)]
    pub line: DamagedLine,
}

impl AgentReport {
    pub(super) fn new(format: &dyn Format) -> Self {
        Self {
            agent: format.name(),
            title: format.title(),
            ..Self::default()
        }
    }

    /// Returns how many unknown records there are.
    pub fn unknown_records(&self) -> u64 {
        self.unknown_types.values().sum()
    }

    /// Adds what is in a container and belongs to none of its sessions.
    pub(super) fn add_container(
        &mut self,
        path: &Path,
        damaged: u64,
        others: &BTreeMap<String, u64>,
    ) {
        self.damaged_lines += damaged;
        if damaged > 0 && self.first_damaged.len() < DamagedLines::MAX_LISTED {
            self.first_damaged.push(DamagedFileLine {
                file: path.to_owned(),
                line: DamagedLine {
                    line: 0,
                    byte: 0,
                    bytes: 0,
                    reason: "rows that cannot be read".to_owned(),
                },
            });
        }
        for (kind, count) in others {
            *self.not_imported.entry(kind.clone()).or_default() += count;
        }
    }

    pub(super) fn add(&mut self, path: &Path, result: FileResult) {
        match result.outcome {
            Outcome::New => self.new += 1,
            Outcome::Updated => self.updated += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Deleted => {
                self.unchanged += 1;
                self.deleted_here += 1;
            }
            Outcome::NoConversation => {
                self.unchanged += 1;
                self.without_conversation += 1;
            }
            Outcome::Excluded => self.excluded += 1,
            Outcome::NotASession(reason) => self.skipped.push(SkippedFile {
                file: path.to_owned(),
                reason,
            }),
        }
        self.damaged_lines += result.damaged;
        for (kind, count) in result.unknown {
            *self.unknown_types.entry(kind).or_default() += count;
        }
        let room = DamagedLines::MAX_LISTED.saturating_sub(self.first_damaged.len());
        let lines = result.first_damaged.into_iter().take(room);
        self.first_damaged.extend(lines.map(|line| DamagedFileLine {
            file: path.to_owned(),
            line,
        }));
        self.unfinished_files += u64::from(result.is_unfinished);
        self.messages += result.messages;
        self.bytes += result.bytes;
    }
}

fn serialize_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn serialize_paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// The result of one file.
#[derive(Debug, Default)]
pub(super) struct FileResult {
    pub(super) outcome: Outcome,
    pub(super) damaged: u64,
    pub(super) unknown: BTreeMap<String, u64>,
    pub(super) first_damaged: Vec<DamagedLine>,
    pub(super) is_unfinished: bool,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// The sessions of the conversations that were read.
    pub(super) sessions: Vec<ReadSession>,
}

impl From<Outcome> for FileResult {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            ..Self::default()
        }
    }
}

/// The session of a conversation in a file that was read, whether it changed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadSession {
    pub(crate) id: SessionId,
    /// Whether this import created it.
    pub(crate) created: bool,
}

/// What the import of a file changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Outcome {
    New,
    Updated,
    #[default]
    Unchanged,
    /// Its session was deleted here.
    Deleted,
    /// It contains no conversation (yet), so it is not a session.
    NoConversation,
    /// The user excludes it.
    Excluded,
    /// It is not a file of its agent, for this reason.
    NotASession(String),
}

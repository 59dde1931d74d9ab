//! What every format does.

use std::path::{Path, PathBuf};

use backtrail::Json;

use crate::error::Error;
use crate::formats::{CheckpointFiles, ClaudeCode, ClawCode, Codex, GeminiCli, Pi};
use crate::places::Environment;
use crate::source::Source;
use crate::told::{Sink, Told};

/// The session files of one agent.
pub trait Format: Sync + Send {
    /// Returns the agent as it is named on the command line and in sessions.
    fn name(&self) -> &'static str;

    /// Returns the agent as it calls itself.
    fn title(&self) -> &'static str;

    /// Returns what of the format is understood.
    fn support(&self) -> Support;

    /// Returns the directories in which the agent keeps its sessions, whether they are
    /// there or not.
    fn places(&self, environment: &Environment) -> Vec<PathBuf>;

    /// Returns whether a file in one of [`places`](Self::places) is a session of its own,
    /// by its name. Files that only go with a session (indexes, outputs of tools) are not.
    fn is_session_name(&self, path: &Path) -> bool;

    /// Returns whether a file, wherever it is and whatever its name, is of this format.
    /// It looks at the beginning alone: at most 256 KiB.
    fn recognises(&self, source: &Source) -> bool;

    /// Returns whether a file goes with another one, by its name, and is better read after
    /// it: that of a sub-agent.
    fn follows(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Returns whether several files of one session may each tell a part of it, so that the
    /// lines of all of them, the oldest file first, are read as one.
    fn joins(&self) -> bool {
        false
    }

    /// Reads a file, or what came since it was read last.
    ///
    /// With `resume`, the source up to `resume.read_to` is what it was, and the sink has
    /// been told all that it says. A format that cannot go on from there returns
    /// [`ReadError::StartOver`] before it tells anything; it is then asked again without.
    ///
    /// Going on tells the same, in the end, as reading the whole at once.
    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError>;
}

/// Returns all formats.
pub fn formats() -> impl Iterator<Item = &'static dyn Format> {
    const ALL: [&dyn Format; 6] = [
        &ClaudeCode,
        &Codex,
        &GeminiCli,
        &Pi,
        &ClawCode,
        &CheckpointFiles,
    ];
    ALL.into_iter()
}

/// What of a format is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// Only what was appended is read again.
    pub appends: bool,
    /// Other branches of a conversation become forks.
    pub branches: bool,
    /// Sub-agents become sessions of their own.
    pub sub_agents: bool,
    /// Summaries in place of what was said.
    pub compactions: bool,
    /// What the model calls used.
    pub usage: bool,
    /// Images and other media.
    pub media: bool,
    /// The versions that were seen.
    pub versions: &'static str,
}

impl Support {
    /// Makes one that understands messages and tool calls alone.
    pub(crate) const fn messages(versions: &'static str) -> Self {
        Self {
            appends: false,
            branches: false,
            sub_agents: false,
            compactions: false,
            usage: false,
            media: false,
            versions,
        }
    }
}

/// Where reading goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// How far it was read.
    pub read_to: u64,
    /// What [`Told::state`] was then.
    pub state: Json,
}

/// Why a file was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// It must be read from the beginning.
    StartOver,
    /// It cannot be read, or the sink failed.
    Failed(Error),
}

impl<E: Into<Error>> From<E> for ReadError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StartOver => f.write_str("the file must be read from the beginning"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::StartOver => None,
            Self::Failed(error) => error.source(),
        }
    }
}

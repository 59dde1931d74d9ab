//! The record of a command that ran.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hex::{lossy_path, lossy_paths, path_of, to_hex};
use crate::ids::{CheckpointId, SessionId};
use crate::json::body;
use crate::log::append_entry;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::{RecordKind, RecordRef};

/// A command that ran. Its output is not kept.
///
/// In JSON, arguments and directory are strings; bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The command and its arguments.
    #[serde(serialize_with = "lossy_paths")]
    pub argv: Vec<OsString>,
    /// The directory it ran in.
    #[serde(serialize_with = "lossy_path")]
    pub directory: PathBuf,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// Its exit code; `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The checkpoint before it.
    pub before: Option<CheckpointId>,
    /// The checkpoint after it.
    pub after: Option<CheckpointId>,
}

/// How a turn or run ended.
///
/// In JSON, `result` is its name, with `exit_code` and `signal` for one that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// It ended; a command exited with 0.
    Done,
    /// The command failed.
    Failed {
        /// Its exit code; `None` if a signal ended it.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// Its process died, or the turn was given up.
    Interrupted,
    /// It is running.
    Running,
}

impl Ending {
    /// Returns it as one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
            Self::Running => "running",
        }
    }

    /// Returns how a command ended.
    pub fn of_command(exit_code: Option<i32>, signal: Option<i32>) -> Self {
        match exit_code {
            Some(0) => Self::Done,
            exit_code => Self::Failed { exit_code, signal },
        }
    }
}

/// Says what is not as it should be: `failed, exit 3`; empty for one that is done.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => Ok(()),
            Self::Failed {
                exit_code: Some(code),
                ..
            } => write!(f, "failed, exit {code}"),
            Self::Failed {
                signal: Some(signal),
                ..
            } => write!(f, "failed, signal {signal}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// A program that may have changed something instead of the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Program {
    /// An agent that keeps its own session, such as `claude-code`.
    Agent(String),
    /// A process that outlived its run, by its command.
    Process(String),
    /// A turn.
    Turn,
    /// A run.
    Run,
}

/// The type of a run's record.
const RUN: &str = "run";

/// The fields of a run's record, after its number.
#[derive(Serialize, Deserialize)]
struct RunRecord {
    at: Timestamp,
    id: uuid::Uuid,
    argv: Vec<String>,
    /// The bytes of the arguments, if one is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    argv_hex: Option<Vec<String>>,
    directory: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory_hex: Option<String>,
    started_at: Timestamp,
    duration_ms: u64,
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<CheckpointId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<CheckpointId>,
}

impl Run {
    fn body(&self, at: Timestamp, id: uuid::Uuid) -> RunRecord {
        let hex = |text: &OsString| to_hex(text.as_encoded_bytes());
        let odd = self.argv.iter().any(|arg| arg.to_str().is_none());
        let directory = self.directory.as_os_str();
        RunRecord {
            at,
            id,
            argv: self
                .argv
                .iter()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect(),
            argv_hex: odd.then(|| self.argv.iter().map(hex).collect()),
            directory: directory.to_string_lossy().into_owned(),
            directory_hex: directory
                .to_str()
                .is_none()
                .then(|| to_hex(directory.as_encoded_bytes())),
            started_at: self.started_at,
            duration_ms: self.duration_ms,
            exit_code: self.exit_code,
            signal: self.signal,
            before: self.before,
            after: self.after,
        }
    }
}

impl From<RunRecord> for Run {
    fn from(body: RunRecord) -> Self {
        let argv = body.argv.iter().enumerate().map(|(n, text)| {
            let hex = body.argv_hex.as_ref().and_then(|all| all.get(n));
            path_of(text, hex.map(String::as_str)).into_os_string()
        });
        Self {
            argv: argv.collect(),
            directory: path_of(&body.directory, body.directory_hex.as_deref()),
            started_at: body.started_at,
            duration_ms: body.duration_ms,
            exit_code: body.exit_code,
            signal: body.signal,
            before: body.before,
            after: body.after,
        }
    }
}

impl RecordRef<'_> {
    /// Parses the run, if this is a record of one; `None` for other kinds.
    ///
    /// # Errors
    ///
    /// Fails with `Corrupt` if the record is not that of a run.
    pub fn run(&self) -> Result<Option<Run>> {
        let read = self.parse_as::<RunRecord>(RecordKind::Run)?;
        Ok(read.map(Run::from))
    }
}

/// Records a command in a session, even if another process is writing to it.
pub(crate) fn append_run(store: &Store, session: &SessionId, run: &Run) -> Result<u64> {
    let body = body(&run.body(store.now(), store.new_id()?))?;
    append_entry(store, &store.files(session), RUN, &body)
}

//! What every format implements.
//!
//! A file is read in two steps. [`Format::open`] finds out which session the file belongs to
//! and where that session comes from, so that the importer can decide what to do with it
//! (wait for the parent, skip a deleted session, combine several files) before the first
//! event. [`OpenFile::read`] then sends the events to a sink.

use std::path::{Path, PathBuf};

use backtrail::Json;
use serde::Serialize;

use crate::container::Container;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{EventSink, Origin, ReadReport, Thread};
use crate::formats::{
    Aider, Antigravity, Atif, CheckpointFiles, ClaudeCode, ClawCode, Cline, Codex, CopilotCli,
    Crush, Cursor, Droid, GeminiCli, Goose, GrokCli, Hermes, HfTraces, KiloCode, KimiCli, OpenClaw,
    OpenCode, Pi, QwenCode, RooCode,
};
use crate::source::Source;
use crate::sqlite;
use crate::tables::{Tables, open_database};

/// The session files of one agent.
pub trait Format: Sync + Send {
    /// Returns the agent's names, and which parts of its format are supported.
    fn agent(&self) -> Agent;

    /// Returns the agent's name on the command line and in sessions.
    fn name(&self) -> &'static str {
        self.agent().name
    }

    /// Returns the agent's name for people.
    fn title(&self) -> &'static str {
        self.agent().title
    }

    /// Returns the directories in which the agent keeps its sessions, whether they exist or
    /// not.
    fn directories(&self, environment: &Environment) -> Vec<PathBuf>;

    /// Returns whether a file in one of the [`directories`](Self::directories) is a session,
    /// by its name. Files that only accompany a session (indexes, tool output) are not.
    fn is_session_file(&self, path: &Path) -> bool;

    /// Returns whether a directory in one of those may contain sessions, by its name.
    fn may_contain_sessions(&self, directory: &Path) -> bool {
        let _ = directory;
        true
    }

    /// Returns whether a file is a part of a session that another file stands for.
    fn accompanies_session(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Returns whether a file has this format, whatever its name and directory. Reads at
    /// most the first 256 KiB.
    fn recognises(&self, source: &Source) -> bool;

    /// Returns whether a file belongs to a sub-agent, by its name. Such files are read after
    /// all others.
    fn is_sub_agent_file(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Returns whether several files of one session may each contain a part of it, so that
    /// the lines of all of them, the oldest file first, are read as one file.
    fn joins_files(&self) -> bool {
        false
    }

    /// Returns the tables in which the agent keeps its sessions, if it keeps them in an SQLite
    /// database.
    fn tables(&self) -> Option<&'static Tables> {
        None
    }

    /// Opens a file that contains many sessions. `None` if it is itself one session.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    fn container(&self, path: &Path) -> Result<Option<Box<dyn Container>>> {
        match self.tables() {
            Some(tables) if sqlite::is_database(&Source::open(path)?.head()) => {
                open_database(path, tables)
            }
            _ => Ok(None),
        }
    }

    /// Returns the directories inside a project in which the agent keeps sessions of that
    /// project. Sessions in directories below these do not count.
    fn project_directories(&self, project: &Path) -> Vec<PathBuf> {
        let _ = project;
        Vec::new()
    }

    /// Returns what tells whether a line of the agent's file ends a turn. `None` if only an
    /// answer without calls does.
    fn turn_end(&self) -> Option<fn(&str) -> bool> {
        None
    }

    /// Opens a file to read it from the beginning.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read. Damaged content is not an error; it is counted in
    /// the [`ReadReport`].
    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>>;

    /// Opens a file to read only what was appended since an earlier reading. Returns `None`
    /// if it must be read from the beginning.
    ///
    /// The source up to `resume.read_to` is unchanged, nothing was added to the line that ends
    /// there ([`Source::can_resume_at`]), and the sink has received its events.
    /// In the end, the sink has received the same as from reading the whole file at once.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let _ = (source, resume);
        Ok(None)
    }
}

/// Returns all formats.
pub fn formats() -> impl Iterator<Item = &'static dyn Format> {
    const ALL: &[&dyn Format] = &[
        &ClaudeCode,
        &Codex,
        &GeminiCli,
        &OpenCode,
        &QwenCode,
        &CopilotCli,
        &Cursor,
        &Pi,
        &Cline,
        &RooCode,
        &KiloCode,
        &Goose,
        &Crush,
        &Aider,
        &Droid,
        &KimiCli,
        &Antigravity,
        &GrokCli,
        &OpenClaw,
        &Hermes,
        &ClawCode,
        &Atif,
        &HfTraces,
        &CheckpointFiles,
    ];
    ALL.iter().copied()
}

/// A file whose session is known and whose events can be read.
pub struct OpenFile<'s> {
    session: Option<String>,
    origin: Origin,
    read: Box<ReadEvents<'s>>,
}

type ReadEvents<'s> = dyn FnOnce(&mut dyn EventSink) -> Result<ReadReport> + 's;

impl<'s> OpenFile<'s> {
    /// Creates one. `read` sends the events; the main thread is current when it starts.
    pub fn new(
        session: impl Into<String>,
        origin: Origin,
        read: impl FnOnce(&mut dyn EventSink) -> Result<ReadReport> + 's,
    ) -> Self {
        Self {
            session: Some(session.into()),
            origin,
            read: Box::new(read),
        }
    }

    /// Creates one for a file that does not name its session yet.
    pub fn unnamed(report: ReadReport) -> Self {
        Self {
            session: None,
            origin: Origin::Start,
            read: Box::new(|_| Ok(report)),
        }
    }

    /// Returns the session, by its agent's name for it. `None` if the file does not name it yet.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Returns where the file's own conversation comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Sends the events to a sink.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or the sink fails.
    pub fn read(self, sink: &mut dyn EventSink) -> Result<ReadReport> {
        if self.session.is_some() {
            sink.thread(&Thread::main(self.origin))?;
        }
        (self.read)(sink)
    }
}

impl std::fmt::Debug for OpenFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFile")
            .field("session", &self.session)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// An agent, and which parts of its format are supported, apart from messages and tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Agent {
    /// The agent's name on the command line and in sessions.
    pub name: &'static str,
    /// The agent's name for people.
    pub title: &'static str,
    /// Only appended lines are read again.
    pub appends: bool,
    /// Other branches of a conversation become forks.
    pub branches: bool,
    /// Sub-agents become sessions of their own.
    pub sub_agents: bool,
    /// Summaries that replace messages.
    pub compactions: bool,
    /// The usage of model calls.
    pub usage: bool,
    /// Images and other media.
    pub media: bool,
    /// The versions it was tested with.
    pub versions: &'static str,
    /// What its program is called.
    #[serde(skip)]
    pub programs: &'static [&'static str],
    /// The packages that contain its program, as npm or PyPI call them.
    #[serde(skip)]
    pub packages: &'static [&'static str],
}

impl Agent {
    /// Creates an agent of whose format only messages and tool calls are supported.
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        versions: &'static str,
    ) -> Self {
        Self {
            name,
            title,
            appends: false,
            branches: false,
            sub_agents: false,
            compactions: false,
            usage: false,
            media: false,
            versions,
            programs: &[],
            packages: &[],
        }
    }
}

/// Where an earlier reading ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// How far the file was read.
    pub read_to: u64,
    /// The [`ReadReport::state`] of that reading.
    pub state: Json,
}

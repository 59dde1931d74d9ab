//! Cline, and the extensions that share its files: Roo Code and Kilo Code.
//!
//! A session of the command line is a list of messages (`<id>.messages.json`) beside a manifest
//! (`<id>.json`). A task of the editor's extension is a directory with the messages
//! (`api_conversation_history.json`), what the user saw (`ui_messages.json`, which alone tells
//! what a request used) and more. Both files are one JSON value that is rewritten as a whole.

mod content;
mod messages;
mod requests;
mod session;
mod task;
mod xml;

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::error::Result;
use crate::format::{Agent, Format, OpenFile};
use crate::source::{Source, file_name};

/// Cline: the sessions of its command line, and the tasks of its extension.
#[derive(Debug, Clone, Copy)]
pub struct Cline;

/// Roo Code: tasks like those of Cline's extension.
#[derive(Debug, Clone, Copy)]
pub struct RooCode;

/// Kilo Code: tasks like those of Cline's extension.
#[derive(Debug, Clone, Copy)]
pub struct KiloCode;

/// Which extension wrote a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extension {
    Cline,
    RooCode,
    KiloCode,
}

impl Extension {
    /// Returns the extension's id, which is the name of its directory.
    fn id(self) -> &'static str {
        match self {
            Self::Cline => "saoudrizwan.claude-dev",
            Self::RooCode => "rooveterinaryinc.roo-cline",
            Self::KiloCode => "kilocode.kilo-code",
        }
    }

    /// Returns the extension that a path belongs to. All three write the same, so others are
    /// taken for Cline's.
    fn of_path(path: &Path) -> Self {
        let path = path.to_string_lossy();
        if path.contains(Self::RooCode.id()) {
            Self::RooCode
        } else if path.contains(Self::KiloCode.id()) || path.contains("/.kilocode/") {
            Self::KiloCode
        } else {
            Self::Cline
        }
    }

    /// Returns the directories in which editors keep the extension's tasks.
    fn directories(self, environment: &Environment) -> Vec<PathBuf> {
        const EDITORS: [&str; 5] = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];
        let config = environment.directory("XDG_CONFIG_HOME", ".config");
        let desktop = EDITORS
            .iter()
            .filter_map(|editor| Some(config.as_ref()?.join(editor)));
        let server = environment
            .home()
            .map(|home| home.join(".vscode-server/data"));
        let tasks = |data: PathBuf| {
            let storage = data.join("User/globalStorage").join(self.id());
            storage.join("tasks")
        };
        desktop.chain(server).map(tasks).collect()
    }

    fn recognises(self, source: &Source) -> bool {
        Self::of_path(source.path()) == self && task::is_task(source)
    }
}

/// Returns an agent of whose tasks everything that these files contain is supported.
const fn agent(name: &'static str, title: &'static str, versions: &'static str) -> Agent {
    Agent {
        sub_agents: true,
        compactions: true,
        usage: true,
        media: true,
        ..Agent::new(name, title, versions)
    }
}

impl Format for Cline {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["cline"],
            packages: &["cline"],
            ..agent(
                "cline",
                "Cline",
                "command line 3.0, tasks of the extension (documented shape)",
            )
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let data = match environment.variable("CLINE_DATA_DIR") {
            Some(data) => Some(PathBuf::from(data)),
            None => environment
                .directory("CLINE_DIR", ".cline")
                .map(|cline| cline.join("data")),
        };
        match environment.variable("CLINE_SESSION_DATA_DIR") {
            Some(sessions) => found.push(PathBuf::from(sessions)),
            None => found.extend(data.as_ref().map(|data| data.join("sessions"))),
        }
        found.extend(data.map(|data| data.join("tasks")));
        found.extend(Extension::Cline.directories(environment));
        found
    }

    fn is_session_file(&self, path: &Path) -> bool {
        file_name(path).ends_with(session::MESSAGES) || task::is_task_file(path)
    }

    fn recognises(&self, source: &Source) -> bool {
        session::is_session(source) || Extension::Cline.recognises(source)
    }

    fn is_sub_agent_file(&self, path: &Path) -> bool {
        session::is_sub_agent(path)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        match task::is_task(source) {
            true => task::open(source, Extension::Cline),
            false => session::open(source),
        }
    }
}

impl Format for RooCode {
    fn agent(&self) -> Agent {
        agent("roo-code", "Roo Code", "documented shape")
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        Extension::RooCode.directories(environment)
    }

    fn is_session_file(&self, path: &Path) -> bool {
        task::is_task_file(path)
    }

    fn recognises(&self, source: &Source) -> bool {
        Extension::RooCode.recognises(source)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        task::open(source, Extension::RooCode)
    }
}

impl Format for KiloCode {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["kilocode", "kilo"],
            packages: &["@kilocode/cli"],
            ..agent("kilo-code", "Kilo Code", "documented shape")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let mut found = Extension::KiloCode.directories(environment);
        found.extend(
            environment
                .home()
                .map(|home| home.join(".kilocode/cli/global/tasks")),
        );
        found
    }

    fn is_session_file(&self, path: &Path) -> bool {
        task::is_task_file(path)
    }

    fn recognises(&self, source: &Source) -> bool {
        Extension::KiloCode.recognises(source)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        task::open(source, Extension::KiloCode)
    }
}

#[cfg(test)]
#[path = "cline_tests.rs"]
mod tests;

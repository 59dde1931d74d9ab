//! A session that was made for an agent, and starting the agent on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use backtrail::{SessionId, Store};
use backtrail_formats::{Launcher, Losses, NewSession};
use serde_json::json;

use crate::commands::Answer;
use crate::commands::run::{self, RunArgs};
use crate::commands::workspace::WorkspaceArgs;
use crate::error::{CommandError, Result};
use crate::home::workspace_root;
use crate::shell::{command_line, quote_path};
use crate::text::path_json;
use crate::ui::Ui;

/// A session that was made for an agent.
pub(super) struct MadeSession {
    agent: &'static str,
    id: String,
    file: PathBuf,
    command: Vec<String>,
    directory: PathBuf,
    /// The session here that continues the original; `None` for a copy, which is imported when
    /// the agent adds to it.
    pub(super) session: Option<SessionId>,
    pub(super) losses: Losses,
}

impl MadeSession {
    pub(super) fn new(agent: &Launcher, new: &NewSession<'_>, file: PathBuf) -> Self {
        Self {
            agent: agent.name(),
            id: new.id.clone(),
            file,
            command: agent.command(&new.id),
            directory: new.directory.clone(),
            session: None,
            losses: Losses::default(),
        }
    }

    /// Prints the command that continues it.
    pub(super) fn print(&self, ui: &Ui) -> Result<Answer> {
        if ui.json() {
            return ui.answer_json(&json!({
                "agent": self.agent,
                "new_id": self.id,
                "file": path_json(&self.file),
                "command": self.command,
                "directory": path_json(&self.directory),
                "session": self.session,
                "losses": self.losses,
            }));
        }
        let command = command_line(&self.words());
        let directory = quote_path(&self.directory);
        ui.print_line(&format!("cd {directory} && {command}"))?;
        Ok(Answer::Done)
    }

    /// Starts the agent, as `run` does.
    pub(super) fn start(self, store: &Store, ui: &Ui) -> Result<Answer> {
        let root = store.workspace_root(&self.directory)?;
        let here = match workspace_root(store).is_some_and(|here| here == root) {
            true => WorkspaceArgs::default(),
            false => WorkspaceArgs::named(root),
        };
        let args = RunArgs::of_command(self.words(), self.directory, here);
        run::run(&args, ui)
    }

    fn words(&self) -> Vec<OsString> {
        self.command.iter().map(OsString::from).collect()
    }
}

/// Why a file could not be written.
pub(super) enum WriteError {
    Content(CommandError),
    File(std::io::Error),
}

impl WriteError {
    /// Returns the error of an attempt to write a file.
    pub(super) fn at(self, what: &str, file: &Path) -> CommandError {
        match self {
            Self::Content(error) => error,
            Self::File(error) => CommandError::io(what, Some(file), &error),
        }
    }
}

impl From<std::io::Error> for WriteError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

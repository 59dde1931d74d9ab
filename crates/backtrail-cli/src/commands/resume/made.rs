//! A session that was made for an agent, and starting the agent on it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use backtrail::trash::DeleteScope;
use backtrail::{SessionId, Store};
use backtrail_formats::{Launcher, Losses, NewSession};
use serde_json::json;

use crate::commands::Answer;
use crate::commands::run::{self, RunArgs};
use crate::commands::workspace::WorkspaceArgs;
use crate::error::{CommandError, Result};
use crate::files::StagedFile;
use crate::home::workspace_root;
use crate::shell::{command_line, quote_path};
use crate::text::path_json;
use crate::ui::Ui;

/// What failed if a session could not be written.
pub(super) const CANNOT_WRITE: &str = "cannot write the session";

/// A session that is written for an agent, which does not find it yet.
pub(super) struct StagedSession {
    made: MadeSession,
    /// The file; `None` if the agent imported it, and finds it already.
    file: Option<StagedFile>,
    /// Small files beside it. They come last, as some agents find a session by them.
    pub(super) companions: Vec<StagedFile>,
    /// The report that it is made.
    text: String,
}

impl StagedSession {
    pub(super) fn new(made: MadeSession, file: Option<StagedFile>, text: String) -> Self {
        Self {
            made,
            file,
            companions: Vec::new(),
            text,
        }
    }

    /// Lets the agent find it, and reports it.
    pub(super) fn finish(self, store: &Store, ui: &Ui) -> Result<MadeSession> {
        let made = self.made;
        let failed = |error| CommandError::io(CANNOT_WRITE, Some(&made.file), &error);
        if let Some(file) = self.file
            && let Err(error) = file.finish()
        {
            made.purge(store);
            return Err(failed(error));
        }
        for companion in self.companions {
            match companion.finish() {
                // Several sessions may share one.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                done => done.map_err(failed)?,
            }
        }
        for loss in made.losses.rows() {
            ui.status(&format!("note: {loss}"));
        }
        ui.status(&self.text);
        Ok(made)
    }

    /// Removes it because of an error, which is returned.
    pub(super) fn give_up(self, error: CommandError, store: &Store, ui: &Ui) -> CommandError {
        if self.file.is_some() {
            self.made.purge(store);
            return error;
        }
        // It is in the agent's database. Without the session here, the next import would count
        // all of it twice.
        ui.status(&self.text);
        error.hint(format!(
            "continue without the files: {}",
            self.made.command_line()
        ))
    }
}

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
        ui.print_line(&self.command_line())?;
        Ok(Answer::Done)
    }

    /// Returns the command that continues it, as it is typed.
    fn command_line(&self) -> String {
        let command = command_line(&self.words());
        format!("cd {} && {command}", quote_path(&self.directory))
    }

    /// Removes the session here that continues the original: nothing will ever be added to it.
    fn purge(&self, store: &Store) {
        let ids = self.session.as_slice();
        if !ids.is_empty() {
            let plan = store.purge_plan(ids, DeleteScope::Named);
            plan.and_then(|plan| plan.apply()).ok();
        }
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

//! The `--workspace` option, and points in time of a workspace.

use std::env;
use std::path::{Path, PathBuf};

use backtrail::workspace::CheckpointReason;
use backtrail::{Checkpoint, CheckpointId, ErrorKind, Point, SessionId, Store, Workspace};
use backtrail_formats::{bind_new, sessions_of};

use super::import::{failed, import_options};
use super::recovery::Finish;
use super::{open_files_store, open_or_create_store, resolve};
use crate::error::{CommandError, Result};
use crate::home::{current_dir, tilde, workspace_root};
use crate::progress::while_waiting;
use crate::shell::{quote, quote_path};
use crate::text::{one_line, visible};
use crate::ui::Ui;
use crate::when;

/// Holds the session of `backtrail run`; nested commands use it.
pub(crate) const SESSION_VARIABLE: &str = "BACKTRAIL_SESSION";

/// Holds the checkpoint before the command of `backtrail run`.
pub(crate) const RUN_VARIABLE: &str = "BACKTRAIL_RUN";

/// The workspace
#[derive(Debug, Default, clap::Args)]
pub(crate) struct WorkspaceArgs {
    /// Use the workspace in this directory [default: the enclosing known workspace, else
    /// the nearest directory with .git, else the current directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl WorkspaceArgs {
    /// Returns the option that names a workspace.
    pub(super) fn named(root: PathBuf) -> Self {
        Self {
            workspace: Some(root),
        }
    }

    /// Returns whether it was named on the command line.
    pub(crate) fn is_named(&self) -> bool {
        self.workspace.is_some()
    }

    /// Returns a verb as typed for the same store and workspace.
    pub(crate) fn command(&self, ui: &Ui, verb: &str) -> String {
        format!("{} {verb}{}", ui.program(), self.flag())
    }

    /// Returns the option that names the workspace, if it was given.
    pub(crate) fn flag(&self) -> String {
        self.workspace.as_ref().map_or_else(String::new, |dir| {
            format!(" --workspace {}", quote_path(dir))
        })
    }

    fn root(&self, store: Option<&Store>) -> Result<PathBuf> {
        if let Some(dir) = &self.workspace {
            return Ok(dir.clone());
        }
        let here = current_dir()?;
        match store {
            Some(store) => Ok(store.workspace_root(&here)?),
            None => Ok(here),
        }
    }

    /// Opens the workspace, creating it if it is new. Refuses the whole file system and the
    /// home directory unless `anywhere`. Finishes an interrupted rewind first.
    pub(crate) fn open_or_create(&self, anywhere: bool, ui: &Ui) -> Result<Workspace> {
        let store = open_or_create_store(ui)?;
        let root = self.root(Some(&store))?;
        if !anywhere && let Some(what) = too_wide(&root) {
            return Err(CommandError::invalid(what)
                .hint("cd to a project, or pass --workspace DIR")
                .hint("to do it anyway: --yes"));
        }
        let workspace = store.workspace(&root)?;
        Finish::ToWrite.finish(&workspace, ui)?;
        Ok(workspace)
    }

    /// Opens the workspace if it is known; creates nothing. Finishes an interrupted rewind
    /// first.
    pub(crate) fn find(&self, ui: &Ui, finish: Finish) -> Result<Option<Workspace>> {
        self.find_when(ui, finish, WhenBusy::Wait)
    }

    /// Does the same without waiting for a process that is importing.
    pub(super) fn find_at_once(&self, ui: &Ui, finish: Finish) -> Result<Option<Workspace>> {
        self.find_when(ui, finish, WhenBusy::Skip)
    }

    fn find_when(&self, ui: &Ui, finish: Finish, busy: WhenBusy) -> Result<Option<Workspace>> {
        let Some(store) = open_files_store(ui)? else {
            return Ok(None);
        };
        let root = self.root(Some(&store))?;
        let found = store.find_workspace(&root)?;
        if let Some(workspace) = &found {
            make_ready(workspace, finish, busy, ui)?;
        }
        Ok(found)
    }

    /// Opens the workspace; fails if it is not known.
    pub(crate) fn require(&self, ui: &Ui, finish: Finish) -> Result<Workspace> {
        match self.find(ui, finish)? {
            Some(workspace) => Ok(workspace),
            None => Err(self.unknown(ui)?),
        }
    }

    /// Returns the error for an unknown workspace, with how to start.
    pub(crate) fn unknown(&self, ui: &Ui) -> Result<CommandError> {
        let store = open_files_store(ui)?;
        let root = self.root(store.as_ref())?;
        let what = format!("no checkpoints in {} yet", tilde(&root));
        Ok(CommandError::not_found(what)
            .hint(format!("make one: {}", self.command(ui, "checkpoint")))
            .hint(format!(
                "or run a command: {} -- COMMAND",
                self.command(ui, "run")
            )))
    }

    /// Reports that there are no checkpoints, with how to start.
    pub(crate) fn report_no_checkpoints(&self, ui: &Ui) {
        let run = self.command(ui, "run");
        ui.status(&format!(
            "no checkpoints here yet; start with: {run} -- COMMAND"
        ));
    }

    /// Finds the checkpoint that a point means; the error for a wrong one names the nearest.
    pub(crate) fn resolve(
        &self,
        workspace: &Workspace,
        point: &Point,
        ui: &Ui,
    ) -> Result<Checkpoint> {
        let found = workspace.resolve(point);
        found.map_err(|error| self.wrong_point(workspace, point, ui, error))
    }

    /// Returns the hint for a path that did not exist at a point.
    pub(crate) fn when_changed(&self, path: &Path, ui: &Ui) -> String {
        let log = self.command(ui, "log");
        format!("see when it changed: {log} -- {}", quote_path(path))
    }

    /// Adds what a wrong point may have meant.
    pub(crate) fn wrong_point(
        &self,
        workspace: &Workspace,
        point: &Point,
        ui: &Ui,
        error: backtrail::Error,
    ) -> CommandError {
        let is_session = |reference: &str| workspace.store().resolve(reference).is_ok();
        let all = match record_of(point) {
            Some((reference, _)) if !is_session(&reference) => format!("{} list", ui.program()),
            _ => self.command(ui, "log"),
        };
        let points = error.points().to_vec();
        let kind = error.kind();
        let command = CommandError::from(error);
        match (kind, points.is_empty()) {
            (ErrorKind::Ambiguous, _) => points.iter().take(5).fold(command, |command, id| {
                command.hint(describe_point(workspace, id))
            }),
            (ErrorKind::NotFound, false) => {
                let near = points.iter().map(|point| describe_point(workspace, point));
                let near: Vec<String> = near.collect();
                let one_of = if near.len() == 1 { "" } else { "one of: " };
                command.hint(format!(
                    "did you mean {one_of}{}? (all: {all})",
                    near.join(", ")
                ))
            }
            (ErrorKind::NotFound, true) => command.hint(format!("see what there is: {all}")),
            _ => command,
        }
    }
}

/// What to do while another process is importing.
#[derive(Debug, Clone, Copy)]
enum WhenBusy {
    Wait,
    /// The next command tries again.
    Skip,
}

/// Finishes an interrupted rewind, and imports what an agent's hooks reported.
fn make_ready(workspace: &Workspace, finish: Finish, busy: WhenBusy, ui: &Ui) -> Result<()> {
    finish.finish(workspace, ui)?;
    let bound = while_waiting(ui, "importing the last prompts", || {
        bind_waiting(workspace, busy)
    });
    if let Err(error) = bound {
        let what = "the last prompts are not imported yet";
        ui.warning(what, Some(&error.with_causes()));
    }
    Ok(())
}

/// Makes a workspace ready for a command that found it by itself, without waiting for a process
/// that is importing.
pub(super) fn make_ready_at_once(workspace: &Workspace, finish: Finish, ui: &Ui) -> Result<()> {
    make_ready(workspace, finish, WhenBusy::Skip, ui)
}

/// Finds the places of checkpoints that an agent's hooks made, if its session is not imported
/// yet.
fn bind_waiting(workspace: &Workspace, busy: WhenBusy) -> Result<()> {
    let places = sessions_of(&workspace.recently_unbound()?);
    if places.is_empty() {
        return Ok(());
    }
    let options = import_options(workspace.store().root())?;
    let options = match busy {
        WhenBusy::Wait => options,
        WhenBusy::Skip => options.without_waiting(),
    };
    let bound = bind_new(workspace, &places, &options);
    bound.map(drop).map_err(|error| failed(&error))
}

/// Imports what an agent wrote in the workspace here since the last time, if its hooks reported
/// something. What fails is tried again by the next command.
pub(super) fn freshen(store: &Store) {
    freshen_when(store, WhenBusy::Wait);
}

/// Does the same without waiting for a process that is importing.
pub(super) fn freshen_at_once(store: &Store) {
    freshen_when(store, WhenBusy::Skip);
}

fn freshen_when(store: &Store, busy: WhenBusy) {
    let here = workspace_root(store).and_then(|root| store.find_workspace(&root).ok()?);
    if let Some(workspace) = here {
        bind_waiting(&workspace, busy).ok();
    }
}

/// Returns the reason to refuse a directory that is too large for a workspace.
pub(crate) fn too_wide(root: &Path) -> Option<String> {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let home = env::home_dir().and_then(|home| home.canonicalize().ok());
    let what = if real.parent().is_none() {
        "the whole file system"
    } else if home.is_some_and(|home| home == real) {
        "your home directory"
    } else {
        return None;
    };
    Some(format!("refusing to snapshot {what}"))
}

/// Returns the session of the run around us.
pub(crate) fn joined_session(store: &Store) -> Result<Option<SessionId>> {
    let Some(reference) = env::var_os(SESSION_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    if is_of_finished_run(store)? {
        return Ok(None);
    }
    let reference = reference.to_string_lossy();
    match resolve(store, &reference) {
        Ok(id) => Ok(Some(id)),
        Err(error) => Err(error.hint(format!(
            "{SESSION_VARIABLE} is set to it; unset it to use a new session"
        ))),
    }
}

/// Returns the checkpoint before the run around us, if that is running in this workspace. A
/// daemon may still have the environment of one that is over.
pub(crate) fn run_around(workspace: &Workspace) -> Result<Option<CheckpointId>> {
    let named = env::var(RUN_VARIABLE);
    let Some(run) = named.ok().and_then(|run| run.parse().ok()) else {
        return Ok(None);
    };
    Ok(is_running(workspace, run)?.then_some(run))
}

fn is_running(workspace: &Workspace, run: CheckpointId) -> Result<bool> {
    let active = workspace.active()?;
    Ok(active.iter().any(|it| it.checkpoint == run))
}

/// Returns whether the environment is that of a run that is over. The run may be in another
/// workspace.
fn is_of_finished_run(store: &Store) -> Result<bool> {
    let named = env::var(RUN_VARIABLE);
    let Some(run) = named.ok().and_then(|run| run.parse().ok()) else {
        return Ok(false);
    };
    for workspace in store.workspaces()? {
        if is_running(&workspace, run)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Describes a point: a label, or the id of a checkpoint or record with what it is.
fn describe_point(workspace: &Workspace, point: &str) -> String {
    let found = match point.parse() {
        Ok(id) => workspace.checkpoint_by_id(id).ok().flatten(),
        Err(_) => point.parse().and_then(|it| workspace.resolve(&it)).ok(),
    };
    let Some(checkpoint) = found else {
        return format!("{} (a record)", quote(point));
    };
    if checkpoint.label() == Some(point) {
        return quote(point);
    }
    let what = match (checkpoint.label(), checkpoint.about()) {
        (Some(label), _) => format!("checkpoint \"{}\"", one_line(label, 40)),
        (None, Some(about)) => {
            let about = one_line(&visible(&about.to_string()), 40);
            match checkpoint.reason() {
                CheckpointReason::TurnStart | CheckpointReason::RunStart => {
                    format!("before {about}")
                }
                CheckpointReason::TurnEnd | CheckpointReason::RunEnd => format!("after {about}"),
                reason => format!("{reason}: {about}"),
            }
        }
        (None, None) => checkpoint.reason().to_string(),
    };
    format!("{point} ({what}, {})", when::brief(checkpoint.at()))
}

/// Returns the session and the record that a point names, if it does.
pub(super) fn record_of(point: &Point) -> Option<(String, u64)> {
    let text = point.to_string();
    let (reference, seq) = text.rsplit_once(':')?;
    let seq = seq.parse().ok()?;
    (!reference.is_empty()).then(|| (reference.to_owned(), seq))
}

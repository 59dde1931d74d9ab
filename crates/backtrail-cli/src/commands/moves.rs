//! What rewind, restore, undo and redo have in common: their options, and how they run
//! and report.

mod choose_hunks;
mod conflict_text;
mod lists;
mod outcome_text;
mod planned;
mod scope;
mod signal_guard;
mod step_args;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backtrail::rewind::{Stage, Verb};
use backtrail::snapshot::Progress;
use backtrail::{
    ErrorKind, Outcome, Point, Rewind, RewindPlan, SessionId, SessionReader, Workspace,
};

use serde::Serialize;

pub(super) use self::choose_hunks::check_patch;
use self::outcome_text::{OutcomeText, running_warnings};
pub(super) use self::outcome_text::{continuing_verb, program_name, step_text};
pub(super) use self::planned::PlannedMove;
pub(super) use self::scope::{Scope, no_files, workspace_of};
use self::signal_guard::SignalGuard;
pub(super) use self::step_args::StepArgs;
use super::cat::within_all;
use super::recovery::with_ways_out;
use super::workspace::WorkspaceArgs;
use super::{Answer, locked_hint};
use crate::error::{CommandError, Result};
use crate::progress;
use crate::ui::Ui;

/// The option that skips damaged files, as it is typed.
pub(super) const SKIP_DAMAGED: &str = " --skip-damaged";

/// What moves
#[derive(Debug, Default, clap::Args)]
pub(crate) struct What {
    /// Files only
    #[arg(long, conflicts_with = "chat")]
    pub(super) files: bool,

    /// Conversation only
    #[arg(long)]
    pub(super) chat: bool,
}

/// How it is done
#[derive(Debug, Default, clap::Args)]
pub(crate) struct How {
    /// Only show what would be done
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Skip files with other changes
    #[arg(long, conflicts_with_all = ["merge", "overwrite"])]
    keep: bool,

    /// Merge line by line into files with other changes
    #[arg(long, conflicts_with = "overwrite")]
    merge: bool,

    /// Overwrite files that have other changes (can be undone)
    #[arg(long)]
    overwrite: bool,

    /// Skip files that are damaged in the store
    #[arg(long)]
    skip_damaged: bool,
}

impl What {
    /// Returns whether files and conversation move together.
    pub(super) fn is_both(&self) -> bool {
        !self.files && !self.chat
    }

    pub(super) fn options(&self) -> Rewind {
        match (self.files, self.chat) {
            (true, _) => Rewind::files(),
            (_, true) => Rewind::chat(),
            _ => Rewind::files_and_chat(),
        }
    }

    /// Returns the options as they are typed.
    pub(super) fn flags(&self) -> &'static str {
        match (self.files, self.chat) {
            (true, _) => " --files",
            (_, true) => " --chat",
            _ => "",
        }
    }
}

impl How {
    fn add_to(&self, options: Rewind) -> Rewind {
        let options = match (self.keep, self.merge, self.overwrite) {
            (true, ..) => options.keep(),
            (_, true, _) => options.merge(),
            (.., true) => options.overwrite(),
            _ => options,
        };
        self.add_damaged(options)
    }

    /// Adds what happens to damaged files.
    fn add_damaged(&self, options: Rewind) -> Rewind {
        match self.skip_damaged {
            true => options.skip_damaged(),
            false => options,
        }
    }

    /// Returns the options as they are typed, without `--dry-run`.
    pub(super) fn flags(&self) -> String {
        let on_conflict = match (self.keep, self.merge, self.overwrite) {
            (true, ..) => " --keep",
            (_, true, _) => " --merge",
            (.., true) => " --overwrite",
            _ => "",
        };
        let damaged = if self.skip_damaged { SKIP_DAMAGED } else { "" };
        format!("{on_conflict}{damaged}")
    }
}

/// Which move it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Move<'a> {
    /// Files and conversation of a workspace, to a point.
    Rewind(&'a Workspace, &'a Point),
    /// The last step of a workspace.
    Undo(&'a Workspace),
    /// The step of a workspace that was undone last.
    Redo(&'a Workspace),
    /// A conversation without files, to its last record that stays.
    ChatRewind(&'a SessionReader, u64),
    /// The last step of a conversation without files.
    ChatUndo(&'a SessionReader),
    /// The step of a conversation without files that was undone last.
    ChatRedo(&'a SessionReader),
}

impl Move<'_> {
    fn plan(self, options: Rewind) -> backtrail::Result<Option<RewindPlan>> {
        match self {
            Self::Rewind(workspace, point) => workspace.rewind_plan(point, options).map(Some),
            Self::Undo(workspace) => workspace.undo_plan(options),
            Self::Redo(workspace) => workspace.redo_plan(options),
            Self::ChatRewind(reader, seq) => reader.rewind_chat_plan(seq).map(Some),
            Self::ChatUndo(reader) => reader.undo_chat_plan(),
            Self::ChatRedo(reader) => reader.redo_chat_plan(),
        }
    }

    fn run(self, options: Rewind) -> backtrail::Result<Option<Outcome>> {
        match self {
            Self::Rewind(workspace, point) => workspace.rewind(point, options).map(Some),
            Self::Undo(workspace) => workspace.undo(options),
            Self::Redo(workspace) => workspace.redo(options),
            _ => self.plan(options)?.map(RewindPlan::apply).transpose(),
        }
    }

    fn verb(self) -> Verb {
        match self {
            Self::Rewind(..) | Self::ChatRewind(..) => Verb::Rewind,
            Self::Undo(_) | Self::ChatUndo(_) => Verb::Undo,
            Self::Redo(_) | Self::ChatRedo(_) => Verb::Redo,
        }
    }

    /// Returns the session of a conversation without files.
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::ChatRewind(reader, _) | Self::ChatUndo(reader) | Self::ChatRedo(reader) => {
                Some(reader.id())
            }
            _ => None,
        }
    }

    fn workspace(&self) -> Option<&Workspace> {
        match self {
            Self::Rewind(workspace, _) | Self::Undo(workspace) | Self::Redo(workspace) => {
                Some(workspace)
            }
            _ => None,
        }
    }
}

/// A move that was asked for.
pub(super) struct MoveRequest<'a> {
    pub(super) ui: &'a Ui,
    pub(super) movement: Move<'a>,
    pub(super) options: Rewind,
    /// Whether the user chooses the hunks.
    pub(super) patch: bool,
    pub(super) how: &'a How,
    pub(super) here: &'a WorkspaceArgs,
    /// The files and directories that were named, from the current directory.
    pub(super) paths: &'a [PathBuf],
    /// Whether files and conversation move together.
    pub(super) moves_both: bool,
    /// The command line that does it, without the program.
    pub(super) line: String,
    /// The arguments of undo and redo for the same workspace or session.
    pub(super) behind: String,
    /// The workspace, if it is not the current one.
    pub(super) place: Option<String>,
}

impl MoveRequest<'_> {
    /// Does it, or plans it, and reports the outcome. `wrong` makes the error of a point
    /// that does not exist.
    pub(super) fn go(
        &self,
        wrong: impl FnOnce(backtrail::Error) -> CommandError,
    ) -> Result<Answer> {
        let outcome = match self.patch {
            true => self.chosen_outcome(),
            false => self.outcome(),
        };
        match outcome {
            Ok(Some(outcome)) => self.report(&outcome),
            Ok(None) => self.nothing(),
            Err(error) => Err(match error.kind() {
                ErrorKind::NotFound if error.path().is_some_and(Path::is_relative) => {
                    self.unknown_path(error)
                }
                ErrorKind::NotFound | ErrorKind::Ambiguous => wrong(error),
                _ => self.failed(error),
            }),
        }
    }

    /// Adds a hint to the error for a path that did not exist.
    fn unknown_path(&self, error: backtrail::Error) -> CommandError {
        let workspace = self.movement.workspace();
        let within = workspace.and_then(|it| within_all(it.root(), self.paths).ok());
        let mut both = self.paths.iter().zip(within.unwrap_or_default());
        let typed = both.find(|(_, path)| Some(path.as_path()) == error.path());
        let command = CommandError::from(error);
        match typed {
            Some((path, _)) => command.hint(self.here.when_changed(path, self.ui)),
            None => command,
        }
    }

    /// Does it, or plans it. `None` if there is nothing to undo or redo.
    fn outcome(&self) -> backtrail::Result<Option<Outcome>> {
        let options = |progress: Option<Arc<dyn Progress>>| {
            let options = self.how.add_to(self.options.clone());
            match progress {
                Some(progress) => options.progress(progress),
                None => options,
            }
        };
        if self.how.dry_run {
            let plan =
                progress::while_shown(self.ui, |progress| self.movement.plan(options(progress)));
            return Ok(plan?.map(|plan| plan.outcome().clone()));
        }
        progress::while_shown(self.ui, |progress| {
            let progress = SignalGuard::around(progress);
            self.movement.run(options(Some(progress)))
        })
    }

    /// Reports what was done, or would be, and how to reverse it.
    fn report(&self, outcome: &Outcome) -> Result<Answer> {
        let text = self.text(outcome);
        let stopped = outcome.is_stopped();
        let answer = Answer::no_if(stopped || outcome.is_partial());
        if outcome.moves_files()
            && !stopped
            && let Some(workspace) = self.movement.workspace()
        {
            let warnings = running_warnings(&outcome.active, workspace);
            warnings.iter().for_each(|text| self.ui.warning(text, None));
        }
        if self.ui.json() {
            self.ui.print_json(&Shown::of(outcome))?;
            return Ok(answer);
        }
        if outcome.stage != Stage::Stopped {
            self.print(outcome, &text)?;
        }
        if stopped {
            self.ui.error(&CommandError::invalid(text.refusal()));
            self.ui.summary(&text.conflicts(self.ui.remark_width()));
        }
        Ok(answer)
    }

    fn text<'o>(&'o self, outcome: &'o Outcome) -> OutcomeText<'o> {
        OutcomeText {
            outcome,
            program: self.ui.program(),
            place: self.place.as_deref(),
            width: self.ui.width(),
        }
    }

    fn print(&self, outcome: &Outcome, text: &OutcomeText<'_>) -> Result<()> {
        let ui = self.ui;
        let to_point = matches!(outcome.verb, Verb::Rewind | Verb::Restore);
        if to_point && text.is_empty() {
            ui.status(&text.already());
            return Ok(());
        }
        ui.print_line(&text.lines().join("\n"))?;
        match outcome.stage {
            _ if !outcome.moves() && (to_point || text.is_futile()) => {}
            Stage::Done => ui.to_reverse(&format!("{}{}", reverse(outcome.verb), self.behind)),
            _ if outcome.is_stopped() => {}
            _ => ui.status(&format!("to do it: {} {}", ui.program(), self.line)),
        }
        Ok(())
    }

    /// Reports that there is nothing to undo or redo, or that no hunk was chosen.
    fn nothing(&self) -> Result<Answer> {
        if self.patch {
            self.ui.status("nothing was chosen; nothing was touched");
            return Ok(Answer::No);
        }
        let verb = self.movement.verb();
        if self.ui.json() {
            let stage = match self.how.dry_run {
                true => Stage::Planned,
                false => Stage::Done,
            };
            let mut outcome = Outcome::new(verb, stage);
            outcome.session = self.movement.session().cloned();
            self.ui.print_json(&Shown::of(&outcome))?;
            return Ok(Answer::No);
        }
        let place = match self.behind.trim() {
            "" => "here",
            behind => &format!("in {}", behind.trim_start_matches("--workspace ")),
        };
        self.ui.status(&format!("nothing to {verb} {place}"));
        Ok(Answer::No)
    }

    /// Adds hints to a failure that is not about the point.
    fn failed(&self, error: backtrail::Error) -> CommandError {
        match error.kind() {
            ErrorKind::Locked => {
                let files = format!("files only: {} {}", self.ui.program(), self.line);
                let command = match self.session_in(&error) {
                    Some(id) => locked_hint(error, &id),
                    None => error.into(),
                };
                match self.moves_both && self.movement.workspace().is_some() {
                    true => command.hint(format!("{files} --files")),
                    false => command,
                }
            }
            ErrorKind::Conflict => {
                let again = format!("try again: {} {}", self.ui.program(), self.line);
                CommandError::from(error).without_hints().hint(again)
            }
            ErrorKind::Corrupt if !error.damaged().is_empty() => {
                let (program, line) = (self.ui.program(), &self.line);
                CommandError::from(error).hint(format!(
                    "restore everything else: {program} {}",
                    with_option(line, SKIP_DAMAGED)
                ))
            }
            _ if self.is_unfinished() => with_ways_out(error.into(), self.ui),
            _ => error.into(),
        }
    }

    fn is_unfinished(&self) -> bool {
        let workspace = self.movement.workspace();
        workspace.is_some_and(|it| it.unfinished().is_ok_and(|unfinished| unfinished.is_some()))
    }

    /// Returns the session in whose directory the file of an error is.
    fn session_in(&self, error: &backtrail::Error) -> Option<SessionId> {
        let Some(workspace) = self.movement.workspace() else {
            return self.movement.session().cloned();
        };
        let sessions = workspace.store().root().join("sessions");
        let name = error.path()?.strip_prefix(sessions).ok()?;
        name.components().next()?.as_os_str().to_str()?.parse().ok()
    }
}

/// An outcome as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// Whether everything that was asked for is restored.
    complete: bool,
}

impl<'a> Shown<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        Self {
            outcome,
            complete: !outcome.is_stopped() && !outcome.is_partial(),
        }
    }
}

/// Adds an option to a command line, before the paths that end it.
pub(super) fn with_option(line: &str, option: &str) -> String {
    match line.split_once(" -- ") {
        Some((before, paths)) => format!("{before}{option} -- {paths}"),
        None => match line.split_once(" --paths ") {
            Some((before, paths)) => format!("{before}{option} --paths {paths}"),
            None => format!("{line}{option}"),
        },
    }
}

/// Returns the verb that reverses another.
fn reverse(verb: Verb) -> &'static str {
    match verb {
        Verb::Undo => "redo",
        _ => "undo",
    }
}

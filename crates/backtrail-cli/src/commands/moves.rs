//! What rewind, restore, undo and redo have in common: how they are asked for, and
//! what they say.

mod alone;
mod conflicts;
mod data;
mod lists;
mod outcome;
mod overlaps;
mod patch;
mod running;
mod scope;
mod stepping;
mod whole;
mod words;

use std::sync::Arc;

use backtrail::{
    Attempt, ErrorKind, Point, Progress, Rewind, RewindPlan, SessionId, Store, Verb, Workspace,
};

pub(super) use self::alone::{Alone, no_files};
pub(super) use self::data::{step_json, verb_name};
pub(super) use self::outcome::moment_words;
use self::outcome::{Outcome, Stage};
pub(super) use self::patch::InParts;
use self::running::Running;
pub(super) use self::scope::{Scope, workspace_of};
pub(super) use self::stepping::Stepping;
use self::whole::Whole;
use self::words::Manner;
use super::{Answer, locked_hint};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::progress;
use crate::ui::Ui;

/// What is taken back
#[derive(Debug, Default, clap::Args)]
pub(crate) struct What {
    /// Move the files; the conversation stays as it is
    #[arg(long, conflicts_with = "chat")]
    pub(super) files: bool,

    /// Move the conversation; the files stay as they are
    #[arg(long)]
    pub(super) chat: bool,
}

/// How it is done
#[derive(Debug, Default, clap::Args)]
pub(crate) struct How {
    /// Show what would be done, and touch nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Leave files as they are that someone else changed
    #[arg(long, conflicts_with_all = ["merge", "overwrite"])]
    keep: bool,

    /// Of files that someone else changed, take back the lines and keep theirs
    #[arg(long, conflicts_with = "overwrite")]
    merge: bool,

    /// Take files back that someone else changed, too; theirs can be brought back
    #[arg(long)]
    overwrite: bool,
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

    /// Writes the options as they are typed.
    pub(super) fn flags(&self) -> &'static str {
        match (self.files, self.chat) {
            (true, _) => " --files",
            (_, true) => " --chat",
            _ => "",
        }
    }
}

impl How {
    fn settle(&self, options: Rewind) -> Rewind {
        match (self.keep, self.merge, self.overwrite) {
            (true, ..) => options.keep(),
            (_, true, _) => options.merge(),
            (.., true) => options.overwrite(),
            _ => options,
        }
    }

    /// Writes the options as they are typed to do it in earnest.
    pub(super) fn flags(&self) -> &'static str {
        match (self.keep, self.merge, self.overwrite) {
            (true, ..) => " --keep",
            (_, true, _) => " --merge",
            (.., true) => " --overwrite",
            _ => "",
        }
    }
}

/// Which move it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Doing<'a> {
    /// To a point.
    Rewind(&'a Point),
    /// Of one session, or of all that work here.
    Undo(Option<&'a SessionId>),
    /// Of one session, or of all that work here.
    Redo(Option<&'a SessionId>),
}

impl Doing<'_> {
    fn plan(self, workspace: &Workspace, options: Rewind) -> backtrail::Result<Option<RewindPlan>> {
        match self {
            Self::Rewind(point) => workspace.rewind_plan(point, options).map(Some),
            Self::Undo(session) => workspace.undo_plan(session, options),
            Self::Redo(session) => workspace.redo_plan(session, options),
        }
    }

    fn act(self, workspace: &Workspace, options: Rewind) -> backtrail::Result<Option<Attempt>> {
        match self {
            Self::Rewind(point) => workspace.rewind(point, options).map(Some),
            Self::Undo(session) => workspace.undo(session, options),
            Self::Redo(session) => workspace.redo(session, options),
        }
    }

    fn verb(self) -> Verb {
        match self {
            Self::Rewind(_) => Verb::Rewind,
            Self::Undo(_) => Verb::Undo,
            Self::Redo(_) => Verb::Redo,
        }
    }
}

/// A move in a workspace that was asked for.
pub(super) struct Asked<'a> {
    pub(super) ui: &'a Ui,
    pub(super) workspace: &'a Workspace,
    pub(super) doing: Doing<'a>,
    pub(super) options: Rewind,
    pub(super) how: &'a How,
    /// Whether files and conversation move together.
    pub(super) moves_both: bool,
    /// The verb and what is behind it, as it is typed to do this in earnest.
    pub(super) line: String,
    /// What stands behind undo, redo and steps, to mean the same.
    pub(super) behind: String,
    /// The workspace, where it is not the one around us.
    pub(super) place: Option<String>,
}

impl Asked<'_> {
    /// Does it and says what was done, or what would be. `wrong` says what a point
    /// that is not there may have meant.
    pub(super) fn go(
        &self,
        wrong: impl FnOnce(backtrail::Error) -> CommandError,
    ) -> Result<Answer> {
        match self.outcome() {
            Ok(Some(outcome)) => self.tell(&outcome),
            Ok(None) => self.nothing(),
            Err(error) => Err(self.error(error, wrong)),
        }
    }

    fn error(
        &self,
        error: backtrail::Error,
        wrong: impl FnOnce(backtrail::Error) -> CommandError,
    ) -> CommandError {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::Ambiguous => wrong(error),
            _ => self.failed(error),
        }
    }

    /// Does it, or finds out what would be done. `None` where there is nothing to
    /// undo or redo.
    fn outcome(&self) -> backtrail::Result<Option<Outcome>> {
        let workspace = self.workspace;
        let options = |progress: Option<Arc<dyn Progress>>| {
            let options = self.how.settle(self.options.clone());
            match progress {
                Some(progress) => options.progress(progress),
                None => options,
            }
        };
        if self.how.dry_run {
            let plan = progress::while_shown(self.ui, |progress| {
                self.doing.plan(workspace, options(progress))
            });
            return Ok(plan?.map(|plan| Outcome::of_plan(&plan, Stage::Planned, workspace)));
        }
        let attempt = progress::while_shown(self.ui, |progress| {
            let progress = Whole::of(progress);
            self.doing.act(workspace, options(Some(progress)))
        });
        Ok(attempt?.map(|attempt| match attempt {
            Attempt::Done(report) => Outcome::of_report(*report, workspace),
            Attempt::InConflict(plan) => Outcome::of_plan(&plan, Stage::InConflict, workspace),
        }))
    }

    /// Says what was done, or would be, and how to take it back.
    fn tell(&self, outcome: &Outcome) -> Result<Answer> {
        let stopped = outcome.is_stopped;
        let no = stopped || outcome.is_futile();
        let answer = if no { Answer::No } else { Answer::Done };
        if outcome.moves_files() && !stopped {
            let told = outcome.running.iter().map(Running::words);
            told.for_each(|words| self.ui.warning(&words, None));
        }
        if self.ui.json() {
            self.ui.print_json(&outcome.to_json())?;
            return Ok(answer);
        }
        if outcome.stage != Stage::InConflict {
            self.tell_lines(outcome, stopped)?;
        }
        if stopped {
            self.ui.error(&CommandError::invalid(outcome.refusal()));
            self.ui.summary(&outcome.contested(self.ui.remark_width()));
        }
        Ok(answer)
    }

    fn tell_lines(&self, outcome: &Outcome, stopped: bool) -> Result<()> {
        let ui = self.ui;
        let of_point = matches!(outcome.verb, Verb::Rewind | Verb::Restore);
        if of_point && outcome.is_empty() {
            ui.status(&outcome.already());
            return Ok(());
        }
        let lines = outcome.lines(Manner {
            program: ui.program(),
            place: self.place.as_deref(),
            width: ui.width(),
        });
        ui.print_line(&lines.join("\n"))?;
        match outcome.stage {
            _ if !outcome.moves() && (of_point || outcome.is_futile()) => {}
            Stage::Done => ui.to_reverse(&format!("{}{}", back(outcome.verb), self.behind)),
            _ if stopped => {}
            _ => ui.status(&format!("do it: {} {}", ui.program(), self.line)),
        }
        Ok(())
    }

    /// Says that there is nothing to undo or redo.
    fn nothing(&self) -> Result<Answer> {
        let verb = self.doing.verb();
        let stage = if self.how.dry_run {
            Stage::Planned
        } else {
            Stage::Done
        };
        if self.ui.json() {
            self.ui
                .print_json(&Outcome::nothing(verb, stage).to_json())?;
            return Ok(Answer::No);
        }
        let (program, verb) = (self.ui.program(), verb_name(verb));
        let place = tilde(self.workspace.root());
        let see = format!("{program} steps{}", self.behind);
        self.ui
            .status(&format!("nothing to {verb} in {place}; see: {see}"));
        Ok(Answer::No)
    }

    /// Names the ways on from a failure that is not about the point.
    fn failed(&self, error: backtrail::Error) -> CommandError {
        match error.kind() {
            ErrorKind::Locked => {
                let files = format!("move the files alone: {} {}", self.ui.program(), self.line);
                let command = match session_in(self.workspace.store(), &error) {
                    Some(id) => locked_hint(error, &id),
                    None => error.into(),
                };
                match self.moves_both {
                    true => command.hint(format!("{files} --files")),
                    false => command,
                }
            }
            ErrorKind::Conflict => {
                let again = format!("do it again: {} {}", self.ui.program(), self.line);
                CommandError::from(error).without_hints().hint(again)
            }
            _ => error.into(),
        }
    }
}

/// Returns the verb that takes another back.
fn back(verb: Verb) -> &'static str {
    match verb {
        Verb::Undo => "redo",
        _ => "undo",
    }
}

/// Returns the session that an error is about: its file lies in that one's
/// directory.
fn session_in(store: &Store, error: &backtrail::Error) -> Option<SessionId> {
    let path = error.path()?.strip_prefix(store.root().join("sessions"));
    let name = path.ok()?.components().next()?;
    name.as_os_str().to_str()?.parse().ok()
}

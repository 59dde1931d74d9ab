//! `backtrail rewind`: files and conversation back to a point.

mod choose;

use std::path::PathBuf;

use backtrail::{ErrorKind, Point, SessionId, Store, Workspace};
use backtrail_formats::agent_title;

use super::cat::within_all;
use super::moves::{
    How, Move, MoveRequest, What, check_patch, continuing_verb, no_files, workspace_of,
};
use super::recovery::Finish;
use super::ui::pick;
use super::workspace::{WorkspaceArgs, record_of};
use super::{Answer, open_store, require_store, resolve, short, split_place};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::shell::{quote, quote_path, quote_paths};
use crate::text::one_line;
use crate::ui::Ui;

/// Rewind files and conversation to a point
///
/// The files become what they were at that point, and the conversation ends there. If the
/// files have other changes since then, it stops and touches nothing. Nothing is lost: undo
/// reverses it.
///
/// Without a point, lists the last turns and runs and asks which one to go back to.
#[derive(Debug, clap::Args)]
pub(crate) struct RewindArgs {
    /// A checkpoint or record id, a label, last, last~N or REF:SEQ (see: help diff)
    #[arg(value_name = "POINT")]
    point: Option<Point>,

    /// With --patch, only these paths, relative to the current directory
    #[arg(value_name = "PATHS")]
    paths: Vec<PathBuf>,

    /// Show each hunk and ask whether to restore it; needs a terminal, and the conversation stays
    #[arg(long, short = 'p', conflicts_with_all = ["chat", "dry_run", "keep", "merge", "overwrite"])]
    patch: bool,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &RewindArgs, ui: &Ui) -> Result<Answer> {
    check_patch(args.patch, ui)?;
    let Some(point) = &args.point else {
        if let Some(picked) = pick::rewind_point() {
            return picked;
        }
        let workspace = args.here.require(ui, Finish::ToWrite)?;
        return match choose::choose(&workspace, &args.here, ui)? {
            Some(point) => args.within(&workspace, &point, None, ui),
            None => Ok(Answer::No),
        };
    };
    if !args.patch && !args.paths.is_empty() {
        let (program, here) = (ui.program(), args.here.flag());
        let (point, paths) = (quote(&point.to_string()), quote_paths(&args.paths));
        let what = "rewind takes no paths without --patch";
        return Err(CommandError::invalid(what).hint(format!(
            "restore only these: {program} restore {point}{here} -- {paths}"
        )));
    }
    if args.what.chat
        && let Some((reference, seq)) = record_of(point)
    {
        return args.conversation(&reference, seq, ui);
    }
    match args.here.find(ui, Finish::ToWrite)? {
        Some(workspace) => args.within(&workspace, point, None, ui),
        None => Err(args.nowhere(point, ui)?),
    }
}

impl RewindArgs {
    /// Moves only the conversation of a session that is named, wherever it works.
    fn conversation(&self, reference: &str, seq: u64, ui: &Ui) -> Result<Answer> {
        let store = require_store(ui)?;
        let id = resolve(&store, reference)?;
        if let Some(agent) = store.read_session(&id)?.info()?.belongs_to {
            return Err(not_ours(&id, seq, &agent, ui));
        }
        if let Some(workspace) = workspace_of(&store, &id)? {
            Finish::ToWrite.finish(&workspace, ui)?;
            let point = Point::record(&id, seq);
            return self.within(&workspace, &point, Some(&id), ui);
        }
        let reader = store.read_session(&id)?;
        let (id, program) = (short(&id), ui.program());
        let line = format!("rewind {id}:{seq} --chat");
        let request = self.request(Move::ChatRewind(&reader, seq), line, format!(" {id}"), ui);
        request.go(|error| {
            let see = format!("see the records: {program} show {id}");
            CommandError::from(error).hint(see)
        })
    }

    /// Does it in a workspace. `session` is the one that was named, if it decided the
    /// workspace.
    fn within(
        &self,
        workspace: &Workspace,
        point: &Point,
        session: Option<&SessionId>,
        ui: &Ui,
    ) -> Result<Answer> {
        let behind = match session {
            Some(id) => format!(" {}", short(id)),
            None => self.here.flag(),
        };
        let movement = Move::Rewind(workspace, point);
        let mut request = self.request(movement, self.line(point), behind, ui);
        let paths = within_all(workspace.root(), &self.paths)?;
        request.options = request.options.paths(&paths);
        request.go(|error| self.wrong_point(workspace, point, ui, error))
    }

    fn request<'a>(
        &'a self,
        movement: Move<'a>,
        line: String,
        behind: String,
        ui: &'a Ui,
    ) -> MoveRequest<'a> {
        MoveRequest {
            ui,
            movement,
            options: self.what.options(),
            patch: self.patch,
            how: &self.how,
            here: &self.here,
            paths: &self.paths,
            moves_both: self.what.is_both() && !self.patch,
            line,
            behind,
            place: None,
        }
    }

    /// Returns the command line that does it, without the program.
    fn line(&self, point: &Point) -> String {
        let point = quote(&point.to_string());
        let (what, how, here) = (self.what.flags(), self.how.flags(), self.here.flag());
        let patch = if self.patch { " --patch" } else { "" };
        let paths = match self.paths.is_empty() {
            true => String::new(),
            false => format!(" -- {}", quote_paths(&self.paths)),
        };
        format!("rewind {point}{patch}{what}{how}{here}{paths}")
    }

    /// Returns the error of a point that does not exist in this workspace.
    fn wrong_point(
        &self,
        workspace: &Workspace,
        point: &Point,
        ui: &Ui,
        error: backtrail::Error,
    ) -> CommandError {
        let store = workspace.store();
        let Some((reference, _)) = record_of(point) else {
            let not_found = error.kind() == ErrorKind::NotFound;
            return match as_session(store, point).filter(|_| self.what.chat && not_found) {
                Some(id) => needs_record(&id, ui),
                None => self.here.wrong_point(workspace, point, ui, error),
            };
        };
        let command = self.here.wrong_point(workspace, point, ui, error);
        let its = resolve(store, &reference).and_then(|id| Ok(workspace_of(store, &id)?));
        match its {
            Ok(Some(there)) if there.id() != workspace.id() => {
                command.hint(self.works_in(&there, point, ui))
            }
            _ => command,
        }
    }

    fn works_in(&self, workspace: &Workspace, point: &Point, ui: &Ui) -> String {
        let (program, line) = (ui.program(), self.line(point));
        let (place, there) = (tilde(workspace.root()), quote_path(workspace.root()));
        format!("that session is in {place}: {program} {line} --workspace {there}")
    }

    /// Returns the error of a rewind where there is no workspace.
    fn nowhere(&self, point: &Point, ui: &Ui) -> Result<CommandError> {
        if let Some((reference, _)) = record_of(point) {
            let store = require_store(ui)?;
            let id = resolve(&store, &reference)?;
            return Ok(match workspace_of(&store, &id)? {
                None => no_files(&id, ui),
                Some(workspace) => self
                    .here
                    .unknown(ui)?
                    .without_hints()
                    .hint(self.works_in(&workspace, point, ui)),
            });
        }
        if self.what.chat
            && let Some(store) = open_store(ui)?
        {
            if let Some(id) = as_session(&store, point) {
                return Ok(needs_record(&id, ui));
            }
            split_place(&point.to_string())?;
        }
        self.here.unknown(ui)
    }
}

/// Returns the session that a point is the reference of.
pub(super) fn as_session(store: &Store, point: &Point) -> Option<SessionId> {
    store.resolve(&point.to_string()).ok()
}

/// Returns the error of a conversation that belongs to another agent.
pub(super) fn not_ours(id: &SessionId, seq: u64, agent: &str, ui: &Ui) -> CommandError {
    let (id, program, verb) = (short(id), ui.program(), continuing_verb(agent, seq));
    let agent = one_line(agent_title(agent), 40);
    let what = format!("the conversation of {id} belongs to {agent} and stays as it is");
    CommandError::invalid(what).hint(format!("continue from there: {program} {verb} {id}:{seq}"))
}

fn needs_record(id: &SessionId, ui: &Ui) -> CommandError {
    let (id, program) = (short(id), ui.program());
    CommandError::invalid("pass the last record to keep")
        .hint(format!("{program} rewind {id}:SEQ --chat"))
        .hint(format!("see the records: {program} show {id}"))
}

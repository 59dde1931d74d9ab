//! `backtrail rewind`: files and conversation back to a point.

mod choose;

use std::path::{Path, PathBuf};

use backtrail::{ErrorKind, Point, SessionId, Store, Workspace};

use super::cat::within;
use super::moves::{How, HunkRequest, Move, MoveRequest, What, no_files, workspace_of};
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use super::{Answer, open_store, require_store, resolve, short};
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::shell::{arguments, quote};
use crate::text::one_line;
use crate::ui::Ui;

/// Move files and conversation back to a point
///
/// The files become what they were at that point, and the conversation ends
/// there. Files with other changes since then stop it before anything is touched.
/// Nothing is lost: undo reverses it.
///
/// Without a point it lists the last turns and runs, and asks for one.
#[derive(Debug, clap::Args)]
pub(crate) struct RewindArgs {
    /// A checkpoint's or record's id, a label, last, last~N or REF:SEQ
    #[arg(value_name = "POINT")]
    point: Option<Point>,

    /// With --patch, only these files and directories, from the current directory
    #[arg(value_name = "PATHS")]
    paths: Vec<PathBuf>,

    /// Show each hunk and ask whether to restore it; needs a terminal, and the
    /// conversation stays
    #[arg(long, short = 'p', conflicts_with_all = ["chat", "dry_run", "keep", "merge", "overwrite"])]
    patch: bool,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &RewindArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    match (args.patch, &args.point) {
        (true, _) => HunkRequest::can_ask(ui)?,
        (false, Some(point)) if !args.paths.is_empty() => return Err(args.no_paths(point, ui)),
        _ => {}
    }
    let Some(point) = &args.point else {
        let workspace = args.here.require(global, ui, Finish::ToWrite)?;
        return match choose::choose(&workspace, &args.here, ui)? {
            Some(point) => args.within(&workspace, &point, None, ui),
            None => Ok(Answer::No),
        };
    };
    if args.what.chat
        && let Some((reference, seq)) = record_of(point)
    {
        return args.conversation(&reference, seq, global, ui);
    }
    match args.here.find(global, ui, Finish::ToWrite)? {
        Some(workspace) => args.within(&workspace, point, None, ui),
        None => Err(args.nowhere(point, global, ui)?),
    }
}

impl RewindArgs {
    /// Moves only the conversation of a session that is named, wherever it works.
    fn conversation(&self, reference: &str, seq: u64, global: &Global, ui: &Ui) -> Result<Answer> {
        let store = require_store(global)?;
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
        let request = MoveRequest {
            ui,
            store: &store,
            movement: Move::ChatRewind(&reader, seq),
            options: self.what.options(),
            how: &self.how,
            moves_both: false,
            line: format!("rewind {id}:{seq} --chat"),
            behind: format!(" {id}"),
            place: None,
        };
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
        let paths = self.paths.iter().map(|path| within(workspace.root(), path));
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let request = MoveRequest {
            ui,
            store: workspace.store(),
            movement: Move::Rewind(workspace, point),
            options: self.what.options().paths(&paths),
            how: &self.how,
            moves_both: self.what.is_both() && !self.patch,
            line: self.line(point),
            behind,
            place: None,
        };
        let wrong = |error: backtrail::Error| match error.path().map(Path::is_relative) {
            // A path that does not exist; anything else that is not found is the point.
            Some(true) if self.patch => error.into(),
            _ => self.wrong_point(workspace, point, ui, error),
        };
        match self.patch {
            true => HunkRequest(&request).go(wrong),
            false => request.go(wrong),
        }
    }

    /// Returns the error that names the command for some files.
    fn no_paths(&self, point: &Point, ui: &Ui) -> CommandError {
        let (program, here) = (ui.program(), self.here.flag());
        let point = quote(&point.to_string());
        let paths = self.paths.iter().map(|path| path.to_string_lossy());
        let paths = arguments(&paths.collect::<Vec<_>>());
        let paths = paths.strip_prefix("-- ").unwrap_or(&paths);
        CommandError::invalid("rewind moves all files; paths need --patch").hint(format!(
            "restore only these: {program} restore {point}{here} -- {paths}"
        ))
    }

    /// Returns the command line that does it, without the program.
    fn line(&self, point: &Point) -> String {
        let point = quote(&point.to_string());
        let (what, how, here) = (self.what.flags(), self.how.flags(), self.here.flag());
        let patch = if self.patch { " --patch" } else { "" };
        let paths = self.paths.iter().map(|path| path.to_string_lossy());
        let paths = match self.paths.is_empty() {
            true => String::new(),
            false => format!(" {}", arguments(&paths.collect::<Vec<_>>())),
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
        let not_found = error.kind() == ErrorKind::NotFound;
        if self.what.chat
            && not_found
            && record_of(point).is_none()
            && let Some(id) = as_session(store, point)
        {
            return needs_record(&id, ui);
        }
        let command = self.here.wrong_point(workspace, point, ui, error);
        let elsewhere = record_of(point).and_then(|(reference, _)| {
            let id = resolve(store, &reference).ok()?;
            let there = workspace_of(store, &id).ok()??;
            (there.id() != workspace.id()).then_some(there)
        });
        match elsewhere {
            Some(there) => command.hint(self.works_in(&there, point, ui)),
            None => command,
        }
    }

    fn works_in(&self, workspace: &Workspace, point: &Point, ui: &Ui) -> String {
        let root = workspace.root();
        let (program, place) = (ui.program(), tilde(root));
        let line = self.line(point);
        let there = quote(&root.to_string_lossy());
        format!("that session works in {place}: {program} {line} --workspace {there}")
    }

    /// Returns the error of a rewind where there is no workspace.
    fn nowhere(&self, point: &Point, global: &Global, ui: &Ui) -> Result<CommandError> {
        if let Some((reference, _)) = record_of(point) {
            let store = require_store(global)?;
            let id = resolve(&store, &reference)?;
            return Ok(match workspace_of(&store, &id)? {
                None => no_files(&id, ui),
                Some(workspace) => self
                    .here
                    .unknown(global, ui)?
                    .without_hints()
                    .hint(self.works_in(&workspace, point, ui)),
            });
        }
        if self.what.chat
            && let Some(store) = open_store(global)?
        {
            if let Some(id) = as_session(&store, point) {
                return Ok(needs_record(&id, ui));
            }
            let text = point.to_string();
            if text.contains(':') {
                let what = format!("{} is not a record of a session", quote(&text));
                let way = "must be REF:SEQ, where SEQ is the number of a record";
                return Ok(CommandError::invalid(what).hint(way));
            }
        }
        self.here.unknown(global, ui)
    }
}

/// Returns the session and the record that a point names, if it does.
pub(super) fn record_of(point: &Point) -> Option<(String, u64)> {
    let text = point.to_string();
    let (reference, seq) = text.rsplit_once(':')?;
    let seq = seq.parse().ok()?;
    (!reference.is_empty()).then(|| (reference.to_owned(), seq))
}

/// Returns the session that a point is the reference of.
pub(super) fn as_session(store: &Store, point: &Point) -> Option<SessionId> {
    store.resolve(&point.to_string()).ok()
}

/// Returns the error of a conversation that belongs to another agent.
fn not_ours(id: &SessionId, seq: u64, agent: &str, ui: &Ui) -> CommandError {
    let (id, program) = (short(id), ui.program());
    let agent = one_line(agent, 40);
    let what = format!("the conversation of {id} belongs to {agent} and stays as it is");
    CommandError::invalid(what).hint(format!("continue from there: {program} fork {id}:{seq}"))
}

fn needs_record(id: &SessionId, ui: &Ui) -> CommandError {
    let (id, program) = (short(id), ui.program());
    CommandError::invalid("name the last record that stays")
        .hint(format!("{program} rewind {id}:SEQ --chat"))
        .hint(format!("see the records: {program} show {id}"))
}

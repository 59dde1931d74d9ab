//! What undo and redo share.

use std::path::PathBuf;

use backtrail::Rewind;
use backtrail::rewind::Verb;

use super::scope::{Scope, no_files};
use super::{How, Move, MoveRequest, What};
use crate::commands::cat::within_all;
use crate::commands::recovery::{self, Finish};
use crate::commands::workspace::WorkspaceArgs;
use crate::commands::{Answer, short};
use crate::error::Result;
use crate::shell::quote_paths;
use crate::ui::Ui;

/// Which step, and how
#[derive(Debug, clap::Args)]
pub(crate) struct StepArgs {
    /// Only the steps of this session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF")]
    reference: Option<String>,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    here: WorkspaceArgs,
}

impl StepArgs {
    /// Closes an unfinished rewind of the workspace that is meant.
    pub(in crate::commands) fn abandon(&self, ui: &Ui) -> Result<Answer> {
        recovery::abandon(&self.here.require(ui, Finish::Never)?, ui)
    }

    /// Undoes the last tool call of the workspace that is meant.
    pub(in crate::commands) fn undo_call(&self, ui: &Ui) -> Result<Answer> {
        let reference = self.reference.as_deref();
        let scope = Scope::find(reference, &self.here, ui, Finish::ToWrite)?;
        let behind = self.behind(&scope);
        let Scope::Workspace {
            workspace,
            session,
            place,
        } = &scope
        else {
            let id = scope.session().expect("it is a session");
            return Err(no_files(id, ui));
        };
        let mut options = Rewind::files().last_call();
        if let Some(session) = session {
            options = options.session(session);
        }
        let request = MoveRequest {
            ui,
            movement: Move::Undo(workspace),
            options,
            patch: false,
            how: &self.how,
            here: &self.here,
            paths: &[],
            moves_both: false,
            line: format!("undo{behind} --tool{}", self.how.flags()),
            behind: behind.clone(),
            place: place.clone(),
        };
        request.go(Into::into)
    }

    /// Returns how suggested commands end: with the session and the workspace.
    fn behind(&self, scope: &Scope) -> String {
        match scope.session() {
            Some(id) => format!(" {}{}", short(id), self.here.flag()),
            None => self.here.flag(),
        }
    }

    /// Undoes or redoes a step of the workspace that is meant, or of a conversation alone;
    /// of some files and directories if any are named.
    pub(in crate::commands) fn run(
        &self,
        verb: Verb,
        paths: &[PathBuf],
        ui: &Ui,
    ) -> Result<Answer> {
        let reference = self.reference.as_deref();
        let scope = Scope::find(reference, &self.here, ui, Finish::ToWrite)?;
        let behind = self.behind(&scope);
        let (what, how) = (self.what.flags(), self.how.flags());
        let only = match paths {
            [] => String::new(),
            paths => format!(" --paths {}", quote_paths(paths)),
        };
        let request = |movement, options, place| MoveRequest {
            ui,
            movement,
            options,
            patch: false,
            how: &self.how,
            here: &self.here,
            paths,
            moves_both: self.what.is_both() && paths.is_empty(),
            line: format!("{verb}{behind}{what}{how}{only}"),
            behind: behind.clone(),
            place,
        };
        match &scope {
            Scope::Session(_, id) if self.what.files || !paths.is_empty() => Err(no_files(id, ui)),
            Scope::Session(store, id) => {
                let reader = store.read_session(id)?;
                let movement = match verb {
                    Verb::Redo => Move::ChatRedo(&reader),
                    _ => Move::ChatUndo(&reader),
                };
                request(movement, Rewind::chat(), None).go(Into::into)
            }
            Scope::Workspace {
                workspace,
                session,
                place,
            } => {
                let movement = match verb {
                    Verb::Redo => Move::Redo(workspace),
                    _ => Move::Undo(workspace),
                };
                let mut options = match paths {
                    [] => self.what.options(),
                    paths => Rewind::files().paths(&within_all(workspace.root(), paths)?),
                };
                if let Some(session) = session {
                    options = options.session(session);
                }
                request(movement, options, place.clone()).go(Into::into)
            }
        }
    }
}

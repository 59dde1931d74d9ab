//! Undo and redo, as they are asked for.

use std::path::{Path, PathBuf};

use backtrail::Rewind;
use backtrail::rewind::Verb;

use super::scope::{Scope, no_files};
use super::{How, Move, MoveRequest, What};
use crate::args::Global;
use crate::commands::cat::within;
use crate::commands::recovery::Finish;
use crate::commands::workspace::WorkspaceArgs;
use crate::commands::{Answer, short};
use crate::error::Result;
use crate::shell::arguments;
use crate::ui::Ui;

/// An undo or redo that was asked for.
pub(in crate::commands) struct StepRequest<'a> {
    pub(in crate::commands) verb: Verb,
    pub(in crate::commands) reference: Option<&'a str>,
    pub(in crate::commands) what: &'a What,
    pub(in crate::commands) how: &'a How,
    pub(in crate::commands) here: &'a WorkspaceArgs,
    /// Only these files and directories, if any are named.
    pub(in crate::commands) paths: &'a [PathBuf],
}

impl StepRequest<'_> {
    /// Does it in the workspace that is meant, or to a conversation alone.
    pub(in crate::commands) fn go(&self, global: &Global, ui: &Ui) -> Result<Answer> {
        let scope = Scope::find(self.reference, self.here, global, ui, Finish::ToWrite)?;
        let (workspace, session, place) = match &scope {
            Scope::Workspace {
                workspace,
                session,
                place,
            } => (workspace, session.as_ref(), place),
            Scope::Session(_, id) if self.what.files || !self.paths.is_empty() => {
                return Err(no_files(id, ui));
            }
            Scope::Session(store, id) => {
                let reader = store.read_session(id)?;
                let behind = format!(" {}", short(id));
                let request = MoveRequest {
                    ui,
                    store,
                    movement: match self.verb {
                        Verb::Redo => Move::ChatRedo(&reader),
                        _ => Move::ChatUndo(&reader),
                    },
                    options: Rewind::chat(),
                    how: self.how,
                    moves_both: false,
                    line: self.line(&behind),
                    behind,
                    place: None,
                };
                return request.go(Into::into);
            }
        };
        let behind = match session {
            Some(id) => format!(" {}{}", short(id), self.here.flag()),
            None => self.here.flag(),
        };
        let paths = self.paths.iter().map(|path| within(workspace.root(), path));
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let mut options = match paths.is_empty() {
            true => self.what.options(),
            false => Rewind::files().paths(&paths),
        };
        if let Some(session) = session {
            options = options.session(session);
        }
        let request = MoveRequest {
            ui,
            store: workspace.store(),
            movement: match self.verb {
                Verb::Redo => Move::Redo(workspace),
                _ => Move::Undo(workspace),
            },
            options,
            how: self.how,
            moves_both: self.what.is_both() && paths.is_empty(),
            line: self.line(&behind),
            behind,
            place: place.clone(),
        };
        request.go(|error| match error.path().map(Path::is_relative) {
            Some(true) => self.here.unknown_path(self.paths, &paths, error, ui),
            _ => error.into(),
        })
    }

    /// Returns the command line that does it, without the program.
    fn line(&self, behind: &str) -> String {
        let (verb, what, how) = (self.verb, self.what.flags(), self.how.flags());
        let paths = self.paths.iter().map(|path| path.to_string_lossy());
        let paths = match self.paths.is_empty() {
            true => String::new(),
            false => format!(
                " --paths {}",
                arguments(&paths.collect::<Vec<_>>()).trim_start_matches("-- ")
            ),
        };
        format!("{verb}{behind}{what}{how}{paths}")
    }
}

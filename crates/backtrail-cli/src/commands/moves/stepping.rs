//! What undo and redo have in common.

use std::path::{Path, PathBuf};

use backtrail::{Rewind, Verb};

use super::alone::{Alone, no_files};
use super::scope::Scope;
use super::{Asked, Doing, How, What, verb_name};
use crate::args::Global;
use crate::commands::cat::within;
use crate::commands::recovery::Finish;
use crate::commands::workspace::WorkspaceArgs;
use crate::commands::{Answer, short};
use crate::error::Result;
use crate::shell::arguments;
use crate::ui::Ui;

/// An undo or redo that was asked for.
pub(in crate::commands) struct Stepping<'a> {
    pub(in crate::commands) verb: Verb,
    pub(in crate::commands) reference: Option<&'a str>,
    pub(in crate::commands) what: &'a What,
    pub(in crate::commands) how: &'a How,
    pub(in crate::commands) here: &'a WorkspaceArgs,
    /// The files and directories of the step, if any are named.
    pub(in crate::commands) paths: &'a [PathBuf],
}

impl Stepping<'_> {
    /// Does it: in the workspace that is meant, or to a conversation alone.
    pub(in crate::commands) fn go(&self, global: &Global, ui: &Ui) -> Result<Answer> {
        let scope = Scope::find(self.reference, self.here, global, ui, Finish::ToWrite)?;
        let (workspace, session, place) = match &scope {
            Scope::Workspace {
                workspace,
                session,
                place,
            } => (workspace, session.as_ref(), place),
            Scope::Session(_, id) if !self.paths.is_empty() => return Err(no_files(id, ui)),
            Scope::Session(store, id) => {
                let alone = Alone {
                    ui,
                    store,
                    id,
                    how: self.how,
                    line: self.line(&format!(" {}", short(id))),
                };
                return alone.step(self.verb, self.what);
            }
        };
        let behind = match session {
            Some(id) => format!(" {}{}", short(id), self.here.flag()),
            None => self.here.flag(),
        };
        let paths = self.paths.iter().map(|path| within(workspace.root(), path));
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let asked = Asked {
            ui,
            workspace,
            doing: match self.verb {
                Verb::Redo => Doing::Redo(session),
                _ => Doing::Undo(session),
            },
            options: match paths.is_empty() {
                true => self.what.options(),
                false => Rewind::files().paths(&paths),
            },
            how: self.how,
            moves_both: self.what.is_both() && paths.is_empty(),
            line: self.line(&behind),
            behind,
            place: place.clone(),
        };
        asked.go(|error| match error.path().map(Path::is_relative) {
            Some(true) => self.here.unknown_path(self.paths, &paths, error, ui),
            _ => error.into(),
        })
    }

    /// Writes the command as it is typed to do it in earnest.
    fn line(&self, behind: &str) -> String {
        let (verb, what, how) = (verb_name(self.verb), self.what.flags(), self.how.flags());
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

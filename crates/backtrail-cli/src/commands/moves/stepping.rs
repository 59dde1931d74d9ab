//! What undo and redo have in common.

use backtrail::Verb;

use super::alone::Alone;
use super::scope::Scope;
use super::{Asked, Doing, How, What, verb_name};
use crate::args::Global;
use crate::commands::here::Here;
use crate::commands::recovery::Finish;
use crate::commands::{Answer, short};
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// An undo or redo that was asked for.
pub(in crate::commands) struct Stepping<'a> {
    pub(in crate::commands) verb: Verb,
    pub(in crate::commands) reference: Option<&'a str>,
    pub(in crate::commands) what: &'a What,
    pub(in crate::commands) how: &'a How,
    pub(in crate::commands) here: &'a Here,
}

impl Stepping<'_> {
    /// Does it: in the workspace that is meant, or to a conversation alone.
    pub(in crate::commands) fn go(&self, global: &Global, ui: &Ui) -> Result<Answer> {
        self.how.check()?;
        let scope = Scope::find(self.reference, self.here, global, ui, Finish::ToWrite)?;
        let (workspace, session, place) = match &scope {
            Scope::Workspace {
                workspace,
                session,
                place,
            } => (workspace, session.as_ref(), place),
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
        let asked = Asked {
            ui,
            workspace,
            doing: match self.verb {
                Verb::Redo => Doing::Redo(session),
                _ => Doing::Undo(session),
            },
            options: self.what.options(),
            how: self.how,
            moves_both: self.what.is_both(),
            line: self.line(&behind),
            behind,
            place: place.clone(),
        };
        asked.go(CommandError::from)
    }

    /// Writes the command as it is typed to do it in earnest.
    fn line(&self, behind: &str) -> String {
        let (verb, what, how) = (verb_name(self.verb), self.what.flags(), self.how.flags());
        format!("{verb}{behind}{what}{how}")
    }
}

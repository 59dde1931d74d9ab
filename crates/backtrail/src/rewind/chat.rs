//! Going back in a conversation; with snapshots, the files of its workspace go with it.

use super::outcome::{ChatMove, Outcome, Stage, Verb};
#[cfg(feature = "snapshots")]
use super::target::Request;
use crate::error::Result;
use crate::session::{MovedChat, Session};
use crate::trail::TrailReason;

impl Session {
    /// Undoes its last step: a turn with its file changes, a rewind, a restore or a
    /// compaction. The conversation continues from before that step; what came after
    /// stays reachable by [`redo`](Self::redo). `None` if there is nothing to undo.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) if files have changes by others; nothing is
    /// touched then. [`undo_with`](Self::undo_with) takes options that say what happens
    /// to them.
    pub fn undo(&self) -> Result<Option<Outcome>> {
        #[cfg(feature = "snapshots")]
        if self.workspace()?.is_some() {
            return self.step(Request::Undo);
        }
        let moved = self.step_chat(TrailReason::Undo)?;
        Ok(moved.map(|moved| self.chat_outcome(Verb::Undo, moved)))
    }

    /// Redoes the step that was undone last. `None` if there is nothing to redo:
    /// anything recorded since the undo ends it.
    ///
    /// # Errors
    ///
    /// As [`undo`](Self::undo).
    pub fn redo(&self) -> Result<Option<Outcome>> {
        #[cfg(feature = "snapshots")]
        if self.workspace()?.is_some() {
            return self.step(Request::Redo);
        }
        let moved = self.step_chat(TrailReason::Redo)?;
        Ok(moved.map(|moved| self.chat_outcome(Verb::Redo, moved)))
    }

    /// Ends the conversation at a record, the last that stays; 0 empties it. Files
    /// stay as they are. Returns `None` if it already ends there.
    ///
    /// Nothing is lost: [`undo`](Self::undo) reverses it. Title, tags, model and
    /// workspace stay as they are.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the session has no such record, and
    /// [`Invalid`](crate::ErrorKind::Invalid) if another agent keeps the session.
    pub fn rewind_chat(&self, seq: u64) -> Result<Option<Outcome>> {
        self.must_be_ours(seq)?;
        let moved = self.move_to_record(seq)?;
        Ok(moved.map(|moved| self.chat_outcome(Verb::Rewind, moved)))
    }

    fn chat_outcome(&self, verb: Verb, moved: MovedChat) -> Outcome {
        Outcome {
            step: moved.step,
            session: Some(self.id().clone()),
            chat: Some(ChatMove {
                trail: Some(moved.trail),
                ..ChatMove::new(self.id(), moved.from, moved.to)
            }),
            ..Outcome::new(verb, Stage::Done)
        }
    }
}

//! Finishing what a crash interrupted.

use super::apply::{staged_in, sweep_strays};
use std::path::PathBuf;

use super::execution::{items, left_alone, work};
use super::outcome::{NotRestored, Recovered, Verb};
use super::path_change::PathChange;
use super::target::{because, is_lost};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::session::{Session, opener_of};
use crate::snapshot::Snapshot;
use crate::workspace::journal::{ChatMoveRecord, Ending, StepRecord};
use crate::workspace::timeline::Timeline;
use crate::workspace::{CheckpointReason, SessionPlace, SkippedFiles, Workspace};

impl Workspace {
    /// Finishes a rewind, restore, undo or redo that a crash interrupted. `None`
    /// where there is none, or where it is still under way.
    ///
    /// Whatever keeps or moves files here does so by itself; this is for who only
    /// reads.
    pub fn recover(&self) -> Result<Option<Recovered>> {
        self.recover_with(None)
    }

    /// Returns directories in the workspace in which files of a step wait that nobody
    /// knows any more: its record was lost. No snapshot has them; a person decides.
    pub fn strays(&self) -> Result<Vec<PathBuf>> {
        if !self.root_exists()? {
            return Ok(Vec::new());
        }
        let mut strays = staged_in(self.root())?;
        if !strays.is_empty() {
            // A step that is under way is among them.
            let known = Timeline::read(self)?.moves;
            strays.retain(|(_, id)| !id.is_some_and(|id| known.contains_key(&id)));
        }
        Ok(strays.into_iter().map(|(path, _)| path).collect())
    }

    /// Returns whether another process moves files here at this moment.
    pub fn is_moving(&self) -> Result<bool> {
        if self.open_step()?.is_none() {
            return Ok(false);
        }
        let lock = self.snapshot_lock()?;
        let free = lock.try_hold()?.is_some();
        Ok(!free && self.open_step()?.is_some())
    }

    pub(crate) fn recover_with(&self, writer: Option<&Session>) -> Result<Option<Recovered>> {
        // Most often there is nothing to do, and nobody is kept waiting.
        if self.open_step()?.is_none() {
            return Ok(None);
        }
        let lock = self.snapshot_lock()?;
        match lock.try_hold()? {
            Some(_turn) => self.recover_locked(writer),
            None => Ok(None),
        }
    }

    /// Finishes what a crash interrupted. The caller holds the snapshot lock.
    pub(crate) fn recover_locked(&self, writer: Option<&Session>) -> Result<Option<Recovered>> {
        let Some(begun) = self.open_step()? else {
            return Ok(None);
        };
        let (before, after, items) = match self.work_of(&begun) {
            Ok(work) => work,
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                return self.abandon(&begun, &error).map(Some);
            }
            Err(error) => return Err(error),
        };
        let outcome = work(self, &begun, &items).resume()?;
        let mut recovered = Recovered {
            verb: verb(&begun.reason),
            begun_at: begun.at,
            now: None,
            left: outcome.left,
            chat_went_on: false,
            abandoned: None,
        };
        if outcome.rolled_back.is_some() {
            self.give_up_step(&begun)?;
            return Ok(Some(recovered));
        }
        let ending = Ending {
            snapshot: begun.after,
            totals: after.totals(),
            skipped: self.skipped_at(&begun)?,
            changed: items.len() as u64,
            session: None,
        };
        let ending = left_alone(self, ending, &recovered.left, &before)?;
        let session = match &begun.chat {
            Some(chat) => self.recover_chat(&begun, chat, writer)?,
            None => None,
        };
        recovered.chat_went_on = begun.chat.is_some() && session.is_none();
        self.end_step(&begun, Ending { session, ..ending })?;
        recovered.now = Some(begun.id);
        Ok(Some(recovered))
    }

    /// Returns the states that a step goes between, and what there is to do.
    fn work_of(&self, begun: &StepRecord) -> Result<(Snapshot, Snapshot, Vec<PathChange>)> {
        let before = self.open_snapshot(&begun.before)?;
        let after = self.open_snapshot(&begun.after)?;
        let items = items(begun, &before, &after)?;
        Ok((before, after, items))
    }

    /// Gives up a step whose states are damaged: nobody can tell any more what was to
    /// become of which path. The files stay as they are.
    fn abandon(&self, begun: &StepRecord, error: &Error) -> Result<Recovered> {
        let saved = work(self, begun, &[]).abandon()?;
        self.give_up_step(begun)?;
        let staged = saved.map(|path| NotRestored {
            path,
            why: "holds what was moved out of the way".to_owned(),
        });
        Ok(Recovered {
            verb: verb(&begun.reason),
            begun_at: begun.at,
            now: None,
            left: staged.into_iter().collect(),
            chat_went_on: begun.chat.is_some(),
            abandoned: Some(error.to_string()),
        })
    }

    /// Clears away what steps that are over could not tidy up themselves. The caller
    /// holds the snapshot lock, and nothing is unfinished.
    pub(super) fn clear_strays(&self) -> Result<()> {
        if !self.root_exists()? {
            return Ok(());
        }
        let strays = sweep_strays(self.root(), self.store().touch_hook())?;
        if strays.is_empty() {
            return Ok(());
        }
        let timeline = Timeline::read(self)?;
        for begun in strays.iter().filter_map(|id| timeline.moves.get(id)) {
            let (.., items) = self.work_of(begun)?;
            work(self, begun, &items).clear()?;
        }
        Ok(())
    }

    fn skipped_at(&self, begun: &StepRecord) -> Result<SkippedFiles> {
        let from = self.checkpoint_by_id(begun.from)?;
        Ok(from.map_or_else(SkippedFiles::default, |from| from.skipped().clone()))
    }

    /// Moves the conversation, unless it moved already. `None` where it went on
    /// meanwhile, or somebody speaks in it.
    fn recover_chat(
        &self,
        begun: &StepRecord,
        chat: &ChatMoveRecord,
        writer: Option<&Session>,
    ) -> Result<Option<SessionPlace>> {
        let moved = |place| Ok(Some(place));
        let head = match self.store().session_place(&chat.session) {
            // What is lost cannot be moved, and holds up nothing else.
            Err(error) if is_lost(&error) => return Ok(None),
            place => place?.trail,
        };
        if head >= chat.trail {
            let opener = opener_of(self.store(), &chat.session, chat.trail)?;
            let is_it = opener.is_some_and(|opener| opener.because == because(&begun.reason));
            return if is_it { moved(chat.place()) } else { Ok(None) };
        }
        let session = match writer.filter(|writer| *writer.id() == chat.session) {
            Some(writer) => writer.clone(),
            None => match self.speak(&chat.session)? {
                Some(session) => session,
                None => return Ok(None),
            },
        };
        session.alone(|| {
            let stands = session.stands_at()?;
            if stands.trail != chat.from.trail || session.is_spoken_after(chat.from.seq)? {
                return Ok(None);
            }
            match session.go_to(because(&begun.reason), (chat.to.trail, chat.to.seq)) {
                Err(error) if is_lost(&error) => Ok(None),
                gone => gone.and_then(|()| moved(chat.place())),
            }
        })
    }

    /// Speaks in a session, unless somebody else does.
    fn speak(&self, id: &SessionId) -> Result<Option<Session>> {
        match Session::open(self.store(), id, None) {
            Ok(session) => Ok(Some(session)),
            Err(error) if error.kind() == ErrorKind::Locked => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn verb(why: &CheckpointReason) -> Verb {
    match why {
        CheckpointReason::Restore => Verb::Restore,
        CheckpointReason::Undo => Verb::Undo,
        CheckpointReason::Redo => Verb::Redo,
        _ => Verb::Rewind,
    }
}

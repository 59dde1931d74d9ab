//! Finishing a step that a crash interrupted.

use std::path::PathBuf;

use super::apply::{staged_in, sweep_strays};
use super::execution::{items, leave_alone, work};
use super::outcome::{NotRestored, Recovered, Unfinished, Verb};
use super::path_change::PathChange;
use super::target::{is_lost, trail_reason};
use crate::error::{Error, ErrorKind, Result};
use crate::session::{Session, opener_of};
use crate::snapshot::Snapshot;
use crate::workspace::checkpoint_record::CheckpointRecord;
use crate::workspace::step_record::{ChatMoveRecord, StepRecord};
use crate::workspace::timeline::Timeline;
use crate::workspace::{Checkpoint, CheckpointReason, SessionPlace, SkippedFiles, Workspace};

impl Workspace {
    /// Finishes a rewind, restore, undo or redo that a crash interrupted. `None` if there
    /// is none, or if it is still in progress.
    ///
    /// Checkpoints, rewinds and the like do this by themselves; readers may call it.
    ///
    /// # Errors
    ///
    /// What reading the store and changing the files can fail with. It can be called
    /// again.
    pub fn recover(&self) -> Result<Option<Recovered>> {
        self.recover_with(None)
    }

    /// Returns how far a step is that was interrupted and could not be finished; `None` if
    /// there is none, or if it is in progress.
    ///
    /// # Errors
    ///
    /// What reading the store and the files can fail with.
    pub fn unfinished(&self) -> Result<Option<Unfinished>> {
        let Some(begun) = self.open_step()? else {
            return Ok(None);
        };
        let is_free = self.try_hold_snapshots()?.is_some();
        match is_free && self.open_step()?.is_some() {
            true => self.progress_of(&begun).map(Some),
            false => Ok(None),
        }
    }

    fn progress_of(&self, begun: &StepRecord) -> Result<Unfinished> {
        let (.., items) = self.work_of(begun)?;
        let progress = work(self, begun, &items).progress()?;
        Ok(Unfinished {
            verb: verb(&begun.reason),
            begun_at: begun.at,
            moved: progress.moved,
            waiting: progress.waiting,
            other: progress.other,
        })
    }

    /// Closes a step that was interrupted and cannot be finished. The files stay as they
    /// are, and count as yours from now on; what the step moved out of the way gets a
    /// visible name. `None` if there is no such step.
    ///
    /// # Errors
    ///
    /// [`Locked`](ErrorKind::Locked) if the step is in progress, and what reading and
    /// writing the store can fail with.
    pub fn abandon_unfinished(&self) -> Result<Option<Recovered>> {
        if self.open_step()?.is_none() {
            return Ok(None);
        }
        let Some(_held) = self.try_hold_snapshots()? else {
            let what = "another process is rewinding here".to_owned();
            return Err(Error::locked(what, self.root(), None));
        };
        let Some(begun) = self.open_step()? else {
            return Ok(None);
        };
        let progress = self.progress_of(&begun);
        let mut recovered = self.abandon(&begun, "you abandoned it".to_owned())?;
        if let Ok(unfinished) = progress {
            let restored = unfinished.moved.into_iter();
            let restored = restored.map(|path| NotRestored::new(path, "restored already"));
            let waiting = unfinished.waiting.into_iter();
            let waiting = waiting.map(|path| NotRestored::new(path, "not restored"));
            let all = restored.chain(waiting).chain(unfinished.other);
            recovered.not_restored.extend(all);
        }
        Ok(Some(recovered))
    }

    /// Returns staging directories in the workspace whose step is unknown: its record was
    /// lost. No snapshot has their files; the user decides about them.
    ///
    /// # Errors
    ///
    /// What reading the workspace and its trail can fail with.
    pub fn strays(&self) -> Result<Vec<PathBuf>> {
        if !self.root_exists()? {
            return Ok(Vec::new());
        }
        let mut strays = staged_in(self.root())?;
        if !strays.is_empty() {
            // A step in progress is among them.
            let known = Timeline::read(self)?.moves;
            strays.retain(|(_, id)| !id.is_some_and(|id| known.contains_key(&id)));
        }
        Ok(strays.into_iter().map(|(path, _)| path).collect())
    }

    /// Returns whether another process is moving files here right now.
    ///
    /// # Errors
    ///
    /// What reading the workspace's trail can fail with.
    pub fn is_moving(&self) -> Result<bool> {
        if self.open_step()?.is_none() {
            return Ok(false);
        }
        let free = self.try_hold_snapshots()?.is_some();
        Ok(!free && self.open_step()?.is_some())
    }

    pub(crate) fn recover_with(&self, writer: Option<&Session>) -> Result<Option<Recovered>> {
        // Most often there is nothing to do, and no lock is needed.
        if self.open_step()?.is_none() && !self.has_dead().unwrap_or(false) {
            return Ok(None);
        }
        match self.try_hold_snapshots()? {
            Some(_held) => self.recover_locked(writer),
            None => Ok(None),
        }
    }

    /// Finishes a step that a crash interrupted, and ends the turns and runs whose process
    /// died. The caller holds the snapshot lock.
    pub(crate) fn recover_locked(&self, writer: Option<&Session>) -> Result<Option<Recovered>> {
        let recovered = self.finish_step(writer)?;
        // If it fails, all changes since may be theirs or the user's, which is safe.
        self.end_dead().ok();
        Ok(recovered)
    }

    fn finish_step(&self, writer: Option<&Session>) -> Result<Option<Recovered>> {
        let Some(begun) = self.open_step()? else {
            return Ok(None);
        };
        let (before, after, items) = match self.work_of(&begun) {
            Ok(work) => work,
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                return self.abandon(&begun, error.to_string()).map(Some);
            }
            Err(error) => return Err(error),
        };
        let left = work(self, &begun, &items).resume()?.left;
        let from = self.checkpoint_by_id(begun.from)?;
        let from = from.as_ref();
        let mut ended = CheckpointRecord {
            changed: items.len() as u64,
            skipped: from.map_or_else(SkippedFiles::default, |from| from.skipped().clone()),
            included: from.map_or_else(Vec::new, |from| from.included().to_vec()),
            left: from.map_or_else(Vec::new, Checkpoint::still_left),
            ..begun.end((begun.after, after.totals()))
        };
        leave_alone(self, &mut ended, &left, &before)?;
        if let Some(chat) = &begun.chat {
            ended.session = self.recover_chat(&begun, chat, writer)?;
        }
        self.end_step(&ended)?;
        Ok(Some(Recovered {
            now: Some(begun.id),
            not_restored: left,
            chat_continued: begun.chat.is_some() && ended.session.is_none(),
            ..Recovered::new(verb(&begun.reason), begun.at)
        }))
    }

    /// Returns the states before and after a step, and the changes between them.
    fn work_of(&self, begun: &StepRecord) -> Result<(Snapshot, Snapshot, Vec<PathChange>)> {
        let before = self.open_snapshot(&begun.before)?;
        let after = self.open_snapshot(&begun.after)?;
        let items = items(begun.makes_root, &before, &after)?;
        Ok((before, after, items))
    }

    /// Gives up a step that cannot be finished. The files stay as they are.
    fn abandon(&self, begun: &StepRecord, reason: String) -> Result<Recovered> {
        let staged = work(self, begun, &[]).abandon();
        self.give_up_step(begun)?;
        Ok(Recovered {
            not_restored: staged.into_iter().collect(),
            chat_continued: begun.chat.is_some(),
            abandoned: Some(reason),
            ..Recovered::new(verb(&begun.reason), begun.at)
        })
    }

    /// Removes what finished steps could not clean up themselves. The caller holds the
    /// snapshot lock, and no step is unfinished.
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

    /// Moves the conversation, unless it moved already. `None` if it continued meanwhile,
    /// or another process is writing to it.
    fn recover_chat(
        &self,
        begun: &StepRecord,
        chat: &ChatMoveRecord,
        writer: Option<&Session>,
    ) -> Result<Option<SessionPlace>> {
        let head = match self.store().session_place(&chat.session) {
            // A lost session cannot be moved, and holds up nothing else.
            Err(error) if is_lost(&error) => return Ok(None),
            place => place?.trail,
        };
        if head >= chat.trail {
            let opener = opener_of(self.store(), &chat.session, chat.trail)?;
            let is_it = opener.is_some_and(|opener| opener.reason == trail_reason(&begun.reason));
            return Ok(is_it.then(|| chat.place_after()));
        }
        let session = match writer.filter(|writer| *writer.id() == chat.session) {
            Some(writer) => writer.clone(),
            None => match Session::open(self.store(), &chat.session, None) {
                // Another process is writing to it, or another machine.
                Err(error) if error.kind() == ErrorKind::Locked || error.refusal().is_some() => {
                    return Ok(None);
                }
                session => session?,
            },
        };
        session.alone(|| {
            let stands = session.stands_at()?;
            if stands.trail != chat.from.trail || session.is_spoken_after(chat.from.seq)? {
                return Ok(None);
            }
            match session.go_to(trail_reason(&begun.reason), (chat.to.trail, chat.to.seq)) {
                Err(error) if is_lost(&error) => Ok(None),
                gone => gone.map(|_| Some(chat.place_after())),
            }
        })
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

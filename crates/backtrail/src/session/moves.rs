//! Moving the conversation: rewind, undo, redo. Each begins a new trail.

use super::Session;
use super::steps::{self, Step};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::LogWriter;
use crate::log::chain::Segment;
use crate::log::place::{self, Place};
use crate::log::present_at;
use crate::log::tail::Tail;
use crate::trail::Because;
use crate::trail::opener::{Opener, Spot};
use crate::trail::record::Position;
#[allow(unused_imports, reason = "named in documentation")]
use crate::workspace::Workspace;

/// The conversation goes on from another place now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Move {
    /// The last record before the move.
    pub from: u64,
    /// The last record now.
    pub to: u64,
    /// The new trail.
    pub trail: u32,
    /// The step that was made, taken back or brought forward again.
    pub step: Step,
}

impl Session {
    /// Takes the conversation back to a record, the last that stays; 0 empties
    /// it. Returns `None` where it ends there already.
    ///
    /// Nothing is lost: [`undo`](Self::undo) goes back to where it was. Title,
    /// tags, model and workspace are not taken back.
    pub fn rewind(&self, seq: u64) -> Result<Option<Move>> {
        self.must_be_ours(seq)?;
        self.0.move_to(|live, tail| {
            if seq == tail.position().seq {
                return Ok(None);
            }
            let target = place::find(&live.store, &live.dir, tail.trail, seq)?;
            Ok(Some(Target::rewind(target)))
        })
    }

    /// Takes back the newest step that is not taken back yet: a turn with what it
    /// changed in files, a rewind, a restore, a compaction. The conversation goes on
    /// from where it was before that step; what was said since stays reachable by
    /// [`redo`](Self::redo). Returns `None` where there is nothing to undo.
    ///
    /// Files that somebody else changed stop it, with
    /// [`Conflict`](crate::ErrorKind::Conflict); [`Workspace::undo`] says what becomes
    /// of them.
    pub fn undo(&self) -> Result<Option<Move>> {
        if let Some(workspace) = self.workspace()? {
            return workspace.undo_through(self);
        }
        self.0.move_to(|live, tail| {
            let Some(taken) = steps::newest(&live.dir, tail.spot())? else {
                return Ok(None);
            };
            Ok(Some(Target {
                because: Because::Undo,
                place: place::at(&live.dir, taken.before)?,
                as_at: Some(taken.before),
                step: Some(taken.step),
            }))
        })
    }

    /// Comes forward again to where the last undo left. Returns `None` where there
    /// is nothing to redo: anything said or done since the undo ends it.
    pub fn redo(&self) -> Result<Option<Move>> {
        if let Some(workspace) = self.workspace()? {
            return workspace.redo_through(self);
        }
        self.0.move_to(|live, tail| {
            let Some(undone) = steps::undone(&live.dir, tail.spot())? else {
                return Ok(None);
            };
            Ok(Some(Target {
                because: Because::Redo,
                place: place::at(&live.dir, undone.ahead)?,
                as_at: Some(undone.ahead),
                step: Some(undone.step),
            }))
        })
    }
}

impl Session {
    /// Refuses to move a conversation that another agent keeps.
    fn must_be_ours(&self, seq: u64) -> Result<()> {
        match self.reader().log.present()?.belongs_to {
            Some(agent) => Err(not_ours(self.id(), seq, &agent)),
            None => Ok(()),
        }
    }

    /// Does something after all that was handed in, and while nobody appends through
    /// this handle.
    pub(crate) fn alone<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.0.queue.alone(&self.0, work)
    }

    /// Returns where the conversation stands now.
    pub(crate) fn stands_at(&self) -> Result<Spot> {
        let mut tail = self.0.lock_tail();
        if let Some(error) = tail.stopped() {
            return Err(error);
        }
        let _guard = self.0.append_lock.hold()?;
        tail.catch_up()?;
        Ok(tail.spot())
    }

    /// Returns whether anything was said after a record.
    pub(crate) fn is_spoken_after(&self, seq: u64) -> Result<bool> {
        self.reader().log.is_spoken_after(seq)
    }

    /// Lets the conversation go on from the end of the line that leads to record
    /// `seq` in `trail`. The caller is [`alone`](Self::alone).
    pub(crate) fn go_to(&self, because: Because, (trail, seq): (u32, u64)) -> Result<()> {
        let moved = self.0.move_now(|live, _| {
            let mut place = place::find(&live.store, &live.dir, trail, seq)?;
            let mut as_at = None;
            if because != Because::Rewind {
                // The trail itself says which steps led there, also an empty one.
                let sum = place.position.sum;
                let spot = Spot { trail, seq, sum };
                place = place::at(&live.dir, spot)?;
                as_at = Some(spot);
            }
            Ok(Some(Target {
                because,
                place,
                as_at,
                step: None,
            }))
        });
        moved.map(drop)
    }
}

/// Refuses to move the conversation of another agent.
pub(crate) fn not_ours(id: &SessionId, seq: u64, agent: &str) -> Error {
    Error::invalid(format!(
        "the conversation of session {id} belongs to {agent}, and only goes on in a fork: fork \
         it at record {seq}"
    ))
}

/// Where a move leads.
pub(super) struct Target {
    because: Because,
    place: Place,
    as_at: Option<Spot>,
    /// The step; a rewind is one itself.
    step: Option<Step>,
}

impl Target {
    /// Leads back to a place.
    pub(super) fn rewind(place: Place) -> Self {
        Self {
            because: Because::Rewind,
            place,
            as_at: None,
            step: None,
        }
    }
}

impl LogWriter {
    /// Begins a new trail where `choose` says, after all that was handed in.
    pub(super) fn move_to(
        &self,
        choose: impl FnOnce(&Self, &Tail) -> Result<Option<Target>>,
    ) -> Result<Option<Move>> {
        self.queue.alone(self, || self.move_now(choose))
    }

    /// Begins a new trail where `choose` says, while nobody else writes.
    fn move_now(
        &self,
        choose: impl FnOnce(&Self, &Tail) -> Result<Option<Target>>,
    ) -> Result<Option<Move>> {
        let mut tail = self.lock_tail();
        if let Some(error) = tail.stopped() {
            return Err(error);
        }
        let _guard = self.append_lock.hold()?;
        tail.catch_up()?;
        let Some(target) = choose(self, &tail)? else {
            return Ok(None);
        };
        let from = tail.position().seq;
        let opener = self.opener_of(&tail, &target)?;
        // What the new trail continues, and what an undo goes back to, must
        // not be less durable than itself.
        tail.sync()?;
        tail.begin(&opener)?;
        let step = target.step.or_else(|| steps::rewind_of(&opener));
        Ok(step.map(|step| Move {
            from,
            to: opener.seq,
            trail: opener.trail,
            step,
        }))
    }

    fn opener_of(&self, tail: &Tail, target: &Target) -> Result<Opener> {
        let id = self.dir.id();
        let present = present_at(&self.store, &self.dir, tail.trail, tail.position())?;
        let because = target.because.clone();
        let opener = Opener {
            present,
            before: Some(self.place_before(tail)?),
            as_at: target.as_at,
            ..Opener::new(id, tail.trail + 1, because, self.store.now())
        };
        if target.place.position.seq == 0 {
            return Ok(opener);
        }
        let settled = place::settle(&self.dir, target.place.spot())?;
        let position = Position {
            seq: settled.seq,
            sum: settled.sum,
            ..target.place.position
        };
        let from = Place {
            trail: settled.trail,
            position,
        };
        Ok(opener.continuing(from.continues(id), position.compacted))
    }

    /// Returns where the conversation stands. Right after a redo that is where
    /// the redo went: so going back and forth does not pile up.
    fn place_before(&self, tail: &Tail) -> Result<Spot> {
        let spot = tail.spot();
        let opener = Segment::open(&self.dir, spot.trail, spot.seq)?.opener;
        let redone = opener
            .filter(|opener| opener.because == Because::Redo && opener.seq == spot.seq)
            .and_then(|opener| opener.as_at);
        Ok(redone.unwrap_or(spot))
    }
}

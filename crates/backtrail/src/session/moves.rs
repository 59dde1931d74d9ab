//! Moving the conversation: rewind, undo, redo. Each begins a new trail.

use super::place::{self, Place};
use super::steps::{self, Step};
use super::{Live, Session};
use crate::error::Result;
use crate::session::chain::Segment;
use crate::session::info::present_at;
use crate::session::tail::Tail;
use crate::trail::Because;
use crate::trail::opener::{Opener, Spot};
use crate::trail::record::Position;

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
        self.0.move_to(|live, tail| {
            if seq == tail.position.seq {
                return Ok(None);
            }
            let target = place::find(&live.store, &live.files, tail.trail, seq)?;
            Ok(Some(Target {
                because: Because::Rewind,
                place: target,
                as_at: None,
                step: None,
            }))
        })
    }

    /// Takes back the newest step that is not taken back yet: a rewind or a
    /// compaction. The conversation goes on from where it was before that step;
    /// what was said since stays reachable by [`redo`](Self::redo). Returns `None`
    /// where there is nothing to undo.
    pub fn undo(&self) -> Result<Option<Move>> {
        self.0.move_to(|live, tail| {
            let Some(taken) = steps::newest(&live.files, tail.spot())? else {
                return Ok(None);
            };
            Ok(Some(Target {
                because: Because::Undo,
                place: place::at(&live.files, taken.before)?,
                as_at: Some(taken.before),
                step: Some(taken.step),
            }))
        })
    }

    /// Comes forward again to where the last undo left. Returns `None` where there
    /// is nothing to redo: anything said or done since the undo ends it.
    pub fn redo(&self) -> Result<Option<Move>> {
        self.0.move_to(|live, tail| {
            let Some((step, ahead)) = steps::undone(&live.files, tail.spot())? else {
                return Ok(None);
            };
            Ok(Some(Target {
                because: Because::Redo,
                place: place::at(&live.files, ahead)?,
                as_at: Some(ahead),
                step: Some(step),
            }))
        })
    }
}

/// Where a move leads.
struct Target {
    because: Because,
    place: Place,
    as_at: Option<Spot>,
    /// The step; a rewind is one itself.
    step: Option<Step>,
}

impl Live {
    /// Begins a new trail where `choose` says, after all that was handed in.
    fn move_to(
        &self,
        choose: impl FnOnce(&Self, &Tail) -> Result<Option<Target>>,
    ) -> Result<Option<Move>> {
        self.queue.alone(self, || {
            let mut tail = self.lock_tail();
            if let Some(error) = tail.stopped() {
                return Err(error);
            }
            let _guard = self.append_lock.hold()?;
            tail.catch_up()?;
            let Some(target) = choose(self, &tail)? else {
                return Ok(None);
            };
            let from = tail.position.seq;
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
        })
    }

    fn opener_of(&self, tail: &Tail, target: &Target) -> Result<Opener> {
        let id = self.files.id();
        let present = present_at(&self.store, &self.files, tail.trail, &tail.position)?;
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
        let settled = place::settle(&self.files, target.place.spot())?;
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
        let opener = Segment::open(&self.files, spot.trail, spot.seq)?.opener;
        let redone = opener
            .filter(|opener| opener.because == Because::Redo && opener.seq == spot.seq)
            .and_then(|opener| opener.as_at);
        Ok(redone.unwrap_or(spot))
    }
}

//! Moving the conversation alone: rewind, undo, redo. Each begins a new trail.

use super::Session;
use super::steps::{self, Step};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::LogWriter;
use crate::log::chain::Segment;
use crate::log::place::{self, Place};
use crate::log::present_at;
use crate::log::tail::Tail;
use crate::trail::TrailReason;
use crate::trail::opener::{Opener, Spot};
use crate::trail::record::Position;

/// A completed move of the conversation.
pub(crate) struct MovedChat {
    /// The last record before it.
    pub(crate) from: u64,
    /// The last record after it.
    pub(crate) to: u64,
    /// The trail that it began.
    pub(crate) trail: u32,
    /// The step that was made, undone or redone.
    pub(crate) step: Option<Step>,
}

impl Session {
    /// Ends the conversation at a record. `None` if it already ends there.
    pub(crate) fn move_to_record(&self, seq: u64) -> Result<Option<MovedChat>> {
        self.0.move_to(|live, tail| {
            if seq == tail.position().seq {
                return Ok(None);
            }
            Ok(Some(MoveTarget {
                reason: TrailReason::Rewind,
                place: place::find(&live.store, &live.dir, tail.trail, seq)?,
                as_at: None,
                step: None,
            }))
        })
    }

    /// Undoes the last step of a session without a workspace, or redoes its last undone step.
    pub(crate) fn step_chat(&self, reason: TrailReason) -> Result<Option<MovedChat>> {
        self.0.move_to(|live, tail| {
            let found = match reason {
                TrailReason::Redo => steps::undone(&live.dir, tail.spot())?,
                _ => steps::newest(&live.dir, tail.spot())?,
            };
            let target = found.map(|found| {
                Ok(MoveTarget {
                    reason,
                    place: place::at(&live.dir, found.to)?,
                    as_at: Some(found.to),
                    step: Some(found.step),
                })
            });
            target.transpose()
        })
    }

    /// Refuses to move a conversation that another agent keeps.
    pub(crate) fn must_be_ours(&self, seq: u64) -> Result<()> {
        match self.reader().log.present()?.belongs_to {
            Some(agent) => Err(not_ours(self.id(), seq, &agent)),
            None => Ok(()),
        }
    }

    /// Runs `work` after all queued messages, while nothing is appended through this
    /// handle.
    pub(crate) fn alone<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.0.alone(work)
    }

    /// Returns where the conversation is now.
    pub(crate) fn stands_at(&self) -> Result<Spot> {
        let mut tail = self.0.lock_tail();
        if let Some(error) = tail.stopped() {
            return Err(error);
        }
        let _guard = self.0.append_lock.hold()?;
        tail.catch_up()?;
        Ok(tail.spot())
    }

    /// Returns whether there are messages after a record.
    pub(crate) fn is_spoken_after(&self, seq: u64) -> Result<bool> {
        self.reader().log.is_spoken_after(seq)
    }

    /// Continues the conversation from record `seq` of `trail`, and returns the trail that
    /// begins there. The caller is [`alone`](Self::alone).
    pub(crate) fn go_to(
        &self,
        reason: TrailReason,
        (trail, seq): (u32, u64),
    ) -> Result<Option<u32>> {
        let moved = self.0.move_now(|live, _| {
            let mut place = place::find(&live.store, &live.dir, trail, seq)?;
            let mut as_at = None;
            if reason != TrailReason::Rewind {
                // The trail itself, even an empty one, determines which steps led there.
                let sum = place.position.sum;
                let spot = Spot { trail, seq, sum };
                place = place::at(&live.dir, spot)?;
                as_at = Some(spot);
            }
            Ok(Some(MoveTarget {
                reason,
                place,
                as_at,
                step: None,
            }))
        })?;
        Ok(moved.map(|moved| moved.trail))
    }
}

/// Returns the error for moving a conversation that another agent keeps.
pub(crate) fn not_ours(id: &SessionId, seq: u64, agent: &str) -> Error {
    Error::invalid(format!(
        "session {id} belongs to {agent}: fork it at record {seq} to continue from there"
    ))
}

/// The place that a conversation moves to.
struct MoveTarget {
    reason: TrailReason,
    place: Place,
    as_at: Option<Spot>,
    /// The step that is undone or redone.
    step: Option<Step>,
}

impl LogWriter {
    /// Begins a new trail at the place that `choose` returns, after all queued messages.
    fn move_to(
        &self,
        choose: impl FnOnce(&Self, &Tail) -> Result<Option<MoveTarget>>,
    ) -> Result<Option<MovedChat>> {
        self.alone(|| self.move_now(choose))
    }

    /// Begins a new trail at the place that `choose` returns, while nothing else is written.
    fn move_now(
        &self,
        choose: impl FnOnce(&Self, &Tail) -> Result<Option<MoveTarget>>,
    ) -> Result<Option<MovedChat>> {
        let mut tail = self.lock_tail();
        if let Some(error) = tail.stopped() {
            return Err(error);
        }
        self.must_not_be_fenced(&mut tail)?;
        let _guard = self.append_lock.hold()?;
        tail.catch_up()?;
        self.note_end(&tail);
        let Some(target) = choose(self, &tail)? else {
            return Ok(None);
        };
        let from = tail.position().seq;
        let opener = self.opener_of(&tail, &target)?;
        // The records that the new trail continues, and those that an undo returns
        // to, must be at least as durable as the trail.
        tail.sync()?;
        tail.begin(&opener)?;
        self.note_written(&tail, 0);
        Ok(Some(MovedChat {
            from,
            to: opener.seq,
            trail: opener.trail,
            step: target.step.or_else(|| steps::rewind_of(&opener)),
        }))
    }

    fn opener_of(&self, tail: &Tail, target: &MoveTarget) -> Result<Opener> {
        let id = self.dir.id();
        let present = present_at(&self.store, &self.dir, tail.trail, tail.position())?;
        let reason = target.reason.clone();
        let opener = Opener {
            present,
            before: Some(self.place_before(tail)?),
            as_at: target.as_at,
            ..Opener::new(id, tail.trail + 1, reason, self.store.now())
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

    /// Returns where the conversation is. Right after a redo that is the redo's target, so
    /// that repeated undo and redo do not pile up.
    fn place_before(&self, tail: &Tail) -> Result<Spot> {
        let spot = tail.spot();
        let opener = Segment::open(&self.dir, spot.trail, spot.seq)?.opener;
        let redone = opener
            .filter(|opener| opener.reason == TrailReason::Redo && opener.seq == spot.seq)
            .and_then(|opener| opener.as_at);
        Ok(redone.unwrap_or(spot))
    }
}

//! Steps: what undo takes back and redo brings forward again.
//!
//! Which steps there are is not kept anywhere: it follows from where the
//! conversation stands. The newest step of a place is the last compaction in its
//! trail or, before that, what the trail's opener says was done there. So the
//! steps are the same after a crash, and finding one reads an opener or two.

use std::fmt;

use super::chain::Segment;
use super::files::SessionFiles;
use super::place;
use crate::error::Result;
use crate::time::Timestamp;
use crate::trail::opener::{Because, Opener, Spot};

/// Something that was done to a conversation and can be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// What was done.
    pub kind: StepKind,
    /// When, where it is known.
    pub at: Option<Timestamp>,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepKind {
    /// The conversation was taken back.
    Rewind {
        /// The last record before.
        from: u64,
        /// The last record that stayed.
        to: u64,
    },
    /// A summary took the place of earlier messages.
    Compaction {
        /// Its record.
        seq: u64,
        /// The how many-th it was.
        count: u64,
        /// How many messages it covers.
        removed_message_count: u64,
    },
}

impl StepKind {
    /// Returns the kind as one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Rewind { .. } => "rewind",
            Self::Compaction { .. } => "compaction",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            StepKind::Rewind { from, to: 0 } => {
                write!(f, "the rewind from record {from} to the beginning")
            }
            StepKind::Rewind { from, to } => {
                write!(f, "the rewind from record {from} to record {to}")
            }
            StepKind::Compaction {
                seq,
                removed_message_count: 1,
                ..
            } => write!(f, "the compaction at record {seq} (1 message)"),
            StepKind::Compaction {
                seq,
                removed_message_count,
                ..
            } => write!(
                f,
                "the compaction at record {seq} ({removed_message_count} messages)"
            ),
        }
    }
}

/// The steps of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Steps {
    /// What undo takes back, next one first.
    pub to_undo: Vec<Step>,
    /// What redo brings forward, next one first.
    pub to_redo: Vec<Step>,
}

/// A step, and where the conversation stood before it.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) step: Step,
    pub(crate) before: Spot,
}

/// Lists the steps of a session that stands at `spot`.
pub(crate) fn list(files: &SessionFiles, spot: Spot) -> Result<Steps> {
    let mut steps = Steps::default();
    let mut at = spot;
    while let Some(taken) = newest(files, at)? {
        steps.to_undo.push(taken.step);
        at = taken.before;
    }
    let mut at = spot;
    while let Some((step, ahead)) = undone(files, at)? {
        steps.to_redo.push(step);
        at = ahead;
    }
    Ok(steps)
}

/// Returns the newest step of a place that is not taken back yet.
pub(crate) fn newest(files: &SessionFiles, mut spot: Spot) -> Result<Option<Taken>> {
    let (mut segment, position) = place::look_at(files, spot)?;
    let mut compacted = position.compacted;
    loop {
        let Some(opener) = &segment.opener else {
            return Ok(None);
        };
        if let Some(seq) = compacted.filter(|seq| *seq > own_after(opener)) {
            let Some(before) = place::before(&segment, seq)? else {
                return Ok(None);
            };
            let step = compaction(&segment, seq)?;
            spot = before.spot();
            // One that cannot be read has nothing to say, and hides nothing.
            if let Some(step) = step {
                return Ok(Some(Taken { step, before: spot }));
            }
            compacted = before.position.compacted;
            segment = Segment::open(files, spot.trail, spot.seq)?;
            continue;
        }
        if opener.because == Because::Rewind {
            let before = opener.before.filter(|before| before.trail < opener.trail);
            return Ok(rewind_of(opener)
                .zip(before)
                .map(|(step, before)| Taken { step, before }));
        }
        let Some(other) = shared_with(files, opener) else {
            return Ok(None);
        };
        if opener.because == Because::Repair {
            let (there, position) = place::look_at(files, other)?;
            compacted = position.compacted;
            segment = there;
        } else {
            // What was compacted there is what the opener carried over: no record
            // of that trail has to be read.
            compacted = opener.compacted;
            segment = Segment::open(files, other.trail, other.seq)?;
        }
    }
}

/// Returns the step that redo brings forward at a place, and where that leads.
pub(crate) fn undone(files: &SessionFiles, mut spot: Spot) -> Result<Option<(Step, Spot)>> {
    loop {
        let segment = Segment::open(files, spot.trail, spot.seq)?;
        let Some(opener) = &segment.opener else {
            return Ok(None);
        };
        if opener.because == Because::Rewind || place::is_spoken_after(&segment, own_after(opener))?
        {
            return Ok(None);
        }
        if opener.because == Because::Undo {
            let Some(ahead) = opener.before.filter(|ahead| ahead.trail < opener.trail) else {
                return Ok(None);
            };
            let taken = newest(files, ahead)?;
            return Ok(taken.map(|taken| (taken.step, ahead)));
        }
        match shared_with(files, opener) {
            Some(other) => spot = other,
            None => return Ok(None),
        }
    }
}

/// Returns the seq after which a trail's records are its own doing: a repair
/// begins with copies.
fn own_after(opener: &Opener) -> u64 {
    match opener.because {
        Because::Repair if opener.as_at.is_some() => opener.given.unwrap_or(opener.seq),
        _ => opener.seq,
    }
}

/// Returns the earlier place that a trail shares its steps with: the one it
/// continues or, after an undo or redo, the one it went to. Steps of the session
/// that was forked are not this one's.
fn shared_with(files: &SessionFiles, opener: &Opener) -> Option<Spot> {
    let spot = match opener.because {
        Because::Undo | Because::Redo => opener.as_at?,
        // The damaged trails are still there, and say what was done.
        Because::Repair if opener.as_at.is_some() => opener.as_at?,
        _ => {
            let from = opener.continues.as_ref()?;
            (from.session_id == *files.id()).then(|| from.spot())?
        }
    };
    (spot.trail < opener.trail).then_some(spot)
}

/// Returns the step that a rewind's opener made.
pub(crate) fn rewind_of(opener: &Opener) -> Option<Step> {
    let before = opener.before?;
    Some(Step {
        kind: StepKind::Rewind {
            from: before.seq,
            to: opener.seq,
        },
        at: Some(opener.at),
    })
}

fn compaction(segment: &Segment, seq: u64) -> Result<Option<Step>> {
    let Some(record) = segment.find(seq)? else {
        return Ok(None);
    };
    let record = record.as_ref();
    let Ok(Some(stored)) = record.compaction() else {
        return Ok(None);
    };
    Ok(Some(Step {
        kind: StepKind::Compaction {
            seq,
            count: stored.count,
            removed_message_count: stored.removed_message_count,
        },
        at: record.at(),
    }))
}

//! Steps: the units of undo and redo.
//!
//! The list of steps is not stored: it follows from where the conversation is. The newest
//! step of a place is the last compaction in its trail or, before that, the step that the
//! trail's opener records. So the steps are the same after a crash, and finding one reads
//! an opener or two.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::run::Ending;
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::log::chain::Segment;
use crate::log::directory::LogDir;
use crate::log::place;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::opener::{Opener, Spot, TrailReason};

/// A step that changed a conversation or files, and can be undone.
///
/// Its JSON has the kind, the text, the time, and the numbers of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// What was done.
    pub kind: StepKind,
    /// The checkpoint by which the [log](crate::workspace::LogEntry::step_id) names it, if it
    /// changed files.
    pub id: Option<CheckpointId>,
    /// When, if known.
    pub at: Option<Timestamp>,
    /// The session it belongs to, if it changed files; `None` for a step of the
    /// conversation alone, and for one that belongs to no session.
    pub session: Option<SessionId>,
    /// The record of the prompt, if it is a turn and that is known.
    pub prompt: Option<u64>,
    /// Which prompt of its session that is, counted from 1, for a step that is undone or redone.
    pub prompt_number: Option<u64>,
    /// The program whose turn it is, if that keeps the session.
    pub agent: Option<String>,
    /// How it ended, if it is a turn or run and that is known.
    pub ending: Option<Ending>,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepKind {
    /// The conversation was rewound.
    Rewind {
        /// The last record before.
        from: u64,
        /// The last record that stayed.
        to: u64,
    },
    /// A turn with its file changes.
    Turn {
        /// How the prompt begins.
        about: Option<String>,
    },
    /// A tool call of a turn, with its file changes.
    Call {
        /// The tool.
        tool: String,
        /// How the prompt of the turn begins.
        about: Option<String>,
    },
    /// A command with its file changes.
    Run {
        /// The command.
        about: Option<String>,
    },
    /// Files were rewound to a point, and maybe the conversation with them.
    FileRewind {
        /// The target, in a few words.
        about: Option<String>,
    },
    /// Some paths were restored.
    Restore {
        /// The paths, in a few words.
        about: Option<String>,
    },
    /// Messages that were undone on their own.
    Messages {
        /// The last record before them.
        after: u64,
        /// The last record of them.
        until: u64,
    },
    /// A summary replaced earlier messages in the context.
    Compaction {
        /// Its record.
        seq: u64,
        /// Its number among the compactions, counted from 1.
        count: u64,
        /// How many messages it covers.
        removed_message_count: u64,
    },
}

impl Step {
    /// Creates a step that belongs to no session.
    pub fn new(kind: StepKind, at: Option<Timestamp>) -> Self {
        Self {
            kind,
            id: None,
            at,
            session: None,
            prompt: None,
            prompt_number: None,
            agent: None,
            ending: None,
        }
    }
}

impl StepKind {
    /// Returns the kind as one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Turn { .. } => "turn",
            Self::Call { .. } => "call",
            Self::Run { .. } => "run",
            Self::Rewind { .. } | Self::FileRewind { .. } => "rewind",
            Self::Restore { .. } => "restore",
            Self::Messages { .. } => "messages",
            Self::Compaction { .. } => "compaction",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |f: &mut fmt::Formatter<'_>, what: &str, about: &Option<String>| match about {
            Some(about) => write!(f, "the {what} {about}"),
            None => write!(f, "the {what}"),
        };
        match &self.kind {
            StepKind::Turn { about: Some(about) } => write!(f, "the turn \"{about}\""),
            StepKind::Run { about: Some(about) } => write!(f, "the run `{about}`"),
            StepKind::Turn { about } => named(f, "turn", about),
            StepKind::Call { tool, about: None } => write!(f, "{tool}"),
            StepKind::Call {
                tool,
                about: Some(about),
            } => write!(f, "{tool} in the turn \"{about}\""),
            StepKind::Run { about } => named(f, "run", about),
            StepKind::FileRewind { about } => named(f, "rewind", about),
            StepKind::Restore { about } => named(f, "restore of", about),
            StepKind::Messages { after, until } => {
                write!(f, "records {} to {until}", after + 1)
            }
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
            } => write!(f, "the compaction of 1 message at record {seq}"),
            StepKind::Compaction {
                seq,
                removed_message_count,
                ..
            } => write!(
                f,
                "the compaction of {removed_message_count} messages at record {seq}"
            ),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind.as_str())?;
        map.serialize_entry("text", &self.to_string())?;
        map.serialize_entry("at", &self.at)?;
        match &self.kind {
            StepKind::Rewind { from, to } => {
                map.serialize_entry("from", from)?;
                map.serialize_entry("to", to)?;
            }
            StepKind::Messages { after, until } => {
                map.serialize_entry("after", after)?;
                map.serialize_entry("until", until)?;
            }
            StepKind::Compaction {
                seq,
                count,
                removed_message_count,
            } => {
                map.serialize_entry("seq", seq)?;
                map.serialize_entry("count", count)?;
                map.serialize_entry("removed_message_count", removed_message_count)?;
            }
            StepKind::Turn { .. }
            | StepKind::Call { .. }
            | StepKind::Run { .. }
            | StepKind::FileRewind { .. }
            | StepKind::Restore { .. } => {}
        }
        if let Some(agent) = &self.agent {
            map.serialize_entry("agent", agent)?;
        }
        if let Some(prompt) = &self.prompt {
            map.serialize_entry("prompt", prompt)?;
        }
        if let Some(number) = &self.prompt_number {
            map.serialize_entry("prompt_number", number)?;
        }
        if let Some(ending) = &self.ending {
            map.serialize_entry("result", ending.as_str())?;
        }
        if let Some(Ending::Failed { exit_code, signal }) = &self.ending {
            map.serialize_entry("exit_code", exit_code)?;
            map.serialize_entry("signal", signal)?;
        }
        map.end()
    }
}

/// The steps that undo and redo apply to.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Steps {
    /// The steps that can be undone, the next one first.
    #[serde(rename = "undo")]
    pub to_undo: Vec<Step>,
    /// The steps that can be redone, the next one first.
    #[serde(rename = "redo")]
    pub to_redo: Vec<Step>,
}

/// A step of a conversation alone that undo or redo takes.
#[derive(Debug)]
pub(crate) struct ChatStep {
    pub(crate) session: SessionId,
    pub(crate) step: Step,
    /// Where the conversation goes: to before the step, or to where it was undone.
    pub(crate) to: Spot,
    /// The trail that the step, or its undo, began; a compaction begins none.
    pub(crate) began: Option<u32>,
    /// When it was done, or undone.
    pub(crate) at: Option<Timestamp>,
}

impl ChatStep {
    /// Returns where the step is: the trail that it began, or its record.
    pub(crate) fn place(&self) -> (u32, u64) {
        let record = (self.to.trail, self.to.seq + 1);
        self.began.map_or(record, |trail| (trail, 0))
    }
}

/// Lists the steps of a session that is at `spot`.
pub(crate) fn list(files: &LogDir, spot: Spot) -> Result<Steps> {
    let steps = |all: Vec<ChatStep>| all.into_iter().map(|found| found.step).collect();
    Ok(Steps {
        to_undo: steps(follow(files, spot, newest)?),
        to_redo: steps(follow(files, spot, undone)?),
    })
}

/// Returns all steps that `find` finds one after the other.
fn follow(
    files: &LogDir,
    mut spot: Spot,
    find: impl Fn(&LogDir, Spot) -> Result<Option<ChatStep>>,
) -> Result<Vec<ChatStep>> {
    let mut steps = Vec::new();
    while let Some(found) = find(files, spot)? {
        spot = found.to;
        steps.push(found);
    }
    Ok(steps)
}

/// Returns the newest step of a conversation that is not undone.
pub(crate) fn newest_step(store: &Store, id: &SessionId) -> Result<Option<ChatStep>> {
    let (files, spot) = end_of(store, id)?;
    newest(&files, spot)
}

/// Returns all steps of a conversation that are not undone, the newest first.
pub(crate) fn all_steps(store: &Store, id: &SessionId) -> Result<Vec<ChatStep>> {
    let (files, spot) = end_of(store, id)?;
    follow(&files, spot, newest)
}

/// Returns the next step to redo in a conversation.
pub(crate) fn undone_step(store: &Store, id: &SessionId) -> Result<Option<ChatStep>> {
    let (files, spot) = end_of(store, id)?;
    undone(&files, spot)
}

fn end_of(store: &Store, id: &SessionId) -> Result<(LogDir, Spot)> {
    let files = store.files(id);
    let head = files.head()?;
    let end = place::end(store, &files, head)?;
    Ok((files, end.spot()))
}

/// Returns the opener of one of a session's trails, if it can be read.
pub(crate) fn opener_of(store: &Store, id: &SessionId, trail: u32) -> Result<Option<Opener>> {
    let segment = Segment::open(&store.files(id), trail, u64::MAX)?;
    Ok(segment.opener)
}

/// Returns the newest step of a place that is not undone.
pub(crate) fn newest(files: &LogDir, mut spot: Spot) -> Result<Option<ChatStep>> {
    let (mut segment, position) = place::look_at(files, spot)?;
    let mut compacted = position.compacted;
    let found = |step: Step, to, began| ChatStep {
        session: files.id().clone(),
        at: step.at,
        step,
        to,
        began,
    };
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
            // An unreadable one is skipped, and does not hide others.
            if let Some(step) = step {
                return Ok(Some(found(step, spot, None)));
            }
            compacted = before.position.compacted;
            segment = Segment::open(files, spot.trail, spot.seq)?;
            continue;
        }
        if opener.reason == TrailReason::Rewind {
            let before = opener.before.filter(|before| before.trail < opener.trail);
            let step = rewind_of(opener).zip(before);
            return Ok(step.map(|(step, before)| found(step, before, Some(opener.trail))));
        }
        let Some(other) = shared_with(files, opener) else {
            return Ok(None);
        };
        if opener.reason == TrailReason::Repair {
            let (there, position) = place::look_at(files, other)?;
            compacted = position.compacted;
            segment = there;
        } else {
            // The opener repeats the compactions of that trail, so none of its records
            // has to be read.
            compacted = opener.compacted;
            segment = Segment::open(files, other.trail, other.seq)?;
        }
    }
}

/// Returns the next step to redo at a place, and where it leads.
pub(crate) fn undone(files: &LogDir, mut spot: Spot) -> Result<Option<ChatStep>> {
    loop {
        let segment = Segment::open(files, spot.trail, spot.seq)?;
        let Some(opener) = &segment.opener else {
            return Ok(None);
        };
        if opener.reason == TrailReason::Rewind
            || place::is_spoken_after(&segment, own_after(opener))?
        {
            return Ok(None);
        }
        if opener.reason == TrailReason::Undo {
            let Some(ahead) = opener.before.filter(|ahead| ahead.trail < opener.trail) else {
                return Ok(None);
            };
            // An undone turn is not a step of the conversation alone.
            let messages = StepKind::Messages {
                after: opener.seq,
                until: ahead.seq,
            };
            let step = newest(files, ahead)?.map(|taken| taken.step);
            return Ok(Some(ChatStep {
                session: files.id().clone(),
                step: step.unwrap_or_else(|| Step::new(messages, Some(opener.at))),
                to: ahead,
                began: Some(opener.trail),
                at: Some(opener.at),
            }));
        }
        match shared_with(files, opener) {
            Some(other) => spot = other,
            None => return Ok(None),
        }
    }
}

/// Returns the seq after which a trail's records are its own: a repaired trail begins
/// with copies.
fn own_after(opener: &Opener) -> u64 {
    match opener.reason {
        TrailReason::Repair if opener.as_at.is_some() => opener.given.unwrap_or(opener.seq),
        _ => opener.seq,
    }
}

/// Returns the earlier place whose steps a trail shares: the one it continues or, after
/// an undo or redo, the one it moved to. Steps of the forked session do not count.
fn shared_with(files: &LogDir, opener: &Opener) -> Option<Spot> {
    let spot = match opener.reason {
        TrailReason::Undo | TrailReason::Redo => opener.as_at?,
        // The damaged trails still exist, and record the steps.
        TrailReason::Repair if opener.as_at.is_some() => opener.as_at?,
        _ => {
            let from = opener.continues.as_ref()?;
            (from.session_id == *files.id()).then(|| from.spot())?
        }
    };
    (spot.trail < opener.trail).then_some(spot)
}

/// Returns the step that a rewind's opener records.
pub(crate) fn rewind_of(opener: &Opener) -> Option<Step> {
    let kind = StepKind::Rewind {
        from: opener.before?.seq,
        to: opener.seq,
    };
    Some(Step::new(kind, Some(opener.at)))
}

fn compaction(segment: &Segment, seq: u64) -> Result<Option<Step>> {
    let Some(record) = segment.find(seq)? else {
        return Ok(None);
    };
    let record = record.as_ref();
    let Ok(Some(stored)) = record.compaction() else {
        return Ok(None);
    };
    let kind = StepKind::Compaction {
        seq,
        count: stored.count,
        removed_message_count: stored.removed_message_count,
    };
    Ok(Some(Step::new(kind, record.at())))
}

//! Where a rewind goes: to a point, or to before or after a step.

use std::path::PathBuf;

use super::authors::{Authors, SessionFamily};
use super::options::Rewind;
use super::outcome::{ChatMove, TargetPoint, Verb};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::message::Block;
use crate::objects::ObjectId;
use crate::session::{Step, not_ours};
use crate::snapshot::shown;
use crate::store::Store;
use crate::trail::TrailReason;
use crate::workspace::journal::{MergedWork, TrailPlace};
use crate::workspace::timeline::Timeline;
use crate::workspace::{Checkpoint, CheckpointReason, Description, Point, SessionPlace, Workspace};

/// Where a rewind goes.
#[derive(Debug)]
pub(super) struct RewindTarget {
    pub(super) verb: Verb,
    /// The step that is undone or redone.
    pub(super) step: Option<Step>,
    pub(super) step_id: Option<CheckpointId>,
    /// The session whose work is undone.
    pub(super) session: Option<SessionId>,
    /// The checkpoint that the files go to.
    pub(super) to: Option<Checkpoint>,
    pub(super) to_point: Option<TargetPoint>,
    pub(super) files: Option<FileTarget>,
    pub(super) chat: Option<ChatTarget>,
    /// The agent that keeps the session.
    pub(super) belongs_to: Option<String>,
    /// The names of the tool calls between the checkpoint and the point.
    pub(super) tool_calls: Vec<String>,
    pub(super) about: Description,
}

/// Where the files go.
#[derive(Debug)]
pub(super) struct FileTarget {
    /// The state that they go to.
    pub(super) state: ObjectId,
    /// Which paths of it.
    pub(super) scope: PathScope,
    /// Which paths of a step, if any are named.
    pub(super) only: Vec<PathBuf>,
    /// The checkpoint after which changes count.
    pub(super) since: CheckpointId,
    /// The checkpoint that the step ended with; `None` if everything up to now is
    /// undone.
    pub(super) until: Option<CheckpointId>,
    pub(super) authors: AuthorScope,
}

/// Which paths go to a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathScope {
    /// All that differ now; of some paths, if any are named.
    Whole(Vec<PathBuf>),
    /// Those that a step changed; it left this state behind.
    Changed(ObjectId),
    /// Those that a step changed which is still in progress.
    ChangedUntilNow,
}

/// Whose work is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AuthorScope {
    Nobody,
    One(SessionId),
    Sessions,
    Everyone,
}

/// Where the conversation goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChatTarget {
    pub(super) session: SessionId,
    pub(super) to: TrailPlace,
}

impl AuthorScope {
    pub(super) fn find(&self, store: &Store) -> Result<Authors> {
        Ok(match self {
            Self::Nobody => Authors::Nobody,
            Self::One(session) => Authors::One(SessionFamily::of(store, session)?),
            Self::Sessions => Authors::Sessions,
            Self::Everyone => Authors::Everyone,
        })
    }

    /// Returns it as the record of a merge stores it.
    pub(super) fn as_merged(&self) -> MergedWork {
        match self {
            Self::Nobody => MergedWork::Move,
            Self::One(_) => MergedWork::Session,
            Self::Sessions => MergedWork::Sessions,
            Self::Everyone => MergedWork::Everyone,
        }
    }

    /// Returns whose work a merge undid; `None` if that is not known.
    pub(super) fn merged(work: MergedWork, session: Option<&SessionId>) -> Option<Self> {
        match work {
            MergedWork::Move => Some(Self::Nobody),
            MergedWork::Session => session.cloned().map(Self::One),
            MergedWork::Sessions => Some(Self::Sessions),
            MergedWork::Everyone => Some(Self::Everyone),
            MergedWork::Other => None,
        }
    }
}

impl Verb {
    /// Returns the reason of the checkpoint at its end.
    pub(super) fn reason(self) -> CheckpointReason {
        match self {
            Self::Rewind => CheckpointReason::Rewind,
            Self::Restore => CheckpointReason::Restore,
            Self::Undo => CheckpointReason::Undo,
            Self::Redo => CheckpointReason::Redo,
        }
    }
}

/// Returns the reason why a step begins a trail.
pub(super) fn trail_reason(why: &CheckpointReason) -> TrailReason {
    match why {
        CheckpointReason::Undo => TrailReason::Undo,
        CheckpointReason::Redo => TrailReason::Redo,
        _ => TrailReason::Rewind,
    }
}

impl RewindTarget {
    /// Finds what a point means.
    pub(super) fn at_point(workspace: &Workspace, point: &Point, options: &Rewind) -> Result<Self> {
        if !options.files {
            return Self::at_chat_point(workspace, point);
        }
        let moment = workspace.locate(point)?;
        let place = moment.session.clone();
        let authors = match &place {
            _ if moment.counts => AuthorScope::Sessions,
            Some(place) => AuthorScope::One(place.id.clone()),
            None => AuthorScope::Everyone,
        };
        let checkpoint = moment.checkpoint;
        let is_restore = !options.paths.is_empty() || options.pick.is_some();
        let store = workspace.store();
        let chat = place.as_ref().filter(|_| options.chat && !is_restore);
        let owner = match &place {
            Some(place) => Some(belongs_to(store, &place.id)?),
            None => None,
        };
        let to_point = TargetPoint::of(workspace, &checkpoint)?;
        let about = match &options.pick {
            Some(pick) => format!("parts of {}", named_paths(&pick.paths())).into(),
            None if is_restore => named_paths(&options.paths).into(),
            None => describe(workspace, &checkpoint)?.prefixed("to "),
        };
        Ok(Self {
            verb: if is_restore {
                Verb::Restore
            } else {
                Verb::Rewind
            },
            step: None,
            step_id: None,
            session: place.as_ref().map(|place| place.id.clone()),
            files: Some(FileTarget {
                state: checkpoint.snapshot_id(),
                scope: PathScope::Whole(options.paths.clone()),
                only: Vec::new(),
                since: checkpoint.id(),
                until: None,
                authors,
            }),
            // A session that cannot be read does not keep files from moving.
            tool_calls: match owner {
                Some(ChatOwner::Lost) | None => Vec::new(),
                _ => tool_calls_between(store, &checkpoint, place.as_ref())?,
            },
            chat: chat
                .filter(|_| owner == Some(ChatOwner::Ours))
                .map(ChatTarget::at),
            belongs_to: owner.and_then(ChatOwner::agent).filter(|_| chat.is_some()),
            to: Some(checkpoint),
            to_point: Some(to_point),
            about,
        })
    }

    /// Finds the place in a conversation that a point means.
    fn at_chat_point(workspace: &Workspace, point: &Point) -> Result<Self> {
        match workspace.locate_chat(point)? {
            Some(place) => Self::at_place(workspace.store(), place),
            None => {
                let what = format!("{point} has no session, so there is no conversation to move");
                Err(Error::invalid(what))
            }
        }
    }

    /// Finds a record of a session.
    pub(super) fn at_record(store: &Store, session: &SessionId, seq: u64) -> Result<Self> {
        let place = store.record_place(session, seq)?;
        Self::at_place(store, place)
    }

    fn at_place(store: &Store, place: SessionPlace) -> Result<Self> {
        if let ChatOwner::Agent(agent) = belongs_to(store, &place.id)? {
            return Err(not_ours(&place.id, place.seq, &agent));
        }
        let chat = ChatTarget::at(&place);
        Ok(Self {
            session: Some(place.id),
            ..Self::chat(Verb::Rewind, chat)
        })
    }

    /// Makes a target of the conversation alone.
    pub(super) fn chat(verb: Verb, chat: ChatTarget) -> Self {
        Self {
            verb,
            step: None,
            step_id: None,
            session: None,
            to: None,
            to_point: None,
            files: None,
            chat: Some(chat),
            belongs_to: None,
            tool_calls: Vec::new(),
            about: Description::default(),
        }
    }

    /// Returns the session whose work is undone, if it is a single one.
    pub(super) fn one_session(&self) -> Option<SessionId> {
        match self.files.as_ref().map(|files| &files.authors) {
            Some(AuthorScope::Sessions | AuthorScope::Everyone) => None,
            _ => self.session.clone(),
        }
    }

    /// Returns the conversation's move as it would be now; `None` if it already ends
    /// there.
    pub(super) fn chat_move(&self, store: &Store) -> Result<Option<ChatMove>> {
        let Some(chat) = &self.chat else {
            return Ok(None);
        };
        let now = store.session_place(&chat.session)?;
        let reader = store.read_session(&chat.session)?;
        let line = reader.log.line()?;
        let TrailPlace { trail, seq } = chat.to;
        let on_line = seq == 0 || line.holds(&chat.session, trail, seq);
        if on_line && !reader.log.is_spoken_after(seq)? {
            return Ok(None);
        }
        Ok(Some(ChatMove {
            session: chat.session.clone(),
            from: now.seq,
            to: seq,
            trail: None,
            prompt: match on_line && seq < now.seq {
                true => first_prompt(store, &chat.session, seq)?,
                false => None,
            },
        }))
    }
}

impl ChatTarget {
    fn at(place: &SessionPlace) -> Self {
        Self {
            session: place.id.clone(),
            to: TrailPlace {
                trail: place.trail,
                seq: place.seq,
            },
        }
    }
}

/// Who keeps a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatOwner {
    Ours,
    /// Another agent.
    Agent(String),
    /// It is gone or cannot be read.
    Lost,
}

impl ChatOwner {
    pub(super) fn agent(self) -> Option<String> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Ours | Self::Lost => None,
        }
    }
}

/// Returns who keeps the conversation of a session.
pub(super) fn belongs_to(store: &Store, id: &SessionId) -> Result<ChatOwner> {
    let present = store
        .read_session(id)
        .and_then(|reader| reader.log.present());
    match present.map(|present| present.belongs_to) {
        Ok(Some(agent)) => Ok(ChatOwner::Agent(agent)),
        Ok(None) => Ok(ChatOwner::Ours),
        Err(error) if is_lost(&error) => Ok(ChatOwner::Lost),
        Err(error) => Err(error),
    }
}

/// Returns whether a session is gone or cannot be read.
pub(super) fn is_lost(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt)
}

impl TargetPoint {
    pub(super) fn of(workspace: &Workspace, checkpoint: &Checkpoint) -> Result<Self> {
        let text = describe(workspace, checkpoint)?.read(workspace.store());
        Ok(Self {
            checkpoint: checkpoint.id(),
            at: checkpoint.at(),
            session: checkpoint.session().cloned(),
            text: text.unwrap_or_default(),
        })
    }
}

/// Describes a checkpoint as a point, to be read after "back to".
fn describe(workspace: &Workspace, checkpoint: &Checkpoint) -> Result<Description> {
    if let Some(label) = checkpoint.label() {
        return Ok(format!("checkpoint \"{label}\"").into());
    }
    if checkpoint.reason().begins() {
        return Ok(Description::of_start(checkpoint).prefixed("before "));
    }
    if let Some(start) = checkpoint.begun_by()
        && let Some(start) = workspace.checkpoint_by_id(start)?
    {
        let when = match checkpoint.reason() {
            CheckpointReason::Interrupted => "the end of ",
            why if why.ends() => "after ",
            _ => "within ",
        };
        return Ok(Description::of_start(&start).prefixed(when));
    }
    Ok(match checkpoint.reason() {
        why if why.moved() => format!("after the {why}").into(),
        _ => format!("checkpoint {}", checkpoint.id().prefix(8)).into(),
    })
}

/// Names the first of some paths, and how many more there are.
pub(super) fn named_paths(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| match shown(path) {
        name if name.is_empty() => ".".to_owned(),
        name => name,
    };
    match paths {
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
        [] => String::new(),
    }
}

/// Returns the first prompt after a record.
fn first_prompt(store: &Store, session: &SessionId, seq: u64) -> Result<Option<String>> {
    let mut records = store.read_session(session)?.records_from(seq + 1)?;
    while let Some(record) = records.next()? {
        if let Ok(Some(message)) = record.message()
            && message.is_prompt()
        {
            return Ok(Some(message.text().into_owned()));
        }
    }
    Ok(None)
}

/// Returns the names of the tool calls between a checkpoint and a place.
fn tool_calls_between(
    store: &Store,
    checkpoint: &Checkpoint,
    place: Option<&SessionPlace>,
) -> Result<Vec<String>> {
    let (Some(from), Some(to)) = (checkpoint.session(), place) else {
        return Ok(Vec::new());
    };
    let mut calls = Vec::new();
    if from.seq >= to.seq {
        return Ok(calls);
    }
    let mut records = store.read_session(&to.id)?.records_from(from.seq + 1)?;
    while let Some(record) = records.next()? {
        if record.seq() > to.seq {
            break;
        }
        let Ok(Some(message)) = record.message() else {
            continue;
        };
        calls.extend(message.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call.name.to_string()),
            _ => None,
        }));
    }
    Ok(calls)
}

/// Returns the index of a checkpoint on the timeline.
pub(super) fn place_of(timeline: &Timeline, id: CheckpointId) -> Result<usize> {
    timeline.index_of(id).ok_or_else(|| {
        let what = format!("checkpoint {id} no longer exists");
        Error::new(ErrorKind::NotFound, what)
    })
}

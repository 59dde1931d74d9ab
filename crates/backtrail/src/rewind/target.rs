//! Where a rewind goes: to a point, or to before or after a step.

use std::path::PathBuf;

use super::authors::WhoseWork;
use super::options::Rewind;
use super::outcome::{ChatMove, Outcome, Stage, TargetPoint, Verb};
use super::step_finder::StepFinder;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::message::Block;
use crate::objects::ObjectId;
use crate::session::not_ours;
use crate::snapshot::shown;
use crate::store::Store;
use crate::trail::TrailReason;
use crate::workspace::timeline::Timeline;
use crate::workspace::{Checkpoint, CheckpointReason, Description, Point, SessionPlace, Workspace};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request<'a> {
    /// Going to a point.
    Point(&'a Point),
    Undo,
    Redo,
}

/// Where a rewind goes.
#[derive(Debug)]
pub(super) struct RewindTarget {
    /// What is known of its outcome.
    pub(super) outcome: Outcome,
    /// The step that is undone or redone.
    pub(super) step_id: Option<CheckpointId>,
    /// The checkpoint that the files go to.
    pub(super) to: Option<Checkpoint>,
    pub(super) files: Option<FileTarget>,
    /// The last record of the conversation afterwards.
    pub(super) chat: Option<SessionPlace>,
    /// Whether the conversation stays if another process is writing to it.
    pub(super) is_chat_optional: bool,
    pub(super) about: Description,
}

/// Where the files go.
#[derive(Debug)]
pub(super) struct FileTarget {
    /// The state that they go to.
    pub(super) state: ObjectId,
    /// Which paths of it.
    pub(super) scope: PathScope,
    /// The paths that are named, if any: what is at or below them.
    pub(super) paths: Vec<PathBuf>,
    /// The checkpoint after which changes count.
    pub(super) since: CheckpointId,
    /// The checkpoint that the step ended with; `None` if everything up to now is
    /// undone.
    pub(super) until: Option<CheckpointId>,
    /// Whose work is undone.
    pub(super) authors: WhoseWork,
    /// Whether paths stay that only others changed meanwhile.
    pub(super) only_own: bool,
}

/// Which paths go to a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathScope {
    /// All that differ now.
    Whole,
    /// Those that a step changed; it left this state behind.
    Changed(ObjectId),
    /// Those that a step changed which is still in progress.
    ChangedUntilNow,
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
    /// Finds what is asked for; `None` if there is nothing to undo or redo.
    pub(super) fn find(
        workspace: &Workspace,
        request: Request<'_>,
        options: &Rewind,
    ) -> Result<Option<Self>> {
        match request {
            Request::Point(point) if options.files => {
                Self::at_point(workspace, point, options).map(Some)
            }
            Request::Point(point) => Self::at_chat_point(workspace, point).map(Some),
            Request::Undo => StepFinder::new(workspace, options)?.to_undo(options),
            Request::Redo => StepFinder::new(workspace, options)?.to_redo(options),
        }
    }

    /// Finds what a point means.
    fn at_point(workspace: &Workspace, point: &Point, options: &Rewind) -> Result<Self> {
        let moment = workspace.locate(point)?;
        let (checkpoint, place) = (moment.checkpoint, moment.session);
        let authors = match &place {
            Some(place) if moment.is_record => WhoseWork::of(workspace.store(), &place.id),
            _ => WhoseWork::Everyone,
        };
        let is_restore = !options.paths.is_empty() || options.pick.is_some();
        let store = workspace.store();
        let owner = place.as_ref().map(|place| belongs_to(store, &place.id));
        let owner = owner.transpose()?;
        let about = match &options.pick {
            Some(pick) => format!("parts of {}", named_paths(&pick.paths())).into(),
            None if is_restore => named_paths(&options.paths).into(),
            None => describe(workspace, &checkpoint)?.prefixed("to "),
        };
        let verb = match is_restore {
            true => Verb::Restore,
            false => Verb::Rewind,
        };
        let mut outcome = Outcome {
            session: place.as_ref().map(|place| place.id.clone()),
            to: Some(TargetPoint::of(workspace, &checkpoint)?),
            ..Outcome::new(verb, Stage::Planned)
        };
        // A session that cannot be read does not keep files from moving.
        if owner
            .as_ref()
            .is_some_and(|owner| *owner != ChatOwner::Lost)
        {
            outcome.tool_calls = tool_calls_between(store, &checkpoint, place.as_ref())?;
        }
        let mut chat = place.filter(|_| options.chat && !is_restore);
        if chat.is_some() && owner != Some(ChatOwner::Ours) {
            chat = None;
            outcome.belongs_to = owner.and_then(ChatOwner::agent);
        }
        Ok(Self {
            outcome,
            step_id: None,
            files: Some(FileTarget {
                state: checkpoint.snapshot_id(),
                scope: PathScope::Whole,
                paths: options.paths.clone(),
                since: checkpoint.id(),
                until: None,
                authors,
                only_own: false,
            }),
            chat,
            is_chat_optional: !moment.is_record,
            to: Some(checkpoint),
            about,
        })
    }

    /// Finds the place in a conversation that a point means.
    fn at_chat_point(workspace: &Workspace, point: &Point) -> Result<Self> {
        match workspace.locate_chat(point)? {
            Some(place) => Self::at_place(workspace.store(), place),
            None => {
                let what = format!("{point} has no session, so there is no conversation to rewind");
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
        Ok(Self::chat(Verb::Rewind, place))
    }

    /// Makes a target of the conversation alone.
    pub(super) fn chat(verb: Verb, place: SessionPlace) -> Self {
        Self {
            outcome: Outcome {
                session: Some(place.id.clone()),
                ..Outcome::new(verb, Stage::Planned)
            },
            step_id: None,
            to: None,
            files: None,
            chat: Some(place),
            is_chat_optional: false,
            about: Description::default(),
        }
    }

    /// Leaves the conversation where it is if it may stay and another process is writing to
    /// it. `writer` is the session that this process is writing to.
    pub(super) fn leave_chat_in_use(
        &mut self,
        store: &Store,
        writer: Option<&SessionId>,
    ) -> Result<()> {
        let chat = self.chat.as_ref().filter(|_| self.is_chat_optional);
        let Some(chat) = chat.filter(|chat| writer != Some(&chat.id)) else {
            return Ok(());
        };
        let in_use = store.read_session(&chat.id)?.writer()?.is_some();
        if in_use && self.chat_move(store)?.is_some() {
            self.outcome.chat_in_use = self.chat.take().map(|chat| chat.id);
        }
        Ok(())
    }

    /// Returns the session whose work is undone, if it is a single one.
    pub(super) fn one_session(&self) -> Option<SessionId> {
        let files = self.files.as_ref();
        let is_one = !files.is_some_and(|files| files.authors.are_several());
        self.outcome.session.clone().filter(|_| is_one)
    }

    /// Returns the conversation's move as it would be now; `None` if it already ends
    /// there.
    pub(super) fn chat_move(&self, store: &Store) -> Result<Option<ChatMove>> {
        let Some(chat) = &self.chat else {
            return Ok(None);
        };
        let now = store.session_place(&chat.id)?;
        let reader = store.read_session(&chat.id)?;
        let seq = chat.seq;
        let on_line = seq == 0 || reader.log.line()?.holds(&chat.id, chat.trail, seq);
        if on_line && !reader.log.is_spoken_after(seq)? {
            return Ok(None);
        }
        Ok(Some(ChatMove {
            prompt: match on_line && seq < now.seq {
                true => first_prompt(store, &chat.id, seq)?,
                false => None,
            },
            ..ChatMove::new(&chat.id, now.seq, seq)
        }))
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
            session: checkpoint.session().cloned(),
            ..Self::new(checkpoint.id(), checkpoint.at(), text.unwrap_or_default())
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
            return Ok(Some(message.said().text.into_owned()));
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

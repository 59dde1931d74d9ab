//! Which step undo and redo take.
//!
//! Steps that changed files are on the workspace's trail; those of a conversation alone
//! (compactions, and rewinds of the conversation) on its session's. The newest of all
//! of them comes first.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::authors::WhoseWork;
use super::options::Rewind;
use super::outcome::{Outcome, Stage, TargetPoint, Verb};
use super::target::{
    ChatOwner, FileTarget, PathScope, Request, RewindTarget, belongs_to, is_lost, named_paths,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::session::{
    ChatStep, Step, StepKind, Steps, all_steps, newest_step, opener_of, undone_step,
};
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::step_record::{ChatMoveRecord, StepRecord, TrailPlace};
use crate::workspace::timeline::{FileStep, FileStepKind, FileSteps, Timeline};
use crate::workspace::{
    Checkpoint, CheckpointReason, Description, Look, Lost, SessionPlace, Workspace,
};

/// The steps of a workspace, or of one session there.
pub(super) struct StepFinder<'a> {
    workspace: &'a Workspace,
    timeline: Timeline,
    steps: FileSteps,
    session: Option<SessionId>,
    /// The trails that steps with files began.
    with_files: HashSet<(SessionId, u32)>,
}

impl<'a> StepFinder<'a> {
    /// Reads the steps of the session that the options name, or of all.
    pub(super) fn new(workspace: &'a Workspace, options: &Rewind) -> Result<Self> {
        let timeline = Timeline::read(workspace)?;
        let mut steps = timeline.steps();
        let session = options.session.clone();
        if let Some(session) = &session {
            let is_its = |step: &FileStep| step.session.as_ref() == Some(session);
            steps.done.retain(is_its);
            steps.undone.retain(|(step, _)| is_its(step));
        }
        // A step that was given up began no trail: its number is another's by now.
        let done = timeline.moves.values();
        let done = done.filter(|begun| timeline.index_of(begun.id).is_some());
        let chats = done.filter_map(|begun| begun.chat.as_ref());
        Ok(Self {
            workspace,
            with_files: chats
                .map(|chat| (chat.session.clone(), chat.trail))
                .collect(),
            timeline,
            steps,
            session,
        })
    }

    /// Finds the step that undo takes.
    pub(super) fn to_undo(&self, options: &Rewind) -> Result<Option<RewindTarget>> {
        if options.last_call {
            return self.last_call(options);
        }
        if !options.paths.is_empty() {
            return self.part_of_newest(options).map(Some);
        }
        let chat = match options.chat {
            true => self.newest_chat()?,
            false => None,
        };
        for step in self.steps.done.iter().rev() {
            if chat.as_ref().is_some_and(|chat| self.is_newer(chat, step)) {
                break;
            }
            let target = self.undo_of(step, options)?;
            // A step that changed nothing is skipped.
            if target.files.is_some() || target.chat.is_some() {
                return Ok(Some(target));
            }
        }
        Ok(chat.map(|chat| target(chat, Verb::Undo)))
    }

    /// Finds the last tool call that changed files, in the newest turn that has one.
    fn last_call(&self, options: &Rewind) -> Result<Option<RewindTarget>> {
        let turns = self.steps.done.iter().rev();
        let mut calls = turns.flat_map(|turn| self.timeline.calls_of(turn, &self.steps));
        let call = calls.next();
        call.map(|call| self.undo_of(&call, options)).transpose()
    }

    /// Finds the newest step that changed any of some paths, to undo what it did to
    /// them. That is a step of its own; the other one stays.
    fn part_of_newest(&self, options: &Rewind) -> Result<RewindTarget> {
        let only: Vec<&Path> = options.paths.iter().map(PathBuf::as_path).collect();
        for step in self.steps.done.iter().rev() {
            if !self.changed_at(step, &only)? {
                continue;
            }
            let mut target = self.undo_of(step, &Rewind::files())?;
            let Some(files) = &mut target.files else {
                continue;
            };
            files.paths.clone_from(&options.paths);
            target.about = named_paths(&options.paths).into();
            target.outcome.verb = Verb::Restore;
            target.step_id = None;
            return Ok(target);
        }
        let what = format!("no undoable step changed {}", named_paths(&options.paths));
        Err(Error::new(ErrorKind::NotFound, what).at_path(&options.paths[0]))
    }

    /// Returns whether a step changed any of some paths, or may have: its states may be
    /// damaged there.
    fn changed_at(&self, step: &FileStep, only: &[&Path]) -> Result<bool> {
        let compare = || {
            let before = self.timeline.checkpoints[step.before].snapshot()?;
            let after = match step.after {
                Some(after) => self.timeline.checkpoints[after].snapshot()?,
                None => {
                    let mode = before.root().mode;
                    self.workspace.scan_present(mode, Look::Quick, None)?.0
                }
            };
            before.differences(&after, Some(only))
        };
        let is_asked = |lost: &Lost| only.iter().any(|path| lost.path.starts_with(path));
        if self.lost_in(step).iter().any(is_asked) {
            return Ok(true);
        }
        match compare() {
            Ok(differences) => Ok(!differences.is_empty()),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a step of a conversation came after one of files. Within one
    /// session the records say so; clocks may go backwards.
    fn is_newer(&self, chat: &ChatStep, step: &FileStep) -> bool {
        let ended = step.after.map(|after| &self.timeline.checkpoints[after]);
        match ended.and_then(Checkpoint::session) {
            Some(place) if place.id == chat.session => chat.place() > (place.trail, place.seq),
            _ => chat.at > Some(self.at(step)),
        }
    }

    /// Finds the step that redo takes.
    pub(super) fn to_redo(&self, options: &Rewind) -> Result<Option<RewindTarget>> {
        if !options.paths.is_empty() {
            return Err(Error::invalid("redo applies to a whole step, not to paths"));
        }
        let chat = self.undone_chat()?;
        let newest = self.newest_chat()?;
        if let Some((step, undo)) = self.steps.undone.last()
            && let Some(begun) = self.timeline.moves.get(undo)
            && !chat.as_ref().is_some_and(|chat| came_after(chat, begun))
        {
            // Anything newer ends it.
            let ended = newest.is_some_and(|newest| came_after(&newest, begun));
            if ended || self.continued(begun)? {
                return Ok(None);
            }
            return self.redo_of(step, begun, options).map(Some);
        }
        let newest = newest.and_then(|newest| newest.at);
        let ended = self.steps.done.last().map(|step| self.at(step));
        let chat = chat.filter(|chat| chat.at >= ended && chat.at >= newest);
        Ok(chat.map(|chat| target(chat, Verb::Redo)))
    }

    /// Lists what undo and redo would take, the next one first.
    pub(super) fn list(&self) -> Result<Steps> {
        let mut steps = Steps::default();
        for session in self.sessions()? {
            let store = self.workspace.store();
            let all = readable(all_steps(store, &session).map(Some))?;
            let mut all = all.unwrap_or_default();
            if !all.is_empty() && is_of_an_agent(store, &session)? {
                all.clear();
            }
            let all = all.into_iter();
            let chat_only = all.filter(|taken| !self.is_with_files(&session, taken.began));
            steps.to_undo.extend(chat_only.map(|taken| taken.step));
        }
        for step in self.steps.done.iter().rev() {
            if self.changed_anything(step) {
                steps.to_undo.push(self.described(step));
            }
        }
        steps.to_undo.sort_by_key(|step| std::cmp::Reverse(step.at));
        // Something newer may have ended it.
        let next = self.to_redo(&Rewind::files_and_chat())?;
        if next.as_ref().is_some_and(|target| target.step_id.is_some()) {
            let undone = self.steps.undone.iter().rev();
            steps.to_redo = undone.map(|(step, _)| self.described(step)).collect();
        } else {
            steps
                .to_redo
                .extend(next.and_then(|target| target.outcome.step));
        }
        Ok(steps)
    }

    /// Returns whether a trail was begun by a step with files.
    fn is_with_files(&self, session: &SessionId, trail: Option<u32>) -> bool {
        trail.is_some_and(|trail| self.with_files.contains(&(session.clone(), trail)))
    }

    fn undo_of(&self, step: &FileStep, options: &Rewind) -> Result<RewindTarget> {
        let checkpoints = &self.timeline.checkpoints;
        let before = &checkpoints[step.before];
        let after = step.after.map(|after| checkpoints[after].snapshot_id());
        let lost = !self.lost_in(step).is_empty();
        let changed = lost || after.is_none_or(|after| after != before.snapshot_id());
        let left = self.timeline.what_is_left_of(step, &self.steps);
        let left = left.map(|left| checkpoints[left].snapshot_id());
        let scope = left.map_or(PathScope::ChangedUntilNow, PathScope::Changed);
        let (since, authors) = match step.kind {
            FileStepKind::Move => (step.id, WhoseWork::Nobody),
            _ => {
                let start = &checkpoints[step.begun];
                let store = self.workspace.store();
                (before.id(), WhoseWork::of_start(store, start))
            }
        };
        let files = FileTarget {
            state: before.snapshot_id(),
            scope,
            paths: Vec::new(),
            since,
            until: step.after.map(|after| checkpoints[after].id()),
            authors,
            // Of an agent's turn it is known which call changed a path.
            only_own: after.is_none()
                || step.kind != FileStepKind::Move && checkpoints[step.begun].agent().is_some(),
        };
        let chat = match options.chat {
            true => self.chat_before(step)?,
            false => None,
        };
        let files = options.files.then_some(files);
        let mut target = self.target(Verb::Undo, step, files, chat)?;
        // A turn of words alone is undone on the workspace's trail, too, where steps are
        // counted.
        if !changed && target.chat.is_none() {
            target.files = None;
        }
        Ok(target)
    }

    /// Reverses exactly what an undo did.
    fn redo_of(
        &self,
        step: &FileStep,
        undo: &StepRecord,
        options: &Rewind,
    ) -> Result<RewindTarget> {
        let undone = self.timeline.index_of(undo.id);
        let after = undone.map(|at| self.timeline.checkpoints[at].snapshot_id());
        let files = FileTarget {
            state: undo.before,
            scope: PathScope::Changed(after.unwrap_or(undo.after)),
            paths: Vec::new(),
            since: undo.id,
            until: None,
            authors: WhoseWork::Nobody,
            only_own: false,
        };
        let chat = undo
            .chat
            .as_ref()
            .filter(|_| options.chat)
            .map(ChatMoveRecord::place_before);
        let mut target = self.target(Verb::Redo, step, options.files.then_some(files), chat)?;
        let from = self.timeline.index_of(undo.from);
        target.to = from.map(|from| self.timeline.checkpoints[from].clone());
        let point = target.to.as_ref();
        let point = point.map(|to| TargetPoint::of(self.workspace, to));
        target.outcome.to = point.transpose()?;
        Ok(target)
    }

    fn target(
        &self,
        verb: Verb,
        step: &FileStep,
        files: Option<FileTarget>,
        chat: Option<SessionPlace>,
    ) -> Result<RewindTarget> {
        let before = &self.timeline.checkpoints[step.before];
        let owner = chat
            .as_ref()
            .map(|chat| belongs_to(self.workspace.store(), &chat.id));
        let owner = owner.transpose()?;
        Ok(RewindTarget {
            // A session that cannot be read does not keep files from moving.
            chat: chat.filter(|_| owner == Some(ChatOwner::Ours)),
            outcome: Outcome {
                step: Some(Step {
                    prompt_number: self.prompt_number(step),
                    ..self.described(step)
                }),
                session: step.session.clone(),
                to: Some(TargetPoint::of(self.workspace, before)?),
                belongs_to: owner.and_then(ChatOwner::agent),
                beside: self.timeline.beside(step),
                ..Outcome::new(verb, Stage::Planned)
            },
            about: self.description(step),
            step_id: Some(step.id),
            to: Some(before.clone()),
            is_chat_optional: false,
            files,
        })
    }

    /// Returns where the conversation was before a step, if the step moved it.
    fn chat_before(&self, step: &FileStep) -> Result<Option<SessionPlace>> {
        if step.kind == FileStepKind::Move {
            let chat = self.timeline.moves.get(&step.id);
            let chat = chat.and_then(|begun| begun.chat.as_ref());
            return Ok(chat.map(ChatMoveRecord::place_before));
        }
        let Some(place) = self.timeline.checkpoints[step.begun].session() else {
            return Ok(None);
        };
        let reader = match self.workspace.store().read_session(&place.id) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            reader => reader?,
        };
        // It may have been moved elsewhere since.
        let on_line = place.seq == 0 || reader.log.line()?.holds(&place.id, place.trail, place.seq);
        let moved = on_line && reader.log.is_spoken_after(place.seq)?;
        Ok(moved.then(|| place.clone()))
    }

    /// Returns whether the conversation continued since a step moved it.
    fn continued(&self, begun: &StepRecord) -> Result<bool> {
        let Some(chat) = &begun.chat else {
            return Ok(false);
        };
        let reader = match self.workspace.store().read_session(&chat.session) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            reader => reader?,
        };
        let opener = opener_of(self.workspace.store(), &chat.session, chat.trail)?;
        let seq = opener.map_or(chat.to.seq, |opener| opener.seq);
        reader.log.is_spoken_after(seq)
    }

    fn changed_anything(&self, step: &FileStep) -> bool {
        let checkpoints = &self.timeline.checkpoints;
        let before = checkpoints[step.before].snapshot_id();
        let after = step.after.map(|after| checkpoints[after].snapshot_id());
        let owner = |chat: &SessionPlace| belongs_to(self.workspace.store(), &chat.id);
        let is_ours = |chat: &SessionPlace| owner(chat).is_ok_and(|it| it == ChatOwner::Ours);
        let chat = || self.chat_before(step).ok().flatten();
        after != Some(before)
            || !self.lost_in(step).is_empty()
            || chat().is_some_and(|chat| is_ours(&chat))
    }

    /// Returns what a step destroyed without protection.
    fn lost_in(&self, step: &FileStep) -> &[Lost] {
        let end = step.after.map(|after| &self.timeline.checkpoints[after]);
        end.map_or(&[], |end| &end.unprotected().lost)
    }

    /// Returns when a step was over.
    fn at(&self, step: &FileStep) -> Timestamp {
        let at = step.after.unwrap_or(self.timeline.checkpoints.len() - 1);
        self.timeline.checkpoints[at].at()
    }

    /// Returns what the trail says of a step that is undone or redone.
    fn description(&self, step: &FileStep) -> Description {
        let begun = self.timeline.moves.get(&step.id);
        match (step.kind, begun) {
            (FileStepKind::Move, Some(begun)) if begun.reason == CheckpointReason::Restore => {
                begun.description().prefixed("the restore of ")
            }
            (FileStepKind::Move, Some(begun)) => begun.description().prefixed("the rewind "),
            (FileStepKind::Move, None) => "the rewind".to_owned().into(),
            (FileStepKind::Call, _) => {
                let turn = Description::of_start(&self.timeline.checkpoints[step.begun]);
                turn.prefixed(&format!("{} in ", self.tool_name(step)))
            }
            _ => Description::of_start(&self.timeline.checkpoints[step.begun]),
        }
    }

    fn described(&self, step: &FileStep) -> Step {
        let start = || {
            let about = self.timeline.checkpoints[step.begun].about();
            about.and_then(|about| about.text().map(ToOwned::to_owned))
        };
        let begun = self.timeline.moves.get(&step.id);
        let moved = || begun.and_then(|begun| begun.description().read(self.workspace.store()));
        let kind = match (step.kind, begun) {
            (FileStepKind::Turn, _) => StepKind::Turn { about: start() },
            (FileStepKind::Run, _) => StepKind::Run { about: start() },
            (FileStepKind::Call, _) => StepKind::Call {
                tool: self.tool_name(step),
                about: start(),
            },
            (FileStepKind::Move, Some(begun)) if begun.reason == CheckpointReason::Restore => {
                StepKind::Restore { about: moved() }
            }
            (FileStepKind::Move, _) => StepKind::FileRewind { about: moved() },
        };
        Step {
            kind,
            id: Some(step.id),
            at: Some(self.at(step)),
            session: step.session.clone(),
            prompt: match step.kind {
                FileStepKind::Turn | FileStepKind::Call => {
                    let start = &self.timeline.checkpoints[step.begun];
                    start.record.prompt.as_ref().map(|place| place.seq)
                }
                FileStepKind::Run | FileStepKind::Move => None,
            },
            prompt_number: None,
            agent: self.timeline.checkpoints[step.begun]
                .agent()
                .map(|agent| agent.name.clone()),
            ending: self.timeline.ending(step),
        }
    }

    /// Returns which prompt of its session a turn of another program began with.
    fn prompt_number(&self, step: &FileStep) -> Option<u64> {
        let start = &self.timeline.checkpoints[step.begun];
        let place = start
            .record
            .prompt
            .as_ref()
            .filter(|_| start.agent().is_some())?;
        let reader = self.workspace.store().read_session(&place.id).ok()?;
        let mut records = reader.records().ok()?;
        let mut number = 0;
        while let Some(record) = records.next().ok()? {
            if record.seq() > place.seq {
                break;
            }
            let message = record.message().ok().flatten();
            number += u64::from(message.is_some_and(|message| message.is_prompt()));
        }
        Some(number)
    }

    /// Returns what the tool of a call is called.
    fn tool_name(&self, call: &FileStep) -> String {
        let end = call.after.map(|end| &self.timeline.checkpoints[end]);
        end.map_or_else(String::new, Checkpoint::tool_name)
    }

    /// Returns the sessions whose steps count.
    fn sessions(&self) -> Result<Vec<SessionId>> {
        match &self.session {
            Some(session) => Ok(vec![session.clone()]),
            None => self.workspace.sessions(),
        }
    }

    /// Finds the newest step of a conversation alone.
    fn newest_chat(&self) -> Result<Option<ChatStep>> {
        self.newest_of(newest_step)
    }

    /// Finds the step of a conversation alone that was undone last.
    fn undone_chat(&self) -> Result<Option<ChatStep>> {
        self.newest_of(undone_step)
    }

    /// Returns the newest step that `find` finds in the sessions that count.
    fn newest_of(
        &self,
        find: impl Fn(&Store, &SessionId) -> Result<Option<ChatStep>>,
    ) -> Result<Option<ChatStep>> {
        let mut newest: Option<ChatStep> = None;
        for session in self.sessions()? {
            let store = self.workspace.store();
            let chat = readable(find(store, &session))?;
            let chat = chat.filter(|chat| !self.is_with_files(&session, chat.began));
            let is_newer =
                chat.as_ref().map(|chat| chat.at) > newest.as_ref().map(|newest| newest.at);
            if is_newer && !is_of_an_agent(store, &session)? {
                newest = chat;
            }
        }
        Ok(newest)
    }
}

fn target(chat: ChatStep, verb: Verb) -> RewindTarget {
    let mut target = RewindTarget::chat(verb, TrailPlace::from(chat.to).of(&chat.session));
    target.about = chat.step.to_string().into();
    target.outcome.step = Some(chat.step);
    target
}

/// Finds the step that undo or redo takes in a conversation without files.
pub(super) fn chat_step(
    store: &Store,
    session: &SessionId,
    request: Request<'_>,
) -> Result<Option<RewindTarget>> {
    let (found, verb) = match request {
        Request::Redo => (undone_step(store, session)?, Verb::Redo),
        _ => (newest_step(store, session)?, Verb::Undo),
    };
    match found {
        Some(chat) if !is_of_an_agent(store, session)? => Ok(Some(target(chat, verb))),
        _ => Ok(None),
    }
}

/// Returns whether another agent keeps a conversation: what it did there is not undone here.
fn is_of_an_agent(store: &Store, session: &SessionId) -> Result<bool> {
    Ok(matches!(belongs_to(store, session)?, ChatOwner::Agent(_)))
}

/// Returns whether a step of a conversation came after a step with files. Where both
/// moved the same conversation, the trails say so; clocks may go backwards.
fn came_after(chat: &ChatStep, begun: &StepRecord) -> bool {
    match &begun.chat {
        Some(moved) if moved.session == chat.session => chat.place() >= (moved.trail, 0),
        _ => chat.at > Some(begun.at),
    }
}

/// Skips what cannot be read: one session must not hide the others.
fn readable<T>(result: Result<Option<T>>) -> Result<Option<T>> {
    match result {
        Err(error) if is_lost(&error) => Ok(None),
        result => result,
    }
}

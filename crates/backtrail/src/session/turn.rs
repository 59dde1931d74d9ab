//! A turn in progress: a user message and everything that answers it, with the files as
//! they were before it.
//!
//! The snapshot of the files runs in the background. Only a tool can change files, so
//! only the beginning of a tool call waits for it.

use std::sync::Mutex;
use std::thread::JoinHandle;

use super::{Session, SessionOptions};
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::ids::CheckpointId;
use crate::message::{Block, Draft, Message, ToolResult, ToolUse};
use crate::sync::lock;
use crate::workspace::spans::ends;
use crate::workspace::timeline::Timeline;
use crate::workspace::{
    Active, Checkpoint, CheckpointOptions, CheckpointReason, SessionPlace, Workspace, by_id,
    moved_home,
};

impl Session {
    /// Begins a turn: appends a message and takes a snapshot of the workspace as it was
    /// before it. The message is durable when this returns; the snapshot runs in the
    /// background.
    ///
    /// A turn that is dropped without [`Turn::end`] is recorded as interrupted. The
    /// session must have a [`workspace`](SessionOptions::workspace).
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if the session has no workspace, and as `Session::append` does.
    pub fn begin_turn(&self, message: impl Into<Draft>) -> Result<Turn> {
        let draft = message.into();
        let workspace = self.own_workspace()?;
        let place = self.place();
        let seq = self.append(draft)?;
        let prompt = SessionPlace {
            seq,
            ..self.place()
        };
        let start = CheckpointOptions::new()
            .reason(CheckpointReason::TurnStart)
            .place(place)
            .prompt(prompt);
        let background = Background {
            pending: vec![begin_checkpoint(&workspace, start)?],
            started: None,
            failed: None,
            stale: false,
        };
        Ok(Turn {
            session: self.clone(),
            workspace,
            calls: Mutex::default(),
            background: Mutex::new(background),
            ended: false,
        })
    }

    /// Continues the last turn if it was interrupted, for example because its process was
    /// killed; `None` if it ended, or its prompt was undone. Changes of the files since then are
    /// not the turn's. [`Turn::open_tool_calls`] returns the calls that have no result.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if the turn is open in this process, and if the session or its
    /// workspace cannot be read or the state of the files cannot be saved.
    pub fn resume_turn(&self) -> Result<Option<Turn>> {
        let Some(workspace) = self.workspace()? else {
            return Ok(None);
        };
        workspace.recover_with(Some(self))?;
        let Some(start) = self.interrupted_turn(&workspace)? else {
            return Ok(None);
        };
        let Some(prompt) = start.record.prompt.as_ref() else {
            return Ok(None);
        };
        let line = self.reader().log.line()?;
        if !line.holds(&prompt.id, prompt.trail, prompt.seq) {
            return Ok(None);
        }
        let resume = CheckpointOptions::new()
            .reason(CheckpointReason::TurnResume)
            .place(self.place())
            .begun_by(start.id());
        workspace.checkpoint(resume)?;
        let background = Background {
            pending: Vec::new(),
            started: Some(StoredState {
                id: start.id(),
                // Marking it as active is optional.
                _active: workspace.activate(&start).ok(),
            }),
            failed: None,
            stale: false,
        };
        let turn = Turn {
            session: self.clone(),
            workspace,
            calls: Mutex::default(),
            background: Mutex::new(background),
            ended: false,
        };
        let mut records = self.reader().records_from(prompt.seq)?;
        while let Some(record) = records.next()? {
            // An unreadable message has no call that could be answered.
            if let Ok(Some(message)) = record.stored_message() {
                turn.take_note(&message);
            }
        }
        Ok(Some(turn))
    }

    /// Returns the checkpoint that the session's last turn began with, unless it ended.
    fn interrupted_turn(&self, workspace: &Workspace) -> Result<Option<Checkpoint>> {
        let timeline = Timeline::read(workspace)?;
        let is_its = |checkpoint: &&Checkpoint| {
            let place = checkpoint.session();
            *checkpoint.reason() == CheckpointReason::TurnStart
                && place.is_some_and(|place| place.id == *self.id())
        };
        let Some(start) = timeline.checkpoints.iter().rev().find(is_its) else {
            return Ok(None);
        };
        if timeline.active.contains(&start.id()) {
            let what = format!("the last turn of session {} is still open", self.id());
            return Err(Error::invalid(what));
        }
        let end = ends(&timeline.checkpoints).get(&start.id()).copied();
        let ended = end.is_some_and(|end| {
            *timeline.checkpoints[end].reason() != CheckpointReason::Interrupted
        });
        Ok((!ended).then(|| start.clone()))
    }

    /// Makes a checkpoint of the session's workspace, at the session's last record.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if the session has no workspace, and as `Workspace::checkpoint` does.
    pub fn checkpoint(&self, options: CheckpointOptions) -> Result<Checkpoint> {
        self.own_workspace()?.checkpoint(options.session(self.id()))
    }

    fn no_workspace(&self) -> Error {
        let what = format!(
            "session {} has no workspace, so it has no files to save; set one when creating it",
            self.id()
        );
        Error::invalid(what)
    }

    /// Returns the session's workspace, if it has checkpoints. A workspace that was moved is
    /// found at its new path.
    ///
    /// # Errors
    ///
    /// Fails if the session or its workspace cannot be read.
    pub fn workspace(&self) -> Result<Option<Workspace>> {
        let present = self.reader().log.present()?;
        let id = present.workspace.and_then(|workspace| workspace.id);
        id.map(|id| by_id(&self.0.store, &id)).transpose()
    }

    /// Returns the session's workspace, and creates one for its directory if there is
    /// none.
    pub(crate) fn own_workspace(&self) -> Result<Workspace> {
        let known = self.reader().log.present()?.workspace;
        let known = known.ok_or_else(|| self.no_workspace())?;
        match &known.id {
            Some(id) => by_id(&self.0.store, id),
            None => match moved_home(&self.0.store, &self.reader().info()?) {
                Some(workspace) => Ok(workspace),
                None => self.0.store.workspace(&known.root()),
            },
        }
    }

    /// Returns the place of the last record that this handle knows of.
    fn place(&self) -> SessionPlace {
        let tail = self.0.lock_tail();
        SessionPlace {
            id: self.id().clone(),
            trail: tail.trail,
            seq: tail.position().seq,
        }
    }
}

/// A turn in progress.
#[derive(Debug)]
pub struct Turn {
    session: Session,
    workspace: Workspace,
    /// The calls without a result, in order.
    calls: Mutex<Vec<ToolUse>>,
    background: Mutex<Background>,
    ended: bool,
}

/// The snapshots in the background.
#[derive(Debug)]
struct Background {
    /// The snapshots in progress; the turn's first comes first.
    pending: Vec<JoinHandle<Result<StoredState>>>,
    /// Set once the first snapshot is complete.
    started: Option<StoredState>,
    /// Why there is no first snapshot.
    failed: Option<Error>,
    /// Whether the state after the last tool call could not be saved.
    stale: bool,
}

/// A state that was saved in the background.
#[derive(Debug)]
struct StoredState {
    id: CheckpointId,
    /// Held, not used: the first one marks the turn as active.
    _active: Option<Active>,
}

impl Background {
    /// Waits for the snapshots in progress, and returns the checkpoint that the turn began
    /// with.
    fn wait(&mut self) -> Result<CheckpointId> {
        for pending in std::mem::take(&mut self.pending) {
            let made = pending.join().unwrap_or_else(|_| {
                let what = "the snapshot failed: its thread died";
                Err(Error::new(ErrorKind::Io, what))
            });
            match (&self.started, made) {
                // The next snapshot saves the same state, or reports why it cannot.
                (Some(_), made) => self.stale = made.is_err(),
                (None, Ok(kept)) => self.started = Some(kept),
                (None, Err(error)) => self.failed = Some(error),
            }
        }
        match (&self.started, &self.failed) {
            (Some(started), _) => Ok(started.id),
            (None, Some(error)) => Err(error.duplicate()),
            (None, None) => Err(Error::invalid("the turn has ended")),
        }
    }
}

/// Saves the state of the files in a thread.
fn begin_checkpoint(
    workspace: &Workspace,
    options: CheckpointOptions,
) -> Result<JoinHandle<Result<StoredState>>> {
    let theirs = workspace.clone();
    let keep = move || {
        let kept = theirs.checkpoint(options)?;
        let begins = *kept.reason() == CheckpointReason::TurnStart;
        Ok(StoredState {
            id: kept.id(),
            // Marking it as active is optional.
            _active: begins.then(|| theirs.activate(&kept).ok()).flatten(),
        })
    };
    std::thread::Builder::new()
        .name("backtrail-snapshot".to_owned())
        .spawn(keep)
        .map_err(|error| Error::machine("cannot start the snapshot", error))
}

impl Turn {
    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Appends a message and returns its seq once it is durable.
    ///
    /// # Errors
    ///
    /// Fails as `Session::append` does.
    pub fn append(&self, message: impl Into<Draft>) -> Result<u64> {
        let draft = message.into();
        let message = draft.message().map(std::borrow::Cow::into_owned);
        let seq = self.session.append(draft)?;
        if let Some(message) = message {
            self.take_note(&message);
        }
        Ok(seq)
    }

    /// Returns this turn's tool calls without a result, in order.
    pub fn open_tool_calls(&self) -> Vec<ToolUse> {
        lock(&self.calls).clone()
    }

    /// Begins a tool call: waits until the state of the files before it is saved.
    ///
    /// If a first snapshot is too large, take it beforehand with
    /// [`CheckpointOptions::unlimited`].
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if this turn has no open call with this id, and if the state before the
    /// turn could not be saved: then the tool must not run.
    pub fn begin_tool(&self, tool_use_id: &str) -> Result<Tool<'_>> {
        let call = lock(&self.calls)
            .iter()
            .find(|call| *call.id == *tool_use_id)
            .cloned();
        let call = call.ok_or_else(|| {
            let what = format!("no tool call {} is open in this turn", quoted(tool_use_id));
            Error::new(ErrorKind::NotFound, what)
        })?;
        let start = self.kept_until_now()?;
        Ok(Tool {
            turn: self,
            call,
            start,
        })
    }

    /// Waits until the current state of the files is saved, before the next tool call, and
    /// returns the checkpoint that the turn began with.
    fn kept_until_now(&self) -> Result<CheckpointId> {
        let mut background = lock(&self.background);
        let start = background.wait()?;
        if background.stale {
            let again = CheckpointOptions::new()
                .reason(CheckpointReason::ToolEnd)
                .session(self.session.id())
                .begun_by(start);
            self.workspace.checkpoint(again)?;
            background.stale = false;
        }
        Ok(start)
    }

    /// Creates the session of a sub-agent that a tool call of this turn starts. It works in
    /// the same workspace.
    ///
    /// # Errors
    ///
    /// Fails as `Session::spawn` does.
    pub fn spawn(&self, tool_use_id: &str, options: SessionOptions) -> Result<Session> {
        let options = options.or_workspace(&self.workspace);
        self.session.spawn(tool_use_id, options)
    }

    /// Ends the turn: saves the state of the files after it.
    ///
    /// # Errors
    ///
    /// Fails if the state after the turn cannot be saved.
    pub fn end(mut self) -> Result<Checkpoint> {
        let ended = self.finish(CheckpointReason::TurnEnd);
        // A turn that could not end is recorded as interrupted when it is dropped.
        self.ended = ended.is_ok();
        ended
    }

    fn finish(&self, reason: CheckpointReason) -> Result<Checkpoint> {
        let start = lock(&self.background).wait()?;
        let end = CheckpointOptions::new()
            .reason(reason)
            .session(self.session.id())
            .begun_by(start);
        self.workspace.checkpoint(end)
    }

    /// Updates the list of open calls.
    fn take_note(&self, message: &Message) {
        let mut calls = lock(&self.calls);
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => calls.push(call.clone()),
                Block::ToolResult(result) => {
                    let answered = calls.iter().position(|call| call.id == result.tool_use_id);
                    answered.map(|n| calls.remove(n));
                }
                _ => {}
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.ended {
            // `drop` cannot report a failure; without this record the turn has no end,
            // which means the same.
            self.finish(CheckpointReason::Interrupted).ok();
        }
    }
}

/// A tool call in progress.
#[derive(Debug)]
pub struct Tool<'a> {
    turn: &'a Turn,
    call: ToolUse,
    start: CheckpointId,
}

impl Tool<'_> {
    /// Returns the call.
    pub fn call(&self) -> &ToolUse {
        &self.call
    }

    /// Appends the result and returns its seq once it is durable. The state of the files
    /// after the call is saved in the background; the next call waits for it.
    ///
    /// # Errors
    ///
    /// Fails as `Session::append` does.
    pub fn finish(self, result: ToolResult) -> Result<u64> {
        let turn = self.turn;
        let result = result.answers(self.call.id, self.call.name);
        let seq = turn.append(Message::tool_result(result))?;
        let end = CheckpointOptions::new()
            .reason(CheckpointReason::ToolEnd)
            .place(SessionPlace {
                seq,
                ..turn.session.place()
            })
            .begun_by(self.start);
        let pending = begin_checkpoint(&turn.workspace, end)?;
        lock(&turn.background).pending.push(pending);
        Ok(seq)
    }
}

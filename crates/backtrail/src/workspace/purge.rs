//! A session that is purged, as far as a workspace knows of it.
//!
//! Its file states are let go of, and its words leave the trail: what its turns and
//! commands were about, the labels of its checkpoints, and what rewinds say of them.
//! Which checkpoints there were stays, by their ids and times.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde_json::json;

use super::Workspace;
use super::checkpoint::{Checkpoint, Why};
use super::journal::Begun;
use super::let_go::LetGoBecause;
use super::stored::Stored;
use crate::error::{ErrorKind, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::json::{Fields, Json};
use crate::objects::ObjectId;
use crate::session::{Editor, Rewritten, fields_of, rewrite_line};
use crate::time::Timestamp;
use crate::trail::{RecordKind, RecordRef};

impl Workspace {
    /// Removes a session's words and lets go of its file states; returns how many
    /// checkpoints it had. Done twice, the second time changes nothing.
    pub(crate) fn purge_session(&self, session: &SessionId) -> Result<u64> {
        // Its ids stay when its words are gone, so an interrupted purge comes by again.
        if self.traces_of(session)?.is_empty() {
            return Ok(0);
        }
        let lock = self.snapshot_lock()?;
        let _turn = lock.wait(None)?;
        self.recover_locked(None)?;
        // Others may have come meanwhile. Who is at work is looked at, too: what dead
        // processes left there is swept away.
        self.active()?;
        let traces = self.traces_of(session)?;
        let gone = self.all_let_go()?;
        let mut ids: Vec<CheckpointId> = traces.own.iter().copied().collect();
        ids.retain(|id| !gone.contains_key(id));
        ids.sort_unstable_by_key(CheckpointId::to_string);
        self.let_go(&ids, LetGoBecause::Purge)?;
        rewrite_line(self.store(), self.files(), &traces)?;
        self.forget_cache();
        Ok(traces.own.len() as u64)
    }

    /// Returns the checkpoints of others that hold files as sessions left them.
    pub(crate) fn still_held(&self, sessions: &[SessionId]) -> Result<Vec<StillHeld>> {
        let mut own = HashSet::new();
        for session in sessions {
            own.extend(self.traces_of(session)?.own);
        }
        match own.is_empty() {
            true => Ok(Vec::new()),
            false => Introduced::by(own).held(self),
        }
    }

    /// Finds what a session left on the trail.
    fn traces_of(&self, session: &SessionId) -> Result<Traces> {
        let mut traces = Traces::new(session);
        let mut records = match self.trail().records() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(traces),
            records => records?,
        };
        while let Some(record) = records.next()? {
            traces.look(&record);
        }
        Ok(traces)
    }
}

/// What a session left on the trail of a workspace.
struct Traces {
    session: SessionId,
    /// Its checkpoints.
    own: HashSet<CheckpointId>,
    /// Steps that moved files and speak of its work.
    steps: HashSet<CheckpointId>,
    /// What its turns and commands were about, and the labels of its checkpoints.
    words: HashSet<String>,
}

/// The shortest words that are looked for within others.
const TELLING: usize = 4;

impl Traces {
    fn new(session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            own: HashSet::new(),
            steps: HashSet::new(),
            words: HashSet::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.steps.is_empty()
    }

    fn look(&mut self, record: &RecordRef<'_>) {
        match record.kind() {
            RecordKind::Checkpoint | RecordKind::Done => {
                if let Ok(stored) = Stored::read(record)
                    && self.is_own(&stored)
                {
                    self.own.insert(stored.id);
                    self.words.extend(stored.about);
                    self.words.extend(stored.label);
                }
            }
            RecordKind::Rewind => {
                if let Ok(begun) = Begun::read(record)
                    && self.is_about(&begun)
                {
                    self.steps.insert(begun.id);
                }
            }
            _ => {}
        }
    }

    fn is_own(&self, stored: &Stored) -> bool {
        let of = stored.of.is_some_and(|start| self.own.contains(&start));
        // What brings its work forward again has it.
        let again = stored.why == Why::Redo && self.steps.contains(&stored.id);
        match &stored.session {
            Some(place) => place.id == self.session,
            None => of || again,
        }
    }

    fn is_about(&self, begun: &Begun) -> bool {
        let moved = begun.chat.as_ref().map(|chat| &chat.session);
        let sessions = [begun.of_session.as_ref(), moved];
        let mut named = [begun.step, begun.to, Some(begun.from)]
            .into_iter()
            .flatten();
        sessions.contains(&Some(&self.session)) || named.any(|id| self.own.contains(&id))
    }

    /// Returns whether a text has words of the session in it.
    fn quotes(&self, text: &str) -> bool {
        let telling = |words: &&String| words.len() >= TELLING;
        let mut words = self.words.iter().filter(telling);
        words.any(|words| text.contains(words.as_str()))
    }

    /// Returns whether a checkpoint or a step is to lose its words.
    fn loses_words(&self, record: &RecordRef<'_>) -> bool {
        let about = match record.kind() {
            RecordKind::Checkpoint | RecordKind::Done => match Stored::read(record) {
                Ok(stored) if self.own.contains(&stored.id) => return true,
                Ok(stored) if self.steps.contains(&stored.id) => return true,
                Ok(stored) => stored.about,
                // Whoever cannot tell what it says cannot leave it.
                Err(_) => return true,
            },
            RecordKind::Rewind => match Begun::read(record) {
                Ok(begun) if self.steps.contains(&begun.id) => return true,
                Ok(begun) => begun.about,
                Err(_) => return true,
            },
            _ => None,
        };
        about.is_some_and(|about| self.quotes(&about))
    }
}

impl Editor for Traces {
    fn edit(&self, record: &RecordRef<'_>) -> Result<Rewritten> {
        if !self.loses_words(record) {
            return Ok(Rewritten::AsItIs);
        }
        let Ok(fields) = fields_of(record) else {
            return Ok(Rewritten::AsItIs);
        };
        let own = matches!(Stored::read(record), Ok(stored) if self.own.contains(&stored.id));
        Ok(Rewritten::Fields(without_words(&fields, own)?))
    }

    fn may_stay(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        !text.contains(self.session.as_str()) && !self.quotes(&text)
    }
}

/// Returns the fields of a record without the words in it.
fn without_words(fields: &Fields, own: bool) -> Result<Fields> {
    let mut rest = Fields::default();
    for (name, value) in fields.iter() {
        match name {
            "about" => {}
            "label" if own => {}
            "not_captured" if own => {
                let count = value
                    .parse::<super::NotCaptured>()
                    .map_or(0, |all| all.count);
                rest.push(
                    name,
                    Json::from_value(&json!({"count": count, "first": []}))?,
                );
            }
            _ => rest.push(name, value.clone()),
        }
    }
    Ok(rest)
}

/// A checkpoint of somebody else that has files as a session left them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StillHeld {
    /// The workspace's directory.
    pub root: PathBuf,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// When it was made.
    pub at: Timestamp,
    /// The session that it belongs to; the person's belong to none.
    pub session: Option<SessionId>,
    /// How many files it has so.
    pub count: u64,
    /// The first few of them.
    pub paths: Vec<PathBuf>,
}

/// How many paths are named.
const NAMED: usize = 3;

/// What sessions brought into the files, followed along a trail.
struct Introduced {
    /// Their checkpoints.
    own: HashSet<CheckpointId>,
    /// Contents that were there before, or came from others.
    known: HashSet<ObjectId>,
    /// Contents that came from the sessions.
    theirs: HashSet<ObjectId>,
    /// Where those lie now.
    lies: HashMap<PathBuf, ObjectId>,
}

impl Introduced {
    fn by(own: HashSet<CheckpointId>) -> Self {
        Self {
            own,
            known: HashSet::new(),
            theirs: HashSet::new(),
            lies: HashMap::new(),
        }
    }

    /// Returns the checkpoints of others that hold files as the sessions left them.
    fn held(mut self, workspace: &Workspace) -> Result<Vec<StillHeld>> {
        let mut held = Vec::new();
        let mut before: Option<Checkpoint> = None;
        let gone = workspace.all_let_go()?;
        for checkpoint in workspace.checkpoints()? {
            let checkpoint = checkpoint?;
            // What cannot be read any more holds nothing that could be named.
            if gone.contains_key(&checkpoint.id()) || checkpoint.snapshot().is_err() {
                continue;
            }
            self.step(before.as_ref(), &checkpoint)?;
            if !self.is_theirs(&checkpoint) && !self.lies.is_empty() {
                held.push(self.holding(workspace, &checkpoint));
            }
            before = Some(checkpoint);
        }
        Ok(held)
    }

    fn is_theirs(&self, checkpoint: &Checkpoint) -> bool {
        self.own.contains(&checkpoint.id())
    }

    fn step(&mut self, before: Option<&Checkpoint>, checkpoint: &Checkpoint) -> Result<()> {
        // What was there when one of their turns began is not theirs.
        let theirs = self.is_theirs(checkpoint) && !checkpoint.why().begins();
        let after = checkpoint.snapshot()?;
        let Some(before) = before else {
            for entry in after.entries() {
                let (path, state) = entry?;
                self.came(path, state.content, theirs);
            }
            return Ok(());
        };
        for change in before.snapshot()?.diff(&after)?.changes() {
            self.lies.remove(&change.path);
            if let Some(from) = &change.from {
                self.lies.remove(from);
            }
            let content = change.after.as_ref().and_then(|state| state.content);
            self.came(change.path.clone(), content, theirs);
        }
        Ok(())
    }

    fn came(&mut self, path: PathBuf, content: Option<ObjectId>, theirs: bool) {
        let Some(content) = content else {
            return;
        };
        if !self.known.contains(&content) && (theirs || self.theirs.contains(&content)) {
            self.theirs.insert(content);
            self.lies.insert(path, content);
        } else {
            self.known.insert(content);
        }
    }

    fn holding(&self, workspace: &Workspace, checkpoint: &Checkpoint) -> StillHeld {
        let mut paths: Vec<PathBuf> = self.lies.keys().cloned().collect();
        paths.sort_unstable();
        paths.truncate(NAMED);
        StillHeld {
            root: workspace.root().to_owned(),
            checkpoint: checkpoint.id(),
            at: checkpoint.at(),
            session: checkpoint.session().map(|place| place.id.clone()),
            count: self.lies.len() as u64,
            paths,
        }
    }
}

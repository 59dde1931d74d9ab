//! A session that is purged, as far as a workspace knows of it.
//!
//! Its file states are let go of, and its words leave the trail: what its turns and
//! commands were about, the labels of its checkpoints, and what rewinds say of them.
//! Which checkpoints there were stays, by their ids and times.

use std::collections::HashSet;

use serde_json::json;

use super::Workspace;
use super::checkpoint::Why;
use super::journal::Begun;
use super::let_go::LetGoBecause;
use super::stored::Stored;
use crate::error::{ErrorKind, Reason, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::json::{Fields, Json};
use crate::log::{Editor, Rewritten, fields_of, rewrite_line};
use crate::trail::{Damage, RecordKind, RecordRef};

impl Workspace {
    /// Removes a session's words and lets go of its file states. Done twice, the second
    /// time changes nothing.
    pub(crate) fn purge_session(&self, session: &SessionId) -> Result<PurgedHere> {
        // Its ids stay when its words are gone, so an interrupted purge comes by again.
        if self.traces_of(session)?.is_empty() {
            return Ok(PurgedHere::default());
        }
        let lock = self.snapshot_lock()?;
        let _turn = lock.wait(None)?;
        self.recover_locked(None)?;
        self.must_be_whole()?;
        // Others may have come meanwhile. Who is at work is looked at, too: what dead
        // processes left there is swept away.
        self.active()?;
        let traces = self.traces_of(session)?;
        let quoted = self.quoting(&traces)?;
        let gone = self.all_let_go()?;
        let mut ids: Vec<CheckpointId> = traces.own.iter().copied().collect();
        ids.retain(|id| !gone.contains_key(id));
        ids.sort_unstable_by_key(CheckpointId::to_string);
        self.let_go(&ids, LetGoBecause::Purge)?;
        rewrite_line(self.store(), self.files(), &traces)?;
        self.forget_cache();
        Ok(PurgedHere {
            checkpoints: traces.own.len() as u64,
            quoted,
        })
    }

    /// Refuses a trail with damage on it: written anew it would look whole, and nobody
    /// would know what is missing.
    fn must_be_whole(&self) -> Result<()> {
        let mut records = self.trail().records()?;
        while records.next()?.is_some() {}
        let head = self.files().head()?;
        let len = self.files().open_read(head)?.len();
        let len = len.map_err(|error| self.failed("cannot read the trail", error))?;
        let path = self.files().trail_path(head);
        // What a power cut left of the last record nobody was told of.
        let is_last = |damage: &Damage| {
            let end = damage.byte + damage.bytes;
            damage.reason == Reason::Unfinished || damage.file == path && end + 1 >= len
        };
        let mut damage = records.damage().first().iter();
        match damage.find(|damage| !is_last(damage)) {
            Some(damage) => Err(damage.clone().into()),
            None => Ok(()),
        }
    }

    /// Returns the checkpoints of others whose words have those of the session in them.
    /// They stay: whoever made them said so himself.
    fn quoting(&self, traces: &Traces) -> Result<Vec<CheckpointId>> {
        let mut quoting = Vec::new();
        for checkpoint in self.checkpoints()? {
            let checkpoint = checkpoint?;
            let about = checkpoint.about().unwrap_or_default();
            if !traces.is_to_lose(checkpoint.id()) && traces.quotes(about, UNMISTAKABLE) {
                quoting.push(checkpoint.id());
            }
        }
        Ok(quoting)
    }

    /// Finds what a session left on the trail.
    pub(super) fn traces_of(&self, session: &SessionId) -> Result<Traces> {
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
pub(super) struct Traces {
    session: SessionId,
    /// Its checkpoints.
    pub(super) own: HashSet<CheckpointId>,
    /// Steps that moved files and speak of its work.
    steps: HashSet<CheckpointId>,
    /// Steps that take such steps back, or bring them forward, and quote them.
    quoting: HashSet<CheckpointId>,
    /// What its turns and commands were about, and the labels of its checkpoints.
    words: HashSet<String>,
}

/// The shortest words that are looked for within what is no record any more.
const TELLING: usize = 4;
/// The shortest words that nobody else says by chance.
const UNMISTAKABLE: usize = 12;

/// What a purge did to a workspace's trail.
#[derive(Debug, Default)]
pub(crate) struct PurgedHere {
    /// How many checkpoints the session had.
    pub(crate) checkpoints: u64,
    /// The checkpoints of others whose words have those of the session in them.
    pub(crate) quoted: Vec<CheckpointId>,
}

impl Traces {
    fn new(session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            own: HashSet::new(),
            steps: HashSet::new(),
            quoting: HashSet::new(),
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
                if let Ok(begun) = Begun::read(record) {
                    if self.is_about(&begun) {
                        self.steps.insert(begun.id);
                    } else if begun.step.is_some_and(|step| self.is_to_lose(step)) {
                        self.quoting.insert(begun.id);
                    }
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

    /// Returns whether a text has words of the session in it, of that length or longer.
    fn quotes(&self, text: &str, len: usize) -> bool {
        let mut words = self.words.iter().filter(|words| words.len() >= len);
        words.any(|words| text.contains(words.as_str()))
    }

    /// Returns whether a checkpoint or a step is to lose its words.
    fn is_to_lose(&self, id: CheckpointId) -> bool {
        let all = [&self.own, &self.steps, &self.quoting];
        all.iter().any(|ids| ids.contains(&id))
    }

    fn loses_words(&self, record: &RecordRef<'_>) -> bool {
        let id = match record.kind() {
            RecordKind::Checkpoint | RecordKind::Done => Stored::read(record).map(|it| it.id),
            RecordKind::Rewind => Begun::read(record).map(|it| it.id),
            _ => return false,
        };
        // Whoever cannot tell what it says cannot leave it.
        id.map_or(true, |id| self.is_to_lose(id))
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
        !text.contains(self.session.as_str()) && !self.quotes(&text, TELLING)
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

//! Purges a session from a workspace.
//!
//! The files of its checkpoints are dropped, and its text is removed from the trail:
//! commands, labels, the names of files that only its checkpoints skipped, and prompts that
//! earlier versions copied. The checkpoints themselves stay. If none of that text is on the
//! trail, the trail is not rewritten.

use std::collections::HashSet;
use std::path::PathBuf;

use super::Workspace;
use super::agent_place::AgentPlace;
use super::bindings::Bindings;
use super::checkpoint::{CheckpointReason, SkippedFiles};
use super::checkpoint_record::CheckpointRecord;
use super::dropped::DropReason;
use super::left_running::{LeftProcess, without_name};
use super::step_record::StepRecord;
use super::unprotected::UnprotectedChanges;
use crate::error::{Reason, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::json::{Fields, Json};
use crate::log::{Editor, Rewritten, rewrite_line};
use crate::trail::{Damage, RecordKind, RecordRef};

impl Workspace {
    /// Removes a session's text and drops the files of its checkpoints. A second call
    /// changes nothing.
    pub(crate) fn purge_session(&self, session: &SessionId) -> Result<PurgedHere> {
        // The ids stay when the text is gone, so an interrupted purge can be finished.
        if self.traces_of(session)?.is_empty() {
            return Ok(PurgedHere::default());
        }
        let _guard = self.hold_recovered()?;
        self.must_be_whole()?;
        // The files of dead processes name commands.
        for dead in self.dead()? {
            self.forget_dead(&dead);
        }
        let traces = self.traces_of(session)?;
        let quoted = self.quoting(&traces)?;
        let gone = self.all_dropped()?;
        let mut ids: Vec<CheckpointId> = traces.own.iter().copied().collect();
        ids.retain(|id| !gone.contains_key(id));
        ids.sort_unstable_by_key(CheckpointId::to_string);
        self.drop_files(&ids, DropReason::Purge)?;
        rewrite_line(self.store(), self.files(), &traces)?;
        self.forget_cache();
        Ok(PurgedHere {
            checkpoints: traces.own.len() as u64,
            quoted,
        })
    }

    /// Refuses a damaged trail: a rewritten one would look intact and hide the damage.
    fn must_be_whole(&self) -> Result<()> {
        let mut records = self.trail().records()?;
        while records.next()?.is_some() {}
        let head = self.files().head()?;
        let len = self.files().open_read(head)?.len();
        let len = len.map_err(|error| self.failed("cannot read the trail", error))?;
        let path = self.files().trail_path(head);
        // A torn last record left by a power cut was never acknowledged.
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

    /// Returns the checkpoints of other sessions whose text quotes this one. They stay.
    fn quoting(&self, traces: &Traces) -> Result<Vec<CheckpointId>> {
        let mut quoting = Vec::new();
        for checkpoint in self.checkpoints()? {
            let checkpoint = checkpoint?;
            let text = checkpoint.record.about.as_deref().unwrap_or_default();
            if !traces.loses_text(checkpoint.id()) && traces.quotes(text, UNMISTAKABLE) {
                quoting.push(checkpoint.id());
            }
        }
        Ok(quoting)
    }

    /// Finds the traces of a session on the trail.
    pub(super) fn traces_of(&self, session: &SessionId) -> Result<Traces> {
        let mut traces = Traces::new(session, self.bindings()?);
        let Some(mut records) = self.records()? else {
            return Ok(traces);
        };
        while let Some(record) = records.next()? {
            traces.add(&record);
        }
        Ok(traces)
    }
}

/// The traces of a session on the trail of a workspace.
pub(super) struct Traces {
    session: SessionId,
    /// The places that checkpoints got later.
    bindings: Bindings,
    /// Its checkpoints.
    pub(super) own: HashSet<CheckpointId>,
    /// Steps that changed files and describe its work.
    steps: HashSet<CheckpointId>,
    /// Steps that undo or redo such steps, and quote them.
    quoting: HashSet<CheckpointId>,
    /// Its commands, labels and copied prompts.
    texts: HashSet<String>,
    /// The skipped files that checkpoints of other sessions name.
    known_files: HashSet<PathBuf>,
}

/// The shortest text that is searched for in damaged bytes.
const SEARCHED: usize = 4;
/// The shortest text that other sessions do not write by chance.
const UNMISTAKABLE: usize = 12;

/// The outcome of a purge for a workspace.
#[derive(Debug, Default)]
pub(crate) struct PurgedHere {
    /// How many checkpoints the session had.
    pub(crate) checkpoints: u64,
    /// The checkpoints of other sessions that quote this one.
    pub(crate) quoted: Vec<CheckpointId>,
}

impl Traces {
    fn new(session: &SessionId, bindings: Bindings) -> Self {
        Self {
            session: session.clone(),
            bindings,
            own: HashSet::new(),
            steps: HashSet::new(),
            quoting: HashSet::new(),
            texts: HashSet::new(),
            known_files: HashSet::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.steps.is_empty()
    }

    fn add(&mut self, record: &RecordRef<'_>) {
        match record.kind() {
            RecordKind::Checkpoint | RecordKind::Done => {
                if let Ok(mut stored) = record.parse::<CheckpointRecord>() {
                    stored.bind(&self.bindings);
                    self.add_checkpoint(stored);
                }
            }
            RecordKind::Rewind => {
                if let Ok(begun) = record.parse::<StepRecord>() {
                    if self.is_about(&begun) {
                        self.steps.insert(begun.id);
                    } else if begun.step.is_some_and(|step| self.loses_text(step)) {
                        self.quoting.insert(begun.id);
                    }
                }
            }
            _ => {}
        }
    }

    fn add_checkpoint(&mut self, stored: CheckpointRecord) {
        if self.is_own(&stored) {
            self.own.insert(stored.id);
            self.texts.extend(stored.about);
            self.texts.extend(stored.label);
            self.texts
                .extend(stored.left.into_iter().filter_map(|it| it.name));
        } else {
            let skipped = stored.skipped.first.into_iter();
            self.known_files.extend(skipped.map(|entry| entry.path));
        }
    }

    fn is_own(&self, stored: &CheckpointRecord) -> bool {
        let of = stored.of.is_some_and(|start| self.own.contains(&start));
        // A redo of its work quotes it.
        let again = stored.reason == CheckpointReason::Redo && self.steps.contains(&stored.id);
        match &stored.session {
            Some(place) => place.id == self.session,
            None => of || again,
        }
    }

    fn is_about(&self, begun: &StepRecord) -> bool {
        let moved = begun.chat.as_ref().map(|chat| &chat.session);
        let sessions = [begun.of_session.as_ref(), moved];
        let mut named = [begun.step, begun.to, Some(begun.from)]
            .into_iter()
            .flatten();
        sessions.contains(&Some(&self.session)) || named.any(|id| self.own.contains(&id))
    }

    /// Returns whether a text contains one of the session's texts that has `len` or more bytes.
    fn quotes(&self, text: &str, len: usize) -> bool {
        let mut texts = self.texts.iter().filter(|own| own.len() >= len);
        texts.any(|own| text.contains(own.as_str()))
    }

    /// Returns whether the text of a checkpoint or a step is removed.
    fn loses_text(&self, id: CheckpointId) -> bool {
        let all = [&self.own, &self.steps, &self.quoting];
        all.iter().any(|ids| ids.contains(&id))
    }

    /// Returns the fields of a record without the text; `None` if it has none.
    fn without_text(&self, fields: &Fields, is_own: bool) -> Result<Option<Fields>> {
        let mut rest = Fields::default();
        let mut is_changed = false;
        for (name, value) in fields.iter() {
            match name {
                // With a prompt, the text is only the part before it.
                "about" if fields.get("prompt").is_none() => is_changed = true,
                "label" if is_own => is_changed = true,
                "left" if is_own => {
                    let left: Vec<LeftProcess> = value.parse().unwrap_or_default();
                    is_changed |= left.iter().any(|it| it.name.is_some());
                    let bare: Vec<LeftProcess> = left.iter().map(without_name).collect();
                    rest.push(name, Json::from_value(&bare)?);
                }
                "agent" if is_own => {
                    let place: Option<AgentPlace> = value.parse().ok();
                    let bare = place.as_ref().map(AgentPlace::without_text);
                    is_changed |= bare != place;
                    if let Some(bare) = bare {
                        rest.push(name, Json::from_value(&bare)?);
                    }
                }
                "unprotected" if is_own => {
                    let mut changes: UnprotectedChanges = value.parse().unwrap_or_default();
                    let count = changes.lost.len() + changes.changed.len();
                    let is_known = |path: &PathBuf| self.known_files.contains(path);
                    changes.lost.retain(|it| is_known(&it.path));
                    changes.changed.retain(|it| is_known(&it.path));
                    is_changed |= changes.lost.len() + changes.changed.len() < count;
                    rest.push(name, Json::from_value(&changes)?);
                }
                "not_captured" if is_own => {
                    let mut skipped: SkippedFiles = value.parse().unwrap_or_default();
                    let count = skipped.first.len();
                    skipped
                        .first
                        .retain(|it| self.known_files.contains(&it.path));
                    is_changed |= skipped.first.len() < count;
                    rest.push(name, Json::from_value(&skipped)?);
                }
                _ => rest.push(name, value.clone()),
            }
        }
        Ok(is_changed.then_some(rest))
    }
}

impl Editor for Traces {
    fn edit(&self, record: &RecordRef<'_>) -> Result<Rewritten> {
        let id = match record.kind() {
            RecordKind::Checkpoint | RecordKind::Done => {
                record.parse::<CheckpointRecord>().map(|it| it.id)
            }
            RecordKind::Rewind => record.parse::<StepRecord>().map(|it| it.id),
            _ => return Ok(Rewritten::AsItIs),
        };
        // An unreadable record may contain anything.
        if id.as_ref().is_ok_and(|id| !self.loses_text(*id)) {
            return Ok(Rewritten::AsItIs);
        }
        let Ok(fields) = record.parse::<Fields>() else {
            return Ok(Rewritten::AsItIs);
        };
        let is_own = id.is_ok_and(|id| self.own.contains(&id));
        Ok(match self.without_text(&fields, is_own)? {
            Some(fields) => Rewritten::Fields(fields),
            None => Rewritten::AsItIs,
        })
    }

    fn may_stay(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        !text.contains(self.session.as_str()) && !self.quotes(&text, SEARCHED)
    }
}

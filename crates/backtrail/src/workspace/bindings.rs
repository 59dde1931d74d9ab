//! Gives checkpoints their places in a session once the session is here.
//!
//! A checkpoint for another program is made before that program's record is imported. A `bound`
//! record names the place later, and the checkpoint reads as if it had been written with it. The
//! newest binding of a checkpoint counts.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::agent_place::AgentPlace;
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace};
use super::checkpoint_record::CheckpointRecord;
use crate::error::{Reason, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::session::SessionReader;
use crate::time::Timestamp;
use crate::trail::{RecordKind, RecordRef};

/// The type of the record.
const BOUND: &str = "bound";
/// The limit of checkpoints in one record.
const IN_ONE: usize = 1000;
/// How many of the last records count as recent: more than a turn has.
const RECENT: usize = 500;

/// How much earlier than its session a checkpoint may be: it is made before the agent writes.
const PATIENCE_MS: i64 = 60_000;

/// The place of a checkpoint in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Binding {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The session's last record when it was made.
    pub session: SessionPlace,
    /// The message that its turn began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<SessionPlace>,
    /// Whether the files may have changed between that record and the checkpoint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Prompts with tool calls between the turn before and this one, of which there is no
    /// checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<SessionPlace>,
}

impl Binding {
    /// Returns the binding of a checkpoint to a place.
    pub fn new(checkpoint: CheckpointId, session: SessionPlace) -> Self {
        Self {
            checkpoint,
            session,
            prompt: None,
            late: false,
            missed: Vec::new(),
        }
    }

    /// Sets the message that its turn began with.
    #[must_use]
    pub fn prompt(mut self, place: SessionPlace) -> Self {
        self.prompt = Some(place);
        self
    }

    /// Marks it as late.
    #[must_use]
    pub fn late(mut self) -> Self {
        self.late = true;
        self
    }
}

/// The bindings of a workspace, by checkpoint.
pub(crate) type Bindings = HashMap<CheckpointId, Binding>;

#[derive(Debug, Serialize, Deserialize)]
struct BoundRecord {
    at: Timestamp,
    checkpoints: Vec<Binding>,
}

/// Parses the record.
pub(crate) fn read(record: &RecordRef<'_>) -> Result<Vec<Binding>, Reason> {
    record.parse::<BoundRecord>().map(|it| it.checkpoints)
}

/// Adds what a record says, which is older than what is known.
pub(super) fn add_older(known: &mut Bindings, record: &RecordRef<'_>) {
    // `verify` reports an unreadable record, and `gc` stops at it.
    for binding in read(record).unwrap_or_default() {
        known.entry(binding.checkpoint).or_insert(binding);
    }
}

/// Adds what a record says, which is newer than what is known.
pub(crate) fn add_newer(known: &mut Bindings, record: &RecordRef<'_>) {
    let bindings = read(record).unwrap_or_default().into_iter();
    known.extend(bindings.map(|it| (it.checkpoint, it)));
}

impl CheckpointRecord {
    /// Gives the checkpoint the place that it was bound to.
    pub(crate) fn bind(&mut self, known: &Bindings) {
        if let Some(binding) = known.get(&self.id) {
            self.session = Some(binding.session.clone());
            self.prompt = binding.prompt.clone().or(self.prompt.take());
            self.late |= binding.late;
            self.missed.clone_from(&binding.missed);
        }
    }
}

impl Workspace {
    /// Gives checkpoints their places in sessions. It is durable when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub fn bind(&self, bindings: &[Binding]) -> Result<()> {
        for bindings in bindings.chunks(IN_ONE) {
            let bound = BoundRecord {
                at: self.store().now(),
                checkpoints: bindings.to_vec(),
            };
            self.append(BOUND, &bound)?;
        }
        Ok(())
    }

    /// Gives checkpoints the present place in a session. It is durable when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read or the store cannot be written.
    pub fn bind_here(&self, checkpoints: &[CheckpointId], session: &SessionId) -> Result<()> {
        let place = self.store().session_place(session)?;
        let bindings = checkpoints
            .iter()
            .map(|id| Binding::new(*id, place.clone()));
        self.bind(&bindings.collect::<Vec<_>>())
    }

    /// Returns all bindings.
    pub(super) fn bindings(&self) -> Result<Bindings> {
        let mut known = Bindings::new();
        let Some(mut records) = self.records()? else {
            return Ok(known);
        };
        while let Some(record) = records.next()? {
            if record.kind() == RecordKind::Bound {
                add_newer(&mut known, &record);
            }
        }
        Ok(known)
    }

    /// Returns the checkpoints for other programs that have no place in a session here, oldest
    /// first.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn unbound(&self) -> Result<Vec<Checkpoint>> {
        let is_unbound = |it: &Checkpoint| it.agent().is_some() && it.session().is_none();
        let all = self.checkpoints()?;
        all.filter(|it| it.as_ref().map_or(true, is_unbound))
            .collect()
    }

    /// Returns the checkpoints for other programs that have no place in a session here and may
    /// get one: those since the last turn of their session that has a place, oldest first. Looks
    /// only at the last records, since most commands ask: [`unbound`](Self::unbound) finds all.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn recently_unbound(&self) -> Result<Vec<Checkpoint>> {
        let mut unbound = Vec::new();
        let Some(mut records) = self.records_back()? else {
            return Ok(unbound);
        };
        // A binding is written some time after the session was read. Turns may have begun in
        // between, so it says nothing about the checkpoints before it that it does not name.
        let mut known = Bindings::new();
        let mut settled: Vec<AgentPlace> = Vec::new();
        for _ in 0..RECENT {
            let Some(record) = records.next()? else {
                break;
            };
            if record.kind() == RecordKind::Bound {
                add_older(&mut known, &record);
            }
            let Some((stored, agent)) = of_agent(&record, &known) else {
                continue;
            };
            let is_start = stored.reason == CheckpointReason::TurnStart;
            match &stored.session {
                _ if settled.iter().any(|it| it.is_in_session_of(&agent)) => {}
                None => unbound.push(stored.at(self, record.seq())),
                Some(_) if is_start => settled.push(agent),
                Some(_) => {}
            }
        }
        unbound.reverse();
        Ok(unbound)
    }

    /// Returns whether a turn of an agent's session is known to have begun with a prompt, by the
    /// record of that in the session here.
    ///
    /// # Errors
    ///
    /// Fails if the session or the workspace's trail cannot be read.
    pub fn has_turn(&self, agent: &AgentPlace, session: &SessionId, prompt: u64) -> Result<bool> {
        let reader = self.store().read_session(session)?;
        let line = reader.log.line()?;
        for checkpoint in self.checkpoints_in(agent, began(&reader)?)? {
            let checkpoint = checkpoint?;
            let known = checkpoint.record.prompt.as_ref();
            // The agent may have gone back since, and the same number is another prompt's now.
            let known = known.filter(|it| line.holds(&it.id, it.trail, it.seq));
            match known.map(|place| place.seq.cmp(&prompt)) {
                Some(Ordering::Equal) => return Ok(true),
                // Prompts come in order.
                Some(Ordering::Less) => return Ok(false),
                Some(Ordering::Greater) | None => {}
            }
        }
        Ok(false)
    }

    /// Returns whether checkpoints of an agent's session have no place yet. Looks at the newest of
    /// them only.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn has_unbound(&self, session: &AgentPlace) -> Result<bool> {
        for checkpoint in self.checkpoints_in(session, None)? {
            let checkpoint = checkpoint?;
            let is_start = *checkpoint.reason() == CheckpointReason::TurnStart;
            match checkpoint.session() {
                None => return Ok(true),
                Some(_) if is_start => break,
                Some(_) => {}
            }
        }
        Ok(false)
    }

    /// Returns the checkpoints of one agent's session that have no place yet and can get one,
    /// oldest first, and the start of its newest turn that has one: what is missing before that
    /// never came. Reads no further back than the session began.
    pub(super) fn unbound_in(
        &self,
        agent: &AgentPlace,
        began: Option<Timestamp>,
    ) -> Result<(Vec<Checkpoint>, Option<Checkpoint>)> {
        let mut unbound = Vec::new();
        let mut since = None;
        for checkpoint in self.checkpoints_in(agent, began)? {
            let checkpoint = checkpoint?;
            match checkpoint.session() {
                None => unbound.push(checkpoint),
                Some(_) if *checkpoint.reason() == CheckpointReason::TurnStart => {
                    since = Some(checkpoint);
                    break;
                }
                Some(_) => {}
            }
        }
        unbound.reverse();
        Ok((unbound, since))
    }

    /// Returns the checkpoints of an agent's session, newest first, since it began.
    fn checkpoints_in(
        &self,
        agent: &AgentPlace,
        began: Option<Timestamp>,
    ) -> Result<impl Iterator<Item = Result<Checkpoint>>> {
        let is_since = move |it: &Result<Checkpoint>| {
            let at = it.as_ref().map(|it| it.at().as_millis());
            let began = began.map(|it| it.as_millis() - PATIENCE_MS);
            at.map_or(true, |at| began.is_none_or(|began| at >= began))
        };
        let is_own = move |it: &Result<Checkpoint>| match it {
            Ok(it) => it.agent().is_some_and(|it| it.is_in_session_of(agent)),
            Err(_) => true,
        };
        Ok(self.checkpoints_back()?.take_while(is_since).filter(is_own))
    }
}

/// Returns the checkpoint that a record is, with its place as far as that is known, if it is one
/// for another program.
fn of_agent(record: &RecordRef<'_>, known: &Bindings) -> Option<(CheckpointRecord, AgentPlace)> {
    if record.kind() != RecordKind::Checkpoint {
        return None;
    }
    let mut stored: CheckpointRecord = record.parse().ok()?;
    stored.bind(known);
    let agent = stored.agent.clone()?;
    Some((stored, agent))
}

/// Returns when an imported session began, if that is known.
pub(super) fn began(reader: &SessionReader) -> Result<Option<Timestamp>> {
    let info = reader.info()?;
    // The time of its file may be any later one.
    Ok(info.created_at.filter(|_| !info.times_from_file))
}

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
use crate::time::Timestamp;
use crate::trail::{RecordKind, RecordRef};

/// The type of the record.
const BOUND: &str = "bound";
/// The limit of checkpoints in one record.
const IN_ONE: usize = 1000;
/// How many of the last records count as recent: more than a turn has.
const RECENT: usize = 500;

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
}

impl Binding {
    /// Returns the binding of a checkpoint to a place.
    pub fn new(checkpoint: CheckpointId, session: SessionPlace) -> Self {
        Self {
            checkpoint,
            session,
            prompt: None,
            late: false,
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

    /// Returns the checkpoints for other programs since the last binding that have no place in a
    /// session here, oldest first. Looks only at the last records, since most commands ask:
    /// [`unbound`](Self::unbound) finds all.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn recently_unbound(&self) -> Result<Vec<Checkpoint>> {
        let mut unbound = Vec::new();
        let Some(mut records) = self.records_back()? else {
            return Ok(unbound);
        };
        for _ in 0..RECENT {
            let Some(record) = records.next()? else {
                break;
            };
            match record.kind() {
                RecordKind::Bound => break,
                RecordKind::Checkpoint => {}
                _ => continue,
            }
            if let Ok(stored) = record.parse::<CheckpointRecord>()
                && stored.agent.is_some()
                && stored.session.is_none()
            {
                unbound.push(stored.at(self, record.seq()));
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
    /// Fails if the workspace's trail cannot be read.
    pub fn has_turn(&self, agent: &AgentPlace, session: &SessionId, prompt: u64) -> Result<bool> {
        for checkpoint in self.checkpoints_back()? {
            let checkpoint = checkpoint?;
            let is_own = checkpoint
                .agent()
                .is_some_and(|it| it.is_in_session_of(agent));
            let known = checkpoint.record.prompt.as_ref();
            let known = known.filter(|place| is_own && place.id == *session);
            match known.map(|place| place.seq.cmp(&prompt)) {
                Some(Ordering::Equal) => return Ok(true),
                // Prompts come in order.
                Some(Ordering::Less) => return Ok(false),
                Some(Ordering::Greater) | None => {}
            }
        }
        Ok(false)
    }

    /// Returns whether checkpoints of an agent's session have no place yet.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn has_unbound(&self, session: &AgentPlace) -> Result<bool> {
        Ok(!self.unbound_in(session)?.0.is_empty())
    }

    /// Returns the checkpoints of one agent's session that have no place yet and can get one,
    /// oldest first, and the start of its newest turn that has one: what is missing before that
    /// never came.
    pub(super) fn unbound_in(
        &self,
        session: &AgentPlace,
    ) -> Result<(Vec<Checkpoint>, Option<Checkpoint>)> {
        let mut unbound = Vec::new();
        let mut since = None;
        for checkpoint in self.checkpoints_back()? {
            let checkpoint = checkpoint?;
            let agent = checkpoint.agent();
            if !agent.is_some_and(|it| it.is_in_session_of(session)) {
                continue;
            }
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
}

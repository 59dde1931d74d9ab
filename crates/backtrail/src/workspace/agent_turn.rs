//! A turn of a session that another program keeps.
//!
//! Each of its moments may be reported by another short-lived process, so the turn is found by
//! the agent's id of the session. It is running until its end is reported, its agent's process is
//! gone, or the next turn of the same session begins.

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::active::AgentActivity;
use super::agent_place::AgentPlace;
use super::checkpoint::{Checkpoint, CheckpointReason};
use super::new_checkpoint::CheckpointOptions;
use super::process::Process;
use crate::error::Result;
use crate::ids::CheckpointId;
use crate::time::Timestamp;

/// The type of the record of a missing snapshot.
const MISSED: &str = "missed";

/// A running turn of a session that another program keeps.
#[derive(Debug, Clone)]
pub struct AgentTurn {
    workspace: Workspace,
    activity: AgentActivity,
}

/// A snapshot that was to be taken in a turn of another program, and is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MissedRecord {
    pub(crate) at: Timestamp,
    /// The checkpoint that the turn began with.
    pub(crate) of: Option<CheckpointId>,
    pub(crate) agent: AgentPlace,
    pub(crate) reason: String,
}

impl Workspace {
    /// Begins a turn of a session that another program keeps: saves the state of the files
    /// before it. `process` is that program's. A turn of the same session that has no end yet
    /// was interrupted.
    ///
    /// # Errors
    ///
    /// Fails as [`checkpoint`](Self::checkpoint) does.
    pub fn begin_agent_turn(
        &self,
        place: &AgentPlace,
        options: CheckpointOptions,
        process: Option<Process>,
    ) -> Result<AgentTurn> {
        for open in self.agent_activities()? {
            if open.agent.is_in_session_of(place) {
                self.interrupt_agent_activity(&open)?;
            }
        }
        let options = options.reason(CheckpointReason::TurnStart);
        let start = self.checkpoint(options.agent(place.clone()))?;
        self.activate_agent(&start, process)?;
        let activity = AgentActivity::new(self, &start, place.clone());
        Ok(AgentTurn {
            workspace: self.clone(),
            activity,
        })
    }

    /// Returns the running turn of a session that another program keeps.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's directory in the store cannot be read.
    pub fn agent_turn(&self, session: &AgentPlace) -> Result<Option<AgentTurn>> {
        let mut open = self.agent_activities()?.into_iter();
        let found = open.find(|open| open.agent.is_in_session_of(session));
        Ok(found.map(|activity| AgentTurn {
            workspace: self.clone(),
            activity,
        }))
    }

    /// Records that a snapshot for another program is missing, so that what it did next is not
    /// protected.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub fn record_missed(&self, agent: &AgentPlace, reason: &str) -> Result<()> {
        let turn = self.agent_turn(agent)?;
        let missed = MissedRecord {
            at: self.store().now(),
            of: turn.map(|turn| turn.start()),
            agent: agent.clone(),
            reason: reason.to_owned(),
        };
        self.append(MISSED, &missed).map(drop)
    }
}

impl AgentTurn {
    /// Returns the checkpoint that it began with.
    pub fn start(&self) -> CheckpointId {
        self.activity.start
    }

    /// Notes that the agent is at work: what changed until now is its.
    pub fn sign(&self) {
        self.workspace.sign_agent_activity(&self.activity);
    }

    /// Saves the state of the files before a tool call.
    ///
    /// # Errors
    ///
    /// Fails as [`Workspace::checkpoint`] does.
    pub fn begin_tool(&self, place: &AgentPlace, options: CheckpointOptions) -> Result<Checkpoint> {
        self.checkpoint(CheckpointReason::ToolStart, place, options)
    }

    /// Saves the state of the files after a tool call.
    ///
    /// # Errors
    ///
    /// Fails as [`Workspace::checkpoint`] does.
    pub fn end_tool(&self, place: &AgentPlace, options: CheckpointOptions) -> Result<Checkpoint> {
        self.checkpoint(CheckpointReason::ToolEnd, place, options)
    }

    /// Ends the turn: saves the state of the files after it.
    ///
    /// # Errors
    ///
    /// Fails as [`Workspace::checkpoint`] does. Then the turn goes on.
    pub fn end(self, place: &AgentPlace, options: CheckpointOptions) -> Result<Checkpoint> {
        let end = self.checkpoint(CheckpointReason::TurnEnd, place, options)?;
        self.workspace.end_agent_activity(&self.activity);
        Ok(end)
    }

    fn checkpoint(
        &self,
        reason: CheckpointReason,
        place: &AgentPlace,
        options: CheckpointOptions,
    ) -> Result<Checkpoint> {
        let options = options.reason(reason).begun_by(self.start());
        let made = self.workspace.checkpoint(options.agent(place.clone()))?;
        self.sign();
        Ok(made)
    }
}

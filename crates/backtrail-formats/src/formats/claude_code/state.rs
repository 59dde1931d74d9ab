//! The state from which reading resumes: small, however long the file.
//!
//! The field names are stored with sessions, so they do not change.

use std::collections::{HashSet, VecDeque};

use backtrail::Json;
use serde::{Deserialize, Serialize};

use super::cost::LastCost;
use super::tree::Tips;
use crate::formats::keys::{SeenIds, push_limited};

/// The version of the state.
const VERSION: u32 = 3;

/// Where reading ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ClaudeState {
    version: u32,
    /// The session, and whether the file or one of its lines names it.
    pub(super) session: String,
    pub(super) named: bool,
    /// The session that it was copied from.
    pub(super) copied: Option<String>,
    pub(super) lines: u64,
    #[serde(flatten)]
    pub(super) tips: Tips,
    /// The uuids of events, to notice repeated ones.
    pub(super) seen: SeenIds,
    pub(super) memory: Memory,
}

impl ClaudeState {
    /// Creates one; the number of lines is set at the end.
    pub(super) fn new(session: String, named: bool, copied: Option<String>) -> Self {
        Self {
            version: VERSION,
            session,
            named,
            copied,
            ..Self::default()
        }
    }

    /// Loads a state. `None` if it has another version.
    pub(super) fn from_json(json: &Json) -> Option<Self> {
        let state: Self = json.parse().ok()?;
        (state.version == VERSION).then_some(state)
    }

    /// Saves the state.
    pub(super) fn to_json(&self) -> Option<Json> {
        Json::from_value(self).ok()
    }
}

/// What later lines depend on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The rank of the title's origin: a summary, the model, the user.
    pub(super) title: u8,
    /// The last messages of other conversations whose summaries are in the file.
    #[serde(default)]
    leaves: VecDeque<u64>,
    pub(super) model: Option<String>,
    pub(super) directory: bool,
    pub(super) began: bool,
    /// Calls: the hash of the id, and the tool.
    calls: VecDeque<(u64, String)>,
    /// Calls of sub-agents: the hash of the prompt, and the call's id.
    tasks: VecDeque<(u64, String)>,
    /// The last messages.
    told: VecDeque<u64>,
    /// The agent's own cost.
    pub(super) cost: LastCost,
    /// How many messages the next summary keeps.
    pub(super) keep: u64,
    agents: VecDeque<Agent>,
    /// The last messages of sub-agents.
    nested: VecDeque<u64>,
    /// Lines of sidechains whose agent has no id, and the agent.
    sides: VecDeque<(u64, String)>,
    /// The output files that were read this time.
    #[serde(skip)]
    outputs: HashSet<String>,
}

/// A sub-agent with events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Agent {
    id: u64,
    /// Its last message.
    pub(super) last: u64,
    pub(super) model: u64,
}

/// The longest name that is kept.
const MAX_NAME: usize = 128;

impl Memory {
    /// Adds a call.
    pub(super) fn add_call(&mut self, id: u64, tool: &str) {
        if tool.len() <= MAX_NAME {
            push_limited(&mut self.calls, (id, tool.to_owned()), 48);
        }
    }

    /// Returns the tool of a call.
    pub(super) fn tool_of(&self, id: u64) -> Option<&str> {
        let call = self.calls.iter().rev().find(|call| call.0 == id)?;
        Some(&call.1)
    }

    /// Returns whether an output file is named for the first time; it is read only once.
    pub(super) fn is_new_output(&mut self, file: &str) -> bool {
        self.outputs.insert(file.to_owned())
    }

    /// Adds the prompt of a sub-agent.
    pub(super) fn add_task(&mut self, prompt: u64, id: &str) {
        if id.len() <= MAX_NAME {
            push_limited(&mut self.tasks, (prompt, id.to_owned()), 24);
        }
    }

    /// Removes and returns the call with this prompt.
    pub(super) fn take_task(&mut self, prompt: u64) -> Option<String> {
        let at = self.tasks.iter().position(|task| task.0 == prompt)?;
        Some(self.tasks.remove(at)?.1)
    }

    /// Adds the last message of another conversation.
    pub(super) fn add_leaf(&mut self, uuid: u64) {
        push_limited(&mut self.leaves, uuid, 64);
    }

    /// Returns whether a message seemed to be one of another conversation.
    pub(super) fn has_leaf(&self, uuid: u64) -> bool {
        self.leaves.contains(&uuid)
    }

    /// Adds a message.
    pub(super) fn add_message(&mut self, uuid: u64) {
        push_limited(&mut self.told, uuid, 40);
    }

    /// Returns how many messages there were since this one, itself included; 0 if it was too
    /// long ago.
    pub(super) fn messages_since(&self, uuid: u64) -> u64 {
        let newest = self.told.iter().rev().position(|message| *message == uuid);
        newest.map_or(0, |newest| newest as u64 + 1)
    }

    /// Returns a sub-agent, and adds it if it is new.
    pub(super) fn agent(&mut self, id: u64) -> &mut Agent {
        let known = self.agents.iter().position(|agent| agent.id == id);
        let at = known.unwrap_or_else(|| {
            let agent = Agent {
                id,
                ..Agent::default()
            };
            push_limited(&mut self.agents, agent, 24);
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }

    /// Returns the last message of a sub-agent. `None` if it is new.
    pub(super) fn last_of_agent(&self, id: u64) -> Option<u64> {
        let known = self.agents.iter().find(|agent| agent.id == id);
        known.map(|agent| agent.last)
    }

    /// Adds a message of a sub-agent.
    pub(super) fn add_nested(&mut self, uuid: u64) {
        push_limited(&mut self.nested, uuid, 48);
    }

    /// Returns whether a message is among the last ones of sub-agents.
    pub(super) fn is_nested(&self, uuid: u64) -> bool {
        self.nested.contains(&uuid)
    }

    /// Adds a line of a sidechain.
    pub(super) fn add_side(&mut self, uuid: u64, agent: &str) {
        push_limited(&mut self.sides, (uuid, agent.to_owned()), 32);
    }

    /// Returns the agent of a sidechain's line, or else the last agent.
    pub(super) fn agent_of_side(&self, parent: u64) -> Option<&str> {
        let parent = self.sides.iter().rev().find(|side| side.0 == parent);
        let side = parent.or(self.sides.back())?;
        Some(&side.1)
    }
}

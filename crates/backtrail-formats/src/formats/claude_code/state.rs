//! The state from which reading resumes: small, however long the file.
//!
//! The field names are stored with sessions, so they do not change.

use std::collections::{HashSet, VecDeque};

use backtrail::Json;
use serde::{Deserialize, Serialize};

use super::tree::Tips;
use crate::formats::keys::push_limited;

/// The version of the state.
const VERSION: u32 = 1;

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
    pub(super) seen: Option<SeenUuids>,
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

/// The uuids that were seen, to notice repeated ones. A Bloom filter: it may take a new uuid
/// for a repeated one, but not the other way round.
///
/// In a file with more uuids than fit, all are assumed to be unique.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenUuids {
    count: usize,
    #[serde(with = "hex")]
    bits: Vec<u8>,
}

/// The largest size, and how many bits each uuid needs and sets.
const MAX_BYTES: usize = 1024;
const BITS_EACH: usize = 12;
const SET: u32 = 5;

impl SeenUuids {
    /// Creates one with room for twice as many. `None` if there are too many.
    pub(super) fn new(uuids: &[u64]) -> Option<Self> {
        let bytes = (uuids.len() * 2 * BITS_EACH / 8)
            .next_power_of_two()
            .max(64);
        let bytes = bytes.min(MAX_BYTES);
        let mut seen = Self {
            count: 0,
            bits: vec![0; bytes],
        };
        uuids.iter().for_each(|uuid| seen.insert(*uuid));
        (!seen.is_full()).then_some(seen)
    }

    /// Returns whether no more fit.
    pub(super) fn is_full(&self) -> bool {
        self.count * BITS_EACH > self.bits.len() * 8
    }

    /// Returns whether a larger one could be made.
    pub(super) fn is_largest(&self) -> bool {
        self.bits.len() >= MAX_BYTES
    }

    /// Adds a uuid.
    pub(super) fn insert(&mut self, uuid: u64) {
        self.count += 1;
        for bit in bits_of(uuid, self.bits.len()) {
            if let Some(byte) = self.bits.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }

    /// Returns whether a uuid may have been seen.
    pub(super) fn contains(&self, uuid: u64) -> bool {
        let is_set = |bit: usize| {
            self.bits
                .get(bit / 8)
                .is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        };
        bits_of(uuid, self.bits.len()).all(is_set)
    }
}

fn bits_of(uuid: u64, bytes: usize) -> impl Iterator<Item = usize> {
    let bits = (bytes * 8).max(1) as u64;
    let (first, step) = (uuid & 0xffff_ffff, uuid >> 32 | 1);
    (0..u64::from(SET)).map(move |n| (first.wrapping_add(n.wrapping_mul(step)) % bits) as usize)
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        to.serialize_str(&digits)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(from)?;
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
        bytes.ok_or_else(|| de::Error::custom("not hexadecimal"))
    }
}

/// What later lines depend on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The rank of the title's origin: a summary, the model, the user.
    pub(super) title: u8,
    pub(super) model: Option<String>,
    pub(super) directory: bool,
    pub(super) began: bool,
    /// Calls: the hash of the id, and the tool.
    calls: VecDeque<(u64, String)>,
    /// Calls of sub-agents: the hash of the prompt, and the call's id.
    tasks: VecDeque<(u64, String)>,
    /// The last messages.
    told: VecDeque<u64>,
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
    pub(super) fn agent_of_side(&self, parent: Option<u64>) -> Option<&str> {
        let parent = parent.and_then(|uuid| self.sides.iter().rev().find(|side| side.0 == uuid));
        let side = parent.or(self.sides.back())?;
        Some(&side.1)
    }
}

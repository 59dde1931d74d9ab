//! What is kept of a reading, so that the next one goes on: small, however long the file.

use std::collections::HashSet;

use backtrail::Json;
use serde::{Deserialize, Serialize};

use super::tree::Tips;

/// How many lines are kept that the next one may hang on.
pub(super) const TIPS: usize = 48;
/// The version of the state.
const VERSION: u32 = 1;

/// Where a reading ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct State {
    version: u32,
    /// The session, and whether the file or a line of it names it.
    pub(super) session: String,
    pub(super) named: bool,
    /// The session that it was copied from.
    pub(super) copied: Option<String>,
    pub(super) lines: u64,
    tips: Vec<u64>,
    response: Option<u64>,
    any: bool,
    solid: bool,
    loose: bool,
    seen: Option<Seen>,
    pub(super) memory: Memory,
}

impl State {
    /// Makes one; the lines that were read are set at the end.
    pub(super) fn new(session: String, named: bool, copied: Option<String>) -> Self {
        Self {
            version: VERSION,
            session,
            named,
            copied,
            ..Self::default()
        }
    }

    /// Reads one. `None` where it is another version's.
    pub(super) fn from_json(json: &Json) -> Option<Self> {
        let state: Self = json.parse().ok()?;
        (state.version == VERSION).then_some(state)
    }

    /// Writes it.
    pub(super) fn to_json(&self) -> Option<Json> {
        Json::from_value(self).ok()
    }

    /// Returns where the main line stands.
    pub(super) fn tips(&self) -> Tips {
        Tips {
            uuids: self.tips.clone(),
            response: self.response,
            any: self.any,
            solid: self.solid,
            loose: self.loose,
        }
    }

    /// Sets where the main line stands.
    pub(super) fn set_tips(&mut self, tips: Tips) {
        self.tips = tips.uuids;
        self.response = tips.response;
        self.any = tips.any;
        self.solid = tips.solid;
        self.loose = tips.loose;
    }

    /// Returns the uuids that were seen.
    pub(super) fn take_seen(&mut self) -> Option<Seen> {
        self.seen.take()
    }

    /// Sets the uuids that were seen.
    pub(super) fn set_seen(&mut self, seen: Option<Seen>) {
        self.seen = seen;
    }
}

/// Uuids that were seen, so that one which comes a second time is noticed. It may take a
/// new one for seen, never the other way round.
///
/// In a file of more uuids than fit they are taken for what they say they are: unique.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    count: usize,
    #[serde(with = "hex")]
    bits: Vec<u8>,
}

/// The most bytes that are kept of it, and how many bits each uuid has and sets.
const MAX_BYTES: usize = 1024;
const BITS_EACH: usize = 12;
const SET: u32 = 5;

impl Seen {
    /// Makes one with room for twice as many. `None` where they are too many.
    pub(super) fn of(uuids: &[u64]) -> Option<Self> {
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
        for bit in places(uuid, self.bits.len()) {
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
        places(uuid, self.bits.len()).all(is_set)
    }
}

fn places(uuid: u64, bytes: usize) -> impl Iterator<Item = usize> {
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

/// What was told lately, as far as what comes next depends on it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    /// Where the title comes from: a summary, the model, the user.
    pub(super) title: u8,
    pub(super) model: Option<String>,
    pub(super) directory: bool,
    pub(super) began: bool,
    /// Calls by the hash of their id, and the tool.
    calls: Vec<(u64, String)>,
    /// Calls of sub-agents: the hash of what they were asked, and the call's id.
    tasks: Vec<(u64, String)>,
    /// The messages that were told last.
    told: Vec<u64>,
    /// How many messages the next summary keeps.
    pub(super) keep: u64,
    agents: Vec<Agent>,
    /// The messages of sub-agents that were told last.
    nested: Vec<u64>,
    /// Lines of sidechains whose agent has no id, and the agent.
    sides: Vec<(u64, String)>,
    /// The files of outputs that were read in this reading.
    #[serde(skip)]
    outputs: HashSet<String>,
}

/// A sub-agent of whom something was told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Agent {
    id: u64,
    /// The message told last.
    pub(super) last: u64,
    pub(super) model: u64,
}

/// The longest name that is kept.
const MAX_NAME: usize = 128;

impl Memory {
    /// Keeps a call.
    pub(super) fn call(&mut self, id: u64, tool: &str) {
        if tool.len() <= MAX_NAME {
            push(&mut self.calls, (id, tool.to_owned()), 48);
        }
    }

    /// Returns the tool of a call.
    pub(super) fn tool(&self, id: u64) -> Option<&str> {
        let call = self.calls.iter().rev().find(|call| call.0 == id)?;
        Some(&call.1)
    }

    /// Returns whether the file of an output is read for the first time. A file that is
    /// named again and again is not read as often.
    pub(super) fn is_new_output(&mut self, file: &str) -> bool {
        self.outputs.insert(file.to_owned())
    }

    /// Keeps what a sub-agent was asked.
    pub(super) fn task(&mut self, prompt: u64, id: &str) {
        if id.len() <= MAX_NAME {
            push(&mut self.tasks, (prompt, id.to_owned()), 24);
        }
    }

    /// Returns the call that asked a sub-agent this, and forgets it.
    pub(super) fn take_task(&mut self, prompt: u64) -> Option<String> {
        let at = self.tasks.iter().position(|task| task.0 == prompt)?;
        Some(self.tasks.remove(at).1)
    }

    /// Keeps that a message was told.
    pub(super) fn told(&mut self, uuid: u64) {
        push(&mut self.told, uuid, 40);
    }

    /// Returns how many messages were told from this one on; none where it was too long
    /// ago.
    pub(super) fn told_since(&self, uuid: u64) -> u64 {
        let at = self.told.iter().rposition(|told| *told == uuid);
        at.map_or(0, |at| (self.told.len() - at) as u64)
    }

    /// Returns a sub-agent, which is new where it was not known.
    pub(super) fn agent(&mut self, id: u64) -> &mut Agent {
        let known = self.agents.iter().position(|agent| agent.id == id);
        let at = known.unwrap_or_else(|| {
            let agent = Agent {
                id,
                ..Agent::default()
            };
            push(&mut self.agents, agent, 24);
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }

    /// Returns the message of a sub-agent that was told last, and whether none was.
    pub(super) fn agent_of(&self, id: u64) -> (u64, bool) {
        let known = self.agents.iter().find(|agent| agent.id == id);
        (known.map_or(0, |agent| agent.last), known.is_none())
    }

    /// Keeps that a message of a sub-agent was told.
    pub(super) fn nested(&mut self, uuid: u64) {
        push(&mut self.nested, uuid, 48);
    }

    /// Returns whether a message of a sub-agent was told lately.
    pub(super) fn is_nested(&self, uuid: u64) -> bool {
        self.nested.contains(&uuid)
    }

    /// Keeps that a line of a sidechain is this agent's.
    pub(super) fn side(&mut self, uuid: u64, agent: &str) {
        push(&mut self.sides, (uuid, agent.to_owned()), 32);
    }

    /// Returns the agent of a sidechain's line, or the one that spoke last.
    pub(super) fn side_of(&self, parent: Option<u64>) -> Option<&str> {
        let parent = parent.and_then(|uuid| self.sides.iter().rev().find(|side| side.0 == uuid));
        let side = parent.or(self.sides.last())?;
        Some(&side.1)
    }
}

/// Adds something behind the others, of which there are at most so many.
fn push<T>(all: &mut Vec<T>, one: T, most: usize) {
    if all.len() >= most {
        all.remove(0);
    }
    all.push(one);
}

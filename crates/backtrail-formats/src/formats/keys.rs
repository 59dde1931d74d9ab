//! Keys of events, and the state from which reading resumes.

use std::collections::{HashMap, VecDeque};

use backtrail::Json;
use serde::{Deserialize, Serialize};

use crate::json::{Object, parts_without_blanks};

/// Returns a name as a key: itself, if a key can be like that, or else a hash of it.
pub(crate) fn valid_key(name: impl AsRef<str>) -> String {
    let name = name.as_ref();
    let is_valid = !name.is_empty() && name.len() <= 200 && !name.chars().any(char::is_control);
    match is_valid {
        true => name.to_owned(),
        false => format!("h{}", hash(name.as_bytes(), 32)),
    }
}

/// Returns the first bytes of a hash.
pub(crate) fn short_hash<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let hash = blake3::hash(bytes);
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// Returns a hash of a name, to compare it with others.
pub(crate) fn hash_name(name: &str) -> u64 {
    u64::from_le_bytes(short_hash(name.as_bytes()))
}

/// Adds an element; the oldest is dropped if there are too many.
pub(crate) fn push_limited<T>(all: &mut VecDeque<T>, one: T, most: usize) {
    if all.len() >= most {
        all.pop_front();
    }
    all.push_back(one);
}

/// Returns the first hexadecimal digits of a hash.
pub(crate) fn hash(bytes: &[u8], digits: usize) -> String {
    blake3::hash(bytes).to_hex()[..digits].to_owned()
}

/// Returns the first hexadecimal digits of the hash of a JSON value, however it is spaced.
pub(crate) fn hash_json(json: &str, digits: usize) -> String {
    blake3::Hash::from(hash_without_blanks(json)).to_hex()[..digits].to_owned()
}

/// Returns the hash of a JSON value without the blanks between its tokens.
pub(crate) fn hash_without_blanks(json: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    parts_without_blanks(json, |part| {
        hasher.update(part.as_bytes());
    });
    *hasher.finalize().as_bytes()
}

/// Shortened hashes of ids that were seen: enough to tell that one is new.
///
/// It is part of the state from which reading resumes, so its size is limited. In a file with
/// more ids than fit, all others are assumed to be new.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenIds(String);

impl SeenIds {
    /// How many ids it keeps.
    const MAX: usize = 680;
    const DIGITS: usize = 6;

    fn short(id: u64) -> String {
        let [first, second, third, ..] = id.to_le_bytes();
        format!("{first:02x}{second:02x}{third:02x}")
    }

    /// Returns whether it cannot keep more.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= Self::MAX * Self::DIGITS
    }

    /// Returns whether the id with this hash may have been seen.
    pub(crate) fn may_have(&self, id: u64) -> bool {
        let mut all = self.0.as_bytes().chunks_exact(Self::DIGITS);
        let short = Self::short(id);
        all.any(|seen| seen == short.as_bytes())
    }

    /// Adds the id with this hash.
    pub(crate) fn add(&mut self, id: u64) {
        if !self.is_full() {
            self.0.push_str(&Self::short(id));
        }
    }
}

/// Makes keys unique: the second event with the same key gets `~2` after it.
#[derive(Debug, Default)]
pub(crate) struct UniqueKeys(HashMap<[u8; 16], u32>);

impl UniqueKeys {
    /// Returns a key that no other event has.
    pub(crate) fn unique(&mut self, key: String) -> String {
        let count = self.count(&key);
        let mut at = count;
        let mut unique = key;
        if count > 1 {
            let base = unique;
            loop {
                unique = format!("{base}~{at}");
                if self.count(&unique) == 1 {
                    break;
                }
                at += 1;
            }
            self.0.insert(short_hash(base.as_bytes()), at);
        }
        unique
    }

    fn count(&mut self, key: &str) -> u32 {
        let count = self.0.entry(short_hash(key.as_bytes())).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// Returns the session that a file is a copy of, and the first one of several copies, as `resume`
/// writes them for agents that have no name for that.
pub(crate) fn copied_from(object: &Object<'_>) -> Option<(String, String)> {
    let origin = object.object("forkedFrom")?;
    let session = valid_key(origin.non_blank("sessionId")?);
    let first = origin.non_blank("firstSessionId").map(valid_key);
    Some((session.clone(), first.unwrap_or(session)))
}

/// Serialises the state from which reading resumes. `None` if it is too large; the file is
/// then read from the beginning.
pub(crate) fn save_state<T: Serialize>(state: &T) -> Option<Json> {
    const MAX: usize = 6 << 10;
    let json = Json::from_value(state).ok()?;
    (json.as_str().len() <= MAX).then_some(json)
}

//! The hash that names a payload.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The BLAKE3 hash of a payload's content, which is its name.
///
/// Written as 64 lower-case hexadecimal digits, and parsed only from that form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PayloadHash([u8; 32]);

/// A payload hash's length in hexadecimal digits.
pub(crate) const HASH_HEX: usize = 64;

impl PayloadHash {
    /// Returns the hash of a content.
    pub(crate) fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// Returns the hash of everything that went into a hasher.
    pub(crate) fn finish(hasher: &blake3::Hasher) -> Self {
        Self(*hasher.finalize().as_bytes())
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub(crate) fn from_hex(hex: &[u8]) -> Option<Self> {
        if hex.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        let hash = blake3::Hash::from_hex(hex).ok()?;
        Some(Self(*hash.as_bytes()))
    }

    /// Writes the 64 digits.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let hex = blake3::Hash::from_bytes(self.0).to_hex();
        out.extend_from_slice(hex.as_bytes());
    }
}

impl fmt::Display for PayloadHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for PayloadHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for PayloadHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PayloadHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_hex(hex.as_bytes()).ok_or_else(|| {
            serde::de::Error::custom("a payload must be 64 lower-case hexadecimal digits")
        })
    }
}

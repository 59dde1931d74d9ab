//! The id of an object.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, quoted};

/// The id of an object: the BLAKE3 hash of its content.
///
/// Shown as 64 lower-case hexadecimal digits, and parsed only from that form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; Self::LEN]);

impl ObjectId {
    /// The length of an id in bytes.
    pub(crate) const LEN: usize = 32;

    /// Returns the id of a content.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// Returns the id of everything that a reader has.
    pub(crate) fn of_reader(reader: impl io::Read) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self::finish(&hasher))
    }

    /// Returns the id of everything that went into a hasher.
    pub(crate) fn finish(hasher: &blake3::Hasher) -> Self {
        Self(*hasher.finalize().as_bytes())
    }

    pub(crate) const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the id as bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl FromStr for ObjectId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let hash = blake3::Hash::from_hex(text).ok().filter(|_| lower);
        hash.map(|hash| Self(*hash.as_bytes())).ok_or_else(|| {
            let what = "is not an object name (64 lower-case hexadecimal digits)";
            Error::invalid(format!("{} {what}", quoted(text)))
        })
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

//! Ids as types: invalid ids never reach the file system.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, quoted};

/// The id of a session, safe to use as a directory name.
///
/// New ids are version 4 UUIDs. Other ids are accepted if they consist of 1 to 128
/// letters, digits, `-` and `_`, begin with a letter or digit, and are not the word
/// `latest`.
///
/// ```
/// use backtrail::SessionId;
/// assert!("7f3a1c9e-52d4-4b7e-9d0a-3f8b6f2f4d11".parse::<SessionId>().is_ok());
/// assert!("../../etc/passwd".parse::<SessionId>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// The longest id that is accepted.
const MAX_ID: usize = 128;

impl SessionId {
    pub(crate) fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.hyphenated().to_string())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first `len` characters, or all of them.
    pub fn prefix(&self, len: usize) -> &str {
        self.0.get(..len).unwrap_or(&self.0)
    }
}

/// Returns whether `text` may be an id or a prefix of one.
pub(crate) fn is_id_like(text: &str) -> bool {
    text.len() <= MAX_ID
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Returns whether the name of a fork can be a reference to it. Paths are not, and neither is
/// what names a record (`REF:SEQ`).
pub fn is_name_like(text: &str) -> bool {
    let is_odd = |c: char| c.is_control() || "/\\:".contains(c);
    !text.is_empty()
        && text.len() <= MAX_ID
        && text.trim() == text
        && !text.starts_with(['.', '-', '~'])
        && !text.contains(is_odd)
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if is_id_like(text) && text != "latest" {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid(format!(
                "{} is not a session id (1 to {MAX_ID} letters, digits, - and _)",
                quoted(text)
            )))
        }
    }
}

impl AsRef<str> for SessionId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The id of a workspace: a version 4 UUID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkspaceId(SessionId);

impl WorkspaceId {
    pub(crate) fn from_uuid(id: uuid::Uuid) -> Self {
        Self(SessionId::from_uuid(id))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the id as that of a chain of trails.
    pub(crate) fn as_trail_id(&self) -> &SessionId {
        &self.0
    }
}

impl FromStr for WorkspaceId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let id = text.parse().map(Self);
        id.map_err(|_| Error::invalid(format!("{} is not a workspace id", quoted(text))))
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The id of a checkpoint: a version 4 UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointId(uuid::Uuid);

impl CheckpointId {
    pub(crate) fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id)
    }

    /// Returns the first `len` characters, or all of them.
    pub fn prefix(&self, len: usize) -> String {
        let mut text = self.0.hyphenated().to_string();
        text.truncate(len);
        text
    }
}

impl FromStr for CheckpointId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let id = uuid::Uuid::try_parse(text).map(Self);
        id.map_err(|_| Error::invalid(format!("{} is not a checkpoint id", quoted(text))))
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.hyphenated().to_string())
    }
}

/// The id of an object, and of a payload: the BLAKE3 hash of its content.
///
/// Shown as 64 lower-case hexadecimal digits, and parsed only from that form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; Self::LEN]);

impl ObjectId {
    /// The length of an id in bytes.
    pub(crate) const LEN: usize = 32;
    /// Its length as text.
    pub(crate) const HEX: usize = 64;

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

    /// Reads the text of an id.
    pub(crate) fn from_hex(hex: &[u8]) -> Option<Self> {
        let lower = !hex.iter().any(u8::is_ascii_uppercase);
        let hash = blake3::Hash::from_hex(hex).ok().filter(|_| lower)?;
        Some(Self(*hash.as_bytes()))
    }

    /// Appends the text of the id, quickly.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(blake3::Hash::from_bytes(self.0).to_hex().as_bytes());
    }

    /// Returns the id as bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl FromStr for ObjectId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_hex(text.as_bytes()).ok_or_else(|| {
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

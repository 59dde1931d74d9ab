//! The reference that replaces a part of a message.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::escape::write_str;
use crate::ids::ObjectId;

/// The reference that replaces a payload in a message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Reference {
    /// The hash of the content.
    #[serde(rename = "payload")]
    pub(crate) hash: ObjectId,
    /// The content's length.
    pub(crate) bytes: u64,
    /// Where its entry began in the payload file when it was stored: a hint.
    pub(crate) at: u64,
    /// Whether the value is a string that spells the content in Base64. Otherwise the
    /// content is the value's JSON text.
    #[serde(rename = "as", default, deserialize_with = "is_there")]
    pub(crate) base64: bool,
    /// The start of the value.
    pub(crate) preview: String,
}

/// The beginning of every reference.
pub(super) const BEGIN: &str = "{\"payload\":\"";

/// The length of a preview in characters.
pub(super) const PREVIEW: usize = 200;

/// More than the longest reference: all names and numbers, and a preview in which every
/// character is escaped.
pub(super) const MAX_REFERENCE: usize = BEGIN.len() + ObjectId::HEX + 128 + PREVIEW * 6;

impl Reference {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(BEGIN.as_bytes());
        self.hash.write(out);
        out.extend_from_slice(b"\",\"bytes\":");
        out.extend_from_slice(digits.format(self.bytes).as_bytes());
        out.extend_from_slice(b",\"at\":");
        out.extend_from_slice(digits.format(self.at).as_bytes());
        if self.base64 {
            out.extend_from_slice(b",\"as\":\"base64\"");
        }
        out.extend_from_slice(b",\"preview\":");
        write_str(out, &self.preview);
        out.push(b'}');
    }

    /// Parses an object that [`write`](Self::write) made; `None` for any other.
    pub(super) fn read(value: &str) -> Option<Self> {
        if value.len() > MAX_REFERENCE || !value.starts_with(BEGIN) {
            return None;
        }
        let reference: Self = serde_json::from_str(value).ok()?;
        let mut written = Vec::with_capacity(value.len());
        reference.write(&mut written);
        (written == value.as_bytes()).then_some(reference)
    }
}

/// Parses `as`, which is only present for Base64.
fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

//! What stands in a message for a part that moved out.

use serde::Deserialize;

use super::hash::{HASH_HEX, PayloadHash};
use crate::escape::write_str;

/// What stands in a message in the place of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The name of the content.
    pub(crate) hash: PayloadHash,
    /// The content's length.
    pub(crate) bytes: u64,
    /// Where its entry began in the payload file when it was stored: a hint.
    pub(crate) at: u64,
    /// Whether the value is a string that spells the content in Base64. If not,
    /// the content is the value's JSON text.
    pub(crate) base64: bool,
    /// How the value begins.
    pub(crate) preview: String,
}

/// How every reference begins.
pub(super) const BEGIN: &str = "{\"payload\":\"";

/// How many characters a preview has.
pub(super) const PREVIEW: usize = 200;

/// More than the longest reference: all names and numbers, and a preview in
/// which every character is escaped.
pub(super) const MAX_REFERENCE: usize = BEGIN.len() + HASH_HEX + 128 + PREVIEW * 6;

impl Reference {
    /// Writes the object that stands for the part.
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

    /// Reads an object that [`write`](Self::write) made; any other is none.
    pub(super) fn read(value: &str) -> Option<Self> {
        if value.len() > MAX_REFERENCE || !value.starts_with(BEGIN) {
            return None;
        }
        let form: Form = serde_json::from_str(value).ok()?;
        let reference = Self {
            hash: form.payload,
            bytes: form.bytes,
            at: form.at,
            base64: form.spelling.is_some(),
            preview: form.preview,
        };
        let mut written = Vec::with_capacity(value.len());
        reference.write(&mut written);
        (written == value.as_bytes()).then_some(reference)
    }
}

#[derive(Deserialize)]
struct Form {
    payload: PayloadHash,
    bytes: u64,
    at: u64,
    #[serde(rename = "as")]
    spelling: Option<Spelling>,
    preview: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Spelling {
    Base64,
}

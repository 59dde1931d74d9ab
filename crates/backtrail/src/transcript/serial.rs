//! A transcript as one JSON object, which is also version 1's older form.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Transcript;
use super::content::{Compacted, Content, KeptLine};
use crate::ids::SessionId;
use crate::json::Json;
use crate::message::{CompactionSummary, Message};
use crate::time::Timestamp;
use crate::trail::FORMAT_VERSION;
use crate::trail::ForkOrigin;
use crate::version1::id_of_content;

impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = &self.content;
        let mut fields = serializer.serialize_struct("Transcript", 8)?;
        fields.serialize_field("version", &FORMAT_VERSION)?;
        fields.serialize_field("session_id", &content.session_id)?;
        fields.serialize_field("created_at_ms", &content.created_at_ms)?;
        fields.serialize_field("updated_at_ms", &content.updated_at_ms)?;
        fields.serialize_field("messages", &content.messages)?;
        match self.compaction() {
            Some(compaction) => fields.serialize_field("compaction", compaction)?,
            None => fields.skip_field("compaction")?,
        }
        match &content.fork {
            Some(fork) => fields.serialize_field("fork", fork)?,
            None => fields.skip_field("fork")?,
        }
        match content.kept.is_empty() {
            true => fields.skip_field("version1_lines")?,
            false => fields.serialize_field("version1_lines", &content.kept)?,
        }
        fields.end()
    }
}

/// The object as it is read; in version 1 most fields may be absent.
#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    version: Option<Json>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    created_at_ms: Option<i64>,
    #[serde(default)]
    updated_at_ms: Option<i64>,
    messages: Vec<Message>,
    #[serde(default)]
    compaction: Option<CompactionSummary>,
    #[serde(default)]
    fork: Option<ForkOrigin>,
    #[serde(default)]
    version1_lines: Vec<KeptLine>,
}

impl<'de> Deserialize<'de> for Transcript {
    /// Reads the object. A missing id is derived from the messages, so that the same
    /// object always gives the same id; missing times are 0.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        let version = raw.version.as_ref().map_or("1", Json::as_str);
        if !matches!(version.parse(), Ok(0..=FORMAT_VERSION)) {
            let what = format!("cannot read version {version}, only up to {FORMAT_VERSION}");
            return Err(de::Error::custom(what));
        }
        let times = [raw.created_at_ms, raw.updated_at_ms].into_iter().flatten();
        for ms in times {
            if Timestamp::from_millis(ms).is_none() {
                return Err(de::Error::custom("a time is out of range"));
            }
        }
        let session_id = match raw.session_id.and_then(|id| id.parse().ok()) {
            Some(id) => id,
            None => id_of_messages(&raw.messages).map_err(de::Error::custom)?,
        };
        let created_at_ms = raw.created_at_ms.unwrap_or(0);
        let updated_at_ms = raw.updated_at_ms.unwrap_or(created_at_ms);
        let after = raw.messages.len();
        let compaction = raw.compaction.map(|mut summary| {
            summary.covered = summary.covered.min(after);
            Compacted {
                summary,
                after,
                at_ms: updated_at_ms,
            }
        });
        Ok(Self::from_content(Content {
            session_id,
            created_at_ms,
            updated_at_ms,
            pushed_at_ms: vec![updated_at_ms; after],
            messages: raw.messages,
            compaction,
            fork: raw.fork,
            kept: raw.version1_lines,
        }))
    }
}

fn id_of_messages(messages: &[Message]) -> Result<SessionId, serde_json::Error> {
    let mut hasher = blake3::Hasher::new();
    serde_json::to_writer(&mut hasher, messages)?;
    Ok(id_of_content(hasher.finalize().as_bytes()))
}

//! The model call of a record, as recorded beside its message.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::record::{RecordKind, RecordRef};
use crate::json::{Key, Text};
use crate::message::{Details, Message, Usage};

impl RecordRef<'_> {
    /// Returns the model call that the record comes from.
    ///
    /// An invalid value (a negative cost, a model that is a number) counts as absent.
    pub fn details(&self) -> Details {
        self.beside().details
    }

    /// Returns the message in its line, as far as it can be read, and the model call, in
    /// one pass.
    pub fn stored_message_and_details(&self) -> (Option<Message>, Details) {
        if self.kind() == RecordKind::Message
            && let Some(body) = self.body(true)
            && body.message.is_some()
        {
            return (body.message, body.details);
        }
        (self.stored_message().ok().flatten(), self.details())
    }

    /// Reads the fields beside the message, whatever else is in the record.
    pub(crate) fn beside(&self) -> RecordBody {
        self.body(false).unwrap_or_default()
    }

    fn body(&self, with_message: bool) -> Option<RecordBody> {
        let mut parser = serde_json::Deserializer::from_slice(self.bytes());
        parser.deserialize_map(BodyVisitor { with_message }).ok()
    }
}

/// The fields of a record after its numbers.
#[derive(Debug, Default)]
pub(crate) struct RecordBody {
    message: Option<Message>,
    pub(crate) details: Details,
    /// In a compaction: the usage of the call that made the summary.
    pub(crate) usage: Option<Usage>,
    /// In a compaction: the summary.
    pub(crate) summary: Option<Text>,
}

struct BodyVisitor {
    with_message: bool,
}

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = RecordBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RecordBody, A::Error> {
        let mut body = RecordBody::default();
        let details = &mut body.details;
        while let Some(Key(key)) = map.next_key()? {
            match key.as_ref() {
                "message" if self.with_message => body.message = Some(map.next_value()?),
                "model" => details.model = sound(map.next_value()?),
                "response_id" => details.response_id = sound(map.next_value()?),
                "duration_ms" => details.duration_ms = sound(map.next_value()?),
                "cost_usd" => {
                    let cost: Option<f64> = sound(map.next_value()?);
                    details.cost_usd = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
                }
                "usage" => body.usage = sound(map.next_value()?),
                "summary" => body.summary = sound(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(body)
    }
}

/// Parses a value if it is valid: an invalid one must not affect the others.
fn sound<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str::<Option<T>>(raw.get()).ok().flatten()
}

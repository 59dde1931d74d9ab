//! The model call of a record, as recorded beside its message.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::record::{RecordKind, RecordRef};
use crate::json::Text;
use crate::message::{Message, Usage};

/// The model call that a record comes from, as far as it is recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Details {
    /// The model.
    pub model: Option<String>,
    /// The provider's id of the response; the records of one response share it.
    pub response_id: Option<String>,
    /// The duration of the call.
    pub duration_ms: Option<u64>,
    /// The cost reported by the provider.
    pub cost_usd: Option<f64>,
}

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
            && let Ok(both) = serde_json::from_slice::<Both>(self.bytes())
            && both.message.is_some()
        {
            return (both.message, both.details);
        }
        (self.stored_message().ok().flatten(), self.details())
    }

    /// Reads the fields beside the message or summary, whatever else is in the record.
    pub(crate) fn beside(&self) -> Beside {
        serde_json::from_slice(self.bytes()).unwrap_or_default()
    }
}

/// The fields of a record beside its message.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) details: Details,
    /// In a compaction: the usage of the call that made the summary.
    pub(crate) usage: Option<Usage>,
    /// In a compaction: the summary.
    pub(crate) summary: Option<Text>,
}

impl<'de> Deserialize<'de> for Beside {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BesideVisitor)
    }
}

/// A record's message and the fields beside it, in one reading.
struct Both {
    message: Option<Message>,
    details: Details,
}

impl<'de> Deserialize<'de> for Both {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BothVisitor;

        impl<'de> Visitor<'de> for BothVisitor {
            type Value = Both;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Both, A::Error> {
                let (mut message, mut beside) = (None, Beside::default());
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        "message" => message = Some(map.next_value()?),
                        key => beside.take(key, &mut map)?,
                    }
                }
                Ok(Both {
                    message,
                    details: beside.details,
                })
            }
        }

        deserializer.deserialize_map(BothVisitor)
    }
}

impl Beside {
    /// Reads the value of a known field.
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let details = &mut self.details;
        match key {
            "model" => details.model = sound(map.next_value()?),
            "response_id" => details.response_id = sound(map.next_value()?),
            "duration_ms" => details.duration_ms = sound(map.next_value()?),
            "cost_usd" => {
                let cost: Option<f64> = sound(map.next_value()?);
                details.cost_usd = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
            }
            "usage" => self.usage = sound(map.next_value()?),
            "summary" => self.summary = sound(map.next_value()?),
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

struct BesideVisitor;

impl<'de> Visitor<'de> for BesideVisitor {
    type Value = Beside;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Beside, A::Error> {
        let mut beside = Beside::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            beside.take(&key, &mut map)?;
        }
        Ok(beside)
    }
}

/// Parses a value if it is valid: an invalid one must not affect the others.
fn sound<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str::<Option<T>>(raw.get()).ok().flatten()
}

//! Looks at one record as it stands in a version-1 file.

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;
use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Form;
use crate::error::Reason;
use crate::json::Text;
use crate::trail::lines::Ending;

/// One record as it stands in a version-1 file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Meta(Meta),
    /// A message; the JSON is the message's own.
    Message {
        json: &'a str,
    },
    Compaction(V1Compaction),
    Prompt {
        text: Text,
        at_ms: Option<i64>,
    },
    /// A record of a type that this version does not know.
    Other {
        kind: String,
    },
    Blank,
    Damage(Reason),
}

/// What a record says about the session as a whole. A field that is not what it
/// should be counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) version: Option<u64>,
    pub(crate) session_id: Option<String>,
    pub(crate) created_at_ms: Option<i64>,
    pub(crate) updated_at_ms: Option<i64>,
    pub(crate) fork: Option<Fork>,
    pub(crate) model: Option<String>,
    pub(crate) workspace_root: Option<String>,
    /// These three only an export of ours has.
    pub(crate) title: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) tags: Vec<String>,
}

/// Where a version-1 session came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fork {
    pub(crate) parent_session_id: String,
    pub(crate) branch_name: Option<String>,
}

/// A version-1 compaction: the messages it removed are in no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct V1Compaction {
    pub(crate) count: u64,
    pub(crate) removed_message_count: u64,
    pub(crate) summary: Text,
    /// How many messages of the file it stands for: none in version 1, where
    /// those are gone, but an object of ours has them.
    pub(crate) covered: u64,
}

/// A record, and what had to be passed over before it in the same line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Looked<'a> {
    pub(crate) found: Found<'a>,
    /// How many bytes were lost before the record, and why.
    pub(crate) lost: Option<(usize, Reason)>,
}

/// Looks at the bytes of one line, or of one element of `messages`.
pub(crate) fn look(form: Form, bytes: &[u8]) -> Found<'_> {
    look_closely(form, bytes, Ending::Newline).found
}

/// As [`look`], and says what was lost where a line holds a whole record only at
/// its end: behind NULs, or behind a torn line that it was glued onto.
pub(crate) fn look_closely(form: Form, bytes: &[u8], ending: Ending) -> Looked<'_> {
    let clean = |found| Looked { found, lost: None };
    let bytes = trim(bytes);
    if bytes.is_empty() {
        return clean(Found::Blank);
    }
    let reason = match whole(form, bytes) {
        Ok(found) => return clean(found),
        Err(Reason::Unfinished) if ending == Ending::Newline => {
            Reason::Syntax("the line breaks off".to_owned())
        }
        Err(reason) => reason,
    };
    if form == Form::Lines
        && let Some((at, found)) = glued(bytes)
    {
        let nuls = bytes[..at].iter().all(|byte| *byte == 0);
        let reason = if nuls { Reason::NulBlock } else { reason };
        let lost = Some((at, reason));
        return Looked { found, lost };
    }
    clean(Found::Damage(reason))
}

/// Drops white space around a record, and the mark that some editors begin a
/// file with.
fn trim(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii()
}

fn whole(form: Form, bytes: &[u8]) -> Result<Found<'_>, Reason> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        if error.error_len().is_none() {
            Reason::Unfinished
        } else {
            Reason::NotUtf8(error.valid_up_to() as u64)
        }
    })?;
    match form {
        Form::Object => check_message(text).map(|()| Found::Message { json: text }),
        Form::Lines => match plain_message(text) {
            Some(json) => Ok(Found::Message { json }),
            None => record(text),
        },
    }
}

/// Takes a message out of a line that is exactly as version 1 writes it, which
/// saves a pass over it.
fn plain_message(line: &str) -> Option<&str> {
    let json = line
        .strip_prefix("{\"message\":")?
        .strip_suffix(",\"type\":\"message\"}")?;
    serde_json::from_str::<Shape>(json).ok()?;
    Some(json)
}

fn record(line: &str) -> Result<Found<'_>, Reason> {
    let envelope: Envelope<'_> =
        serde_json::from_str(line).map_err(|error| refused(line, &error))?;
    let kind = envelope.kind.ok_or(Reason::MissingType)?;
    let Some(name) = string(kind) else {
        return Err(Reason::UnsupportedType(kind.get().to_owned()));
    };
    match name.as_str() {
        "message" => {
            let message = envelope.message.ok_or(Reason::MissingField("message"))?;
            check_message(message.get())?;
            Ok(Found::Message {
                json: message.get(),
            })
        }
        "session_meta" => Ok(Found::Meta(read_meta(line)?)),
        "compaction" => Ok(Found::Compaction(read_compaction(line)?)),
        "prompt_history" => read_prompt(line),
        other => Ok(Found::Other {
            kind: other.to_owned(),
        }),
    }
}

/// Says why JSON was not even a record.
fn refused(line: &str, error: &serde_json::Error) -> Reason {
    if line.bytes().all(|byte| byte == 0) {
        Reason::NulBlock
    } else if error.is_eof() {
        Reason::Unfinished
    } else if error.is_data() && !line.starts_with('{') {
        Reason::NotAnObject
    } else {
        let text = error.to_string();
        Reason::Syntax(text.replace("at line 1 column", "at column"))
    }
}

/// Checks that JSON reads as a [`Message`](crate::Message): a role and blocks,
/// whatever those are.
fn check_message(json: &str) -> Result<(), Reason> {
    let Err(error) = serde_json::from_str::<Shape>(json) else {
        return Ok(());
    };
    if !error.is_data() {
        return Err(refused(json, &error));
    }
    if !json.starts_with('{') {
        return Err(Reason::WrongField("message", "an object"));
    }
    let fields: crate::Fields = serde_json::from_str(json).map_err(|e| refused(json, &e))?;
    Err(match (fields.get("role"), fields.get("blocks")) {
        (None, _) => Reason::MissingField("role"),
        (_, None) => Reason::MissingField("blocks"),
        (Some(role), _) if role.parse::<String>().is_err() => {
            Reason::WrongField("role", "a string")
        }
        _ => Reason::WrongField("blocks", "an array"),
    })
}

/// How a known record may begin: its keys are in alphabetical order, or its type
/// stands first.
const BEGINNINGS: [&[u8]; 6] = [
    b"{\"message\":",
    b"{\"type\":\"",
    b"{\"count\":",
    b"{\"created_at_ms\":",
    b"{\"fork\":",
    b"{\"text\":",
];
/// How many bytes, for each of a line's, are read again before it is given up.
const EFFORT: usize = 16;

/// Finds a whole record at the end of a line. One that another record quotes is
/// never at the end: what quotes it is closed behind it.
fn glued(line: &[u8]) -> Option<(usize, Found<'_>)> {
    let mut effort = line.len().saturating_mul(EFFORT);
    for at in memmem::find_iter(line, b"{\"") {
        let rest = &line[at..];
        if at == 0 || !BEGINNINGS.iter().any(|begin| rest.starts_with(begin)) {
            continue;
        }
        effort = effort.checked_sub(rest.len())?;
        match whole(Form::Lines, rest) {
            Err(_) | Ok(Found::Other { .. }) => {}
            Ok(found) => return Some((at, found)),
        }
    }
    None
}

/// Reads what a record, or a single-object file, says about its session.
pub(super) fn read_meta(json: &str) -> Result<Meta, Reason> {
    let raw: RawMeta<'_> = serde_json::from_str(json).map_err(|error| refused(json, &error))?;
    let fork = raw.fork.and_then(|fork| {
        let fork: RawFork<'_> = serde_json::from_str(fork.get()).ok()?;
        Some(Fork {
            parent_session_id: string(fork.parent_session_id?)?.to_string(),
            branch_name: fork.branch_name.and_then(name),
        })
    });
    Ok(Meta {
        version: raw.version.and_then(count),
        session_id: raw.session_id.and_then(name),
        created_at_ms: raw.created_at_ms.and_then(millis),
        updated_at_ms: raw.updated_at_ms.and_then(millis),
        fork,
        model: raw.model.and_then(name),
        workspace_root: raw.workspace_root.and_then(name),
        title: raw.title.and_then(name),
        agent: raw.agent.and_then(name),
        tags: raw
            .tags
            .and_then(|tags| serde_json::from_str(tags.get()).ok())
            .unwrap_or_default(),
    })
}

/// Reads a compaction. Its summary is what matters: numbers that cannot be read
/// must not cost it.
pub(super) fn read_compaction(json: &str) -> Result<V1Compaction, Reason> {
    let raw: RawCompaction<'_> =
        serde_json::from_str(json).map_err(|error| refused(json, &error))?;
    let summary = raw.summary.ok_or(Reason::MissingField("summary"))?;
    Ok(V1Compaction {
        count: raw.count.and_then(count).unwrap_or(1),
        removed_message_count: raw.removed_message_count.and_then(count).unwrap_or(0),
        summary: string(summary).ok_or(Reason::WrongField("summary", "a string"))?,
        covered: raw.covered.and_then(count).unwrap_or(0),
    })
}

fn read_prompt(json: &str) -> Result<Found<'_>, Reason> {
    let raw: RawPrompt<'_> = serde_json::from_str(json).map_err(|error| refused(json, &error))?;
    let text = raw.text.ok_or(Reason::MissingField("text"))?;
    Ok(Found::Prompt {
        text: string(text).ok_or(Reason::WrongField("text", "a string"))?,
        at_ms: raw.timestamp_ms.and_then(millis),
    })
}

/// Returns the time of the first prompt in the `prompt_history` of an object.
pub(super) fn first_prompt_ms(json: &str) -> Option<i64> {
    let prompts: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let time = |prompt: &&RawValue| match read_prompt(prompt.get()) {
        Ok(Found::Prompt { at_ms, .. }) => at_ms,
        _ => None,
    };
    prompts.iter().find_map(time)
}

fn string(raw: &RawValue) -> Option<Text> {
    serde_json::from_str(raw.get()).ok()
}

fn name(raw: &RawValue) -> Option<String> {
    string(raw).map(|text| text.to_string())
}

fn count(raw: &RawValue) -> Option<u64> {
    let text = raw.get();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Reads a time that a calendar has.
fn millis(raw: &RawValue) -> Option<i64> {
    let millis = raw.get().parse().ok()?;
    crate::Timestamp::from_millis(millis).map(|_| millis)
}

/// The fields of an object that are read as they stand, the last of each name.
macro_rules! raw_fields {
    ($name:ident { $($field:ident: $key:literal),* }) => {
        #[derive(Default)]
        struct $name<'a> { $($field: Option<&'a RawValue>),* }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;
                impl<'de> Visitor<'de> for Fields {
                    type Value = $name<'de>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut raw = $name::default();
                        while let Some(key) = map.next_key::<Key<'de>>()? {
                            match key.0.as_ref() {
                                $($key => raw.$field = Some(map.next_value()?),)*
                                _ => drop(map.next_value::<IgnoredAny>()?),
                            }
                        }
                        Ok(raw)
                    }
                }
                deserializer.deserialize_map(Fields)
            }
        }
    };
}

raw_fields!(Envelope {
    kind: "type",
    message: "message"
});
raw_fields!(RawMeta {
    version: "version",
    session_id: "session_id",
    created_at_ms: "created_at_ms",
    updated_at_ms: "updated_at_ms",
    fork: "fork",
    model: "model",
    workspace_root: "workspace_root",
    title: "title",
    agent: "agent",
    tags: "tags"
});
raw_fields!(RawFork {
    parent_session_id: "parent_session_id",
    branch_name: "branch_name"
});
raw_fields!(RawCompaction {
    count: "count",
    removed_message_count: "removed_message_count",
    summary: "summary",
    covered: "covered"
});
raw_fields!(RawPrompt {
    text: "text",
    timestamp_ms: "timestamp_ms"
});

/// A string that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a message must have to be read as one.
struct Shape;

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message: an object with `role` and `blocks`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let (mut role, mut blocks) = (false, false);
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match key.0.as_ref() {
                "role" => {
                    map.next_value::<Key<'de>>()?;
                    role = true;
                }
                "blocks" => {
                    map.next_value::<Anything>()?;
                    blocks = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match (role, blocks) {
            (false, _) => Err(de::Error::missing_field("role")),
            (_, false) => Err(de::Error::missing_field("blocks")),
            _ => Ok(Shape),
        }
    }
}

/// An array of anything, passed over.
struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = Anything;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Anything, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Anything)
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;

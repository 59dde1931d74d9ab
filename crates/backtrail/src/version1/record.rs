//! One record of a version-1 file.

use memchr::memmem;
use serde_json::value::RawValue;

use crate::error::Reason;
use crate::json::{Key, Parts, Text};
use crate::message::CompactionSummary;
use crate::time::Timestamp;
use crate::trail::ForkOrigin;
use crate::trail::lines::Ending;

/// One record of a version-1 file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum V1Record<'a> {
    /// The session as a whole.
    Meta(V1Meta),
    /// A message: its JSON, which parses as a [`Message`](crate::Message).
    Message(&'a str),
    /// A summary. The messages that it replaced are not in the file.
    Compaction(CompactionSummary),
    /// A prompt, kept beside the messages.
    Prompt {
        /// When it was entered.
        at_ms: Option<i64>,
    },
    /// The messages of a file of the older form, to which an old program appended lines.
    Object(Vec<&'a str>),
    /// A record of an unknown type.
    Other(String),
}

/// The details of a session in a record. A field of the wrong type counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct V1Meta {
    /// The version of the format.
    pub version: Option<u64>,
    /// The session's id, which may be any text.
    pub session_id: Option<String>,
    /// When the session began.
    pub created_at_ms: Option<i64>,
    /// When the session last changed.
    pub updated_at_ms: Option<i64>,
    /// The session that it was forked from.
    pub fork: Option<ForkOrigin>,
    /// The model.
    pub model: Option<String>,
    /// The directory that the agent worked in.
    pub workspace_root: Option<String>,
    /// The title.
    pub title: Option<String>,
}

/// A line, and what was skipped before its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct V1Line<'a> {
    /// The record; `None` if the line is blank.
    pub(crate) content: Result<Option<V1Record<'a>>, Reason>,
    /// How many bytes were lost before the record, and why.
    pub(crate) lost: Option<(usize, Reason)>,
}

impl<'a> V1Line<'a> {
    /// Reads one line. If only its end is a complete record, after NULs or after a torn line,
    /// the rest is lost.
    pub(crate) fn read(bytes: &'a [u8], ending: Ending) -> Self {
        let bytes = trim(bytes);
        if bytes.is_empty() {
            return Ok(None).into();
        }
        let reason = match utf8(bytes).and_then(V1Record::read) {
            Ok(record) => return Ok(Some(record)).into(),
            Err(Reason::Unfinished) if ending == Ending::Newline => {
                Reason::Syntax("the line is cut off".to_owned())
            }
            Err(reason) => reason,
        };
        match glued(bytes) {
            Some((at, record)) => {
                let is_nul = bytes[..at].iter().all(|byte| *byte == 0);
                let reason = if is_nul { Reason::NulBlock } else { reason };
                Self {
                    content: Ok(Some(record)),
                    lost: Some((at, reason)),
                }
            }
            None => Err(reason).into(),
        }
    }

    /// Parses one element of an object's `messages`.
    pub(crate) fn element(bytes: &'a [u8]) -> Self {
        let message = utf8(trim(bytes)).and_then(|json| check_message(json).map(|()| json));
        let content = message.map_err(|reason| match reason {
            Reason::Unfinished => Reason::Syntax("the message is cut off".to_owned()),
            reason => reason,
        });
        content.map(|json| Some(V1Record::Message(json))).into()
    }
}

impl<'a> From<Result<Option<V1Record<'a>>, Reason>> for V1Line<'a> {
    fn from(content: Result<Option<V1Record<'a>>, Reason>) -> Self {
        Self {
            content,
            lost: None,
        }
    }
}

/// Trims white space around a record, and the byte order mark that some editors write.
fn trim(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii()
}

fn utf8(bytes: &[u8]) -> Result<&str, Reason> {
    std::str::from_utf8(bytes).map_err(|error| match error.error_len() {
        None => Reason::Unfinished,
        Some(_) => Reason::NotUtf8(error.valid_up_to() as u64),
    })
}

impl<'a> V1Record<'a> {
    /// Parses a line that is one record.
    ///
    /// # Errors
    ///
    /// Returns the flaw of the line.
    pub fn read(line: &'a str) -> Result<Self, Reason> {
        if let Some(json) = plain_message(line) {
            return Ok(Self::Message(json));
        }
        let fields = Parts::parse(line).map_err(|error| refused(line, &error))?;
        let Some(kind) = fields.get("type") else {
            return object_messages(&fields).ok_or(Reason::MissingType);
        };
        let Some(name) = string(kind) else {
            return Err(Reason::UnsupportedType(kind.get().to_owned()));
        };
        match name.as_str() {
            "message" => {
                let message = fields.get("message");
                let json = message.ok_or(Reason::MissingField("message"))?.get();
                check_message(json)?;
                Ok(Self::Message(json))
            }
            "session_meta" => Ok(Self::Meta(V1Meta::read(&fields))),
            "compaction" => read_compaction(&fields).map(Self::Compaction),
            "prompt_history" => read_prompt(&fields),
            other => Ok(Self::Other(other.to_owned())),
        }
    }
}

impl V1Record<'_> {
    /// Returns what a reader must be told about a record that it can read: its type is not
    /// supported, or a number is out of range and counts as absent or as the largest one.
    pub(super) fn oddity(&self, json: &str) -> Option<Reason> {
        let fields = || Parts::parse(json.trim_start_matches('\u{feff}').trim()).ok();
        let out = |fields: Parts<'_>, names: &[&'static str]| out_of_range(&fields, names);
        match self {
            Self::Other(name) => Some(Reason::UnsupportedType(name.clone())),
            Self::Meta(_) => out(fields()?, &["version"])
                .or_else(|| out_of_calendar(&fields()?, &["created_at_ms", "updated_at_ms"])),
            Self::Compaction(_) => out(fields()?, &["count", "removed_message_count"]),
            Self::Prompt { .. } => out_of_calendar(&fields()?, &["timestamp_ms"]),
            Self::Message(json) => {
                let message = Parts::parse(json).ok()?;
                out(Parts::parse(message.get("usage")?.get()).ok()?, &USAGE)
            }
            Self::Object(_) => None,
        }
    }
}

/// The numbers of a message's usage.
const USAGE: [&str; 4] = [
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
];

/// Returns the first of some fields that is a number, and not one that can be counted.
fn out_of_range(fields: &Parts<'_>, names: &[&'static str]) -> Option<Reason> {
    let is_out = |raw: &str| is_number(raw) && raw.parse::<u64>().is_err();
    first_number(fields, names, is_out)
}

/// Returns the first of some fields that is a number, and not a time that a calendar has.
fn out_of_calendar(fields: &Parts<'_>, names: &[&'static str]) -> Option<Reason> {
    let is_time = |raw: &str| raw.parse().ok().and_then(Timestamp::from_millis).is_some();
    first_number(fields, names, |raw| is_number(raw) && !is_time(raw))
}

fn first_number(
    fields: &Parts<'_>,
    names: &[&'static str],
    is_out: impl Fn(&str) -> bool,
) -> Option<Reason> {
    let is_out = |name: &&&'static str| fields.get(name).is_some_and(|raw| is_out(raw.get()));
    names
        .iter()
        .find(is_out)
        .map(|name| Reason::OutOfRange(name))
}

fn is_number(raw: &str) -> bool {
    raw.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// Extracts the message from a line that is exactly as version 1 writes it, which saves
/// a pass over it.
fn plain_message(line: &str) -> Option<&str> {
    let json = line
        .strip_prefix("{\"message\":")?
        .strip_suffix(",\"type\":\"message\"}")?;
    check_message(json).is_ok().then_some(json)
}

/// Returns the messages of an object of the older form.
fn object_messages<'a>(fields: &Parts<'a>) -> Option<V1Record<'a>> {
    let list: Vec<&RawValue> = serde_json::from_str(fields.get("messages")?.get()).ok()?;
    Some(V1Record::Object(
        list.into_iter().map(RawValue::get).collect(),
    ))
}

/// Returns the reason why JSON is not a record.
fn refused(json: &str, error: &serde_json::Error) -> Reason {
    if json.bytes().all(|byte| byte == 0) {
        Reason::NulBlock
    } else if error.is_eof() {
        Reason::Unfinished
    } else if error.is_data() && !json.starts_with('{') {
        Reason::NotAnObject
    } else {
        let text = error.to_string();
        Reason::Syntax(text.replace("at line 1 column", "at column"))
    }
}

/// Checks that JSON parses as a [`Message`](crate::Message): a role and an array of blocks,
/// whatever they contain.
///
/// # Errors
///
/// Returns the flaw.
pub fn check_message(json: &str) -> Result<(), Reason> {
    let fields = Parts::parse(json).map_err(|error| match refused(json, &error) {
        Reason::NotAnObject => Reason::WrongField("message", "an object"),
        reason => reason,
    })?;
    for name in ["role", "blocks"] {
        fields.get(name).ok_or(Reason::MissingField(name))?;
    }
    let is_text = |raw: &RawValue| serde_json::from_str::<Key<'_>>(raw.get()).is_ok();
    if !fields.all("role").all(is_text) {
        return Err(Reason::WrongField("role", "a string"));
    }
    if !fields.all("blocks").all(|raw| raw.get().starts_with('[')) {
        return Err(Reason::WrongField("blocks", "an array"));
    }
    Ok(())
}

/// The possible beginnings of a known record: its keys are in alphabetical order, or its
/// type is first.
const BEGINNINGS: [&[u8]; 6] = [
    b"{\"message\":",
    b"{\"type\":\"",
    b"{\"count\":",
    b"{\"created_at_ms\":",
    b"{\"fork\":",
    b"{\"text\":",
];
/// How many bytes may be read again per byte of a line before the search ends.
const EFFORT: usize = 16;

/// Finds a complete record at the end of a line. A record that another record quotes is
/// never at the end: the closing quote follows it.
fn glued(line: &[u8]) -> Option<(usize, V1Record<'_>)> {
    let mut effort = line.len().saturating_mul(EFFORT);
    for at in memmem::find_iter(line, b"{\"") {
        let rest = &line[at..];
        if at == 0 || !BEGINNINGS.iter().any(|begin| rest.starts_with(begin)) {
            continue;
        }
        effort = effort.checked_sub(rest.len())?;
        match utf8(rest).and_then(V1Record::read) {
            Err(_) | Ok(V1Record::Other(_)) => {}
            Ok(record) => return Some((at, record)),
        }
    }
    None
}

impl V1Meta {
    /// Reads the fields of a `session_meta`, or of a file that is one object.
    pub(super) fn read(fields: &Parts<'_>) -> Self {
        let name = |key| fields.get(key).and_then(name);
        let millis = |key| fields.get(key).and_then(millis);
        Self {
            version: fields.get("version").and_then(count),
            session_id: name("session_id"),
            created_at_ms: millis("created_at_ms"),
            updated_at_ms: millis("updated_at_ms"),
            fork: fields.get("fork").and_then(read_fork),
            model: name("model"),
            workspace_root: name("workspace_root"),
            title: name("title"),
        }
    }
}

fn read_fork(raw: &RawValue) -> Option<ForkOrigin> {
    let fields = Parts::parse(raw.get()).ok()?;
    let parent = name(fields.get("parent_session_id")?)?;
    let branch = fields.get("branch_name").and_then(name);
    Some(ForkOrigin::new(parent, branch.as_deref(), None))
}

/// Parses a compaction. Its summary is what matters: unreadable numbers must not
/// discard it.
pub(super) fn read_compaction(fields: &Parts<'_>) -> Result<CompactionSummary, Reason> {
    let summary = fields
        .get("summary")
        .ok_or(Reason::MissingField("summary"))?;
    let covered = fields.get("covered").and_then(count).unwrap_or(0);
    Ok(CompactionSummary {
        count: fields.get("count").and_then(count).unwrap_or(1),
        removed_message_count: fields
            .get("removed_message_count")
            .and_then(count)
            .unwrap_or(0),
        summary: string(summary).ok_or(Reason::WrongField("summary", "a string"))?,
        covered: usize::try_from(covered).unwrap_or(usize::MAX),
    })
}

fn read_prompt<'a>(fields: &Parts<'_>) -> Result<V1Record<'a>, Reason> {
    let text = fields.get("text").ok_or(Reason::MissingField("text"))?;
    string(text).ok_or(Reason::WrongField("text", "a string"))?;
    let at_ms = fields.get("timestamp_ms").and_then(millis);
    Ok(V1Record::Prompt { at_ms })
}

/// Returns the `prompt_history` of an object as lines.
pub(super) fn prompt_lines(json: &str) -> Vec<String> {
    let prompts: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    let lines = prompts.iter().filter_map(|prompt| {
        let fields = Parts::parse(prompt.get()).ok()?;
        read_prompt(&fields).ok()?;
        let rest = prompt.get().trim_start().strip_prefix('{')?;
        let line = match fields.get("type") {
            Some(_) => prompt.get().to_owned(),
            None => format!("{{\"type\":\"prompt_history\",{rest}"),
        };
        // An object may be written over several lines.
        (!line.contains('\n')).then_some(line)
    });
    lines.collect()
}

/// Returns the time of the first prompt in the `prompt_history` of an object.
pub(super) fn first_prompt_ms(json: &str) -> Option<i64> {
    let prompts: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    prompts.iter().find_map(|prompt| {
        let fields = Parts::parse(prompt.get()).ok()?;
        match read_prompt(&fields) {
            Ok(V1Record::Prompt { at_ms }) => at_ms,
            _ => None,
        }
    })
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

/// Parses a time that a calendar can show.
fn millis(raw: &RawValue) -> Option<i64> {
    let millis = raw.get().parse().ok()?;
    Timestamp::from_millis(millis).map(|_| millis)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;

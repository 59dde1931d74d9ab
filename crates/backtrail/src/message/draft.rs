//! A message before it is recorded.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::parts::{self, MAX_INLINE};
use super::{Block, Message, check_message};
use crate::error::{Error, Reason, Result};
use crate::json::{Fields, Json, write_fields};
use crate::time::Timestamp;

/// A message that is not recorded yet, with its metadata.
///
/// Every [`Message`] converts to a draft. Setters add metadata to the record:
///
/// ```
/// use backtrail::{Block, Draft, Message};
///
/// let draft = Draft::from(Message::assistant([Block::text("Done.")]))
///     .model("claude-opus-5")
///     .response_id("msg_01")
///     .duration_ms(1200);
/// # let _ = draft;
/// ```
#[derive(Debug, Clone)]
pub struct Draft {
    body: DraftBody,
    id: Option<String>,
    at: Option<Timestamp>,
    expect: Option<u64>,
    /// The fields between `id` and `message`, in this order.
    details: Details,
    extra: Fields,
}

#[derive(Debug, Clone)]
enum DraftBody {
    Message(Message),
    /// JSON that was checked to be a message.
    Json(Json),
}

impl DraftBody {
    /// Returns the approximate length as JSON, so that the buffer for a large message is
    /// allocated once.
    fn size_hint(&self) -> usize {
        let len = |block: &Block| match block {
            Block::Text(block) => block.text.len(),
            Block::Thinking(block) => block.thinking.len(),
            Block::ToolUse(block) => block.input.as_str().len(),
            Block::ToolResult(block) => block.output.as_str().len(),
            Block::Media(block) => block.data.as_str().len(),
            Block::Other(json) => json.as_str().len(),
        };
        match self {
            Self::Json(json) => json.as_str().len(),
            Self::Message(message) => message.blocks.iter().map(len).sum::<usize>() * 17 / 16,
        }
    }
}

/// The model call that a record comes from, as far as it is recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Details {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the response; the records of one response share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The duration of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The cost reported by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Details {
    /// Takes the fields out of an object.
    pub(super) fn take(fields: &mut Fields) -> Result<Self, Reason> {
        Ok(Self {
            model: take(fields, "model", "a string")?,
            response_id: take(fields, "response_id", "a string")?,
            duration_ms: take(fields, "duration_ms", "a whole number")?,
            cost_usd: take(fields, "cost_usd", "a number")?,
        })
    }

    /// Rejects names and numbers that would not be read back unchanged.
    pub(super) fn check(&self, what: &str) -> Result<()> {
        check_name("model", self.model.as_deref(), what)?;
        check_name("response_id", self.response_id.as_deref(), what)?;
        match self.cost_usd {
            Some(cost) if !cost.is_finite() || cost < 0.0 => {
                Err(Error::invalid(what).with_reason(Reason::OutOfRange("cost_usd")))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn check_name(field: &'static str, name: Option<&str>, what: &str) -> Result<()> {
    if name.is_none_or(is_name) {
        return Ok(());
    }
    let must = "1 to 256 bytes without control characters";
    Err(Error::invalid(what).with_reason(Reason::WrongField(field, must)))
}

/// The longest id or name.
const MAX_NAME: usize = 256;

impl<M: Into<Message>> From<M> for Draft {
    fn from(message: M) -> Self {
        Self::with_body(DraftBody::Message(message.into()))
    }
}

impl Draft {
    fn with_body(body: DraftBody) -> Self {
        Self {
            body,
            id: None,
            at: None,
            expect: None,
            details: Details::default(),
            extra: Fields::default(),
        }
    }

    /// Sets the record's id. The default is a new id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the time of the message. The default is the time it is recorded.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = Some(at);
        self
    }

    /// Sets the model that wrote the message.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.details.model = Some(model.into());
        self
    }

    /// Sets the provider's id of the response, by which usage is counted once.
    #[must_use]
    pub fn response_id(mut self, id: impl Into<String>) -> Self {
        self.details.response_id = Some(id.into());
        self
    }

    /// Sets the duration of the model call.
    #[must_use]
    pub fn duration_ms(mut self, duration_ms: u64) -> Self {
        self.details.duration_ms = Some(duration_ms);
        self
    }

    /// Sets the cost reported by the provider.
    #[must_use]
    pub fn cost_usd(mut self, cost_usd: f64) -> Self {
        self.details.cost_usd = Some(cost_usd);
        self
    }

    /// Sets the seq that the caller expects to be last. If the session has later records,
    /// the append fails with [`Conflict`](crate::ErrorKind::Conflict) and the actual last
    /// seq, so a retry never records a message twice.
    #[must_use]
    pub fn expect(mut self, seq: u64) -> Self {
        self.expect = Some(seq);
        self
    }

    /// Parses a draft from one JSON object: a native record,
    /// `{"type":"message","message":{"role":…,"blocks":[…]}}`, or the short form
    /// `{"role":"user","text":"…"}`.
    ///
    /// Both may have `id`, `at`, `model`, `response_id`, `cost_usd`, `duration_ms` and
    /// `expect`. The content is written to disk with exactly these bytes. A native record
    /// may have other fields, which are kept too.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid), and a [`Reason`] if the line is
    /// not a message.
    pub fn from_json(line: &str) -> Result<Self> {
        read_draft(line)
            .map_err(|reason| Error::invalid("this line cannot be recorded").with_reason(reason))
    }

    /// Returns the seq that the caller expects to be last, if set.
    pub fn expected(&self) -> Option<u64> {
        self.expect
    }

    /// Returns the fields beside the message that this version does not know.
    pub(crate) fn unknown_fields(&self) -> &Fields {
        &self.extra
    }

    /// Encodes the fields between the record's `seq` and its `prev`, and returns them
    /// with the offset of the message, which extends to the end.
    pub(crate) fn encode(
        &self,
        now: impl FnOnce() -> Timestamp,
        new_id: impl FnOnce() -> Result<uuid::Uuid>,
    ) -> Result<(Vec<u8>, usize)> {
        self.check()?;
        let mut out = Vec::with_capacity(512 + self.body.size_hint());
        out.extend_from_slice(b",\"at\":\"");
        self.at.unwrap_or_else(now).write(&mut out);
        out.extend_from_slice(b"\",\"id\":");
        match &self.id {
            Some(id) => to_json(&mut out, id)?,
            None => {
                let id = new_id()?;
                let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
                out.push(b'"');
                out.extend_from_slice(id.hyphenated().encode_lower(&mut text).as_bytes());
                out.push(b'"');
            }
        }
        if self.details != Details::default() {
            write_fields(&mut out, &self.details).map_err(unwritable)?;
        }
        for (name, value) in self.extra.iter() {
            out.push(b',');
            to_json(&mut out, name)?;
            out.push(b':');
            out.extend_from_slice(value.as_str().as_bytes());
        }
        out.extend_from_slice(b",\"message\":");
        let message_at = out.len();
        match &self.body {
            DraftBody::Message(message) => message.write_json(&mut out).map_err(unwritable)?,
            DraftBody::Json(json) => out.extend_from_slice(json.as_str().as_bytes()),
        }
        Ok((out, message_at))
    }

    /// Returns the message, parsed if it came as text; `None` if it cannot be.
    pub fn message(&self) -> Option<Cow<'_, Message>> {
        match &self.body {
            DraftBody::Message(message) => Some(Cow::Borrowed(message)),
            DraftBody::Json(json) => serde_json::from_str(json.as_str()).ok().map(Cow::Owned),
        }
    }

    /// Returns whether parts of the message, encoded as `json`, may have to move to the
    /// payload file.
    pub(crate) fn may_have_parts(&self, json: &[u8]) -> bool {
        match &self.body {
            // Most messages are; they need not be searched.
            DraftBody::Message(message) if message.is_all_text() => json.len() > MAX_INLINE,
            _ => parts::may_have_parts(json),
        }
    }

    fn check(&self) -> Result<()> {
        let what = "this message cannot be recorded";
        check_name("id", self.id.as_deref(), what)?;
        self.details.check(what)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control)
}

fn to_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<()> {
    serde_json::to_writer(out, value).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::json("this message cannot be recorded", &error)
}

/// Fields of a record that only the engine sets.
const RESERVED: [&str; 6] = ["seq", "prev", "sum", "noted", "compacted", "version"];

fn read_draft(line: &str) -> Result<Draft, Reason> {
    let mut fields = read_object(line)?;
    if let Some(name) = fields.duplicate() {
        return Err(Reason::RepeatedField(name.to_owned()));
    }
    let native = fields.get("type").is_some() || fields.get("message").is_some();
    let body = if native {
        take_native_body(&mut fields)?
    } else {
        take_short_body(&mut fields)?
    };
    let mut draft = Draft::with_body(DraftBody::Json(body));
    draft.id = take(&mut fields, "id", "a string")?;
    draft.at = take(&mut fields, "at", "a time like 2026-11-15T08:00:00.000Z")?;
    draft.expect = take(&mut fields, "expect", "the number of a record")?;
    draft.details = Details::take(&mut fields)?;
    let unexpected = fields
        .iter()
        .map(|(name, _)| name)
        .find(|name| !native || RESERVED.contains(name));
    if let Some(name) = unexpected {
        return Err(Reason::UnexpectedField(name.to_owned()));
    }
    draft.extra = fields;
    Ok(draft)
}

pub(crate) fn read_object(line: &str) -> Result<Fields, Reason> {
    match serde_json::from_str(line) {
        Ok(fields) => Ok(fields),
        Err(error) if error.is_data() && !line.trim_start().starts_with('{') => {
            Err(Reason::NotAnObject)
        }
        Err(error) => Err(syntax(&error)),
    }
}

fn take_native_body(fields: &mut Fields) -> Result<Json, Reason> {
    let kind: String = take(fields, "type", "a string")?.ok_or(Reason::MissingType)?;
    if kind != "message" {
        return Err(Reason::UnsupportedType(kind));
    }
    let body = fields
        .take("message")
        .ok_or(Reason::MissingField("message"))?;
    check_message(body.as_str()).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => message_flaw(&body, &error),
        _ => syntax(&error),
    })?;
    Ok(body)
}

/// Returns the reason why JSON is not a message.
fn message_flaw(body: &Json, error: &serde_json::Error) -> Reason {
    let Ok(fields) = body.parse::<Fields>() else {
        return Reason::WrongField("message", "an object");
    };
    if fields.get("role").is_none() {
        return Reason::MissingField("role");
    }
    if fields.get("blocks").is_none() {
        return Reason::MissingField("blocks");
    }
    let Ok(blocks) = fields
        .get("blocks")
        .map_or(Ok(Vec::new()), Json::parse::<Vec<Json>>)
    else {
        return Reason::WrongField("blocks", "an array");
    };
    let untyped = |block: &Json| {
        let fields = block.parse::<Fields>();
        fields.is_ok_and(|fields| fields.get("type").is_none())
    };
    if blocks.iter().any(untyped) {
        return Reason::MissingType;
    }
    Reason::NotAMessage(without_line(&error.to_string()))
}

fn take_short_body(fields: &mut Fields) -> Result<Json, Reason> {
    let role = take_string(fields, "role")?;
    let text = take_string(fields, "text")?;
    role.parse::<String>()
        .map_err(|_| Reason::WrongField("role", "a string"))?;
    let body = format!(r#"{{"role":{role},"blocks":[{{"type":"text","text":{text}}}]}}"#);
    Json::new(body).map_err(|_| Reason::NotARecord)
}

/// Removes and returns a string as its literal.
fn take_string(fields: &mut Fields, name: &'static str) -> Result<Json, Reason> {
    let value = fields.take(name).ok_or(Reason::MissingField(name))?;
    if value.as_str().starts_with('"') {
        Ok(value)
    } else {
        Err(Reason::WrongField(name, "a string"))
    }
}

/// Removes and returns an optional field; `null` counts as absent.
pub(crate) fn take<T: serde::de::DeserializeOwned>(
    fields: &mut Fields,
    name: &'static str,
    must: &'static str,
) -> Result<Option<T>, Reason> {
    let Some(value) = fields.take(name) else {
        return Ok(None);
    };
    serde_json::from_str(value.as_str()).map_err(|_| {
        let text = value.as_str();
        let is_count = must.contains("number") && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = must == "a number" && text.starts_with(|c: char| c.is_ascii_digit());
        if is_count || is_number {
            Reason::OutOfRange(name)
        } else {
            Reason::WrongField(name, must)
        }
    })
}

fn syntax(error: &serde_json::Error) -> Reason {
    Reason::Syntax(without_line(&error.to_string()))
}

/// Removes "line 1" from a parser's message, because the input is always one line.
fn without_line(text: &str) -> String {
    text.replace("at line 1 column", "at column")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Role, ToolResult, ToolUse, Usage};

    fn json(message: &Message) -> String {
        let mut out = Vec::new();
        message.write_json(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn is_searched(message: Message) -> bool {
        let json = json(&message);
        let may = Draft::from(message).may_have_parts(json.as_bytes());
        assert!(may || parts::parts(&json, MAX_INLINE).is_empty(), "{json}");
        may
    }

    /// What the search looks for, in quoted form.
    const QUOTED: &str = r#"{"type":"image","data":"AAAA","payload":"blake3:00"} \u0070"#;

    #[test]
    fn what_is_all_text_has_no_parts_whatever_it_quotes() {
        let text = |text: &str| [Block::text(text), Block::signed_thinking(text, text)];
        let result = ToolResult::ok(QUOTED).answers(QUOTED, QUOTED);
        for message in [
            Message::user_text(QUOTED),
            Message::new(Role::from("\"data\" \"image\""), text(QUOTED)),
            Message::assistant(text(QUOTED)).usage(Usage::new(1, 2)),
            Message::tool_result(result),
        ] {
            assert!(!is_searched(message));
        }
        let long = "x".repeat(MAX_INLINE + 1);
        assert!(is_searched(Message::user_text(long)));
    }

    #[test]
    fn what_may_have_parts_is_searched_for_them() {
        let fields: Fields = serde_json::from_str(r#"{"x":{"payload":1}}"#).unwrap();
        let input = serde_json::json!({"payload": 1});
        let mut result = ToolResult::ok("");
        result.output = Json::from_value(&[&input]).unwrap();
        let mut texts = [Message::user_text("a"), Message::user_text("a")];
        texts[0].extra = fields.clone();
        texts[1].usage = Some(Usage {
            extra: fields.clone(),
            ..Usage::default()
        });
        let mut blocks = [Block::text("a"), Block::thinking("a")];
        for block in &mut blocks {
            match block {
                Block::Text(block) => block.extra = fields.clone(),
                Block::Thinking(block) => block.extra = fields.clone(),
                _ => unreachable!("there is no other"),
            }
        }
        let mut more = ToolResult::ok("");
        more.extra = fields;
        let messages = [
            Message::assistant([ToolUse::new("t", "n", &input).unwrap().into()]),
            Message::new(Role::User, [Block::image("image/png", "AAAA").unwrap()]),
            Message::tool_result(result),
            Message::tool_result(more),
        ];
        let blocks = blocks.map(|block| Message::new(Role::User, [block]));
        for message in messages.into_iter().chain(texts).chain(blocks) {
            assert!(is_searched(message));
        }
    }
}

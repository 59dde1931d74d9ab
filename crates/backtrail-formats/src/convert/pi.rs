//! Sessions for pi: a header, and an entry for each message and each result, in a chain by
//! `parentId`.

use std::io::{self, Write};

use backtrail::Json;
use backtrail::context::{
    HandOverCall, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart, ReplyPart,
};

use super::media::{MediaTypes, TakenMedia};
use super::steps::split;
use super::tools::ToolRow;
use super::{
    OutgoingSession, TargetFormat, object, raw, to_json, tool_table, with_millis, write_line,
};

pub(super) struct PiTarget;

impl TargetFormat for PiTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::PI
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::Images,
            in_results: MediaTypes::Images,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let header = object! {
            "type": "session",
            "version": 3,
            "id": session.new.id,
            "timestamp": with_millis(session.began()),
            "cwd": session.directory(),
        };
        write_line(out, &header)?;
        let mut chain = Chain {
            session,
            last: None,
            entries: 0,
        };
        let began = with_millis(session.began());
        chain.entry("session_info", &began, "name", &session.title, out)?;
        for message in &session.messages {
            match &message.content {
                HandOverContent::User(parts) => chain.user(message, parts, out)?,
                HandOverContent::Assistant { model, parts } => {
                    for parts in split(parts) {
                        chain.assistant(message, model.as_deref(), parts, out)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The entries so far.
struct Chain<'s> {
    session: &'s OutgoingSession<'s>,
    last: Option<String>,
    entries: usize,
}

impl Chain<'_> {
    fn user(
        &mut self,
        at: &HandOverMessage,
        parts: &[HandOverPart],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let message = object! {
            "role": "user",
            "content": parts.iter().map(part).collect::<Vec<_>>(),
            "timestamp": self.millis(at),
        };
        self.message(at, &message, out)
    }

    /// Writes a response, and the results of its calls.
    fn assistant(
        &mut self,
        at: &HandOverMessage,
        model: Option<&str>,
        parts: &[ReplyPart],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let has_calls = parts.iter().any(|part| matches!(part, ReplyPart::Call(_)));
        let (api, provider) = provider(model.unwrap_or_default());
        let message = object! {
            "role": "assistant",
            "content": parts.iter().map(reply_part).collect::<Vec<_>>(),
            "api": api,
            "provider": provider,
            "model": model.unwrap_or("unknown"),
            "usage": no_usage(),
            "stopReason": if has_calls { "toolUse" } else { "stop" },
            "timestamp": self.millis(at),
            "responseId": self.session.uuid(usize::MAX - self.entries),
        };
        self.message(at, &message, out)?;
        for part in parts {
            if let ReplyPart::Call(call) = part {
                self.result(at, call, out)?;
            }
        }
        Ok(())
    }

    fn result(
        &mut self,
        at: &HandOverMessage,
        call: &HandOverCall,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let message = object! {
            "role": "toolResult",
            "toolCallId": call.id,
            "toolName": call.name,
            "content": call.output.iter().map(part).collect::<Vec<_>>(),
            "isError": call.is_error,
            "timestamp": self.millis(at),
        };
        self.message(at, &message, out)
    }

    fn message(
        &mut self,
        at: &HandOverMessage,
        message: &Json,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let at = with_millis(self.session.time(at));
        self.entry("message", &at, "message", message, out)
    }

    /// Writes an entry with one field of its own.
    fn entry(
        &mut self,
        kind: &str,
        at: &str,
        name: &str,
        value: &(impl serde::Serialize + ?Sized),
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let id = self.session.uuid(self.entries);
        let mut fields = backtrail::Fields::default();
        fields.push("type", to_json(kind));
        fields.push("id", to_json(&id));
        fields.push("parentId", to_json(&self.last));
        fields.push("timestamp", to_json(at));
        fields.push(name, to_json(value));
        self.last = Some(id);
        self.entries += 1;
        write_line(out, &to_json(&fields))
    }

    fn millis(&self, at: &HandOverMessage) -> i64 {
        self.session.time(at).as_millis()
    }
}

/// Returns the protocol and the provider of a model, so that pi continues with the same model if
/// the user has it there too.
fn provider(model: &str) -> (&'static str, &'static str) {
    let starts = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
    if starts(&["claude-"]) {
        ("anthropic-messages", "anthropic")
    } else if starts(&["gpt-", "o1", "o3", "o4"]) {
        ("openai-responses", "openai")
    } else if starts(&["gemini-"]) {
        ("google-generative-ai", "google")
    } else {
        ("openai-completions", "unknown")
    }
}

/// Returns a usage of zeros: the session that the response comes from has counted it.
fn no_usage() -> Json {
    let cost = object! {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0};
    object! {
        "input": 0,
        "output": 0,
        "cacheRead": 0,
        "cacheWrite": 0,
        "totalTokens": 0,
        "cost": cost,
    }
}

fn part(part: &HandOverPart) -> Json {
    match part {
        HandOverPart::Text(text) => object! {"type": "text", "text": text},
        HandOverPart::Media(HandOverMedia { media_type, data }) => {
            object! {"type": "image", "data": data, "mimeType": media_type}
        }
    }
}

fn reply_part(part: &ReplyPart) -> Json {
    match part {
        ReplyPart::Text(text) => object! {"type": "text", "text": text},
        ReplyPart::Call(call) => object! {
            "type": "toolCall",
            "id": call.id,
            "name": call.name,
            "arguments": raw(&call.input),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{short, write};

    #[test]
    fn a_response_has_what_pi_needs() {
        let lines = write("pi", short("fix it")).lines();
        let reply = &lines[3]["message"];
        assert_eq!(reply["usage"]["totalTokens"], 0);
        assert_eq!(reply["usage"]["cost"]["total"], 0);
        assert_eq!(reply["stopReason"], "toolUse");
        assert_eq!(reply["provider"], "anthropic");
        assert_eq!(reply["api"], "anthropic-messages");
        let parents = lines[2..].iter().map(|line| &line["parentId"]);
        let ids = lines[1..].iter().map(|line| &line["id"]);
        assert!(parents.eq(ids.take(lines.len() - 2)));
    }
}

//! Sessions for Claude Code: a line for each message, in a chain by `parentUuid`.

use std::io::{self, Write};

use backtrail::Json;
use backtrail::context::{
    HandOverCall, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart, ReplyPart,
};

use super::media::{MediaTypes, TakenMedia};
use super::tools::ToolRow;
use super::{
    OutgoingSession, TargetFormat, object, raw, to_json, tool_table, with_millis, write_line,
};

pub(super) struct ClaudeCodeTarget;

/// The version whose lines these are.
const VERSION: &str = "2.1.325";

impl TargetFormat for ClaudeCodeTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::CLAUDE_CODE
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::ImagesAndPdf,
            in_results: MediaTypes::Images,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut chain = Chain {
            session,
            last: None,
            lines: 0,
        };
        for (n, message) in session.messages.iter().enumerate() {
            match &message.content {
                HandOverContent::User(parts) => {
                    let content: Vec<Json> = parts.iter().map(part).collect();
                    chain.user(message, &content, out)?;
                }
                HandOverContent::Assistant { model, parts } => {
                    chain.assistant(n, message, model.as_deref(), parts, out)?;
                }
            }
        }
        let title = object! {
            "type": "custom-title",
            "customTitle": session.title,
            "sessionId": session.new.id,
        };
        write_line(out, &title)
    }
}

/// The lines so far.
struct Chain<'s> {
    session: &'s OutgoingSession<'s>,
    last: Option<String>,
    lines: usize,
}

impl Chain<'_> {
    fn user(
        &mut self,
        at: &HandOverMessage,
        content: &[Json],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let message = object! {"role": "user", "content": content};
        self.line("user", at, &message, out)
    }

    /// Writes a response, and the results of its calls.
    fn assistant(
        &mut self,
        n: usize,
        at: &HandOverMessage,
        model: Option<&str>,
        parts: &[ReplyPart],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let content: Vec<Json> = parts.iter().map(reply_part).collect();
        let has_calls = parts.iter().any(|part| matches!(part, ReplyPart::Call(_)));
        let message = object! {
            "id": format!("msg_{}", self.session.uuid(usize::MAX - n).replace('-', "")),
            "type": "message",
            "role": "assistant",
            "model": model.unwrap_or("<synthetic>"),
            "content": content,
            "stop_reason": if has_calls { "tool_use" } else { "end_turn" },
            "stop_sequence": None::<&str>,
            "usage": object! {"input_tokens": 0, "output_tokens": 0},
        };
        self.line("assistant", at, &message, out)?;
        let calls = parts.iter().filter_map(|part| match part {
            ReplyPart::Call(call) => Some(result(call)),
            ReplyPart::Text(_) => None,
        });
        let results: Vec<Json> = calls.collect();
        match results.is_empty() {
            true => Ok(()),
            false => self.user(at, &results, out),
        }
    }

    fn line(
        &mut self,
        kind: &str,
        at: &HandOverMessage,
        message: &Json,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let uuid = self.session.uuid(self.lines);
        let line = object! {
            "parentUuid": self.last,
            "isSidechain": false,
            "userType": "external",
            "cwd": self.session.directory(),
            "sessionId": self.session.new.id,
            "version": VERSION,
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": with_millis(self.session.time(at)),
        };
        self.last = Some(uuid);
        self.lines += 1;
        write_line(out, &line)
    }
}

fn part(part: &HandOverPart) -> Json {
    match part {
        HandOverPart::Text(text) => object! {"type": "text", "text": text},
        HandOverPart::Media(media) => self::media(media),
    }
}

fn media(media: &HandOverMedia) -> Json {
    let kind = match media.media_type.starts_with("image/") {
        true => "image",
        false => "document",
    };
    let source = object! {
        "type": "base64",
        "media_type": media.media_type,
        "data": media.data,
    };
    object! {"type": kind, "source": source}
}

fn reply_part(part: &ReplyPart) -> Json {
    match part {
        ReplyPart::Text(text) => object! {"type": "text", "text": text},
        ReplyPart::Call(call) => object! {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": raw(&call.input),
        },
    }
}

fn result(call: &HandOverCall) -> Json {
    let content = match call.output.is_empty() {
        true => to_json(""),
        false => to_json(&call.output.iter().map(part).collect::<Vec<_>>()),
    };
    object! {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": content,
        "is_error": call.is_error,
    }
}

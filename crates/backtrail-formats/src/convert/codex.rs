//! Sessions for Codex: a rollout of items, which its model gets, and of events, which its screen
//! shows.
//!
//! There is no `turn_context`: it would put another program's settings in the place of the user's.
//! A result has the field `success`, which Codex ignores: its own results only say so in their text.

use std::io::{self, Write};

use backtrail::Json;
use backtrail::context::{
    HandOverCall, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart, ReplyPart,
};

use super::media::{MediaTypes, TakenMedia};
use super::tools::ToolRow;
use super::{
    OutgoingSession, TargetFormat, joined_text, object, to_json, tool_table, with_millis,
    write_line,
};

pub(super) struct CodexTarget;

/// The version whose lines these are.
const VERSION: &str = "0.166.0";

impl TargetFormat for CodexTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::CODEX
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::Images,
            in_results: MediaTypes::Images,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let began = with_millis(session.began());
        let id = &session.new.id;
        let meta = object! {
            "id": id,
            "session_id": id,
            "timestamp": began,
            "cwd": session.directory(),
            "originator": "codex_cli_rs",
            "cli_version": VERSION,
            "source": "cli",
        };
        line("session_meta", &began, &meta, out)?;
        for message in &session.messages {
            let at = with_millis(session.time(message));
            match &message.content {
                HandOverContent::User(parts) => prompt(&at, parts, out)?,
                HandOverContent::Assistant { parts, .. } => reply(&at, parts, out)?,
            }
        }
        let title = object! {
            "type": "thread_name_updated",
            "thread_id": id,
            "thread_name": session.title,
        };
        let last = session.messages.last();
        let ended = last.map_or(began, |last: &HandOverMessage| {
            with_millis(session.time(last))
        });
        line("event_msg", &ended, &title, out)
    }
}

fn line(kind: &str, at: &str, payload: &Json, out: &mut dyn Write) -> io::Result<()> {
    let line = object! {"timestamp": at, "type": kind, "payload": payload};
    write_line(out, &line)
}

fn prompt(at: &str, parts: &[HandOverPart], out: &mut dyn Write) -> io::Result<()> {
    let content: Vec<Json> = parts.iter().map(input).collect();
    // So it is a prompt, however its text starts.
    let kinds: Vec<&str> = parts.iter().map(kind).collect();
    let item = object! {
        "type": "message",
        "role": "user",
        "content": content,
        "internal_chat_message_metadata_passthrough": object! {"content_item_kinds": kinds},
    };
    line("response_item", at, &item, out)?;
    let images = parts.iter().filter_map(|part| match part {
        HandOverPart::Media(media) => Some(data_url(media)),
        HandOverPart::Text(_) => None,
    });
    let shown = object! {
        "type": "user_message",
        "message": joined_text(parts),
        "images": images.collect::<Vec<_>>(),
        "local_images": [(); 0],
        "text_elements": [(); 0],
    };
    line("event_msg", at, &shown, out)
}

/// Writes a response, and then the results of its calls.
fn reply(at: &str, parts: &[ReplyPart], out: &mut dyn Write) -> io::Result<()> {
    for part in parts {
        match part {
            ReplyPart::Text(text) => answer(at, text, out)?,
            ReplyPart::Call(call) => {
                let item = object! {
                    "type": "function_call",
                    "name": call.name,
                    "arguments": call.input,
                    "call_id": call.id,
                };
                line("response_item", at, &item, out)?;
            }
        }
    }
    for part in parts {
        if let ReplyPart::Call(call) = part {
            line("response_item", at, &result(call), out)?;
        }
    }
    Ok(())
}

fn answer(at: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let content = [object! {"type": "output_text", "text": text}];
    let item = object! {"type": "message", "role": "assistant", "content": content};
    line("response_item", at, &item, out)?;
    let shown = object! {"type": "agent_message", "message": text};
    line("event_msg", at, &shown, out)
}

fn result(call: &HandOverCall) -> Json {
    let output = match call.output.as_slice() {
        [] => to_json(""),
        [HandOverPart::Text(text)] if !looks_wrapped(text) => to_json(text),
        parts => to_json(&parts.iter().map(input).collect::<Vec<_>>()),
    };
    object! {
        "type": "function_call_output",
        "call_id": call.id,
        "output": output,
        "success": !call.is_error,
    }
}

/// Returns whether an output looks like the objects that older versions wrapped outputs in. Such a
/// text must be in a list.
fn looks_wrapped(text: &str) -> bool {
    let starts = ["{\"output\":", "{\"metadata\":"];
    starts
        .iter()
        .any(|start| text.trim_start().starts_with(start))
}

fn input(part: &HandOverPart) -> Json {
    match part {
        HandOverPart::Text(text) => object! {"type": "input_text", "text": text},
        HandOverPart::Media(media) => {
            object! {"type": "input_image", "image_url": data_url(media)}
        }
    }
}

fn kind(part: &HandOverPart) -> &'static str {
    match part {
        HandOverPart::Text(_) => "user.text",
        HandOverPart::Media(_) => "user.image",
    }
}

fn data_url(media: &HandOverMedia) -> String {
    format!("data:{};base64,{}", media.media_type, media.data)
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{short, write};

    #[test]
    fn a_rollout_has_what_codex_needs_and_leaves_the_settings_to_the_user() {
        let lines = write("codex", short("fix it")).lines();
        let meta = &lines[0]["payload"];
        for field in ["id", "timestamp", "cwd", "originator", "cli_version"] {
            assert!(meta[field].is_string(), "{field} in {meta}");
        }
        // Codex lists sessions of one provider: without a name, that of the user.
        assert!(meta["model_provider"].is_null());
        let kinds = lines.iter().map(|line| {
            let kind = line["payload"]["type"].as_str();
            kind.unwrap_or_else(|| line["type"].as_str().unwrap_or_default())
        });
        let expected = [
            "session_meta",
            "message",
            "user_message",
            "message",
            "agent_message",
            "function_call",
            "function_call_output",
            "thread_name_updated",
        ];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }
}

//! The older Kimi CLI: the context of a session, as JSON lines with a role each.
//!
//! The first line has a role of the agent's own, such as `_system_prompt`. When the context is
//! compacted or reverted, the agent starts a new file under the same name.

use backtrail::{Block, Message, Role, ToolResult};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::event::Details;
use crate::formats::blocks::{self, meta, starts_with_any};
use crate::formats::content::tool_calls;
use crate::formats::keys::valid_key;
use crate::formats::log::{LineReader, Log, SessionStart};
use crate::json::Object;
use crate::lines::first_line;
use crate::source::{Source, file_name};

/// Returns whether a file is a context.
pub(super) fn is_context(head: &[u8]) -> bool {
    Object::parse(&first_line(head)).is_ok_and(|first| {
        matches!(
            first.string("role").as_deref(),
            Some("_system_prompt" | "_checkpoint" | "_usage")
        )
    })
}

/// Returns what is known of a session: `<session>/context.jsonl`, with a state beside it.
pub(super) fn session_start(source: &Source) -> SessionStart {
    let folder = source.path().parent().and_then(|folder| folder.file_name());
    let folder = folder.and_then(|name| name.to_str());
    let is_in_folder = file_name(source.path()) == "context.jsonl";
    let name = folder.filter(|_| is_in_folder).unwrap_or(source.stem());
    SessionStart {
        session: valid_key(name),
        details: details(source),
        ..SessionStart::default()
    }
}

/// Returns the title that the user gave a session. The file's directory is a hash.
pub(super) fn details(source: &Source) -> Details {
    let bytes = source
        .read_beside("state.json".as_ref())
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let state = Object::parse(&text).unwrap_or_default();
    Details {
        title: state.trimmed("custom_title"),
        ..Details::default()
    }
}

/// Reads lines. They do not depend on each other.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ContextLines {}

impl LineReader for ContextLines {
    fn read(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let Some(role) = line.string("role") else {
            log.damaged("message without a role");
            return Ok(());
        };
        if matches!(role.as_ref(), "_checkpoint" | "_usage") {
            return Ok(());
        }
        let mut blocks = log.content(line.get("content"));
        let message = match role.as_ref() {
            "_system_prompt" | "system" => Message::new(Role::System, blocks),
            "user" if begins_with(&blocks, "<system>") => meta(Message::new(Role::User, blocks)),
            "user" => Message::new(Role::User, blocks),
            "assistant" => {
                blocks.extend(tool_calls(line, "tool_calls"));
                Message::new(Role::Assistant, blocks)
            }
            "tool" => Message::tool_result(ToolResult {
                is_error: begins_with(&blocks, "<system>ERROR"),
                ..blocks::tool_result(
                    line.text("tool_call_id"),
                    None,
                    blocks::tool_output(&blocks),
                )
            }),
            other => {
                log.unknown(&format!("role: {other}"));
                return Ok(());
            }
        };
        log.message(message)
    }
}

/// Returns whether the first block is a text that starts like this.
fn begins_with(blocks: &[Block], start: &str) -> bool {
    match blocks.first() {
        Some(Block::Text(block)) => starts_with_any(&block.text, &[start]),
        _ => false,
    }
}

//! Cursor: transcripts of its agent, as JSON lines.
//!
//! A line is a message with a role, and has neither a time nor an id. Prompts are wrapped in
//! `<user_query>`. The transcript of a sub-agent is in `subagents` beside its parent's.

use std::path::{Path, PathBuf};

use backtrail::{Message, Role};
use serde::{Deserialize, Serialize};

use super::content::unwrap_prompt;
use super::keys::valid_key;
use super::log::{LineReader, Log, SessionStart, open_log, resume_log};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, sub_agent_name};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::Object;
use crate::lines::first_line;
use crate::source::{Source, is_json_lines};

/// Cursor: transcripts of its agent, as JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct Cursor;

impl Format for Cursor {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["cursor-agent"],
            appends: true,
            sub_agents: true,
            media: true,
            ..Agent::new("cursor", "Cursor", "agent transcripts")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.below_home(&[".cursor/projects"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let in_transcripts = path
            .ancestors()
            .skip(1)
            .any(|above| above.ends_with("agent-transcripts"));
        is_json_lines(path) && in_transcripts
    }

    fn recognises(&self, source: &Source) -> bool {
        Object::parse(&first_line(&source.head())).is_ok_and(|first| is_message(&first))
    }

    fn is_sub_agent_file(&self, path: &Path) -> bool {
        parent_of(path).is_some()
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let details = chat_details(source);
        let own = valid_key(source.stem());
        let parent = parent_of(source.path()).map(valid_key);
        Ok(open_log::<CursorLines>(
            source,
            SessionStart {
                session: match &parent {
                    Some(parent) => valid_key(sub_agent_name(parent, &own)),
                    None => own,
                },
                parent,
                details,
                ..SessionStart::default()
            },
        ))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let details = chat_details(source);
        Ok(resume_log::<CursorLines>(source, resume, details))
    }
}

/// Returns whether a line is a message. Other agents' messages have a type.
fn is_message(line: &Object<'_>) -> bool {
    let role = line.string("role");
    let message = line.object("message");
    matches!(role.as_deref(), Some("user" | "assistant" | "system"))
        && message.is_some_and(|message| message.has("content"))
        && !line.has("type")
        && !line.has("uuid")
}

/// Returns the session that a sub-agent works for: `<session>/subagents/<agent>.jsonl`.
fn parent_of(path: &Path) -> Option<&str> {
    let folder = path.parent()?;
    let parent = folder.parent()?.file_name()?.to_str()?;
    folder.ends_with("subagents").then_some(parent)
}

/// Returns what describes the chat of a transcript: `chats/<workspace>/<chat>/meta.json` in the
/// directory that `projects/<project>/agent-transcripts/<chat>/<chat>.jsonl` is in.
fn chat_details(source: &Source) -> Details {
    let meta = Path::new(source.stem()).join("meta.json");
    let bytes = source.read_found_above(4, "chats", &meta);
    let bytes = bytes.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let chat = Object::parse(&text).unwrap_or_default();
    Details {
        title: chat.trimmed("title"),
        directory: chat.path("cwd"),
        started_at: chat.time("createdAtMs"),
        ended_at: chat.time("updatedAtMs"),
        ..Details::default()
    }
}

/// Reads lines. They do not depend on each other.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CursorLines {}

impl LineReader for CursorLines {
    fn read(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let Some(role) = line.string("role") else {
            match line.string("type").as_deref() {
                Some("turn_ended") => {}
                Some(kind) => log.unknown(kind),
                None => log.damaged("line without a role"),
            }
            return Ok(());
        };
        let message = line.object("message");
        let Some(content) = message.as_ref().and_then(|message| message.get("content")) else {
            log.damaged("message without content");
            return Ok(());
        };
        log.at = line.time("timestamp");
        match role.as_ref() {
            "user" => {
                let blocks = log.content(Some(content));
                log.prompt(blocks, |text| unwrap_prompt(text, "user_query"))?;
            }
            "assistant" => {
                log.set_model(line.string("model"))?;
                let blocks = log.content(Some(content));
                log.message(Message::new(Role::Assistant, blocks))?;
            }
            "system" => {
                let blocks = log.content(Some(content));
                log.message(Message::new(Role::System, blocks))?;
            }
            other => log.unknown(&format!("role: {other}")),
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;

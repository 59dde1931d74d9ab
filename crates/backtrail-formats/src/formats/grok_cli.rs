//! Grok CLI, by xAI: the history of a chat as JSON lines, with a summary beside it.
//!
//! A session is a directory. Lines have no time; `summary.json` has those of the session. A
//! sub-agent is a session of its own, which its parent lists in `subagents`.

use std::path::{Path, PathBuf};

use backtrail::{Block, Message, Role};
use serde::{Deserialize, Serialize};

use super::blocks::{self, meta, thinking};
use super::content::{content_blocks, result_output, tool_calls, tool_result};
use super::keys::valid_key;
use super::log::{LineReader, Log, SessionStart, open_log, resume_log};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::Details;
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::Object;
use crate::lines::first_line;
use crate::source::{Source, file_name};

/// Grok CLI, by xAI: the history of a chat as JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct GrokCli;

impl Format for GrokCli {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["grok"],
            appends: true,
            sub_agents: true,
            media: true,
            ..Agent::new("grok-cli", "Grok CLI", "1 (chat format)")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.folders("GROK_HOME", ".grok", &["sessions"])
    }

    /// What is below a session (compactions, copies of sub-agents) is not one.
    fn is_session_file(&self, path: &Path) -> bool {
        let is_below = |folder: &str| {
            path.ancestors()
                .skip(2)
                .any(|above| above.ends_with(folder))
        };
        file_name(path) == "chat_history.jsonl" && !is_below("subagents") && !is_below("compaction")
    }

    fn recognises(&self, source: &Source) -> bool {
        Object::parse(&first_line(&source.head())).is_ok_and(|first| is_first_line(&first))
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let bytes = source
            .read_beside("summary.json".as_ref())
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let summary = Object::parse(&text).unwrap_or_default();
        let info = summary.object("info").unwrap_or_default();
        let session = match info.non_blank("id") {
            Some(id) => valid_key(id),
            None => valid_key(directory_of(source).unwrap_or(source.stem())),
        };
        let is_sub_agent = summary.string("session_kind").as_deref() == Some("subagent");
        let parent = summary.non_blank("parent_session_id").map(valid_key);
        Ok(open_log::<GrokLines>(
            source,
            SessionStart {
                parent: parent.or_else(|| find_parent(source, is_sub_agent, &session)),
                session,
                details: details(&summary),
                ..SessionStart::default()
            },
        ))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let bytes = source
            .read_beside("summary.json".as_ref())
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let details = details(&Object::parse(&text).unwrap_or_default());
        Ok(resume_log::<GrokLines>(source, resume, details))
    }
}

/// Returns whether a line can be the first of a history: a system prompt, or a message with
/// fields that only this agent has.
fn is_first_line(line: &Object<'_>) -> bool {
    let foreign = [
        "id",
        "uuid",
        "timestamp",
        "sessionId",
        "session_id",
        "role",
        "message",
    ];
    let is_own = match line.string("type").as_deref() {
        Some("system") => line.string("content").is_some(),
        Some("user") => line.has("prompt_index") || line.has("synthetic_reason"),
        _ => false,
    };
    is_own && line.has("content") && !foreign.iter().any(|name| line.has(name))
}

/// Returns the name of the directory that a history is in.
fn directory_of(source: &Source) -> Option<&str> {
    let name = source.path().parent()?.file_name()?.to_str()?;
    (file_name(source.path()) == "chat_history.jsonl").then_some(name)
}

/// Returns the session that lists a sub-agent. It is beside it.
fn find_parent(source: &Source, is_sub_agent: bool, session: &str) -> Option<String> {
    if !is_sub_agent {
        return None;
    }
    let meta = Path::new("subagents").join(session).join("meta.json");
    let meta = source.find_above(1, "", &meta)?;
    let parent = meta.ancestors().nth(3)?.file_name()?.to_str()?;
    Some(valid_key(parent))
}

fn details(summary: &Object<'_>) -> Details {
    let info = summary.object("info").unwrap_or_default();
    let title = summary.trimmed("generated_title");
    Details {
        title: title.or_else(|| summary.trimmed("session_summary")),
        model: summary.trimmed("current_model_id"),
        directory: info.path("cwd"),
        started_at: summary.time("created_at"),
        ended_at: summary.time("updated_at"),
        ..Details::default()
    }
}

/// Reads lines. They do not depend on each other.
#[derive(Debug, Default, Serialize, Deserialize)]
struct GrokLines {}

impl LineReader for GrokLines {
    fn read(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let message = match line.string("type").as_deref() {
            Some("system") => Message::new(Role::System, log.content(line.get("content"))),
            Some("user") => {
                let message = Message::new(Role::User, log.content(line.get("content")));
                match line.has("synthetic_reason") {
                    true => meta(message),
                    false => message,
                }
            }
            Some("assistant") => {
                log.set_model(line.string("model_id"))?;
                reply(line, log)
            }
            Some("reasoning") => Message::assistant([reasoning(line)]),
            Some("tool_result") => Message::tool_result(result(line)),
            Some("backend_tool_call") => Message::assistant([backend_call(line)]),
            Some(other) => {
                log.unknown(other);
                return Ok(());
            }
            None => {
                log.damaged("line without a type");
                return Ok(());
            }
        };
        log.message(message)
    }
}

fn reply(line: &Object<'_>, log: &mut Log<'_>) -> Message {
    let thought = line.object("reasoning");
    let thought = thought.and_then(|thought| thought.text("text"));
    let thought = thought.map(|text| thinking(text, None));
    let mut blocks: Vec<_> = thought.into_iter().collect();
    blocks.extend(log.content(line.get("content")));
    blocks.retain(|block| !matches!(block, Block::Text(block) if block.text.is_empty()));
    blocks.extend(tool_calls(line, "tool_calls"));
    Message::new(Role::Assistant, blocks)
}

/// Returns the summary of what the model thought. The rest is encrypted.
fn reasoning(line: &Object<'_>) -> Block {
    let parts = content_blocks(line.get("summary"), &mut |_| {});
    let texts = parts.iter().filter_map(|part| match part {
        Block::Text(part) => Some(part.text.as_str()),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    thinking(texts.join("\n").into(), line.text("encrypted_content"))
}

fn result(line: &Object<'_>) -> backtrail::ToolResult {
    let mut result = tool_result(line);
    let images = line.list("images").unwrap_or_default();
    if images.is_empty() {
        return result;
    }
    let image = |json: &str| {
        let url = crate::json::to_text(json)?;
        blocks::data_url_block("image", &url)
    };
    let mut all = content_blocks(line.get("content"), &mut |_| {});
    all.extend(images.into_iter().filter_map(image));
    if let Some(output) = blocks::tool_output(&all) {
        result.output = output;
    }
    result
}

/// Returns a call that the provider carried out itself. It has no result.
fn backend_call(line: &Object<'_>) -> Block {
    let kind = line.object("kind").unwrap_or_default();
    let input = kind.get("action").and_then(result_output);
    blocks::tool_use(kind.text("id"), kind.text("tool_type"), input).into()
}

#[cfg(test)]
#[path = "grok_cli_tests.rs"]
mod tests;

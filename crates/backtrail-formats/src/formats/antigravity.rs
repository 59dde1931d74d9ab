//! Antigravity, by Google: the transcripts of conversations, as JSON lines.
//!
//! Each line is a step: a prompt, a response with its calls, the result of a call (whose type
//! names the tool), or a message of the system. Calls have no ids: their results come in the
//! same order. Long contents are truncated by the agent itself.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use backtrail::{Block, Message, Role, Text, ToolResult};
use serde::{Deserialize, Serialize};

use super::blocks::{self, meta_text, thinking};
use super::content::{text_output, tool_calls, unwrap_prompt};
use super::keys::{push_limited, valid_key};
use super::log::{LineReader, Log, SessionStart, open_log, resume_log};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::Details;
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::Object;
use crate::lines::first_line;
use crate::source::{Source, file_name};

/// Antigravity, by Google: the transcripts of conversations, as JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct Antigravity;

impl Format for Antigravity {
    fn agent(&self) -> Agent {
        Agent {
            appends: true,
            compactions: true,
            ..Agent::new("antigravity", "Antigravity", "transcripts of the CLI")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.below_home(&[".gemini/antigravity-cli/brain", ".gemini/antigravity/brain"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        file_name(path) == "transcript.jsonl"
    }

    fn recognises(&self, source: &Source) -> bool {
        Object::parse(&first_line(&source.head())).is_ok_and(|first| {
            let has = |name: &str| first.string(name).is_some();
            first.has("step_index") && has("type") && has("source") && has("status")
        })
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let start = SessionStart {
            session: valid_key(conversation_of(source.path()).unwrap_or(source.stem())),
            ..SessionStart::default()
        };
        Ok(open_log::<AntigravitySteps>(source, start))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let resumed = resume_log::<AntigravitySteps>(source, resume, Details::default());
        Ok(resumed)
    }
}

/// Returns the conversation: `<conversation>/.system_generated/logs/transcript.jsonl`.
fn conversation_of(path: &Path) -> Option<&str> {
    let generated = path.ancestors().nth(2)?;
    let conversation = generated.parent()?.file_name()?.to_str()?;
    generated
        .ends_with(".system_generated")
        .then_some(conversation)
}

/// How many calls of a response are remembered until their results come.
const REMEMBERED: usize = 32;

/// Reads steps, and remembers the calls that have no result yet.
#[derive(Debug, Default, Serialize, Deserialize)]
struct AntigravitySteps {
    responses: u64,
    calls: VecDeque<(String, String)>,
}

impl LineReader for AntigravitySteps {
    fn read(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let Some(kind) = line.string("type") else {
            log.damaged("step without a type");
            return Ok(());
        };
        log.at = line.time("created_at");
        let content = line.text("content");
        let source = line.string("source").unwrap_or_default();
        match (kind.as_ref(), source.as_ref()) {
            ("USER_INPUT", _) => {
                self.calls.clear();
                read_prompt(line, log)
            }
            ("PLANNER_RESPONSE", _) => self.read_response(line, log),
            ("CHECKPOINT", _) => log.summary(&content.unwrap_or_default(), 0),
            ("CONVERSATION_HISTORY" | "SYSTEM_MESSAGE", _) => match content {
                Some(content) => log.message(meta_text(content)),
                None => Ok(()),
            },
            (kind, "SYSTEM" | "USER_EXPLICIT") => {
                log.unknown(kind);
                Ok(())
            }
            (kind, _) => {
                if !is_tool(kind) {
                    log.unknown(kind);
                }
                let result = self.result(line, kind, content);
                log.message(Message::tool_result(result))
            }
        }
    }
}

/// Returns whether a type of step is known to be the result of a tool.
fn is_tool(kind: &str) -> bool {
    matches!(
        kind,
        "RUN_COMMAND"
            | "COMMAND_STATUS"
            | "VIEW_FILE"
            | "LIST_DIRECTORY"
            | "CODE_ACTION"
            | "SEARCH_WEB"
            | "READ_URL_CONTENT"
            | "GREP_SEARCH"
            | "FIND"
            | "MCP_TOOL"
            | "GENERIC"
    )
}

fn read_prompt(line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
    let content = line.text("content").unwrap_or_default();
    if let Some(model) = selected_model(&content) {
        log.set_model(Some(model.into()))?;
    }
    let is_own = !matches!(
        line.string("source").as_deref(),
        Some("SYSTEM" | "USER_IMPLICIT")
    );
    match is_own {
        true => log.prompt(vec![Block::text(content)], |text| {
            unwrap_prompt(text, "USER_REQUEST")
        }),
        false => log.message(meta_text(content)),
    }
}

/// Returns the model that the user chose before a prompt.
fn selected_model(content: &str) -> Option<&str> {
    let (_, change) = content.rsplit_once("`Model Selection` from ")?;
    let (_, model) = change.lines().next()?.split_once(" to ")?;
    let model = model.trim();
    Some(model.strip_suffix('.').unwrap_or(model))
}

impl AntigravitySteps {
    fn read_response(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        self.calls.clear();
        self.responses += 1;
        let is_filled = |text: &Text| !text.is_empty();
        let thought = line.text("thinking").filter(is_filled);
        let thought = thought.map(|text| thinking(text, None));
        let answer = line.text("content").filter(is_filled).map(Block::text);
        let mut blocks: Vec<_> = thought.into_iter().chain(answer).collect();
        for (n, mut block) in tool_calls(line, "tool_calls").into_iter().enumerate() {
            if let Block::ToolUse(call) = &mut block {
                if call.id.is_empty() {
                    call.id = format!("r{}.{n}", self.responses).into();
                }
                let name = call.name.chars().take(64).collect();
                let id: String = call.id.chars().take(64).collect();
                push_limited(&mut self.calls, (id, name), REMEMBERED);
            }
            blocks.push(block);
        }
        log.message(Message::new(Role::Assistant, blocks))
    }

    /// Returns the result of the next call.
    fn result(&mut self, line: &Object<'_>, kind: &str, content: Option<Text>) -> ToolResult {
        let (id, name) = match self.calls.pop_front() {
            Some((id, name)) => (Some(id.into()), name),
            None => (None, kind.to_lowercase()),
        };
        let status = line.string("status");
        let has_failed = matches!(status.as_deref(), Some("ERROR" | "FAILED" | "CANCELED"))
            || content.as_ref().is_some_and(|text| is_failed_command(text));
        ToolResult {
            is_error: has_failed,
            ..blocks::tool_result(id, Some(name.into()), text_output(content))
        }
    }
}

/// Returns whether the output of a command starts with its failure, after its times.
fn is_failed_command(output: &str) -> bool {
    let mut lines = output.lines().take(4).map(str::trim_start);
    lines.any(|line| line.starts_with("The command failed"))
}

#[cfg(test)]
#[path = "antigravity_tests.rs"]
mod tests;

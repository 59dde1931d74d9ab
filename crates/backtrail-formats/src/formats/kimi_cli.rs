//! Kimi CLI (Kimi Code): a journal of JSON lines for each agent of a session.
//!
//! The journal is `<session>/agents/<agent>/wire.jsonl`; `state.json` in the session's
//! directory describes the session. A response (a step) is written in parts, each on a line:
//! its texts and calls, the results of the calls, and at its end its usage. The older Kimi CLI
//! kept the context of a session instead.

mod context;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use backtrail::{Block, Message, Role, ToolResult, Usage};
use serde::{Deserialize, Serialize};

use super::blocks::{self, mark_meta};
use super::content::{any_text, result_output, tool_call, tool_calls};
use super::keys::{hash_name, push_limited, valid_key};
use super::log::{LineReader, Log, SessionStart, open_log, resume_log};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, sub_agent_name};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::Object;
use crate::lines::first_line;
use crate::source::{Source, file_name, trim};

use context::ContextLines;

/// Kimi CLI (Kimi Code): a journal of JSON lines for each agent of a session.
#[derive(Debug, Clone, Copy)]
pub struct KimiCli;

impl Format for KimiCli {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["kimi"],
            packages: &["kimi-cli"],
            appends: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new(
                "kimi-cli",
                "Kimi CLI",
                "Kimi Code (1.4), contexts of the older agent",
            )
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let mut all = environment.folders("KIMI_CODE_HOME", ".kimi-code", &["sessions"]);
        all.extend(environment.folders("KIMI_SHARE_DIR", ".kimi", &["sessions"]));
        all
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let is_below_agent = path.ancestors().any(|above| above.ends_with("subagents"));
        match file_name(path) {
            "wire.jsonl" => agent_of(path).is_some(),
            "context.jsonl" => !is_below_agent,
            _ => false,
        }
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        let has_header = Object::parse(&first_line(&head)).is_ok_and(|first| is_header(&first));
        (has_header && is_flat(&head)) || context::is_context(&head)
    }

    fn is_sub_agent_file(&self, path: &Path) -> bool {
        agent_of(path).is_some_and(|(_, agent)| agent != "main")
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let head = source.head();
        if context::is_context(&head) {
            let start = context::session_start(source);
            return Ok(open_log::<ContextLines>(source, start));
        }
        let mut start = SessionStart {
            session: valid_key(source.stem()),
            details: session_state(source),
            // Without a first line it may still become a context.
            is_unnamed: Object::parse(&first_line(&head)).is_err(),
            ..SessionStart::default()
        };
        if let Some((session, agent)) = agent_of(source.path()) {
            start.session = valid_key(session);
            if agent != "main" {
                start.details.title = None;
                start.parent = Some(start.session.clone());
                start.session = valid_key(sub_agent_name(&start.session, agent));
            }
        }
        Ok(open_log::<KimiLines>(source, start))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        if context::is_context(&source.head()) {
            let details = context::details(source);
            return Ok(resume_log::<ContextLines>(source, resume, details));
        }
        let mut details = session_state(source);
        if self.is_sub_agent_file(source.path()) {
            details.title = None;
        }
        Ok(resume_log::<KimiLines>(source, resume, details))
    }
}

fn is_header(line: &Object<'_>) -> bool {
    line.string("type").as_deref() == Some("metadata") && line.has("protocol_version")
}

/// Returns whether the second line has a type of its own. The older Kimi CLI has the same
/// header, and lines with a `message` of a type.
fn is_flat(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(trim);
    let second = lines.by_ref().filter(|line| !line.is_empty()).nth(1);
    let Some(second) = second.map(String::from_utf8_lossy) else {
        return true;
    };
    Object::parse(&second).map_or(true, |second| second.has("type"))
}

/// Returns the session and the agent of a journal: `<session>/agents/<agent>/wire.jsonl`.
fn agent_of(path: &Path) -> Option<(&str, &str)> {
    let folder = path.parent()?;
    let agents = folder.parent()?;
    let agent = folder.file_name()?.to_str()?;
    let session = agents.parent()?.file_name()?.to_str()?;
    agents.ends_with("agents").then_some((session, agent))
}

/// Returns what `state.json` says of a session.
fn session_state(source: &Source) -> Details {
    let bytes = agent_of(source.path()).and_then(|_| source.read_above(2, "state.json"));
    let bytes = bytes.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let state = Object::parse(&text).unwrap_or_default();
    Details {
        title: state.trimmed("title"),
        directory: state.path("workDir").or_else(|| state.path("cwd")),
        started_at: state.time("createdAt"),
        ..Details::default()
    }
}

/// How many prompts can be undone.
const REMEMBERED: usize = 64;

/// Reads lines, and remembers what they refer to.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KimiLines {
    /// A hash of the system prompt.
    system_prompt: Option<u64>,
    /// The keys of the events before the last prompts.
    prompts: VecDeque<Option<String>>,
    /// Usage that was counted, and may be on another line too.
    counted: Option<CountedUsage>,
}

/// Usage that was counted: of a step, or of a call.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct CountedUsage {
    is_step: bool,
    counts: [u64; 4],
}

impl LineReader for KimiLines {
    fn read(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let Some(kind) = line.string("type") else {
            log.damaged("line without a type");
            return Ok(());
        };
        log.at = line.time("time");
        match kind.as_ref() {
            "metadata" => log.details(Details {
                started_at: line.time("created_at"),
                ..Details::default()
            }),
            "config.update" | "profile.bind" => self.read_config(line, log),
            "llm.request" => log.set_model(line.non_blank("model")),
            "context.append_message" => self.read_message(line, log),
            "context.append_loop_event" => self.read_event(line, log),
            "context.apply_compaction" => {
                self.prompts.clear();
                let summary = any_text(line, &["contextSummary", "summary"]);
                log.summary(&summary.unwrap_or_default(), 0)
            }
            // Nothing stays in the context, and nothing says what was in it.
            "context.clear" => {
                self.prompts.clear();
                log.summary("", 0)
            }
            "context.undo" => self.undo(line, log),
            "usage.record" => self.read_usage(line, false, None, log),
            kind if is_known(kind) => Ok(()),
            other => {
                log.unknown(other);
                Ok(())
            }
        }
    }
}

/// Returns whether a type of line is known that says nothing of the conversation.
fn is_known(kind: &str) -> bool {
    let (group, _) = kind.split_once('.').unwrap_or((kind, ""));
    let groups = [
        "turn",
        "permission",
        "plan_mode",
        "swarm_mode",
        "full_compaction",
        "micro_compaction",
        "tools",
        "goal",
        "mcp",
        "plugin",
        "runtime",
        "token_counting",
    ];
    groups.contains(&group) || matches!(kind, "forked" | "llm.tools_snapshot")
}

impl KimiLines {
    fn read_config(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let disclosed = line.object("environmentDisclosure");
        let disclosed = disclosed.and_then(|disclosed| disclosed.path("cwd"));
        let directory = line.path("cwd").or(disclosed);
        if directory.is_some() {
            log.details(Details {
                directory,
                ..Details::default()
            })?;
        }
        // It is written again whenever something else changes.
        let prompt = line.text("systemPrompt").unwrap_or_default();
        let hash = Some(hash_name(&prompt));
        if prompt.is_empty() || hash == self.system_prompt {
            return Ok(());
        }
        self.system_prompt = hash;
        log.message(Message::system_text(prompt))
    }

    fn read_message(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let Some(body) = line.object("message") else {
            log.damaged("message line without a message");
            return Ok(());
        };
        let mut blocks = log.content(body.get("content"));
        let origin = body.object("origin");
        let origin = origin.and_then(|origin| origin.string("kind"));
        let message = match body.string("role").as_deref() {
            Some("user") => {
                let mut message = Message::new(Role::User, blocks);
                match origin.as_deref() {
                    None | Some("user") => {
                        push_limited(&mut self.prompts, log.last_key(), REMEMBERED);
                    }
                    Some(_) => mark_meta(&mut message),
                }
                message
            }
            Some("assistant") => {
                blocks.extend(tool_calls(&body, "toolCalls"));
                Message::new(Role::Assistant, blocks)
            }
            Some("tool") => Message::tool_result(ToolResult {
                is_error: body.is_true("isError"),
                ..blocks::tool_result(body.text("toolCallId"), None, blocks::tool_output(&blocks))
            }),
            Some("system") => Message::new(Role::System, blocks),
            Some(other) => {
                log.unknown(&format!("role: {other}"));
                return Ok(());
            }
            None => {
                log.damaged("message without a role");
                return Ok(());
            }
        };
        log.message(message)
    }

    /// Reads a part of a step.
    fn read_event(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let event = line.object("event").unwrap_or_default();
        let step = any_text(&event, &["stepUuid", "uuid"]);
        let response = step.map(|step| format!("{}#{}", log.session(), valid_key(&*step)));
        let message = match event.string("type").as_deref() {
            Some("step.begin") => return Ok(()),
            Some("step.end") => return self.read_usage(&event, true, response, log),
            Some("content.part") => Message::assistant(log.content(event.get("part"))),
            Some("tool.call") => match tool_call(&event) {
                Some(mut call) => {
                    call.id = event.text("toolCallId").unwrap_or(call.id);
                    Message::assistant([Block::from(call)])
                }
                None => {
                    log.damaged("call without a name");
                    return Ok(());
                }
            },
            Some("tool.result") => Message::tool_result(result_of(&event)),
            Some(other) => {
                log.unknown(&format!("event: {other}"));
                return Ok(());
            }
            None => {
                log.damaged("event without a type");
                return Ok(());
            }
        };
        let response = response.filter(|_| message.role == Role::Assistant);
        log.reply(message, response)
    }

    /// Reads usage. That of a step is on the step's last line, and again on a line of its own,
    /// which other calls have alone.
    fn read_usage(
        &mut self,
        line: &Object<'_>,
        is_step: bool,
        response: Option<String>,
        log: &mut Log<'_>,
    ) -> Result<()> {
        let Some(counts) = line.object("usage") else {
            return Ok(());
        };
        let names = [
            "inputOther",
            "output",
            "inputCacheRead",
            "inputCacheCreation",
        ];
        let counts = names.map(|name| counts.number(name).unwrap_or(0));
        let other = CountedUsage {
            is_step: !is_step,
            counts,
        };
        if self.counted.as_ref() == Some(&other) {
            self.counted = None;
            return Ok(());
        }
        self.counted = Some(CountedUsage { is_step, counts });
        let [input, output, read, creation] = counts;
        let usage = Usage::new(input, output)
            .cache_read(read)
            .cache_creation(creation);
        let duration = line.number("llmFirstTokenLatencyMs").unwrap_or(0);
        let duration = line
            .number("llmStreamDurationMs")
            .map(|streamed| streamed.saturating_add(duration));
        log.usage(usage, response, duration)
    }

    /// Undoes the last prompts, if there are as many since the last summary.
    fn undo(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let count = line.number("count").unwrap_or(0);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let Some(at) = self.prompts.len().checked_sub(count) else {
            return Ok(());
        };
        if let Some(before) = self.prompts.get(at).cloned() {
            self.prompts.truncate(at);
            log.rewind_to(before.as_deref())?;
        }
        Ok(())
    }
}

fn result_of(event: &Object<'_>) -> ToolResult {
    let result = event.object("result").unwrap_or_default();
    let output = result.get("output").and_then(result_output);
    ToolResult {
        is_error: result.is_true("isError"),
        ..blocks::tool_result(event.text("toolCallId"), None, output)
    }
}

#[cfg(test)]
#[path = "kimi_cli_tests.rs"]
mod tests;

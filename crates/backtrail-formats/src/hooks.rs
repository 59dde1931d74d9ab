//! What agents report through their hooks, as one event, and what a hook prints for them.
//!
//! [`hook_event`] reads the payload that an agent passes to its hook. It needs nothing but
//! the fields of [`HookEvent`]: fields that are missing, of another type or too long are
//! absent in the event, unknown ones are skipped. [`hook_answer`] writes what the agent
//! expects on stdout.
//!
//! # Payloads
//!
//! | agent | its event | session | transcript | directory | call | failed |
//! |---|---|---|---|---|---|---|
//! | Claude Code | `hook_event_name` | `session_id` | `transcript_path` | `cwd` | `tool_use_id` | by the event |
//! | Codex | `hook_event_name`; `type` of `notify` | `session_id`; `thread-id` | `transcript_path` | `cwd` | `tool_use_id` | not said |
//! | Gemini CLI | `hook_event_name` | `session_id` | `transcript_path` | `cwd` | none | `tool_response.error` |
//! | Qwen Code | `hook_event_name` | `session_id` | `transcript_path` | `cwd` | `tool_call_id` | by the event |
//! | Copilot CLI | **`--event`**, else guessed from the fields | `sessionId` | `transcriptPath`, at the end of a turn | `cwd` | none | `toolResult.resultType` |
//! | Cline | `hookName` | `sessionContext.rootSessionId` | none | `workspaceInfo.rootPath` | `tool_call.id` | `postToolUse.success` |
//! | opencode | `event.type`, or **`--event`**, else guessed | `input.sessionID`, `event.properties.sessionID` | none | `directory` | `input.callID` | not said |
//! | pi | `type` | `session_id` | `transcript_path` | `cwd` | `toolCallId` | `isError` |
//!
//! The name that a payload has counts before the one of `--event`.
//!
//! Our own plugin for opencode passes on `{"input", "output", "directory"}` of its hooks and
//! `{"event", "directory"}` of its event bus (an event without that frame is read as well). Our
//! own extension for pi passes on the event, with `session_id`, `transcript_path` and
//! `cwd` of the session. It reports a prompt once: by `input`, which also tells of prompts
//! during a turn, or by `before_agent_start`.
//!
//! Two events are not what their names say:
//!
//! - Qwen Code sends `UserPromptSubmit` again for each batch of tool results. That one has no
//!   `submitted_prompt` and a blank `prompt`, and is not a prompt here. Where a version of Qwen
//!   Code fills in the text, [`HookEvent::turn`] is the same as that of the prompt.
//! - Gemini CLI sends `PreCompress` before each request, so it is not a compaction here.
//!
//! # Answers
//!
//! | agent | line for the user | line for the model | otherwise | source |
//! |---|---|---|---|---|
//! | Claude Code | `systemMessage` | `hookSpecificOutput.additionalContext` of `SessionStart` and `UserPromptSubmit` | nothing | code.claude.com/docs/en/hooks |
//! | Codex | the same | the same | nothing | output schemas in its source, codex-rs/hooks/schema |
//! | Qwen Code | the same | the same | `{}` | docs/users/features/hooks.md of its source |
//! | Gemini CLI | `systemMessage` | the same, of `SessionStart` and `BeforeAgent` | `{}` | docs/hooks/reference.md of its source |
//! | Copilot CLI | none | `additionalContext` of `userPromptSubmitted`, since 1.0.65 | nothing | its hooks reference on docs.github.com; its changelog |
//! | Cline | none | `contextModification` of `PreToolUse` | `{"cancel":false}` before tools, else nothing | docs.cline.bot/customization/hooks |
//! | opencode, pi | `show` at the start and of a prompt | `context` of a prompt | nothing | our own plugin and extension |
//!
//! Gemini CLI and Qwen Code take stderr for the answer where stdout is empty; hence `{}`.

mod agents;
mod answer;
mod payload;
mod status_line;

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use agents::{AGENTS, Failed, HookAgent};
pub use answer::{hook_answer, hook_shows, hook_takes_context};
use payload::Payload;
pub use status_line::{StatusReport, UsageLimit, context_at_end, status_report};

use crate::names::agent_called;

/// The largest payload that is read.
pub const MAX_HOOK_PAYLOAD: usize = 64 << 20;
/// How much of a prompt's text is kept.
pub const MAX_HOOK_PROMPT: usize = 64 << 10;

/// What an agent reported through a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookEvent {
    /// The agent's name, as in the list of formats.
    pub agent: &'static str,
    /// What happened.
    pub kind: HookKind,
    /// The agent's own id of the session.
    pub session: Option<String>,
    /// The agent's own id of the prompt or turn.
    pub turn: Option<String>,
    /// The session's file.
    pub transcript: Option<PathBuf>,
    /// The directory that the agent works in.
    pub directory: Option<PathBuf>,
    /// The sub-agent, if the event is one's: its id, or its name if it has no id.
    pub sub_agent: Option<String>,
}

/// What happened in an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookKind {
    /// A session begins or is continued.
    SessionStart {
        /// How it began.
        source: StartSource,
    },
    /// A session ends.
    SessionEnd,
    /// The user submitted a prompt.
    Prompt {
        /// Its text, or the first [`MAX_HOOK_PROMPT`] bytes of it.
        text: Option<String>,
    },
    /// A tool is about to run.
    ToolStart {
        /// The id of the call, as in the transcript.
        call: Option<String>,
        /// The tool's name; empty if the agent did not name it.
        name: String,
        /// Whether the tool may change files.
        effect: ToolEffect,
    },
    /// A tool has run.
    ToolEnd {
        /// The id of the call, as in the transcript.
        call: Option<String>,
        /// The tool's name; empty if the agent did not name it.
        name: String,
        /// Whether the tool may have changed files.
        effect: ToolEffect,
        /// Whether it failed, if the agent said so.
        failed: Option<bool>,
    },
    /// The agent finished its answer to a prompt, was interrupted, or gave up.
    TurnEnd,
    /// A sub-agent begins.
    SubAgentStart,
    /// A sub-agent ends.
    SubAgentEnd,
    /// The agent is about to compact its context.
    Compaction,
    /// Another event, by its name.
    Other(String),
}

/// How a session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartSource {
    /// It is new.
    Startup,
    /// It continues an earlier one.
    Resume,
    /// The conversation was cleared.
    Clear,
    /// The context was compacted.
    Compact,
    /// In another way, or the agent did not say how.
    Other,
}

/// Whether a tool may change the files of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    /// It is known that it does not.
    ReadsOnly,
    /// It does, or nothing is known about it.
    MayChangeFiles,
}

/// Why there is no event in a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookError {
    /// The agent has no hooks, or is not known.
    UnknownAgent {
        /// Its name.
        name: String,
    },
    /// Nothing was passed.
    Empty,
    /// The payload is larger than [`MAX_HOOK_PAYLOAD`].
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// The payload is not a JSON object.
    NotAnObject {
        /// The reason.
        reason: String,
    },
    /// Neither the payload nor the caller names the event.
    NoEvent {
        /// The agent.
        agent: &'static str,
    },
}

/// Reads what an agent passed to its hook. `event` is the name of the event, for agents that
/// do not write it into the payload.
///
/// # Errors
///
/// Fails if the agent is unknown, the payload is not a JSON object or too large, or the event
/// has no name.
pub fn hook_event(
    agent: &str,
    event: Option<&str>,
    payload: &[u8],
) -> Result<HookEvent, HookError> {
    let agent = agent_named(agent).ok_or_else(|| HookError::UnknownAgent {
        name: agent.to_owned(),
    })?;
    let text = payload_text(payload)?;
    let replaced = matches!(text, Cow::Owned(_));
    let payload = Payload::parse(&text, replaced, &agent.paths())
        .map_err(|reason| HookError::NotAnObject { reason })?;
    let fields = agent.fields;
    let name = payload.id(fields.event);
    let given = || event.filter(|name| payload::is_id(name)).map(str::to_owned);
    let guessed = || agent.guess(&payload).map(str::to_owned);
    let Some(name) = name.or_else(given).or_else(guessed) else {
        return Err(HookError::NoEvent { agent: agent.name });
    };
    let is_sub_agent = fields.parent.is_empty() || payload.has_any(fields.parent);
    Ok(HookEvent {
        agent: agent.name,
        kind: kind(agent, &payload, name),
        session: payload.id(fields.session),
        turn: payload.id(fields.turn),
        transcript: payload.path(fields.transcript),
        directory: payload.path(fields.directory),
        sub_agent: payload.id(fields.sub_agent).filter(|_| is_sub_agent),
    })
}

/// Returns the names of the agents whose hooks are known.
pub fn hook_agents() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().map(|agent| agent.name)
}

/// What an agent's event means.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    SessionStart,
    SessionResume,
    SessionEnd,
    Prompt,
    ToolStart,
    /// A tool has run; the payload may say whether it failed.
    ToolEnd,
    /// A tool has run and did not fail.
    ToolDone,
    ToolFailed,
    TurnEnd,
    SubAgentStart,
    SubAgentEnd,
    Compaction,
}

fn agent_named(name: &str) -> Option<&'static HookAgent> {
    let of = |name: &str| AGENTS.iter().find(|agent| agent.name == name);
    of(name).or_else(|| of(agent_called(name)?.name()))
}

/// Returns a payload as text. Bytes that are not UTF-8 are replaced: most of a payload is
/// not read, and the event is worth more than those bytes.
fn payload_text(payload: &[u8]) -> Result<Cow<'_, str>, HookError> {
    let payload = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
    if payload.trim_ascii().is_empty() {
        return Err(HookError::Empty);
    }
    if payload.len() > MAX_HOOK_PAYLOAD {
        return Err(HookError::TooLarge {
            bytes: payload.len(),
        });
    }
    Ok(match simdutf8::basic::from_utf8(payload) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(payload),
    })
}

fn kind(agent: &HookAgent, payload: &Payload<'_>, event: String) -> HookKind {
    let Some(meaning) = agent.meaning(&event) else {
        return HookKind::Other(event);
    };
    // A sub-agent that is a session of its own begins and ends like one.
    let is_below = payload.has_any(agent.fields.parent);
    match meaning {
        Meaning::SessionStart | Meaning::SessionResume if is_below => HookKind::SubAgentStart,
        Meaning::SessionEnd | Meaning::TurnEnd if is_below => HookKind::SubAgentEnd,
        Meaning::SessionStart => HookKind::SessionStart {
            source: start_source(agent, payload),
        },
        Meaning::SessionResume => HookKind::SessionStart {
            source: StartSource::Resume,
        },
        Meaning::SessionEnd => HookKind::SessionEnd,
        Meaning::Prompt => match prompt(agent, payload) {
            None if agent.fields.blank_prompt_continues => HookKind::Other(event),
            text => HookKind::Prompt { text },
        },
        Meaning::ToolStart => tool_start(agent, payload),
        Meaning::ToolEnd => tool_end(agent, payload, failed(agent, payload)),
        Meaning::ToolDone => tool_end(agent, payload, Some(false)),
        Meaning::ToolFailed => tool_end(agent, payload, Some(true)),
        Meaning::TurnEnd => HookKind::TurnEnd,
        Meaning::SubAgentStart => HookKind::SubAgentStart,
        Meaning::SubAgentEnd => HookKind::SubAgentEnd,
        Meaning::Compaction => HookKind::Compaction,
    }
}

fn start_source(agent: &HookAgent, payload: &Payload<'_>) -> StartSource {
    // Agents that do not say it have another event for a session that continues.
    if agent.fields.source.is_empty() {
        return StartSource::Startup;
    }
    match payload.text(agent.fields.source).as_deref() {
        Some("startup" | "new") => StartSource::Startup,
        Some("resume") => StartSource::Resume,
        Some("clear") => StartSource::Clear,
        Some("compact") => StartSource::Compact,
        _ => StartSource::Other,
    }
}

/// Returns the text of a prompt, if there is any.
fn prompt(agent: &HookAgent, payload: &Payload<'_>) -> Option<String> {
    if let Some(text) = payload.text(agent.fields.prompt) {
        return Some(cut(&text, MAX_HOOK_PROMPT).to_owned());
    }
    let mut parts = agent.fields.parts.iter();
    let list = parts.find_map(|path| payload.json(path))?;
    let mut prompt = String::new();
    payload::each_text(list, |text| {
        if !prompt.is_empty() {
            prompt.push('\n');
        }
        prompt.push_str(cut(text, MAX_HOOK_PROMPT.saturating_sub(prompt.len())));
        prompt.len() < MAX_HOOK_PROMPT
    });
    (!prompt.is_empty()).then_some(prompt)
}

/// Cuts a text at a length, before the character that does not fit.
fn cut(text: &str, length: usize) -> &str {
    let mut ends = (0..=length.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

fn tool_start(agent: &HookAgent, payload: &Payload<'_>) -> HookKind {
    let name = payload.id(agent.fields.tool).unwrap_or_default();
    HookKind::ToolStart {
        call: payload.id(agent.fields.call),
        effect: effect(agent, payload, &name),
        name,
    }
}

fn tool_end(agent: &HookAgent, payload: &Payload<'_>, failed: Option<bool>) -> HookKind {
    let name = payload.id(agent.fields.tool).unwrap_or_default();
    HookKind::ToolEnd {
        call: payload.id(agent.fields.call),
        effect: effect(agent, payload, &name),
        name,
        failed,
    }
}

/// Returns whether a tool may change files. A tool of an MCP server may, whatever its name.
fn effect(agent: &HookAgent, payload: &Payload<'_>, tool: &str) -> ToolEffect {
    match agent.read_only.contains(&tool) && !payload.has_any(agent.fields.mcp) {
        true => ToolEffect::ReadsOnly,
        false => ToolEffect::MayChangeFiles,
    }
}

/// Returns whether a tool failed, as far as the payload says it.
fn failed(agent: &HookAgent, payload: &Payload<'_>) -> Option<bool> {
    let mut rules = agent.fields.failed.iter();
    rules.find_map(|rule| match rule {
        Failed::If(path) => Some(payload.has(path)),
        Failed::IfTrue(path) => payload.boolean(path),
        Failed::IfFalse(path) => payload.boolean(path).map(|succeeded| !succeeded),
        Failed::UnlessSuccess(path) => Some(payload.text(&[path])? != "success"),
    })
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAgent { name } => {
                let known: Vec<_> = hook_agents().collect();
                write!(
                    f,
                    "no hooks are known of {name:?}, only of {}",
                    known.join(", ")
                )
            }
            Self::Empty => f.write_str("the hook's input is empty; the agent passes JSON on stdin"),
            Self::TooLarge { bytes } => write!(
                f,
                "the hook's input has {bytes} bytes; at most {MAX_HOOK_PAYLOAD} are read"
            ),
            Self::NotAnObject { reason } => {
                write!(f, "the hook's input is not a JSON object: {reason}")
            }
            Self::NoEvent { agent } => write!(
                f,
                "the hook's input of {agent} does not name its event; pass --event NAME"
            ),
        }
    }
}

impl std::error::Error for HookError {}

//! Sessions in the form of other agents, which continue them.
//!
//! A [`HandOver`] has what every agent understands. [`Target::prepare`] puts it in the target's
//! own words: its tools and their arguments (`tools`), its directory, the media that it takes.
//! One module for each target then writes the file that the agent reads. What had no place on
//! the way is counted in [`Losses`].

mod atif;
mod claude_code;
pub(crate) mod cline;
mod codex;
mod copilot_cli;
mod gemini_cli;
mod google;
mod goose;
mod hf_traces;
mod losses;
mod media;
mod openai_chat;
pub(crate) mod opencode;
#[cfg(test)]
mod pair_tests;
mod paths;
mod pi;
mod qwen_code;
#[cfg(test)]
mod read_back;
#[cfg(test)]
mod round_trip_tests;
mod steps;
mod tool_table;
mod tools;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use backtrail::context::{
    HandOver, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart, ReplyPart,
};
use backtrail::{Json, Timestamp};
use serde::Serialize;

use crate::launch::NewSession;

pub use losses::{Loss, Losses};
use media::TakenMedia;
use tools::ToolRow;

/// What is particular to the sessions that are written for one agent.
trait TargetFormat: Sync {
    /// Returns the tools of the agent that other agents have too.
    fn tools(&self) -> &'static [ToolRow];

    /// Returns which images and documents the agent takes.
    fn media(&self) -> TakenMedia;

    /// Writes the session: the file that the agent finds, or that its import command reads.
    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()>;

    /// Returns small files that go beside the session's file `main`, with their content.
    fn companions(&self, session: &OutgoingSession<'_>, main: &Path) -> Vec<(PathBuf, String)> {
        let _ = (session, main);
        Vec::new()
    }
}

/// An agent, or another program, for which sessions can be written.
#[derive(Clone, Copy)]
pub struct Target {
    name: &'static str,
    title: &'static str,
    writer: &'static dyn TargetFormat,
}

/// All targets. Those that can be read too are called as their formats are.
const TARGETS: &[Target] = &[
    Target::new("claude-code", "Claude Code", &claude_code::ClaudeCodeTarget),
    Target::new("codex", "Codex", &codex::CodexTarget),
    Target::new("gemini-cli", "Gemini CLI", &gemini_cli::GeminiCliTarget),
    Target::new("opencode", "opencode", &opencode::OpenCodeTarget),
    Target::new("qwen-code", "Qwen Code", &qwen_code::QwenCodeTarget),
    Target::new("copilot-cli", "Copilot CLI", &copilot_cli::CopilotCliTarget),
    Target::new("pi", "pi", &pi::PiTarget),
    Target::new("cline", "Cline", &cline::ClineTarget),
    Target::new("goose", "goose", &goose::GooseTarget),
    Target::new("atif", "ATIF", &atif::AtifTarget),
    Target::new(
        "hf-traces",
        "Hugging Face session traces",
        &hf_traces::HfTracesTarget,
    ),
    Target::new("openai-chat", "OpenAI chat", &openai_chat::OpenAiChatTarget),
];

/// A session in a target's own words, ready to be written.
pub struct OutgoingSession<'n> {
    /// The new session.
    new: &'n NewSession<'n>,
    title: String,
    /// The messages, each with its time.
    messages: Vec<HandOverMessage>,
}

/// Returns everything for which sessions can be written.
pub fn targets() -> impl Iterator<Item = Target> {
    TARGETS.iter().copied()
}

/// Returns the target with this name. `None` if no sessions can be written for it.
pub fn target(name: &str) -> Option<Target> {
    targets().find(|target| target.name == name)
}

impl Target {
    const fn new(
        name: &'static str,
        title: &'static str,
        writer: &'static dyn TargetFormat,
    ) -> Self {
        Self {
            name,
            title,
            writer,
        }
    }

    /// Returns the target's name on the command line.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the target's name for people.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Puts a conversation in the target's own words. `directory` is where it was, if that is
    /// known.
    pub fn prepare<'n>(
        &self,
        hand_over: HandOver,
        title: &str,
        directory: Option<&Path>,
        new: &'n NewSession<'n>,
    ) -> (OutgoingSession<'n>, Losses) {
        let mut losses = Losses::of(&hand_over);
        let mut messages = hand_over.messages;
        if let Some(summary) = hand_over.summary {
            add_summary(&mut messages, &summary);
        }
        add_times(&mut messages, new.at);
        let moved = directory.and_then(|old| paths::Moved::new(old, &new.directory));
        let taken = self.writer.media();
        for message in &mut messages {
            match &mut message.content {
                HandOverContent::User(parts) => {
                    taken.keep_in_prompt(parts, &mut losses);
                }
                HandOverContent::Assistant { parts, .. } => {
                    for part in parts {
                        let ReplyPart::Call(call) = part else {
                            continue;
                        };
                        tools::rename(call, self.writer.tools());
                        if let Some(moved) = &moved {
                            moved.rewrite(&mut call.input);
                        }
                        taken.keep_in_result(&mut call.output, &mut losses);
                    }
                }
            }
        }
        let title = title.to_owned();
        let session = OutgoingSession {
            new,
            title,
            messages,
        };
        (session, losses)
    }

    /// Writes a session.
    ///
    /// # Errors
    ///
    /// Fails if `out` cannot be written.
    pub fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.writer.write(session, out)
    }

    /// Returns small files that go beside the session's file `main`, with their content.
    pub fn companions(&self, session: &OutgoingSession<'_>, main: &Path) -> Vec<(PathBuf, String)> {
        self.writer.companions(session, main)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Target").field(&self.name).finish()
    }
}

/// Puts the summary of what came before into the first message.
fn add_summary(messages: &mut Vec<HandOverMessage>, summary: &str) {
    let text = format!("This is a summary of the conversation up to this point:\n\n{summary}");
    let part = HandOverPart::Text(text);
    match messages.first_mut() {
        Some(HandOverMessage {
            content: HandOverContent::User(parts),
            ..
        }) => parts.insert(0, part),
        first => {
            let (seq, at) = first.map_or((0, None), |first| (first.seq, first.at));
            let content = HandOverContent::User(vec![part]);
            messages.insert(0, HandOverMessage { seq, at, content });
        }
    }
}

/// Gives each message a time, none of which is before an earlier message's.
fn add_times(messages: &mut [HandOverMessage], now: Timestamp) {
    let first = messages.iter().find_map(|message| message.at);
    let mut last = first.unwrap_or(now);
    for message in messages {
        last = message.at.map_or(last, |at| at.max(last));
        message.at = Some(last);
    }
}

impl OutgoingSession<'_> {
    /// Returns how many messages it has.
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// Returns the time of a message.
    fn time(&self, message: &HandOverMessage) -> Timestamp {
        message.at.unwrap_or(self.new.at)
    }

    /// Returns when the session began.
    fn began(&self) -> Timestamp {
        let first = self.messages.first();
        first.map_or(self.new.at, |message| self.time(message))
    }

    /// Returns the directory that the session continues in.
    fn directory(&self) -> &str {
        self.new.directory.to_str().unwrap_or_default()
    }

    /// Makes an id for a part of the session: the same every time, and another for every `n`.
    fn uuid(&self, n: usize) -> String {
        let mut random = [0; 16];
        random.copy_from_slice(&self.random(n)[..16]);
        let id = uuid::Builder::from_random_bytes(random).into_uuid();
        id.hyphenated().to_string()
    }

    /// Returns bytes that look random: the same every time, and others for every `n`.
    fn random(&self, n: usize) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.new.id.as_bytes());
        hasher.update(&(n as u64).to_le_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// Returns a time with milliseconds: `2026-11-15T08:00:00.000Z`.
fn with_millis(at: Timestamp) -> String {
    Timestamp::from_millis(at.as_millis())
        .unwrap_or(at)
        .to_string()
}

/// Joins the texts of parts by newlines.
fn joined_text(parts: &[HandOverPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        HandOverPart::Text(text) => Some(text.as_str()),
        HandOverPart::Media(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the images and documents among parts.
fn media_in(parts: &[HandOverPart]) -> impl Iterator<Item = &HandOverMedia> {
    parts.iter().filter_map(|part| match part {
        HandOverPart::Media(media) => Some(media),
        HandOverPart::Text(_) => None,
    })
}

/// Returns the `data:` URL of an image or document.
fn data_url(media: &HandOverMedia) -> String {
    format!("data:{};base64,{}", media.media_type, media.data)
}

/// Returns JSON text as a value that keeps its bytes.
fn raw(json: &str) -> Json {
    Json::new(json).expect("the input of a call is a JSON object")
}

/// Returns a value as JSON.
fn to_json<T: Serialize + ?Sized>(value: &T) -> Json {
    Json::from_value(value).expect("texts, numbers and lists are always JSON")
}

/// Writes a value on a line of its own.
fn write_line(out: &mut dyn Write, json: &Json) -> io::Result<()> {
    out.write_all(json.as_str().as_bytes())?;
    out.write_all(b"\n")
}

/// Writes an object whose last field is a list, without having all of it in memory.
struct ListWriter<'o> {
    out: &'o mut dyn Write,
    is_empty: bool,
}

impl<'o> ListWriter<'o> {
    /// Writes the fields of an object, and the name of the list.
    fn begin(out: &'o mut dyn Write, object: &Json, name: &str) -> io::Result<Self> {
        let object = object.as_str();
        let fields = object.strip_suffix('}').unwrap_or(object);
        write!(out, "{fields},\"{name}\":[")?;
        Ok(Self {
            out,
            is_empty: true,
        })
    }

    fn add(&mut self, json: &Json) -> io::Result<()> {
        let before = match std::mem::take(&mut self.is_empty) {
            true => "\n",
            false => ",\n",
        };
        self.out.write_all(before.as_bytes())?;
        self.out.write_all(json.as_str().as_bytes())
    }

    fn end(self) -> io::Result<()> {
        self.out.write_all(b"]}\n")
    }
}

/// Makes a JSON object with its fields in this order. Values that are JSON keep their bytes.
macro_rules! object {
    ($($name:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut, reason = "an object may be empty")]
        let mut fields = backtrail::Fields::default();
        $(fields.push($name, $crate::convert::to_json(&$value));)*
        $crate::convert::to_json(&fields)
    }};
}
use object;

#[cfg(test)]
#[path = "convert/provider_tests.rs"]
mod provider_tests;

#[cfg(test)]
#[path = "convert/claude_code_tests.rs"]
mod claude_code_tests;

//! Writes version-1 lines that the original reader accepts.
//!
//! That reader knows whole numbers, four roles and three kinds of block, requires every
//! field, and refuses the rest. So everything else becomes text or is dropped, and
//! [`Losses`] lists it. One line is in memory at a time.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::io;

use super::losses::{LossKind, Losses};
use super::record::V1Meta;
use crate::error::{Error, Result};
use crate::escape::write_str;
use crate::json::{Json, Text};
use crate::message::{Block, CompactionSummary, Media, Message, Role, ToolResult, Usage};

/// Writes a session as version-1 lines.
#[derive(Debug)]
pub(crate) struct V1Writer<W: io::Write> {
    out: W,
    line: Vec<u8>,
    /// Calls without a result so far, newest last: a result may lack the tool's name.
    calls: VecDeque<(Text, Text)>,
    losses: Losses,
    /// The losses of the current message.
    lost: BTreeSet<LossKind>,
    seq: u64,
}

/// How many calls without a result are remembered.
const OPEN_CALLS: usize = 1024;
/// The longest buffer that is kept between lines.
const KEPT_BUFFER: usize = 1 << 20;

impl<W: io::Write> V1Writer<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            line: Vec::new(),
            calls: VecDeque::new(),
            losses: Losses::default(),
            lost: BTreeSet::new(),
            seq: 0,
        }
    }

    /// Counts a loss that happened outside the writer.
    pub(crate) fn add_loss(&mut self, kind: LossKind, seq: u64) {
        self.losses.add(kind, seq);
    }

    /// Writes the session's details. Missing times are 0.
    pub(crate) fn meta(&mut self, meta: &V1Meta) -> Result<()> {
        self.raw("{\"created_at_ms\":");
        self.millis(meta.created_at_ms);
        if let Some(fork) = &meta.fork {
            self.raw(",\"fork\":{");
            if let Some(name) = &fork.branch_name {
                self.raw("\"branch_name\":");
                self.string(name);
                self.raw(",");
            }
            self.raw("\"parent_session_id\":");
            self.string(&fork.parent_session_id);
            self.raw("}");
        }
        if let Some(model) = &meta.model {
            self.raw(",\"model\":");
            self.string(model);
        }
        self.raw(",\"session_id\":");
        self.string(meta.session_id.as_deref().unwrap_or(""));
        self.raw(",\"type\":\"session_meta\",\"updated_at_ms\":");
        self.millis(meta.updated_at_ms.or(meta.created_at_ms));
        self.raw(",\"version\":1");
        if let Some(root) = &meta.workspace_root {
            self.raw(",\"workspace_root\":");
            self.string(root);
        }
        self.end()
    }

    pub(crate) fn compaction(&mut self, compaction: &CompactionSummary) -> Result<()> {
        self.raw("{\"count\":");
        self.count(compaction.count);
        self.raw(",\"removed_message_count\":");
        self.count(compaction.removed_message_count);
        self.raw(",\"summary\":");
        self.text(&compaction.summary);
        self.raw(",\"type\":\"compaction\"");
        self.end()
    }

    pub(crate) fn message(&mut self, message: &Message, seq: u64) -> Result<()> {
        self.seq = seq;
        self.raw("{\"message\":{\"blocks\":[");
        let mut separator = "";
        for block in &message.blocks {
            let before = self.line.len();
            self.raw(separator);
            if self.block(block) {
                separator = ",";
            } else {
                self.line.truncate(before);
            }
        }
        self.raw("],\"role\":\"");
        let role = self.role(&message.role);
        self.raw(role);
        self.raw("\"");
        if let Some(usage) = &message.usage {
            self.usage(usage);
        }
        self.lose_if(!message.extra.is_empty(), LossKind::Fields);
        self.raw("},\"type\":\"message\"");
        self.end()
    }

    /// Writes a line as it was read.
    pub(crate) fn kept_line(&mut self, line: &str) -> Result<()> {
        self.out.write_all(line.as_bytes()).map_err(failed)?;
        self.out.write_all(b"\n").map_err(failed)
    }

    /// Skips a message that a summary replaces.
    pub(crate) fn skip(&mut self, message: &Message, seq: u64) {
        self.remember_calls(message);
        self.losses.add(LossKind::Summarised, seq);
    }

    /// Flushes the output and returns the losses.
    pub(crate) fn finish(mut self) -> Result<Losses> {
        self.out.flush().map_err(failed)?;
        Ok(self.losses)
    }

    /// Writes a block; returns whether version 1 can hold it.
    fn block(&mut self, block: &Block) -> bool {
        match block {
            Block::Thinking(_) => {
                self.lose(LossKind::Thinking);
                return false;
            }
            Block::Text(block) => {
                self.lose_if(!block.extra.is_empty(), LossKind::Fields);
                self.text_block(&block.text);
            }
            Block::ToolUse(call) => {
                self.lose_if(!call.extra.is_empty(), LossKind::Fields);
                self.remember_call(&call.id, &call.name);
                self.raw("{\"id\":");
                self.text(&call.id);
                self.raw(",\"input\":");
                self.json(&call.input);
                self.raw(",\"name\":");
                self.text(&call.name);
                self.raw(",\"type\":\"tool_use\"}");
            }
            Block::ToolResult(result) => self.tool_result(result),
            Block::Media(media) => {
                self.lose(LossKind::Media);
                self.text_block(&describe(media).into());
            }
            Block::Other(json) => {
                self.lose(LossKind::UnknownBlock);
                self.text_block(&json.as_str().into());
            }
        }
        true
    }

    fn text_block(&mut self, text: &Text) {
        self.raw("{\"text\":");
        self.text(text);
        self.raw(",\"type\":\"text\"}");
    }

    fn tool_result(&mut self, result: &ToolResult) {
        self.lose_if(!result.extra.is_empty(), LossKind::Fields);
        self.lose_if(!result.output.as_str().starts_with('"'), LossKind::Output);
        self.raw(if result.is_error {
            "{\"is_error\":true,\"output\":"
        } else {
            "{\"is_error\":false,\"output\":"
        });
        self.json(&result.output);
        self.raw(",\"tool_name\":");
        let name = self.answered(&result.tool_use_id);
        let name = result.tool_name.clone().or(name).unwrap_or_default();
        self.text(&name);
        self.raw(",\"tool_use_id\":");
        self.text(&result.tool_use_id);
        self.raw(",\"type\":\"tool_result\"}");
    }

    fn usage(&mut self, usage: &Usage) {
        let parts = [
            usage.reasoning_output_tokens,
            usage.cache_creation_1h_input_tokens,
        ];
        let more = !usage.extra.is_empty() || parts.iter().any(Option::is_some);
        self.lose_if(more, LossKind::Fields);
        self.raw(",\"usage\":{\"cache_creation_input_tokens\":");
        self.count(usage.cache_creation_input_tokens);
        self.raw(",\"cache_read_input_tokens\":");
        self.count(usage.cache_read_input_tokens);
        self.raw(",\"input_tokens\":");
        self.count(usage.input_tokens);
        self.raw(",\"output_tokens\":");
        self.count(usage.output_tokens);
        self.raw("}");
    }

    fn role(&mut self, role: &Role) -> &'static str {
        match role.as_str() {
            "system" => "system",
            "user" => "user",
            "assistant" => "assistant",
            "tool" => "tool",
            other => {
                self.lose(LossKind::Role);
                match other {
                    "developer" => "system",
                    "model" => "assistant",
                    "function" => "tool",
                    _ => "user",
                }
            }
        }
    }

    fn remember_calls(&mut self, message: &Message) {
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => self.remember_call(&call.id, &call.name),
                Block::ToolResult(result) => drop(self.answered(&result.tool_use_id)),
                _ => {}
            }
        }
    }

    fn remember_call(&mut self, id: &Text, name: &Text) {
        if self.calls.len() == OPEN_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back((id.clone(), name.clone()));
    }

    /// Returns the tool's name of the call that a result answers.
    fn answered(&mut self, id: &Text) -> Option<Text> {
        let at = self.calls.iter().rposition(|(call, _)| call == id)?;
        self.calls.remove(at).map(|(_, name)| name)
    }

    /// Writes JSON as a string: a string as itself, anything else as its text.
    fn json(&mut self, json: &Json) {
        match serde_json::from_str::<Text>(json.as_str()) {
            Ok(text) => self.text(&text),
            Err(_) => self.string(json.as_str()),
        }
    }

    fn text(&mut self, text: &Text) {
        self.lose_if(text.is_lossy(), LossKind::LoneSurrogate);
        self.string(text);
    }

    fn string(&mut self, text: &str) {
        write_str(&mut self.line, text);
    }

    fn count(&mut self, count: u64) {
        let most = u64::from(u32::MAX);
        self.lose_if(count > most, LossKind::Number);
        self.number(count.min(most));
    }

    fn millis(&mut self, millis: Option<i64>) {
        let millis = millis.unwrap_or(0);
        self.lose_if(millis < 0, LossKind::Number);
        self.number(u64::try_from(millis).unwrap_or(0));
    }

    fn number(&mut self, number: u64) {
        let mut digits = itoa::Buffer::new();
        self.line
            .extend_from_slice(digits.format(number).as_bytes());
    }

    fn raw(&mut self, text: &str) {
        self.line.extend_from_slice(text.as_bytes());
    }

    fn lose_if(&mut self, lost: bool, kind: LossKind) {
        if lost {
            self.lose(kind);
        }
    }

    fn lose(&mut self, kind: LossKind) {
        self.lost.insert(kind);
    }

    /// Ends and writes a line. Each kind of loss counts once.
    fn end(&mut self) -> Result<()> {
        for kind in std::mem::take(&mut self.lost) {
            self.losses.add(kind, self.seq);
        }
        self.raw("}\n");
        self.out.write_all(&self.line).map_err(failed)?;
        self.line.clear();
        self.line.shrink_to(KEPT_BUFFER);
        Ok(())
    }
}

fn failed(error: io::Error) -> Error {
    Error::machine("cannot write the session as version 1", error)
}

/// Returns a line of text that replaces media.
fn describe(media: &Media) -> String {
    let data: Cow<'_, str> = match media.data.parse::<String>() {
        Ok(data) => Cow::Owned(data),
        Err(_) => Cow::Borrowed(media.data.as_str()),
    };
    let Media {
        kind, media_type, ..
    } = media;
    format!(
        "[{kind} {media_type}: {} characters of Base64, dropped]",
        data.len()
    )
}

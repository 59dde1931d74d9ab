//! Writes a session as Markdown, to be read.

mod neutral;

use std::io::{self, Write};

use backtrail::conversation::{CompactionItem, RunItem, ToolResultItem};
use backtrail::conversation::{Item, ToolCall, ToolOutcome};
use backtrail::{Block, Run, SessionInfo, Timestamp};

use super::conversation::changes::Changes;
use super::conversation::{
    self, HIDDEN_THINKING, LOST_SUMMARY, Survey, TurnSpending, compaction_words, run_words,
    session_prices,
};
use super::export::{Export, losses, text_of, title_of};
use crate::error::Result;
use crate::shell::command_line;
use crate::text::{clean, medium, plus_note};
use crate::when;

/// How much is shown of a block that this version does not know: it may hold an
/// image.
const OTHER_SHOWN: usize = 2000;

/// Writes a session; returns what could not be written.
pub(super) fn write(export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<String>> {
    let info = export.info()?;
    let survey = export.survey()?;
    write_head(out, &info, &survey)?;
    let mut writer = MarkdownWriter {
        out,
        changes: Changes::find(export.store, export.reader, &info),
        spending: TurnSpending::new(session_prices(export.store, &info)?),
    };
    let mut conversation = export.reader.conversation()?;
    while let Some(item) = conversation.next().transpose()? {
        let item = export.redacted(item);
        writer.item(&item, export)?;
    }
    writer.end_turn("")?;
    Ok(losses(conversation.damaged()))
}

/// Writes what the session is: its title, where and when it was, and its numbers.
fn write_head(out: &mut dyn Write, info: &SessionInfo, survey: &Survey) -> io::Result<()> {
    let title = title_of(info);
    let title = title.as_deref().unwrap_or("Session");
    writeln!(out, "# {}\n", one_line(title))?;
    let mut facts = vec![format!("`{}`", info.id)];
    facts.extend(info.created_at.map(when::full));
    facts.extend(info.agent.as_deref().map(one_line));
    facts.extend(info.model.as_deref().map(one_line));
    let root = info.workspace_root.as_ref();
    let root = root.map(|root| plain_line(&root.to_string_lossy()));
    facts.extend(root.map(|root| neutral::code_span(&root)));
    writeln!(out, "{}\n", facts.join(" · "))?;
    let mut facts = survey.words();
    facts.extend(info.tags.iter().map(|tag| format!("#{}", one_line(tag))));
    writeln!(out, "{}", facts.join(" · "))?;
    match plus_note(&survey.spending) {
        Some(note) => writeln!(out, "\n{note}"),
        None => Ok(()),
    }
}

struct MarkdownWriter<'a> {
    out: &'a mut dyn Write,
    changes: Changes,
    spending: TurnSpending,
}

impl MarkdownWriter<'_> {
    fn item(&mut self, item: &Item, export: &mut Export<'_>) -> io::Result<()> {
        match item {
            Item::Prompt(prompt) => {
                self.heading(prompt.seq, "user", prompt.at)?;
                self.text(&prompt.text)?;
                self.blocks(&prompt.attachments)
            }
            Item::Injected(message) => {
                let name = conversation::injected_name(&message.role);
                self.heading(message.seq, &name, message.at)?;
                self.text(&message.text)?;
                self.blocks(&message.attachments)
            }
            Item::Reply(reply) => self.heading(reply.seq, "assistant", reply.at),
            Item::Answer(answer) => self.text(&answer.text),
            Item::Thinking(thinking) => self.thinking(&thinking.text),
            Item::ToolCall(call) => self.call(call),
            Item::ToolResult(result) => self.result(result),
            Item::Attachment(attachment) => self.block(&attachment.block),
            Item::Spending(spending) => {
                self.spending.add(spending);
                Ok(())
            }
            Item::TurnEnd(turn) => {
                let changed = self.changes.of_turn(turn.first, turn.last);
                self.end_turn(&export.text(&changed))
            }
            Item::Compaction(compaction) => self.compaction(compaction),
            Item::Run(RunItem { run: Some(run), .. }) => self.run(item.seq(), run, export),
            item => match conversation::remark(item) {
                Some(remark) => self.remark(&remark),
                None => Ok(()),
            },
        }
    }

    fn heading(&mut self, seq: u64, name: &str, at: Option<Timestamp>) -> io::Result<()> {
        let at = at.map_or_else(String::new, |at| format!(" · {}", when::full(at)));
        writeln!(self.out, "\n## {seq} · {}{at}", one_line(name))
    }

    /// Writes a line that is not of the conversation.
    fn remark(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "\n*{}*", one_line(text))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        match text.trim_end() {
            "" => Ok(()),
            text => writeln!(self.out, "\n{}", neutral::text(&clean(text))),
        }
    }

    fn thinking(&mut self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return self.remark(HIDDEN_THINKING);
        }
        writeln!(self.out, "\n> *thinking*\n>")?;
        for line in neutral::text(clean(text).trim_end()).lines() {
            writeln!(self.out, "> {line}")?;
        }
        Ok(())
    }

    fn call(&mut self, call: &ToolCall) -> io::Result<()> {
        writeln!(self.out, "\n**{}**\n", one_line(&call.name))?;
        fence(self.out, "json", call.arguments.as_str())?;
        match &call.result {
            Some(result) => self.outcome(result, call.success != Some(false)),
            None => self.remark("no result"),
        }
    }

    fn result(&mut self, item: &ToolResultItem) -> io::Result<()> {
        let name = item.name.as_deref().unwrap_or("tool");
        writeln!(self.out, "\n**{}**", one_line(name))?;
        self.outcome(&item.result, item.success)
    }

    fn outcome(&mut self, result: &ToolOutcome, success: bool) -> io::Result<()> {
        self.remark(if success { "result" } else { "failed" })?;
        writeln!(self.out)?;
        match text_of(&result.output) {
            Some(text) => fence(self.out, "text", &text),
            None => fence(self.out, "json", result.output.as_str()),
        }
    }

    fn blocks(&mut self, blocks: &[Block]) -> io::Result<()> {
        blocks.iter().try_for_each(|block| self.block(block))
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        match block {
            Block::Text(block) => self.text(&block.text),
            Block::Thinking(block) => self.thinking(&block.thinking),
            Block::Media(media) => self.remark(&medium(media)),
            Block::Other(json) => {
                let shown: String = json.as_str().chars().take(OTHER_SHOWN).collect();
                let is_cut = shown.len() < json.as_str().len();
                writeln!(self.out)?;
                fence(
                    self.out,
                    "json",
                    &format!("{shown}{}", if is_cut { "…" } else { "" }),
                )
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self, seq: u64, run: &Run, export: &mut Export<'_>) -> io::Result<()> {
        writeln!(self.out, "\n## {seq} · run · {}\n", run_words(run))?;
        fence(self.out, "sh", &export.text(&command_line(&run.argv)))?;
        match self.changes.of_run(run.after).as_str() {
            "" => Ok(()),
            changed => self.remark(&export.text(changed)),
        }
    }

    fn compaction(&mut self, item: &CompactionItem) -> io::Result<()> {
        self.end_turn("")?;
        self.heading(item.seq, "compaction", item.at)?;
        match &item.stored {
            Some(stored) => {
                self.remark(&compaction_words(stored))?;
                self.text(&stored.summary)
            }
            None => self.remark(LOST_SUMMARY),
        }
    }

    /// Writes what a turn changed and what it spent.
    fn end_turn(&mut self, changed: &str) -> io::Result<()> {
        let mut words = Vec::new();
        words.extend((!changed.is_empty()).then(|| changed.to_owned()));
        words.extend(self.spending.take());
        match words.is_empty() {
            true => Ok(()),
            false => self.remark(&words.join(" · ")),
        }
    }
}

/// Writes text as code, in a fence that is longer than any inside it.
fn fence(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let text = clean(text.strip_suffix('\n').unwrap_or(text));
    let ticks = neutral::fence_of(&text);
    writeln!(out, "{ticks}{language}\n{text}\n{ticks}")
}

/// Returns a text as one line, in which nothing is markup.
fn one_line(text: &str) -> String {
    neutral::line(&plain_line(text))
}

fn plain_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

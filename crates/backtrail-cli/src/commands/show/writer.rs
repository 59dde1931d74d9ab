//! Writes a conversation on a page, item by item.

use std::io;

use anstyle::Style;
use backtrail::conversation::{CompactionItem, InjectedMessage, RunItem, ToolResultItem};
use backtrail::conversation::{InjectedKind, Item, Prompt, RelativePaths, ToolCall};
use backtrail::{Block, Run, Timestamp};
use backtrail_index::SessionPrices;

use super::glyphs::Glyphs;
use super::markdown;
use super::sheet::{Kind, Sheet};
use super::tool_call::CallPage;
use crate::commands::conversation::call::{CallView, OutcomeView};
use crate::commands::conversation::changes::Changes;
use crate::commands::conversation::prose::{answer_text, block_words, thought_text};
use crate::commands::conversation::{
    self, HIDDEN_THINKING, LOST_SUMMARY, TurnSpending, compaction_words, run_words,
};
use crate::layout::{BOLD, DIM, Span, wrap, wrap_plain};
use crate::shell::command_line;
use crate::text::{medium, one_line};
use crate::when;

/// What is shown of a conversation, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShowOptions {
    /// The output of tools and thoughts are shown whole.
    pub(super) full: bool,
    /// The session is being followed: results come apart from their calls.
    pub(super) live: bool,
    /// The turn was undone: it has no number.
    pub(super) undone: bool,
    /// How many turns come before the first one that is shown.
    pub(super) turns_before: u64,
    /// The record that was asked for.
    pub(super) wanted: Option<u64>,
}

/// Returns the line that points at a record.
pub(super) fn mark_words(record: u64) -> String {
    format!("{} record {record}", Glyphs::of_locale().here)
}

/// Writes a conversation.
pub(super) struct ShowWriter<'a> {
    sheet: Sheet<'a>,
    options: ShowOptions,
    changes: Changes,
    spending: TurnSpending,
    paths: RelativePaths,
    turn: u64,
    /// The day that was written last.
    day: String,
    unreadable: Vec<u64>,
}

impl<'a> ShowWriter<'a> {
    /// Explains the `+` after costs, if a turn had one.
    pub(super) fn plus_note(&self) -> Option<String> {
        self.spending.plus_note()
    }

    pub(super) fn new(
        sheet: Sheet<'a>,
        options: ShowOptions,
        changes: Changes,
        prices: SessionPrices,
        paths: RelativePaths,
    ) -> Self {
        Self {
            sheet,
            options,
            changes,
            spending: TurnSpending::new(prices),
            paths,
            turn: options.turns_before,
            day: String::new(),
            unreadable: Vec::new(),
        }
    }

    /// Returns the records that could not be read, or not completely, since the last
    /// call.
    pub(super) fn take_unreadable(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unreadable)
    }

    /// Writes an item.
    pub(super) fn item(&mut self, item: &Item) -> io::Result<()> {
        match item {
            Item::Prompt(prompt) => return self.prompt(prompt),
            Item::Compaction(compaction) => return self.compaction(compaction),
            Item::Spending(spending) => {
                self.spending.add(spending);
                return Ok(());
            }
            Item::TurnEnd(turn) => {
                let changed = self.changes.of_turn(turn.first, turn.last);
                return self.footer(&changed);
            }
            Item::Fork(_) => {
                let words = conversation::remark(item).unwrap_or_default();
                return self.sheet.heading(&[Span::new(BOLD, &words)], "");
            }
            Item::Gap(gap) => return self.remark(&gap.to_string()),
            Item::Unreadable(unreadable) => self.unreadable.push(unreadable.seq),
            _ => {}
        }
        self.mark(item)?;
        match item {
            Item::Injected(message) => self.injected(message),
            Item::Answer(answer) => self.answer(&answer.text),
            Item::Thinking(thinking) => self.thinking(&thinking.text),
            Item::ToolCall(call) => self.call(call),
            Item::ToolResult(result) => self.result(result),
            Item::Attachment(attachment) => self.block(&attachment.block),
            Item::Run(RunItem { run: Some(run), .. }) => self.run(run),
            Item::Unreadable(unreadable) if unreadable.in_part => Ok(()),
            item => match conversation::remark(item) {
                Some(remark) => self.remark(&remark),
                None => Ok(()),
            },
        }
    }

    /// Writes a line that is not of the conversation.
    pub(super) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.small(text, DIM)
    }

    /// Writes what is left to be written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.footer("")?;
        self.sheet.flush()
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.sheet.flush()
    }

    /// Points at the record that was asked for, if it is in this item.
    fn mark(&mut self, item: &Item) -> io::Result<()> {
        match item {
            Item::Reply(_) => Ok(()),
            Item::ToolCall(call) => {
                let result = call.result.as_ref().map(|result| result.seq);
                self.mark_record(call.seq, result)
            }
            item => self.mark_record(item.seq(), None),
        }
    }

    fn mark_record(&mut self, seq: u64, result: Option<u64>) -> io::Result<()> {
        // A record that shows nothing is pointed at where it would be.
        let is_here = |wanted: &mut u64| seq >= *wanted || result == Some(*wanted);
        let Some(wanted) = self.options.wanted.take_if(is_here) else {
            return Ok(());
        };
        self.small(&mark_words(wanted), BOLD)
    }

    fn prompt(&mut self, prompt: &Prompt) -> io::Result<()> {
        self.turn += 1;
        let words = match self.options.undone {
            true => "undone turn".to_owned(),
            false => format!("turn {}", self.turn),
        };
        self.heading(&words, prompt.seq, prompt.at)?;
        self.mark_record(prompt.seq, None)?;
        if !prompt.text.is_empty() {
            let text = prompt.text.trim_start_matches('\n');
            let lines = wrap_plain(text, Style::new(), self.sheet.room());
            self.sheet.prompt(&lines)?;
        }
        let mut attachments = prompt.attachments.iter();
        attachments.try_for_each(|block| self.block(block))
    }

    fn heading(&mut self, words: &str, seq: u64, at: Option<Timestamp>) -> io::Result<()> {
        let mut line = vec![Span::new(BOLD, words)];
        if let Some(at) = at {
            let dot = self.sheet.glyphs().dot;
            line.push(Span::new(DIM, &format!(" {dot} {}", self.when(at))));
        }
        self.sheet.heading(&line, &format!("record {seq}"))
    }

    /// Writes a time, and the day if that is another one than before.
    fn when(&mut self, at: Timestamp) -> String {
        let day = when::day(at);
        let time = when::time(at);
        if day == self.day {
            return time;
        }
        self.day = day;
        format!("{} {time}", self.day)
    }

    /// Ends a turn: writes what it changed and what it spent.
    fn footer(&mut self, changed: &str) -> io::Result<()> {
        let spent = self.spending.take();
        let dot = format!(" {} ", self.sheet.glyphs().dot);
        self.sheet.footer(changed, &spent.join(&dot))
    }

    /// Writes what an agent added: what it is and how long, or all of it.
    fn injected(&mut self, message: &InjectedMessage) -> io::Result<()> {
        let name = conversation::injected_name(message);
        let is_shown = self.options.full || message.kind == InjectedKind::Error;
        match message.text.trim() {
            "" => self.small(&format!("{name}:"), DIM)?,
            _ if message.kind == InjectedKind::Filler && !self.options.full => return Ok(()),
            text if is_shown => self.whole(&name, text)?,
            text => self.small(
                &conversation::injected_words(&name, message.kind, text),
                DIM,
            )?,
        }
        let mut attachments = message.attachments.iter();
        attachments.try_for_each(|block| self.block(block))
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        match block {
            Block::Media(media) => self.small(&format!("[{}]", medium(media)), Style::new()),
            Block::Other(json) => self.small(&block_words(json, &self.paths), DIM),
            Block::Thinking(block) => self.thinking(&block.thinking),
            Block::Text(block) => self.folded("tool", &block.text),
            _ => Ok(()),
        }
    }

    fn answer(&mut self, text: &str) -> io::Result<()> {
        let text = &answer_text(text, &self.paths);
        let lines = markdown::render(text, self.sheet.room(), self.sheet.glyphs());
        self.sheet.put(Kind::Text, &lines)
    }

    fn thinking(&mut self, text: &str) -> io::Result<()> {
        match text.trim() {
            "" => self.small(HIDDEN_THINKING, DIM),
            text => self.folded("thinking", &thought_text(text, &self.paths)),
        }
    }

    /// Writes a text in one line, or whole with `--full`: thoughts are long, and seldom
    /// read.
    fn folded(&mut self, name: &str, text: &str) -> io::Result<()> {
        let text = self.paths.prose(text).into_owned();
        if self.options.full {
            return self.whole(name, &text);
        }
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default().trim();
        let more = if lines.next().is_some() { " …" } else { "" };
        let room = self.sheet.room().saturating_sub(more.len());
        let line = one_line(&format!("{name}: {first}"), room);
        self.small(&format!("{line}{more}"), DIM)
    }

    fn whole(&mut self, name: &str, text: &str) -> io::Result<()> {
        let text = format!("{name}: {}", text.trim());
        let lines = wrap_plain(&text, DIM, self.sheet.room());
        self.sheet.put(Kind::Text, &lines)
    }

    fn page(&self) -> CallPage {
        CallPage {
            width: self.sheet.room(),
            glyphs: self.sheet.glyphs(),
            full: self.options.full,
        }
    }

    fn call(&mut self, call: &ToolCall) -> io::Result<()> {
        let view = CallView::new(call, &self.paths);
        let outcome = view.outcome(call, &self.paths);
        let lines = self.page().call(&view, outcome.as_ref(), self.options.live);
        self.sheet.put(Kind::Small, &lines)
    }

    fn result(&mut self, item: &ToolResultItem) -> io::Result<()> {
        let outcome = OutcomeView::new(&item.result, item.success, &self.paths);
        let name = one_line(item.name.as_deref().unwrap_or("tool"), 60);
        let lines = self.page().result(&name, &outcome);
        self.sheet.put(Kind::Small, &lines)
    }

    fn compaction(&mut self, item: &CompactionItem) -> io::Result<()> {
        self.footer("")?;
        self.heading("compaction", item.seq, item.at)?;
        self.mark_record(item.seq, None)?;
        let Some(stored) = &item.stored else {
            return self.remark(LOST_SUMMARY);
        };
        self.remark(&compaction_words(stored))?;
        match self.options.full {
            true => self.answer(&stored.summary),
            false => Ok(()),
        }
    }

    fn run(&mut self, run: &Run) -> io::Result<()> {
        let view = CallView::command("run", &command_line(&run.argv));
        let outcome = OutcomeView::ended(run.exit_code != Some(0), run_words(run));
        let lines = self.page().call(&view, Some(&outcome), false);
        self.sheet.put(Kind::Small, &lines)?;
        match self.changes.of_run(run.after).as_str() {
            "" => Ok(()),
            changed => self.small(&format!("  {changed}"), Style::new()),
        }
    }

    /// Writes something in one line or a few.
    fn small(&mut self, text: &str, style: Style) -> io::Result<()> {
        let lines = wrap(&[Span::new(style, text)], self.sheet.room());
        self.sheet.put(Kind::Small, &lines)
    }
}

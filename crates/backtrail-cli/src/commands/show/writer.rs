//! Writes a conversation on a page, item by item.

use std::io::{self, Write};

use anstyle::Style;
use backtrail::conversation::{CompactionItem, InjectedMessage, RunItem, ToolResultItem};
use backtrail::conversation::{InjectedKind, Item, Prompt, RelativePaths, ToolCall};
use backtrail::{Block, Run, Timestamp};
use backtrail_index::SessionPrices;
use backtrail_view::library::Palette;

use super::glyphs::Glyphs;
use super::markdown;
use super::sheet::{INDENT, Kind, Sheet};
use super::tool_call::CallPage;
use crate::commands::conversation::call::{CallView, OutcomeView};
use crate::commands::conversation::changes::Changes;
use crate::commands::conversation::prose::{answer_text, block_words, thought_text};
use crate::commands::conversation::{
    self, HIDDEN_THINKING, LOST_SUMMARY, TurnSpending, compaction_words, run_words,
};
use crate::layout::{BOLD, DIM, Line, Span, cut, wrap, wrap_plain};
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
    /// How many turns come before the first one that is shown; `None` if that is unknown.
    pub(super) turns_before: Option<u64>,
    /// The record that was asked for.
    pub(super) wanted: Option<u64>,
    /// A part of the conversation has at most this many lines; 0 for no limit.
    pub(super) most_lines: usize,
    /// The colours of code.
    pub(super) palette: Palette,
}

/// A screen keeps no more of a line.
const WIDEST_LINE: usize = 2_000;

/// Returns the end of the last character within so many bytes.
fn char_end(text: &str, bytes: usize) -> usize {
    let ends = (0..=bytes.min(text.len())).rev();
    ends.into_iter()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0)
}

fn is_too_wide(line: &[Span]) -> bool {
    let bytes: usize = line.iter().map(|span| span.text.len()).sum();
    bytes > WIDEST_LINE
}

/// Returns the line that points at a record.
pub(super) fn mark_words(record: u64) -> String {
    format!("{} record {record}", Glyphs::of_locale().here)
}

/// Writes a conversation.
pub(super) struct ShowWriter<'a> {
    sheet: Sheet,
    options: ShowOptions,
    changes: &'a Changes,
    spending: TurnSpending,
    paths: RelativePaths,
    /// How many turns there were so far, if that is known.
    turn: Option<u64>,
    /// The day that was written last.
    day: String,
    unreadable: Vec<u64>,
    /// Whether something of the last item is not shown.
    is_folded: bool,
}

impl<'a> ShowWriter<'a> {
    /// Explains the `+` after costs, if a turn had one.
    pub(super) fn plus_note(&self) -> Option<String> {
        self.spending.plus_note()
    }

    pub(super) fn new(
        sheet: Sheet,
        options: ShowOptions,
        changes: &'a Changes,
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
            is_folded: false,
        }
    }

    /// Returns the records that could not be read, or not completely, since the last
    /// call.
    pub(super) fn take_unreadable(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unreadable)
    }

    /// Writes an item.
    pub(super) fn item(&mut self, item: &Item) {
        self.is_folded = false;
        match item {
            Item::Prompt(prompt) => return self.prompt(prompt),
            Item::Compaction(compaction) => return self.compaction(compaction),
            Item::Spending(spending) => return self.spending.add(spending),
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
        self.mark(item);
        match item {
            Item::Injected(message) => self.injected(message),
            Item::Answer(answer) => self.answer(&answer.text),
            Item::Thinking(thinking) => self.thinking(&thinking.text),
            Item::ToolCall(call) => self.call(call),
            Item::ToolResult(result) => self.result(result),
            Item::Attachment(attachment) => self.block(&attachment.block),
            Item::Run(RunItem { run: Some(run), .. }) => self.run(run),
            Item::Unreadable(unreadable) if unreadable.in_part => {}
            item => {
                if let Some(remark) = conversation::remark(item) {
                    self.remark(&remark);
                }
            }
        }
    }

    /// Ends a turn without writing how.
    pub(super) fn skip_footer(&mut self) {
        self.spending.take();
    }

    /// Takes note of the time of a prompt that is not written.
    pub(super) fn pass_time(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.day = when::day(at);
        }
    }

    /// Sets how many turns come before the next item.
    pub(super) fn set_turns(&mut self, turns: Option<u64>) {
        self.turn = turns;
    }

    /// Removes and returns the lines of an item, no more than are wanted, and whether they are not
    /// all of it.
    pub(super) fn take(&mut self) -> (Vec<Line>, bool) {
        let mut lines = self.sheet.take();
        let most = self.most_lines();
        let is_cut = lines.len() > most;
        if is_cut {
            lines.truncate(most);
            let words = "… more";
            lines.push(vec![Span::blank(INDENT), Span::new(DIM, words)]);
        }
        for line in lines.iter_mut().filter(|line| is_too_wide(line)) {
            *line = cut(line, WIDEST_LINE);
            self.is_folded = true;
        }
        (lines, is_cut || self.is_folded)
    }

    /// Prints what was written so far.
    pub(super) fn print(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.sheet.print(out)
    }

    /// Writes a line that is not of the conversation.
    pub(super) fn remark(&mut self, text: &str) {
        self.small(text, DIM);
    }

    /// Writes what is left to be written.
    pub(super) fn finish(&mut self) {
        self.footer("");
    }

    fn most_lines(&self) -> usize {
        match self.options.most_lines {
            0 => usize::MAX,
            most => most,
        }
    }

    /// Returns the beginning of a text that is longer than may be shown.
    fn bounded<'t>(&self, text: &'t str) -> &'t str {
        let most = self.most_lines();
        if text.len() <= most {
            return text;
        }
        // No line is wider than the page.
        let most_bytes = most.saturating_mul(4 * self.sheet.room());
        let text = &text[..char_end(text, most_bytes)];
        let end = text.match_indices('\n').nth(most).map(|(end, _)| end);
        &text[..end.unwrap_or(text.len())]
    }

    /// Points at the record that was asked for, if it is in this item.
    fn mark(&mut self, item: &Item) {
        match item {
            Item::Reply(_) => {}
            Item::ToolCall(call) => {
                let result = call.result.as_ref().map(|result| result.seq);
                self.mark_record(call.seq, result);
            }
            item => self.mark_record(item.seq(), None),
        }
    }

    fn mark_record(&mut self, seq: u64, result: Option<u64>) {
        // A record that shows nothing is pointed at where it would be.
        let is_here = |wanted: &mut u64| seq >= *wanted || result == Some(*wanted);
        if let Some(wanted) = self.options.wanted.take_if(is_here) {
            self.small(&mark_words(wanted), BOLD);
        }
    }

    fn prompt(&mut self, prompt: &Prompt) {
        self.turn = self.turn.map(|turn| turn + 1);
        let words = match (self.options.undone, self.turn) {
            (true, _) => "undone turn".to_owned(),
            (false, Some(turn)) => format!("turn {turn}"),
            (false, None) => "turn".to_owned(),
        };
        self.heading(&words, prompt.seq, prompt.at);
        self.mark_record(prompt.seq, None);
        if !prompt.text.is_empty() {
            let text = self.bounded(prompt.text.trim_start_matches('\n'));
            let lines = wrap_plain(text, Style::new(), self.sheet.room());
            self.sheet.prompt(&lines);
        }
        prompt
            .attachments
            .iter()
            .for_each(|block| self.block(block));
    }

    fn heading(&mut self, words: &str, seq: u64, at: Option<Timestamp>) {
        let mut line = vec![Span::new(BOLD, words)];
        if let Some(at) = at {
            let dot = self.sheet.glyphs().dot;
            line.push(Span::new(DIM, &format!(" {dot} {}", self.when(at))));
        }
        self.sheet.heading(&line, &format!("record {seq}"));
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
    fn footer(&mut self, changed: &str) {
        let spent = self.spending.take();
        let dot = format!(" {} ", self.sheet.glyphs().dot);
        self.sheet.footer(changed, &spent.join(&dot));
    }

    /// Writes what an agent added: what it is and how long, or all of it.
    fn injected(&mut self, message: &InjectedMessage) {
        let name = conversation::injected_name(message);
        let is_shown = self.options.full || message.kind == InjectedKind::Error;
        match message.text.trim() {
            "" => self.small(&format!("{name}:"), DIM),
            _ if message.kind == InjectedKind::Filler && !self.options.full => return,
            text if is_shown => self.whole(&name, text),
            text => {
                self.is_folded = true;
                let words = conversation::injected_words(&name, message.kind, text);
                self.small(&words, DIM);
            }
        }
        message
            .attachments
            .iter()
            .for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Media(media) => self.small(&format!("[{}]", medium(media)), Style::new()),
            Block::Other(json) => self.small(&block_words(json, &self.paths), DIM),
            Block::Thinking(block) => self.thinking(&block.thinking),
            Block::Text(block) => self.folded("tool", &block.text),
            _ => {}
        }
    }

    fn answer(&mut self, text: &str) {
        let text = &answer_text(self.bounded(text), &self.paths);
        let (room, glyphs) = (self.sheet.room(), self.sheet.glyphs());
        let lines = markdown::render(text, room, glyphs, self.options.palette);
        self.sheet.put(Kind::Text, &lines);
    }

    fn thinking(&mut self, text: &str) {
        match text.trim() {
            "" => self.small(HIDDEN_THINKING, DIM),
            text => self.folded("thinking", &thought_text(text, &self.paths)),
        }
    }

    /// Writes a text in one line, or whole with `--full`: thoughts are long, and seldom
    /// read.
    fn folded(&mut self, name: &str, text: &str) {
        let text = self.paths.prose(text).into_owned();
        if self.options.full {
            return self.whole(name, &text);
        }
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default().trim();
        self.is_folded = lines.next().is_some();
        let more = if self.is_folded { " …" } else { "" };
        let room = self.sheet.room().saturating_sub(more.len());
        let line = one_line(&format!("{name}: {first}"), room);
        let more = if line.ends_with('…') { "" } else { more };
        self.small(&format!("{line}{more}"), DIM);
    }

    fn whole(&mut self, name: &str, text: &str) {
        let text = format!("{name}: {}", self.bounded(text.trim()));
        let lines = wrap_plain(&text, DIM, self.sheet.room());
        self.sheet.put(Kind::Text, &lines);
    }

    fn page(&self) -> CallPage {
        CallPage {
            width: self.sheet.room(),
            glyphs: self.sheet.glyphs(),
            full: self.options.full,
            most_lines: self.most_lines(),
            palette: self.options.palette,
        }
    }

    fn call(&mut self, call: &ToolCall) {
        let view = CallView::new(call, &self.paths);
        let outcome = view.outcome(call, &self.paths);
        let lines = self.page().call(&view, outcome.as_ref(), self.options.live);
        self.is_folded = self.page().folds(&view, outcome.as_ref());
        self.sheet.put(Kind::Small, &lines);
    }

    fn result(&mut self, item: &ToolResultItem) {
        let outcome = OutcomeView::new(&item.result, item.success, &self.paths);
        let name = one_line(item.name.as_deref().unwrap_or("tool"), 60);
        let lines = self.page().result(&name, &outcome);
        self.is_folded = !self.options.full && !outcome.output.is_empty();
        self.sheet.put(Kind::Small, &lines);
    }

    fn compaction(&mut self, item: &CompactionItem) {
        self.footer("");
        self.heading("compaction", item.seq, item.at);
        self.mark_record(item.seq, None);
        let Some(stored) = &item.stored else {
            return self.remark(LOST_SUMMARY);
        };
        self.remark(&compaction_words(stored));
        match self.options.full {
            true => self.answer(&stored.summary),
            false => self.is_folded = true,
        }
    }

    fn run(&mut self, run: &Run) {
        let view = CallView::command("run", &command_line(&run.argv));
        let outcome = OutcomeView::ended(run.exit_code != Some(0), run_words(run));
        let lines = self.page().call(&view, Some(&outcome), false);
        self.sheet.put(Kind::Small, &lines);
        match self.changes.of_run(run.after).as_str() {
            "" => {}
            changed => self.small(&format!("  {changed}"), Style::new()),
        }
    }

    /// Writes something in one line or a few.
    fn small(&mut self, text: &str, style: Style) {
        let lines = wrap(&[Span::new(style, text)], self.sheet.room());
        self.sheet.put(Kind::Small, &lines);
    }
}

//! A conversation, told record by record.
//!
//! A call of a tool stands in one line with its result, which comes later: what follows
//! the call is held back until then, within bounds. Nothing else is kept in memory.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use anstyle::Style;
use backtrail::{
    Block, Message, RecordKind, RecordRef, Role, Run, SessionInfo, Spawned, Timestamp, ToolResult,
    format_duration,
};

use super::changes::Changes;
use super::markdown;
use super::notes::Known;
use super::sheet::{Kind, Sheet};
use super::spent::Ledger;
use super::tools::{Call, Outcome};
use crate::commands::short;
use crate::layout::{Line, Span, wrap, wrap_plain};
use crate::shell::command_line;
use crate::text::{clean, count, medium, one_line, visible};
use crate::ui::{BOLD, DIM};
use crate::when;

/// How a conversation is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    /// The output of tools and thoughts are shown whole.
    pub(super) full: bool,
    /// It is told while it goes on: nothing is held back.
    pub(super) live: bool,
}

/// Tells a conversation.
pub(super) struct Teller<'a> {
    sheet: Sheet<'a>,
    manner: Manner,
    changes: Changes,
    ledger: Ledger,
    /// Where the part of the session that this one was forked from ends, and its name.
    fork: Option<(u64, String)>,
    /// The record that was asked for.
    wanted: Option<u64>,
    /// The number of the turn, if it has one, and its first record.
    numbered: bool,
    turn: u64,
    begun: Option<u64>,
    /// The last record so far.
    last: Option<u64>,
    /// The day that was told last.
    day: String,
    held: VecDeque<Held>,
    held_bytes: usize,
    unreadable: Vec<u64>,
    /// What notes said so far: each repeats all of it.
    known: Known,
}

/// Something that is not yet written.
enum Held {
    Lines(Kind, Vec<Line>),
    /// A call, and what came of it.
    Call(Call, Option<Outcome>),
}

/// No more is held back.
const MOST_HELD: usize = 512;
const MOST_HELD_BYTES: usize = 4 << 20;

impl<'a> Teller<'a> {
    pub(super) fn new(
        sheet: Sheet<'a>,
        manner: Manner,
        changes: Changes,
        ledger: Ledger,
        info: &SessionInfo,
    ) -> Self {
        let origin = info.forked_from.as_ref();
        let fork = origin.and_then(|origin| {
            let parent = one_line(&origin.parent_session_id, 60);
            let name = parent.parse().map_or(parent, |id| short(&id).to_owned());
            Some((origin.seq?, name))
        });
        Self {
            sheet,
            manner,
            changes,
            ledger,
            fork,
            wanted: None,
            numbered: true,
            turn: 0,
            begun: None,
            last: None,
            day: String::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            unreadable: Vec::new(),
            known: Known::default(),
        }
    }

    /// Says that turns before the one that comes next are not shown.
    pub(super) fn after_turn(mut self, turn: u64) -> Self {
        self.turn = turn;
        self
    }

    /// Says what was known of the session before anything was said.
    pub(super) fn knowing(mut self, known: Known) -> Self {
        self.known = known;
        self
    }

    /// Says which record was asked for.
    pub(super) fn wanting(mut self, seq: Option<u64>) -> Self {
        self.wanted = seq;
        self
    }

    /// Says that the turns were taken back: they have no number on the line.
    pub(super) fn taken_back(mut self) -> Self {
        self.numbered = false;
        self
    }

    /// Returns the records that could not be read, or not whole, since the last time
    /// that this was asked.
    pub(super) fn take_unreadable(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unreadable)
    }

    /// Tells a record.
    pub(super) fn record(&mut self, record: &RecordRef<'_>) -> io::Result<()> {
        let seq = record.seq();
        self.pass_fork(seq)?;
        let message = match record.kind() {
            RecordKind::Message => self.message_of(record),
            _ => None,
        };
        let is_prompt = message.as_ref().is_some_and(Message::is_prompt);
        if is_prompt {
            // What it answers belongs to the turn before.
            self.results(message.as_ref())?;
            self.begin_turn(record)?;
        }
        if self.wanted == Some(seq) {
            let here = format!("{} record {seq}", self.sheet.glyphs().here);
            self.small(&here, BOLD)?;
        }
        self.last = Some(seq);
        match (record.kind(), message) {
            (RecordKind::Message, Some(message)) => self.message(record, &message, is_prompt),
            (RecordKind::Message, None) => self.small(&format!("record {seq} cannot be read"), DIM),
            (RecordKind::Compaction, _) => self.compaction(record),
            (RecordKind::Run, _) => match record.run() {
                Ok(Some(run)) => self.run(&run),
                _ => self.small(&format!("run {seq} cannot be read"), DIM),
            },
            (RecordKind::Note, _) => self.note(record),
            (RecordKind::Spawned, _) => self.spawned(record),
            // Where it came from, and what was counted: nobody said that.
            (RecordKind::Source | RecordKind::Usage, _) => Ok(()),
            (kind, _) => {
                let kind = one_line(kind.as_str(), 40);
                self.small(&format!("record {seq} is of another kind: {kind}"), DIM)
            }
        }
    }

    /// Says, where it happens, that something could not be read.
    pub(super) fn damaged(&mut self, places: u64, before: u64) -> io::Result<()> {
        let places = count(places, "damaged place");
        self.small(
            &format!("{places} before record {before}, passed over"),
            DIM,
        )
    }

    /// Says something that is not of the conversation.
    pub(super) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.small(text, DIM)
    }

    /// Writes what is held back, and how the last turn ended.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.end_turn()?;
        self.sheet.flush()
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.sheet.flush()
    }

    /// Reads a message; where only a part of it is lost, the rest of it.
    fn message_of(&mut self, record: &RecordRef<'_>) -> Option<Message> {
        match record.message() {
            Ok(message) => message,
            Err(_) => {
                self.unreadable.push(record.seq());
                record.stored_message().ok().flatten()
            }
        }
    }

    /// Says where the part of the session that this one was forked from ends.
    fn pass_fork(&mut self, seq: u64) -> io::Result<()> {
        let passed = |(end, _): &mut (u64, String)| seq > *end;
        let Some((_, parent)) = self.fork.take_if(passed) else {
            return Ok(());
        };
        if self.last.is_none() {
            return Ok(());
        }
        self.end_turn()?;
        let words = format!("forked here from {parent}");
        self.sheet.heading(&[Span::new(BOLD, &words)], "")
    }

    fn begin_turn(&mut self, record: &RecordRef<'_>) -> io::Result<()> {
        self.end_turn()?;
        self.turn += 1;
        self.begun = Some(record.seq());
        let words = match self.numbered {
            true => format!("turn {}", self.turn),
            false => "a turn that was taken back".to_owned(),
        };
        self.heading(&words, record)
    }

    fn heading(&mut self, words: &str, record: &RecordRef<'_>) -> io::Result<()> {
        let mut line = vec![Span::new(BOLD, words)];
        if let Some(at) = record.at() {
            let dot = self.sheet.glyphs().dot;
            line.push(Span::new(DIM, &format!(" {dot} {}", self.when(at))));
        }
        let edge = format!("record {}", record.seq());
        self.sheet.heading(&line, &edge)
    }

    /// Writes a time, and the day where that is another one than before.
    fn when(&mut self, at: Timestamp) -> String {
        let day = when::day(at);
        let time = when::time(at);
        if day == self.day {
            return time;
        }
        self.day = day;
        format!("{} {time}", self.day)
    }

    fn end_turn(&mut self) -> io::Result<()> {
        self.release_all()?;
        let spent = self.ledger.close().words(self.sheet.glyphs());
        let changed = match (self.begun.take(), self.last) {
            (Some(from), Some(to)) => self.changes.of_turn(from, to),
            _ => String::new(),
        };
        self.sheet.footer(&changed, &spent)
    }

    fn message(
        &mut self,
        record: &RecordRef<'_>,
        message: &Message,
        is_prompt: bool,
    ) -> io::Result<()> {
        self.ledger.take(record, message.usage.clone());
        let mut first = is_prompt;
        if let Role::Other(role) = &message.role {
            self.small(&format!("{}:", one_line(role, 40)), DIM)?;
        }
        for block in &message.blocks {
            match block {
                Block::Text(block) if message.role == Role::Assistant => {
                    self.answer(&block.text)?
                }
                Block::Text(block) if message.role == Role::User => {
                    self.said(&block.text, std::mem::take(&mut first))?;
                }
                Block::Text(block) if matches!(message.role, Role::Other(_)) => {
                    self.said(&block.text, false)?;
                }
                Block::Text(block) => self.folded(message.role.as_str(), &block.text)?,
                Block::Thinking(block) => self.thinking(&block.thinking)?,
                Block::ToolUse(call) => self.call(Call::new(call))?,
                Block::ToolResult(_) if is_prompt => {}
                Block::ToolResult(result) => self.result(result)?,
                Block::Media(media) => self.small(&format!("[{}]", medium(media)), Style::new())?,
                Block::Other(json) => self.small(&one_line(json.as_str(), 400), DIM)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes in the results that a message has, and nothing else of it.
    fn results(&mut self, message: Option<&Message>) -> io::Result<()> {
        let blocks = message.map_or(&[][..], |message| &message.blocks);
        for block in blocks {
            if let Block::ToolResult(result) = block {
                self.result(result)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let lines = markdown::render(text, self.sheet.room(), self.sheet.glyphs());
        self.put(Kind::Text, lines)
    }

    /// Writes what the user said, as it was typed; `first` with the sign of a prompt.
    fn said(&mut self, text: &str, first: bool) -> io::Result<()> {
        let lines = wrap_plain(
            text.trim_start_matches('\n'),
            Style::new(),
            self.sheet.room(),
        );
        match first {
            true => self.sheet.prompt(&lines),
            false => self.put(Kind::Text, lines),
        }
    }

    fn thinking(&mut self, text: &str) -> io::Result<()> {
        match text.trim() {
            "" => self.small("thinking, not shown by its provider", DIM),
            text => self.folded("thinking", text),
        }
    }

    /// Writes a text in one line, or whole where that is wanted: instructions and thoughts
    /// are long, and seldom read.
    fn folded(&mut self, name: &str, text: &str) -> io::Result<()> {
        if self.manner.full {
            let text = format!("{name}: {}", text.trim());
            let lines = wrap_plain(&text, DIM, self.sheet.room());
            return self.put(Kind::Text, lines);
        }
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default().trim();
        let more = if lines.next().is_some() { " …" } else { "" };
        let room = self.sheet.room().saturating_sub(more.len());
        let line = one_line(&format!("{name}: {first}"), room);
        self.small(&format!("{line}{more}"), DIM)
    }

    fn call(&mut self, call: Call) -> io::Result<()> {
        if self.manner.live {
            let line = call.line(None, self.sheet.room(), self.sheet.glyphs());
            // What comes of it is not known yet.
            let begun = line.len().saturating_sub(2);
            return self.sheet.put(Kind::Small, &[line[..begun].to_vec()]);
        }
        self.held.push_back(Held::Call(call, None));
        self.bound()
    }

    fn result(&mut self, result: &ToolResult) -> io::Result<()> {
        let outcome = Outcome::new(result, self.manner.full);
        let waits = |held: &&mut Held| match held {
            Held::Call(call, None) => call.id == *result.tool_use_id,
            _ => false,
        };
        if let Some(Held::Call(_, slot)) = self.held.iter_mut().find(waits) {
            self.held_bytes += outcome.output.as_ref().map_or(0, String::len);
            *slot = Some(outcome);
            self.release()?;
            return self.bound();
        }
        let name = result.tool_name.as_deref().unwrap_or("tool");
        let name = one_line(name, 60);
        let line = outcome.line(&name, self.sheet.room(), self.sheet.glyphs());
        self.put(Kind::Small, vec![line])?;
        match self.output_lines(&outcome) {
            Some(lines) => self.put(Kind::Small, lines),
            None => Ok(()),
        }
    }

    /// Returns a tool's output as it is shown where it is shown whole.
    fn output_lines(&self, outcome: &Outcome) -> Option<Vec<Line>> {
        let output = outcome.output.as_ref()?.trim_end();
        let line = |line: &str| vec![Span::plain("    "), Span::new(DIM, &visible(line))];
        (!output.is_empty()).then(|| output.lines().map(line).collect())
    }

    fn compaction(&mut self, record: &RecordRef<'_>) -> io::Result<()> {
        self.ledger.take_compaction(record);
        self.end_turn()?;
        self.heading("compaction", record)?;
        let Ok(Some(stored)) = record.compaction() else {
            return self.small("a summary that cannot be read", DIM);
        };
        let covered = count(stored.removed_message_count, "message");
        self.small(&format!("in place of {covered}, the model is told:"), DIM)?;
        self.answer(&stored.summary)
    }

    fn run(&mut self, run: &Run) -> io::Result<()> {
        let words = match (run.exit_code, run.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "how it ended is not known".to_owned(),
        };
        let took = format_duration(Duration::from_millis(run.duration_ms));
        let call = Call {
            id: String::new(),
            name: "run".to_owned(),
            with: clean(&command_line(&run.argv)).into_owned(),
        };
        let outcome = Outcome {
            failed: run.exit_code != Some(0),
            words: format!("{words}, {took}"),
            output: None,
        };
        let line = call.line(Some(&outcome), self.sheet.room(), self.sheet.glyphs());
        self.put(Kind::Small, vec![line])?;
        match self.changes.of_run(run.after).as_str() {
            "" => Ok(()),
            changed => self.small(&format!("  {changed}"), Style::new()),
        }
    }

    fn note(&mut self, record: &RecordRef<'_>) -> io::Result<()> {
        let Some(words) = self.known.learn(record) else {
            return Ok(());
        };
        self.small(&format!("note: {words}"), DIM)
    }

    fn spawned(&mut self, record: &RecordRef<'_>) -> io::Result<()> {
        let words = match serde_json::from_slice::<Spawned>(record.bytes()) {
            Ok(spawned) => format!("a sub-agent began session {}", short(&spawned.session_id)),
            Err(_) => "a sub-agent began a session".to_owned(),
        };
        self.small(&words, DIM)
    }

    /// Writes something in one line or a few.
    fn small(&mut self, text: &str, style: Style) -> io::Result<()> {
        let lines = wrap(&[Span::new(style, text)], self.sheet.room());
        self.put(Kind::Small, lines)
    }

    /// Writes lines, or holds them back behind what waits.
    fn put(&mut self, kind: Kind, lines: Vec<Line>) -> io::Result<()> {
        if self.held.is_empty() {
            return self.sheet.put(kind, &lines);
        }
        let spans = lines.iter().flatten();
        self.held_bytes += spans.map(|span| span.text.len()).sum::<usize>();
        self.held.push_back(Held::Lines(kind, lines));
        self.bound()
    }

    /// Writes everything where too much waits.
    fn bound(&mut self) -> io::Result<()> {
        match self.held.len() > MOST_HELD || self.held_bytes > MOST_HELD_BYTES {
            true => self.release_all(),
            false => Ok(()),
        }
    }

    /// Writes what waits for no result any more.
    fn release(&mut self) -> io::Result<()> {
        while let Some(held) = self.held.pop_front() {
            if matches!(held, Held::Call(_, None)) {
                self.held.push_front(held);
                return Ok(());
            }
            self.write_held(&held)?;
        }
        self.held_bytes = 0;
        Ok(())
    }

    fn release_all(&mut self) -> io::Result<()> {
        while let Some(held) = self.held.pop_front() {
            self.write_held(&held)?;
        }
        self.held_bytes = 0;
        Ok(())
    }

    fn write_held(&mut self, held: &Held) -> io::Result<()> {
        match held {
            Held::Lines(kind, lines) => self.sheet.put(*kind, lines),
            Held::Call(call, outcome) => {
                let line = call.line(outcome.as_ref(), self.sheet.room(), self.sheet.glyphs());
                self.sheet.put(Kind::Small, &[line])?;
                let output = outcome.as_ref().and_then(|it| self.output_lines(it));
                match output {
                    Some(lines) => self.sheet.put(Kind::Small, &lines),
                    None => Ok(()),
                }
            }
        }
    }
}

//! The parts of a page: whole records of them, as many as there is room for.

use std::collections::VecDeque;

use backtrail::SessionId;
use backtrail::conversation::{Conversation, Item};
use backtrail_view::library::Palette;
use backtrail_view::library::{Fold, Part, PartKind};

use super::super::{StoreLibrary, tui_lines};
use super::{Source, is_hidden};
use crate::commands::conversation::session_prices;
use crate::commands::show::parts::{PartOptions, PartWriter};
use crate::error::Result;

/// If a fold hides everything, a page ends after this many records.
const MOST_RECORDS: u64 = 20_000;
/// Prompts are counted from the last one that the catalogue knows, unless that is further away.
const MOST_UNKNOWN: u64 = 2_000;

/// How much there is room for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) lines: usize,
    pub(super) records: u64,
}

/// Which way a page is filled from a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    /// From the record on, at least up to another one.
    Forwards(Limits, Option<u64>),
    /// From before the record.
    Backwards(Limits),
}

/// The parts of some records.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) parts: VecDeque<Part>,
    pub(super) first: u64,
    pub(super) last: u64,
    /// Whether there was no room for those that follow.
    pub(super) has_more: bool,
    lines: usize,
    /// The sub-agents that calls started, by the id of the call.
    started: Vec<(String, String)>,
    /// The calls of the parts, by record and id.
    calls: Vec<(u64, String)>,
}

/// Lays out parts.
pub(super) struct Layout<'a> {
    pub(super) library: &'a StoreLibrary,
    pub(super) source: &'a Source,
    pub(super) width: usize,
    pub(super) fold: Fold,
    pub(super) palette: Palette,
}

impl Layout<'_> {
    /// Collects the parts from a record on, or before it.
    pub(super) fn collect(&self, seq: u64, direction: Direction) -> Result<Parts> {
        let mut parts = match direction {
            Direction::Forwards(limits, until) => self.forwards(seq, limits, until)?,
            Direction::Backwards(limits) => self.backwards(seq, limits)?,
        };
        parts.name_sub_agents();
        Ok(parts)
    }

    fn forwards(&self, first: u64, limits: Limits, until: Option<u64>) -> Result<Parts> {
        let mut parts = Parts {
            first,
            last: self.source.end,
            ..Parts::default()
        };
        let mut writer = Writer::new(self, first)?;
        for item in self.items(first)? {
            let item = item?;
            let seq = seq_of(&item);
            let is_wanted = until.is_some_and(|until| seq <= until);
            if seq >= first && is_shown(&item) && !is_wanted && parts.is_full(seq, limits) {
                parts.last = seq - 1;
                parts.has_more = true;
                break;
            }
            parts.add(&mut writer, item, first);
        }
        Ok(parts)
    }

    /// Collects the parts before a record: goes back until there are enough records, and further
    /// if none of them shows anything.
    fn backwards(&self, before: u64, limits: Limits) -> Result<Parts> {
        let mut records = limits.records;
        loop {
            let first = self.records_back(before, records)?;
            let parts = self.before(first, before, limits)?;
            let is_enough = !parts.parts.is_empty() || records >= MOST_RECORDS;
            if is_enough || first <= self.source.first {
                return Ok(parts);
            }
            records = records.saturating_mul(8);
        }
    }

    /// Returns the record that is so many records before another one.
    fn records_back(&self, before: u64, records: u64) -> Result<u64> {
        if self.source.trail.is_some() {
            return Ok(self.source.first);
        }
        let mut first = self.source.first;
        let mut back = self.source.reader.records_back_from(before)?;
        for _ in 0..records {
            match back.next()? {
                Some(record) => first = record.seq(),
                None => return Ok(self.source.first),
            }
        }
        Ok(first)
    }

    /// Collects the last parts of the records from `first` to before `before`.
    fn before(&self, first: u64, before: u64, limits: Limits) -> Result<Parts> {
        let mut parts = Parts {
            first,
            last: before.saturating_sub(1),
            ..Parts::default()
        };
        let mut writer = Writer::new(self, first)?;
        for item in self.items(first)? {
            let item = item?;
            if seq_of(&item) >= before && is_shown(&item) {
                break;
            }
            parts.add(&mut writer, item, first);
            parts.trim(limits);
        }
        Ok(parts)
    }

    /// Returns the items from a record on, and some before it.
    fn items(&self, first: u64) -> Result<Conversation> {
        let reader = &self.source.reader;
        Ok(match self.source.trail {
            Some((trail, seq)) => reader.turn_in_trail(trail, seq)?,
            None => reader.conversation_from(first)?,
        })
    }

    /// Returns how many prompts come before one, if that can be found out in little time.
    fn turns_before(&self, seq: u64) -> Result<Option<u64>> {
        let reader = &self.source.reader;
        let index = self.library.index_as_left()?;
        let Some((mut turns, known)) = index.turns_before(&reader.line_parts()?, seq)? else {
            return Ok(None);
        };
        if seq.saturating_sub(known) > MOST_UNKNOWN {
            return Ok(None);
        }
        let mut records = reader.records_from(known + 1)?;
        while let Some(record) = records.next()?
            && record.seq() < seq
        {
            let is_prompt = matches!(record.stored_message(), Ok(Some(it)) if it.is_prompt());
            turns += u64::from(is_prompt);
        }
        Ok(Some(turns))
    }
}

/// Lays out the parts of one page.
struct Writer<'a> {
    layout: &'a Layout<'a>,
    parts: PartWriter<'a>,
    has_prompt: bool,
}

impl<'a> Writer<'a> {
    fn new(layout: &'a Layout<'a>, first: u64) -> Result<Self> {
        let source = layout.source;
        let options = PartOptions {
            width: layout.width,
            full: layout.fold == Fold::Full,
            undone: source.trail.is_some(),
            continued: first > source.first,
            palette: layout.palette,
        };
        let prices = session_prices(&layout.library.store, &source.info)?;
        Ok(Self {
            layout,
            parts: PartWriter::new(options, &source.changes, prices, &source.info),
            has_prompt: false,
        })
    }

    /// Counts the turns before the first prompt of the page.
    fn number(&mut self, item: &Item) {
        let is_numbered = self.layout.source.trail.is_none();
        if let Item::Prompt(prompt) = item
            && is_numbered
            && !std::mem::replace(&mut self.has_prompt, true)
        {
            // A turn without a number is better than no turn.
            let turns = self.layout.turns_before(prompt.seq).unwrap_or(None);
            self.parts.set_turns(turns);
        }
    }
}

impl Parts {
    /// Adds an item, if it is of the page and shows something.
    fn add(&mut self, writer: &mut Writer<'_>, item: Item, first: u64) {
        let seq = seq_of(&item);
        let Some(kind) = kind_of(&item).filter(|kind| is_open(*kind, writer.layout.fold)) else {
            if !is_shown(&item) {
                writer.parts.pass(item);
            }
            return;
        };
        if seq < first {
            return writer.parts.pass(item);
        }
        writer.number(&item);
        let (lines, has_more) = writer.parts.part(&item);
        if lines.is_empty() {
            return;
        }
        self.lines += lines.len();
        let sub_agent = self.note(&item, writer.layout.source);
        self.parts.push_back(Part {
            seq,
            kind,
            lines: tui_lines(lines),
            sub_agent,
            has_more,
        });
    }

    /// Takes note of calls and the sub-agents that they started; returns the sub-agent that an
    /// item is about.
    fn note(&mut self, item: &Item, source: &Source) -> Option<String> {
        match item {
            Item::ToolCall(call) => {
                self.calls.push((call.seq, call.id.to_string()));
                let mut started = source.sub_agents.of_call(&call.id);
                started.next().map(SessionId::to_string)
            }
            Item::Spawned(item) => {
                let spawned = item.spawned.as_ref()?;
                let id = spawned.session_id.to_string();
                self.started.push((spawned.tool_use_id.clone(), id.clone()));
                Some(id)
            }
            _ => None,
        }
    }

    /// Sets the sub-agents of the calls that started them.
    fn name_sub_agents(&mut self) {
        for (call, session) in &self.started {
            let Some((seq, _)) = self.calls.iter().find(|(_, id)| id == call) else {
                continue;
            };
            let mut parts = self.parts.iter_mut();
            let is_it = |part: &&mut Part| part.seq == *seq && part.kind == PartKind::Tool;
            if let Some(part) = parts.find(is_it) {
                part.sub_agent = Some(session.clone());
            }
        }
    }

    /// Returns whether there is no room for another record.
    fn is_full(&self, seq: u64, limits: Limits) -> bool {
        let records = seq.saturating_sub(self.first);
        let Some(last) = self.parts.back() else {
            return records >= MOST_RECORDS;
        };
        last.seq < seq && (self.lines >= limits.lines || records >= limits.records)
    }

    /// Removes the first records while the others are enough.
    fn trim(&mut self, limits: Limits) {
        while let Some((lines, next)) = self.first_record() {
            if self.lines <= limits.lines && self.parts.len() as u64 <= limits.records {
                return;
            }
            while self.parts.front().is_some_and(|part| part.seq < next) {
                self.parts.pop_front();
            }
            self.lines -= lines;
            self.first = next;
        }
    }

    /// Returns how many lines the first record has, and the record after it.
    fn first_record(&self) -> Option<(usize, u64)> {
        let first = self.parts.front()?.seq;
        let mut lines = 0;
        for part in &self.parts {
            if part.seq > first {
                return Some((lines, part.seq));
            }
            lines += part.lines.len();
        }
        None
    }
}

/// Returns the record that an item belongs to. Gaps come before everything else.
fn seq_of(item: &Item) -> u64 {
    match item {
        Item::Gap(_) => 0,
        item => item.seq(),
    }
}

/// Returns whether an item is more than a number to add up.
fn is_shown(item: &Item) -> bool {
    kind_of(item).is_some()
}

/// Returns what an item is on a page.
pub(super) fn kind_of(item: &Item) -> Option<PartKind> {
    Some(match item {
        Item::Prompt(_) => PartKind::Prompt,
        Item::Answer(_) | Item::Attachment(_) => PartKind::Answer,
        Item::ToolCall(_) | Item::ToolResult(_) | Item::Run(_) => PartKind::Tool,
        Item::Thinking(_) => PartKind::Thinking,
        Item::Injected(_) => PartKind::Injected,
        Item::TurnEnd(_) => PartKind::TurnEnd,
        Item::Reply(_) | Item::Spending(_) | Item::Moved(_) => return None,
        _ => PartKind::Remark,
    })
}

/// Returns whether a fold shows a kind of parts.
fn is_open(kind: PartKind, fold: Fold) -> bool {
    let is_dialogue = !matches!(
        kind,
        PartKind::Tool | PartKind::Thinking | PartKind::Injected
    );
    is_dialogue || !is_hidden(fold)
}

//! Records of a conversation, as the HTML export writes them.
//!
//! Which part belongs to which record does not depend on the request, so ranges tile. A range
//! costs what it holds and the turn that it begins in, whatever the length of the session.

use std::sync::Arc;

use backtrail::conversation::{Conversation, Item, TurnEnd};
use backtrail::{RecordKind, RecordRef};
use backtrail_web::library::{Records, RecordsRequest};

use super::super::pages::Source;
use super::super::{Answer, StoreLibrary, failure, session_id};
use crate::commands::export::{Export, Page};
use crate::error::{CommandError, Result};

/// No more records are written at once.
const MOST: u64 = 10_000;
/// A turn is looked for in so many records before a range.
const MOST_BEFORE: u64 = 1_000;
/// What a turn spent is added up over so many records; of a longer one it is not said.
const MOST_IN_TURN: u64 = 20_000;

pub(super) fn records(library: &StoreLibrary, request: &RecordsRequest) -> Answer<Records> {
    let id = session_id(&request.session)?;
    library.show_session(&id);
    let read = || {
        let source = Source::open(library, &id, request.trail, request.first)?;
        write(library, &source, request)
    };
    read().map_err(failure)
}

fn write(library: &StoreLibrary, source: &Source, request: &RecordsRequest) -> Result<Records> {
    let first = request.first.max(source.first);
    let last = request.last.min(source.end);
    if last.saturating_sub(first) >= MOST {
        let what = format!("more than {MOST} records were asked for");
        return Err(CommandError::invalid(what));
    }
    let html = match first <= last {
        true => RangeWriter::new(library, source, first, last).write()?,
        false => String::new(),
    };
    let end = source.end;
    Ok(Records { html, end })
}

/// Where a range is read from.
struct Beginning {
    items: Conversation,
    /// Whether the turn that the range begins in is older.
    is_amid: bool,
}

/// Writes a range.
struct RangeWriter<'a> {
    library: &'a StoreLibrary,
    source: &'a Source,
    first: u64,
    last: u64,
}

impl<'a> RangeWriter<'a> {
    fn new(library: &'a StoreLibrary, source: &'a Source, first: u64, last: u64) -> Self {
        Self {
            library,
            source,
            first,
            last,
        }
    }

    fn write(&self) -> Result<String> {
        let Source { reader, info, .. } = self.source;
        let mut export = Export::new(&self.library.store, reader, &self.library.ui);
        let paths = self.library.site.paths.of(reader, info)?;
        let changes = Arc::clone(&self.source.changes);
        let sub_agents = Arc::clone(&self.source.sub_agents);
        let mut page = Page::new(&mut export, info, changes, sub_agents, paths)?;
        let beginning = self.beginning()?;
        if beginning.is_amid {
            page.begin_amid();
        }
        let (mut html, mut seq) = (String::new(), 0);
        for item in beginning.items {
            let item = item?;
            if matches!(item, Item::Spending(_)) {
                page.pass(&item);
                continue;
            }
            // What comes after an item of a later record belongs to that.
            seq = seq_of(&item).max(seq);
            if seq > self.last {
                return Ok(html);
            }
            if seq < self.first {
                page.pass(&item);
            } else {
                let item = self.completed(&mut page, item)?;
                html += &page.item(&item);
            }
        }
        if self.last >= self.source.end {
            html += &page.rest();
        }
        Ok(html)
    }

    /// Finds where reading begins, so that the items of the range are those of the whole
    /// conversation: at the turn before the one that it begins in, for what was spent between
    /// them, or a bounded number of records before it.
    fn beginning(&self) -> Result<Beginning> {
        let reader = &self.source.reader;
        if let Some((trail, seq)) = self.source.trail {
            return Ok(Beginning {
                items: reader.turn_in_trail(trail, seq)?,
                is_amid: false,
            });
        }
        let found = self.boundary_before(self.first.saturating_add(1), MOST_BEFORE, is_prompt)?;
        let (from, is_amid) = match found {
            Boundary::At(prompt) => (prompt, false),
            Boundary::Start => (self.first, false),
            Boundary::TooFar => (self.first, true),
        };
        Ok(Beginning {
            items: reader.conversation_from(from)?,
            is_amid,
        })
    }

    /// Looks for the nearest record of a kind before another one.
    fn boundary_before(
        &self,
        before: u64,
        most: u64,
        is_it: fn(&RecordRef<'_>) -> bool,
    ) -> Result<Boundary> {
        let mut records = self.source.reader.records_back_from(before)?;
        for _ in 0..most {
            match records.next()? {
                Some(record) if is_it(&record) => return Ok(Boundary::At(record.seq())),
                Some(_) => {}
                None => return Ok(Boundary::Start),
            }
        }
        Ok(Boundary::TooFar)
    }

    /// Reads a turn again whose beginning was not read, at its end: what it spent is said there.
    fn completed(&self, page: &mut Page<'_, '_>, item: Item) -> Result<Item> {
        let Item::TurnEnd(mut end) = item else {
            return Ok(item);
        };
        if page.is_amid() {
            page.forget_turn();
            let before = end.last.saturating_add(1);
            if let Boundary::At(first) = self.boundary_before(before, MOST_IN_TURN, begins)? {
                page.read_again(self.turn(first, &end)?.iter());
                end.first = first;
            }
        }
        Ok(Item::TurnEnd(end))
    }

    /// Returns what adds up to a turn, or to the part of it after a compaction.
    fn turn(&self, first: u64, end: &TurnEnd) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for item in self.source.reader.turns(first, end.last)? {
            let item = item?;
            // What the compaction spent is of the part before it.
            let is_before = matches!(&item, Item::Spending(it) if it.response.is_compaction);
            if !is_before {
                items.push(item);
            }
        }
        Ok(items)
    }
}

/// A record before another one, if one was found.
enum Boundary {
    At(u64),
    /// There is none.
    Start,
    TooFar,
}

fn is_prompt(record: &RecordRef<'_>) -> bool {
    matches!(record.stored_message(), Ok(Some(message)) if message.is_prompt())
}

/// Returns whether a record begins a turn, or a part of one.
fn begins(record: &RecordRef<'_>) -> bool {
    record.kind() == RecordKind::Compaction || is_prompt(record)
}

/// Returns the record that an item belongs to. Gaps come before everything else.
fn seq_of(item: &Item) -> u64 {
    match item {
        Item::Gap(_) => 0,
        item => item.seq(),
    }
}

//! Conversations, page by page.
//!
//! A page is a range of records and the parts that belong to them. Which part belongs to which
//! record does not depend on the page, so pages tile: no part is in two of them, and none is
//! missing. A page reads a bounded part of the session, whatever its length.

mod collect;
mod text;

use std::sync::Arc;

use backtrail::{SessionId, SessionInfo, SessionReader};
use backtrail_view::library::{Fold, Page, PageAt, PageRequest, Place};

use self::collect::{Direction, Layout, Limits, Parts};
use super::{Answer, StoreLibrary, failure, session_id};
use crate::commands::conversation::changes::Changes;
use crate::commands::conversation::sub_agents::SubAgents;
use crate::error::{CommandError, Result};

/// How much is on a page.
const PAGE: Limits = Limits {
    lines: 200,
    records: 60,
};
/// How much comes before the record that a page is around.
const LEAD: Limits = Limits {
    lines: 60,
    records: 20,
};

pub(super) fn page(library: &StoreLibrary, request: &PageRequest) -> Answer<Page> {
    let id = session_id(&request.session)?;
    library.open_session(&id);
    read_page(library, request, &id).map_err(failure)
}

fn read_page(library: &StoreLibrary, request: &PageRequest, id: &SessionId) -> Result<Page> {
    let source = Source::open(library, id, request.trail, trail_place(request.at))?;
    let layout = Layout {
        library,
        source: &source,
        width: usize::from(request.width),
        fold: request.fold,
        palette: request.palette,
    };
    let parts = match request.at {
        PageAt::Start => layout.collect(source.first, Direction::Forwards(PAGE, None))?,
        PageAt::End => layout.collect(u64::MAX, Direction::Backwards(PAGE))?,
        PageAt::Before(seq) => layout.collect(seq, Direction::Backwards(PAGE))?,
        PageAt::After(seq) => {
            let first = seq.saturating_add(1).max(source.first);
            layout.collect(first, Direction::Forwards(PAGE, None))?
        }
        PageAt::Around(seq) => {
            let lead = layout.collect(seq, Direction::Backwards(LEAD))?;
            layout.collect(lead.first, Direction::Forwards(PAGE, Some(seq)))?
        }
    };
    Ok(finished(parts, &source))
}

/// Returns a record of the turn that is asked for, if it was undone.
fn trail_place(at: PageAt) -> u64 {
    match at {
        PageAt::Start | PageAt::End => u64::MAX,
        PageAt::Around(seq) | PageAt::Before(seq) | PageAt::After(seq) => seq,
    }
}

fn finished(parts: Parts, source: &Source) -> Page {
    let last = parts.last.min(source.end);
    Page {
        first: parts.first,
        last,
        has_before: parts.first > source.first,
        has_after: parts.has_more || last < source.end,
        end: source.end,
        parts: parts.parts.into(),
    }
}

/// Where parts come from: the line of a session, or a turn that was undone.
pub(super) struct Source {
    pub(super) reader: SessionReader,
    pub(super) info: SessionInfo,
    pub(super) changes: Arc<Changes>,
    pub(super) sub_agents: Arc<SubAgents>,
    pub(super) trail: Option<(u32, u64)>,
    /// The first and the last record.
    pub(super) first: u64,
    pub(super) end: u64,
}

impl Source {
    pub(super) fn open(
        library: &StoreLibrary,
        id: &SessionId,
        trail: Option<u32>,
        seq: u64,
    ) -> Result<Self> {
        let reader = library.store.read_session(id)?;
        let info = reader.info()?;
        let (first, end) = match trail {
            Some(trail) => {
                let turn = reader.turn_records_in_trail(trail, seq)?;
                (*turn.start(), *turn.end())
            }
            None => (0, info.last_seq),
        };
        let turns = library.turns_of(&reader, &info);
        Ok(Self {
            changes: turns.changes,
            sub_agents: turns.sub_agents,
            reader,
            info,
            trail: trail.map(|trail| (trail, seq)),
            first,
            end,
        })
    }
}

pub(super) fn text(library: &StoreLibrary, place: &Place) -> Answer<String> {
    let id = session_id(&place.session)?;
    let source = Source::open(library, &id, place.trail, place.seq).map_err(failure)?;
    text::of_record(&source, place.seq).map_err(failure)
}

pub(super) fn prompt_from(
    library: &StoreLibrary,
    place: &Place,
    forwards: bool,
) -> Answer<Option<u64>> {
    let id = session_id(&place.session)?;
    let read = || -> backtrail::Result<Option<u64>> {
        let reader = library.store.read_session(&id)?;
        let Some(trail) = place.trail else {
            return reader.prompt_from(place.seq, forwards);
        };
        // Only the turn itself is shown.
        let prompt = *reader.turn_records_in_trail(trail, place.seq)?.start();
        Ok(Some(prompt).filter(|prompt| !forwards && (1..place.seq).contains(prompt)))
    };
    read().map_err(|error| failure(CommandError::from(error)))
}

/// Returns whether a fold shows nothing but the dialogue.
fn is_hidden(fold: Fold) -> bool {
    fold == Fold::Hidden
}

#[cfg(test)]
#[path = "pages/pages_tests.rs"]
mod tests;

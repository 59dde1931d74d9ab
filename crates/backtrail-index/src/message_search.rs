//! A search, from the query to the messages.

use std::collections::{HashMap, HashSet};

use backtrail::plumbing::LinePart;
use backtrail::{Block, Record, SessionId, SessionReader, Timestamp};

use crate::catch_up::IndexState;
use crate::error::{Error, Result};
use crate::feed::{TrailPlace, feed};
use crate::index::Index;
use crate::plan::{ChangedSession, Plan};
use crate::search::{
    AllowedTrails, FilePattern, FoundRecords, Hit, HitKind, IndexedTrail, Order, RawHit,
    SearchAnswer, SearchIndex, SearchRequest, SearchWriter, find, sessions_that_touched,
    snippet_of_record, tier,
};

/// How many bytes of unindexed trails are held in memory at a time.
const CHUNK: u64 = 64 << 20;
/// How many hits of one session are shown while there are others.
const PER_SESSION: usize = 5;
/// How many times as many hits are looked at as are shown, but not more than so many.
const SPREAD: usize = 8;
const MOST: usize = 1_000;

impl SearchRequest {
    /// Searches all records, indexed or not.
    pub(crate) fn look(&self, index: &Index, state: &mut IndexState) -> Result<SearchAnswer> {
        let fitting = state.catalogue()?.fitting(&self.query.filter)?;
        let named = self.query.sessions.as_ref();
        let fits = |session: &SessionId| {
            let fitting = fitting.as_ref();
            fitting.is_none_or(|ids| ids.contains(session.as_str()))
                && named.is_none_or(|ids| ids.contains(session))
        };
        let found = self.wider().find(index, state, &fits)?;
        let found = self.spread(found);
        let mut sessions = Sessions::new(index);
        let mut hits = Vec::with_capacity(found.hits.len());
        for raw in &found.hits {
            hits.extend(self.hit(raw, &mut sessions, state)?);
        }
        Ok(SearchAnswer {
            hits,
            total: found.total,
        })
    }

    /// Returns a request for more hits than are shown, so that one session does not take all the
    /// room. If the newest are wanted, they are shown.
    fn wider(&self) -> Self {
        let mut wider = self.clone();
        if self.query.order == Order::Best {
            let limit = self.query.limit;
            wider.query.limit = limit.saturating_mul(SPREAD).min(limit.max(MOST));
        }
        wider
    }

    /// Keeps the best hits of each session, and more of them only if there is room.
    fn spread(&self, mut found: FoundRecords) -> FoundRecords {
        let limit = self.query.limit;
        if found.hits.len() > limit {
            let mut seen: HashMap<SessionId, usize> = HashMap::new();
            let (mut kept, rest): (Vec<_>, Vec<_>) = found.hits.into_iter().partition(|hit| {
                let count = seen.entry(hit.session.clone()).or_default();
                *count += 1;
                *count <= PER_SESSION
            });
            kept.truncate(limit);
            kept.extend(rest.into_iter().take(limit - kept.len()));
            kept.sort_unstable_by(RawHit::compare);
            found.hits = kept;
        }
        found
    }

    fn find(
        &self,
        index: &Index,
        state: &IndexState,
        fits: &impl Fn(&SessionId) -> bool,
    ) -> Result<FoundRecords> {
        let backlog = &state.backlog;
        // The index on disk has old records of these.
        let replaced = |trail: &IndexedTrail| {
            let id = trail.session.as_str();
            let reread = |changed: &ChangedSession| changed.from_start && changed.id.as_str() == id;
            backlog.changed.iter().any(reread) || backlog.gone.iter().any(|gone| gone == id)
        };
        let mut touched = self.touched(state)?;
        if let Some(dir) = &state.search {
            touched.look_in(dir, |trail| !replaced(trail))?;
        }
        let mut chunks = Chunks::new(index, backlog, fits);
        let mut first = chunks.next(&mut touched)?;
        let on_disk = state.search.as_ref().map(|dir| {
            let fits = |trail: &IndexedTrail| {
                fits(&trail.session) && touched.fits(&trail.session) && !replaced(trail)
            };
            (dir, AllowedTrails::of(dir.known(), fits))
        });
        let mut found = {
            let on_disk = on_disk.iter().map(|(index, allowed)| (*index, allowed));
            let in_memory = first.iter().map(|(index, allowed)| (index, allowed));
            find(self, &on_disk.chain(in_memory).collect::<Vec<_>>())?
        };
        while first.is_some() {
            first = chunks.next(&mut touched)?;
            if let Some((memory, allowed)) = &first {
                let more = find(self, &[(memory, allowed)])?;
                found.merge(more, self);
            }
        }
        Ok(found)
    }

    /// Returns which sessions touched the files that a query for words names.
    fn touched(&self, state: &IndexState) -> Result<TouchedSessions<'_>> {
        let patterns = match self.words.has_words() {
            true => self.words.files.as_slice(),
            // The calls themselves are searched for.
            false => &[],
        };
        let catalogue = state.catalogue()?;
        let changed = patterns
            .iter()
            .map(|file| catalogue.sessions_that_changed(file));
        Ok(TouchedSessions {
            sessions: changed.collect::<Result<_>>()?,
            patterns,
        })
    }

    /// Turns a raw hit into a hit; `None` if the record is gone.
    fn hit(
        &self,
        raw: &RawHit,
        sessions: &mut Sessions<'_>,
        state: &IndexState,
    ) -> Result<Option<Hit>> {
        let Some((reader, parts)) = sessions.open(&raw.session) else {
            return Ok(None);
        };
        let record = match reader.trail_record(raw.number, raw.seq, raw.byte) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == backtrail::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let catalogue = state.catalogue()?;
        let turn = catalogue.turn_of(parts, &raw.session, raw.number, raw.seq)?;
        let is_there = |part: &LinePart| {
            part.session == raw.session && part.trail == raw.number && raw.seq <= part.until
        };
        Ok(Some(Hit {
            session: raw.session.clone(),
            trail: raw.number,
            seq: raw.seq,
            id: record.as_ref().id().map(|id| id.into_owned()),
            at: raw.at.and_then(Timestamp::from_millis),
            role: role_of(&record, raw.role),
            tools: tools_of(&record, |id| catalogue.tool_of(&raw.session, id)),
            score: raw.score,
            snippet: snippet_of_record(&record.as_ref(), &self.words),
            turn,
            undone: !parts.is_empty() && !parts.iter().any(is_there),
            kind: kind_of(&record),
        }))
    }
}

/// The sessions that touched the files of a query: one set for each file.
struct TouchedSessions<'a> {
    patterns: &'a [FilePattern],
    sessions: Vec<HashSet<SessionId>>,
}

impl TouchedSessions<'_> {
    /// Adds the sessions of an index.
    fn look_in(&mut self, index: &SearchIndex, fits: impl Fn(&IndexedTrail) -> bool) -> Result<()> {
        for (pattern, sessions) in self.patterns.iter().zip(&mut self.sessions) {
            sessions.extend(sessions_that_touched(index, pattern, &fits)?);
        }
        Ok(())
    }

    fn fits(&self, session: &SessionId) -> bool {
        self.sessions
            .iter()
            .all(|touched| touched.contains(session))
    }
}

/// Returns the role, reading it from the session if it is not a known one.
fn role_of(record: &Record, known: &str) -> String {
    if known != "other" {
        return known.to_owned();
    }
    match record.as_ref().stored_message() {
        Ok(Some(message)) => message.role.as_str().to_owned(),
        _ => known.to_owned(),
    }
}

/// Returns whether a record was said, done or inserted.
fn kind_of(record: &Record) -> HitKind {
    let record = record.as_ref();
    let message = record.stored_message().ok().flatten();
    match tier(record.kind(), message.as_ref()) {
        0 => HitKind::Said,
        1 => HitKind::Tool,
        _ => HitKind::Injected,
    }
}

/// Returns the tools that a message calls or has results of.
fn tools_of(record: &Record, called: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let Ok(Some(message)) = record.as_ref().stored_message() else {
        return Vec::new();
    };
    let mut tools = Vec::new();
    for block in &message.blocks {
        let tool = match block {
            Block::ToolUse(call) => Some(call.name.as_str().to_owned()),
            Block::ToolResult(result) => match &result.tool_name {
                Some(name) => Some(name.as_str().to_owned()),
                None => called(result.tool_use_id.as_str()),
            },
            _ => None,
        };
        tools.extend(tool.filter(|tool| !tools.contains(tool)));
    }
    tools
}

/// The sessions of the hits, each opened once.
struct Sessions<'a> {
    index: &'a Index,
    open: HashMap<SessionId, Option<(SessionReader, Vec<LinePart>)>>,
}

impl<'a> Sessions<'a> {
    fn new(index: &'a Index) -> Self {
        Self {
            index,
            open: HashMap::new(),
        }
    }

    fn open(&mut self, id: &SessionId) -> Option<(&SessionReader, &[LinePart])> {
        let store = &self.index.store;
        let opened = self.open.entry(id.clone()).or_insert_with(|| {
            let reader = store.read_session(id).ok()?;
            let parts = reader.line_parts().unwrap_or_default();
            Some((reader, parts))
        });
        opened
            .as_ref()
            .map(|(reader, parts)| (reader, parts.as_slice()))
    }
}

/// The unindexed records, in chunks that fit into memory.
struct Chunks<'a, F> {
    index: &'a Index,
    places: std::vec::IntoIter<&'a TrailPlace>,
    fits: &'a F,
}

impl<'a, F: Fn(&SessionId) -> bool> Chunks<'a, F> {
    fn new(index: &'a Index, backlog: &'a Plan, fits: &'a F) -> Self {
        let changed = backlog.changed.iter();
        let places: Vec<&TrailPlace> = changed.flat_map(|changed| &changed.places).collect();
        Self {
            index,
            places: places.into_iter(),
            fits,
        }
    }

    fn next(
        &mut self,
        touched: &mut TouchedSessions<'_>,
    ) -> Result<Option<(SearchIndex, AllowedTrails)>> {
        let mut writer = SearchWriter::in_memory()?;
        let mut bytes = 0;
        let mut is_empty = true;
        while bytes < CHUNK
            && let Some(place) = self.places.next()
        {
            if !(self.fits)(&place.session) {
                continue;
            }
            is_empty = false;
            match self.read(place, &mut writer) {
                Ok(read) => bytes += read,
                // It is listed as unreadable and hides no other session.
                Err(Error::Store(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if is_empty {
            return Ok(None);
        }
        let memory = writer.commit()?;
        touched.look_in(&memory, |_| true)?;
        let allowed = AllowedTrails::of(memory.known(), |trail| touched.fits(&trail.session));
        Ok(Some((memory, allowed)))
    }

    fn read(&self, place: &TrailPlace, writer: &mut SearchWriter) -> Result<u64> {
        let reader = self.index.store.read_session(&place.session)?;
        feed(&reader, &mut [(place.clone(), writer)], &|_| {})
    }
}

//! Finds what is new in the trails since they were last read.

use std::collections::HashSet;

use backtrail::{SessionId, Store};

use crate::error::Result;
use crate::feed::{Sink, TrailPlace};
use crate::trail_dirs::{KnownDirs, KnownTrail, TrailDir};

/// What is to be read.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The sessions that are new or have new records.
    pub(crate) changed: Vec<ChangedSession>,
    /// The sessions that are gone.
    pub(crate) gone: Vec<String>,
    /// The unreadable sessions, with the reason.
    pub(crate) unreadable: Vec<(String, String)>,
    /// How many bytes are to be read.
    pub(crate) bytes: u64,
    /// How many bytes all trails have.
    pub(crate) total: u64,
}

/// A session with new records.
#[derive(Debug)]
pub(crate) struct ChangedSession {
    pub(crate) id: SessionId,
    /// Whether what was read before must be forgotten.
    pub(crate) from_start: bool,
    /// Where to continue reading, trail by trail.
    pub(crate) places: Vec<TrailPlace>,
    /// When names in its directory last changed.
    pub(crate) settled: i64,
}

/// Something that is derived from all trails.
pub(crate) trait Derived: Sink {
    /// Forgets the sessions that are gone, before anything is read.
    fn start(&mut self, plan: &Plan) -> Result<()>;

    /// The trails of a session follow.
    fn session(&mut self, session: &ChangedSession) -> Result<()>;

    /// A session could not be read.
    fn unreadable(&mut self, id: &SessionId, error: &backtrail::Error) -> Result<()>;
}

impl Plan {
    /// Compares the existing trails with what was read.
    pub(crate) fn new(store: &Store, known: &KnownDirs, seen: &[TrailDir]) -> Result<Self> {
        let mut plan = Self::default();
        let mut still_there = 0;
        for session in seen {
            let bytes: u64 = session.trails.iter().map(|trail| trail.bytes).sum();
            plan.total += bytes;
            let before = known.get(&session.id);
            still_there += usize::from(before.is_some());
            if let Some(error) = &session.error {
                plan.unreadable.push((session.id.clone(), error.clone()));
                continue;
            }
            if before.is_some_and(|before| session.is_as_known(&before.trails)) {
                continue;
            }
            let before = before.map_or(&[][..], |before| &before.trails);
            let changed = compare(store, session.id.parse()?, before, session);
            let from = changed.places.iter();
            plan.bytes += from
                .map(|place| place.trail.bytes.saturating_sub(place.from))
                .sum::<u64>();
            plan.changed.push(changed);
        }
        if known.len() > still_there {
            let there: HashSet<&str> = seen.iter().map(|seen| seen.id.as_str()).collect();
            let gone = known.keys().filter(|id| !there.contains(id.as_str()));
            plan.gone = gone.cloned().collect();
            plan.gone.sort_unstable();
        }
        Ok(plan)
    }

    /// Returns whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

/// Returns where to continue reading a session. A trail that differs before that position
/// is read from its beginning, and so is the rest of the session.
fn compare(store: &Store, id: SessionId, known: &[KnownTrail], seen: &TrailDir) -> ChangedSession {
    let reader = store.read_session(&id).ok();
    let from_start = !seen.continues(known, |known| match &reader {
        Some(reader) => reader.trail_has(known.seen.number, known.read_to, known.sum),
        None => Ok(false),
    });
    let places = seen.unread(if from_start { &[] } else { known });
    let places = places.map(|(trail, from)| TrailPlace {
        session: id.clone(),
        trail: *trail,
        from,
    });
    ChangedSession {
        from_start,
        places: places.collect(),
        settled: seen.settled,
        id,
    }
}

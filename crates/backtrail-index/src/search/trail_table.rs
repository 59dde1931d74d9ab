//! The trails in an index, while records are added to it.

use std::collections::BTreeMap;

use backtrail::SessionId;

use super::commit::IndexedTrail;
use crate::error::{Error, Result};
use crate::feed::{End, TrailPlace};
use crate::trail_dirs::KnownTrail;

/// The trails in an index, and the one being read.
///
/// A trail that is read from its beginning gets a new number, and once it was read
/// completely, records under its old number are no longer found. If reading it fails, it
/// stays as it was or, if old and new records are mixed by then, is forgotten, so that
/// the next update reads it from its beginning.
#[derive(Debug, Default)]
pub(super) struct TrailTable {
    trails: BTreeMap<(SessionId, u32), IndexedTrail>,
    next_ordinal: u32,
    open: Option<OpenTrail>,
}

/// The trail that is being read.
#[derive(Debug)]
struct OpenTrail {
    trail: IndexedTrail,
    goes_on: bool,
    /// Everything before this was read already.
    from: u64,
}

impl TrailTable {
    /// Continues with the known trails.
    pub(super) fn new(trails: &[IndexedTrail], next_ordinal: u32) -> Self {
        let entry = |trail: &IndexedTrail| (key(trail), trail.clone());
        Self {
            trails: trails.iter().map(entry).collect(),
            next_ordinal,
            open: None,
        }
    }

    /// Begins or continues a trail.
    pub(super) fn begin(&mut self, place: &TrailPlace) -> Result<()> {
        self.give_up();
        let known = self
            .trails
            .get(&(place.session.clone(), place.trail.number));
        let known = known.filter(|_| place.from > 0).cloned();
        let goes_on = known.is_some();
        let mut trail = match known {
            Some(known) => known,
            None => self.new_trail(place)?,
        };
        trail.known.seen = place.trail;
        self.open = Some(OpenTrail {
            trail,
            goes_on,
            from: place.from,
        });
        Ok(())
    }

    fn new_trail(&mut self, place: &TrailPlace) -> Result<IndexedTrail> {
        let ordinal = self.next_ordinal;
        let next = ordinal.checked_add(1).ok_or(Error::Search {
            doing: "cannot add to the full-text index",
            what: "it has too many trails; delete it to rebuild it".to_owned(),
        });
        self.next_ordinal = next?;
        Ok(IndexedTrail {
            session: place.session.clone(),
            known: KnownTrail {
                seen: place.trail,
                read_to: place.from,
                sum: [0; 8],
            },
            ordinal,
            docs: 0,
        })
    }

    /// Returns the number of the trail being read if a record at this byte is new. Trails
    /// of version 1 are always read from the beginning.
    pub(super) fn ordinal(&self, byte: u64) -> Option<u32> {
        let open = self.open.as_ref()?;
        (byte >= open.from).then_some(open.trail.ordinal)
    }

    /// Counts a record of the trail.
    pub(super) fn count(&mut self) {
        if let Some(open) = &mut self.open {
            open.trail.docs = open.trail.docs.saturating_add(1);
        }
    }

    /// Ends a trail that was read completely.
    pub(super) fn end(&mut self, end: Option<End>) {
        let Some(OpenTrail { mut trail, .. }) = self.open.take() else {
            return;
        };
        if let Some(end) = end {
            trail.known.read_to = end.byte;
            trail.known.sum = end.sum;
        }
        self.trails.insert(key(&trail), trail);
    }

    /// Stops reading the current trail.
    pub(super) fn give_up(&mut self) {
        if let Some(OpenTrail {
            trail,
            goes_on: true,
            ..
        }) = self.open.take()
        {
            self.trails.remove(&key(&trail));
        }
    }

    /// Forgets all trails of a session.
    pub(super) fn forget_session(&mut self, session: &SessionId) {
        let all = (session.clone(), 0)..=(session.clone(), u32::MAX);
        let keys: Vec<_> = self.trails.range(all).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.trails.remove(&key);
        }
    }

    /// Returns the trails by session and number, and the number for the next one.
    pub(super) fn known(&self) -> (Vec<IndexedTrail>, u32) {
        (self.trails.values().cloned().collect(), self.next_ordinal)
    }
}

fn key(trail: &IndexedTrail) -> (SessionId, u32) {
    (trail.session.clone(), trail.known.seen.number)
}

//! Follows a session while it is written.

use std::collections::VecDeque;
use std::path::PathBuf;

use serde::Serialize;

use super::chain::{Segment, Walk};
use super::directory::LogDir;
use crate::error::{Reason, Result};
use crate::store::Store;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{DamageReport, RecordKind, RecordRef, Sums, TrailReason};

/// Reads a session from its beginning and continues as it grows.
///
/// It never waits: [`poll`](Self::poll) returns `None` if there is nothing new, and the
/// caller decides when to try again.
#[derive(Debug)]
pub struct Follower {
    store: Store,
    files: LogDir,
    /// The line of history that is read: its trails, oldest first, and the last seq of
    /// each that belongs to it.
    line: Vec<(PathBuf, u64)>,
    /// The part of it that is still to be read.
    coming: VecDeque<Segment>,
    /// Trails that were created since.
    newer: VecDeque<u32>,
    present: Option<Place>,
    head: u32,
    last_seq: u64,
    damage: DamageReport,
    moved: Option<Moved>,
}

/// The position of the follower.
#[derive(Debug)]
struct Place {
    reader: TrailReader,
    until: u64,
    /// Everything before it was returned.
    offset: u64,
}

/// A move of the conversation: it continues from another place than its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The reason.
    pub reason: TrailReason,
    /// The last record that stays.
    pub seq: u64,
}

impl Follower {
    pub(crate) fn new(store: &Store, files: &LogDir) -> Result<Self> {
        let head = files.head()?;
        let (segments, damage) = Walk::new(store, files, head).collect()?;
        Ok(Self {
            store: store.clone(),
            files: files.clone(),
            line: places(&segments),
            newer: VecDeque::new(),
            coming: segments.into(),
            present: None,
            head,
            last_seq: 0,
            damage,
            moved: None,
        })
    }

    /// Returns the next record, or `None` if there is none yet.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn poll(&mut self) -> Result<Option<RecordRef<'_>>> {
        loop {
            if self.present.is_none() && !self.open_next()? {
                return Ok(None);
            }
            if self.advance()? {
                let place = self.present.as_ref().expect("advance found a record in it");
                return Ok(Some(place.reader.record()));
            }
            if self.coming.is_empty() && !self.look_for_trail()? {
                return Ok(None);
            }
            if self.advance()? {
                // It was written just before the new trail was created.
                let place = self.present.as_ref().expect("advance found a record in it");
                return Ok(Some(place.reader.record()));
            }
            self.present = None;
            if self.coming.is_empty()
                && let Some(trail) = self.newer.pop_front()
            {
                self.turn_to(trail)?;
            }
        }
    }

    /// Returns the move of the conversation before the record that [`poll`](Self::poll)
    /// returned last, once.
    pub fn take_moved(&mut self) -> Option<Moved> {
        self.moved.take()
    }

    /// Returns the damage that was skipped so far.
    pub fn damage(&self) -> &DamageReport {
        &self.damage
    }

    /// Opens the next trail, if there is one.
    fn open_next(&mut self) -> Result<bool> {
        let Some(segment) = self.coming.pop_front() else {
            return Ok(false);
        };
        self.present = Some(Place {
            reader: segment.forwards(0, STREAM_BUFFER, Sums::Check)?,
            until: segment.until,
            offset: 0,
        });
        Ok(true)
    }

    /// Advances to the next complete record of the current trail; false if there is none
    /// now.
    fn advance(&mut self) -> Result<bool> {
        let Some(place) = &mut self.present else {
            return Ok(false);
        };
        loop {
            let found = place.reader.advance()?;
            let ended = place.reader.last_line().filter(|(.., ended)| *ended);
            match found {
                None => {
                    place.reader.seek(place.offset);
                    return Ok(false);
                }
                // Without its newline it may still be removed.
                Some(_) if ended.is_none() => {
                    place.reader.seek(place.offset);
                    return Ok(false);
                }
                Some(Found::Damage(damage)) => {
                    place.offset = ended.map_or(place.offset, |(_, end, _)| end);
                    if damage.reason != Reason::Unfinished {
                        self.damage.add(damage);
                    }
                }
                Some(Found::Record) => {
                    place.offset = ended.map_or(place.offset, |(_, end, _)| end);
                    let record = place.reader.record();
                    let seq = record.seq();
                    if record.kind() != RecordKind::Opener
                        && seq <= place.until
                        && seq > self.last_seq
                    {
                        self.last_seq = seq;
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Looks for trails with higher numbers; true if there are any.
    fn look_for_trail(&mut self) -> Result<bool> {
        let head = self.head;
        let newer = self.files.trails()?;
        self.newer.extend(newer.into_iter().filter(|n| *n > head));
        self.head = self.newer.back().copied().unwrap_or(head);
        Ok(!self.newer.is_empty())
    }

    /// Switches to the line that ends in a new trail, from the last place that both share.
    fn turn_to(&mut self, trail: u32) -> Result<()> {
        let (segments, mut damage) = Walk::new(&self.store, &self.files, trail).collect()?;
        self.damage.append(&mut damage);
        let line = places(&segments);
        let shared = shared_until(&self.line, &line);
        if shared < self.last_seq {
            let opener = segments.last().and_then(|segment| segment.opener.as_ref());
            self.moved = Some(Moved {
                reason: opener.map_or(TrailReason::Repair, |opener| opener.reason.clone()),
                seq: shared,
            });
            self.last_seq = shared;
        }
        self.line = line;
        self.coming = segments.into();
        while self.coming.len() > 1 && self.coming[0].until <= self.last_seq {
            self.coming.pop_front();
        }
        Ok(())
    }
}

fn places(segments: &[Segment]) -> Vec<(PathBuf, u64)> {
    let places = segments.iter();
    places
        .map(|segment| (segment.path.clone(), segment.until))
        .collect()
}

/// Returns the last seq that two lines share.
fn shared_until(old: &[(PathBuf, u64)], new: &[(PathBuf, u64)]) -> u64 {
    let mut shared = 0;
    for ((old_path, old_until), (new_path, new_until)) in old.iter().zip(new) {
        if old_path != new_path {
            break;
        }
        shared = *old_until.min(new_until);
        if old_until != new_until {
            break;
        }
    }
    shared
}

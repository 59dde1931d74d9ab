//! Following a session while it is written.

use std::collections::VecDeque;
use std::sync::Arc;

use super::chain::{Segment, Walk};
use super::files::SessionFiles;
use crate::error::{Reason, Result};
use crate::store::Store;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{Because, DamageReport, RecordKind, RecordRef, Sums};

/// Reads a session from its beginning and goes on as it grows.
///
/// It never waits: [`poll`](Self::poll) says that there is nothing new, and the
/// caller decides when to look again.
#[derive(Debug)]
pub struct Follower {
    files: SessionFiles,
    /// Trails to read before the present one, oldest first.
    coming: VecDeque<Segment>,
    present: Option<Place>,
    head: u32,
    last_seq: u64,
    damage: DamageReport,
    moved: Option<Moved>,
}

/// Where the follower is.
#[derive(Debug)]
struct Place {
    reader: TrailReader,
    until: u64,
    /// All before it was handed out.
    offset: u64,
}

/// The conversation went on from another place than its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Why.
    pub because: Because,
    /// The last record that stays.
    pub seq: u64,
}

impl Follower {
    pub(crate) fn new(store: &Store, files: &SessionFiles) -> Result<Self> {
        let head = files.head()?;
        let (segments, damage) = Walk::new(store, files, head).collect()?;
        Ok(Self {
            files: files.clone(),
            coming: segments.into(),
            present: None,
            head,
            last_seq: 0,
            damage,
            moved: None,
        })
    }

    /// Returns the next record, or `None` if there is none yet.
    pub fn poll(&mut self) -> Result<Option<RecordRef<'_>>> {
        loop {
            if self.present.is_none() && !self.go_on()? {
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
                // It was written just before the new trail was begun.
                let place = self.present.as_ref().expect("advance found a record in it");
                return Ok(Some(place.reader.record()));
            }
            self.present = None;
        }
    }

    /// Returns the move of the conversation that lies before the record that
    /// [`poll`](Self::poll) returned last, once.
    pub fn take_moved(&mut self) -> Option<Moved> {
        self.moved.take()
    }

    /// Returns what had to be passed over so far.
    pub fn damage(&self) -> &DamageReport {
        &self.damage
    }

    /// Opens the next trail, if there is one.
    fn go_on(&mut self) -> Result<bool> {
        let Some(segment) = self.coming.pop_front() else {
            return Ok(false);
        };
        if let Some(opener) = &segment.opener
            && opener.seq < self.last_seq
        {
            self.moved = Some(Moved {
                because: opener.because.clone(),
                seq: opener.seq,
            });
            self.last_seq = opener.seq;
        }
        let file = Arc::clone(&segment.file);
        self.present = Some(Place {
            reader: TrailReader::forwards(file, &segment.path, 0, STREAM_BUFFER, Sums::Check),
            until: segment.until,
            offset: 0,
        });
        Ok(true)
    }

    /// Goes to the next whole record of the present trail; false if there is
    /// none now.
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
                // Without its newline it may yet be taken back.
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

    /// Looks for a trail with a higher number; true if there is one.
    fn look_for_trail(&mut self) -> Result<bool> {
        let newer: Vec<u32> = self
            .files
            .trails()?
            .into_iter()
            .filter(|trail| *trail > self.head)
            .collect();
        for trail in newer {
            self.coming
                .push_back(Segment::open(&self.files, trail, u64::MAX)?);
            self.head = trail;
        }
        Ok(!self.coming.is_empty())
    }
}

//! Places on a session's line of history, found by seq.

use super::chain::{Segment, Walk, continues_at};
use super::directory::LogDir;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::store::Store;
use crate::trail::Sums;
use crate::trail::opener::{Continues, Spot};
use crate::trail::record::Position;

/// The end of a line of history, with everything the next record needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// One of the session's own trails, which leads to it.
    pub(crate) trail: u32,
    pub(crate) position: Position,
}

impl Place {
    pub(crate) fn spot(&self) -> Spot {
        Spot {
            trail: self.trail,
            seq: self.position.seq,
            sum: self.position.sum,
        }
    }

    pub(crate) fn continues(&self, id: &SessionId) -> Continues {
        continues_at(id, self.trail, &self.position)
    }
}

/// Finds record `seq` on the line that ends in trail `head`. Record 0 is the beginning,
/// before any message.
pub(crate) fn find(store: &Store, files: &LogDir, head: u32, seq: u64) -> Result<Place> {
    if seq == 0 {
        return Ok(Place {
            trail: 0,
            position: Position::START,
        });
    }
    let mut walk = Walk::new(store, files, head);
    while let Some(segment) = walk.next()? {
        let may_hold = segment.after().is_none_or(|after| seq > after) && seq <= segment.until;
        if may_hold && let Some(record) = segment.find(seq)? {
            // One of the session's own trails leads to inherited records.
            let own = segment.is_of(files);
            return Ok(Place {
                trail: if own { segment.trail } else { 0 },
                position: Position::after(&record.as_ref()),
            });
        }
    }
    let last = end(store, files, head)?.position.seq;
    let what = format!(
        "session {} has no record {seq}; its last is {last}",
        files.id()
    );
    Err(Error::new(ErrorKind::NotFound, what).at_path(files.path()))
}

/// Returns the end of the line that ends in trail `head`.
pub(crate) fn end(store: &Store, files: &LogDir, head: u32) -> Result<Place> {
    let mut walk = Walk::new(store, files, head);
    while let Some(segment) = walk.next()? {
        if let Some(position) = segment.last_position()? {
            let own = segment.is_of(files);
            return Ok(Place {
                trail: if own { segment.trail } else { 0 },
                position,
            });
        }
    }
    find(store, files, head, 0)
}

/// Returns the last position before record `seq` on the line that ends in trail
/// `head`.
pub(crate) fn last_before(
    store: &Store,
    files: &LogDir,
    head: u32,
    seq: u64,
) -> Result<Option<Position>> {
    let mut walk = Walk::until(store, files, head, seq.saturating_sub(1));
    while let Some(segment) = walk.next()? {
        if let Some(position) = segment.last_position()? {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// Opens the trail of a spot, cut there, and finds its last position.
pub(crate) fn look_at(files: &LogDir, spot: Spot) -> Result<(Segment, Position)> {
    let segment = Segment::open(files, spot.trail, spot.seq)?;
    let position = segment.last_position()?.unwrap_or(Position {
        seq: spot.seq,
        sum: spot.sum,
        noted: None,
        compacted: segment.opener.as_ref().and_then(|opener| opener.compacted),
    });
    Ok((segment, position))
}

/// Returns a place in one of the session's own trails.
pub(crate) fn at(files: &LogDir, spot: Spot) -> Result<Place> {
    let (_, position) = look_at(files, spot)?;
    let seq = spot.seq;
    Ok(Place {
        trail: spot.trail,
        position: Position { seq, ..position },
    })
}

/// Returns the place right before one of a trail's own records.
pub(crate) fn before(segment: &Segment, seq: u64) -> Result<Option<Place>> {
    let mut cut = segment.clone();
    cut.until = seq.saturating_sub(1);
    let position = cut.last_position()?;
    Ok(position.map(|position| Place {
        trail: segment.trail,
        position,
    }))
}

/// Returns whether a trail has messages after record `seq`, up to the cut.
pub(crate) fn is_spoken_after(segment: &Segment, seq: u64) -> Result<bool> {
    let mut reader = segment.backwards(Sums::Check)?;
    while let Some(record) = reader.next_record()? {
        if record.seq() <= seq {
            return Ok(false);
        }
        if record.seq() <= segment.until && record.kind().is_spoken() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Follows empty trails to the trail that they continue. A new trail continues from
/// there, so that undo and redo do not create a chain of empty trails.
pub(crate) fn settle(files: &LogDir, mut spot: Spot) -> Result<Spot> {
    loop {
        let segment = Segment::open(files, spot.trail, spot.seq)?;
        let Some(opener) = segment.opener.filter(|opener| opener.seq == spot.seq) else {
            return Ok(spot);
        };
        match opener.continues {
            Some(from) if from.session_id == *files.id() && from.trail < spot.trail => {
                spot = from.spot();
            }
            _ => return Ok(spot),
        }
    }
}

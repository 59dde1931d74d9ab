//! Reading entries of a pack in the order of their places, a lot at a time, and
//! checking them on two threads.

use std::io;
use std::thread;

use super::ObjectId;
use super::codec::Codec;
use super::entry::{Named, Raw};
use super::extents::Extent;
use super::format::Salt;
use super::pack::{Pack, read_range};
use crate::error::Error;
use crate::storage::StorageFile;

/// How much is read at a time.
const LOT: u64 = 8 << 20;
/// What lies between two entries is read along, up to this much.
const GAP: u64 = 256 << 10;
/// Below this, a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 256 << 10;

/// An entry on its way: right, and as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried<'a> {
    pub(super) id: ObjectId,
    pub(super) raw: Raw<'a>,
}

/// What went wrong.
#[derive(Debug)]
pub(super) enum Failed {
    Reading(io::Error),
    Writing(Error),
}

/// Hands out entries, which are sorted by place, and returns those that are not what
/// they should be.
pub(super) fn carry(
    file: &dyn StorageFile,
    pack: &Pack,
    entries: &[Extent],
    codec: &Codec,
    take: &mut dyn FnMut(Carried<'_>) -> Result<(), Error>,
) -> Result<Vec<ObjectId>, Failed> {
    let mut broken = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let (lot, later) = rest.split_at(lot_of(rest));
        rest = later;
        let from = u64::from(lot[0].record.at);
        let to = lot.iter().map(|extent| extent.end()).max().unwrap_or(from);
        let bytes = read_range(file, from, to).map_err(Failed::Reading)?;
        let read = Read {
            bytes: &bytes,
            from,
            salt: pack.salt(),
            codec,
        };
        for (extent, checked) in lot.iter().zip(read.check_all(lot)) {
            match checked.map_err(Failed::Reading)? {
                Some(carried) => take(carried).map_err(Failed::Writing)?,
                None => broken.push(extent.record.id),
            }
        }
    }
    Ok(broken)
}

/// Returns how many entries are read at once.
fn lot_of(entries: &[Extent]) -> usize {
    let from = u64::from(entries[0].record.at);
    let mut end = entries[0].end();
    let more = entries[1..].iter().take_while(|extent| {
        let at = u64::from(extent.record.at);
        let fits = at <= end + GAP && extent.end() <= from + LOT;
        end = end.max(extent.end());
        fits
    });
    1 + more.count()
}

/// A part of a pack.
#[derive(Clone, Copy)]
struct Read<'a> {
    bytes: &'a [u8],
    from: u64,
    salt: Salt,
    codec: &'a Codec,
}

/// An entry that was checked, if it is right.
type Checked<'a> = io::Result<Option<Carried<'a>>>;

impl<'a> Read<'a> {
    /// Checks entries, half of them on another thread.
    fn check_all(self, entries: &[Extent]) -> Vec<Checked<'a>> {
        let check = |half: &[Extent]| -> Vec<Checked<'a>> {
            let mut scratch = Vec::new();
            let half = half.iter();
            half.map(|extent| self.check(*extent, &mut scratch))
                .collect()
        };
        if self.bytes.len() < WORTH_A_THREAD || entries.len() < 2 {
            return check(entries);
        }
        let middle = self.from + self.bytes.len() as u64 / 2;
        let half = entries.partition_point(|extent| u64::from(extent.record.at) < middle);
        let (first, second) = entries.split_at(half.clamp(1, entries.len() - 1));
        thread::scope(|scope| {
            let other = thread::Builder::new().spawn_scoped(scope, || check(second));
            let mut checked = check(first);
            // Without a thread, or where it panicked, it is done here.
            let other = other.ok().and_then(|other| other.join().ok());
            checked.extend(other.unwrap_or_else(|| check(second)));
            checked
        })
    }

    fn check(self, extent: Extent, scratch: &mut Vec<u8>) -> Checked<'a> {
        let id = extent.record.id;
        let at = u64::from(extent.record.at);
        let from = usize::try_from(at - self.from).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(from..).unwrap_or_default();
        let Some(raw) = Raw::parse(bytes, self.salt, at) else {
            return Ok(None);
        };
        let is_right = match raw.named(self.codec, scratch)? {
            Named::Piece(named) => named == id,
            // That its chunks are it, whoever reads it finds out.
            Named::List(list) => list.id == id,
            Named::Nothing => false,
        };
        Ok(is_right.then_some(Carried { id, raw }))
    }
}

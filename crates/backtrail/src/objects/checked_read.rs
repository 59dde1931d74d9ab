//! Reads entries of a pack in offset order, a batch at a time, and checks them on two
//! threads.

use std::io;
use std::thread;

use super::ObjectId;
use super::codec::Codec;
use super::entry::{Identity, RawEntry};
use super::extents::Extent;
use super::format::Salt;
use super::pack::Pack;
use super::pack_set::{PackSet, UNREADABLE};
use crate::error::{IoContext, Result};
use crate::storage::{StorageFile, read_range};

/// The most bytes read at a time.
const BATCH: u64 = 8 << 20;
/// Gaps between entries up to this length are read along with them.
const GAP: u64 = 256 << 10;
/// Below this, a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 256 << 10;

/// An intact entry as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedEntry<'a> {
    pub(super) id: ObjectId,
    pub(super) raw: RawEntry<'a>,
}

/// Passes each intact entry to `take` and returns the ids of the damaged ones. `entries`
/// must be sorted by offset.
pub(super) fn read_checked(
    file: &dyn StorageFile,
    pack: &Pack,
    entries: &[Extent],
    pack_set: &PackSet,
    take: &mut dyn FnMut(CheckedEntry<'_>) -> Result<()>,
) -> Result<Vec<ObjectId>> {
    let path = pack_set.path(pack.name);
    let mut broken = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch_len(rest));
        rest = later;
        let from = u64::from(batch[0].record.at);
        let to = batch
            .iter()
            .map(|extent| extent.end())
            .max()
            .unwrap_or(from);
        let bytes = read_range(file, from..to).context(UNREADABLE, &path)?;
        let read = Read {
            bytes: &bytes,
            from,
            salt: pack.salt(),
            codec: &pack_set.codec,
        };
        for (extent, checked) in batch.iter().zip(read.check_all(batch)) {
            match checked.context(UNREADABLE, &path)? {
                Some(checked) => take(checked)?,
                None => broken.push(extent.record.id),
            }
        }
    }
    Ok(broken)
}

/// Returns how many entries are read at once.
fn batch_len(entries: &[Extent]) -> usize {
    let from = u64::from(entries[0].record.at);
    let mut end = entries[0].end();
    let more = entries[1..].iter().take_while(|extent| {
        let at = u64::from(extent.record.at);
        let fits = at <= end + GAP && extent.end() <= from + BATCH;
        end = end.max(extent.end());
        fits
    });
    1 + more.count()
}

/// A range of a pack in memory.
#[derive(Clone, Copy)]
struct Read<'a> {
    bytes: &'a [u8],
    from: u64,
    salt: Salt,
    codec: &'a Codec,
}

/// The entry if it passed its check.
type Checked<'a> = io::Result<Option<CheckedEntry<'a>>>;

impl<'a> Read<'a> {
    /// Checks entries, half of them on a second thread if that pays off.
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
            // If the thread did not start or panicked, the work is done here.
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
        let Some(raw) = RawEntry::parse(bytes, self.salt, at) else {
            return Ok(None);
        };
        let is_right = match raw.identify(self.codec, scratch)? {
            Identity::Piece(named) => named == id,
            // Whether its chunks make up the object is checked by readers.
            Identity::List(list) => list.id == id,
            Identity::Nothing => false,
        };
        Ok(is_right.then_some(CheckedEntry { id, raw }))
    }
}

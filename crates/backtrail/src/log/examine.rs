//! Checks one trail record by record.

use std::ops::Range;

use super::chain::Segment;
use super::payloads::Payloads;
use crate::error::{Reason, Result};
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::sum::Sum;
use crate::trail::{Damage, RecordKind, RecordRef, Sums};

/// Reads a trail and checks what a single line cannot show: that each record follows the
/// one before, and that its body is usable.
#[derive(Debug)]
pub(crate) struct Examiner {
    reader: TrailReader,
    /// The payloads of its messages; a version-1 file has none.
    payloads: Option<Payloads>,
    before: Option<(u64, Sum)>,
    /// Whether the record before is certainly the preceding one.
    certain: bool,
}

/// An item that the examiner found.
#[derive(Debug)]
pub(crate) enum Finding {
    /// A record, which [`Examiner::record`] returns, and its damage.
    Record(Option<Damage>),
    /// Lost bytes.
    Lost(Damage),
}

impl Examiner {
    pub(crate) fn new(segment: &Segment) -> Result<Self> {
        Ok(Self {
            reader: segment.forwards(0, STREAM_BUFFER, Sums::Check)?,
            payloads: (!segment.is_version_1()).then(|| segment.payloads()),
            before: None,
            certain: true,
        })
    }

    pub(crate) fn record(&self) -> RecordRef<'_> {
        self.reader.record()
    }

    /// Returns the place of the current record in its file.
    pub(crate) fn place(&self) -> Range<u64> {
        self.reader.place()
    }

    pub(crate) fn advance(&mut self) -> Result<Option<Finding>> {
        match self.reader.advance()? {
            None => Ok(None),
            Some(Found::Damage(damage)) => {
                self.certain = false;
                Ok(Some(Finding::Lost(damage)))
            }
            Some(Found::Record) => {
                let record = self.reader.record();
                let position = (record.seq(), record.sum());
                let flaw = match self.flaw_of(&record) {
                    None => self.lost_payload()?,
                    flaw => flaw,
                };
                let flaw = flaw.map(|reason| self.reader.damage_here(reason));
                self.before = Some(position);
                self.certain = true;
                Ok(Some(Finding::Record(flaw)))
            }
        }
    }

    fn flaw_of(&self, record: &RecordRef<'_>) -> Option<Reason> {
        if record.kind() == RecordKind::Opener {
            // Only the first record of a trail may be an opener.
            let again = self.before.is_some();
            return again.then(|| Reason::UnsupportedType("session_meta".to_owned()));
        }
        if let Some((seq, sum)) = self.before {
            if record.seq() <= seq {
                return Some(Reason::OutOfOrder {
                    seq: record.seq(),
                    after: seq,
                });
            }
            // After damage only the numbers count: the sum of a lost record is unknown.
            if self.certain && record.prev() != Some(sum) {
                return Some(Reason::Gap);
            }
        }
        record.stored_message().err()?.reason().cloned()
    }

    /// Returns the first part of a message that is not in the payload file.
    fn lost_payload(&self) -> Result<Option<Reason>> {
        let record = self.reader.record();
        // A message that cannot be read is already damage.
        let (Some(payloads), Ok(references)) = (&self.payloads, record.references()) else {
            return Ok(None);
        };
        for part in references {
            if !payloads.check(part.hash, part.bytes, part.at)? {
                return Ok(Some(Reason::LostPayload(part.hash.to_string())));
            }
        }
        Ok(None)
    }
}

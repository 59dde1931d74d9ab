//! Bytes, numbers and ids as nodes and the stat cache write them.

use super::entry::{FileKind, SkippedReason};
use crate::objects::ObjectId;

pub(super) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a number in groups of seven bits, the lowest first.
pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The bytes that are still to be decoded.
#[derive(Debug, Clone)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn mode(&mut self) -> Option<u32> {
        let mode = u32::try_from(self.number()?).ok()?;
        (mode <= 0o7777).then_some(mode)
    }

    pub(super) fn id(&mut self) -> Option<ObjectId> {
        let bytes = self.take(ObjectId::LEN)?;
        bytes.try_into().ok().map(ObjectId::from_bytes)
    }

    /// Reads a reason; it is written as its number.
    pub(super) fn reason(&mut self) -> Option<SkippedReason> {
        REASONS.get(usize::from(self.byte()?)).copied()
    }

    /// Reads a kind; it is written as its number.
    pub(super) fn file_kind(&mut self) -> Option<FileKind> {
        KINDS.get(usize::from(self.byte()?)).copied()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.take(usize::try_from(len).ok()?)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            // Each number has one encoding: no bits lost, no empty last byte.
            if part << shift >> shift != part || (byte == 0 && shift > 0) {
                return None;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Returns whether a name is valid in a directory and leads nowhere else.
pub(super) fn is_name(name: &[u8]) -> bool {
    let is_odd = |byte: &u8| matches!(byte, 0 | b'/');
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(is_odd)
}

const REASONS: [SkippedReason; 9] = [
    SkippedReason::Ignored,
    SkippedReason::TooLarge,
    SkippedReason::Unreadable,
    SkippedReason::Special,
    SkippedReason::Unstable,
    SkippedReason::OtherFileSystem,
    SkippedReason::Git,
    SkippedReason::Store,
    SkippedReason::TooDeep,
];

const KINDS: [FileKind; 6] = [
    FileKind::File,
    FileKind::Link,
    FileKind::Dir,
    FileKind::Socket,
    FileKind::Fifo,
    FileKind::Device,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_kinds_are_read_by_the_numbers_that_are_written() {
        assert!((0..).zip(REASONS).all(|(n, reason)| reason as u8 == n));
        assert!((0..).zip(KINDS).all(|(n, kind)| kind as u8 == n));
    }
}

//! What a power cut loses.

use std::ops::Range;

use crate::splitmix::SplitMix;

/// A way in which a machine stops, by what is lost.
///
/// Synced data is never lost, only hidden: a synced file has no name if its directory was
/// not synced as well, and synced bytes may be gone if the file was truncated below them
/// afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Everything that was not synced is lost.
    Unsynced,
    /// Nothing is lost: the process died, and the page cache reached the disk.
    Nothing,
    /// Every file keeps its changes since the last sync, in order, up to this many
    /// appended bytes; the append that crosses the limit is torn, and later changes of
    /// the file are lost. Names survive.
    Tail {
        /// How many unsynced bytes each file keeps.
        keep_bytes: usize,
    },
    /// Every unsynced change of a file or a directory survives or is lost on its own.
    ///
    /// If an append is lost and a later one survives, zero bytes fill the hole. An append
    /// may also survive in part: cut short, or at full length with zero bytes in place of
    /// the missing ones.
    Shuffled {
        /// Decides what survives; equal seeds decide equally.
        seed: u64,
    },
}

/// Decides what survives of each pending change under [`Loss::Shuffled`].
#[derive(Debug)]
pub(super) struct Dice {
    random: SplitMix,
    /// How many in eight changes are lost. It differs between seeds, because with even
    /// chances a long history would hardly ever survive almost whole.
    lost_in_eight: usize,
}

/// The part of an append that reached the disk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// How much of the append the file's length covers.
    pub(super) extent: usize,
    /// Which of its bytes are there; the rest of the extent is zero.
    pub(super) kept: Range<usize>,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        let lost_in_eight = random.below(8);
        Self {
            random,
            lost_in_eight,
        }
    }

    /// Returns whether an indivisible change happens.
    pub(super) fn survives(&mut self) -> bool {
        self.random.below(8) >= self.lost_in_eight
    }

    /// Returns what survives of an append of `len` bytes.
    pub(super) fn written(&mut self, len: usize) -> Option<Written> {
        if !self.survives() {
            return None;
        }
        let cut = self.random.below(len);
        let start = self.random.below(cut);
        let (extent, kept) = match self.random.below(8) {
            0 => (cut, 0..cut),
            1 => (len, 0..cut),
            2 => (len, cut..len),
            3 => (len, start..cut),
            _ => (len, 0..len),
        };
        Some(Written { extent, kept })
    }
}

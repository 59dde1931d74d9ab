//! The bytes of one file, in the page cache and on disk.

use super::loss::{Dice, Loss, Written};

/// A file's bytes, and the changes that are not on disk yet.
///
/// `live` is always `durable` with all of `pending` applied in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Append { offset: usize, bytes: Vec<u8> },
    Resize { len: usize },
}

impl Content {
    /// Returns bytes that are all on disk.
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self {
            live: bytes.clone(),
            durable: bytes,
            pending: Vec::new(),
        }
    }

    pub(super) fn live(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.pending.push(Change::Append {
            offset: self.live.len(),
            bytes: bytes.to_vec(),
        });
        self.live.extend_from_slice(bytes);
    }

    pub(super) fn resize(&mut self, len: usize) {
        if len == self.live.len() {
            return;
        }
        self.pending.push(Change::Resize { len });
        self.live.resize(len, 0);
    }

    /// Writes all pending changes to disk.
    pub(super) fn sync(&mut self) {
        // Replaying costs as much as was written; copying `live` would make every sync of
        // a long log cost its whole length.
        for change in self.pending.drain(..) {
            match change {
                Change::Append { offset, bytes } => overwrite(&mut self.durable, offset, &bytes),
                Change::Resize { len } => self.durable.resize(len, 0),
            }
        }
        debug_assert_eq!(self.durable.len(), self.live.len());
    }

    /// Returns the bytes that survive a loss.
    pub(super) fn survivor(&self, loss: Loss, dice: &mut Dice) -> Vec<u8> {
        match loss {
            Loss::Unsynced => self.durable.clone(),
            Loss::Nothing => self.live.clone(),
            Loss::Tail { keep_bytes } => self.torn(keep_bytes),
            Loss::Shuffled { .. } => self.shuffled(dice),
        }
    }

    fn torn(&self, keep_bytes: usize) -> Vec<u8> {
        let mut survivor = self.durable.clone();
        let mut left = keep_bytes;
        for change in &self.pending {
            match change {
                Change::Resize { len } => survivor.resize(*len, 0),
                Change::Append { offset, bytes } => {
                    let kept = bytes.len().min(left);
                    left -= kept;
                    overwrite(&mut survivor, *offset, &bytes[..kept]);
                    if kept < bytes.len() {
                        break;
                    }
                }
            }
        }
        survivor
    }

    /// Applies the changes that the dice keep.
    ///
    /// Synced bytes are safe: an append starts at the end of the live file, so it can
    /// only overlap them where a pending truncation, itself lost, had removed them.
    fn shuffled(&self, dice: &mut Dice) -> Vec<u8> {
        let mut survivor = self.durable.clone();
        for change in &self.pending {
            match change {
                Change::Resize { len } => {
                    if dice.survives() {
                        survivor.resize(*len, 0);
                    }
                }
                Change::Append { offset, bytes } => {
                    if let Some(written) = dice.written(bytes.len()) {
                        overwrite(&mut survivor, *offset, &holed(bytes, &written));
                    }
                }
            }
        }
        survivor
    }
}

/// Writes `new` at `offset`, after zero bytes if the file is shorter.
fn overwrite(bytes: &mut Vec<u8>, offset: usize, new: &[u8]) {
    if new.is_empty() {
        // An empty write leaves no hole.
        return;
    }
    let end = offset + new.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(new);
}

fn holed(bytes: &[u8], written: &Written) -> Vec<u8> {
    let mut holed = vec![0; written.extent];
    holed[written.kept.clone()].copy_from_slice(&bytes[written.kept.clone()]);
    holed
}

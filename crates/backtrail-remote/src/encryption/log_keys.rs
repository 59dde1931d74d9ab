//! What follows from the data key of a log.

use std::fmt;

use backtrail::replica::{BlobKind, BlobName, LogKey};

use super::chunks::Chunks;
use super::place;
use super::seal::{Seal, Unopened};
use super::sums::SumCipher;

/// The keys of one log: one for each use.
pub(super) struct LogKeys {
    log: LogKey,
    seal: Seal,
    sums: [u8; 32],
    names: [u8; 32],
    check: [u8; 32],
}

impl fmt::Debug for LogKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogKeys({:?})", self.log)
    }
}

impl LogKeys {
    pub(super) fn new(log: &LogKey, data_key: &[u8; 32]) -> Self {
        let derived = |context| blake3::derive_key(context, data_key);
        Self {
            log: log.clone(),
            seal: Seal::new(
                &derived("backtrail remote 1 seal"),
                derived("backtrail remote 1 nonce"),
            ),
            sums: derived("backtrail remote 1 sums"),
            names: derived("backtrail remote 1 names"),
            check: derived("backtrail remote 1 check"),
        }
    }

    pub(super) fn log(&self) -> &LogKey {
        &self.log
    }

    /// Returns what the wrapped key carries beside the key: it fits this key and this log alone.
    pub(super) fn check(&self) -> [u8; 16] {
        let hash = blake3::keyed_hash(&self.check, &place::of_key(&self.log));
        let (check, _) = hash.as_bytes().split_at(16);
        check.try_into().expect("16 bytes")
    }

    pub(super) fn hide_sum(&self, trail: u32, seq: u64, sum: [u8; 8]) -> [u8; 8] {
        self.sums_at(trail, seq).hide(sum)
    }

    pub(super) fn reveal_sum(&self, trail: u32, seq: u64, hidden: [u8; 8]) -> [u8; 8] {
        self.sums_at(trail, seq).reveal(hidden)
    }

    fn sums_at(&self, trail: u32, seq: u64) -> SumCipher {
        SumCipher::at(&self.sums, &place::of_sum(&self.log, trail, seq))
    }

    pub(super) fn seal_line(&self, trail: u32, seq: u64, sum: [u8; 8], line: &[u8]) -> Vec<u8> {
        let place = place::of_line(&self.log, trail, seq, sum);
        self.seal.seal(&place, line)
    }

    pub(super) fn open_line(
        &self,
        trail: u32,
        seq: u64,
        sum: [u8; 8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, Unopened> {
        let place = place::of_line(&self.log, trail, seq, sum);
        self.seal.open(&place, sealed)
    }

    /// Returns the name of a blob at the replica. That of a pack stays: it is the hash of bytes
    /// that begin with 16 random ones, so it says nothing, and `Packs` names it without a log.
    pub(super) fn hide_name(&self, name: BlobName) -> BlobName {
        match name.kind {
            BlobKind::Pack => name,
            BlobKind::Payload => BlobName {
                hash: self.hash(&place::of_blob(&self.log, name)),
                ..name
            },
        }
    }

    pub(super) fn hide_object(&self, id: &[u8; 32]) -> [u8; 32] {
        self.hash(&place::of_object(&self.log, id))
    }

    fn hash(&self, place: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.names, place).as_bytes()
    }

    pub(super) fn chunks(&self, name: BlobName) -> Chunks<'_> {
        Chunks {
            seal: &self.seal,
            log: &self.log,
            name,
        }
    }

    /// Returns the holder of a lease as the replica sees it: the same for the same words, since
    /// it compares them.
    pub(super) fn hide_holder(&self, holder: &str) -> String {
        let sealed = self
            .seal
            .seal(&place::of_holder(&self.log), holder.as_bytes());
        to_hex(&sealed)
    }

    /// Returns `None` if it was not hidden with this key.
    pub(super) fn reveal_holder(&self, hidden: &str) -> Option<String> {
        let sealed = from_hex(hidden)?;
        let holder = self.seal.open(&place::of_holder(&self.log), &sealed).ok()?;
        String::from_utf8(holder).ok()
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digits = |pair: &[u8; 2]| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    };
    pairs.iter().map(digits).collect()
}

//! Where something belongs, as bytes: no two places have the same ones, and none is the
//! beginning of another.

use backtrail::replica::{BlobKind, BlobName, LogKey, LogOwner};

use super::seal::VERSION;

/// The place of a line, with its sum: so a sum that was altered does not pass either.
pub(super) fn of_line(log: &LogKey, trail: u32, seq: u64, sum: [u8; 8]) -> Vec<u8> {
    let mut place = at(b'l', log, trail, seq);
    place.extend_from_slice(&sum);
    place
}

pub(super) fn of_sum(log: &LogKey, trail: u32, seq: u64) -> Vec<u8> {
    at(b's', log, trail, seq)
}

/// The place of a chunk of a blob, counted from 0.
pub(super) fn of_chunk(log: &LogKey, name: BlobName, index: u64) -> Vec<u8> {
    let mut place = of_blob(log, name);
    place.extend_from_slice(&index.to_le_bytes());
    place
}

pub(super) fn of_blob(log: &LogKey, name: BlobName) -> Vec<u8> {
    let purpose = match name.kind {
        BlobKind::Payload => b'p',
        BlobKind::Pack => b'k',
    };
    let mut place = begin(purpose, log);
    place.extend_from_slice(&name.hash);
    place
}

pub(super) fn of_object(log: &LogKey, id: &[u8; 32]) -> Vec<u8> {
    let mut place = begin(b'o', log);
    place.extend_from_slice(id);
    place
}

pub(super) fn of_holder(log: &LogKey) -> Vec<u8> {
    begin(b'h', log)
}

pub(super) fn of_key(log: &LogKey) -> Vec<u8> {
    begin(b'w', log)
}

fn at(purpose: u8, log: &LogKey, trail: u32, seq: u64) -> Vec<u8> {
    let mut place = begin(purpose, log);
    place.extend_from_slice(&trail.to_le_bytes());
    place.extend_from_slice(&seq.to_le_bytes());
    place
}

fn begin(purpose: u8, log: &LogKey) -> Vec<u8> {
    let owner = match log.owner {
        LogOwner::Session => b's',
        LogOwner::Workspace => b'w',
    };
    let id = log.id.as_str().as_bytes();
    let length = u8::try_from(id.len()).expect("ids have at most 128 bytes");
    let mut place = vec![VERSION, purpose, owner, length];
    place.extend_from_slice(id);
    place
}

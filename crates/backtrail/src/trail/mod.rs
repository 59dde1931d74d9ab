//! A trail: one append-only file of records, and how it is read back.
//!
//! A trail makes three promises. An acknowledged record survives any crash. Damage costs
//! only the bytes that it hit. And every record that is read is one that was written: each
//! carries its own sum.
//!
//! This module handles single trails. The `log` module handles several of them as one
//! history.

pub(crate) mod damage;
mod details;
pub(crate) mod envelope;
pub(crate) mod find;
pub(crate) mod foreign;
pub(crate) mod lines;
pub(crate) mod opener;
pub(crate) mod origin;
pub(crate) mod present;
pub(crate) mod readable;
pub(crate) mod reader;
pub(crate) mod record;
mod salvage;
pub(crate) mod source;
pub(crate) mod sum;

pub use damage::{Damage, DamageReport};
pub use opener::{FORMAT_VERSION, TrailReason};
pub use origin::{ForkOrigin, SpawnedBy};
pub use record::{Record, RecordKind, RecordRef, Sums};
pub use source::SourceRecord;

pub(crate) use record::PayloadSource;

/// Returns the name of a trail's file.
pub(crate) fn file_name(trail: u32) -> String {
    format!("{trail:04}.jsonl")
}

/// Returns the number of the trail that a file of this name holds.
pub(crate) fn trail_number(name: &std::ffi::OsStr) -> Option<u32> {
    let digits = name.to_str()?.strip_suffix(".jsonl")?;
    // The next trail needs a higher number.
    let number = digits.parse().ok().filter(|n| *n < u32::MAX)?;
    (file_name(number).as_str() == name).then_some(number)
}

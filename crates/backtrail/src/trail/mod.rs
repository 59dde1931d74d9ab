//! What is written: one append-only file of records, and how it is read back.
//!
//! A trail promises three things. A record that was acknowledged is there
//! after any crash. Damage costs the bytes it hit and no others. And whatever
//! is read was written: each record carries a sum of its own.
//!
//! This module knows single trails. What several of them mean together is the
//! business of `log`.

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
    // There must be a number above it for the next trail.
    let number = digits.parse().ok().filter(|n| *n < u32::MAX)?;
    (file_name(number).as_str() == name).then_some(number)
}

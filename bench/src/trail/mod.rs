//! The session log: appending, reading, and the command around it.

mod append;
mod durable;
pub(crate) mod fixture;
mod group;
mod process;
pub(crate) mod stream;
mod tail;

use std::path::Path;

use crate::Result;
use crate::args::Args;
use crate::parts::{Part, Shared};
use crate::report::Entry;

pub(crate) use durable::RawLog;

/// The measured parts, in this order.
pub(crate) const PARTS: [Part; 5] = [
    Part {
        name: "durable",
        also: &[],
        measure: |args, dir, _| durable::measure(args, dir),
    },
    Part {
        name: "group",
        also: &[],
        measure: |args, dir, _| group::measure(args, dir),
    },
    Part {
        name: "append",
        also: &[],
        measure: |args, dir, _| append::measure(args, dir),
    },
    Part {
        name: "stream",
        // The tail is read from the session that was streamed.
        also: &["tail"],
        measure: stream_and_tail,
    },
    Part {
        name: "process",
        also: &[],
        measure: |args, dir, _| process::measure(args, dir),
    },
];

fn stream_and_tail(args: &Args, dir: &Path, shared: &Shared) -> Result<Vec<Entry>> {
    let long = shared.long(args)?;
    let mut entries = Vec::new();
    if args.only.as_deref() != Some("tail") {
        entries.extend(stream::measure(args, long)?);
    }
    entries.extend(tail::measure(args, long, dir)?);
    Ok(entries)
}

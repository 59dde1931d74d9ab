//! Sessions: context, moves, long conversations, files of version 1, and payloads.

pub(crate) mod context;
pub(crate) mod load;
mod moves;
pub(crate) mod payload;
pub(crate) mod storage;
pub(crate) mod turns;
pub(crate) mod version1;

use crate::parts::Part;

/// The measured parts, in this order.
pub(crate) const PARTS: [Part; 5] = [
    Part {
        name: "payload",
        also: &[],
        measure: |args, dir, _| payload::measure(args, dir),
    },
    Part {
        name: "moves",
        also: &[],
        measure: |args, dir, _| moves::measure(args, dir),
    },
    Part {
        name: "context",
        also: &[],
        measure: context::measure,
    },
    Part {
        name: "turns",
        also: &[],
        measure: |args, dir, _| turns::measure(args, dir),
    },
    Part {
        name: "load",
        also: &[],
        measure: |args, dir, _| load::measure(args, dir),
    },
];

//! The store as a whole: cleaning up, checking, and a moment in a directory of its own.

mod fork;
mod gc;
mod large;
pub(crate) mod process;
mod verify;

use crate::parts::Part;

/// What is measured: cleaning up comes last, for it takes the large store apart.
pub(crate) const PARTS: [Part; 3] = [
    Part {
        name: "fork",
        also: &[],
        measure: fork::measure,
    },
    Part {
        name: "verify",
        also: &[],
        measure: verify::measure,
    },
    Part {
        name: "gc",
        also: &[],
        measure: gc::measure,
    },
];

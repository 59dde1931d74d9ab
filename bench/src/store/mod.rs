//! The store as a whole: clean-up, verification, and forks into a new directory.

mod fork;
mod gc;
mod large;
pub(crate) mod process;
mod verify;

use crate::parts::Part;

/// The measured parts; clean-up comes last because it takes the large store apart.
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

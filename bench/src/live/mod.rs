//! Agents at work: what a call of `backtrail hook` costs them, and what `backtrail run` adds.

mod hook;
mod hooks;
mod many;
mod wrapped;

use crate::parts::Part;

/// The measured parts.
pub(crate) const PARTS: [Part; 2] = [
    Part {
        name: "hooks",
        also: &[],
        measure: hooks::measure,
    },
    Part {
        name: "wrapped",
        also: &[],
        measure: wrapped::measure,
    },
];

//! Agents at work: what a call of `backtrail hook` costs them, what `backtrail run` adds, and how
//! fast a session continues in another one.

mod hook;
mod hooks;
mod many;
mod resume;
mod wrapped;

use crate::parts::Part;

/// The measured parts.
pub(crate) const PARTS: [Part; 3] = [
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
    Part {
        name: "resume",
        also: &[],
        measure: resume::measure,
    },
];

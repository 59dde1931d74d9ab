//! Importing other agents' sessions, compared with programs that read the same files.

mod agents;
mod corpus;
mod database;
mod home;
mod peers;
pub(crate) mod programs;
mod rollout;
mod samples;
mod totals;

use crate::parts::Part;
use crate::report::{Entry, Figure, Goal, Quantity};

/// The measured parts.
pub(crate) const PARTS: [Part; 4] = [
    Part {
        name: "peers",
        also: &[],
        measure: peers::measure,
    },
    Part {
        name: "totals",
        also: &[],
        measure: totals::measure,
    },
    Part {
        name: "rollout",
        also: &[],
        measure: rollout::measure,
    },
    Part {
        name: "database",
        also: &[],
        measure: database::measure,
    },
];

fn figure(
    name: impl Into<String>,
    ours: Quantity,
    baseline: Option<(&'static str, Quantity)>,
    goal: Goal,
) -> Entry {
    Entry::Figure(Figure {
        name: name.into(),
        ours,
        baseline,
        goal,
    })
}

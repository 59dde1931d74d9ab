//! The screen: the real program on a terminal, driven by keys. A figure ends when what was asked for
//! is on the screen.

mod beside;
mod browse;
mod reading;
mod screen;
mod typing;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::measure::Samples;
use crate::parts::Part;
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

/// The measured parts.
pub(crate) const PARTS: [Part; 3] = [
    Part {
        name: "browse",
        also: &[],
        measure: browse::measure,
    },
    Part {
        name: "reading",
        also: &[],
        measure: reading::measure,
    },
    Part {
        name: "claude-history",
        also: &[],
        measure: beside::measure,
    },
];

/// The memory limit, whatever is shown.
const MEMORY: f64 = (80_u32 << 20) as f64;
/// How long nothing happens before all is done that follows a key.
const QUIET: Duration = Duration::from_millis(600);

/// Returns the command that shows the sessions of all workspaces, in a home with nothing else in it.
fn ui(bin: &Path, store: &Path, home: &Path) -> Command {
    let mut command = Command::new(bin);
    command.arg("--store").arg(store).args(["ui", "--all"]);
    at_home(command, home)
}

/// Returns a command that sees no other history than that in a home.
pub(crate) fn at_home(mut command: Command, home: &Path) -> Command {
    for name in [
        "BACKTRAIL_HOME",
        "BACKTRAIL_SESSION",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
    ] {
        command.env_remove(name);
    }
    command.env("HOME", home).current_dir(home);
    command
}

pub(crate) fn figure(
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

pub(crate) fn seconds(samples: &Samples) -> Quantity {
    Quantity::of(samples, Unit::Seconds)
}

/// Returns samples in seconds.
pub(crate) fn samples(times: &[Duration]) -> Samples {
    Samples::new(times.iter().map(Duration::as_secs_f64).collect())
}

pub(crate) fn bytes(bytes: u64) -> Quantity {
    Quantity::single(bytes as f64, Unit::Bytes)
}

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
use crate::report::Entry;

/// One part of the measurements: its name for `--only`, and how it is made in a
/// directory of its own.
type Part = (&'static str, fn(&Args, &Path) -> Result<Vec<Entry>>);

/// What waits for the disk comes first, before anything fills the page cache.
const PARTS: [Part; 5] = [
    ("durable", durable::measure),
    ("group", group::measure),
    ("append", append::measure),
    ("stream", stream_and_tail),
    ("process", process::measure),
];

/// Measures all parts, or the one that is asked for. A part that fails does not
/// take the others with it.
pub(crate) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let wanted = |name: &str| match args.only.as_deref() {
        None => true,
        // The tail is read from the session that was streamed.
        Some("tail") => name == "stream",
        Some(only) => name == only,
    };
    let mut entries = Vec::new();
    let mut known = false;
    for (name, part) in PARTS.into_iter().filter(|(name, _)| wanted(name)) {
        known = true;
        eprintln!("measuring: {name}");
        let dir = dir.join(name);
        std::fs::create_dir(&dir)?;
        settle(&dir)?;
        match part(args, &dir) {
            Ok(figures) => entries.extend(figures),
            Err(error) => {
                eprintln!("error: {name}: {error}");
                entries.push(Entry::Failed {
                    name: name.to_owned(),
                    why: error.to_string(),
                });
            }
        }
    }
    if !known {
        return Err("--only takes durable, group, append, stream, tail or process".into());
    }
    Ok(entries)
}

/// Makes the long session once, for both.
fn stream_and_tail(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let long = fixture::make_session(dir, args.pick(1_000_000_000, 100_000_000))?;
    settle(dir)?;
    let mut entries = Vec::new();
    if args.only.as_deref() != Some("tail") {
        entries.extend(stream::measure(args, &long)?);
    }
    entries.extend(tail::measure(args, &long)?);
    Ok(entries)
}

/// Waits until all that was written is on disk, so that one measurement does
/// not pay for what another left behind.
fn settle(dir: &Path) -> Result<()> {
    rustix::fs::syncfs(std::fs::File::open(dir)?)?;
    Ok(())
}

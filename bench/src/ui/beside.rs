//! claude-history beside ours: the first frame with a list, of the same sessions of Claude Code.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::screen::{Screen, Size};
use super::{at_home, figure, seconds, ui};
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::follow::agent::{Agent, TEXT};
use crate::import::programs;
use crate::measure::{Lane, interleave};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal};
use crate::store::process::{backtrail, run};

/// The bytes of a session.
const BYTES: u64 = 20_000;

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let name = "screen, beside claude-history: first paint";
    let bins = command::find(args).and_then(|bin| Ok((bin, programs::claude_history()?)));
    let (bin, theirs) = match bins {
        Ok(bins) => bins,
        Err(why) => return Ok(vec![Entry::skipped(name, &why)]),
    };
    command::announce(&bin);
    let (home, store) = (dir.join("home"), dir.join("store"));
    fs::create_dir(&home)?;
    let sessions = args.pick(10_000, 1_000);
    for n in 0..sessions {
        Agent::create(&home, n)?.fill(BYTES)?;
    }
    let import = ["import", "--from", "claude-code"];
    run(&mut at_home(backtrail(&bin, &store, &import), &home))?;
    run(&mut at_home(backtrail(&bin, &store, &["rebuild"]), &home))?;
    settle(dir)?;
    let ours = ui(&bin, &store, &home);
    let theirs = at_home(Command::new(theirs), &home);
    let paint = |command: &Command| {
        let mut screen = Screen::start(command, Size::WIDE)?;
        let painted = screen.wait_for(first_words())?;
        Ok(painted.duration_since(screen.began()))
    };
    let (mut ours, mut theirs) = (|| paint(&ours), || paint(&theirs));
    let lanes: [Lane<'_>; 2] = [&mut ours, &mut theirs];
    let [ours, theirs] = interleave(args.pick(20, 5), lanes)?;
    Ok(vec![figure(
        format!("{name}, {sessions} sessions"),
        seconds(&ours),
        Some(("claude-history", seconds(&theirs))),
        Goal::Open,
    )])
}

/// Returns what every session begins with; a list shows at least that of each.
fn first_words() -> &'static str {
    TEXT.get(..10).unwrap_or(TEXT)
}

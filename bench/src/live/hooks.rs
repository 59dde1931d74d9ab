//! `backtrail hook` as whole processes, in a new workspace and in one with a long past.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::hook::{Hooked, pipe};
use super::many;
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::measure::{Samples, interleave, time};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::snapshot::RACY;
use crate::snapshot::random::Random;
use crate::snapshot::tree::{Extent, Tree};

/// How many files change before a tool call.
const CHANGES: usize = 10;
/// The name of the plain writes.
const SYNCED: &str = "writes, as often synced";
/// The session of the calls.
const SESSION: &str = "e07e0366-c23a-4a59-839c-dbb261253011";

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("backtrail hook", &why)]),
    };
    command::announce(&bin);
    let (new, old) = (dir.join("new"), dir.join("old"));
    let floor = dir.join("floor");
    for dir in [&new, &old, &floor] {
        fs::create_dir(dir)?;
    }
    let past = args.pick(50_000, 5_000);
    many::make(&old.join("store"), &old.join("tree"), past)?;
    let mut pair = Pair {
        new: hooked(args, &bin, &new)?,
        old: hooked(args, &bin, &old)?,
        past,
        floor,
        files: extent(args).files,
    };
    settle(dir)?;
    std::thread::sleep(RACY);
    let mut entries = pair.notes(args)?;
    entries.extend(pair.changes(args)?);
    entries.extend(pair.prompts(args)?);
    Ok(entries)
}

fn extent(args: &Args) -> Extent {
    let files = args.pick(6_000, 600);
    Extent {
        files,
        dirs: files / 12,
        bytes: files as u64 * 10_000,
    }
}

fn hooked(args: &Args, bin: &Path, dir: &Path) -> Result<Hooked> {
    let tree = Tree::make(&dir.join("tree"), extent(args))?;
    Hooked::new(bin, &dir.join("store"), tree)
}

/// The same tree in a workspace without a past, and in one with many checkpoints.
struct Pair {
    new: Hooked,
    old: Hooked,
    /// How many checkpoints the old one has.
    past: usize,
    /// The directory of the plain writes.
    floor: PathBuf,
    files: usize,
}

impl Pair {
    /// Measures calls that only note that the agent is at work.
    fn notes(&mut self, args: &Args) -> Result<Vec<Entry>> {
        self.new.prompt(SESSION)?;
        self.old.prompt(SESSION)?;
        let (new, old) = (&mut self.new, &mut self.old);
        let [new, old, nothing, shell] = interleave(
            args.pick(500, 60),
            [
                &mut || new.note(SESSION),
                &mut || old.note(SESSION),
                &mut || pipe(&mut Command::new("true"), b"{}"),
                &mut || pipe(Command::new("sh").args(["-c", ":"]), b"{}"),
            ],
        )?;
        let name = "hook that only notes".to_owned();
        let after = self.after(&name);
        Ok(vec![
            figure(&name, &new, ("true", &nothing), Goal::AtMost(5e-3)),
            figure(&name, &new, ("sh -c :", &shell), Goal::Open),
            p99(&name, &new, &nothing),
            figure(&after, &old, ("true", &nothing), Goal::AtMost(5e-3)),
            p99(&after, &old, &nothing),
        ])
    }

    /// Measures calls before a tool that may change files.
    fn changes(&mut self, args: &Args) -> Result<Vec<Entry>> {
        let mut random = [Random::new(1), Random::new(1)];
        let [for_new, for_old] = &mut random;
        let (new, old) = (&mut self.new, &mut self.old);
        let mut in_new = || {
            new.tree.change(for_new, CHANGES)?;
            new.change(SESSION, CHANGES as u64)
        };
        let mut in_old = || {
            old.tree.change(for_old, CHANGES)?;
            old.change(SESSION, CHANGES as u64)
        };
        let mut plain = || synced_writes(&self.floor);
        let lanes: [crate::measure::Lane<'_>; 3] = [&mut in_new, &mut in_old, &mut plain];
        let [new, old, plain] = interleave(args.pick(60, 10), lanes)?;
        self.figures("hook before a tool, 10 changes", &new, &old, &plain)
    }

    /// Measures the first prompts of new sessions.
    fn prompts(&mut self, args: &Args) -> Result<Vec<Entry>> {
        let (new, old) = (&self.new, &self.old);
        new.end(SESSION)?;
        old.end(SESSION)?;
        let first_prompt = |hooked: &Hooked, n: &mut u32| {
            *n += 1;
            let session = format!("session-{n}");
            let took = hooked.prompt(&session)?;
            hooked.end(&session)?;
            Ok(took)
        };
        let (mut n, mut m) = (0, 0);
        let mut in_new = || first_prompt(new, &mut n);
        let mut in_old = || first_prompt(old, &mut m);
        let mut plain = || synced_writes(&self.floor);
        let lanes: [crate::measure::Lane<'_>; 3] = [&mut in_new, &mut in_old, &mut plain];
        let [new, old, plain] = interleave(args.pick(30, 5), lanes)?;
        self.figures("hook of a session's first prompt", &new, &old, &plain)
    }

    fn figures(
        &self,
        what: &str,
        new: &Samples,
        old: &Samples,
        plain: &Samples,
    ) -> Result<Vec<Entry>> {
        let name = format!("{} files: {what}", self.files);
        let goal = Goal::AtMost(40e-3);
        let after = self.after(&name);
        Ok(vec![
            figure(&name, new, (SYNCED, plain), goal),
            figure(&after, old, (SYNCED, plain), goal),
            best(&name, new, plain),
            best(&after, old, plain),
        ])
    }

    fn after(&self, name: &str) -> String {
        format!("{name}, after {} checkpoints", self.past)
    }
}

fn figure(name: &str, ours: &Samples, baseline: (&'static str, &Samples), goal: Goal) -> Entry {
    let (what, floor) = baseline;
    Entry::Figure(Figure {
        name: name.to_owned(),
        ours: Quantity::of(ours, Unit::Seconds),
        baseline: Some((what, Quantity::of(floor, Unit::Seconds))),
        goal,
    })
}

fn best(name: &str, ours: &Samples, plain: &Samples) -> Entry {
    let best = |samples: &Samples| Quantity::best(samples, Unit::Seconds);
    Entry::Figure(Figure {
        name: format!("{name}, best"),
        ours: best(ours),
        baseline: Some((SYNCED, best(plain))),
        goal: Goal::Open,
    })
}

/// Changes ten files, writes as much as a checkpoint does and syncs it as often; returns the time
/// of the writes and syncs.
fn synced_writes(dir: &Path) -> Result<Duration> {
    for n in 0..CHANGES {
        fs::write(dir.join(format!("changed-{n}")), vec![b'x'; 10_000])?;
    }
    let append = |name: &str, len: usize| -> Result<()> {
        let mut options = File::options();
        let mut file = options.create(true).append(true).open(dir.join(name))?;
        file.write_all(&vec![b'x'; len])?;
        Ok(file.sync_data()?)
    };
    time(|| {
        append("objects", 40_000)?;
        for dir in dir.ancestors().take(3) {
            File::open(dir)?.sync_all()?;
        }
        append("trail", 500)
    })
}

fn p99(name: &str, ours: &Samples, floor: &Samples) -> Entry {
    let p99 = |samples: &Samples| Quantity::single(samples.percentile(99.0), Unit::Seconds);
    Entry::Figure(Figure {
        name: format!("{name}, p99"),
        ours: p99(ours),
        baseline: Some(("true", p99(floor))),
        goal: Goal::AtMost(15e-3),
    })
}

//! Blame of a long file after many checkpoints, as a whole process, compared with `git blame`
//! of the same file with as many commits.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, Durability, StoreOptions};

use super::git;
use super::random::Random;
use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::measure::{Lane, interleave};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::store::process::{backtrail, run};

/// The lines of the file.
const LINES: usize = 5_000;
/// The limit of the time that it may take.
const LIMIT: f64 = 0.300;
/// The file, and another that changes where it does not.
const FILE: &str = "src/long.rs";
const OTHER: &str = "src/other.rs";

pub(super) fn measure(args: &Args, dir: &Path, _: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("blame", &why)]),
    };
    command::announce(&bin);
    let checkpoints = args.pick(10_000, 1_000);
    let mut entries = Vec::new();
    // It runs in the directory of the files.
    let bin = std::path::absolute(bin)?;
    for changes in [checkpoints / 50, checkpoints] {
        let dir = dir.join(changes.to_string());
        fs::create_dir_all(dir.join("tree/src"))?;
        let history = History {
            dir,
            checkpoints,
            changes,
        };
        history.make()?;
        entries.push(history.measure(args, &bin)?);
    }
    Ok(entries)
}

/// Checkpoints of a directory, and as many commits.
struct History {
    dir: PathBuf,
    checkpoints: usize,
    /// In how many of them the file changed.
    changes: usize,
}

impl History {
    /// Makes the checkpoints: half of the changes are those of runs, half are the user's.
    fn make(&self) -> Result<()> {
        let tree = self.dir.join("tree");
        let options = StoreOptions::new().durability(Durability::Os);
        let store = options.open_or_create(self.dir.join("store"))?;
        let workspace = store.workspace(&tree)?;
        let mut start = None;
        let mut states = States::new(self.checkpoints / self.changes);
        for n in 0..self.checkpoints {
            for (name, text) in states.next() {
                fs::write(tree.join(name), text)?;
            }
            let options = CheckpointOptions::new();
            let options = match start.take() {
                Some(start) => options.reason(CheckpointReason::RunEnd).begun_by(start),
                None => options.reason(CheckpointReason::RunStart),
            };
            let kept = workspace.checkpoint(options)?;
            start = (n % 2 == 0).then(|| kept.id());
        }
        settle(&self.dir)
    }

    fn measure(&self, args: &Args, bin: &Path) -> Result<Entry> {
        let (tree, store) = (self.dir.join("tree"), self.dir.join("store"));
        let file = tree.join(FILE);
        let mut ours = || {
            let mut command = backtrail(bin, &store, &["blame"]);
            let ran = run(command.arg(&file).current_dir(&tree))?;
            match ran.told["lines"].as_array().map(Vec::len) {
                Some(LINES) => Ok(ran.took),
                lines => Err(format!("{lines:?} lines instead of {LINES}").into()),
            }
        };
        let rounds = args.pick(11, 3);
        let seconds = |samples: &_| Quantity::of(samples, Unit::Seconds);
        let (ours, git) = match git::version() {
            Ok(_) => {
                self.commit()?;
                let mut git = || run_quietly(self.git().args(["blame", "HEAD", "--", FILE]));
                let lanes: [Lane<'_>; 2] = [&mut ours, &mut git];
                let [ours, git] = interleave(rounds, lanes)?;
                (seconds(&ours), Some(("git blame", seconds(&git))))
            }
            Err(_) => (seconds(&interleave(rounds, [&mut ours])?[0]), None),
        };
        let (changes, all) = (self.changes, self.checkpoints);
        Ok(Entry::Figure(Figure {
            name: format!("blame, {LINES} lines, changed in {changes} of {all} checkpoints"),
            ours,
            baseline: git,
            goal: match changes < all {
                true => Goal::AtMost(LIMIT),
                false => Goal::Open,
            },
        }))
    }

    /// Makes the same history in git, packed.
    fn commit(&self) -> Result<()> {
        run_quietly(self.git().args(["init", "-q", "--bare"]))?;
        let mut import = self.git();
        import
            .args(["fast-import", "--quiet"])
            .stdin(Stdio::piped());
        let mut import = import.spawn()?;
        let mut to = BufWriter::new(import.stdin.take().ok_or("git has no input")?);
        let mut states = States::new(self.checkpoints / self.changes);
        for n in 0..self.checkpoints {
            write!(
                to,
                "commit HEAD\ncommitter n <e> {} +0000\n",
                1_700_000_000 + n
            )?;
            writeln!(to, "data 0")?;
            for (name, text) in states.next() {
                write!(to, "M 644 inline {name}\ndata {}\n{text}\n", text.len())?;
            }
        }
        drop(to);
        match import.wait()?.success() {
            true => Ok(()),
            false => Err("git fast-import failed".into()),
        }
    }

    fn git(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env("GIT_DIR", self.dir.join("git"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }
}

/// The states of the files, the same in every run.
struct States {
    random: Random,
    lines: Vec<String>,
    count: usize,
    /// The file changes in every so many states.
    every: usize,
}

impl States {
    fn new(every: usize) -> Self {
        let mut states = Self {
            random: Random::new(20),
            lines: Vec::new(),
            count: 0,
            every,
        };
        states.lines = (0..LINES).map(|_| states.line()).collect();
        states
    }

    fn line(&mut self) -> String {
        let mut line = format!("    let value_{:x}", self.random.below(1 << 20));
        writeln!(line, " = compute({});", self.random.below(1_000_000)).ok();
        line
    }

    /// Changes three lines near each other, or the other file.
    fn next(&mut self) -> Vec<(&'static str, String)> {
        self.count += 1;
        let mut changed = vec![(OTHER, format!("// {}\n", self.count))];
        if self.count.is_multiple_of(self.every) || self.count == 1 {
            let at = self.random.below(LINES - 3);
            for n in at..at + 3 {
                self.lines[n] = self.line();
            }
            changed.push((FILE, self.lines.concat()));
        }
        changed
    }
}

//! A long history: a thousand checkpoints with ten changed files each.

use super::size::Size;
use super::subject::{Kept, Subject, Subjects, Which};
use super::tree::Edited;
use super::{CHANGES, GIT};
use crate::Result;
use crate::args::Args;
use crate::measure::Samples;
use crate::parts::settle;
use crate::report::{Entry, Goal, Quantity, Unit};

pub(super) fn measure(args: &Args, subjects: &Subjects) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for subject in subjects.each() {
        let history = History {
            subject,
            kept: subject.kept()?,
            count: args.pick(1_000, 50),
            by_git: match subject.which {
                Which::Large => args.pick(100, 10),
                Which::Small => args.pick(1_000, 50),
            },
        };
        let made = history.make()?;
        entries.extend(history.figures(&made)?);
    }
    Ok(entries)
}

struct History<'a> {
    subject: &'a Subject,
    kept: &'a Kept,
    /// The number of checkpoints.
    count: usize,
    /// How many of the first ones git makes as well: in a large tree all of them would
    /// take minutes.
    by_git: usize,
}

/// The result of a history.
struct Made {
    /// The size of the changed files, compressed one by one.
    compressed: u64,
    ours: Size,
    /// The size of git's part, scaled up to all checkpoints.
    git: Size,
    times: Vec<f64>,
}

impl History<'_> {
    fn make(&self) -> Result<Made> {
        let Kept { ours, git } = self.kept;
        let (ours_before, git_before) = (ours.size()?, git.size()?);
        let mut compressed = 0;
        let mut times = Vec::with_capacity(self.count);
        for n in 0..self.count {
            let changed = self.subject.change(CHANGES)?;
            compressed += compressed_len(&changed)?;
            let took = ours.keep(self.subject.expect(Some(CHANGES)))?;
            times.push(took.as_secs_f64());
            if n < self.by_git {
                git.keep()?;
            }
        }
        let all = self.count as f64 / self.by_git as f64;
        // Blocks are allocated when bytes are written back.
        settle(&self.subject.tree.root)?;
        Ok(Made {
            compressed,
            ours: ours.size()?.since(ours_before),
            git: git.size()?.since(git_before).times(all),
            times,
        })
    }

    fn figures(&self, made: &Made) -> Result<Vec<Entry>> {
        let bytes = |n: u64| Quantity::single(n as f64, Unit::Bytes);
        let name = format!("{} checkpoints, 10 changes each", self.count);
        let named = |what: &str| format!("{name}, {what}");
        let by_git = if self.by_git < self.count {
            "git's, from a tenth"
        } else {
            GIT
        };
        let added = bytes(made.ours.bytes);
        let compressed = bytes(made.compressed);
        let zstd = ("the changed files, zstd -3", compressed);
        let blocks = bytes(made.ours.on_disk);
        let git = |n| Some((by_git, bytes(n)));
        let subject = self.subject;
        let mut entries = vec![
            subject.figure(
                &named("lengths added"),
                &added,
                Some(zstd),
                Goal::CostAtMost(2.5),
            ),
            subject.figure(
                &named("lengths added"),
                &added,
                git(made.git.bytes),
                Goal::CostAtMost(0.4),
            ),
            subject.figure(
                &named("blocks added"),
                &blocks,
                git(made.git.on_disk),
                Goal::CostAtMost(0.4),
            ),
            self.growth(&named("each of the last tenth"), &made.times),
        ];
        let peak = self.kept.ours.peak(subject.expect(Some(0)))?;
        entries.push(subject.memory(&format!("after {name}"), peak));
        Ok(entries)
    }

    /// Reports whether a checkpoint takes longer after many others.
    fn growth(&self, name: &str, times: &[f64]) -> Entry {
        let tenth = times.len() / 10;
        let median = |times: &[f64]| Quantity::of(&Samples::new(times.to_vec()), Unit::Seconds);
        let first = median(&times[..tenth]);
        let last = median(&times[times.len() - tenth..]);
        let first = Some(("of the first tenth", first));
        self.subject.figure(name, &last, first, Goal::Open)
    }
}

/// Returns the total size of files, each compressed by itself.
fn compressed_len(files: &[Edited]) -> Result<u64> {
    let mut len = 0;
    for file in files {
        len += zstd::bulk::compress(&file.after, 3)?.len() as u64;
    }
    Ok(len)
}

//! Verifying every byte of a store, compared with reading and with hashing it.

use std::path::Path;
use std::process::Command;

use super::large::Large;
use super::process::{backtrail, run};
use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::measure::{Lane, Samples, interleave};
use crate::parts::Shared;
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

pub(super) fn measure(args: &Args, dir: &Path, shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("verify", &why)]),
    };
    let large = Large::make(&bin, dir, args.pick(2_000_000_000, 200_000_000))?;
    let mut entries = figures(args, &bin, &large.store, "files that do not compress")?;
    if let Ok(subjects) = shared.subjects(args)? {
        let store = subjects.large_store()?;
        entries.extend(figures(args, &bin, &store, "sources")?);
    }
    Ok(entries)
}

fn figures(args: &Args, bin: &Path, store: &Path, what: &str) -> Result<Vec<Entry>> {
    let verify = |words: &[&str]| {
        let ran = run(&mut backtrail(bin, store, words))?;
        match ran.told["ok"] == true {
            true => Ok(ran),
            false => Err(format!("the store is damaged: {}", ran.told).into()),
        }
    };
    let bytes = verify(&["verify"])?.told["bytes"].as_f64();
    let bytes = bytes.ok_or("it does not tell how much it read")?;
    let peak = std::cell::Cell::new(0);
    let mut ours = || {
        verify(&["verify"]).map(|ran| {
            peak.set(ran.peak.max(peak.get()));
            ran.took
        })
    };
    let mut quick = || verify(&["verify", "--quick"]).map(|ran| ran.took);
    let packs = format!("cat {}/objects/*", store.display());
    let mut read = || run_quietly(Command::new("sh").arg("-c").arg(&packs));
    let lanes: [Lane<'_>; 3] = [&mut ours, &mut quick, &mut read];
    let [ours, quick, read] = interleave(args.pick(5, 2), lanes)?;
    let rate = |samples: &Samples| {
        let rates = samples.map(|seconds| bytes / seconds);
        Quantity::of(&rates, Unit::BytesPerSecond)
    };
    let figure = |name: String, ours, baseline, goal| {
        Entry::Figure(Figure {
            name,
            ours,
            baseline,
            goal,
        })
    };
    let name = format!("verify, {what}, {:.1} GB", bytes / 1e9);
    let seconds = |samples| Quantity::of(samples, Unit::Seconds);
    let peak = Quantity::single(peak.get() as f64, Unit::Bytes);
    Ok(vec![
        figure(
            name.clone(),
            rate(&ours),
            Some(("cat", rate(&read))),
            Goal::AtLeast(400e6),
        ),
        figure(
            format!("{name}, --quick"),
            seconds(&quick),
            Some(("verify", seconds(&ours))),
            Goal::Open,
        ),
        figure(format!("{name}, peak memory"), peak, None, Goal::Open),
    ])
}

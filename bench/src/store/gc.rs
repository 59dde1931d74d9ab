//! Cleaning up a store whose half is unreferenced, compared with copying the other half.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::large::Large;
use super::process::{backtrail, run};
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::measure::{Samples, time};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

pub(super) fn measure(args: &Args, dir: &Path, _: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("gc", &why)]),
    };
    command::announce(&bin);
    let large = Large::make(&bin, dir, args.pick(10_000_000_000, 400_000_000))?;
    let before = large.len()?;
    // It can only be done once: afterwards there is nothing to clean up.
    let ran = run(&mut backtrail(
        &bin,
        &large.store,
        &["gc", "--older-than", "0s"],
    ))?;
    let left = large.len()?;
    let half = 0.4..0.6;
    if !half.contains(&(left as f64 / before as f64)) {
        return Err(format!("{left} of {before} bytes are left: {}", ran.told).into());
    }
    check(&bin, &large)?;
    let mut copies = Vec::new();
    for _ in 0..3 {
        copies.push(copy(&large, dir)?.as_secs_f64());
    }
    let name = format!("gc, {:.1} of {:.1} GB stay", gb(left), gb(before));
    let figure = |name: &str, ours, baseline, goal| {
        Entry::Figure(Figure {
            name: name.to_owned(),
            ours,
            baseline,
            goal,
        })
    };
    let copies = Quantity::of(&Samples::new(copies), Unit::Seconds);
    let took = Quantity::single(ran.took.as_secs_f64(), Unit::Seconds);
    let peak = Quantity::single(ran.peak as f64, Unit::Bytes);
    let most = Goal::AtMost(f64::from(200 << 20));
    Ok(vec![
        figure(
            &name,
            took,
            Some(("cp + syncfs", copies)),
            Goal::CostAtMost(1.3),
        ),
        figure("gc, peak memory", peak, None, most),
    ])
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// Rejects a damaged store.
fn check(bin: &Path, large: &Large) -> Result<()> {
    let told = run(&mut backtrail(bin, &large.store, &["verify"]))?.told;
    match told["ok"] == true {
        true => Ok(()),
        false => Err(format!("the store is damaged: {told}").into()),
    }
}

/// Copies the remaining packs durably.
fn copy(large: &Large, dir: &Path) -> Result<Duration> {
    let to = dir.join("copy");
    settle(dir)?;
    let took = time(|| {
        let status = Command::new("cp")
            .arg("-r")
            .arg(large.packs())
            .arg(&to)
            .status()?;
        match status.success() {
            true => settle(dir),
            false => Err("cp failed".into()),
        }
    })?;
    fs::remove_dir_all(&to)?;
    settle(dir)?;
    Ok(took)
}

//! The status line: as an agent runs it, beside a long history.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::corpus::{self, Size};
use super::figure;
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::measure::{Lane, interleave, time};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::{backtrail, run, watch};

/// The limits, whatever the history.
const TIME: f64 = 0.015;
const MEMORY: f64 = 15.0 * 1024.0 * 1024.0;
/// How many checkpoints the workspace has.
const CHECKPOINTS: usize = 40;

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("statusline", &why)]),
    };
    command::announce(&bin);
    let (store, work) = (dir.join("store"), dir.join("work"));
    let size = Size {
        sessions: args.pick(10_000, 1_000),
        messages_each: 20,
        bytes_each: 300,
    };
    corpus::make(&store, size)?;
    run(&mut backtrail(&bin, &store, &["rebuild"]))?;
    make_checkpoints(&bin, &store, &work)?;
    let payload = dir.join("payload.json");
    fs::write(&payload, report(&bin, &store, &work)?.to_string())?;
    settle(dir)?;
    let mut ours = || {
        let mut command = shown(&bin, &store, &work);
        command.stdin(File::open(&payload)?);
        time(|| match command.status()? {
            status if status.success() => Ok(()),
            status => Err(format!("{command:?} failed: {status}").into()),
        })
    };
    let mut version = || command::run_quietly(Command::new(&bin).arg("--version"));
    let lanes: [Lane<'_>; 2] = [&mut ours, &mut version];
    let [ours, version] = interleave(args.pick(41, 11), lanes)?;
    let seconds = |samples| Quantity::of(samples, Unit::Seconds);
    let name = format!("statusline, {} sessions", size.sessions);
    Ok(vec![
        figure(
            name.clone(),
            seconds(&ours),
            Some(("--version", seconds(&version))),
            Goal::AtMost(TIME),
        ),
        figure(
            format!("{name}, peak memory"),
            Quantity::single(peak(&bin, &store, &work)? as f64, Unit::Bytes),
            None,
            Goal::AtMost(MEMORY),
        ),
    ])
}

fn shown(bin: &Path, store: &Path, work: &Path) -> Command {
    let mut command = Command::new(bin);
    command
        .env_remove("BACKTRAIL_SESSION")
        .arg("--store")
        .arg(store)
        .arg("statusline")
        .current_dir(work)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Makes a workspace whose trail is not short.
fn make_checkpoints(bin: &Path, store: &Path, work: &Path) -> Result<()> {
    fs::create_dir_all(work)?;
    for n in 0..CHECKPOINTS {
        fs::write(work.join("a.txt"), format!("{n}\n"))?;
        run(backtrail(bin, store, &["checkpoint"]).current_dir(work))?;
    }
    Ok(())
}

/// Returns what an agent would report about one of the sessions.
fn report(bin: &Path, store: &Path, work: &Path) -> Result<Value> {
    let listed = run(&mut backtrail(bin, store, &["list", "--all", "-n", "1"]))?.told;
    Ok(json!({
        "session_id": listed[0]["id"], "cwd": work, "model": {"display_name": "a model"},
        "context_window": {"used_percentage": 34},
    }))
}

/// Returns the peak memory. It is read while the line waits for a command that it comes after, when
/// all else is done.
fn peak(bin: &Path, store: &Path, work: &Path) -> Result<u64> {
    let mut command = shown(bin, store, work);
    let (_, peak, told) = watch(command.args(["--after", "sleep 0.2"]))?;
    match told.is_empty() {
        true => Err("it printed nothing".into()),
        false => Ok(peak),
    }
}

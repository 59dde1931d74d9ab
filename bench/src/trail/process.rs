//! The command as a whole process: how fast it starts, and how fast it records messages
//! from a pipe.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use backtrail::Store;

use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::measure::interleave;
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::{Error, Result};

/// The number of messages.
const MESSAGES: u64 = 100_000;

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("backtrail --version and record", &why)]),
    };
    command::announce(&bin);
    let mut entries = vec![measure_start(args, &bin)?];
    if knows_record(&bin)? {
        entries.push(measure_record(args, &bin, dir)?);
    } else {
        let why = format!("{} has no command `record`", bin.display());
        entries.push(Entry::skipped("backtrail record", &why));
    }
    Ok(entries)
}

fn measure_start(args: &Args, bin: &Path) -> Result<Entry> {
    let output = Command::new(bin).arg("--version").output()?;
    if !output.status.success() || !output.stdout.starts_with(b"backtrail") {
        let why = format!("{} does not tell its version", bin.display());
        return Ok(Entry::skipped("backtrail --version", &why));
    }
    let mut ours = || run_quietly(Command::new(bin).arg("--version"));
    let mut floor = || run_quietly(&mut Command::new("true"));
    let [ours, floor] = interleave(args.pick(300, 60), [&mut ours, &mut floor])?;
    Ok(Entry::Figure(Figure {
        name: "backtrail --version, whole process".to_owned(),
        ours: Quantity::of(&ours, Unit::Seconds),
        baseline: Some(("true", Quantity::of(&floor, Unit::Seconds))),
        goal: Goal::AtMost(10e-3),
    }))
}

fn knows_record(bin: &Path) -> Result<bool> {
    let output = Command::new(bin).args(["record", "--help"]).output()?;
    Ok(output.status.success() && !output.stdout.is_empty())
}

fn measure_record(args: &Args, bin: &Path, dir: &Path) -> Result<Entry> {
    let input: String = (0..MESSAGES)
        .map(|n| format!("{{\"role\":\"user\",\"text\":\"message {n}\"}}\n"))
        .collect();
    let mut round = 0;
    let mut ours = || {
        round += 1;
        let store = dir.join(format!("store{round}"));
        let mut command = Command::new(bin);
        command
            .env_remove("BACKTRAIL_HOME")
            .arg("--store")
            .arg(&store)
            .args(["record", "--durability", "os"]);
        let (answers, took) = pipe_through(&mut command, &input, &dir.join("stderr"))?;
        check_recorded(&store, &answers)?;
        fs::remove_dir_all(&store)?;
        Ok(took)
    };
    let mut floor = || {
        let mut command = Command::new("cat");
        let (_, took) = pipe_through(&mut command, &input, &dir.join("stderr"))?;
        Ok(took)
    };
    let times = interleave(args.pick(11, 3), [&mut ours, &mut floor])?;
    let [ours, floor] = times.map(|samples| samples.map(|took| MESSAGES as f64 / took));
    Ok(Entry::Figure(Figure {
        name: format!("backtrail record, {MESSAGES} through a pipe, OS mode"),
        ours: Quantity::of(&ours, Unit::PerSecond),
        baseline: Some(("cat", Quantity::of(&floor, Unit::PerSecond))),
        goal: Goal::AtLeast(150_000.0),
    }))
}

/// Feeds a process from one thread while another reads its output; returns that, and the
/// time from start to exit.
fn pipe_through(command: &mut Command, input: &str, stderr: &Path) -> Result<(Vec<u8>, Duration)> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(stderr)?);
    let mut answers = Vec::with_capacity(32 << 20);
    let start = Instant::now();
    let mut child = command.spawn()?;
    let stdin = child.stdin.take().ok_or("no stdin")?;
    let mut stdout = child.stdout.take().ok_or("no stdout")?;
    let fed = thread::scope(|scope| {
        let feeder = scope.spawn(move || {
            let mut stdin = stdin;
            stdin.write_all(input.as_bytes())
        });
        let read = stdout.read_to_end(&mut answers);
        let fed = feeder.join().map_err(|_| "a thread panicked")?;
        Ok::<_, Error>(fed.and(read))
    })?;
    let status = child.wait()?;
    let took = start.elapsed();
    if !status.success() || fed.is_err() {
        let said = fs::read_to_string(stderr).unwrap_or_default();
        return Err(format!("{command:?} failed: {status}\n{}", said.trim_end()).into());
    }
    Ok((answers, took))
}

/// Checks that every message was answered and recorded, so that a fast but wrong run does
/// not count.
fn check_recorded(store: &Path, answers: &[u8]) -> Result<()> {
    let answered = answers.iter().filter(|byte| **byte == b'\n').count() as u64;
    let store = Store::open(store)?;
    let [id] = &store.sessions()?[..] else {
        return Err("`record` did not leave exactly one session".into());
    };
    let last = store.read_session(id)?.last_records(1)?;
    let recorded = last.first().map_or(0, backtrail::Record::seq);
    if answered < MESSAGES || recorded < MESSAGES {
        return Err(format!("{answered} answers and {recorded} records of {MESSAGES}").into());
    }
    Ok(())
}

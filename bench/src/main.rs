//! Measures Backtrail against what it replaces, in one run, as ratios.
//!
//! ```text
//! cargo run --release -p backtrail-bench -- [trail|session|snapshot|store|find|import|follow|live|ui] [--quick] [--only NAME]
//!                                           [--dir DIR] [--bin PATH] [--json]
//! ```
//!
//! Every figure is measured next to its baseline, in alternating rounds, and the median
//! of the rounds counts (or the best, where stated). A missed target is printed but does
//! not change the exit code; only a failed measurement does.

#![allow(
    clippy::disallowed_methods,
    reason = "baselines write files the way programs without an engine do"
)]

mod args;
mod command;
mod find;
mod follow;
mod import;
mod live;
mod machine;
mod measure;
mod parts;
mod profile;
mod report;
mod session;
mod snapshot;
mod store;
mod trail;
mod ui;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

use args::{Args, Task};
use machine::Machine;
use report::{Entry, Report};

/// The error type of the benchmarks.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Error> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let done = Args::parse(std::env::args_os().skip(1)).and_then(|args| run(&args));
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.task {
        Task::Help => {
            println!("{}", args::USAGE);
            Ok(ExitCode::SUCCESS)
        }
        Task::Measure => measure_all(args),
        Task::Profile { what, count } => {
            profile::run(args, *what, *count)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::StreamChild { store, session } => {
            println!("{}", trail::stream::child(store, session)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::LoadChild { file } => {
            println!("{}", session::load::child(file)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn measure_all(args: &Args) -> Result<ExitCode> {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures mean nothing");
    }
    let dir = scratch_dir(args)?;
    let machine = Machine::look(dir.path())?;
    if machine.is_in_memory() {
        eprintln!(
            "warning: {} is kept in memory ({}); syncs cost nothing there, name a disk with --dir",
            dir.path().display(),
            machine.file_system
        );
    }
    let entries = parts::measure(args, dir.path())?;
    let report = Report {
        machine: machine.and_now(),
        entries,
    };
    if args.json {
        println!("{:#}", report.to_json());
    } else {
        print!("{report}");
    }
    let failed = report
        .entries
        .iter()
        .any(|entry| matches!(entry, Entry::Failed { .. }));
    Ok(ExitCode::from(u8::from(failed)))
}

/// Creates a temporary directory: in `--dir`, or beside the build, which is on a disk
/// more often than `/tmp`.
fn scratch_dir(args: &Args) -> Result<tempfile::TempDir> {
    let parent = match &args.dir {
        Some(dir) => dir.clone(),
        None => build_dir().map_or_else(std::env::current_dir, Ok)?,
    };
    let dir = tempfile::Builder::new()
        .prefix("backtrail-bench-")
        .tempdir_in(&parent)
        .map_err(|error| format!("cannot make a directory in {}: {error}", parent.display()))?;
    Ok(dir)
}

/// Returns the directory of this program.
fn build_dir() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.parent()?.to_owned())
}

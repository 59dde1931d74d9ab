//! The `backtrail` command under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::args::Args;
use crate::measure::time;

/// Finds the command, building it if it is missing; returns the reason if there is none.
pub(crate) fn find(args: &Args) -> Result<PathBuf, String> {
    if let Some(bin) = &args.bin {
        return match bin.is_file() {
            true => Ok(bin.clone()),
            false => Err(format!("there is no {}", bin.display())),
        };
    }
    let dir = crate::build_dir().ok_or("this program does not know where it is")?;
    let bin = dir.join(format!("backtrail{}", std::env::consts::EXE_SUFFIX));
    if !bin.is_file() {
        build(&dir)?;
    }
    match bin.is_file() {
        true => Ok(bin),
        false => Err(format!("there is no {}", bin.display())),
    }
}

/// Prints which command is run.
pub(crate) fn announce(bin: &Path) {
    eprintln!("running:   {} ({})", bin.display(), age(bin));
}

/// Runs a command without input or output and returns the time from start to exit.
pub(crate) fn run_quietly(command: &mut Command) -> Result<Duration> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    time(|| match command.status()? {
        status if status.success() => Ok(()),
        status => Err(format!("{command:?} failed: {status}").into()),
    })
}

fn build(dir: &Path) -> Result<(), String> {
    eprintln!("building:  backtrail");
    let target = dir.parent().unwrap_or(dir);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--release", "-p", "backtrail-cli"])
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    match built {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("building backtrail failed: {status}")),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

/// Describes how old the command is, because figures of an old build are useless.
fn age(bin: &Path) -> String {
    let age = fs::metadata(bin)
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    match age {
        Some(age) => format!("built {} minutes ago", age.as_secs() / 60),
        None => "of unknown age".to_owned(),
    }
}

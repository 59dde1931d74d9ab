//! `backtrail checkpoint`, `rewind` and `undo` as whole processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::memory;
use super::size::Size;
use crate::Result;
use crate::args::Args;
use crate::command;

/// A store with the states of one directory.
#[derive(Debug)]
pub(crate) struct Ours {
    bin: PathBuf,
    pub(super) store: PathBuf,
    tree: PathBuf,
}

/// What a checkpoint must have found, so that a fast but wrong one does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) files: usize,
    /// How many differ from the last time; `None` the first time.
    pub(super) changed: Option<usize>,
}

impl Ours {
    /// Describes a store that the first checkpoint creates.
    pub(super) fn new(bin: &Path, store: &Path, tree: &Path) -> Self {
        Self {
            bin: bin.to_owned(),
            store: store.to_owned(),
            tree: tree.to_owned(),
        }
    }

    /// Makes a checkpoint and returns the time from start to exit.
    pub(super) fn keep(&self, expected: Expected) -> Result<Duration> {
        let (took, told) = run(&mut self.checkpoint())?;
        expected.check(&told)?;
        Ok(took)
    }

    /// Makes a checkpoint and returns its id.
    pub(super) fn mark(&self, expected: Expected) -> Result<String> {
        let (_, told) = run(&mut self.checkpoint())?;
        expected.check(&told)?;
        let told: Value = serde_json::from_slice(&told)?;
        Ok(told["id"].as_str().ok_or("there is no id")?.to_owned())
    }

    /// Rewinds this many files to a point and returns the time it took.
    pub(super) fn rewind(&self, point: &str, count: usize) -> Result<Duration> {
        let mut command = self.command(&["rewind", point, "--overwrite"]);
        let (took, told) = run(&mut command)?;
        check_moved(&told, count)?;
        Ok(took)
    }

    /// Undoes that and returns the time it took.
    pub(super) fn undo(&self, count: usize) -> Result<Duration> {
        let (took, told) = run(&mut self.command(&["undo"]))?;
        check_moved(&told, count)?;
        Ok(took)
    }

    /// Makes a checkpoint and returns the peak memory.
    pub(super) fn peak(&self, expected: Expected) -> Result<f64> {
        let (peak, told) = memory::peak(&mut self.checkpoint())?;
        expected.check(&told)?;
        Ok(peak as f64)
    }

    /// Returns the size of the store without derived data.
    pub(super) fn size(&self) -> Result<Size> {
        Size::of(&self.store, Some("derived"))
    }

    /// Removes the store, if there is one.
    pub(super) fn forget(&self) -> Result<()> {
        if self.store.exists() {
            fs::remove_dir_all(&self.store)?;
        }
        Ok(())
    }

    fn checkpoint(&self) -> Command {
        self.command(&["checkpoint"])
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.bin);
        command
            .env_remove("BACKTRAIL_HOME")
            .env_remove("BACKTRAIL_SESSION")
            .arg("--store")
            .arg(&self.store)
            .args(words)
            .args(["--json", "--workspace"])
            .arg(&self.tree);
        command
    }
}

/// Runs a command and returns the time from start to exit, and its output.
fn run(command: &mut Command) -> Result<(Duration, Vec<u8>)> {
    command.stdin(Stdio::null());
    let start = Instant::now();
    let output = command.output()?;
    let took = start.elapsed();
    match output.status.success() {
        true => Ok((took, output.stdout)),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?} failed: {}", said.trim_end()).into())
        }
    }
}

/// Rejects a rewind that moved more or fewer files.
fn check_moved(told: &[u8], count: usize) -> Result<()> {
    let told: Value = serde_json::from_slice(told)?;
    let len = |name: &str| told[name].as_array().map(Vec::len);
    let others = ["kept", "conflicts", "not_restored"];
    let is_right = len("changes") == Some(count) && others.iter().all(|name| len(name) == Some(0));
    match is_right {
        true => Ok(()),
        false => Err(format!("{told} where {count} files were to be restored").into()),
    }
}

impl Expected {
    fn check(self, told: &[u8]) -> Result<()> {
        let told: Value = serde_json::from_slice(told)?;
        let number = |name: &str| told[name].as_u64().map(|n| n as usize);
        let is_right = number("files") == Some(self.files)
            && told["skipped"]["count"] == 0
            && self.changed.is_none_or(|n| number("changed") == Some(n));
        match is_right {
            true => Ok(()),
            false => Err(format!("{told} where {self:?} was").into()),
        }
    }
}

/// Finds the command; returns the reason if it cannot be used.
pub(super) fn find(args: &Args) -> Result<PathBuf, String> {
    let bin = command::find(args)?;
    let output = Command::new(&bin)
        .args(["checkpoint", "--help"])
        .output()
        .map_err(|error| format!("cannot run {}: {error}", bin.display()))?;
    match output.status.success() && !output.stdout.is_empty() {
        true => Ok(bin),
        false => Err(format!("{} has no command `checkpoint`", bin.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewind_that_moved_more_or_less_does_not_count() {
        let told = |restored, kept| {
            format!(r#"{{"changes":{restored},"kept":{kept},"conflicts":[],"not_restored":[]}}"#)
        };
        let check = |told: String, count| check_moved(told.as_bytes(), count).is_ok();
        assert!(check(told(r#"["a","b"]"#, "[]"), 2));
        assert!(!check(told(r#"["a","b"]"#, "[]"), 1));
        assert!(!check(told(r#"["a","b"]"#, "[]"), 3));
        assert!(!check(told(r#"["a"]"#, r#"["b"]"#), 1));
        assert!(!check("{}".to_owned(), 0));
    }

    #[test]
    fn a_checkpoint_that_missed_something_does_not_count() {
        let told = br#"{"files":7,"changed":2,"skipped":{"count":0}}"#;
        let check = |files, changed| Expected { files, changed }.check(told).is_ok();
        assert!(check(7, Some(2)) && check(7, None));
        assert!(!check(6, None) && !check(7, Some(1)));
        let left_out = br#"{"files":7,"changed":2,"skipped":{"count":1}}"#;
        let files = Expected {
            files: 7,
            changed: None,
        };
        assert!(files.check(left_out).is_err());
    }
}

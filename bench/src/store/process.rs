//! Whole processes: their cost and their output.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Result;
use crate::machine;

/// How often the memory of a process is read.
const PAUSE: Duration = Duration::from_millis(5);

/// The cost and output of a process.
pub(crate) struct Ran {
    pub(crate) took: Duration,
    /// The highest memory seen.
    pub(crate) peak: u64,
    pub(crate) told: Value,
}

/// Returns a `backtrail` command on a store.
pub(crate) fn backtrail(bin: &Path, store: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(bin);
    command
        .env_remove("BACKTRAIL_HOME")
        .env_remove("BACKTRAIL_SESSION")
        .arg("--store")
        .arg(store)
        .arg("--json")
        .args(words);
    command
}

/// Runs a command that prints JSON, watching its memory.
pub(crate) fn run(command: &mut Command) -> Result<Ran> {
    let (took, peak, told) = watch(command)?;
    let told = serde_json::from_slice(&told)?;
    Ok(Ran { took, peak, told })
}

/// Runs a command, watching its memory; returns its time, its peak memory and its output.
pub(crate) fn watch(command: &mut Command) -> Result<(Duration, u64, Vec<u8>)> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut out = child.stdout.take().ok_or("there is no output")?;
    let reading = std::thread::spawn(move || {
        let mut told = Vec::new();
        out.read_to_end(&mut told).map(|_| told)
    });
    let mut peak = 0;
    let status = loop {
        // It may exit at any moment.
        peak = machine::peak_memory(child.id()).map_or(peak, |now| now.max(peak));
        match child.try_wait()? {
            Some(status) => break status,
            None => sleep(PAUSE),
        }
    };
    let took = start.elapsed();
    let told = reading.join().map_err(|_| "reading failed")??;
    if !status.success() {
        let told = String::from_utf8_lossy(&told);
        return Err(format!("{command:?} failed: {status}: {}", told.trim_end()).into());
    }
    Ok((took, peak, told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_tells_and_takes_is_known() {
        let ran = run(Command::new("sh").args(["-c", "sleep 0.05; echo '{\"a\":1}'"])).unwrap();
        assert_eq!(ran.told["a"], 1);
        assert!(ran.peak > 0 && ran.took >= Duration::from_millis(50));
        assert!(run(Command::new("false").arg("x")).is_err());
    }
}

//! A process of another program, so that it is not mistaken for a later one with its number.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::snapshot::scan::sys::read_path;

/// A process, by its number and the time that it started.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the system's own units since the system started.
    started: u64,
    /// The id that the system got when it started.
    boot: String,
}

impl Process {
    /// Returns the process with a number, if it is running and the system says when it
    /// started.
    pub fn running(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            started: started(pid)?,
            boot: boot_id()?,
        })
    }

    /// Returns whether it is still running.
    pub fn is_running(&self) -> bool {
        Self::running(self.pid).as_ref() == Some(self)
    }
}

/// Returns the id that the system got when it started.
pub(super) fn boot_id() -> Option<String> {
    read("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned())
}

pub(super) fn read(path: &str) -> Option<String> {
    let bytes = read_path(Path::new(path), 4096).ok().flatten()?;
    String::from_utf8(bytes).ok()
}

/// Returns when a process started; `None` if it ended, and only its entry is left.
fn started(pid: u32) -> Option<u64> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_running_until_it_ends_and_no_other_is_taken_for_it() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let process = Process::running(child.id()).unwrap();
        assert!(process.is_running());
        let other = Process {
            started: process.started + 1,
            ..process.clone()
        };
        assert!(!other.is_running());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_running());
        assert_eq!(Process::running(child.id()), None);
    }
}

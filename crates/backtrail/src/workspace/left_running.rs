//! Processes that outlived their run.
//!
//! The end of the run names them, and each later checkpoint repeats those that still run. What
//! changed after a checkpoint with such a process may be its work as well as the user's.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use super::process::Process;

/// How many are kept: more than that say no more.
const MOST: usize = 20;

/// A process that still ran when its run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftProcess {
    /// Its command; only the end of the run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
}

impl LeftProcess {
    /// Returns a process with the command that it is known by.
    pub fn new(name: impl Into<String>, process: Process) -> Self {
        Self {
            name: Some(name.into()),
            process,
        }
    }
}

/// Returns the processes that may still be alive after a checkpoint: those that its run left, and
/// of those before it the ones that still run. Called before the files are read, so that one that
/// ends meanwhile stays.
pub(super) fn may_be_alive(
    before: Option<&Checkpoint>,
    left: Vec<LeftProcess>,
) -> Vec<LeftProcess> {
    let earlier = before.map_or(&[][..], |before| &before.record.left);
    let earlier = earlier.iter().filter(|it| it.process.is_running());
    let is_new = |it: &&LeftProcess| left.iter().all(|new| new.process != it.process);
    let earlier: Vec<LeftProcess> = earlier.filter(is_new).map(without_name).collect();
    left.into_iter().chain(earlier).take(MOST).collect()
}

/// Returns a process as later checkpoints repeat it.
pub(crate) fn without_name(left: &LeftProcess) -> LeftProcess {
    LeftProcess {
        name: None,
        process: left.process.clone(),
    }
}

/// The commands of processes that outlived their runs, by number and time of start.
#[derive(Debug, Default)]
pub(crate) struct LeftNames(HashMap<Process, String>);

impl LeftNames {
    /// Adds what a checkpoint says.
    pub(super) fn add(&mut self, checkpoint: &Checkpoint) {
        for left in &checkpoint.record.left {
            if let Some(name) = &left.name {
                self.0.insert(left.process.clone(), name.clone());
            }
        }
    }

    /// Returns what the processes are called that may have been alive after a checkpoint.
    pub(crate) fn after(&self, checkpoint: &Checkpoint) -> Vec<String> {
        let left = checkpoint.record.left.iter();
        let name = |left: &LeftProcess| match self.0.get(&left.process) {
            Some(name) => name.clone(),
            None => format!("process {}", left.process.pid),
        };
        left.map(name).collect()
    }
}

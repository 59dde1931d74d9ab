//! The sample files of other agents, if available.

use std::fs;
use std::path::{Path, PathBuf};

use super::Agent;
use crate::Result;

/// Returns the directory of all samples, if available.
pub(super) fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    root.is_dir().then_some(root)
}

/// Returns the directory of an agent's samples, if available.
pub(super) fn dir(agent: Agent) -> Option<PathBuf> {
    let dir = root()?.join(agent.name());
    dir.is_dir().then_some(dir)
}

/// Returns the samples of an agent that are JSON lines, including those of mixed folders.
pub(super) fn of(agent: Agent, root: &Path) -> Result<Vec<PathBuf>> {
    let mixed = match agent {
        Agent::ClaudeCode => "matrix-agent-sessions/claude",
        Agent::Codex => "matrix-agent-sessions/codex",
    };
    let mut found = Vec::new();
    for dir in [agent.name(), mixed].map(|dir| root.join(dir)) {
        if dir.is_dir() {
            found.extend(files(&dir, ".jsonl")?);
        }
    }
    found.retain(|path| !path.ends_with("session_index.jsonl"));
    Ok(found)
}

/// Returns all files in a directory with this ending, sorted by path.
pub(super) fn files(dir: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                dirs.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

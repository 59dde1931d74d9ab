//! The sample files of other agents, where they are.

use std::fs;
use std::path::{Path, PathBuf};

use super::Agent;
use crate::Result;

/// Returns where the samples of an agent are, if they are here.
pub(super) fn dir(agent: Agent) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    let dir = root.join(agent.name());
    dir.is_dir().then_some(dir)
}

/// Returns all files in a directory that end so, in order of their paths.
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

//! The sample files of other agents, if available.

use std::fs;
use std::path::{Path, PathBuf};

use super::agents::Agent;
use crate::Result;

/// Returns the directory of all samples, if available.
pub(super) fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    root.is_dir().then_some(root)
}

/// Returns the directory of some samples: those made by running the agents are beside the others.
fn dir(root: &Path, dir: &str) -> PathBuf {
    match dir.strip_prefix("agents/") {
        Some(dir) => root.join("../agents/samples").join(dir),
        None => root.join(dir),
    }
}

/// A sample of an agent.
pub(super) struct Sample {
    /// Its path below the directory of all samples.
    pub(super) name: String,
    /// A file, or a directory.
    pub(super) path: PathBuf,
    /// Where it is in a home directory.
    pub(super) place: PathBuf,
}

/// Returns the samples of an agent.
pub(super) fn of(agent: &Agent, root: &Path) -> Result<Vec<Sample>> {
    let mut found = Vec::new();
    for samples in agent.samples {
        let dir = dir(root, samples.dir);
        let paths = match samples.ending {
            _ if !dir.is_dir() => Vec::new(),
            "" => vec![dir.clone()],
            ending => files(&dir, ending)?,
        };
        for path in paths {
            let below = path.strip_prefix(&dir)?.to_string_lossy();
            let name = format!("{}/{below}", samples.dir);
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            found.push(Sample {
                name: name.trim_end_matches('/').to_owned(),
                place: place(samples.place, &file),
                path,
            });
        }
    }
    found.retain(|sample| !sample.path.ends_with("session_index.jsonl"));
    Ok(found)
}

/// Returns where a file is in a home directory. What the name begins with is not repeated.
fn place(place: &str, file: &str) -> PathBuf {
    let Some((before, _)) = place.split_once('*') else {
        return place.into();
    };
    let prefix = before.rsplit('/').next().unwrap_or_default();
    let file = file.strip_prefix(prefix).unwrap_or(file);
    format!("{before}{file}").into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_place_by_name() {
        assert_eq!(place("a/b.db", "c.db"), Path::new("a/b.db"));
        assert_eq!(place("a/*", "c.jsonl"), Path::new("a/c.jsonl"));
        for file in ["1.json", "session-1.json"] {
            assert_eq!(place("a/session-*", file), Path::new("a/session-1.json"));
        }
    }
}

//! How many sessions other agents have on this machine, by the names of their files alone.

use std::path::{Path, PathBuf};

use backtrail_formats::{Environment, Format, formats};
use serde::Serialize;

use crate::files;

/// An agent that has sessions on this machine.
#[derive(Debug, Serialize)]
pub(super) struct FoundAgent {
    #[serde(rename = "agent")]
    pub(super) name: &'static str,
    #[serde(skip)]
    pub(super) title: &'static str,
    pub(super) sessions: u64,
}

/// No agent nests its directories deeper.
const DEEPEST: usize = 8;
/// More directory entries than this are not worth the wait.
const MOST_ENTRIES: usize = 50_000;

/// Counts the sessions in the usual directories of every known agent.
pub(super) fn found() -> Vec<FoundAgent> {
    let environment = Environment::from_variables(std::env::vars_os());
    let mut entries_left = MOST_ENTRIES;
    let count = |format: &'static dyn Format| FoundAgent {
        name: format.name(),
        title: format.title(),
        sessions: sessions(format, format.directories(&environment), &mut entries_left),
    };
    let agents = formats().map(count);
    agents.filter(|agent| agent.sessions > 0).collect()
}

fn sessions(format: &dyn Format, places: Vec<PathBuf>, entries_left: &mut usize) -> u64 {
    let is_session = |path: &Path| format.is_session_file(path) && !format.is_sub_agent_file(path);
    let mut dirs: Vec<(PathBuf, usize)> = places.into_iter().map(|dir| (dir, 0)).collect();
    let mut count = 0;
    while let Some((dir, depth)) = dirs.pop() {
        for path in files::entries(&dir).into_iter().flatten() {
            if *entries_left == 0 {
                return count;
            }
            *entries_left -= 1;
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() && depth < DEEPEST => dirs.push((path, depth + 1)),
                Ok(found) if found.is_file() => count += u64::from(is_session(&path)),
                _ => {}
            }
        }
    }
    count
}

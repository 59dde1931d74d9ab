//! How many sessions other agents have on this machine, by the names of their files alone.

use std::path::{Path, PathBuf};

use backtrail_formats::{Environment, Format, formats};
use serde::Serialize;

use crate::files;

/// An agent that has sessions on this machine.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct FoundAgent {
    #[serde(rename = "agent")]
    pub(in crate::commands) name: &'static str,
    #[serde(skip)]
    pub(in crate::commands) title: &'static str,
    pub(in crate::commands) sessions: u64,
    /// How many databases there are. How many sessions each has is not looked at.
    pub(in crate::commands) databases: u64,
    #[serde(skip)]
    pub(in crate::commands) bytes: u64,
}

/// No agent nests its directories deeper.
const DEEPEST: usize = 8;
/// More directory entries than this are not worth the wait.
const MOST_ENTRIES: usize = 50_000;

/// Counts the sessions in the usual directories of every known agent.
pub(in crate::commands) fn found() -> Vec<FoundAgent> {
    let environment = Environment::from_variables(std::env::vars_os());
    let mut entries_left = MOST_ENTRIES;
    let count = |format: &'static dyn Format| {
        let places = format.directories(&environment);
        FoundAgent::count(format, places, &mut entries_left)
    };
    let agents = formats().map(count);
    let has_some = |agent: &FoundAgent| agent.sessions + agent.databases > 0;
    agents.filter(has_some).collect()
}

impl FoundAgent {
    fn new(format: &dyn Format) -> Self {
        Self {
            name: format.name(),
            title: format.title(),
            sessions: 0,
            databases: 0,
            bytes: 0,
        }
    }

    /// Counts a file, by its name.
    fn add(&mut self, format: &dyn Format, path: &Path, bytes: u64) {
        let is_database = format.is_database_name(path);
        if is_database || format.is_session_file(path) {
            self.bytes += bytes;
        }
        let is_session = format.is_session_file(path) && !format.is_sub_agent_file(path);
        self.databases += u64::from(is_database);
        self.sessions += u64::from(is_session && !is_database);
    }

    fn count(format: &dyn Format, places: Vec<PathBuf>, entries_left: &mut usize) -> Self {
        let mut dirs: Vec<(PathBuf, usize)> = places.into_iter().map(|dir| (dir, 0)).collect();
        let mut found = Self::new(format);
        while let Some((dir, depth)) = dirs.pop() {
            for path in files::entries(&dir).into_iter().flatten() {
                if *entries_left == 0 {
                    return found;
                }
                *entries_left -= 1;
                match path.symlink_metadata() {
                    Ok(entry)
                        if entry.is_dir()
                            && depth < DEEPEST
                            && format.may_contain_sessions(&path) =>
                    {
                        dirs.push((path, depth + 1));
                    }
                    Ok(entry) if entry.is_file() => found.add(format, &path, entry.len()),
                    _ => {}
                }
            }
        }
        found
    }
}

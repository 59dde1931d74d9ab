//! The names of files and directories in which agents look for their sessions.

use std::path::{Path, PathBuf};

use backtrail::Timestamp;

use super::NewSession;
use crate::error::{Error, Result};
use crate::format::Format;

/// Returns the directory of an agent's sessions: the one that the file `old` is in, else the
/// first that exists, else the first.
pub(crate) fn sessions(format: &dyn Format, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
    let all = format.directories(new.environment);
    let has_old = all.iter().find(|directory| old.starts_with(directory));
    let exists = || all.iter().find(|directory| directory.is_dir());
    let found = has_old.or_else(exists).or_else(|| all.first());
    found.cloned().ok_or_else(|| {
        let what = format!("cannot find where {} keeps its sessions", format.title());
        Error::invalid(what, old)
    })
}

/// Returns the name of the folder of a directory: all but letters and digits become `-`. The
/// agent shortens a long one in its own way, so the folder of the file `old` is used for that.
pub(crate) fn folder(directory: &Path, old: Option<&Path>) -> String {
    const LONGEST: usize = 200;
    let name = directory.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    let name: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    let old = old.and_then(Path::file_name).and_then(|old| old.to_str());
    match (name.get(..LONGEST), old) {
        (Some(start), Some(old)) if old.starts_with(start) => old.to_owned(),
        _ => name,
    }
}

/// Returns the beginning of a time as it is in names of files: `2026-11-15T08-00-00-000Z`.
pub(crate) fn time_in_name(at: Timestamp, len: usize) -> String {
    let at = Timestamp::from_millis(at.as_millis()).unwrap_or(at);
    let name = at.to_string().replace([':', '.'], "-");
    name.chars().take(len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_the_agents_name_them() {
        let name = |directory: &str| folder(Path::new(directory), None);
        assert_eq!(name("/home/u/my proj_1.x"), "-home-u-my-proj-1-x");
        assert_eq!(name("/ä"), "--");
        let long = format!("/{}", "x".repeat(300));
        let old = format!("/p/-{}-k3j2", "x".repeat(199));
        assert_eq!(folder(Path::new(&long), Some(Path::new(&old))), old[3..]);
        assert_eq!(folder(Path::new("/a"), Some(Path::new(&old))), "-a");
    }

    #[test]
    fn times_are_written_as_in_names() {
        let at = Timestamp::from_millis(1_794_812_189_870).unwrap();
        assert_eq!(time_in_name(at, 99), "2026-11-16T06-56-29-870Z");
        assert_eq!(time_in_name(at, 16), "2026-11-16T06-56");
    }
}

//! What the names of version-1 files say: ids, times, and which are copies.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::storage::Storage;

/// A session's file, or the newest older copy of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) path: PathBuf,
    /// Whether the file itself is missing.
    pub(crate) is_older_copy: bool,
}

/// Returns the file, else its newest rotation, else that nothing is there.
pub(crate) fn find_file(storage: &dyn Storage, path: &Path) -> Result<Located> {
    let failed = |error| Error::io("cannot look for the session file", path, error);
    if storage.exists(path).map_err(failed)? {
        let path = path.to_owned();
        let is_older_copy = false;
        return Ok(Located {
            path,
            is_older_copy,
        });
    }
    let names = match storage.list(directory(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        names => names.map_err(failed)?,
    };
    let copies = names.iter().filter_map(|name| {
        let copy = path.with_file_name(name);
        let (original, when) = rotation_of(&copy)?;
        (original == path).then_some((when, copy))
    });
    match copies.max() {
        Some((_, path)) => Ok(Located {
            path,
            is_older_copy: true,
        }),
        None => {
            let what = "there is no such session file, nor an older copy beside it";
            Err(Error::new(ErrorKind::NotFound, what).at_path(path))
        }
    }
}

/// Returns the file that this one is an older copy of, if it is one.
pub(crate) fn is_older_copy(path: &Path) -> Option<PathBuf> {
    rotation_of(path).map(|(original, _)| original)
}

/// Returns whether the name is that of a file that is being written.
pub(crate) fn is_temporary(path: &Path) -> bool {
    name_of(path).is_some_and(|name| name.contains(".tmp-"))
}

/// Returns the directory that a file lies in.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(OsStr::to_str)
}

/// Reads `<stem>.rot-<ms>.jsonl`: the file it belongs to, and its age.
fn rotation_of(path: &Path) -> Option<(PathBuf, u64)> {
    let (stem, rest) = name_of(path)?.rsplit_once(".rot-")?;
    let (millis, extension) = rest.split_once('.')?;
    let is_number = millis.bytes().all(|byte| byte.is_ascii_digit());
    if stem.is_empty() || !is_number || !matches!(extension, "jsonl" | "json") {
        return None;
    }
    let original = path.with_file_name(format!("{stem}.{extension}"));
    Some((original, millis.parse().ok()?))
}

/// Returns the name without what a rotation and the format add to it.
fn stem(path: &Path) -> String {
    let original = is_older_copy(path).unwrap_or_else(|| path.to_owned());
    original
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Makes an id of a file's name; where that gives none, of its content's hash.
pub(crate) fn derived_id(path: &Path, hash: &[u8; 32]) -> SessionId {
    let stem = stem(path);
    let tidy = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '_' => c,
        _ => '-',
    };
    let tidied: String = stem.chars().map(tidy).collect();
    let trimmed = tidied.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    match trimmed.parse() {
        Ok(id) => id,
        // Too long: cut off, it could be another file's as well.
        Err(_) if trimmed.len() > 1 && trimmed != "latest" => {
            id_of_content(blake3::hash(stem.as_bytes()).as_bytes())
        }
        Err(_) => id_of_content(hash),
    }
}

/// Makes an id of a hash: the same content gives the same one.
pub(crate) fn id_of_content(hash: &[u8; 32]) -> SessionId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    SessionId::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// Returns the time that a name holds: a run of 13 digits is milliseconds.
pub(super) fn named_ms(path: &Path) -> Option<i64> {
    let stem = stem(path);
    stem.split(|c: char| !c.is_ascii_digit())
        .find(|digits| digits.len() == 13)
        .and_then(|digits| digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(path: &str) -> String {
        derived_id(Path::new(path), &[7; 32]).to_string()
    }

    // A8
    #[test]
    fn an_id_comes_from_the_name_and_else_from_the_content() {
        assert_eq!(id("/a/session-1775008161929.json"), "session-1775008161929");
        assert_eq!(id(".claude_sessions_1.json"), "claude_sessions_1");
        assert_eq!(id("my talk (2).jsonl"), "my-talk--2");
        assert_eq!(id("s.rot-1775008161930.jsonl"), "s");
        let of_content = "07070707-0707-8707-8707-070707070707";
        assert_eq!(id("…"), of_content);
        assert_eq!(id("latest.jsonl"), of_content);
        assert_eq!(id("/"), of_content);
        let (long, longer) = ("x".repeat(129), "x".repeat(130));
        assert_ne!(id(&long), of_content);
        assert_ne!(id(&long), id(&longer));
    }

    #[test]
    fn a_time_is_13_digits_and_no_others() {
        let ms = |name| named_ms(Path::new(name));
        assert_eq!(ms("session-1775008161929-0.jsonl"), Some(1_775_008_161_929));
        assert_eq!(ms("session-17750081619290.jsonl"), None);
        assert_eq!(ms("s-1.rot-1775008161929.jsonl"), None);
    }

    // A8
    #[test]
    fn copies_and_temporary_files_are_told_by_their_names() {
        let of = |name| is_older_copy(Path::new(name));
        assert_eq!(of("/a/s.rot-12.jsonl"), Some("/a/s.jsonl".into()));
        assert_eq!(of("/a/s.rot-x.jsonl"), None);
        assert_eq!(of("/a/s.rot-12"), None);
        assert_eq!(of("/a/s.jsonl"), None);
        assert!(is_temporary(Path::new("/a/s.jsonl.tmp-12-0")));
        assert!(!is_temporary(Path::new("/a.tmp-1/s.jsonl")));
    }
}

//! The names of version-1 files: ids, times and copies.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::storage::{Storage, directory, names_in};
use crate::time::Timestamp;

/// Returns the path of a session's file or, if it is missing, of its newest older
/// copy.
///
/// # Errors
///
/// Fails if there is neither, or if the directory cannot be listed.
pub fn find_file(storage: &dyn Storage, path: &Path) -> Result<PathBuf> {
    let failed = |error| Error::io("cannot find the session file", path, error);
    if storage.exists(path).map_err(failed)? {
        return Ok(path.to_owned());
    }
    let names = names_in(storage, directory(path)).map_err(failed)?;
    let copies = names.iter().filter_map(|name| {
        let copy = path.with_file_name(name);
        let (original, when) = rotation_of(&copy)?;
        (original == path).then_some((when, copy))
    });
    copies.max().map(|(_, copy)| copy).ok_or_else(|| {
        let what = "no such session file, and no older copy beside it";
        Error::new(ErrorKind::NotFound, what).at_path(path)
    })
}

/// Returns the file that this one is an older copy of, if it is a copy.
pub fn original_of(path: &Path) -> Option<PathBuf> {
    rotation_of(path).map(|(original, _)| original)
}

/// Returns whether the name is that of a file that is being written.
pub fn is_temporary(path: &Path) -> bool {
    name_of(path).is_some_and(|name| name.contains(".tmp-"))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(OsStr::to_str)
}

/// Parses `<stem>.rot-<ms>.jsonl`: the file it belongs to, and its age.
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

/// Returns the session's name in a file's name: without the extension and the suffix of a
/// copy.
pub fn stem(path: &Path) -> String {
    let original = original_of(path).unwrap_or_else(|| path.to_owned());
    original
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Derives an id from a file's name; if that gives none, from its content's hash.
pub(crate) fn derived_id(
    path: &Path,
    hash: impl FnOnce() -> Result<[u8; 32]>,
) -> Result<SessionId> {
    let stem = stem(path);
    let tidy = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '_' => c,
        _ => '-',
    };
    let tidied: String = stem.chars().map(tidy).collect();
    let trimmed = tidied.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    Ok(match trimmed.parse() {
        Ok(id) => id,
        // Too long. Cut off, it could be the id of another file.
        Err(_) if trimmed.len() > 1 && trimmed != "latest" => {
            id_of_content(blake3::hash(stem.as_bytes()).as_bytes())
        }
        Err(_) => id_of_content(&hash()?),
    })
}

/// Derives an id from a hash: the same content gives the same id.
pub(crate) fn id_of_content(hash: &[u8; 32]) -> SessionId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    SessionId::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// Returns the time in a file's name.
pub(super) fn named_ms(path: &Path) -> Option<i64> {
    Timestamp::in_id(&stem(path)).map(Timestamp::as_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(path: &str) -> String {
        let id = derived_id(Path::new(path), || Ok([7; 32]));
        id.unwrap().to_string()
    }

    // A8
    #[test]
    fn an_id_comes_from_the_name_or_else_from_the_content() {
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
    fn a_time_is_exactly_13_digits() {
        let ms = |name| named_ms(Path::new(name));
        assert_eq!(ms("session-1775008161929-0.jsonl"), Some(1_775_008_161_929));
        assert_eq!(ms("session-17750081619290.jsonl"), None);
        assert_eq!(ms("s-1.rot-1775008161929.jsonl"), None);
    }

    // A8
    #[test]
    fn copies_and_temporary_files_are_recognised_by_their_names() {
        let of = |name| original_of(Path::new(name));
        assert_eq!(of("/a/s.rot-12.jsonl"), Some("/a/s.jsonl".into()));
        assert_eq!(of("/a/s.rot-x.jsonl"), None);
        assert_eq!(of("/a/s.rot-12"), None);
        assert_eq!(of("/a/s.jsonl"), None);
        assert!(is_temporary(Path::new("/a/s.jsonl.tmp-12-0")));
        assert!(!is_temporary(Path::new("/a.tmp-1/s.jsonl")));
    }
}

//! Detects whether files were changed by another program.
//!
//! Databases and indexes give wrong answers or none if another program writes to their
//! files, and checking every byte takes longer than a query. So the names, lengths and
//! times of the files are kept beside them. If those differ, nothing in the files is
//! trusted.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::files::create_file;

/// The first line of a seal; the number is its version.
const HEAD: &str = "backtrail seal 1";

/// The state of files when they were last written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seal {
    /// Name, length and time in nanoseconds, by name.
    files: Vec<(String, u64, i128)>,
}

impl Seal {
    /// Records the state of files in a directory, skipping missing ones.
    pub(crate) fn of(dir: &Path, names: &[&str]) -> io::Result<Self> {
        let mut files = Vec::new();
        for name in names {
            match look(&dir.join(name)) {
                Ok((bytes, modified)) => files.push(((*name).to_owned(), bytes, modified)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        files.sort();
        Ok(Self { files })
    }

    /// Reads a seal; `None` if there is none or this version cannot read it.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Self::parse(&text))
    }

    /// Writes the seal atomically.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let aside = path.with_extension("seal-new");
        create_file(&aside)?.write_all(self.to_text()?.as_bytes())?;
        fs::rename(&aside, path)
    }

    /// Returns the seal as text, to be kept in another file.
    pub(crate) fn to_text(&self) -> io::Result<String> {
        let mut text = format!("{HEAD}\n");
        for (name, bytes, modified) in &self.files {
            writeln!(text, "{bytes} {modified} {name}").map_err(io::Error::other)?;
        }
        let check = blake3::hash(text.as_bytes());
        writeln!(text, "{}", check.to_hex()).map_err(io::Error::other)?;
        Ok(text)
    }

    /// Returns the names of the files.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.files.iter().map(|(name, ..)| name.as_str()).collect()
    }

    /// Parses a seal.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (body, check) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let body = format!("{body}\n");
        if blake3::hash(body.as_bytes()).to_hex().as_str() != check {
            return None;
        }
        let mut lines = body.lines();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let files = lines.map(|line| {
            let mut words = line.splitn(3, ' ');
            let bytes = words.next()?.parse().ok()?;
            let modified = words.next()?.parse().ok()?;
            Some((words.next()?.to_owned(), bytes, modified))
        });
        files
            .collect::<Option<Vec<_>>>()
            .map(|files| Self { files })
    }
}

/// Returns a file's length and the time it was last written, in nanoseconds since 1970.
fn look(path: &Path) -> io::Result<(u64, i128)> {
    let meta = fs::symlink_metadata(path)?;
    let modified = meta.modified()?;
    let nanos = match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    };
    Ok((meta.len(), nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_tells_any_change_of_what_it_covers() {
        let dir = tempfile::tempdir().expect("a directory");
        let (data, seal) = (dir.path().join("data"), dir.path().join("a.seal"));
        fs::write(&data, "four").expect("written");
        let now = || Seal::of(dir.path(), &["data", "absent"]).expect("looked at");
        now().write(&seal).expect("sealed");
        let sealed = || Seal::read(&seal).expect("read");
        assert_eq!(sealed(), Some(now()));

        let file = fs::File::options().write(true).open(&data).expect("opened");
        let later = UNIX_EPOCH + std::time::Duration::from_nanos(1_700_000_000_000_000_001);
        file.set_modified(later).expect("touched");
        assert_ne!(sealed(), Some(now()), "another time");
        now().write(&seal).expect("sealed");
        file.set_len(3).expect("cut");
        file.set_modified(later).expect("touched");
        assert_ne!(sealed(), Some(now()), "another length");
        fs::remove_file(&data).expect("removed");
        assert_ne!(sealed(), Some(now()), "gone");
    }

    #[test]
    fn a_damaged_seal_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("data"), "four").expect("written");
        let path = dir.path().join("a.seal");
        let seal = Seal::of(dir.path(), &["data"]).expect("looked at");
        seal.write(&path).expect("sealed");
        let whole = fs::read(&path).expect("read");
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).expect("written");
            assert_eq!(Seal::read(&path).expect("read"), None, "byte {at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert_eq!(Seal::read(&path).expect("read"), None, "cut at {at}");
        }
    }
}

//! Limits for how much a snapshot stores without being asked.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::read::Unread;
use super::sys;
use super::walk::{WalkedDir, split};
use crate::error::{Error, Result, quoted};
use crate::hex::path_fields;

/// A directory is only named if it holds at least one part in this many.
const SHARE: u64 = 100;
/// How many directories are named.
const NAMED: usize = 5;

/// How much a snapshot may store before it stops and asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SnapshotLimits {
    /// The limit for bytes that are not stored yet.
    pub bytes: u64,
    /// The limit for files that are not stored yet.
    pub files: u64,
    /// How many bytes must stay free on the store's file system.
    pub free: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            bytes: 5 << 30,
            files: 500_000,
            free: 2 << 30,
        }
    }
}

/// What a snapshot would have stored if its limits had not stopped it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TooMuch {
    /// The number of files.
    pub files: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The free bytes on the store's file system.
    pub free: u64,
    /// The limits that were exceeded.
    pub limits: SnapshotLimits,
    /// The directories with most of it, the largest first, none inside another, and none
    /// with less than a hundredth.
    pub largest: Vec<LargeDir>,
}

/// A directory with much to store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LargeDir {
    /// The path relative to the workspace.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
    /// How many files in it would be stored.
    pub files: u64,
    /// How many bytes would be stored.
    pub bytes: u64,
}

impl LargeDir {
    /// Returns the line for `.backtrailignore` that skips the directory; `None` if no
    /// line can name it.
    pub fn ignore_line(&self) -> Option<String> {
        let path = self
            .path
            .to_str()
            .filter(|path| !path.contains(['\n', '\r']))?;
        let mut line = String::from("/");
        for c in path.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
                line.push('\\');
            }
            line.push(c);
        }
        line.push('/');
        Some(line)
    }
}

/// Stops a scan that would store too much before anything is read.
pub(super) fn check(
    limits: SnapshotLimits,
    store: &Path,
    dirs: &[WalkedDir],
    all: &[Unread],
) -> Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let files = all.len() as u64;
    let bytes = all.iter().map(|unread| unread.size).sum::<u64>();
    let free = sys::free_space(store)?;
    if bytes <= limits.bytes && files <= limits.files && free.saturating_sub(bytes) >= limits.free {
        return Ok(());
    }
    let by_files = bytes <= limits.bytes && files > limits.files;
    let too_much = TooMuch {
        files,
        bytes,
        free,
        limits,
        largest: largest(dirs, all, by_files),
    };
    Err(Error::stopped(too_much.to_string(), too_much))
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, limits) = (byte_size(self.bytes), &self.limits);
        write!(
            f,
            "a snapshot would store {bytes} in {}, ",
            file_count(self.files)
        )?;
        if self.bytes > limits.bytes {
            write!(f, "over the limit of {}", byte_size(limits.bytes))?;
        } else if self.files > limits.files {
            write!(f, "over the limit of {} files", limits.files)?;
        } else {
            let (free, kept) = (byte_size(self.free), byte_size(limits.free));
            let room = "too little free space";
            write!(f, "with {room}: {free}, and {kept} must stay free")?;
        }
        if self.lacks_space() {
            return f.write_str("; free some space, or move the store to another file system");
        }
        self.write_largest(f)?;
        f.write_str("; list what to skip in `.backtrailignore`")?;
        match self.largest.iter().find_map(LargeDir::ignore_line) {
            Some(line) => write!(f, ", for example {}", quoted(&line)),
            None => Ok(()),
        }
    }
}

impl TooMuch {
    /// Returns whether only the free space is too small.
    fn lacks_space(&self) -> bool {
        self.bytes <= self.limits.bytes && self.files <= self.limits.files
    }

    fn write_largest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_files = self.bytes <= self.limits.bytes;
        let (in_them, all) = match by_files {
            true => (self.largest.iter().map(|dir| dir.files).sum(), self.files),
            false => (
                self.largest.iter().map(|dir| dir.bytes).sum::<u64>(),
                self.bytes,
            ),
        };
        let mut before = "; most of it is in";
        if in_them < all / 2 {
            f.write_str("; most of it is in the directory itself")?;
            before = ", and some in";
        }
        for large in &self.largest {
            let path = quoted(&large.path.to_string_lossy());
            match by_files {
                true => write!(f, "{before} {path} ({})", file_count(large.files))?,
                false => write!(f, "{before} {path} ({})", byte_size(large.bytes))?,
            }
            before = ",";
        }
        Ok(())
    }
}

fn file_count(files: u64) -> String {
    match files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    }
}

/// Returns a size for people.
pub(crate) fn byte_size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => {
            let tenths = (u128::from(bytes) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

/// The amount to be stored in and below a directory.
#[derive(Default, Clone)]
struct DirSum<'a> {
    files: u64,
    bytes: u64,
    below: Vec<&'a [u8]>,
}

impl DirSum<'_> {
    fn weight(&self, by_files: bool) -> u64 {
        if by_files { self.files } else { self.bytes }
    }
}

fn largest(dirs: &[WalkedDir], all: &[Unread], by_files: bool) -> Vec<LargeDir> {
    let mut sums: HashMap<&[u8], DirSum<'_>> = HashMap::new();
    for unread in all {
        let path = &*dirs[unread.dir as usize].path;
        let sum = sums.entry(path).or_default();
        sum.files += 1;
        sum.bytes = sum.bytes.saturating_add(unread.size);
    }
    // Directories come before those in them. In reverse, each sum is complete when it is
    // added to its parent.
    for walked in dirs.iter().skip(1).rev() {
        let Some(own) = sums.get(&*walked.path).cloned() else {
            continue;
        };
        let above = sums.entry(split(&walked.path).0).or_default();
        above.files += own.files;
        above.bytes = above.bytes.saturating_add(own.bytes);
        above.below.push(&walked.path);
    }
    let none: &[&[u8]] = &[];
    let top = sums.get(&b""[..]).map_or(none, |root| &root.below);
    let mut named: Vec<&[u8]> = top
        .iter()
        .map(|path| narrow(path, &sums, by_files))
        .collect();
    named.sort_by_key(|path| (std::cmp::Reverse(sums[path].weight(by_files)), *path));
    let all = sums.get(&b""[..]).map_or(0, |root| root.weight(by_files));
    named.retain(|path| sums[path].weight(by_files) >= (all / SHARE).max(1));
    named.truncate(NAMED);
    let large = |path: &[u8]| LargeDir {
        path: PathBuf::from(OsStr::from_bytes(path)),
        files: sums[path].files,
        bytes: sums[path].bytes,
    };
    named.into_iter().map(large).collect()
}

/// Descends while one directory holds nine tenths, because its name says more.
fn narrow<'a>(
    mut path: &'a [u8],
    sums: &HashMap<&'a [u8], DirSum<'a>>,
    by_files: bool,
) -> &'a [u8] {
    loop {
        let sum = &sums[path];
        let enough = sum.weight(by_files) / 10 * 9;
        let holds = |below: &&&'a [u8]| {
            let weight = sums[**below].weight(by_files);
            weight > 0 && weight >= enough
        };
        match sum.below.iter().find(holds) {
            Some(below) => path = below,
            None => return path,
        }
    }
}

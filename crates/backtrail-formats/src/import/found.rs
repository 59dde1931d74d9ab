//! Finds the files to take in.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ImportOptions;
use crate::error::Error;
use crate::format::Format;
use crate::packed;
use crate::source::Source;

/// A file to take in.
pub(super) struct Found {
    pub(super) format: &'static dyn Format,
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// What tells whether a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub(super) len: u64,
    pub(super) modified_ns: i128,
    pub(super) inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &fs::Metadata) -> Self {
        let seconds = i128::from(metadata.mtime());
        Self {
            len: metadata.len(),
            modified_ns: seconds * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// What was found.
#[derive(Default)]
pub(super) struct Search {
    pub(super) found: Vec<Found>,
    /// Files in directories that were named, of no format that is known.
    pub(super) strangers: Vec<PathBuf>,
    /// What could not be looked at.
    pub(super) errors: Vec<(Option<&'static str>, Error)>,
    /// Directories that were gone through, by device and inode.
    seen: HashSet<(u64, u64)>,
    taken: BTreeSet<PathBuf>,
}

/// Directories below each other that are gone through: no agent has as many.
const DEEPEST: usize = 32;

/// Finds all files that shall be taken in.
pub(super) fn search(options: &ImportOptions) -> Search {
    let mut search = Search::default();
    if options.paths.is_empty() {
        for format in &options.formats {
            for place in format.places(&options.environment) {
                search.seen.clear();
                search.usual_place(*format, &place, 0);
            }
        }
    } else {
        for path in &options.paths {
            search.named(options, path);
        }
    }
    search.found.sort_by(|a, b| a.path.cmp(&b.path));
    search
}

impl Search {
    /// Goes through a directory in which an agent keeps its sessions.
    fn usual_place(&mut self, format: &'static dyn Format, dir: &Path, depth: usize) {
        for path in self.entries(dir, depth, Some(format.name())) {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.usual_place(format, &path, depth + 1),
                Ok(metadata) if metadata.is_file() && format.is_session_name(&path) => {
                    self.take(format, path, Stamp::of(&metadata));
                }
                // Links are not followed: a directory of sessions has none of its own.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.failed(Some(format.name()), "cannot look at", &path, error),
            }
        }
    }

    /// Takes what the person named: a file, or all that is in a directory.
    fn named(&mut self, options: &ImportOptions, path: &Path) {
        if let Some(reason) = leftover(path) {
            self.errors.push((None, Error::invalid(reason, path)));
            return;
        }
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match newest_copy(path) {
                Some(copy) => self.named(options, &copy),
                None => self.failed(None, "cannot read", path, error),
            },
            Err(error) => self.failed(None, "cannot read", path, error),
            Ok(metadata) if metadata.is_dir() => self.named_directory(options, path, 0),
            Ok(_) => match recognise(options, path) {
                Ok(Some((format, stamp))) => {
                    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                    self.take(format, path, stamp);
                }
                Ok(None) => {
                    let what = match options.formats.as_slice() {
                        [one] => format!("this is not a session file of {}", one.title()),
                        _ => "this is not a session file of any agent that is known".to_owned(),
                    };
                    self.errors.push((None, Error::invalid(what, path)));
                }
                Err(error) => self.errors.push((None, error)),
            },
        }
    }

    fn named_directory(&mut self, options: &ImportOptions, dir: &Path, depth: usize) {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        for path in self.entries(&dir, depth, None) {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {
                    self.named_directory(options, &path, depth + 1);
                }
                Ok(metadata) if metadata.is_file() && leftover(&path).is_some() => {
                    self.strangers.push(path);
                }
                Ok(metadata) if metadata.is_file() => match recognise(options, &path) {
                    Ok(Some((format, stamp))) => self.take(format, path, stamp),
                    Ok(None) => self.strangers.push(path),
                    Err(error) => self.errors.push((None, error)),
                },
                Ok(_) => {}
                Err(error) => self.failed(None, "cannot look at", &path, error),
            }
        }
    }

    fn entries(&mut self, dir: &Path, depth: usize, agent: Option<&'static str>) -> Vec<PathBuf> {
        if depth > DEEPEST {
            let what = "this directory lies too deep; what is in it was not looked at";
            self.errors.push((agent, Error::invalid(what, dir)));
            return Vec::new();
        }
        let listed = fs::metadata(dir).and_then(|metadata| {
            if !self.seen.insert((metadata.dev(), metadata.ino())) {
                return Ok(Vec::new());
            }
            fs::read_dir(dir)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect()
        });
        match listed {
            Ok(entries) => entries,
            // An agent that was never used.
            Err(error) if depth == 0 && agent.is_some() && is_absent(&error) => Vec::new(),
            Err(error) => {
                self.failed(agent, "cannot look into", dir, error);
                Vec::new()
            }
        }
    }

    fn take(&mut self, format: &'static dyn Format, path: PathBuf, stamp: Stamp) {
        if self.taken.insert(path.clone()) {
            self.found.push(Found {
                format,
                path,
                stamp,
            });
        }
    }

    fn failed(&mut self, agent: Option<&'static str>, doing: &str, path: &Path, error: io::Error) {
        self.errors.push((agent, Error::io(doing, path, error)));
    }
}

/// How the name of an older copy that claw-code leaves beside a session goes on behind the
/// session's own: `.rot-` and a time.
const OLDER_COPY: &str = ".rot-";

/// Says why a file is no session, where its name tells: what another program left behind.
fn leftover(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    if name.contains(".tmp-") {
        return Some("this is a temporary file of another program, no session".to_owned());
    }
    let (stem, _) = name.split_once(OLDER_COPY)?;
    let newer = path.with_file_name(format!("{stem}.jsonl"));
    // It stands for a file that is gone.
    newer.exists().then(|| {
        let newer = newer.display();
        format!("this is an older copy of {newer}; import that one")
    })
}

/// Returns the newest copy of a session file that is gone.
fn newest_copy(path: &Path) -> Option<PathBuf> {
    let stem = path.file_stem()?.to_str()?;
    let begins = format!("{stem}{OLDER_COPY}");
    let dir = match path.parent()? {
        dir if dir.as_os_str().is_empty() => Path::new("."),
        dir => dir,
    };
    let copies = fs::read_dir(dir).ok()?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let digits = name.strip_prefix(&begins)?.strip_suffix(".jsonl")?;
        Some((digits.parse::<u64>().ok()?, dir.join(&name)))
    });
    copies.max().map(|(_, path)| path)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Finds out of what format a file is, by its beginning.
pub fn recognised(path: &Path) -> Result<Option<&'static dyn Format>, Error> {
    let options = ImportOptions::new(crate::places::Environment::default());
    Ok(recognise(&options, path)?.map(|(format, _)| format))
}

/// Finds out of which of these formats a file is. One that is empty is of none.
fn recognise(
    options: &ImportOptions,
    path: &Path,
) -> Result<Option<(&'static dyn Format, Stamp)>, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::io("cannot read", path, error))?;
    let source = match packed::is_packed(path) {
        true => packed::beginning(path)?,
        false => Source::open(path)?,
    };
    let formats = options.formats.iter();
    let format = formats.copied().find(|format| format.recognises(&source));
    Ok(format.map(|format| (format, Stamp::of(&metadata))))
}

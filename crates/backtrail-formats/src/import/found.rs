//! Finds the files to import.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ImportOptions;
use crate::compressed;
use crate::environment::Environment;
use crate::error::Error;
use crate::format::Format;
use crate::source::Source;

/// A file to import.
pub(super) struct FoundFile {
    pub(super) format: &'static dyn Format,
    pub(super) path: PathBuf,
    pub(super) stamp: FileStamp,
}

/// Shows whether a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileStamp {
    pub(super) len: u64,
    pub(super) modified_ns: i128,
    pub(super) inode: u64,
}

impl FileStamp {
    pub(super) fn from_metadata(metadata: &fs::Metadata) -> Self {
        let seconds = i128::from(metadata.mtime());
        Self {
            len: metadata.len(),
            modified_ns: seconds * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Search {
    pub(super) files: Vec<FoundFile>,
    /// The files in the given directories that have no known format.
    pub(super) other_files: Vec<PathBuf>,
    /// Errors, with the agent if there is one.
    pub(super) errors: Vec<(Option<&'static str>, Error)>,
    /// The directories that were searched, by device and inode.
    visited: HashSet<(u64, u64)>,
    paths: BTreeSet<PathBuf>,
}

/// How deep directories are searched; no agent nests them as deep.
const MAX_DEPTH: usize = 32;

/// Finds all files to import.
pub(super) fn search(options: &ImportOptions) -> Search {
    let mut search = Search::default();
    if options.paths.is_empty() {
        for format in &options.formats {
            for directory in format.directories(&options.environment) {
                search.visited.clear();
                search.agent_directory(*format, &directory, 0);
            }
        }
    } else {
        for path in &options.paths {
            search.given(options, path);
        }
    }
    search.files.sort_by(|a, b| a.path.cmp(&b.path));
    search
}

impl Search {
    /// Searches a directory in which an agent keeps its sessions.
    fn agent_directory(&mut self, format: &'static dyn Format, dir: &Path, depth: usize) {
        for path in self.entries(dir, depth, Some(format.name())) {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.agent_directory(format, &path, depth + 1),
                Ok(metadata) if metadata.is_file() && format.is_session_file(&path) => {
                    self.add(format, path, FileStamp::from_metadata(&metadata));
                }
                // Links are not followed; agents do not create any.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.failed(Some(format.name()), "cannot read", &path, error),
            }
        }
    }

    /// Adds a path that the user gave: a file, or all files in a directory.
    fn given(&mut self, options: &ImportOptions, path: &Path) {
        if let Some(reason) = leftover_reason(path) {
            self.errors.push((None, Error::invalid(reason, path)));
            return;
        }
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match newest_copy(path) {
                Some(copy) => self.given(options, &copy),
                None => self.failed(None, "cannot read", path, error),
            },
            Err(error) => self.failed(None, "cannot read", path, error),
            Ok(metadata) if metadata.is_dir() => self.given_directory(options, path, 0),
            Ok(_) => match find_format(options, path) {
                Ok(Some((format, stamp))) => {
                    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                    self.add(format, path, stamp);
                }
                Ok(None) => {
                    let what = match options.formats.as_slice() {
                        [one] => format!("not a session file of {}", one.title()),
                        _ => "not a session file of any known agent".to_owned(),
                    };
                    self.errors.push((None, Error::invalid(what, path)));
                }
                Err(error) => self.errors.push((None, error)),
            },
        }
    }

    fn given_directory(&mut self, options: &ImportOptions, dir: &Path, depth: usize) {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        for path in self.entries(&dir, depth, None) {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {
                    self.given_directory(options, &path, depth + 1);
                }
                Ok(metadata) if metadata.is_file() && leftover_reason(&path).is_some() => {
                    self.other_files.push(path);
                }
                Ok(metadata) if metadata.is_file() => match find_format(options, &path) {
                    Ok(Some((format, stamp))) => self.add(format, path, stamp),
                    Ok(None) => self.other_files.push(path),
                    Err(error) => self.errors.push((None, error)),
                },
                Ok(_) => {}
                Err(error) => self.failed(None, "cannot read", &path, error),
            }
        }
    }

    fn entries(&mut self, dir: &Path, depth: usize, agent: Option<&'static str>) -> Vec<PathBuf> {
        if depth > MAX_DEPTH {
            let what = "the directory is nested too deep and was not searched";
            self.errors.push((agent, Error::invalid(what, dir)));
            return Vec::new();
        }
        let listed = fs::metadata(dir).and_then(|metadata| {
            if !self.visited.insert((metadata.dev(), metadata.ino())) {
                return Ok(Vec::new());
            }
            fs::read_dir(dir)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect()
        });
        match listed {
            Ok(entries) => entries,
            // The agent was never used.
            Err(error) if depth == 0 && agent.is_some() && is_absent(&error) => Vec::new(),
            Err(error) => {
                self.failed(agent, "cannot read the directory", dir, error);
                Vec::new()
            }
        }
    }

    fn add(&mut self, format: &'static dyn Format, path: PathBuf, stamp: FileStamp) {
        if self.paths.insert(path.clone()) {
            self.files.push(FoundFile {
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

/// What claw-code adds to a session's name for an older copy, followed by a time.
const OLDER_COPY: &str = ".rot-";

/// Returns why a file is not a session, if its name shows that another program left it behind.
fn leftover_reason(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    if name.contains(".tmp-") {
        return Some("a temporary file of another program, not a session".to_owned());
    }
    let (stem, _) = name.split_once(OLDER_COPY)?;
    let newer = path.with_file_name(format!("{stem}.jsonl"));
    // Without the newer file, the copy takes its place.
    newer.exists().then(|| {
        let newer = newer.display();
        format!("an older copy of {newer}; import that one")
    })
}

/// Returns the newest copy of a session file that is gone.
fn newest_copy(path: &Path) -> Option<PathBuf> {
    let stem = path.file_stem()?.to_str()?;
    let prefix = format!("{stem}{OLDER_COPY}");
    let dir = match path.parent()? {
        dir if dir.as_os_str().is_empty() => Path::new("."),
        dir => dir,
    };
    let copies = fs::read_dir(dir).ok()?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let digits = name.strip_prefix(&prefix)?.strip_suffix(".jsonl")?;
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

/// Returns the format of a file, by its beginning. `None` if it has no known format.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn recognise(path: &Path) -> Result<Option<&'static dyn Format>, Error> {
    let options = ImportOptions::new(Environment::default());
    Ok(find_format(&options, path)?.map(|(format, _)| format))
}

/// Returns which of the given formats a file has. An empty file has none.
fn find_format(
    options: &ImportOptions,
    path: &Path,
) -> Result<Option<(&'static dyn Format, FileStamp)>, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::io("cannot read", path, error))?;
    let source = match compressed::is_compressed(path) {
        true => compressed::beginning(path)?,
        false => Source::open(path)?,
    };
    let formats = options.formats.iter();
    let format = formats.copied().find(|format| format.recognises(&source));
    Ok(format.map(|format| (format, FileStamp::from_metadata(&metadata))))
}

//! Finds the files to import.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ImportOptions;
use super::contained::Contained;
use super::destination::Destination;
use crate::compressed;
use crate::container::FileStamp;
use crate::environment::Environment;
use crate::error::Error;
use crate::format::{Format, formats};
use crate::source::Source;
use crate::sqlite::{Snapshot, is_database};
use backtrail::plumbing::version1::{find_file, is_temporary, original_of};
use backtrail::{LocalStorage, Storage as _};

/// A file to import.
pub(super) struct FoundFile {
    pub(super) format: &'static dyn Format,
    pub(super) path: PathBuf,
    pub(super) stamp: FileStamp,
    /// When it was last modified, or the container that it is in.
    pub(super) modified_ns: i128,
    pub(super) contained: Option<Contained>,
}

impl FoundFile {
    pub(super) fn new(format: &'static dyn Format, path: PathBuf, stamp: FileStamp) -> Self {
        Self {
            format,
            path,
            modified_ns: stamp.modified_ns,
            stamp,
            contained: None,
        }
    }

    /// Returns whether it belongs to a sub-agent, and is read after all others.
    pub(super) fn is_sub_agent(&self) -> bool {
        match &self.contained {
            Some(contained) => contained.is_sub_agent,
            None => self.format.is_sub_agent_file(&self.path),
        }
    }

    /// Opens it. `None` if it is gone.
    pub(super) fn open(&self, destination: &Destination<'_>) -> Result<Option<Source>, Error> {
        match &self.contained {
            Some(contained) => contained.read(self, destination.spool()),
            None => Source::open(&self.path).map(Some),
        }
    }
}

/// Returns the stamp of a file.
pub(crate) fn file_stamp(metadata: &fs::Metadata) -> FileStamp {
    let seconds = i128::from(metadata.mtime());
    FileStamp {
        len: metadata.len(),
        modified_ns: seconds * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        inode: metadata.ino(),
    }
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Search {
    pub(super) files: Vec<FoundFile>,
    /// The files in the given directories that have no known format.
    pub(super) other_files: Vec<PathBuf>,
    /// The agents of databases that cannot be read, and why.
    pub(super) unreadable_databases: Vec<(&'static str, Error)>,
    /// The agents of databases without a session.
    pub(super) empty_databases: Vec<&'static str>,
    /// The agents of files that the user excludes.
    pub(super) excluded: Vec<&'static str>,
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
        let is_wanted = |format: &&&dyn Format| !options.exclude.has_agent(**format);
        for format in options.formats.iter().filter(is_wanted) {
            for directory in format.directories(&options.environment) {
                search.visited.clear();
                search.visit(&directory, 0, Some(*format), &|search, path, metadata| {
                    if format.is_session_file(&path) {
                        search.add(*format, path, file_stamp(metadata));
                    }
                });
            }
        }
    } else {
        for path in &options.paths {
            search.given(options, path);
        }
    }
    search.leave_excluded(options);
    search.files.sort_by(|a, b| a.path.cmp(&b.path));
    search
}

impl Search {
    /// Removes the files that the user excludes by agent or path.
    fn leave_excluded(&mut self, options: &ImportOptions) {
        let excluded = self.files.extract_if(.., |file| {
            options.exclude.has_agent(file.format) || options.exclude.has_path(&file.path)
        });
        self.excluded = excluded.map(|file| file.format.name()).collect();
    }

    /// Visits the files in a directory, and in those below it.
    fn visit(
        &mut self,
        dir: &Path,
        depth: usize,
        of: Option<&'static dyn Format>,
        file: &dyn Fn(&mut Self, PathBuf, &fs::Metadata),
    ) {
        let agent = of.map(|format| format.name());
        for path in self.entries(dir, depth, agent) {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {
                    if of.is_none_or(|format| format.may_contain_sessions(&path)) {
                        self.visit(&path, depth + 1, of, file);
                    }
                }
                Ok(metadata) if metadata.is_file() => file(self, path, &metadata),
                // Links are not followed; agents do not create any.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.failed(agent, "cannot read", &path, error),
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match find_file(&LocalStorage, path) {
                    Ok(copy) => self.given(options, &copy),
                    Err(_) => self.failed(None, "cannot read", path, error),
                }
            }
            Err(error) => self.failed(None, "cannot read", path, error),
            Ok(metadata) if metadata.is_dir() => self.given_directory(options, path),
            Ok(_) => match find_format(options, path) {
                Ok(Some((format, stamp))) => {
                    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                    self.add(format, path, stamp);
                }
                Ok(None) => {
                    let of = match options.formats.as_slice() {
                        [one] => one.title(),
                        _ => "any known agent",
                    };
                    let what = match database_part(path) {
                        Some(database) => format!(
                            "a part of the database {}; import that one",
                            database.display()
                        ),
                        None if is_database_file(path) => {
                            format!("an SQLite database, but not one of {of}")
                        }
                        None => format!("not a session file of {of}"),
                    };
                    let error = match named_database(path) {
                        Some(format) if !is_database_head(path) => not_a_database(format, path),
                        _ => Error::invalid(what, path),
                    };
                    self.errors.push((None, error));
                }
                Err(error) => self.errors.push((None, error)),
            },
        }
    }

    fn given_directory(&mut self, options: &ImportOptions, dir: &Path) {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        self.visit(&dir, 0, None, &|search, path, _| {
            let mut formats = options.formats.iter();
            if database_part(&path).is_some()
                || formats.any(|format| format.accompanies_session(&path))
            {
                return;
            }
            let format = match leftover_reason(&path) {
                Some(_) => Ok(None),
                None => find_format(options, &path),
            };
            match format {
                Ok(Some((format, stamp))) => search.add(format, path, stamp),
                Ok(None) => search.other_files.push(path),
                Err(error) => search.errors.push((None, error)),
            }
        });
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
            let names = LocalStorage.list(dir)?;
            Ok(names.into_iter().map(|name| dir.join(name)).collect())
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
            self.files.push(FoundFile::new(format, path, stamp));
        }
    }

    fn failed(&mut self, agent: Option<&'static str>, doing: &str, path: &Path, error: io::Error) {
        self.errors.push((agent, Error::io(doing, path, error)));
    }
}

/// Returns why a file is not a session, if its name shows that another program left it behind.
fn leftover_reason(path: &Path) -> Option<String> {
    if is_temporary(path) {
        return Some("a temporary file of another program, not a session".to_owned());
    }
    // Without the newer file, the copy takes its place.
    let newer = original_of(path).filter(|newer| newer.exists())?;
    let newer = newer.display();
    Some(format!("an older copy of {newer}; import that one"))
}

/// Returns whether a file is an SQLite database, belongs to one beside it, or has the name of an
/// agent's.
pub fn is_database_file(path: &Path) -> bool {
    database_part(path).is_some() || is_database_head(path) || named_database(path).is_some()
}

fn is_database_head(path: &Path) -> bool {
    Source::open(path).is_ok_and(|source| is_database(&source.head()))
}

/// Returns the agent whose database has the name of a file.
fn named_database(path: &Path) -> Option<&'static dyn Format> {
    let is_its = |format: &&dyn Format| format.is_database_name(path);
    formats().find(is_its)
}

/// Creates the error about a file that should be an agent's database.
pub(super) fn not_a_database(format: &dyn Format, path: &Path) -> Error {
    let title = format.title();
    let what = format!(
        "not an SQLite database, though {title} names its database like this; it may be damaged: \
         restore it from a backup"
    );
    Error::invalid(what, path)
}

/// Returns the database beside a file that is only a part of it, such as its log.
fn database_part(path: &Path) -> Option<PathBuf> {
    let name = path.to_str()?;
    let mut names = ["-wal", "-shm", "-journal"]
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix));
    names
        .find(|name| Path::new(name).is_file())
        .map(PathBuf::from)
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
    let mut formats = options.formats.iter().copied();
    let format = match is_database(&source.head()) {
        true => database_format(formats, path)?,
        false => formats
            .clone()
            .find(|format| format.recognises(&source))
            .or_else(|| formats.find(|format| is_in_place(*format, options, path, &source))),
    };
    Ok(format.map(|format| (format, file_stamp(&metadata))))
}

/// Returns whether a file is where an agent keeps its sessions, and its first line may be too
/// long to be recognised by its beginning.
fn is_in_place(format: &dyn Format, options: &ImportOptions, path: &Path, source: &Source) -> bool {
    let head = source.head();
    let is_cut = (head.len() as u64) < source.len() && !head.contains(&b'\n');
    let mut places = format.directories(&options.environment).into_iter();
    is_cut && format.is_session_file(path) && places.any(|place| path.starts_with(place))
}

/// Returns which of the given formats has its tables in a database.
fn database_format(
    formats: impl Iterator<Item = &'static dyn Format>,
    path: &Path,
) -> Result<Option<&'static dyn Format>, Error> {
    let snapshot = Snapshot::open(path)?;
    let has_tables = |format: &&dyn Format| {
        let tables = format.tables();
        tables.is_some_and(|tables| tables.are_in(&snapshot))
    };
    Ok(formats.into_iter().find(has_tables))
}

//! Takes files apart that contain many sessions.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::cache::{Cache, settled_stamp};
use super::found::{FoundFile, Search, not_a_database};
use crate::container::{ContainedSession, Container, Contents, FileStamp, Spool};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::source::Source;
use crate::sqlite::{DatabaseStamp, database_stamp, is_database};

/// A file that contains many sessions.
pub(super) struct ContainerFile {
    pub(super) format: &'static dyn Format,
    pub(super) path: PathBuf,
    is_database: bool,
    /// Its stamp, if its sessions need not be listed again as long as that stays the same.
    pub(super) stamp: Option<DatabaseStamp>,
    /// The stamp of the file, for one that is not a database.
    pub(super) file: FileStamp,
    pub(super) sessions: Vec<(PathBuf, FileStamp, bool)>,
    pub(super) others: BTreeMap<String, u64>,
    pub(super) damaged: u64,
    opened: Opened,
}

type Opened = Arc<OpenedContainer>;

/// A container that is opened when it is needed.
pub(super) struct OpenedContainer {
    format: &'static dyn Format,
    path: PathBuf,
    container: OnceLock<Box<dyn Container>>,
}

/// A session in a container.
pub(super) struct Contained {
    container: Opened,
    pub(super) is_sub_agent: bool,
}

impl OpenedContainer {
    fn open(&self) -> Result<Option<&dyn Container>> {
        if self.container.get().is_none() {
            let Some(opened) = self.format.container(&self.path)? else {
                return Ok(None);
            };
            // Another thread may have been faster.
            self.container.set(opened).ok();
        }
        Ok(self.container.get().map(|container| &**container))
    }
}

impl Contained {
    /// Writes out the session. `None` if it is gone.
    pub(super) fn read(&self, file: &FoundFile, mut spool: Spool) -> Result<Option<Source>> {
        let session = ContainedSession {
            path: file.path.clone(),
            stamp: file.stamp,
            is_sub_agent: self.is_sub_agent,
        };
        let is_there = match self.container.open()? {
            Some(container) => container.write(&session, &mut spool)?,
            None => false,
        };
        match is_there {
            true => spool.into_source(&file.path).map(Some),
            false => Ok(None),
        }
    }
}

/// What the cache knows about a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedContainer {
    stamp: DatabaseStamp,
    sessions: Vec<(String, bool)>,
    others: BTreeMap<String, u64>,
    damaged: u64,
}

impl CachedContainer {
    /// Returns whether a database is as it was, and nothing more is to be done with it.
    pub(super) fn is_as_stamped(&self, path: &Path, cache: &Cache) -> bool {
        self.stamp == database_stamp(path) && known_sessions(self, cache).is_some()
    }
}

/// Replaces each file that contains many sessions by these. Returns the containers.
pub(super) fn take_apart(search: &mut Search, cache: &Cache) -> Vec<ContainerFile> {
    let mut containers = Vec::new();
    for file in std::mem::take(&mut search.files) {
        match list(&file, cache) {
            Ok(Listed::File) => search.files.push(file),
            Ok(Listed::Nothing) => search.empty_databases.push(file.format.name()),
            Ok(Listed::Container(container)) => {
                search.files.extend(container.files(file.modified_ns));
                containers.push(*container);
            }
            Err(error) => search
                .unreadable_databases
                .push((file.format.name(), error)),
        }
    }
    search.files.sort_by(|a, b| a.path.cmp(&b.path));
    containers
}

/// Does the same, and notes the databases that are empty or cannot be read: nothing comes from
/// them before they change.
pub(super) fn take_apart_and_settle(search: &mut Search, cache: &mut Cache) -> Vec<ContainerFile> {
    let stamped = |file: &FoundFile| (file.path.clone(), settled_stamp(file));
    let files: Vec<_> = search.files.iter().map(stamped).collect();
    let containers = take_apart(search, cache);
    let known: HashSet<&Path> = containers
        .iter()
        .map(|container| &*container.path)
        .chain(search.files.iter().map(|file| &*file.path))
        .collect();
    for (path, stamp) in files {
        if !known.contains(&*path) {
            cache.settle_path(&path, stamp);
        }
    }
    containers
}

enum Listed {
    /// It is a session itself.
    File,
    /// Its agent has not put anything in it yet.
    Nothing,
    Container(Box<ContainerFile>),
}

fn list(file: &FoundFile, cache: &Cache) -> Result<Listed, Error> {
    let is_database = match file.format.tables() {
        Some(_) => match database_or_lines(file)? {
            Some(is_database) => is_database,
            None => return Ok(Listed::Nothing),
        },
        None => false,
    };
    // Taken first: what changes from now on is seen next time.
    let now = SystemTime::now();
    let stamp = is_database.then(|| database_stamp(&file.path));
    let opened = Arc::new(OpenedContainer {
        format: file.format,
        path: file.path.clone(),
        container: OnceLock::new(),
    });
    let mut container = ContainerFile {
        format: file.format,
        path: file.path.clone(),
        is_database,
        // A change in the same tick of the clock would not show.
        stamp: stamp.filter(|stamp| stamp.is_settled(now)),
        file: file.stamp,
        sessions: Vec::new(),
        others: BTreeMap::new(),
        damaged: 0,
        opened: Arc::clone(&opened),
    };
    if let Some(stamp) = stamp
        && let Some(cached) = cache.container(&file.path).filter(|it| it.stamp == stamp)
        && let Some(sessions) = known_sessions(cached, cache)
    {
        container.sessions = sessions;
        container.others.clone_from(&cached.others);
        container.damaged = cached.damaged;
        return Ok(Listed::Container(Box::new(container)));
    }
    let Some(reader) = opened.open()? else {
        return Ok(if is_database {
            Listed::Nothing
        } else {
            Listed::File
        });
    };
    let Contents {
        sessions,
        others,
        damaged,
    } = reader.contents()?;
    let session = |session: ContainedSession| (session.path, session.stamp, session.is_sub_agent);
    container.sessions = sessions.into_iter().map(session).collect();
    (container.others, container.damaged) = (others, damaged);
    Ok(Listed::Container(Box::new(container)))
}

/// Returns whether a file of an agent that uses a database is one; `None` if it is empty.
fn database_or_lines(file: &FoundFile) -> Result<Option<bool>, Error> {
    let source = Source::open(&file.path)?;
    if source.is_empty() {
        return Ok(None);
    }
    let is_database = is_database(&source.head());
    let is_named = file.format.is_database_name(&file.path);
    if is_named && !is_database && !file.format.recognises(&source) {
        return Err(not_a_database(file.format, &file.path));
    }
    Ok(Some(is_database))
}

/// Returns the sessions that were listed before, with the stamps that they had.
fn known_sessions(
    cached: &CachedContainer,
    cache: &Cache,
) -> Option<Vec<(PathBuf, FileStamp, bool)>> {
    let session = |(path, is_sub_agent): &(String, bool)| {
        let path = PathBuf::from(path);
        let stamp = cache.stamp_of(&path)?;
        Some((path, stamp, *is_sub_agent))
    };
    cached.sessions.iter().map(session).collect()
}

impl ContainerFile {
    /// Returns its sessions as files.
    fn files(&self, modified_ns: i128) -> Vec<FoundFile> {
        let file = |(path, stamp, is_sub_agent): &(PathBuf, FileStamp, bool)| FoundFile {
            format: self.format,
            path: path.clone(),
            stamp: *stamp,
            modified_ns,
            contained: Some(Contained {
                container: Arc::clone(&self.opened),
                is_sub_agent: *is_sub_agent,
            }),
        };
        self.sessions.iter().map(file).collect()
    }

    /// Returns whether all sessions of a file that is not a database are imported. Its agent
    /// touches it whenever it adds something.
    pub(super) fn is_done(&self, cache: &Cache) -> bool {
        let is_imported =
            |(path, stamp, _): &(PathBuf, FileStamp, bool)| cache.stamp_of(path) == Some(*stamp);
        !self.is_database && self.sessions.iter().all(is_imported)
    }

    /// Returns what the next import needs to know; `None` if it must list the sessions again,
    /// because one of them could not be imported.
    pub(super) fn to_cache(&self, cache: &Cache) -> Option<CachedContainer> {
        let session = |(path, stamp, is_sub_agent): &(PathBuf, FileStamp, bool)| {
            let is_imported = cache.stamp_of(path) == Some(*stamp);
            let path = path.to_str().filter(|_| is_imported)?;
            Some((path.to_owned(), *is_sub_agent))
        };
        Some(CachedContainer {
            stamp: self.stamp?,
            sessions: self.sessions.iter().map(session).collect::<Option<_>>()?,
            others: self.others.clone(),
            damaged: self.damaged,
        })
    }
}

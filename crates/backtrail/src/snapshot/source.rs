//! Where the nodes and contents of a snapshot come from.
//!
//! Captured snapshots are in the store. The present workspace is scanned without being
//! stored: its nodes are in memory, and its contents are read from the files themselves.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::name::shown;
use super::scan::open_root;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects};

/// A source of nodes.
pub(crate) trait Nodes: fmt::Debug + Send + Sync {
    fn node(&self, id: &ObjectId) -> Result<Cow<'_, [u8]>>;
}

/// A source of file contents as well.
pub(crate) trait Contents: Nodes {
    /// Reads the content `id` of the file at `path` piece by piece. Pieces passed to
    /// `take` before an error must be discarded.
    fn content(
        &self,
        path: &Path,
        id: &ObjectId,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()>;
}

impl Nodes for Objects {
    fn node(&self, id: &ObjectId) -> Result<Cow<'_, [u8]>> {
        self.read(id).map(Cow::Owned)
    }
}

impl Contents for Objects {
    fn content(
        &self,
        _path: &Path,
        id: &ObjectId,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.read_to(id, take)
    }
}

/// A workspace as it was scanned a moment ago.
#[derive(Debug)]
pub(crate) struct Present {
    /// The nodes that are not in the store.
    nodes: HashMap<ObjectId, Vec<u8>>,
    objects: Objects,
    root: PathBuf,
}

impl Present {
    pub(crate) fn new(root: &Path, nodes: HashMap<ObjectId, Vec<u8>>, objects: Objects) -> Self {
        Self {
            nodes,
            objects,
            root: root.to_owned(),
        }
    }
}

impl Nodes for Present {
    fn node(&self, id: &ObjectId) -> Result<Cow<'_, [u8]>> {
        match self.nodes.get(id) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => self.objects.node(id),
        }
    }
}

impl Contents for Present {
    fn content(
        &self,
        path: &Path,
        id: &ObjectId,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.objects.contains(id)? {
            let mut is_begun = false;
            let read = self.objects.read_to(id, &mut |piece| {
                is_begun = true;
                take(piece)
            });
            match read {
                // The file itself may still have it.
                Err(error) if error.kind() == ErrorKind::Corrupt && !is_begun => {}
                read => return read,
            }
        }
        let mut file = open_beneath(&self.root, path)?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => {
                    hasher.update(&buffer[..len]);
                    take(&buffer[..len])?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cannot_read(&self.root.join(path), error)),
            }
        }
        if ObjectId::finish(&hasher) == *id {
            Ok(())
        } else {
            Err(changed_meanwhile(path))
        }
    }
}

/// Opens a file beneath `root`, through directories only: a link in place of one of them
/// means that something changed since the scan.
fn open_beneath(root: &Path, path: &Path) -> Result<File> {
    let fail = |errno: Errno| match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO => changed_meanwhile(path),
        errno => cannot_read(&root.join(path), errno.into()),
    };
    let dir_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = open_root(root)?;
    let mut names = path.components().peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else {
            break;
        };
        if names.peek().is_none() {
            return open_file(&dir, name)
                .map_err(fail)?
                .ok_or_else(|| changed_meanwhile(path));
        }
        let flags = dir_flags | OFlags::NOFOLLOW;
        dir = rustix::fs::openat(&dir, name, flags, Mode::empty()).map_err(fail)?;
    }
    Err(Error::invalid(format!(
        "{} is not a file path",
        shown(path)
    )))
}

/// Opens a regular file; `None` if it is something else by now.
fn open_file(dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<File>> {
    // Non-blocking, because a named pipe may have replaced the file.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir.as_fd(), name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(regular.then(|| File::from(file)))
}

fn cannot_read(path: &Path, source: io::Error) -> Error {
    Error::io(format!("cannot read {}", shown(path)), path, source)
}

fn changed_meanwhile(path: &Path) -> Error {
    let what = format!(
        "{} changed after it was compared; compare again",
        shown(path)
    );
    Error::new(ErrorKind::Conflict, what).at_path(path)
}

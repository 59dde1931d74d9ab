//! Looks up one path of a workspace, and makes a snapshot of it alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Workspace;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::edit::{Edit, edit};
use crate::snapshot::entry::{Dir, Node, Totals};
use crate::snapshot::name::{names_of, os_str};
use crate::snapshot::node::write_empty;
use crate::snapshot::scan::STAGING;
use crate::snapshot::scan::sys::{self, Root, Seen, TRIES};
use crate::snapshot::{FileKind, Snapshot, shown};

/// The mode for directories without a known one, in a snapshot of one path.
const ANY: u32 = 0o755;

/// The result of a lookup.
#[derive(Debug)]
pub(super) struct PathLookup {
    /// The directories that lead to it, and their modes.
    pub(super) dirs: Vec<(PathBuf, u32)>,
    /// The last of those directories, and the file in it, if any.
    found: Option<(OwnedFd, Seen)>,
    /// A link or another file system on the way, so that there is no file.
    through: Option<(PathBuf, &'static str)>,
}

impl PathLookup {
    pub(super) fn kind(&self) -> Option<FileKind> {
        self.found.as_ref().map(|(_, seen)| seen.kind)
    }

    /// Returns the length of a file, or 0.
    pub(super) fn len(&self) -> u64 {
        self.found.as_ref().map_or(0, |(_, seen)| seen.len())
    }

    /// Refuses a path that leads through a link or to another file system.
    pub(super) fn must_lead_there(&self, path: &Path) -> Result<()> {
        let Some((through, what)) = &self.through else {
            return Ok(());
        };
        let (shown, through) = (shown(path), shown(through));
        let what = format!("{shown} goes through {through}, which is {what}; name the file itself");
        Err(Error::invalid(what).at_path(path))
    }
}

/// Returns a path relative to a workspace's root. An absolute one may lead to the root
/// through links. Below the root, links are not followed.
pub(crate) fn path_in(root: &Path, path: &Path) -> Result<PathBuf> {
    if path.is_relative() {
        return Ok(path.to_owned());
    }
    let is_root = |dir: &&Path| *dir == root || dir.canonicalize().is_ok_and(|dir| dir == root);
    let within = path.ancestors().find(is_root);
    match within.and_then(|dir| path.strip_prefix(dir).ok()) {
        Some(within) => Ok(within.to_owned()),
        None => {
            let (path, root) = (shown(path), shown(root));
            let what = format!("{path} is outside the workspace {root}");
            Err(Error::invalid(what))
        }
    }
}

/// Returns a path in a workspace in its normal form. Refuses paths that lead out of it,
/// belong to git or to Backtrail, or are the workspace itself.
pub(crate) fn checked_path(path: &Path) -> Result<PathBuf> {
    let names = names_of(path)?;
    let refused = |why: &str| Err(Error::invalid(format!("{} {why}", shown(path))));
    if names.is_empty() {
        return refused("is the workspace itself; name a file in it");
    }
    if names.iter().any(|name| name.contains(&0)) {
        return refused("contains a NUL");
    }
    if names.contains(&b".git".as_slice()) {
        return refused("belongs to git");
    }
    if names.iter().any(|name| name.starts_with(STAGING)) {
        return refused("belongs to Backtrail");
    }
    Ok(names.iter().map(|name| os_str(name)).collect())
}

/// Looks up a path below a root. Links are not followed.
pub(super) fn lookup(root: &Path, path: &Path) -> Result<PathLookup> {
    let failed = |error: Errno| {
        Error::io(
            "cannot read the file's metadata",
            &root.join(path),
            error.into(),
        )
    };
    let handle = Root::open(root)?;
    let mut lookup = PathLookup {
        dirs: Vec::new(),
        found: None,
        through: None,
    };
    let names = names_of(path)?;
    let mut dir = handle.fd;
    let mut at = PathBuf::new();
    for (n, name) in names.iter().enumerate() {
        at.push(os_str(name));
        let seen = match sys::seen_at(&dir, *name) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => return Ok(lookup),
            seen => seen.map_err(failed)?,
        };
        if n + 1 == names.len() {
            lookup.found = Some((dir, seen));
            return Ok(lookup);
        }
        let through = match seen.kind {
            FileKind::Dir if seen.dev == handle.dev => None,
            FileKind::Dir => Some("another file system"),
            FileKind::Link => Some("a link"),
            // It cannot contain anything.
            _ => return Ok(lookup),
        };
        if let Some(what) = through {
            lookup.through = Some((at, what));
            return Ok(lookup);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        dir = rustix::fs::openat(&dir, *name, flags, Mode::empty()).map_err(failed)?;
        lookup.dirs.push((at.clone(), seen.stamp.mode));
    }
    Ok(lookup)
}

/// Returns the node at a path, without storing it; for a directory only its mode. Anything
/// but a file, a link or a directory counts as nothing.
pub(super) fn node_at(root: &Path, path: &Path) -> Result<(PathLookup, Option<Node>)> {
    for _ in 0..TRIES {
        let lookup = lookup(root, path)?;
        let Some((dir, seen)) = &lookup.found else {
            return Ok((lookup, None));
        };
        let name = path.file_name().unwrap_or_default();
        let node = match seen.kind {
            FileKind::Dir => Some(Node::Dir(Dir {
                mode: seen.stamp.mode,
                listing: ObjectId::of(b""),
                totals: Totals::default(),
            })),
            FileKind::Link => sys::link_target(dir, name).ok().map(|target| Node::Link {
                target,
                ignored: true,
            }),
            FileKind::File => sys::read_unchanging(dir, name)
                .map_err(|error| Error::io("cannot read the file", &root.join(path), error))?
                .map(|(seen, content)| Node::File {
                    mode: seen.stamp.mode,
                    size: seen.len(),
                    content,
                    ignored: true,
                }),
            _ => return Ok((lookup, None)),
        };
        if let Some(node) = node {
            return Ok((lookup, Some(node)));
        }
    }
    Err(unstable(root, path))
}

pub(super) fn unstable(root: &Path, path: &Path) -> Error {
    let what = format!("{} changed each time it was read; try again", shown(path));
    Error::new(ErrorKind::Conflict, what).at_path(&root.join(path))
}

impl Workspace {
    /// Writes a snapshot of one path, or an empty one, and returns its name.
    pub(super) fn write_one(
        &self,
        path: &Path,
        dirs: &[(PathBuf, u32)],
        node: Option<Node>,
        put: &mut dyn FnMut(&[u8]) -> Result<ObjectId>,
    ) -> Result<(ObjectId, Dir)> {
        let mut edits = BTreeMap::new();
        if let Some(node) = node {
            let edit = match node {
                Node::Dir(dir) => Edit::Dir(dir.mode),
                node => Edit::Put(node),
            };
            edits.extend(
                dirs.iter()
                    .map(|(dir, mode)| (dir.clone(), Edit::Dir(*mode))),
            );
            edits.insert(path.to_owned(), edit);
        }
        let empty = self.unstored(|put| write_empty(ANY, put))?;
        edit(&empty, &edits, put)
    }

    /// Returns a snapshot of the present state of one path, without storing it.
    pub(crate) fn present_at(&self, path: &Path) -> Result<Snapshot> {
        let (lookup, node) = node_at(self.root(), path)?;
        self.unstored(|put| self.write_one(path, &lookup.dirs, node, put))
    }
}

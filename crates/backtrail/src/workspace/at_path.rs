//! What stands at one path, apart from all others: looked at, and as a snapshot of
//! its own.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
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

/// The mode of what has none of its own in a snapshot of one path.
const ANY: u32 = 0o755;

/// What was seen at a path.
#[derive(Debug)]
pub(super) struct Glance {
    /// The directories that lead to it, and their modes.
    pub(super) dirs: Vec<(PathBuf, u32)>,
    /// The last of them, and what is there, if anything is.
    found: Option<(OwnedFd, Seen)>,
    /// What else the path leads through, so that nothing is there.
    through: Option<(PathBuf, &'static str)>,
}

impl Glance {
    pub(super) fn kind(&self) -> Option<FileKind> {
        self.found.as_ref().map(|(_, seen)| seen.kind)
    }

    /// Returns the length of a file, 0 of anything else.
    pub(super) fn len(&self) -> u64 {
        self.found.as_ref().map_or(0, |(_, seen)| seen.len())
    }

    /// Refuses a path that leads elsewhere.
    pub(super) fn must_lead_there(&self, path: &Path) -> Result<()> {
        let Some((through, what)) = &self.through else {
            return Ok(());
        };
        let (shown, through) = (shown(path), shown(through));
        let what =
            format!("{shown} leads through {through}, which is {what}; name the file itself");
        Err(Error::invalid(what).at_path(path))
    }
}

/// Returns a path within a workspace, written in one way. Refuses what leads out of
/// it, what is git's or our own, and the workspace itself.
pub(super) fn one_path(path: &Path) -> Result<PathBuf> {
    let names = names_of(path)?;
    let refused = |why: &str| Err(Error::invalid(format!("{} {why}", shown(path))));
    if names.is_empty() {
        return refused("is the workspace itself; name a file in it");
    }
    if names.iter().any(|name| name.contains(&0)) {
        return refused("has a NUL in it, and no file is called so");
    }
    if names.contains(&b".git".as_slice()) {
        return refused("is git's own, which is left alone");
    }
    if names.iter().any(|name| name.starts_with(STAGING)) {
        return refused("is Backtrail's own, for a moment");
    }
    Ok(names.iter().map(|name| os_str(name)).collect())
}

/// Looks at a path beneath a root, through no link.
pub(super) fn glance(root: &Path, path: &Path) -> Result<Glance> {
    let failed =
        |error: Errno| Error::io("cannot look at the file", &root.join(path), error.into());
    let handle = Root::open(root)?;
    let mut glance = Glance {
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
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => return Ok(glance),
            seen => seen.map_err(failed)?,
        };
        if n + 1 == names.len() {
            glance.found = Some((dir, seen));
            return Ok(glance);
        }
        let through = match seen.kind {
            FileKind::Dir if seen.dev == handle.dev => None,
            FileKind::Dir => Some("another file system"),
            FileKind::Link => Some("a link"),
            // Nothing can be in it.
            _ => return Ok(glance),
        };
        if let Some(what) = through {
            glance.through = Some((at, what));
            return Ok(glance);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        dir = rustix::fs::openat(&dir, *name, flags, Mode::empty()).map_err(failed)?;
        glance.dirs.push((at.clone(), seen.stamp.mode));
    }
    Ok(glance)
}

/// Returns what stands at a path, without storing it; of a directory not what is in
/// it. What is neither file nor link nor directory counts for nothing.
pub(super) fn node_at(root: &Path, path: &Path) -> Result<(Glance, Option<Node>)> {
    for _ in 0..TRIES {
        let glance = glance(root, path)?;
        let Some((dir, seen)) = &glance.found else {
            return Ok((glance, None));
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
            FileKind::File => read_file(dir, name)
                .map_err(|error| Error::io("cannot read the file", &root.join(path), error))?,
            _ => return Ok((glance, None)),
        };
        if let Some(node) = node {
            return Ok((glance, Some(node)));
        }
    }
    Err(unstable(root, path))
}

pub(super) fn unstable(root: &Path, path: &Path) -> Error {
    let what = format!("{} changed whenever it was read; try again", shown(path));
    Error::new(ErrorKind::Conflict, what).at_path(&root.join(path))
}

/// Reads a file; `None` if it moved meanwhile.
fn read_file(dir: &OwnedFd, name: &std::ffi::OsStr) -> io::Result<Option<Node>> {
    let fd = match sys::open_file(dir, name) {
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        fd => fd?,
    };
    let before = sys::seen(&fd)?;
    if before.kind != FileKind::File {
        return Ok(None);
    }
    let mut file = File::from(fd);
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => _ = hasher.update(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let is_still = sys::seen(&file)?.stamp == before.stamp;
    Ok(is_still.then_some(Node::File {
        mode: before.stamp.mode,
        size: before.len(),
        content: ObjectId::finish(&hasher),
        ignored: true,
    }))
}

impl Workspace {
    /// Writes a snapshot with nothing in it but one path, or nothing at all, and
    /// returns its name.
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
        let mut nodes = HashMap::new();
        let empty = write_empty(ANY, &mut |bytes| Ok(keep(&mut nodes, bytes)))?;
        let empty = Snapshot::present(self.root(), empty, nodes, self.objects());
        edit(&empty, &edits, put)
    }

    /// Returns a snapshot with nothing in it but one path, without storing it.
    pub(super) fn show_one(
        &self,
        path: &Path,
        dirs: &[(PathBuf, u32)],
        node: Option<Node>,
    ) -> Result<Snapshot> {
        let mut nodes = HashMap::new();
        let one = self.write_one(path, dirs, node, &mut |bytes| Ok(keep(&mut nodes, bytes)))?;
        Ok(Snapshot::present(self.root(), one, nodes, self.objects()))
    }
}

fn keep(nodes: &mut HashMap<ObjectId, Vec<u8>>, bytes: &[u8]) -> ObjectId {
    let id = ObjectId::of(bytes);
    nodes.insert(id, bytes.to_vec());
    id
}

//! Storing everything at a path before it is replaced or removed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::sys::{self, Root};
use super::{STAGING, ScanOptions, scan_all_of, split};
use crate::error::{Error, Result};
use crate::objects::ObjectWriter;
use crate::snapshot::FileKind;
use crate::snapshot::entry::Node;
use crate::snapshot::name::names_of;
use crate::time::{Clock, SystemClock};

/// Stores everything at `path` in the workspace `root`, whatever ignore rules and limits
/// say, and returns its node. Nothing counts as stored before the writer is finished.
///
/// `None` if it does not exist, or if any of it cannot be stored: it is not a file, cannot
/// be read, keeps changing, belongs to git, is on another file system or too deep.
pub(crate) fn capture(
    root: &Path,
    path: &Path,
    options: &ScanOptions,
    writer: &ObjectWriter,
) -> Result<Option<Node>> {
    let names = names_of(path)?;
    let is_own = |name: &&[u8]| *name == b".git" || name.starts_with(STAGING);
    if names.iter().any(is_own) {
        return Ok(None);
    }
    let joined = names.join(&b'/');
    let (dir, name) = split(&joined);
    let handle = Root::open(root)?;
    if name.is_empty() {
        return capture_dir(root, b"", options, writer);
    }
    let fd = match handle.open_dir(dir) {
        Ok(fd) if sys::seen(&fd).is_ok_and(|seen| seen.dev == handle.dev) => fd,
        Err(error) if sys::is_fatal(error) => return Err(fatal(root, path, error)),
        _ => return Ok(None),
    };
    for _ in 0..sys::TRIES {
        let kind = match sys::seen_at(&fd, name) {
            Ok(seen) => seen.kind,
            Err(error) if sys::is_fatal(error) => return Err(fatal(root, path, error)),
            Err(_) => return Ok(None),
        };
        let found = match kind {
            FileKind::Dir => return capture_dir(root, &joined, options, writer),
            FileKind::Link => link(&fd, name),
            FileKind::File => file(&fd, name, writer)?,
            _ => return Ok(None),
        };
        match found {
            Ok(Some(node)) => return Ok(Some(node)),
            Ok(None) => {}
            Err(error) if sys::is_fatal(error) => return Err(fatal(root, path, error)),
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

fn fatal(root: &Path, path: &Path, error: Errno) -> Error {
    let what = "cannot store a file before it is replaced";
    Error::io(what, &root.join(path), error.into())
}

fn capture_dir(
    root: &Path,
    path: &[u8],
    options: &ScanOptions,
    writer: &ObjectWriter,
) -> Result<Option<Node>> {
    let dir = scan_all_of(root, path, options, writer, SystemClock.now())?;
    Ok(dir.map(Node::Dir))
}

fn link(dir: &OwnedFd, name: &[u8]) -> rustix::io::Result<Option<Node>> {
    match sys::link_target(dir, name) {
        Ok(target) => Ok(Some(Node::Link {
            target,
            ignored: true,
        })),
        // It is something else by now.
        Err(Errno::INVAL) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stores a file; `None` if it changed meanwhile.
fn file(
    dir: &OwnedFd,
    name: &[u8],
    writer: &ObjectWriter,
) -> Result<rustix::io::Result<Option<Node>>> {
    let opened = sys::open_file(dir, name).and_then(|fd| Ok((sys::seen(&fd)?, fd)));
    let (before, fd) = match opened {
        Ok(opened) => opened,
        Err(Errno::LOOP | Errno::NXIO) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    if before.kind != FileKind::File {
        return Ok(Ok(None));
    }
    let file = File::from(fd);
    // One byte more than expected, to notice a file that grew.
    let mut bounded = (&file).take(before.len().saturating_add(1));
    let (content, size) = match writer.put_stream(&mut bounded)? {
        Ok(put) => put,
        Err(error) => return Ok(Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    };
    let is_still = sys::seen(&file).is_ok_and(|after| after.stamp == before.stamp);
    let node = Node::File {
        mode: before.stamp.mode,
        size,
        content,
        ignored: true,
    };
    Ok(Ok((is_still && size == before.len()).then_some(node)))
}

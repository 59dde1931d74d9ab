//! A workspace to scan, and an independent reader that says what a scan must find.

#![expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::super::entry::{Dir, DirEntry, FileKind, Node, SkippedReason};
use super::super::node::{Listing, read_listing, read_root};
use super::{ScanOptions, Scanned, Sink, StatCache, scan};
use crate::objects::{ObjectId, Objects};
use crate::random::OsRandomness;
use crate::storage::LocalStorage;
use crate::time::{Clock, SystemClock, Timestamp};

/// The thing at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    File {
        mode: u32,
        bytes: Vec<u8>,
        ignored: bool,
    },
    Link(Vec<u8>),
    Dir(u32),
    Skipped(SkippedReason, FileKind),
}

pub(super) type Things = BTreeMap<Vec<u8>, Thing>;

/// A workspace, its store, and the cache of the last scan.
pub(super) struct TestWorkspace {
    pub(super) dir: TempDir,
    pub(super) objects: Objects,
    pub(super) options: ScanOptions,
    pub(super) cache: StatCache,
    /// How far scans believe to be in the future.
    pub(super) later_millis: i64,
}

impl TestWorkspace {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("w")).unwrap();
        let store = dir.path().join("store");
        let storage = Arc::new(LocalStorage);
        let objects = Objects::new(storage, Arc::new(OsRandomness), &store);
        Self {
            dir,
            objects,
            options: ScanOptions::new(store),
            cache: StatCache::empty(),
            later_millis: 0,
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("w")
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(super) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn now(&self) -> Timestamp {
        let now = SystemClock.now().as_millis() + self.later_millis;
        Timestamp::from_millis(now).unwrap()
    }

    /// Scans with the cache of the last scan and keeps the new one.
    pub(super) fn scan(&mut self) -> Scanned {
        let mut scanned = self.try_scan().unwrap();
        if let Some(cache) = scanned.cache.take() {
            self.cache = StatCache::decode(cache.encode().to_vec()).unwrap();
        }
        scanned
    }

    pub(super) fn try_scan(&self) -> crate::error::Result<Scanned> {
        let writer = self.objects.writer().unwrap();
        let sink = Sink::Store(&writer);
        let scanned = scan(&self.root(), &self.options, &self.cache, sink, self.now())?;
        writer.finish().unwrap();
        Ok(scanned)
    }

    /// Scans without cache, storing nothing.
    pub(super) fn scan_fresh(&self) -> Scanned {
        let none = StatCache::empty();
        scan(
            &self.root(),
            &self.options,
            &none,
            Sink::HashOnly,
            self.now(),
        )
        .unwrap()
    }

    /// Scans both ways and returns the contents of the snapshot.
    pub(super) fn things(&mut self) -> Things {
        let afresh = self.scan_fresh();
        let scanned = self.scan();
        assert_eq!(self.of(&scanned), self.of(&afresh));
        assert_eq!(scanned.id, afresh.id);
        assert_eq!(scanned.skipped, afresh.skipped);
        self.of(&scanned)
    }

    /// Returns the contents of a snapshot, by path.
    pub(super) fn of(&self, scanned: &Scanned) -> Things {
        let bytes = self.node(scanned, &scanned.id);
        let root = read_root(&scanned.id, &bytes).unwrap();
        assert_eq!(root, scanned.root);
        let mut things = Things::new();
        self.fill(scanned, &root, b"", &mut things);
        things
    }

    fn node(&self, scanned: &Scanned, id: &ObjectId) -> Vec<u8> {
        let inspected = scanned.nodes.get(id).cloned();
        inspected.unwrap_or_else(|| self.objects.read(id).unwrap())
    }

    fn fill(&self, scanned: &Scanned, dir: &Dir, path: &[u8], things: &mut Things) {
        things.insert(path.to_vec(), Thing::Dir(dir.mode));
        for entry in self.entries(scanned, &dir.listing) {
            let at = super::walk::join(path, &entry.name).into_vec();
            let thing = match entry.node {
                Node::Dir(dir) => {
                    self.fill(scanned, &dir, &at, things);
                    continue;
                }
                Node::File {
                    mode,
                    size,
                    content,
                    ignored,
                } => {
                    let bytes = match self.objects.contains(&content).unwrap() {
                        true => self.objects.read(&content).unwrap(),
                        // Not stored: there is an id but no bytes.
                        false => content.as_bytes().to_vec(),
                    };
                    if self.objects.contains(&content).unwrap() {
                        assert_eq!(bytes.len() as u64, size);
                    }
                    Thing::File {
                        mode,
                        bytes,
                        ignored,
                    }
                }
                Node::Link { target, .. } => Thing::Link(target.into_vec()),
                Node::Skipped(skipped) => Thing::Skipped(skipped.reason, skipped.kind),
            };
            things.insert(at, thing);
        }
    }

    fn entries(&self, scanned: &Scanned, id: &ObjectId) -> Vec<DirEntry> {
        match read_listing(id, &self.node(scanned, id)).unwrap() {
            Listing::Leaf(entries) => entries,
            Listing::Branch(children) => {
                let below = children
                    .iter()
                    .flat_map(|child| self.entries(scanned, &child.id));
                below.collect()
            }
        }
    }

    /// Returns the names of everything captured, or skipped for a reason.
    pub(super) fn names(&mut self, reason: Option<SkippedReason>) -> Vec<String> {
        let named = |thing: &Thing| match (thing, reason) {
            (Thing::Skipped(was, _), Some(reason)) => *was == reason,
            (Thing::File { .. } | Thing::Link(_), None) => true,
            _ => false,
        };
        let things = self.things();
        let found = things.iter().filter(|(_, thing)| named(thing));
        found
            .map(|(path, _)| String::from_utf8_lossy(path).into_owned())
            .collect()
    }
}

/// Reads a tree by other means, without ignore rules.
pub(super) fn truth(root: &Path) -> Things {
    let mut things = Things::new();
    read_truth(root, b"", &mut things);
    things
}

fn read_truth(at: &Path, path: &[u8], things: &mut Things) {
    let meta = fs::symlink_metadata(at).unwrap();
    let (kind, mode) = (meta.file_type(), meta.mode() & 0o7777);
    let thing = if kind.is_dir() {
        for entry in fs::read_dir(at).unwrap() {
            let name = entry.unwrap().file_name();
            let below = super::walk::join(path, name.as_bytes());
            read_truth(&at.join(&name), &below, things);
        }
        Thing::Dir(mode)
    } else if kind.is_symlink() {
        Thing::Link(fs::read_link(at).unwrap().into_os_string().into_vec())
    } else if kind.is_file() {
        let bytes = fs::read(at).unwrap();
        Thing::File {
            mode,
            bytes,
            ignored: false,
        }
    } else {
        let kind = match kind {
            kind if kind.is_fifo() => FileKind::Fifo,
            kind if kind.is_socket() => FileKind::Socket,
            _ => FileKind::Device,
        };
        Thing::Skipped(SkippedReason::Special, kind)
    };
    things.insert(path.to_vec(), thing);
}

//! Trees made up by tests, and helpers to check them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::sample::select;

use super::entry::{Dir, DirEntry, FileKind, Node, Skipped, SkippedReason, Totals};
use super::name::os_str;
use super::node::{write_listing, write_root};
use super::source::{Contents, Nodes};
use super::tree::Snapshot;
use crate::error::Result;
use crate::objects::ObjectId;

/// The contents of a directory.
pub(super) type Items = BTreeMap<Vec<u8>, Item>;

/// Everything in a tree by its path, including directories.
pub(super) type Flat = BTreeMap<PathBuf, Item>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    File {
        mode: u32,
        content: Vec<u8>,
        ignored: bool,
    },
    Link(Vec<u8>),
    Dir(u32, Items),
    Skipped(SkippedReason, FileKind),
}

pub(super) fn file(content: impl AsRef<[u8]>) -> Item {
    Item::File {
        mode: 0o644,
        content: content.as_ref().to_vec(),
        ignored: false,
    }
}

pub(super) fn dir<const N: usize>(items: [(&str, Item); N]) -> Item {
    Item::Dir(0o755, named(items))
}

pub(super) fn named<const N: usize>(items: [(&str, Item); N]) -> Items {
    items
        .into_iter()
        .map(|(name, item)| (name.as_bytes().to_vec(), item))
        .collect()
}

/// Stores a tree and returns its snapshot.
pub(super) fn snapshot(memory: &Arc<Memory>, items: &Items) -> Snapshot {
    let mut put = |bytes: &[u8]| Ok(memory.put(bytes));
    let root = store_dir(0o755, items, &mut put);
    memory.snapshot(root)
}

pub(super) fn store_dir(
    mode: u32,
    items: &Items,
    put: &mut dyn FnMut(&[u8]) -> Result<ObjectId>,
) -> Dir {
    let mut totals = Totals::default();
    let mut entries = Vec::new();
    for (name, item) in items {
        let node = store_item(item, put);
        totals.add(&node);
        let name = name.clone().into();
        entries.push(DirEntry { name, node });
    }
    let listing = write_listing(&entries, put).unwrap();
    Dir {
        mode,
        listing,
        totals,
    }
}

fn store_item(item: &Item, put: &mut dyn FnMut(&[u8]) -> Result<ObjectId>) -> Node {
    match item {
        Item::File {
            mode,
            content,
            ignored,
        } => Node::File {
            mode: *mode,
            size: content.len() as u64,
            content: put(content).unwrap(),
            ignored: *ignored,
        },
        Item::Link(target) => Node::Link {
            target: target.clone().into(),
            ignored: false,
        },
        Item::Dir(mode, items) => Node::Dir(store_dir(*mode, items, put)),
        Item::Skipped(reason, kind) => Node::Skipped(Skipped {
            reason: *reason,
            kind: *kind,
            size: 0,
        }),
    }
}

/// Lists a tree by path.
pub(super) fn flatten(items: &Items) -> Flat {
    fn add(flat: &mut Flat, parent: &Path, items: &Items) {
        for (name, item) in items {
            let path = parent.join(os_str(name));
            if let Item::Dir(_, items) = item {
                add(flat, &path, items);
            }
            flat.insert(path, item.clone());
        }
    }
    let mut flat = Flat::new();
    add(&mut flat, Path::new(""), items);
    flat
}

/// Generates trees with few names, contents and modes, so that two of them have much in
/// common. No link points to itself, because `git apply` fails on one in its way.
pub(super) fn some_tree() -> impl Strategy<Value = Items> {
    let mode = prop_oneof![Just(0o644), Just(0o755)];
    let content = select(vec![&b""[..], b"one\n", b"two\nlines", b"three\n\nlines\n"]);
    let skipped = prop_oneof![
        Just(Item::Skipped(SkippedReason::Ignored, FileKind::Dir)),
        Just(Item::Skipped(SkippedReason::Git, FileKind::Dir)),
        Just(Item::Skipped(SkippedReason::Unstable, FileKind::File)),
    ];
    let leaf = prop_oneof![
        8 => (mode, content, any::<bool>()).prop_map(|(mode, content, ignored)| Item::File {
            mode,
            content: content.to_vec(),
            ignored,
        }),
        2 => prop_oneof![Just("nowhere"), Just("../x")].prop_map(|target| Item::Link(target.into())),
        1 => skipped,
    ];
    let item = leaf.prop_recursive(3, 40, 5, |inner| {
        let mode = prop_oneof![Just(0o755), Just(0o700)];
        (mode, some_items(inner)).prop_map(|(mode, items)| Item::Dir(mode, items))
    });
    some_items(item)
}

fn some_items(item: impl Strategy<Value = Item>) -> impl Strategy<Value = Items> {
    let name = prop_oneof![
        6 => select(vec![&b"a"[..], b"b", b"c", b"a.b", b"d e"]),
        1 => select(vec![&b"\xff\x01"[..], b"q\"\\", b"\n"]),
    ];
    let name = name.prop_map(<[u8]>::to_vec);
    proptest::collection::btree_map(name, item, 0..6)
}

/// Objects in memory, counting how often nodes are read.
#[derive(Debug, Default)]
pub(super) struct Memory {
    all: Mutex<HashMap<ObjectId, Vec<u8>>>,
    reads: AtomicU64,
}

impl Memory {
    pub(super) fn put(&self, bytes: &[u8]) -> ObjectId {
        let id = ObjectId::of(bytes);
        self.all.lock().unwrap().insert(id, bytes.to_vec());
        id
    }

    pub(super) fn snapshot(self: &Arc<Self>, root: Dir) -> Snapshot {
        let id = self.put(&write_root(&root));
        Snapshot::new(id, root, self.clone())
    }

    /// Returns how many nodes were read since the last call.
    pub(super) fn reads(&self) -> u64 {
        self.reads.swap(0, Ordering::Relaxed)
    }

    fn read(&self, id: &ObjectId) -> Vec<u8> {
        self.all.lock().unwrap()[id].clone()
    }
}

impl Nodes for Memory {
    fn node(&self, id: &ObjectId) -> Result<Cow<'_, [u8]>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.read(id).into())
    }
}

impl Contents for Memory {
    fn content(
        &self,
        _path: &Path,
        id: &ObjectId,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        take(&self.read(id))
    }
}

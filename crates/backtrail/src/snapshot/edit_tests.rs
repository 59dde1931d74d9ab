//! An edited snapshot equals the snapshot of the edited tree.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;

use super::edit::{Edit, edit};
use super::entry::{FileKind, Node, SkippedReason};
use super::testing::{Item, Items, Memory, dir, file, named, snapshot, some_tree};
use super::tree::Snapshot;
use crate::objects::ObjectId;

/// Edits without being able to read what is written, because it is not stored yet.
fn edited(before: &Snapshot, edits: &BTreeMap<PathBuf, Edit>) -> crate::Result<ObjectId> {
    let elsewhere = Memory::default();
    edit(before, edits, &mut |bytes| Ok(elsewhere.put(bytes))).map(|(id, _)| id)
}

/// Returns the edits that turn one snapshot into another.
fn edits(before: &Snapshot, after: &Snapshot) -> BTreeMap<PathBuf, Edit> {
    let differences = before.differences(after, None).unwrap();
    let edit = |before: Option<Node>, after: Option<Node>| match (before, after) {
        (_, None) => Edit::Remove,
        // Nothing is known below a skipped entry.
        (Some(Node::Skipped(_)), Some(node)) => Edit::Put(node),
        (_, Some(Node::Dir(dir))) => Edit::Dir(dir.mode),
        (_, Some(node)) => Edit::Put(node),
    };
    differences
        .into_iter()
        .map(|found| (found.path, edit(found.before, found.after)))
        .collect()
}

/// Clears flags that are not differences.
fn not_ignored(mut items: Items) -> Items {
    for item in items.values_mut() {
        match item {
            Item::File { ignored, .. } => *ignored = false,
            Item::Dir(_, below) => *below = not_ignored(std::mem::take(below)),
            _ => {}
        }
    }
    items
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_differences_of_two_snapshots_make_one_the_other(
        before in some_tree().prop_map(not_ignored),
        after in some_tree().prop_map(not_ignored),
    ) {
        let memory = Arc::new(Memory::default());
        let [before, after] = [before, after].map(|items| snapshot(&memory, &items));
        let edits = edits(&before, &after);
        prop_assert_eq!(edited(&before, &edits).unwrap(), after.id());
    }
}

#[test]
fn only_the_directories_on_the_way_are_read() {
    let memory = Arc::new(Memory::default());
    let wide = dir([("x", file("1")), ("y", dir([("z", file("2"))]))]);
    let items = named([("a", wide.clone()), ("b", wide.clone()), ("c", wide)]);
    let before = snapshot(&memory, &items);
    memory.reads();
    let edits = BTreeMap::from([(PathBuf::from("b/x"), Edit::Remove)]);
    edited(&before, &edits).unwrap();
    assert_eq!(memory.reads(), 2);
}

#[test]
fn nothing_is_put_where_no_directory_is() {
    let memory = Arc::new(Memory::default());
    let skipped = Item::Skipped(SkippedReason::Ignored, FileKind::Dir);
    let before = snapshot(&memory, &named([("f", file("1")), ("l", skipped)]));
    for path in ["f/x", "l/x", "none/x"] {
        let edits = BTreeMap::from([(PathBuf::from(path), Edit::Dir(0o755))]);
        assert!(edited(&before, &edits).is_err(), "{path}");
    }
}

/// Nested deeper than a thread's stack could hold with one call per directory.
#[test]
fn directories_are_made_and_removed_as_deep_as_a_snapshot_may_have_them() {
    let memory = Arc::new(Memory::default());
    let empty = snapshot(&memory, &Items::new());
    let mut path = PathBuf::new();
    let mut make = BTreeMap::new();
    for _ in 0..4_000 {
        path.push("d");
        make.insert(path.clone(), Edit::Dir(0o755));
    }
    let (id, root) = edit(&empty, &make, &mut |bytes| Ok(memory.put(bytes))).unwrap();
    assert_ne!(id, empty.id());
    let remove = make.into_keys().map(|path| (path, Edit::Remove)).collect();
    let deep = memory.snapshot(root);
    assert_eq!(edited(&deep, &remove).unwrap(), empty.id());
    // A file replaces all of them.
    let mut file: BTreeMap<PathBuf, Edit> = remove;
    let node = Node::Link {
        target: b"x"[..].into(),
        ignored: false,
    };
    file.insert("d".into(), Edit::Put(node));
    edited(&deep, &file).unwrap();
}

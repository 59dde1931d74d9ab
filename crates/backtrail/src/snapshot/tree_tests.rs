//! Snapshots return what was captured, reading no more than needed (F13).

#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the disk, not through the seam"
)]

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::change::FileState;
use super::entry::{Dir, DirEntry, FileKind, SkippedReason, Totals};
use super::node::{write_listing, write_root};
use super::source::Nodes;
use super::testing::{
    Item, Items, Memory, dir, file, flatten, named, snapshot, some_tree, store_dir,
};
use super::tree::Snapshot;
use crate::ErrorKind;
use crate::objects::{ObjectId, Objects};
use crate::random::OsRandomness;
use crate::storage::LocalStorage;

fn agrees(snapshot: &Snapshot, path: &Path, item: &Item) -> bool {
    let state = snapshot.entry(path).unwrap();
    match item {
        Item::Skipped(reason, _) => {
            state.is_none() && snapshot.skipped_reason(path).unwrap() == Some(*reason)
        }
        Item::Dir(mode, _) => {
            let state = state.unwrap();
            (state.kind, state.mode) == (FileKind::Dir, Some(*mode)) && snapshot.read(path).is_err()
        }
        Item::File { mode, content, .. } => {
            let state = state.unwrap();
            (state.kind, state.mode) == (FileKind::File, Some(*mode))
                && state.bytes == content.len() as u64
                && snapshot.read(path).unwrap().as_ref() == Some(content)
        }
        Item::Link(target) => {
            let state = state.unwrap();
            (state.kind, state.mode) == (FileKind::Link, None)
                && snapshot.read(path).unwrap().as_ref() == Some(target)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_two_snapshots_differ_in_is_found_in_either_of_them_without_reading(
        before in some_tree(),
        after in some_tree(),
        other in some_tree(),
    ) {
        let memory = Arc::new(Memory::default());
        let [before, after, other] = [before, after, other].map(|items| snapshot(&memory, &items));
        let between = [before.id(), after.id()];
        for difference in before.differences(&after, None).unwrap() {
            for (snapshot, is_side) in [(&before, true), (&after, true), (&other, false)] {
                memory.reads();
                let found = snapshot.walk_down_to(&difference, between).unwrap();
                let reads = memory.reads();
                prop_assert!(reads == 0 || !is_side);
                prop_assert_eq!(found, snapshot.walk_down(&difference.path).unwrap());
            }
        }
    }

    #[test]
    fn a_snapshot_lists_and_finds_all_that_went_into_it(items in some_tree()) {
        let snapshot = snapshot(&Arc::new(Memory::default()), &items);
        let flat = flatten(&items);
        for (path, item) in &flat {
            prop_assert!(agrees(&snapshot, path, item), "{:?} {:?}", path, item);
        }
        let captured = |item: &Item| !matches!(item, Item::Skipped(..));
        let expected: Vec<PathBuf> =
            flat.iter().filter(|(_, item)| captured(item)).map(|(path, _)| path.clone()).collect();
        let listed: Vec<(PathBuf, FileState)> =
            snapshot.entries().collect::<Result<_, _>>().unwrap();
        for (path, state) in &listed {
            prop_assert!(snapshot.entry(path).unwrap().as_ref() == Some(state));
        }
        let listed: Vec<PathBuf> = listed.into_iter().map(|(path, _)| path).collect();
        prop_assert_eq!(listed, expected);

        let missed = flat.iter().filter_map(|(path, item)| match item {
            Item::Skipped(reason, kind) if *reason != SkippedReason::Git => {
                Some((path.clone(), *reason, *kind))
            }
            _ => None,
        });
        let skipped = snapshot.skipped().map(|entry| {
            let entry = entry.unwrap();
            (entry.path, entry.reason, entry.kind)
        });
        prop_assert_eq!(skipped.collect::<Vec<_>>(), missed.collect::<Vec<_>>());
        prop_assert_eq!(snapshot.skipped().count() as u64, snapshot.totals().skipped);
    }
}

#[test]
fn what_is_not_there_is_not_found_and_what_leads_elsewhere_is_refused() {
    let items = named([
        ("a", dir([("b", file("b"))])),
        ("t", Item::Skipped(SkippedReason::Ignored, FileKind::Dir)),
    ]);
    let snapshot = snapshot(&Arc::new(Memory::default()), &items);
    for path in ["b", "a/c", "a/b/c", "z"] {
        assert_eq!(snapshot.entry(path).unwrap(), None);
        assert_eq!(snapshot.read(path).unwrap(), None);
        assert_eq!(snapshot.skipped_reason(path).unwrap(), None);
    }
    assert_eq!(snapshot.entry(".").unwrap().unwrap().kind, FileKind::Dir);
    let below = snapshot.skipped_reason("t/deep/x").unwrap();
    assert_eq!(below, Some(SkippedReason::Ignored));
    for path in ["/a", "../a", "a/../a"] {
        assert_eq!(snapshot.entry(path).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn one_entry_of_a_hundred_thousand_is_found_in_few_nodes() {
    let many: Items = (0..100_000)
        .map(|n| (format!("name-{n}").into_bytes(), file("x")))
        .collect();
    let items = Items::from([(b"d".to_vec(), Item::Dir(0o755, many))]);
    let memory = Arc::new(Memory::default());
    let snapshot = snapshot(&memory, &items);
    memory.reads();
    assert!(snapshot.entry("d/name-77777").unwrap().is_some());
    assert!(snapshot.entry("d/name-77777-").unwrap().is_none());
    let reads = memory.reads();
    assert!(reads <= 16, "{reads} nodes");
    assert_eq!(snapshot.entries().count(), 100_001);
}

#[test]
fn nodes_that_do_not_fit_together_are_damage() {
    let memory = Arc::new(Memory::default());
    let mut put = |bytes: &[u8]| Ok(memory.put(bytes));
    let items: Items = (0..200)
        .map(|n| (format!("{n:03}").into(), file("x")))
        .collect();
    let good = store_dir(0o755, &items, &mut put);
    let branch = memory.node(&good.listing).unwrap().into_owned();
    // Swaps the ids of two children, each after its last name of three bytes.
    let (first, second) = (5 + 4..5 + 4 + 32, 5 + 36 + 4..5 + 36 + 4 + 32);
    let mut bad = branch.clone();
    bad[first.clone()].copy_from_slice(&branch[second.clone()]);
    bad[second].copy_from_slice(&branch[first]);
    let listing = memory.put(&bad);
    let snapshot = memory.snapshot(Dir { listing, ..good });
    let error = snapshot.entries().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let good = memory.snapshot(good);
    assert_eq!(good.diff(&snapshot).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_listing_of_branches_without_end_is_damage() {
    let memory = Arc::new(Memory::default());
    let mut put = |bytes: &[u8]| Ok(memory.put(bytes));
    let mut root = store_dir(0o755, &named([("a", file("x"))]), &mut put);
    for _ in 0..10_000 {
        let branch = [b"btn\x01\x02\x01a", &root.listing.as_bytes()[..]].concat();
        root.listing = memory.put(&branch);
    }
    let snapshot = memory.snapshot(root);
    assert_eq!(snapshot.entry("a").unwrap_err().kind(), ErrorKind::Corrupt);
    let error = snapshot.entries().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

/// A workspace on disk with one new file, scanned and not stored.
struct Present {
    dir: tempfile::TempDir,
    before: Snapshot,
    now: Snapshot,
}

fn present() -> Present {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/new"), "new\n").unwrap();
    let store = dir.path().join("objects");
    let objects = Objects::new(Arc::new(LocalStorage), Arc::new(OsRandomness), &store);
    let writer = objects.writer().unwrap();
    let items = named([("sub", super::testing::dir([]))]);
    let old = store_dir(0o755, &items, &mut |bytes| writer.put(bytes));
    let id = writer.put(&write_root(&old)).unwrap();
    writer.finish().unwrap();

    let mut nodes = HashMap::new();
    let mut put = |bytes: &[u8]| {
        let id = ObjectId::of(bytes);
        nodes.insert(id, bytes.to_vec());
        Ok(id)
    };
    let items = named([("sub", super::testing::dir([("new", file("new\n"))]))]);
    let new = store_dir(0o755, &items, &mut put);
    let new_id = ObjectId::of(&write_root(&new));
    Present {
        before: Snapshot::stored(&objects, id).unwrap(),
        now: Snapshot::present(&root, (new_id, new), nodes, &objects),
        dir,
    }
}

#[test]
fn the_present_is_compared_without_being_stored() {
    let present = present();
    let diff = present.before.diff(&present.now).unwrap();
    let mut patch = Vec::new();
    diff.write_unified(&mut patch, 3).unwrap();
    assert_eq!(
        String::from_utf8(patch).unwrap(),
        "diff --git a/sub/new b/sub/new\nnew file mode 100644\n\
         --- /dev/null\n+++ b/sub/new\n@@ -0,0 +1 @@\n+new\n"
    );
    assert_eq!(present.now.read("sub/new").unwrap().unwrap(), b"new\n");
}

#[test]
fn a_present_file_that_changed_meanwhile_is_not_shown() {
    let breaks: [fn(&Path); 5] = [
        |file| fs::write(file, "other").unwrap(),
        |file| fs::remove_file(file).unwrap(),
        |file| {
            // The same bytes, but not the file that was scanned.
            fs::rename(file, file.with_file_name("x")).unwrap();
            symlink("x", file).unwrap();
        },
        |file| {
            let sub = file.parent().unwrap();
            fs::rename(sub, sub.with_file_name("moved")).unwrap();
            symlink("moved", sub).unwrap();
        },
        |file| {
            fs::remove_file(file).unwrap();
            let mode = rustix::fs::Mode::from(0o644);
            rustix::fs::mknodat(rustix::fs::CWD, file, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        },
    ];
    for (n, break_it) in breaks.into_iter().enumerate() {
        let present = present();
        let diff = present.before.diff(&present.now).unwrap();
        break_it(&present.dir.path().join("work/sub/new"));
        let error = diff.text(&diff.changes()[0], 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "break {n}: {error}");
        assert!(error.to_string().contains("changed after it was compared"));
    }
}

#[test]
fn a_present_workspace_swapped_for_a_link_is_not_followed() {
    let present = present();
    let work = present.dir.path().join("work");
    fs::rename(&work, present.dir.path().join("moved")).unwrap();
    symlink("moved", &work).unwrap();
    let error = present.now.read("sub/new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let said = error.to_string();
    assert!(said.contains("is now a link"), "{said}");
}

#[test]
fn a_listing_whose_entries_are_out_of_order_is_not_read() {
    let memory = Memory::default();
    let mut put = |bytes: &[u8]| Ok(memory.put(bytes));
    let entry = |name: &str| DirEntry {
        name: name.as_bytes().into(),
        node: super::entry::Node::Link {
            target: (*b"t").into(),
            ignored: false,
        },
    };
    let listing = write_listing(&[entry("b"), entry("a")], &mut put).unwrap();
    let root = Dir {
        mode: 0o755,
        listing,
        totals: Totals::default(),
    };
    let snapshot = Arc::new(memory).snapshot(root);
    assert!(snapshot.entry("a").is_err());
}

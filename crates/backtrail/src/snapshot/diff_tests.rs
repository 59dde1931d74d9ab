//! Diffs are exact, and cost as much as there are differences (F12).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::change::{Change, ChangeKind};
use super::diff::Diff;
use super::entry::{FileKind, Node, SkippedReason};
use super::name::bytes_of;
use super::testing::{
    Flat, Item, Items, Memory, dir, file, flatten, named, snapshot, some_tree, store_dir,
};

/// A path and its change.
type Told = (PathBuf, ChangeKind);

fn compare(before: &Items, after: &Items) -> Diff {
    let memory = Arc::new(Memory::default());
    let [before, after] = [before, after].map(|items| snapshot(&memory, items));
    before.diff(&after).unwrap()
}

fn lines(diff: &Diff) -> Vec<String> {
    diff.iter().map(Change::to_string).collect()
}

/// Computes the changes from plain maps, one path at a time, without renames.
fn truth(before: &Flat, after: &Flat) -> BTreeSet<Told> {
    let known = |path: &Path| {
        path.ancestors().all(|path| {
            let skipped = |flat: &Flat| matches!(flat.get(path), Some(Item::Skipped(..)));
            !skipped(before) && !skipped(after)
        })
    };
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let changed = paths
        .into_iter()
        .filter(|path| known(path))
        .filter_map(|path| {
            let kind = match (before.get(path), after.get(path)) {
                (None, Some(Item::Dir(..))) if !is_empty(after, path) => None,
                (Some(Item::Dir(..)), None) if !is_empty(before, path) => None,
                (None, _) => Some(ChangeKind::Added),
                (_, None) => Some(ChangeKind::Deleted),
                (Some(old), Some(new)) => difference(old, new),
            };
            kind.map(|kind| (path.clone(), kind))
        });
    changed.collect()
}

fn is_empty(flat: &Flat, dir: &Path) -> bool {
    !flat
        .iter()
        .any(|(path, item)| path.parent() == Some(dir) && !matches!(item, Item::Skipped(..)))
}

fn difference(old: &Item, new: &Item) -> Option<ChangeKind> {
    match (old, new) {
        (Item::Dir(mode, _), Item::Dir(new, _)) => (mode != new).then_some(ChangeKind::Mode),
        (Item::Link(target), Item::Link(new)) => (target != new).then_some(ChangeKind::Modified),
        (
            Item::File { mode, content, .. },
            Item::File {
                mode: new_mode,
                content: new_content,
                ..
            },
        ) => match (content == new_content, mode == new_mode) {
            (false, _) => Some(ChangeKind::Modified),
            (true, false) => Some(ChangeKind::Mode),
            (true, true) => None,
        },
        _ => Some(ChangeKind::Kind),
    }
}

/// Splits renames into deletions and additions again.
fn without_renames(diff: &Diff) -> BTreeSet<Told> {
    let mut told = BTreeSet::new();
    for change in diff {
        match &change.from {
            Some(from) => {
                assert_eq!(change.kind, ChangeKind::Renamed);
                told.insert((change.path.clone(), ChangeKind::Added));
                told.insert((from.clone(), ChangeKind::Deleted));
            }
            None => {
                assert!(told.insert((change.path.clone(), change.kind)));
            }
        }
    }
    told
}

/// Checks that both sides of each change match the trees.
fn check_states(diff: &Diff, before: &Flat, after: &Flat) {
    for change in diff {
        for (flat, path, state, bytes) in [
            (
                before,
                change.old_path(),
                &change.before,
                diff.before(change),
            ),
            (after, &change.path, &change.after, diff.after(change)),
        ] {
            let bytes = bytes.unwrap();
            match flat.get(path) {
                None => assert!(state.is_none() && bytes.is_none()),
                Some(Item::File { mode, content, .. }) => {
                    assert_eq!(state.as_ref().unwrap().mode, Some(*mode));
                    assert_eq!(bytes.as_ref(), Some(content));
                }
                Some(Item::Link(target)) => assert_eq!(bytes.as_ref(), Some(target)),
                Some(Item::Dir(mode, _)) => {
                    assert_eq!(state.as_ref().unwrap().mode, Some(*mode));
                }
                Some(Item::Skipped(..)) => panic!("{change} was left out"),
            }
        }
    }
}

/// Checks that as many files as possible are reported as renamed, and as many of them as
/// possible under the same file name.
fn check_renames(diff: &Diff, before: &Flat, after: &Flat) {
    let content = |flat: &Flat, path: &Path| match flat.get(path) {
        Some(Item::File { content, .. }) if !content.is_empty() => Some(content.clone()),
        _ => None,
    };
    // By content and name: deleted, added, and renamed with the same name.
    let mut by_name: BTreeMap<(Vec<u8>, PathBuf), [usize; 3]> = BTreeMap::new();
    let mut by_content: BTreeMap<Vec<u8>, [usize; 3]> = BTreeMap::new();
    let mut count = |content: Vec<u8>, path: &Path, what: usize| {
        let name = path.file_name().unwrap().into();
        by_name.entry((content, name)).or_default()[what] += 1;
    };
    for change in diff {
        let old = content(before, change.old_path());
        let new = content(after, &change.path);
        match (change.kind, old, new) {
            (ChangeKind::Renamed, Some(old), Some(new)) => {
                assert_eq!(old, new);
                by_content.entry(old.clone()).or_default()[2] += 1;
                count(old.clone(), change.old_path(), 0);
                count(new, &change.path, 1);
                if change.path.file_name() == change.old_path().file_name() {
                    count(old, &change.path, 2);
                }
            }
            (ChangeKind::Renamed, ..) => panic!("{change} without a content"),
            (ChangeKind::Deleted, Some(old), None) => {
                by_content.entry(old.clone()).or_default()[0] += 1;
                count(old, &change.path, 0);
            }
            (ChangeKind::Added, None, Some(new)) => {
                by_content.entry(new.clone()).or_default()[1] += 1;
                count(new, &change.path, 1);
            }
            _ => {}
        }
    }
    for [deleted, added, _] in by_content.values() {
        assert!(*deleted == 0 || *added == 0, "a rename was missed");
    }
    for [deleted, added, kept] in by_name.values() {
        assert_eq!(kept, deleted.min(added), "a name was not kept");
    }
}

fn check(diff: &Diff, before: &Items, after: &Items) {
    let [before, after] = [before, after].map(flatten);
    assert_eq!(without_renames(diff), truth(&before, &after));
    check_states(diff, &before, &after);
    check_renames(diff, &before, &after);
    assert!(
        diff.changes()
            .is_sorted_by_key(|change| bytes_of(&change.path).to_vec())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_diff_of_any_two_trees_is_the_truth(before in some_tree(), after in some_tree()) {
        check(&compare(&before, &after), &before, &after);
        prop_assert!(compare(&before, &before).is_empty());
    }

    #[test]
    fn a_diff_at_paths_tells_what_the_whole_one_tells_there(
        before in some_tree(),
        after in some_tree(),
        paths in proptest::collection::vec("\\.|(\\./)?(a|b|c)(/(a|b|a\\.b)){0,2}", 1..4),
    ) {
        let memory = Arc::new(Memory::default());
        let [old, new] = [&before, &after].map(|items| snapshot(&memory, items));
        let pruned = old.diff_paths(&new, &paths).unwrap();
        let within = |path: &Path| {
            paths.iter().any(|of| {
                let of = Path::new(of);
                of == Path::new(".") || path.starts_with(of.strip_prefix(".").unwrap_or(of))
            })
        };
        let mut expected = truth(&flatten(&before), &flatten(&after));
        expected.retain(|(path, _)| within(path));
        prop_assert_eq!(without_renames(&pruned), expected);

        let whole = old.diff(&new).unwrap();
        let chosen = whole.clone().only(&paths).unwrap();
        let either = |change: &&Change| within(&change.path) || within(change.old_path());
        let by_hand: Vec<Change> = whole.iter().filter(either).cloned().collect();
        prop_assert_eq!(chosen.changes(), &by_hand[..]);
    }

    #[test]
    fn long_directories_are_compared_exactly(
        names in proptest::collection::btree_set(0_u32..3000, 0..800),
        edits in proptest::collection::btree_map(0_u32..3000, 0_u8..3, 0..40),
    ) {
        let before: Items = names.iter().map(|n| numbered(*n, "x")).collect();
        let mut after = before.clone();
        for (n, edit) in &edits {
            let (name, item) = numbered(*n, &format!("new {n}"));
            match edit {
                0 => drop(after.remove(&name)),
                _ => drop(after.insert(name, item)),
            }
        }
        check(&compare(&before, &after), &before, &after);
    }
}

fn numbered(n: u32, content: &str) -> (Vec<u8>, Item) {
    (format!("name-{n}").into_bytes(), file(content))
}

/// Builds a tree of `count` files, twelve in a directory.
fn broad(count: usize) -> Items {
    let mut items = Items::new();
    for d in 0..count.div_ceil(12) {
        let files = (0..12).map(|n| {
            let name = format!("file-{n}.rs").into_bytes();
            (name, file(format!("{d} {n}")))
        });
        let outer = items
            .entry(format!("part-{}", d % 40).into_bytes())
            .or_insert_with(|| dir([]));
        if let Item::Dir(_, inner) = outer {
            inner.insert(
                format!("dir-{d}").into_bytes(),
                Item::Dir(0o755, files.collect()),
            );
        }
    }
    items
}

/// Compares two trees and returns the number of nodes read.
fn cost(before: &Items, after: &Items) -> u64 {
    let memory = Arc::new(Memory::default());
    let [old, new] = [before, after].map(|items| snapshot(&memory, items));
    memory.reads();
    let diff = old.diff(&new).unwrap();
    let reads = memory.reads();
    assert_eq!(diff.changes().len(), 10);
    reads
}

#[test]
fn ten_changes_cost_the_same_in_small_and_large_trees() {
    let ten = |count: usize| {
        let before = broad(count);
        let mut after = before.clone();
        for n in 0..10 {
            let Some(Item::Dir(_, outer)) = after.get_mut(format!("part-{}", n * 4).as_bytes())
            else {
                panic!("no such part");
            };
            let Some((_, Item::Dir(_, inner))) = outer.iter_mut().next() else {
                panic!("an empty part");
            };
            inner.insert(b"file-3.rs".to_vec(), file(format!("changed {n}")));
        }
        cost(&before, &after)
    };
    let (small, large) = (ten(1_000), ten(100_000));
    assert!(
        large <= 2 * small + 20,
        "{small} nodes of the small tree, {large} of the large"
    );
    assert!(large < 150, "{large} nodes");
}

#[test]
fn ten_changes_in_a_directory_of_a_hundred_thousand_names_read_few_nodes() {
    let before: Items = (0..100_000).map(|n| numbered(n, "x")).collect();
    let mut after = before.clone();
    for n in 0..10 {
        let (name, item) = numbered(n * 9_973, "changed");
        match n % 3 {
            0 => drop(after.insert(name, item)),
            1 => drop(after.remove(&name)),
            _ => drop(after.insert([&name[..], b"-new"].concat(), file(format!("new {n}")))),
        }
    }
    let reads = cost(&before, &after);
    assert!(reads < 150, "{reads} nodes");
}

#[test]
fn a_long_directory_that_grew_a_level_is_still_compared_cheaply() {
    // Around these sizes both sides have different numbers of levels.
    for count in [30, 40, 900, 1_100, 30_000, 36_000] {
        let before: Items = (0..count).map(|n| numbered(n, "x")).collect();
        let mut after = before.clone();
        after.extend((0..10).map(|n| numbered(1_000_000 + n, &format!("new {n}"))));
        let reads = cost(&before, &after);
        assert!(reads < 60, "{reads} nodes of {count} names");
    }
}

#[test]
fn what_is_outside_the_paths_is_not_read() {
    let before = named([
        ("a", dir([("x", file("1"))])),
        ("b", dir([("x", file("1"))])),
    ]);
    let after = named([
        ("a", dir([("x", file("2"))])),
        ("b", dir([("x", file("2"))])),
    ]);
    let memory = Arc::new(Memory::default());
    let [old, new] = [&before, &after].map(|items| snapshot(&memory, items));
    memory.reads();
    let diff = old.diff_paths(&new, &["a/x"]).unwrap();
    assert_eq!(lines(&diff), ["edited a/x"]);
    // Both topmost listings, and `a` on both sides.
    assert_eq!(memory.reads(), 4);
    assert!(old.diff_paths(&new, &["../a"]).is_err());
    assert_eq!(
        old.diff_paths(&new, &[] as &[&str])
            .unwrap()
            .changes()
            .len(),
        2
    );
}

#[test]
fn every_kind_of_change_is_described_in_words() {
    let before = named([
        ("edited", file("1")),
        ("gone", dir([("deep", dir([("f", file("gone"))]))])),
        ("kind", dir([("in it", file("x"))])),
        ("mode", file("m")),
        ("was", file("moved")),
        ("empty dir", dir([])),
        ("link", Item::Link(b"a".into())),
        ("same", dir([("f", file("f"))])),
    ]);
    let after = named([
        ("edited", file("2")),
        ("kind", Item::Link(b"x".into())),
        (
            "mode",
            Item::File {
                mode: 0o755,
                content: b"m".into(),
                ignored: true,
            },
        ),
        ("now", dir([("is", file("moved"))])),
        ("only ignored", dir([("target", ignored())])),
        ("link", Item::Link(b"b".into())),
        ("same", Item::Dir(0o700, named([("f", file("f"))]))),
        ("\u{1b}[2J", file("")),
    ]);
    let diff = compare(&before, &after);
    check(&diff, &before, &after);
    assert_eq!(
        lines(&diff),
        [
            "new \\u{1b}[2J",
            "edited edited",
            "deleted empty dir/",
            "deleted gone/deep/f",
            "kind kind directory → link",
            "deleted kind/in it",
            "edited link",
            "mode mode 644 → 755",
            "was → now/is",
            "new only ignored/",
            "mode same/ 755 → 700",
        ]
    );
    let counts = diff.counts();
    assert_eq!(
        [
            counts.edited,
            counts.new,
            counts.deleted,
            counts.renamed,
            counts.modes
        ],
        [3, 2, 3, 1, 2]
    );
}

fn ignored() -> Item {
    Item::Skipped(SkippedReason::Ignored, FileKind::Dir)
}

#[test]
fn a_path_skipped_on_either_side_is_not_a_change() {
    let large = Item::Skipped(SkippedReason::TooLarge, FileKind::File);
    let before = named([
        ("build", dir([("out", file("x"))])),
        ("data", file("small")),
        ("gone", ignored()),
    ]);
    let after = named([("build", ignored()), ("data", large), ("come", ignored())]);
    assert!(compare(&before, &after).is_empty());
    assert!(compare(&after, &before).is_empty());
}

#[test]
fn the_mode_of_the_workspace_itself_is_a_change_of_the_dot() {
    let memory = Arc::new(Memory::default());
    let items = named([("a", file("a"))]);
    let old = snapshot(&memory, &items);
    let mut put = |bytes: &[u8]| Ok(memory.put(bytes));
    let root = store_dir(0o700, &items, &mut put);
    let diff = old.diff(&memory.snapshot(root)).unwrap();
    assert_eq!(lines(&diff), ["mode ./ 755 → 700"]);
    assert_eq!(diff.only(&["."]).unwrap().changes().len(), 1);
}

#[test]
fn of_several_candidates_a_file_with_the_same_name_was_renamed() {
    let before = named([("a", file("x")), ("b", file("x")), ("empty", file(""))]);
    let after = named([
        (
            "d",
            dir([("b", file("x")), ("c", file("x")), ("e", file("x"))]),
        ),
        ("vide", file("")),
    ]);
    let expected = ["b → d/b", "a → d/c", "new d/e", "deleted empty", "new vide"];
    assert_eq!(lines(&compare(&before, &after)), expected);
}

#[test]
fn changes_are_json_with_names_that_are_not_text_in_hex() {
    let before = named([("a", file("moved")), ("l", Item::Link(b"t".into()))]);
    let after = Items::from([
        (
            b"\xff".to_vec(),
            Item::File {
                mode: 0o4755,
                content: b"moved".into(),
                ignored: false,
            },
        ),
        (b"l".to_vec(), Item::Link(b"\xfe".into())),
    ]);
    let content = crate::objects::ObjectId::of(b"moved");
    let diff = compare(&before, &after);
    let expected = serde_json::json!([
        {
            "path": "l", "change": "modified",
            "before": {"kind": "link", "target": "t"},
            "after": {"kind": "link", "target": "\u{fffd}", "target_hex": "fe"},
        },
        {
            "path": "\u{fffd}", "path_hex": "ff", "change": "renamed", "from": "a",
            "before": {"kind": "file", "mode": "644", "bytes": 5, "content": content},
            "after": {"kind": "file", "mode": "4755", "bytes": 5, "content": content},
        },
    ]);
    assert_eq!(serde_json::to_value(diff.changes()).unwrap(), expected);
    let added = compare(&Items::new(), &named([("d", dir([]))]));
    let expected = serde_json::json!([{
        "path": "d", "change": "added", "before": null, "after": {"kind": "dir", "mode": "755"},
    }]);
    assert_eq!(serde_json::to_value(added.changes()).unwrap(), expected);
}

#[test]
fn many_equal_files_are_paired_up_quickly() {
    let before: Items = (0..20_000).map(|n| numbered(n, "same")).collect();
    let after: Items = (0..20_000)
        .map(|n| (format!("other-{n}").into_bytes(), file("same")))
        .collect();
    assert_eq!(compare(&before, &after).counts().renamed, 20_000);
}

#[test]
fn directories_without_end_are_refused_and_do_not_overflow_the_stack() {
    let memory = Arc::new(Memory::default());
    let deep = |content: &str| {
        let mut put = |bytes: &[u8]| Ok(memory.put(bytes));
        let mut root = store_dir(0o755, &named([("f", file(content))]), &mut put);
        for _ in 0..20_000 {
            let entries = [super::entry::DirEntry {
                name: (*b"d").into(),
                node: Node::Dir(root),
            }];
            root.listing = super::node::write_listing(&entries, &mut put).unwrap();
        }
        memory.snapshot(root)
    };
    let (old, new) = (deep("1"), deep("2"));
    let error = old.diff(&new).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
    let error = old.entries().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
}

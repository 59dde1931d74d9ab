//! Directories as objects: the encoding is exact, hostile bytes are rejected, and
//! changing one entry writes few new objects.

use std::collections::HashMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::entry::{Dir, DirEntry, FileKind, Node, Skipped, SkippedReason, Totals};
use super::node::{Listing, read_listing, read_root, write_listing, write_root};
use crate::ErrorKind;
use crate::objects::ObjectId;

type Kept = HashMap<ObjectId, Vec<u8>>;

/// Writes entries and returns the topmost node, and all nodes.
fn write(entries: &[DirEntry]) -> (ObjectId, Kept) {
    let mut kept = Kept::new();
    let mut put = |bytes: &[u8]| {
        let id = ObjectId::of(bytes);
        kept.insert(id, bytes.to_vec());
        Ok(id)
    };
    let top = write_listing(entries, &mut put).unwrap();
    (top, kept)
}

fn read_all(top: ObjectId, kept: &Kept) -> Vec<DirEntry> {
    match read_listing(&top, &kept[&top]).unwrap() {
        Listing::Leaf(entries) => entries,
        Listing::Branch(children) => {
            let below = children.into_iter().flat_map(|child| {
                let entries = read_all(child.id, kept);
                assert_eq!(entries.last().unwrap().name, child.last);
                entries
            });
            below.collect()
        }
    }
}

fn numbered(n: u32, target: &str) -> DirEntry {
    DirEntry {
        name: format!("name-{n:06}").into_bytes().into(),
        node: Node::Link {
            target: target.as_bytes().into(),
            ignored: false,
        },
    }
}

fn some_id() -> impl Strategy<Value = ObjectId> {
    any::<[u8; 32]>().prop_map(ObjectId::from_bytes)
}

fn some_dir() -> impl Strategy<Value = Dir> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
    (0_u32..=0o7777, numbers, some_id()).prop_map(|(mode, (files, bytes, skipped), listing)| Dir {
        mode,
        listing,
        totals: Totals {
            files,
            bytes,
            skipped,
        },
    })
}

fn some_node() -> impl Strategy<Value = Node> {
    use SkippedReason::*;
    let reason = proptest::sample::select(vec![
        Ignored,
        TooLarge,
        Unreadable,
        Special,
        Unstable,
        OtherFileSystem,
        Git,
        Store,
        TooDeep,
    ]);
    let kind = proptest::sample::select(vec![
        FileKind::File,
        FileKind::Link,
        FileKind::Dir,
        FileKind::Socket,
        FileKind::Fifo,
        FileKind::Device,
    ]);
    prop_oneof![
        (0_u32..=0o7777, any::<u64>(), some_id(), any::<bool>()).prop_map(
            |(mode, size, content, ignored)| Node::File {
                mode,
                size,
                content,
                ignored,
            }
        ),
        (vec(any::<u8>(), 0..300), any::<bool>()).prop_map(|(target, ignored)| Node::Link {
            target: target.into(),
            ignored,
        }),
        some_dir().prop_map(Node::Dir),
        (reason, kind, any::<u64>()).prop_map(|(reason, kind, size)| Node::Skipped(Skipped {
            reason,
            kind,
            size
        })),
    ]
}

fn some_entries(most: usize) -> impl Strategy<Value = Vec<DirEntry>> {
    let name = vec(
        any::<u8>().prop_filter("no name", |b| *b != 0 && *b != b'/'),
        1..12,
    )
    .prop_filter("leads elsewhere", |name| name != b"." && name != b"..");
    btree_map(name, some_node(), 0..most).prop_map(|entries| {
        let entry = |(name, node): (Vec<u8>, Node)| DirEntry {
            name: name.into(),
            node,
        };
        entries.into_iter().map(entry).collect()
    })
}

proptest! {
    #[test]
    fn a_listing_reads_as_it_was_written(entries in some_entries(200)) {
        let (top, kept) = write(&entries);
        prop_assert_eq!(read_all(top, &kept), entries);
    }

    #[test]
    fn a_snapshot_reads_as_it_was_written(root in some_dir()) {
        let bytes = write_root(&root);
        let id = ObjectId::of(&bytes);
        prop_assert_eq!(read_root(&id, &bytes).unwrap(), root);
        prop_assert!(read_root(&id, &bytes[..bytes.len() - 1]).is_err());
        prop_assert!(read_root(&id, &[&bytes[..], b"\0"].concat()).is_err());
    }

    #[test]
    fn any_bytes_are_a_node_or_an_error(
        entries in some_entries(6),
        cuts in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        noise in vec(any::<u8>(), 0..80),
        kind in 0_u8..5,
    ) {
        let id = ObjectId::of(b"");
        let (top, kept) = write(&entries);
        let mut bytes = kept[&top].clone();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let hostile = [&b"btn\x01"[..], &[kind], &noise].concat();
        for bytes in [bytes, hostile, noise] {
            // There is only one encoding: decoded nodes are written as the same bytes.
            if let Ok(Listing::Leaf(entries)) = read_listing(&id, &bytes) {
                let (_, kept) = write(&entries);
                let leaves = kept.values().filter(|node| node[4] == 1);
                let again: usize = leaves.map(|node| node.len() - 5).sum();
                prop_assert_eq!(again, bytes.len() - 5);
            }
            if let Ok(root) = read_root(&id, &bytes) {
                prop_assert_eq!(write_root(&root), bytes);
            }
        }
    }
}

/// A leaf with one link of this name.
fn leaf_with(name: &[u8]) -> Vec<u8> {
    [
        b"btn\x01\x01",
        &[name.len() as u8][..],
        name,
        b"\x02\x00\x01t",
    ]
    .concat()
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let id = ObjectId::of(b"");
    assert!(read_listing(&id, &leaf_with(b"fine")).is_ok());
    for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
        let error = read_listing(&id, &leaf_with(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name:?}");
    }
}

#[test]
fn a_newer_node_is_not_taken_for_damage() {
    let id = ObjectId::of(b"");
    let error = read_listing(&id, b"btn\x02\x01").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerFormat);
}

#[test]
fn modes_and_numbers_that_nothing_has_are_refused() {
    let id = ObjectId::of(b"");
    let file =
        |mode: &[u8], size: &[u8]| [b"btn\x01\x01\x01f\x01\x00", mode, size, &[7; 32][..]].concat();
    assert!(read_listing(&id, &file(b"\xa4\x03", b"\x05")).is_ok());
    // A mode of thirteen bits; a number with an empty last byte; a number of 65 bits.
    assert!(read_listing(&id, &file(b"\x80\x40", b"\x05")).is_err());
    assert!(read_listing(&id, &file(b"\xa4\x03", b"\x85\x00")).is_err());
    let long = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03";
    assert!(read_listing(&id, &file(b"\xa4\x03", long)).is_err());
}

#[test]
fn the_bytes_of_nodes_are_those_of_the_format() {
    let content = ObjectId::of(b"x");
    let node = Node::File {
        mode: 0o644,
        size: 300,
        content,
        ignored: true,
    };
    let entries = [DirEntry {
        name: (*b"f").into(),
        node,
    }];
    let (top, kept) = write(&entries);
    let leaf = [
        b"btn\x01\x01\x01f\x01\x01\xa4\x03\xac\x02",
        &content.as_bytes()[..],
    ]
    .concat();
    assert_eq!(kept[&top], leaf);
    let root = Dir {
        mode: 0o755,
        listing: top,
        totals: Totals {
            files: 1,
            bytes: 300,
            skipped: 0,
        },
    };
    let expected = [b"btn\x01\x03\xed\x03\x01\xac\x02\x00", &top.as_bytes()[..]].concat();
    assert_eq!(write_root(&root), expected);
    let skipped = Skipped {
        reason: SkippedReason::Git,
        kind: FileKind::Dir,
        size: 0,
    };
    let entries = [DirEntry {
        name: (*b".git").into(),
        node: Node::Skipped(skipped),
    }];
    let (top, kept) = write(&entries);
    assert_eq!(kept[&top], b"btn\x01\x01\x04.git\x04\x06\x02\x00");
    assert_eq!(write(&[]).1.into_values().next().unwrap(), b"btn\x01\x01");
}

#[test]
fn where_a_listing_is_cut_depends_on_the_names_alone() {
    let with =
        |target: &str| -> Vec<DirEntry> { (0..5_000).map(|n| numbered(n, target)).collect() };
    let names = |entries: &[DirEntry]| {
        let (_, kept) = write(entries);
        let mut lasts: Vec<Vec<u8>> = kept
            .iter()
            .map(|(id, bytes)| match read_listing(id, bytes).unwrap() {
                Listing::Leaf(entries) => entries.last().unwrap().name.to_vec(),
                Listing::Branch(children) => children.last().unwrap().last.to_vec(),
            })
            .collect();
        lasts.sort();
        lasts
    };
    assert_eq!(names(&with("a")), names(&with("something else")));
}

#[test]
fn one_change_among_a_hundred_thousand_entries_writes_few_nodes() {
    let entries: Vec<DirEntry> = (0..100_000).map(|n| numbered(2 * n, "t")).collect();
    let (_, old) = write(&entries);
    let largest = old.values().map(Vec::len).max().unwrap();
    assert!(largest < 32 * 1024, "a node of {largest} bytes");
    for at in [0, 1, 31_337, 50_000, 99_999] {
        let mut edited = entries.clone();
        edited[at] = numbered(2 * at as u32, "other");
        let mut longer = entries.clone();
        longer.insert(at + 1, numbered(2 * at as u32 + 1, "new"));
        let mut shorter = entries.clone();
        shorter.remove(at);
        for (what, changed) in [("edit", edited), ("insert", longer), ("remove", shorter)] {
            let (_, new) = write(&changed);
            let added = new.keys().filter(|id| !old.contains_key(id)).count();
            assert!(added <= 12, "{added} new nodes after {what} at {at}");
        }
    }
}

//! What is at a path is stored whole, or not at all.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::kit_tests::*;
use crate::objects::ObjectId;
use crate::snapshot::entry::Node;
use crate::snapshot::node::{Listing, read_listing};
use crate::snapshot::scan::{ScanOptions, capture};

fn options(ground: &Ground) -> ScanOptions {
    ScanOptions {
        cap: 10,
        small_ignored: 2,
        ..ScanOptions::new(ground.outside())
    }
}

/// Captures with rules that ignore every file and a cap that skips every file.
fn captured(ground: &Ground, path: &str) -> Option<Node> {
    let writer = ground.objects.writer().unwrap();
    let root = ground.root();
    let node = capture(&root, Path::new(path), &options(ground), &writer).unwrap();
    writer.finish().unwrap();
    node
}

fn listing(ground: &Ground, id: &ObjectId, at: &str, found: &mut Vec<(String, bool)>) {
    match read_listing(id, &ground.objects.read(id).unwrap()).unwrap() {
        Listing::Branch(children) => {
            children
                .iter()
                .for_each(|child| listing(ground, &child.id, at, found));
        }
        Listing::Leaf(entries) => {
            for entry in entries {
                let path = format!("{at}/{}", String::from_utf8_lossy(&entry.name));
                match entry.node {
                    Node::Dir(dir) => listing(ground, &dir.listing, &path, found),
                    Node::File {
                        content, ignored, ..
                    } => {
                        ground.objects.read(&content).unwrap();
                        found.push((path, ignored));
                    }
                    Node::Link { ignored, .. } => found.push((path, ignored)),
                    Node::Skipped(skipped) => panic!("{path}: {skipped:?}"),
                }
            }
        }
    }
}

#[test]
fn files_that_rules_and_limits_skip_are_stored_whole() {
    let ground = Ground::new();
    let big = "long".repeat(1000);
    ground.build(&tree([
        (".gitignore", file("*\n")),
        (".backtrailignore", file("*\n")),
        ("t", dir()),
        ("t/.backtrailignore", file("*")),
        ("t/a", file("a")),
        ("t/big", file(&big)),
        ("t/l", link("/etc")),
        ("t/d", Stuff::Dir(0o711)),
        ("t/d/e", dir()),
        ("t/d/f", file("f")),
        ("big", file(&big)),
        ("l", link("../x")),
    ]));
    let Some(Node::Dir(top)) = captured(&ground, "t") else {
        panic!("no directory")
    };
    let mut found = Vec::new();
    listing(&ground, &top.listing, "t", &mut found);
    let names = ["t/.backtrailignore", "t/a", "t/big", "t/d/f", "t/l"];
    assert_eq!(found, names.map(|name| (name.to_owned(), true)));
    assert_eq!(
        (top.mode, top.totals.files, top.totals.skipped),
        (0o755, 5, 0)
    );
    let Some(Node::File {
        size,
        content,
        ignored,
        ..
    }) = captured(&ground, "big")
    else {
        panic!("no file")
    };
    assert_eq!((size, ignored), (big.len() as u64, true));
    assert_eq!(ground.objects.read(&content).unwrap(), big.as_bytes());
    assert!(matches!(
        captured(&ground, "l"),
        Some(Node::Link { ignored: true, .. })
    ));
}

#[test]
fn files_that_cannot_be_stored_whole_are_not_stored() {
    let ground = Ground::new();
    ground.build(&tree([
        ("git", dir()),
        ("git/a", file("a")),
        ("git/sub", dir()),
        ("git/sub/.git", dir()),
        ("socket", dir()),
        ("staging", dir()),
        ("staging/.backtrail-staging-x", dir()),
        ("plain", dir()),
        (".git", dir()),
        (".git/config", file("x")),
    ]));
    let _listener = UnixListener::bind(ground.root().join("socket/s")).unwrap();
    symlink(ground.root().join("plain"), ground.root().join("to-plain")).unwrap();
    fs::write(ground.root().join("plain/f"), "f").unwrap();
    let nothing = [
        "git",
        "git/sub",
        "socket",
        "socket/s",
        ".git",
        ".git/config",
        "staging",
        "absent",
        "absent/x",
        "to-plain/f",
    ];
    for path in nothing {
        assert_eq!(captured(&ground, path), None, "{path}");
    }
    assert!(matches!(
        captured(&ground, "git/a"),
        Some(Node::File { .. })
    ));
    assert!(matches!(captured(&ground, "plain"), Some(Node::Dir(_))));
    assert!(matches!(
        captured(&ground, "to-plain"),
        Some(Node::Link { .. })
    ));
    let writer = ground.objects.writer().unwrap();
    let up = capture(
        &ground.root(),
        Path::new("../x"),
        &options(&ground),
        &writer,
    );
    assert!(up.is_err());
}

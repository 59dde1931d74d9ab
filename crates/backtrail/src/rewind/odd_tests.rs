//! Odd places: crafted paths, closed directories, open files, other owners, many
//! files.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::apply::sweep_strays;
use super::kit_tests::*;
use super::path_change::{FileEntry, PathChange, PathEntry};
use super::test_hook::{Touch, TouchHook};
use crate::error::ErrorKind;
use crate::objects::ObjectId;

fn item(path: &str, content: &str) -> PathChange {
    PathChange {
        path: PathBuf::from(path),
        old: None,
        new: Some(PathEntry::File(FileEntry {
            mode: 0o644,
            size: content.len() as u64,
            content: ObjectId::of(content.as_bytes()),
        })),
    }
}

#[test]
fn paths_that_lead_elsewhere_are_refused_before_anything_is_done() {
    let ground = Ground::new();
    ground.items(&Tree::new(), &tree([("a", file("x"))]));
    let long = format!("d/{}", "n".repeat(256));
    for path in [
        "../a",
        "/tmp/a",
        "a/../../b",
        "a//b",
        "a/.",
        "./a",
        "a/",
        ".git/hooks/x",
        "d/.git",
        "a\0b",
        ".backtrail-staging-x/a",
        &long,
        "..",
    ] {
        let calls = Calls::new(&ground, At::Nothing);
        let items = [item("fine", "x"), item(path, "x")];
        let error = ground.go(&items, Some(&calls)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path:?}");
        let error = ground.resume(&items, Some(&calls)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path:?}");
        assert_eq!(calls.made(), 0, "{path:?}");
    }
    assert_eq!(
        ground.read(),
        Tree::from([(Vec::new(), Stuff::Dir(mode_of(&ground.root())))])
    );
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_step_that_is_given_up_leaves_no_trace() {
    let ground = Ground::new();
    let old = tree([("a", file("one")), ("b", file("two"))]);
    let new = tree([("a", file("three")), ("z", file("four"))]);
    ground.build(&old);
    let before = marks(&ground, &old);
    let items = ground.items(&old, &new);
    let root = ground.root();
    let staged = ground.work(&root, &items, None).stage().unwrap();
    staged.check().unwrap();
    fs::write(ground.root().join("z"), "mine").unwrap();
    let error = staged.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.path(), Some(ground.root().join("z").as_path()));
    staged.give_up();
    fs::remove_file(ground.root().join("z")).unwrap();
    assert_eq!(ground.read(), old);
    assert_eq!(marks(&ground, &old), before);
}

#[test]
fn changes_after_staging_are_found_before_anything_is_touched() {
    let ground = Ground::new();
    let old = tree([
        ("a", file("one")),
        ("d", dir()),
        ("d/b", file("two")),
        ("l", link("a")),
    ]);
    let new = tree([
        ("a", file("three")),
        ("d", Stuff::Dir(0o700)),
        ("l", link("b")),
    ]);
    let items = ground.items(&old, &new);
    let root = ground.root();
    let deeds: [(&str, &dyn Fn()); 6] = [
        ("a", &|| fs::write(root.join("a"), "eno").unwrap()),
        ("a", &|| fs::remove_file(root.join("a")).unwrap()),
        ("a", &|| {
            fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o600)).unwrap()
        }),
        ("d", &|| {
            fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o750)).unwrap()
        }),
        ("d/b", &|| {
            fs::rename(root.join("d"), root.join("e")).unwrap()
        }),
        ("l", &|| {
            fs::remove_file(root.join("l")).unwrap();
            std::os::unix::fs::symlink("c", root.join("l")).unwrap();
        }),
    ];
    for (path, deed) in deeds {
        ground.build(&old);
        let staged = ground.work(&root, &items, None).stage().unwrap();
        staged.check().unwrap();
        deed();
        let now = ground.read();
        let error = staged.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{path}: {error}");
        let found = error.path().unwrap().strip_prefix(&root).unwrap();
        assert!(Path::new(path).starts_with(found), "{path}: {found:?}");
        staged.give_up();
        let staging = |path: &[u8]| path.starts_with(b".backtrail-staging-");
        let mut now = now;
        now.retain(|path, _| !staging(path));
        assert_eq!(ground.read(), now, "{path}");
    }
}

#[test]
fn a_store_that_lost_the_content_stops_it_before_anything_is_touched() {
    let ground = Ground::new();
    let old = tree([("a", file("one"))]);
    ground.build(&old);
    let items = [item("b", "never stored")];
    assert_eq!(
        ground.go(&items, None).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    assert_eq!(ground.read(), old);
    // It does not keep the rest from being resumed either.
    let new = tree([("a", file("one")), ("c", file("stored"))]);
    let mut items = ground.items(&old, &new);
    items.insert(0, item("b", "never stored"));
    let outcome = ground.resume(&items, None).unwrap();
    assert_eq!(outcome.left.len(), 1, "{:?}", outcome.left);
    assert_eq!(outcome.left[0].path, Path::new("b"));
    assert_eq!(ground.read(), new);
}

#[test]
fn an_open_file_keeps_its_bytes() {
    let ground = Ground::new();
    let (old, new) = (tree([("a", file("old"))]), tree([("a", file("new"))]));
    ground.build(&old);
    let mut held = fs::File::open(ground.root().join("a")).unwrap();
    ground.go(&ground.items(&old, &new), None).unwrap();
    let mut bytes = String::new();
    held.read_to_string(&mut bytes).unwrap();
    assert_eq!(bytes, "old");
    assert_eq!(ground.read(), new);
}

#[test]
fn restored_files_keep_the_owner_of_the_replaced_ones() {
    if !is_root() {
        eprintln!("SKIPPED: needs root; only root gives files to others");
        return;
    }
    let ground = Ground::new();
    let old = tree([("a", file("old")), ("d", Stuff::Dir(0o2755))]);
    let new = tree([
        ("a", Stuff::File(0o4755, b"new".to_vec())),
        ("d", Stuff::Dir(0o2755)),
        ("d/n", file("in the group")),
        ("d/s", Stuff::Dir(0o755)),
        ("d/s/t", file("in the group too")),
    ]);
    ground.build(&old);
    std::os::unix::fs::chown(ground.root().join("a"), Some(1234), Some(4321)).unwrap();
    std::os::unix::fs::chown(ground.root().join("d"), None, Some(77)).unwrap();
    fs::set_permissions(ground.root().join("d"), fs::Permissions::from_mode(0o2755)).unwrap();
    let outcome = ground.go(&ground.items(&old, &new), None).unwrap();
    assert_eq!(outcome.left, []);
    assert_eq!(ground.read(), new);
    let owner = |path: &str| {
        let meta = fs::symlink_metadata(ground.root().join(path)).unwrap();
        (meta.uid(), meta.gid())
    };
    assert_eq!(owner("a"), (1234, 4321));
    assert_eq!(owner("d/n").1, 77);
    assert_eq!(owner("d/s/t").1, 77);
}

/// Runs only as a user whom modes restrict.
#[test]
fn directories_without_write_permission_are_changed_and_keep_their_mode() {
    if is_root() {
        eprintln!("SKIPPED: needs a user other than root; no mode stops root");
        return;
    }
    let ground = Ground::new();
    let old = tree([
        ("", Stuff::Dir(0o555)),
        ("r", Stuff::Dir(0o555)),
        ("r/x", file("one")),
        ("r/y", file("goes")),
        ("s", Stuff::Dir(0o500)),
        ("s/z", file("goes with it")),
    ]);
    let new = tree([
        ("", Stuff::Dir(0o555)),
        ("r", Stuff::Dir(0o555)),
        ("r/x", file("two")),
        ("r/new", Stuff::Dir(0o500)),
        ("r/new/n", file("new")),
    ]);
    let mut items = ground.items(&old, &new);
    // The caller sets the mode of the root: nothing else could.
    let root = Some(PathEntry::Dir { mode: 0o555 });
    items.insert(
        0,
        PathChange {
            path: PathBuf::new(),
            old: root.clone(),
            new: root,
        },
    );
    for n in 0.. {
        ground.build(&old);
        let calls = Calls::new(&ground, At::Crash(n));
        let done = ground.go(&items, Some(&calls));
        if calls.made() <= n {
            assert_eq!(done.unwrap().left, []);
            break;
        }
        let outcome = ground.resume(&items, None);
        let outcome = outcome.unwrap_or_else(|error| panic!("call {n}: {error}"));
        assert_eq!(outcome.left, [], "call {n}");
        assert_eq!(ground.read(), new, "call {n}");
    }
    assert_eq!(ground.read(), new);
    for n in 0.. {
        ground.build(&old);
        let calls = Calls::new(&ground, At::Fail(n, 2, 5));
        match ground.go(&items, Some(&calls)) {
            Ok(outcome) if outcome.rolled_back.is_none() => {
                assert_eq!(ground.read(), new, "call {n}");
            }
            Ok(outcome) => {
                assert_eq!(outcome.left, [], "call {n}");
                assert_eq!(ground.read(), old, "call {n}");
            }
            Err(_) if ground.read() == old => {}
            Err(_) => {
                ground.resume(&items, None).unwrap();
                assert_eq!(ground.read(), new, "call {n}");
            }
        }
        if calls.made() <= n {
            break;
        }
    }
}

#[test]
fn a_directory_of_another_user_stops_it_before_anything_is_touched() {
    if is_root() {
        eprintln!("SKIPPED: needs a user other than root; every directory is open to root");
        return;
    }
    let ground = Ground::new();
    // Nothing can be created in the system's own directory.
    let items = [item("dev", "x")];
    ground.items(&Tree::new(), &tree([("a", file("x"))]));
    let work = ground.work(Path::new("/"), &items, None);
    assert!(work.stage().is_err());
}

#[test]
fn empty_stray_staging_directories_are_removed() {
    let ground = Ground::new();
    fs::create_dir(ground.root().join(".backtrail-staging-empty")).unwrap();
    fs::create_dir(ground.root().join(".backtrail-staging-full")).unwrap();
    fs::write(ground.root().join(".backtrail-staging-full/n-1"), "x").unwrap();
    sweep_strays(&ground.root(), None).unwrap();
    let paths: Vec<Vec<u8>> = ground.read().into_keys().collect();
    assert_eq!(paths.len(), 3, "{paths:?}");
}

#[test]
fn ten_thousand_files_on_a_real_disk() {
    let ground = Ground::on_disk();
    let (mut old, mut new) = (tree([]), tree([]));
    for n in 0..10_000 {
        let dir_path = format!("d{}", n % 100).into_bytes();
        old.insert(dir_path.clone(), dir());
        new.insert(dir_path, dir());
        let path = format!("d{}/f{n}", n % 100).into_bytes();
        if n % 5 != 0 {
            old.insert(path.clone(), file(&format!("old {n}")));
        }
        if n % 7 != 0 {
            new.insert(path, file(&format!("new {n}")));
        }
    }
    ground.build(&old);
    let items = ground.items(&old, &new);
    let before = std::time::Instant::now();
    let outcome = ground.go(&items, None).unwrap();
    eprintln!("{} items in {:?}", items.len(), before.elapsed());
    assert_eq!(outcome.left, []);
    assert!(ground.read() == new);
}

/// Notes what is synced.
#[derive(Debug, Default)]
struct Syncs(std::sync::Mutex<Vec<&'static str>>);

impl TouchHook for Syncs {
    fn before(&self, touch: &Touch<'_>) -> std::io::Result<()> {
        self.0.lock().unwrap().push(touch.call);
        Ok(())
    }
}

#[test]
fn new_files_are_synced_before_they_move_and_directories_last() {
    let ground = Ground::new();
    for count in [3, 40] {
        let (mut old, mut new) = (tree([]), tree([]));
        for n in 0..count {
            old.insert(format!("f{n}").into_bytes(), file(&format!("old {n}")));
            new.insert(format!("f{n}").into_bytes(), file(&format!("new {n}")));
        }
        ground.build(&old);
        let syncs = Syncs::default();
        ground.go(&ground.items(&old, &new), Some(&syncs)).unwrap();
        let calls = syncs.0.into_inner().unwrap();
        let first_move = calls.iter().position(|call| *call == "renameat2").unwrap();
        let synced = |call: &&&str| matches!(**call, "fsync" | "syncfs");
        let before = calls[..first_move].iter().filter(synced).count();
        assert_eq!(before, if count == 3 { 3 } else { 1 });
        assert!(synced(&calls.last().unwrap()), "{:?}", calls.last());
    }
}

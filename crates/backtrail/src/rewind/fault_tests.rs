//! Calls that fail: the tree is exactly new or exactly old, and the outcome says
//! which.

use std::os::unix::ffi::OsStrExt;

use super::kit_tests::*;
use super::path_change::PathChange;

const EIO: i32 = 5;
const EACCES: i32 = 13;
const EXDEV: i32 = 18;
const ENOSPC: i32 = 28;

fn pair() -> (Tree, Tree) {
    let old = tree([
        ("a", file("one")),
        ("c", file("gone")),
        ("d", dir()),
        ("d/e", file("in a directory")),
        ("f", file("becomes a directory")),
        ("l", link("a")),
        ("m", file("mode")),
        ("s", Stuff::Dir(0o755)),
    ]);
    let new = tree([
        ("", Stuff::Dir(0o750)),
        ("a", file("two")),
        ("d", file("was a directory")),
        ("f", Stuff::Dir(0o555)),
        ("f/g", file("deep")),
        ("l", link("b")),
        ("m", Stuff::File(0o600, b"mode".to_vec())),
        ("s", Stuff::Dir(0o500)),
        ("z", file("new")),
    ]);
    (old, new)
}

/// Checks that the outcome is true, and returns whether the work is done.
fn settled(
    ground: &Ground,
    items: &[PathChange],
    (old, new): (&Tree, &Tree),
    calls: &Calls,
    what: &str,
) -> bool {
    match ground.go(items, Some(calls)) {
        // The clean-up failed, or nothing was done at all; only the journal knows which.
        Err(_) if ground.read() == *old => false,
        Err(_) => {
            let outcome = ground.resume(items, None).unwrap();
            assert_eq!(outcome.left, [], "{what}");
            assert_eq!(ground.read(), *new, "{what}");
            true
        }
        Ok(outcome) if outcome.rolled_back.is_some() => {
            assert_eq!(outcome.left, [], "{what}: {:?}", calls.names);
            assert_eq!(ground.read(), *old, "{what}");
            false
        }
        Ok(outcome) => {
            assert_eq!(outcome.left, [], "{what}");
            assert_eq!(ground.read(), *new, "{what}");
            true
        }
    }
}

#[test]
fn calls_that_fail_leave_the_tree_exactly_new_or_exactly_old() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let (mut done, mut undone) = (0, 0);
    for code in [EIO, EACCES, EXDEV, ENOSPC] {
        for times in 1..=3 {
            for n in 0.. {
                ground.build(&old);
                let calls = Calls::new(&ground, At::Fail(n, times, code));
                let what = format!("error {code} {times} times at call {n}");
                match settled(&ground, &items, (&old, &new), &calls, &what) {
                    true => done += 1,
                    false => undone += 1,
                }
                if calls.made() <= n {
                    break;
                }
            }
        }
    }
    assert!(done > 100 && undone > 100, "{done} and {undone}");
}

#[test]
fn a_call_that_always_fails_for_one_path_puts_all_back() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let mut undone = 0;
    for item in &items {
        for call in ["renameat2", "mkdirat", "fchmod", "unlinkat"] {
            // What was staged could not be removed either.
            if call == "unlinkat" && item.stages() {
                continue;
            }
            ground.build(&old);
            let before = marks(&ground, &old);
            let calls = Calls::new(&ground, At::Path(call, item.path.clone(), EIO));
            let outcome = match ground.go(&items, Some(&calls)) {
                Ok(outcome) => outcome,
                Err(_) if call == "fchmod" || call == "unlinkat" => continue,
                Err(error) => panic!("{call} {:?}: {error}", item.path),
            };
            let Some(error) = outcome.rolled_back else {
                assert_eq!(ground.read(), new);
                continue;
            };
            undone += 1;
            assert_eq!(outcome.left, []);
            assert_eq!(ground.read(), old, "{call} {:?}", item.path);
            assert_eq!(marks(&ground, &old), before, "{call} {:?}", item.path);
            assert_eq!(error.path(), Some(ground.root().join(&item.path).as_path()));
            assert!(error.to_string().contains(call), "{error}");
        }
    }
    assert!(undone >= 8, "{undone}");
}

#[test]
fn a_lasting_failure_leaves_the_tree_as_it_was_or_the_work_open_with_every_path_named() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let (mut open, mut closed) = (0, 0);
    for n in 0.. {
        ground.build(&old);
        let calls = Calls::new(&ground, At::Crash(n));
        match ground.go(&items, Some(&calls)) {
            Ok(outcome) if outcome.rolled_back.is_some() => {
                let mut now = ground.read();
                now.retain(|path, _| !path.starts_with(b".backtrail-"));
                assert_eq!(now, old, "call {n}");
                closed += 1;
            }
            Ok(_) => break,
            Err(_) => {
                let root = ground.root();
                let progress = ground.work(&root, &items, None).progress().unwrap();
                let named = progress.waiting.iter().chain(&progress.moved);
                let named = named.chain(progress.other.iter().map(|other| &other.path));
                assert_eq!(named.count(), items.len(), "call {n}");
                let now = ground.read();
                for path in &progress.waiting {
                    let path = path.as_os_str().as_bytes();
                    let is_file = |tree: &Tree| matches!(tree.get(path), Some(Stuff::File(..)));
                    if is_file(&old) && is_file(&new) {
                        assert_eq!(now.get(path), old.get(path), "call {n}: {path:?}");
                    }
                }
                for path in &progress.moved {
                    let path = path.as_os_str().as_bytes();
                    assert_eq!(now.get(path), new.get(path), "call {n}: {path:?}");
                }
                let outcome = ground.resume(&items, None).unwrap();
                assert_eq!(outcome.left, [], "call {n}");
                assert_eq!(ground.read(), new, "call {n}");
                open += 1;
            }
        }
    }
    assert!(open > 10 && closed > 0, "{open} and {closed}");
}

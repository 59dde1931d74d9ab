//! A crash at every call, and again while resuming: the next attempt brings the tree to
//! its new state, and nothing staged is left.

use super::kit_tests::*;
use super::path_change::PathChange;

/// Trees between which everything happens: kinds and modes change, directories come and
/// go.
fn pairs() -> Vec<(Tree, Tree)> {
    let old = tree([
        ("a", file("one")),
        ("b", link("a")),
        ("c", file("gone")),
        ("d", dir()),
        ("d/e", file("in a directory")),
        ("f", file("becomes a directory")),
        ("k", file("the same")),
        ("m", Stuff::File(0o644, b"mode".to_vec())),
        ("r", Stuff::Dir(0o555)),
        ("r/x", file("read-only")),
        ("s", Stuff::Dir(0o755)),
    ]);
    let new = tree([
        ("", Stuff::Dir(0o750)),
        ("a", file("two")),
        ("b", file("no link any more")),
        ("d", file("was a directory")),
        ("f", Stuff::Dir(0o555)),
        ("f/g", Stuff::Dir(0o700)),
        ("f/g/h", link("nowhere")),
        ("f/i", Stuff::File(0o4711, vec![7; 5000])),
        ("k", file("the same")),
        ("m", Stuff::File(0o600, b"mode".to_vec())),
        ("r", Stuff::Dir(0o555)),
        ("r/x", file("changed")),
        ("s", Stuff::Dir(0o500)),
    ]);
    let mut pairs = vec![(old.clone(), new.clone()), (new, old)];
    for seed in 0..12 {
        let mut dice = Dice::new(seed + 7000);
        let old = dice.tree(is_root());
        let new = dice.change(&old, is_root());
        pairs.push((old, new));
    }
    pairs
}

fn carried_on(ground: &Ground, items: &[PathChange], new: &Tree, what: &str) {
    let outcome = ground.resume(items, None);
    let outcome = outcome
        .unwrap_or_else(|error| panic!("{what}: {error}: {:?}", std::error::Error::source(&error)));
    assert_eq!(outcome.left, [], "{what}");
    assert!(outcome.rolled_back.is_none(), "{what}");
    assert_eq!(&ground.read(), new, "{what}");
    // Once more, when there is nothing left to do.
    let outcome = ground.resume(items, None).unwrap();
    assert_eq!(outcome.left, [], "{what}");
    assert_eq!(&ground.read(), new, "{what}");
}

/// Crashes at the nth call; `None` if the work is done before.
fn crash(ground: &Ground, items: &[PathChange], n: usize) -> Option<()> {
    let calls = Calls::new(ground, At::Crash(n));
    let done = ground.go(items, Some(&calls));
    if calls.made() <= n {
        assert!(done.unwrap().rolled_back.is_none());
        return None;
    }
    // After the crash nothing was touched, however the code handled the failure.
    let then = calls.then.lock().unwrap().take();
    if let Some(then) = then {
        assert_eq!(ground.read(), then, "crash at {n}");
    }
    Some(())
}

#[test]
fn a_crash_at_every_call_is_resumed_to_the_new_tree() {
    let ground = Ground::new();
    for (number, (old, new)) in pairs().into_iter().enumerate() {
        let items = ground.items(&old, &new);
        for n in 0.. {
            ground.build(&old);
            if crash(&ground, &items, n).is_none() {
                assert_eq!(ground.read(), new);
                assert!(n > 3 || items.is_empty() || number > 1, "{n} calls");
                break;
            }
            carried_on(&ground, &items, &new, &format!("pair {number}, call {n}"));
        }
    }
}

#[test]
fn a_crash_while_resuming_is_resumed_as_well() {
    let ground = Ground::new();
    for (number, (old, new)) in pairs().into_iter().take(5).enumerate() {
        let items = ground.items(&old, &new);
        'first: for n in (0..).step_by(if number < 2 { 3 } else { 1 }) {
            for m in 0.. {
                ground.build(&old);
                if crash(&ground, &items, n).is_none() {
                    break 'first;
                }
                let calls = Calls::new(&ground, At::Crash(m));
                let done = ground.resume(&items, Some(&calls));
                if calls.made() <= m {
                    assert_eq!(done.unwrap().left, [], "pair {number}, {n}, {m}");
                    break;
                }
                if let Some(then) = calls.then.lock().unwrap().take() {
                    assert_eq!(ground.read(), then, "pair {number}, crash at {n}, then {m}");
                }
                let what = format!("pair {number}, call {n}, then {m}");
                carried_on(&ground, &items, &new, &what);
            }
        }
    }
}

#[test]
fn file_systems_that_cannot_exchange_names_work_as_well() {
    let ground = Ground::new();
    for (number, (old, new)) in pairs().into_iter().take(2).enumerate() {
        let items = ground.items(&old, &new);
        for n in 0.. {
            ground.build(&old);
            let calls = Calls::new(&ground, At::Unknown("renameat2"));
            let crashing = Both(calls, Calls::new(&ground, At::Crash(n)));
            let done = ground.go(&items, Some(&crashing));
            if crashing.1.made() <= n {
                assert_eq!(done.unwrap().left, []);
                assert_eq!(ground.read(), new);
                break;
            }
            carried_on(&ground, &items, &new, &format!("pair {number}, call {n}"));
        }
    }
}

#[test]
fn a_workspace_that_is_gone_is_created_again() {
    let ground = Ground::new();
    let new = tree([("", Stuff::Dir(0o750)), ("a", file("one")), ("d", dir())]);
    let items = ground.items(&Tree::new(), &new);
    for n in 0.. {
        remove_all(&ground.root());
        let calls = Calls::new(&ground, At::Crash(n));
        let done = ground.go(&items, Some(&calls));
        if calls.made() <= n {
            assert_eq!(done.unwrap().left, []);
            break;
        }
        carried_on(&ground, &items, &new, &format!("call {n}"));
    }
    assert_eq!(ground.read(), new);
}

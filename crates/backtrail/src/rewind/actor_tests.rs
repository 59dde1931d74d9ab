//! Somebody else changes files between any two calls: not a byte of theirs is lost,
//! nothing outside is touched, and what could not be restored is named.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::apply::WorkResult;
use super::kit_tests::*;
use super::path_change::PathChange;
use crate::error::{ErrorKind, Result};

const THEIRS: &[u8] = b"written by somebody else";

fn pair() -> (Tree, Tree) {
    let old = tree([
        ("a", file("one")),
        ("c", file("gone")),
        ("d", dir()),
        ("d/e", file("in a directory")),
        ("d/h", file("goes")),
        ("f", file("becomes a directory")),
        ("g", dir()),
        ("g/i", file("goes with its directory")),
        ("l", link("a")),
        ("m", file("mode")),
    ]);
    let new = tree([
        ("a", file("two")),
        ("d", dir()),
        ("d/e", file("another in a directory")),
        ("d/n", file("new in a directory")),
        ("f", dir()),
        ("f/g", file("deep")),
        ("l", file("was a link")),
        ("m", Stuff::File(0o600, b"mode".to_vec())),
        ("z", file("new")),
    ]);
    (old, new)
}

/// What somebody does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Write,
    Replace,
    WriteWithOldTimes,
    Delete,
    IntoDir,
}

fn deed(deed: Deed, path: &PathBuf) -> bool {
    match deed {
        // In place, and never through a link.
        Deed::Write => {
            let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
            let is_new = fs::symlink_metadata(path).is_err();
            (is_file || is_new) && fs::write(path, THEIRS).is_ok()
        }
        Deed::WriteWithOldTimes => {
            let Ok(meta) = fs::symlink_metadata(path) else {
                return false;
            };
            if !meta.is_file() {
                return false;
            }
            let len = usize::try_from(meta.len()).unwrap();
            fs::write(path, vec![b'x'; len]).unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(meta.modified().unwrap()).unwrap();
            true
        }
        Deed::Replace => {
            let beside = path.with_file_name("by-rename");
            if fs::write(&beside, THEIRS).is_err() {
                return false;
            }
            let done = fs::rename(&beside, path).is_ok();
            if !done {
                fs::remove_file(&beside).unwrap();
            }
            done
        }
        Deed::Delete => fs::remove_file(path).is_ok(),
        Deed::IntoDir => {
            fs::remove_file(path).ok();
            fs::create_dir(path).is_ok() && fs::write(path.join("in"), THEIRS).is_ok()
        }
    }
}

/// Runs the work with somebody acting before the nth call; `None` if there are fewer
/// calls.
fn with_actor(
    ground: &Ground,
    items: &[PathChange],
    n: usize,
    act: impl Fn() -> bool + Send + Sync + 'static,
) -> Option<(bool, Result<WorkResult>)> {
    let acted = Arc::new(AtomicUsize::new(0));
    let noted = acted.clone();
    let at = At::Act(
        n,
        Box::new(move || {
            noted.fetch_add(usize::from(act()), Ordering::SeqCst);
        }),
    );
    let calls = Calls::new(ground, at);
    let done = ground.go(items, Some(&calls));
    (calls.made() > n).then(|| (acted.load(Ordering::SeqCst) > 0, done))
}

fn theirs_is_somewhere(ground: &Ground, what: &str) {
    let is_theirs = |bytes: &Vec<u8>| bytes == THEIRS || bytes.iter().all(|byte| *byte == b'x');
    let found = ground.bytes();
    let mut found = found.iter().filter(|bytes| !bytes.is_empty());
    assert!(found.any(is_theirs), "{what}: their bytes are lost");
}

#[test]
fn changes_between_any_two_calls_are_never_lost() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let (mut left, mut refused, mut done) = (0, 0, 0);
    let paths: Vec<&Vec<u8>> = old
        .keys()
        .chain(new.keys())
        .filter(|path| !path.is_empty())
        .collect();
    for path in paths {
        for what in [
            Deed::Write,
            Deed::Replace,
            Deed::WriteWithOldTimes,
            Deed::IntoDir,
        ] {
            for n in 0.. {
                ground.build(&old);
                let at = ground.at_path(path);
                let Some((acted, outcome)) =
                    with_actor(&ground, &items, n, move || deed(what, &at))
                else {
                    break;
                };
                let name = format!(
                    "{what:?} {:?} before call {n}",
                    String::from_utf8_lossy(path)
                );
                if acted {
                    theirs_is_somewhere(&ground, &name);
                }
                match outcome {
                    Ok(outcome) if acted && !outcome.left.is_empty() => {
                        left += 1;
                        others_are_done(&ground, &new, path, &outcome, &name);
                    }
                    Ok(outcome) => {
                        assert!(outcome.rolled_back.is_none(), "{name}: {outcome:?}");
                        done += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{name}: {error}");
                        assert!(acted, "{name}");
                        refused += 1;
                    }
                }
                no_staging(&ground, &name);
            }
        }
    }
    assert!(
        left > 50 && refused > 50 && done > 50,
        "{left} {refused} {done}"
    );
}

/// Checks that everything is new except the path that somebody touched, and what is below
/// or above it.
fn others_are_done(ground: &Ground, new: &Tree, path: &[u8], outcome: &WorkResult, name: &str) {
    let is_named = outcome.left.iter().any(|left| {
        let left = left.path.as_os_str().as_bytes();
        left == path || path.starts_with(&[left, b"/"].concat()) || left.starts_with(path)
    });
    assert!(is_named, "{name}: not named in {:?}", outcome.left);
    let now = ground.read();
    for (at, stuff) in new {
        let related = at.starts_with(path) || path.starts_with(at.as_slice());
        assert!(
            related || now.get(at) == Some(stuff),
            "{name}: {:?}",
            String::from_utf8_lossy(at)
        );
    }
}

fn no_staging(ground: &Ground, name: &str) {
    let staging = ground
        .read()
        .into_keys()
        .find(|path| path.starts_with(b".backtrail-staging-"));
    assert_eq!(staging, None, "{name}");
}

#[test]
fn deletions_between_any_two_calls_stay_or_are_restored() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    for path in old.keys().chain(new.keys()).filter(|path| !path.is_empty()) {
        for n in 0.. {
            ground.build(&old);
            let at = ground.at_path(path);
            let Some((_, outcome)) =
                with_actor(&ground, &items, n, move || deed(Deed::Delete, &at))
            else {
                break;
            };
            let name = format!("{:?} before call {n}", String::from_utf8_lossy(path));
            match outcome {
                Ok(outcome) => assert!(outcome.rolled_back.is_none(), "{name}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{name}"),
            }
            no_staging(&ground, &name);
        }
    }
}

#[test]
fn a_directory_that_becomes_a_link_is_not_followed() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let outside = tree([
        ("e", file("outside")),
        ("h", file("outside too")),
        ("g", file("and this")),
        ("i", file("and that")),
    ]);
    let mut named = 0;
    for parent in ["d", "f", "g"] {
        for moved in [false, true] {
            for n in 0.. {
                ground.build(&old);
                remove_all(&ground.outside());
                build(&ground.outside(), &outside);
                let (at, to) = (ground.root().join(parent), ground.outside());
                let aside = ground.root().join("aside");
                let swap = move || {
                    if moved {
                        fs::rename(&at, &aside).ok();
                    } else {
                        remove_all(&at);
                    }
                    fs::remove_file(&at).ok();
                    symlink(&to, &at).is_ok()
                };
                let Some((_, outcome)) = with_actor(&ground, &items, n, swap) else {
                    break;
                };
                let name = format!("{parent} before call {n}");
                assert_eq!(read(&ground.outside()), outside, "{name}");
                match outcome {
                    Ok(outcome) => named += outcome.left.len(),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{name}: {error}"),
                }
                for bytes in ["in a directory", "goes", "goes with its directory"] {
                    assert!(ground.has(bytes.as_bytes()), "{name}: {bytes}");
                }
            }
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn resuming_after_a_crash_and_other_changes_loses_nothing() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let paths: Vec<&Vec<u8>> = old
        .keys()
        .chain(new.keys())
        .filter(|path| !path.is_empty())
        .collect();
    for path in paths {
        for what in [Deed::Write, Deed::Replace, Deed::IntoDir] {
            for n in 0.. {
                ground.build(&old);
                let calls = Calls::new(&ground, At::Crash(n));
                ground.go(&items, Some(&calls)).ok();
                if calls.made() <= n {
                    break;
                }
                let acted = deed(what, &ground.at_path(path));
                let name = format!(
                    "{what:?} {:?} after call {n}",
                    String::from_utf8_lossy(path)
                );
                let outcome = ground.resume(&items, None);
                let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
                if acted {
                    theirs_is_somewhere(&ground, &name);
                    let named = outcome.left.iter().any(|left| {
                        let left = left.path.as_os_str().as_bytes();
                        path.starts_with(left) || left.starts_with(path)
                    });
                    // Or they gave it the new content themselves.
                    let is_new = ground.read().get(path) == new.get(path);
                    assert!(named || is_new, "{name}: {:?}", outcome.left);
                } else {
                    assert_eq!(ground.read(), new, "{name}");
                }
                no_staging(&ground, &name);
            }
        }
    }
}

/// Tests only every nth case; `EVERY=1` in the environment tests all of them.
fn every(some: usize) -> usize {
    let all = std::env::var_os("EVERY").is_some();
    if all { 1 } else { some }
}

#[test]
fn changes_while_a_step_resumes_are_never_lost() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let mut acted_on = 0;
    for path in ["a", "c", "d/e", "f", "l", "z"] {
        for what in [Deed::Write, Deed::Replace, Deed::IntoDir, Deed::Delete] {
            for n in (0..).step_by(every(9)) {
                ground.build(&old);
                let calls = Calls::new(&ground, At::Crash(n));
                ground.go(&items, Some(&calls)).ok();
                if calls.made() <= n {
                    break;
                }
                for m in (0..).step_by(every(2)) {
                    ground.build(&old);
                    ground
                        .go(&items, Some(&Calls::new(&ground, At::Crash(n))))
                        .ok();
                    let acted = Arc::new(AtomicUsize::new(0));
                    let (noted, at) = (acted.clone(), ground.root().join(path));
                    let act = Box::new(move || {
                        noted.fetch_add(usize::from(deed(what, &at)), Ordering::SeqCst);
                    });
                    let calls = Calls::new(&ground, At::Act(m, act));
                    let outcome = ground.resume(&items, Some(&calls));
                    if calls.made() <= m {
                        break;
                    }
                    let name = format!("{what:?} {path} after call {n}, before {m}");
                    outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
                    if acted.load(Ordering::SeqCst) > 0 && what != Deed::Delete {
                        acted_on += 1;
                        theirs_is_somewhere(&ground, &name);
                    }
                    no_staging(&ground, &name);
                }
            }
        }
    }
    assert!(acted_on > 500, "{acted_on}");
}

#[test]
fn writes_to_a_file_that_was_moved_are_saved() {
    let ground = Ground::new();
    let (old, new) = pair();
    let items = ground.items(&old, &new);
    let mut saved = 0;
    for n in 0.. {
        ground.build(&old);
        // Programs that hold files open and write at any moment.
        let open = |path| {
            fs::File::options()
                .append(true)
                .open(ground.root().join(path))
                .unwrap()
        };
        let files = ["a", "c", "d/e"].map(open);
        let write = move || {
            files.iter().for_each(|mut file| {
                std::io::Write::write_all(&mut file, THEIRS).unwrap();
            });
        };
        let calls = Calls::new(&ground, At::Act(n, Box::new(write)));
        let outcome = ground.go(&items, Some(&calls));
        if calls.made() <= n {
            break;
        }
        let Ok(outcome) = outcome else { continue };
        // Once a file was removed from the staging directory, programs that hold it open have
        // the only copy.
        let names = calls.names.into_inner().unwrap();
        for (path, bytes) in [("a", "one"), ("c", "gone"), ("d/e", "in a directory")] {
            if names[..=n].contains(&format!("unlinkat {path}")) {
                continue;
            }
            let whole = [bytes.as_bytes(), THEIRS].concat();
            assert!(ground.bytes().contains(&whole), "call {n}: {path} is lost");
            let is_named = |left: &super::outcome::NotRestored| left.path.as_os_str() == path;
            assert!(
                outcome.left.iter().any(is_named),
                "call {n}: {path} is not named"
            );
            saved += 1;
        }
        no_staging(&ground, &format!("call {n}"));
    }
    assert!(saved > 20, "{saved}");
}

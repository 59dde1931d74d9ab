//! The system refuses every change from some moment on: a file system that became
//! read-only, for example. What cannot be put back stays open until it can be finished, and
//! no half state counts as the user's edits (F37).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backtrail::rewind::{Touch, TouchHook, Unfinished};
use backtrail::{CheckpointOptions, Point, Rewind, SessionId};

use super::kit::{Lab, done, options, turn};
use crate::snapshots::tree::Tree;

const EROFS: i32 = 30;
const FILES: usize = 5;

/// Refuses every change after the next few; none if the number is large.
#[derive(Debug, Clone)]
struct ReadOnlyAfter(Arc<AtomicUsize>);

impl ReadOnlyAfter {
    fn never() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    fn set(&self, after: usize) {
        self.0.store(after, Ordering::SeqCst);
    }
}

impl TouchHook for ReadOnlyAfter {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        // What only reads, or makes durable what is there.
        if ["read", "fsync", "syncfs"].contains(&touch.call) {
            return Ok(());
        }
        let next = |left: usize| left.checked_sub(1);
        match self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next)
        {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::from_raw_os_error(EROFS)),
        }
    }
}

/// A workspace after a turn that changed files, deleted one and created one.
struct Stuck {
    lab: Lab,
    hook: ReadOnlyAfter,
    session: SessionId,
    before: Tree,
    after: Tree,
}

impl Stuck {
    fn new() -> Self {
        let hook = ReadOnlyAfter::never();
        let lab = Lab::with(options(1).touch_hook(hook.clone()));
        for n in 0..FILES {
            lab.write(&format!("{n}"), "old");
        }
        lab.write("gone", "old");
        let session = lab.session();
        lab.keep();
        let before = lab.tree();
        turn(&session, "change all", || {
            for n in 0..FILES {
                lab.write(&format!("{n}"), "new");
            }
            lab.write("d/made", "new");
            std::fs::remove_file(lab.path("gone")).unwrap();
        });
        let id = session.id().clone();
        session.close().unwrap();
        let after = lab.tree();
        Self {
            lab,
            hook,
            session: id,
            before,
            after,
        }
    }

    /// Rewinds, with every change refused after some. Returns how far it is if it is
    /// stuck; `None` if the tree is as it was, or the rewind is done.
    fn rewind(&self, after: usize) -> Option<Unfinished> {
        self.hook.set(after);
        let point = Point::record(&self.session, 0);
        let rewound = self.lab.workspace.rewind(&point, Rewind::files_and_chat());
        let unfinished = self.lab.workspace.unfinished().unwrap();
        let tree = self.tree();
        match (rewound, &unfinished) {
            (Ok(outcome), None) => {
                done(outcome);
                assert_eq!(tree, self.before);
            }
            (Err(_), None) => assert_eq!(tree, self.after, "after {after}"),
            (Err(error), Some(_)) => {
                assert!(error.to_string().contains("half done"), "{error}");
            }
            (Ok(outcome), Some(_)) => panic!("after {after}: {outcome:?}"),
        }
        unfinished
    }

    /// Returns the tree without what is staged.
    fn tree(&self) -> Tree {
        let mut tree = self.lab.tree();
        tree.retain(|path, _| !path.to_string_lossy().contains("backtrail-"));
        tree
    }

    fn is_rewound(&self) -> bool {
        let reader = self.lab.store.read_session(&self.session).unwrap();
        reader.records_from(1).unwrap().next().unwrap().is_none()
    }
}

// F15
#[test]
fn f15_a_rewind_that_can_go_neither_forward_nor_back_is_finished_by_the_next_command_that_can() {
    let (mut stuck, mut n) = (0, 0);
    loop {
        let case = Stuck::new();
        let unfinished = case.rewind(n);
        let Some(unfinished) = unfinished else {
            if case.tree() == case.before {
                break;
            }
            n += 1;
            continue;
        };
        stuck += 1;
        let workspace = &case.lab.workspace;
        // Every path is named, and nothing else happens until it is finished.
        let Unfinished {
            moved,
            waiting,
            other,
            ..
        } = &unfinished;
        let named = moved
            .iter()
            .chain(waiting)
            .chain(other.iter().map(|other| &other.path));
        let mut named: Vec<&PathBuf> = named.collect();
        named.sort();
        named.dedup();
        // Five files, the deleted one, and the new one with its directory.
        assert_eq!(named.len(), FILES + 3, "after {n}: {unfinished:?}");
        assert!(workspace.checkpoint(CheckpointOptions::new()).is_err());
        assert!(workspace.undo(Rewind::files()).is_err());
        // Reading works.
        assert!(workspace.checkpoints().unwrap().count() > 1);
        assert!(!case.is_rewound());
        case.hook.set(usize::MAX);
        case.lab.keep();
        assert_eq!(case.lab.tree(), case.before, "after {n}");
        assert!(case.is_rewound(), "after {n}");
        assert!(workspace.unfinished().unwrap().is_none());
        done(workspace.undo(Rewind::files_and_chat()).unwrap().unwrap());
        assert_eq!(case.lab.tree(), case.after, "after {n}");
        assert!(!case.is_rewound());
        n += 1;
    }
    assert!(stuck > 5, "{stuck} of {n}");
}

// F15
#[test]
fn f15_a_rewind_that_cannot_be_finished_is_closed_by_the_users_word() {
    let mut stuck = 0;
    for n in 0..60 {
        for works_again in [false, true] {
            let case = Stuck::new();
            if case.rewind(n).is_none() {
                continue;
            }
            stuck += 1;
            if works_again {
                case.hook.set(usize::MAX);
            }
            let workspace = &case.lab.workspace;
            let mixed = case.tree();
            let unfinished = workspace.unfinished().unwrap().unwrap();
            let recovered = workspace.abandon_unfinished().unwrap().unwrap();
            let named =
                |path: &PathBuf| recovered.not_restored.iter().any(|left| left.path == *path);
            assert!(unfinished.moved.iter().all(named), "after {n}");
            assert!(unfinished.waiting.iter().all(named), "after {n}");
            assert!(recovered.abandoned.is_some() && recovered.now.is_none());
            assert_eq!(case.tree(), mixed, "after {n}");
            for path in mixed.keys() {
                let is_new = mixed.get(path) != case.after.get(path);
                let name = path.to_string_lossy();
                let is_named = || recovered.not_restored.iter().any(|left| left.path == *path);
                assert!(
                    name.is_empty() || !is_new || is_named(),
                    "after {n}: {name}"
                );
            }
            assert!(workspace.unfinished().unwrap().is_none());
            assert!(workspace.abandon_unfinished().unwrap().is_none());
            case.hook.set(usize::MAX);
            // It goes on from there, and every earlier state can be reached.
            case.lab.keep();
            let first = workspace.checkpoints().unwrap().next().unwrap().unwrap();
            let point = Point::checkpoint(first.id());
            done(
                workspace
                    .rewind(&point, Rewind::files().overwrite())
                    .unwrap(),
            );
            assert_eq!(case.tree(), case.before, "after {n}");
            case.lab.verify();
        }
    }
    assert!(stuck > 10, "{stuck}");
}

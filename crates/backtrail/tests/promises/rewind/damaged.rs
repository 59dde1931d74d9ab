//! One damaged object costs the paths that need it, and nothing else: every object of a
//! history is damaged in turn, and every way of going back is tried.
//!
//! The truth is what the files were, and a reader that asks for one path after the other.
//! Without `skip_damaged`, nothing is touched and what is lost is named; with it, all else
//! is restored, and what is lost stays as it is.

use std::fs;
use std::path::{Path, PathBuf};

use backtrail::rewind::{ForkInto, Stage};
use backtrail::{
    CheckpointOptions, Error, ErrorKind, Outcome, Point, Rewind, SessionOptions, Store, Workspace,
};
use tempfile::TempDir;

use super::kit::{is_tree, quick_dir, turn, write};
use crate::snapshots::tree::{Thing, Tree, read_tree};

/// A history of a store, with the files at its points.
struct History {
    dir: TempDir,
    points: Vec<(Point, Tree)>,
}

/// A way of going back.
#[derive(Debug, Clone, Copy)]
enum Way {
    Rewind(usize),
    Restore(usize),
    Undo,
    Redo,
    Fork(usize),
}

/// What a history consists of.
const PARTS: [&str; 2] = ["store", "work"];
const RESTORED: [&str; 3] = ["src", "a.txt", "many/07"];

fn open(dir: &Path) -> (Store, Workspace) {
    let store = Store::open_or_create(dir.join("store")).unwrap();
    let workspace = store.workspace(&dir.join("work")).unwrap();
    (store, workspace)
}

fn history(is_undone: bool) -> History {
    let dir = quick_dir();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let (store, workspace) = open(dir.path());
    let put = |name: &str, text: &str| write(&work, name, text);
    let gone = |name: &str| fs::remove_file(work.join(name)).unwrap();
    let name = |n: usize| format!("many/{n:02}");
    put("a.txt", "one\n");
    put("src/lib.rs", "first\n");
    put("src/deep/x.rs", "x at first\n");
    put("src/deep/y.rs", "y\n");
    put("thing", "a file\n");
    put("big", &"large ".repeat(1 << 18));
    // A listing of several nodes.
    (0..90).for_each(|n| put(&name(n), "same\n"));
    std::os::unix::fs::symlink("a.txt", work.join("link")).unwrap();
    let mut points = Vec::new();
    let mut point = |checkpoint: backtrail::Checkpoint| {
        let id = checkpoint.id().to_string();
        points.push((id.parse().unwrap(), read_tree(&work)));
    };
    point(workspace.checkpoint(CheckpointOptions::new()).unwrap());
    let session = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(session).unwrap();
    point(turn(&session, "one", || {
        put("src/lib.rs", "second\n");
        put("src/deep/x.rs", "x changed\n");
        put("new/one", "new\n");
        gone("a.txt");
        put("many/07", "other\n");
    }));
    point(turn(&session, "two", || {
        put("src/deep/x.rs", "x changed again\n");
        put("new/two", "new, too\n");
        gone("many/33");
        put("many/95", "added\n");
        put("big", &"larger ".repeat(1 << 18));
        gone("thing");
        put("thing/inner", "inside\n");
    }));
    point(turn(&session, "three", || {
        put("src/deep/x.rs", "x at last\n");
        put("src/deep/z.rs", "z\n");
        fs::remove_dir_all(work.join("new")).unwrap();
        put("many/50", "fifty\n");
        put("a.txt", "one\n");
    }));
    session.close().unwrap();
    if is_undone {
        let undone = workspace.undo(Rewind::files_and_chat()).unwrap().unwrap();
        assert_eq!(undone.stage, Stage::Done);
    }
    drop((store, workspace));
    let saved = dir.path().join("saved");
    fs::create_dir(&saved).unwrap();
    for part in PARTS {
        copy(&dir.path().join(part), &saved.join(part));
    }
    History { dir, points }
}

impl History {
    /// Makes everything as it was, in the same place.
    fn reset(&self) {
        let dir = self.dir.path();
        for part in PARTS {
            fs::remove_dir_all(dir.join(part)).unwrap();
            copy(&dir.join("saved").join(part), &dir.join(part));
        }
        // There may be none.
        fs::remove_dir_all(dir.join("fork")).ok();
    }
}

/// Returns where the bodies of all objects are in a pack, by docs/format.md.
fn bodies(pack: &[u8]) -> Vec<usize> {
    let mut at = 16;
    let mut bodies = Vec::new();
    while let Some(header) = pack.get(at..at + 16) {
        let stored = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize;
        assert_eq!(header[..2], [0xba, 0x7c], "a block begins at {at}");
        if (1..=3).contains(&header[2]) {
            bodies.push(at + 16 + stored / 2);
        }
        at += 16 + stored;
    }
    bodies
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&path, &to),
            kind if kind.is_symlink() => {
                std::os::unix::fs::symlink(fs::read_link(path).unwrap(), to).unwrap();
            }
            _ => drop(fs::copy(path, to).unwrap()),
        }
    }
}

/// A history with one object damaged.
struct Case<'a> {
    history: &'a History,
    way: Way,
}

impl Case<'_> {
    fn root(&self) -> PathBuf {
        self.history.dir.path().join("work")
    }

    fn into(&self) -> PathBuf {
        self.history.dir.path().join("fork")
    }

    /// Returns the point that it goes to, and its files.
    fn target(&self) -> &(Point, Tree) {
        let last = self.history.points.len() - 1;
        &self.history.points[match self.way {
            Way::Rewind(n) | Way::Restore(n) | Way::Fork(n) => n,
            Way::Undo => last - 1,
            Way::Redo => last,
        }]
    }

    /// Returns whether a path is asked for.
    fn is_asked(&self, path: &Path) -> bool {
        match self.way {
            Way::Restore(_) => RESTORED.iter().any(|one| path.starts_with(one)),
            _ => true,
        }
    }

    /// Goes there, and returns what was not restored because it is damaged.
    fn go(&self, skips: bool) -> Result<Vec<PathBuf>, Error> {
        let (_, workspace) = open(self.history.dir.path());
        let point = &self.target().0;
        let options = match self.way {
            Way::Restore(_) => Rewind::files().paths(RESTORED).overwrite(),
            Way::Rewind(_) => Rewind::files().overwrite(),
            _ => Rewind::files_and_chat(),
        };
        let options = match skips {
            true => options.skip_damaged(),
            false => options,
        };
        let outcome: Outcome = match self.way {
            Way::Rewind(_) | Way::Restore(_) => workspace.rewind(point, options)?,
            Way::Undo => workspace.undo(options)?.unwrap(),
            Way::Redo => workspace.redo(options)?.unwrap(),
            Way::Fork(_) => {
                let fork = match skips {
                    true => ForkInto::new().skip_damaged(),
                    false => ForkInto::new(),
                };
                let forked = workspace.fork_into(point, &self.into(), fork)?;
                let not_restored = forked.not_restored.into_iter();
                return Ok(not_restored.map(|one| one.path).collect());
            }
        };
        assert_eq!(outcome.stage, Stage::Done, "{:?}", outcome.conflicts);
        for one in &outcome.not_restored {
            assert!(one.is_damaged(), "{one:?}");
            assert_eq!(one.reason, "damaged");
        }
        Ok(outcome
            .not_restored
            .into_iter()
            .map(|one| one.path)
            .collect())
    }

    /// Returns the paths of the target that one read after the other cannot get.
    fn lost(&self) -> Vec<PathBuf> {
        let (_, workspace) = open(self.history.dir.path());
        let (point, tree) = self.target();
        let Ok(snapshot) = workspace.resolve(point).unwrap().snapshot() else {
            return tree.keys().cloned().collect();
        };
        let is_lost = |path: &&PathBuf| match &tree[*path] {
            Thing::Dir { .. } => snapshot.entry(path).is_err(),
            _ => snapshot.read(path).is_err(),
        };
        let lost: Vec<PathBuf> = tree.keys().filter(is_lost).cloned().collect();
        // Reading one path names it, or the directory that is damaged on the way.
        for path in &lost {
            let error = snapshot.read(path).err();
            let error = error.or_else(|| snapshot.entry(path).err()).unwrap();
            let [named] = error.damaged() else {
                panic!("{path:?}: {error:?}");
            };
            assert!(is_below(path, named), "{path:?}: {error:?}");
            assert!(error.to_string().contains("of checkpoint "), "{error}");
        }
        lost
    }

    /// Checks that all is as it was then, apart from what is lost, and that this is named.
    fn check(&self, named: &[PathBuf], lost: &[PathBuf], before: &Tree) {
        let wanted = &self.target().1;
        let (found, before) = match self.way {
            Way::Fork(_) => (read_tree(&self.into()), &Tree::new()),
            _ => (read_tree(&self.root()), before),
        };
        let is_named = |path: &Path| named.iter().any(|one| is_below(path, one));
        for path in wanted.keys().chain(found.keys()).chain(before.keys()) {
            let right = match self.is_asked(path) {
                true => wanted.get(path),
                false => before.get(path),
            };
            if found.get(path) != right {
                assert!(
                    is_named(path),
                    "{path:?} is wrong, and not named: {named:?}"
                );
                assert_eq!(found.get(path), before.get(path), "{path:?} is as it was");
            }
        }
        for one in named {
            let is_lost = lost.iter().any(|path| is_below(path, one));
            assert!(is_lost, "{one:?} is named, and not lost: {lost:?}");
        }
    }

    fn run(&self) -> bool {
        let before = read_tree(&self.root());
        let lost = self.lost();
        let error = match self.go(false) {
            Ok(named) => {
                assert!(named.is_empty());
                self.check(&[], &lost, &before);
                return false;
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        is_tree(&self.root(), &before, "nothing was touched");
        assert!(!self.into().exists());
        let Ok(named) = self.go(true) else {
            // Without the root of the snapshot it is not even known what there was.
            assert!(matches!(self.way, Way::Fork(_)));
            assert_eq!(error.damaged(), [Path::new(".")]);
            return true;
        };
        assert_eq!(named, error.damaged());
        self.check(&named, &lost, &before);
        let is_changed = read_tree(&self.root()) != before;
        if is_changed && matches!(self.way, Way::Rewind(_) | Way::Restore(_)) {
            // Whatever was replaced can be had again.
            let (_, workspace) = open(self.history.dir.path());
            if let Some(undone) = workspace.undo(Rewind::files()).unwrap() {
                assert_eq!(undone.stage, Stage::Done);
                is_tree(&self.root(), &before, "undone");
            }
        }
        true
    }
}

/// Returns whether a path is another, or below it; `.` is above all.
fn is_below(path: &Path, above: &Path) -> bool {
    above == Path::new(".") || path.starts_with(above)
}

fn damage_each(history: &History, ways: &[Way]) {
    let packs = fs::read_dir(history.dir.path().join("store/objects")).unwrap();
    let packs: Vec<PathBuf> = packs.map(|entry| entry.unwrap().path()).collect();
    let (mut objects, mut refused) = (0, 0);
    for pack in packs {
        history.reset();
        let bytes = fs::read(&pack).unwrap();
        for body in bodies(&bytes) {
            objects += 1;
            for way in ways {
                history.reset();
                let mut damaged = bytes.clone();
                damaged[body] ^= 0x20;
                fs::write(&pack, damaged).unwrap();
                let case = Case { history, way: *way };
                println!("{way:?} with byte {body} of {} damaged", pack.display());
                refused += usize::from(case.run());
            }
        }
    }
    assert!(objects > 30, "{objects} objects");
    assert!(refused > 5, "{refused} were refused");
}

#[test]
fn a_damaged_object_costs_a_rewind_only_the_paths_that_need_it() {
    damage_each(&history(false), &[Way::Rewind(0), Way::Rewind(1)]);
}

#[test]
fn a_damaged_object_costs_a_restore_only_the_paths_that_need_it() {
    damage_each(&history(false), &[Way::Restore(0)]);
}

#[test]
fn a_damaged_object_costs_an_undo_only_the_paths_that_need_it() {
    damage_each(&history(false), &[Way::Undo]);
}

#[test]
fn a_damaged_object_costs_a_redo_only_the_paths_that_need_it() {
    damage_each(&history(true), &[Way::Redo]);
}

#[test]
fn a_damaged_object_costs_a_fork_only_the_paths_that_need_it() {
    damage_each(&history(false), &[Way::Fork(0), Way::Fork(2)]);
}

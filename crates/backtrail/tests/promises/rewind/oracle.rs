//! The oracle: every byte sequence that was on disk before a rewind, restore, undo
//! or redo is in the store or still on disk after it (F12, F15).
//!
//! Whatever the snapshots think of it: ignored files small and large, ignored
//! directories, files over the cap, files that cannot be read, special ones, files
//! that somebody writes while it continues; and also where it is killed at any step.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use backtrail::rewind::{OnConflict, Touch, TouchHook};
use backtrail::snapshot::FileKind;
use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, Point, Rewind, Store, Workspace};
use backtrail_testkit::MemoryStorage;

use super::actors::Dice;
use super::kit::{Checked, HOME, quick_dir, setting, told, verify};
use super::scene::next_process;

const CASES: u64 = 700;
/// Larger files are not captured.
const CAP: u64 = 3_000;
/// Larger files are not captured where they are ignored, and in no other case here.
const IGNORED_CAP: usize = 1 << 20;

const PATHS: [&str; 16] = [
    "a",
    "b",
    "d/a",
    "d",
    "x.log",
    "d/y.log",
    "build",
    "build/out",
    "build/deep/out",
    "d/build/out",
    "large",
    ".env",
    "d/.gitignore",
    "link",
    "big.log",
    "build.log",
];
const RULES: [&str; 4] = ["*.log\nbuild/\n", "build\n.env\n", "", "d/\n*.log\n"];

/// Changes a directory in all ways that matter here.
fn change(root: &Path, dice: &mut Dice, words: &mut u64) {
    *words += 1;
    let path = root.join(*dice.pick(&PATHS));
    match dice.below(12) {
        0 => remove(&path),
        1 => fs::write(root.join(".gitignore"), *dice.pick(&RULES)).unwrap(),
        2 => {
            make_way(root, &path);
            std::os::unix::fs::symlink("a", &path).unwrap();
        }
        3 => {
            make_way(root, &path);
            fs::create_dir(&path).unwrap();
        }
        4 if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file()) => {
            let mode = *dice.pick(&[0o000, 0o644, 0o755]);
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        5 => {
            make_way(root, &path);
            // Others make it a socket, or a device.
            let fifo = rustix::fs::FileType::Fifo;
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
        }
        _ => {
            make_way(root, &path);
            let mut bytes = format!("words {words}").into_bytes();
            match dice.below(20) {
                0..3 => bytes.resize(CAP as usize + 100, b'.'),
                3 if path.ends_with("big.log") => bytes.resize(IGNORED_CAP + 1, b'.'),
                _ => {}
            }
            fs::write(&path, bytes).unwrap();
        }
    }
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

fn make_way(root: &Path, path: &Path) {
    remove(path);
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.retain(|dir| dir.starts_with(root) && *dir != root);
    for dir in above.into_iter().rev() {
        if !fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()) {
            remove(dir);
            fs::create_dir(dir).unwrap();
        }
    }
}

type Contents = BTreeSet<Vec<u8>>;

/// Reads all files of a directory, also those that forbid it.
fn on_disk(dir: &Path, contents: &mut Contents) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            on_disk(&path, contents);
        } else if meta.is_file() {
            contents.insert(read_any(&path, &meta.permissions()));
        }
    }
}

fn read_any(path: &Path, permissions: &Permissions) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|_| {
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        let bytes = fs::read(path).unwrap();
        fs::set_permissions(path, permissions.clone()).unwrap();
        bytes
    })
}

/// Reads all files that any checkpoint has.
fn in_store(workspace: &Workspace, contents: &mut Contents) -> Checked {
    for checkpoint in workspace.checkpoints().map_err(told)? {
        let snapshot = checkpoint.and_then(|kept| kept.snapshot()).map_err(told)?;
        for entry in snapshot.entries() {
            let (path, state) = entry.map_err(told)?;
            if state.kind == FileKind::File {
                contents.extend(snapshot.read(&path).map_err(told)?);
            }
        }
    }
    Ok(())
}

/// What goes wrong in the middle of a move.
#[derive(Debug)]
struct Trouble {
    root: PathBuf,
    dice: Dice,
    step: u64,
    /// Somebody writes before these steps.
    meddles_at: BTreeSet<u64>,
    dies_at: Option<u64>,
    /// What he wrote, and what he overwrote.
    wrote: Contents,
    overwrote: Contents,
}

#[derive(Debug, Clone)]
struct Hook(Arc<Mutex<Trouble>>);

impl TouchHook for Hook {
    fn before(&self, _: &Touch<'_>) -> io::Result<()> {
        let mut trouble = self.0.lock().unwrap();
        let step = trouble.step;
        trouble.step += 1;
        if trouble.dies_at.is_some_and(|at| step >= at) {
            return Err(io::Error::other("killed"));
        }
        if trouble.meddles_at.contains(&step) {
            trouble.meddle(step);
        }
        Ok(())
    }
}

impl Trouble {
    /// Writes a file of the workspace: in place, or by putting another over it.
    fn meddle(&mut self, step: u64) {
        let path = self.root.join(*self.dice.pick(&PATHS));
        let bytes = format!("meddled at {step}").into_bytes();
        let aside = self.root.with_extension("aside");
        // Reading a pipe that nobody writes to would wait forever.
        if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            return;
        }
        let old = fs::read(&path).ok();
        let written = match self.dice.below(2) {
            0 => fs::write(&path, &bytes),
            _ => fs::write(&aside, &bytes).and_then(|()| fs::rename(&aside, &path)),
        };
        fs::remove_file(&aside).ok();
        if written.is_ok() {
            self.overwrote.extend(old);
            self.wrote.insert(bytes);
        }
    }
}

struct Case {
    dir: tempfile::TempDir,
    memory: MemoryStorage,
    dice: Dice,
    words: u64,
}

impl Case {
    fn root(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Lives through a few states, each kept for some reason.
    fn live(&mut self) -> Checked {
        let options = next_process().storage(self.memory.clone());
        let store = options.snapshot_cap(CAP).open_or_create(HOME).unwrap();
        let workspace = store.workspace(&self.root()).map_err(told)?;
        let mut start = None;
        for n in 0..4 {
            for _ in 0..self.dice.below(7) {
                change(&self.root(), &mut self.dice, &mut self.words);
            }
            let options = match (&start, n % 2) {
                (Some(start), 1) => CheckpointOptions::new()
                    .reason(CheckpointReason::RunEnd)
                    .begun_by(*start),
                (_, 0) => CheckpointOptions::new().reason(CheckpointReason::RunStart),
                _ => CheckpointOptions::new(),
            };
            start = Some(workspace.checkpoint(options).map_err(told)?.id());
        }
        for _ in 0..self.dice.below(4) {
            change(&self.root(), &mut self.dice, &mut self.words);
        }
        Ok(())
    }

    fn trouble(&mut self) -> Hook {
        let mut at = || self.dice.below(60) as u64;
        let meddles_at = [at(), at(), at()].into();
        let dies_at = at();
        let which = self.dice.below(4);
        Hook(Arc::new(Mutex::new(Trouble {
            root: self.root(),
            step: 0,
            meddles_at: match which {
                0 | 1 => BTreeSet::new(),
                _ => meddles_at,
            },
            dies_at: (which == 1 || which == 3).then_some(dies_at),
            wrote: Contents::new(),
            overwrote: Contents::new(),
            dice: Dice::new(dies_at * 1_000 + which as u64),
        })))
    }

    /// Moves a few times, and asks the oracle after each.
    fn go(&mut self) -> Checked<u64> {
        let mut touched = 0;
        for _ in 0..4 {
            let mut before = Contents::new();
            on_disk(&self.root(), &mut before);
            let hook = self.trouble();
            let what = self.attempt(&hook);
            let store = self.store(None);
            let workspace = store.workspace(&self.root()).map_err(told)?;
            let recovered = workspace.recover();
            let tried = format!("{what}; then {recovered:?}");
            recovered.map_err(told)?;
            let trouble = hook.0.lock().unwrap();
            touched += trouble.step;
            // Nothing is lost with an empty file, which may be one of ours that a
            // failure left behind.
            before.remove(&[][..]);
            before.extend(trouble.wrote.iter().cloned());
            before.retain(|bytes| !trouble.overwrote.contains(bytes));
            let mut after = Contents::new();
            on_disk(&self.root(), &mut after);
            in_store(&workspace, &mut after)?;
            if let Some(lost) = before.difference(&after).next() {
                let start = lost[..lost.len().min(20)].escape_ascii();
                return Err(format!("lost: {start}, {} bytes; {tried}", lost.len()));
            }
            verify(&store)?;
            drop(trouble);
            change(&self.root(), &mut self.dice, &mut self.words);
        }
        Ok(touched)
    }

    fn store(&self, hook: Option<&Hook>) -> Store {
        let options = next_process().storage(self.memory.clone());
        let options = options.snapshot_cap(CAP);
        let options = match hook {
            Some(hook) => options.touch_hook(hook.clone()),
            None => options,
        };
        options.open(HOME).unwrap()
    }

    fn attempt(&mut self, hook: &Hook) -> String {
        let store = self.store(Some(hook));
        let workspace = store.find_workspace(&self.root()).unwrap().unwrap();
        let ways = [
            OnConflict::Overwrite,
            OnConflict::Overwrite,
            OnConflict::Keep,
        ];
        let options = Rewind::files().on_conflict(*self.dice.pick(&ways));
        let ids: Vec<Point> = workspace
            .checkpoints()
            .unwrap()
            .map(|kept| Point::checkpoint(kept.unwrap().id()))
            .collect();
        let point = self.dice.pick(&ids).clone();
        let path = *self.dice.pick(&PATHS);
        let (what, attempt) = match self.dice.below(6) {
            0 => ("undo", workspace.undo(options)),
            1 => ("redo", workspace.redo(options)),
            2 => {
                let restored = workspace.rewind(&point, options.paths([path]));
                ("restore", restored.map(Some))
            }
            _ => ("rewind", workspace.rewind(&point, options).map(Some)),
        };
        match attempt {
            Ok(Some(outcome)) => format!(
                "{what} {:?} {:?} {:?} {:?}",
                outcome.stage, outcome.changes, outcome.not_restored, outcome.conflicts
            ),
            Ok(None) => format!("{what} nothing"),
            Err(error) => format!("{what} {error:?}"),
        }
    }
}

#[test]
fn f12_f15_all_bytes_that_were_on_disk_are_on_disk_or_in_the_store() {
    let first = setting("BACKTRAIL_TEST_SEED", 1);
    let cases = CASES * setting("BACKTRAIL_TEST_LIVES", 1);
    let mut touched = 0;
    for seed in first..first + cases {
        let dir = quick_dir();
        fs::create_dir(dir.path().join("work")).unwrap();
        let mut case = Case {
            dir,
            memory: MemoryStorage::new(),
            dice: Dice::new(seed),
            words: 0,
        };
        let gone = case.live().and_then(|()| case.go());
        touched += gone.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    assert!(touched > cases * 20, "{touched}");
}

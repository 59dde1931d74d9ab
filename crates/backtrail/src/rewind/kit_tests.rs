//! Trees that tests make up, and a workspace to bring from one to another.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::apply::{FileWork, WorkResult};
use super::path_change::{FileEntry, PathChange, PathEntry};
use super::test_hook::{Touch, TouchHook};
use crate::error::Result;
use crate::ids::CheckpointId;
use crate::objects::{ObjectId, Objects};
use crate::random::OsRandomness;
use crate::storage::LocalStorage;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stuff {
    File(u32, Vec<u8>),
    Link(Vec<u8>),
    Dir(u32),
}

/// By path; the root is the empty one.
pub(super) type Tree = BTreeMap<Vec<u8>, Stuff>;

pub(super) fn tree<const N: usize>(stuff: [(&str, Stuff); N]) -> Tree {
    let mut tree = Tree::from([(Vec::new(), Stuff::Dir(0o755))]);
    tree.extend(stuff.map(|(path, stuff)| (path.as_bytes().to_vec(), stuff)));
    tree
}

pub(super) fn file(bytes: &str) -> Stuff {
    Stuff::File(0o644, bytes.as_bytes().to_vec())
}

pub(super) fn link(target: &str) -> Stuff {
    Stuff::Link(target.as_bytes().to_vec())
}

pub(super) fn dir() -> Stuff {
    Stuff::Dir(0o755)
}

/// A workspace, a directory outside it, and a store.
pub(super) struct Ground {
    dir: TempDir,
    pub(super) objects: Objects,
}

impl Ground {
    /// Uses a file system in memory if there is one: thousands of cases sync often.
    pub(super) fn new() -> Self {
        let memory = tempfile::tempdir_in("/dev/shm");
        Self::at(memory.or_else(|_| tempfile::tempdir()).unwrap())
    }

    pub(super) fn on_disk() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    fn at(dir: TempDir) -> Self {
        let store = dir.path().join("store");
        let objects = Objects::new(Arc::new(LocalStorage), Arc::new(OsRandomness), &store);
        let ground = Self { dir, objects };
        fs::create_dir(ground.root()).unwrap();
        ground
    }

    pub(super) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("w")
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    /// Rebuilds the workspace.
    pub(super) fn build(&self, tree: &Tree) {
        remove_all(&self.root());
        build(&self.root(), tree);
    }

    pub(super) fn at_path(&self, path: &[u8]) -> PathBuf {
        self.root().join(OsStr::from_bytes(path))
    }

    pub(super) fn read(&self) -> Tree {
        read(&self.root())
    }

    /// Stores what both trees hold, and returns what differs.
    pub(super) fn items(&self, old: &Tree, new: &Tree) -> Vec<PathChange> {
        self.store([old, new]);
        let mut paths: Vec<&Vec<u8>> = old.keys().chain(new.keys()).collect();
        paths.sort();
        paths.dedup();
        let item = |path: &&Vec<u8>| PathChange {
            path: PathBuf::from(OsStr::from_bytes(path)),
            old: old.get(*path).map(thing),
            new: new.get(*path).map(thing),
        };
        let items = paths.iter().map(item);
        items.filter(|item| item.old != item.new).collect()
    }

    fn store<const N: usize>(&self, trees: [&Tree; N]) {
        let files = trees.iter().flat_map(|tree| tree.values());
        let files = files.filter_map(|stuff| match stuff {
            Stuff::File(_, bytes) => Some(bytes),
            _ => None,
        });
        let mut missing = files
            .filter(|bytes| !self.objects.contains(&ObjectId::of(bytes)).unwrap())
            .peekable();
        if missing.peek().is_some() {
            let writer = self.objects.writer().unwrap();
            missing.for_each(|bytes| _ = writer.put(bytes).unwrap());
            writer.finish().unwrap();
        }
    }

    /// Does the whole work.
    pub(super) fn go(
        &self,
        items: &[PathChange],
        hook: Option<&dyn TouchHook>,
    ) -> Result<WorkResult> {
        let root = self.root();
        let work = self.work(&root, items, hook);
        let staged = work.stage()?;
        if let Err(error) = staged.check() {
            staged.give_up();
            return Err(error);
        }
        staged.move_files()
    }

    pub(super) fn resume(
        &self,
        items: &[PathChange],
        hook: Option<&dyn TouchHook>,
    ) -> Result<WorkResult> {
        self.work(&self.root(), items, hook).resume()
    }

    pub(super) fn work<'a>(
        &'a self,
        root: &'a Path,
        items: &'a [PathChange],
        hook: Option<&'a dyn TouchHook>,
    ) -> FileWork<'a> {
        FileWork {
            root,
            id: CheckpointId::from_uuid(uuid::Uuid::from_u128(7)),
            items,
            objects: &self.objects,
            hook,
        }
    }

    /// Returns every byte sequence in a file anywhere: in the workspace, outside of it
    /// and in what is staged.
    pub(super) fn bytes(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for top in [self.root(), self.outside()] {
            if top.exists() {
                found.extend(read(&top).into_values().filter_map(|stuff| match stuff {
                    Stuff::File(_, bytes) => Some(bytes),
                    _ => None,
                }));
            }
        }
        found
    }

    /// Returns whether bytes are on disk or in the store.
    pub(super) fn has(&self, bytes: &[u8]) -> bool {
        self.objects.contains(&ObjectId::of(bytes)).unwrap()
            || self.bytes().iter().any(|found| found == bytes)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        remove_all(&self.root());
        remove_all(&self.outside());
    }
}

fn thing(stuff: &Stuff) -> PathEntry {
    match stuff {
        Stuff::File(mode, bytes) => PathEntry::File(FileEntry {
            mode: *mode,
            size: bytes.len() as u64,
            content: ObjectId::of(bytes),
        }),
        Stuff::Link(target) => PathEntry::Link {
            target: target.clone().into(),
        },
        Stuff::Dir(mode) => PathEntry::Dir { mode: *mode },
    }
}

/// Removes a tree, whatever its modes.
pub(super) fn remove_all(path: &Path) {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return;
    };
    if meta.is_dir() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            remove_all(&entry.unwrap().path());
        }
        fs::remove_dir(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

pub(super) fn build(root: &Path, tree: &Tree) {
    let at = |path: &[u8]| match path {
        b"" => root.to_owned(),
        _ => root.join(OsStr::from_bytes(path)),
    };
    for (path, stuff) in tree {
        match stuff {
            Stuff::Dir(_) => fs::create_dir(at(path)).unwrap(),
            Stuff::Link(target) => symlink(OsStr::from_bytes(target), at(path)).unwrap(),
            Stuff::File(_, bytes) => fs::write(at(path), bytes).unwrap(),
        }
    }
    for (path, stuff) in tree.iter().rev() {
        if let Stuff::Dir(mode) | Stuff::File(mode, _) = stuff {
            fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)).unwrap();
        }
    }
}

pub(super) fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    read_into(root, b"", &mut tree);
    tree
}

fn read_into(at: &Path, path: &[u8], tree: &mut Tree) {
    let meta = fs::symlink_metadata(at).unwrap();
    let mode = meta.mode() & 0o7777;
    let stuff = if meta.is_dir() {
        // A directory may keep its owner out.
        if let Ok(entries) = fs::read_dir(at) {
            for entry in entries {
                let name = entry.unwrap().file_name();
                let mut below = path.to_vec();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(name.as_bytes());
                read_into(&at.join(&name), &below, tree);
            }
        }
        Stuff::Dir(mode)
    } else if meta.is_symlink() {
        Stuff::Link(fs::read_link(at).unwrap().into_os_string().into_vec())
    } else {
        Stuff::File(
            mode,
            fs::read(at).unwrap_or_else(|_| b"(unreadable)".to_vec()),
        )
    };
    tree.insert(path.to_vec(), stuff);
}

/// The inode and time of each path, which show whether a file was touched.
pub(super) fn marks(ground: &Ground, tree: &Tree) -> BTreeMap<Vec<u8>, (u64, i64, i64)> {
    let files = tree
        .iter()
        .filter(|(_, stuff)| !matches!(stuff, Stuff::Dir(_)));
    let mark = |path: &Vec<u8>| {
        let meta = fs::symlink_metadata(ground.at_path(path)).unwrap();
        (meta.ino(), meta.mtime(), meta.mtime_nsec())
    };
    files.map(|(path, _)| (path.clone(), mark(path))).collect()
}

/// Returns whether modes restrict this process.
pub(super) fn is_root() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shut");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    fs::read(&path).is_ok()
}

/// What happens at a call.
pub(super) enum At {
    /// It fails, and so do all calls after it.
    Crash(usize),
    /// This many calls fail, beginning with one of them.
    Fail(usize, usize, i32),
    /// Every call on a path fails.
    Path(&'static str, PathBuf, i32),
    /// The system does not support it.
    Unknown(&'static str),
    /// Somebody changes files before it.
    Act(usize, Box<dyn Fn() + Send + Sync>),
    Nothing,
}

/// Counts calls, and makes something happen at some of them.
pub(super) struct Calls {
    at: At,
    root: PathBuf,
    pub(super) count: AtomicUsize,
    /// The tree as it was when everything began to fail.
    pub(super) then: Mutex<Option<Tree>>,
    pub(super) names: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Calls")
    }
}

impl Calls {
    pub(super) fn new(ground: &Ground, at: At) -> Self {
        Self {
            at,
            root: ground.root(),
            count: AtomicUsize::new(0),
            then: Mutex::default(),
            names: Mutex::default(),
        }
    }

    pub(super) fn made(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

impl TouchHook for Calls {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        let n = self.count.fetch_add(1, Ordering::SeqCst);
        let name = format!("{} {}", touch.call, touch.path.display());
        self.names.lock().unwrap().push(name);
        let fail = |code| Err(io::Error::from_raw_os_error(code));
        match &self.at {
            At::Crash(at) if n >= *at => {
                let mut then = self.then.lock().unwrap();
                if then.is_none() && self.root.exists() {
                    *then = Some(read(&self.root));
                }
                fail(5)
            }
            At::Fail(at, times, code) if (*at..at + times).contains(&n) => fail(*code),
            At::Path(call, path, code) if touch.call == *call && touch.path == path => fail(*code),
            At::Unknown(call) if touch.call == *call => fail(22),
            At::Act(at, act) if n == *at => {
                act();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Asks two hooks in turn.
#[derive(Debug)]
pub(super) struct Both(pub(super) Calls, pub(super) Calls);

impl TouchHook for Both {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        self.1.before(touch)?;
        self.0.before(touch)
    }
}

/// Small pseudo-random numbers, the same for the same seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    fn stuff(&mut self, all_modes: bool) -> Stuff {
        let mut files = vec![0o644, 0o755, 0o600, 0o444, 0o4755, 0o640];
        let mut dirs = vec![0o755, 0o755, 0o700, 0o555, 0o1777, 0o2755, 0o500];
        if all_modes {
            files.extend([0, 0o200, 0o2755]);
            dirs.extend([0, 0o300, 0o111]);
        }
        let bytes: &[&[u8]] = &[
            b"", b"one", b"two", b"onetwo", b"\0\0\0", b"\xff\n", &[7; 9000],
        ];
        let targets: &[&[u8]] = &[b"a", b"../a", b"/etc/passwd", b"nowhere\xff", b"d"];
        match self.roll(8) {
            0..=3 => Stuff::File(*self.pick(&files), self.pick(bytes).to_vec()),
            4 => Stuff::Link(self.pick(targets).to_vec()),
            _ => Stuff::Dir(*self.pick(&dirs)),
        }
    }

    /// Makes up a tree.
    pub(super) fn tree(&mut self, all_modes: bool) -> Tree {
        let mut tree = Tree::from([(Vec::new(), Stuff::Dir(0o755))]);
        for _ in 0..self.roll(14) {
            self.add(&mut tree, all_modes);
        }
        tree
    }

    fn add(&mut self, tree: &mut Tree, all_modes: bool) {
        let names: &[&[u8]] = &[
            b"a", b"A", b"b", b"a.b", b"a-b", b"d", b"-x", b"\xff \n", b"e",
        ];
        let dirs = tree
            .iter()
            .filter(|(_, stuff)| matches!(stuff, Stuff::Dir(_)));
        let dirs: Vec<Vec<u8>> = dirs.map(|(path, _)| path.clone()).collect();
        let mut path = self.pick(&dirs).clone();
        if path.iter().filter(|byte| **byte == b'/').count() > 2 {
            return;
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        let name = self.pick(names);
        path.extend_from_slice(name);
        cut(tree, &path);
        let stuff = self.stuff(all_modes);
        tree.insert(path, stuff);
    }

    /// Makes a changed copy of a tree.
    pub(super) fn change(&mut self, tree: &Tree, all_modes: bool) -> Tree {
        let mut tree = tree.clone();
        for _ in 0..1 + self.roll(8) {
            let paths: Vec<Vec<u8>> = tree.keys().cloned().collect();
            let path = self.pick(&paths).clone();
            match self.roll(4) {
                0 => self.add(&mut tree, all_modes),
                1 if !path.is_empty() => cut(&mut tree, &path),
                2 if path.is_empty() => {
                    tree.insert(path, Stuff::Dir(*self.pick(&[0o755, 0o700, 0o750])));
                }
                _ if path.is_empty() => {}
                2 => {
                    if let Stuff::File(_, bytes) = tree[&path].clone() {
                        tree.insert(path, Stuff::File(0o750, bytes));
                    }
                }
                _ => {
                    let stuff = self.stuff(all_modes);
                    let stays = matches!(stuff, Stuff::Dir(_)) && self.roll(2) == 0;
                    if !stays || !matches!(tree[&path], Stuff::Dir(_)) {
                        cut(&mut tree, &path);
                    }
                    tree.insert(path, stuff);
                }
            }
        }
        tree
    }
}

/// Removes a path and all below it.
fn cut(tree: &mut Tree, path: &[u8]) {
    let below = [path, b"/"].concat();
    tree.retain(|at, _| at != path && !at.starts_with(&below));
}

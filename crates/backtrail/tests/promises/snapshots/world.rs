//! A directory that chance changes, in every way that matters to a snapshot.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::tree::{Thing, read_tree};

/// Numbers that look random and are the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1))
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.below(of.len())].clone())
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = match self.below(40) {
            0..8 => 0,
            8..30 => self.below(60),
            30..39 => self.below(20_000),
            _ => (4 << 20) + self.below(1 << 20),
        };
        let word = self.below(256) as u8;
        match self.below(3) {
            0 => vec![word; len],
            1 => b"a line of text\n".repeat(len / 15 + 1)[..len].to_vec(),
            _ => (0..len).map(|_| self.below(256) as u8).collect(),
        }
    }
}

const NAMES: [&[u8]; 20] = [
    b"a",
    b"b",
    b"ab",
    b"a.txt",
    b"A",
    b" spaces ",
    b"new\nline",
    b"-rf",
    b"..x",
    b"*",
    b"!not",
    b"#hash",
    b"back\\slash",
    b"quote\"",
    b"gr\xc3\xb6\xc3\x9fe",
    b"\xff\xfe not text",
    b"\x01\x7f",
    b"~",
    b".hidden",
    b"a-name-that-is-longer-than-most-and-still-well-within-what-file-systems-take-since-they-take-two-hundred-and-fifty-five-bytes",
];

const MODES: [u32; 10] = [
    0o644, 0o600, 0o755, 0o700, 0o444, 0o4755, 0o2750, 0o1777, 0o000, 0o7777,
];

/// A directory, and what was done to it.
pub(crate) struct World {
    pub(crate) root: PathBuf,
    pub(crate) dice: Dice,
    /// Bits that every mode has, so that these tests can read what they made: only
    /// root reads everything.
    readable: u32,
    /// What happened, for a failing test to tell.
    pub(crate) log: Vec<String>,
}

/// What there is to choose from.
struct Here {
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
    /// The root itself comes first.
    dirs: Vec<PathBuf>,
}

impl World {
    /// Makes a directory with something in it.
    pub(crate) fn new(root: &Path, seed: u64) -> Self {
        let mut world = Self {
            root: root.to_owned(),
            dice: Dice::new(seed),
            readable: if is_root() { 0 } else { 0o700 },
            log: Vec::new(),
        };
        for _ in 0..world.dice.below(20) {
            world.create();
        }
        world
    }

    /// Changes the directory in a few ways, or in none.
    pub(crate) fn change(&mut self) {
        for _ in 0..self.dice.below(8) {
            match self.dice.below(13) {
                0..3 => self.create(),
                3 => self.append(),
                4 | 5 => self.rewrite_unnoticed(),
                6 => self.change_mode(),
                7 => self.change_kind(),
                8 => self.rename(),
                9 => self.swap(),
                10 => self.empty(),
                11 => self.point_elsewhere(),
                _ => self.remove(),
            }
        }
    }

    fn look(&self) -> Here {
        let mut here = Here {
            files: Vec::new(),
            links: Vec::new(),
            dirs: Vec::new(),
        };
        for (path, thing) in read_tree(&self.root) {
            match thing {
                Thing::File { .. } => here.files.push(path),
                Thing::Link(_) => here.links.push(path),
                Thing::Dir { .. } => here.dirs.push(path),
            }
        }
        here
    }

    fn note(&mut self, what: &str, path: &Path) {
        self.log.push(format!("{what} {path:?}"));
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// Chooses a path at which nothing is.
    fn free_path(&mut self) -> Option<PathBuf> {
        let dir = self.dice.pick(&self.look().dirs)?;
        let name: OsString = OsStr::from_bytes(self.dice.pick(&NAMES)?).to_owned();
        let path = if dir == Path::new(".") {
            PathBuf::from(name)
        } else {
            dir.join(name)
        };
        let taken = fs::symlink_metadata(self.at(&path)).is_ok();
        (!taken && path.components().count() < 7).then_some(path)
    }

    fn create(&mut self) {
        if let Some(path) = self.free_path() {
            self.make(&path);
        }
    }

    /// Makes something at a path where nothing is.
    fn make(&mut self, path: &Path) {
        let full = self.at(path);
        match self.dice.below(10) {
            0 | 1 => {
                self.note("mkdir", path);
                fs::create_dir(full).unwrap();
            }
            2 => {
                self.note("link", path);
                symlink(self.target(), full).unwrap();
            }
            3 => {
                let Some(from) = self.dice.pick(&self.look().files) else {
                    return;
                };
                self.note("copy", path);
                fs::copy(self.at(&from), full).unwrap();
            }
            _ => {
                self.note("write", path);
                fs::write(full, self.dice.bytes()).unwrap();
            }
        }
    }

    fn target(&mut self) -> OsString {
        let targets: [&[u8]; 6] = [b"a", b"nowhere", b".", b"..", b"/etc/passwd", b"\xff/\n"];
        OsStr::from_bytes(self.dice.pick(&targets).unwrap()).to_owned()
    }

    fn append(&mut self) {
        let Some(path) = self.dice.pick(&self.look().files) else {
            return;
        };
        self.note("append to", &path);
        let mut bytes = fs::read(self.at(&path)).unwrap();
        bytes.extend(self.dice.bytes());
        fs::write(self.at(&path), bytes).unwrap();
    }

    /// Writes other bytes of the same length and puts the old mtime back.
    fn rewrite_unnoticed(&mut self) {
        if let Some(path) = self.dice.pick(&self.look().files) {
            self.note("rewrite unnoticed", &path);
            rewrite_unnoticed(&self.at(&path));
        }
    }

    fn change_mode(&mut self) {
        let here = self.look();
        let all: Vec<PathBuf> = here.files.into_iter().chain(here.dirs).collect();
        let path = self.dice.pick(&all).expect("there is the root");
        let mode = self.dice.pick(&MODES).unwrap() | self.readable;
        self.note(&format!("chmod {mode:o}"), &path);
        fs::set_permissions(self.at(&path), Permissions::from_mode(mode)).unwrap();
    }

    fn change_kind(&mut self) {
        let here = self.look();
        let all: Vec<PathBuf> = [here.files, here.links, here.dirs[1..].to_vec()].concat();
        if let Some(path) = self.dice.pick(&all) {
            self.take_away(&path);
            self.make(&path);
        }
    }

    fn rename(&mut self) {
        let here = self.look();
        let all: Vec<PathBuf> = [here.files, here.links, here.dirs[1..].to_vec()].concat();
        if let (Some(from), Some(to)) = (self.dice.pick(&all), self.free_path()) {
            // Not into itself.
            if !to.starts_with(&from) {
                self.note(&format!("rename {from:?} to"), &to);
                fs::rename(self.at(&from), self.at(&to)).unwrap();
            }
        }
    }

    /// Lets two files change places.
    fn swap(&mut self) {
        let files = self.look().files;
        let (Some(a), Some(b)) = (self.dice.pick(&files), self.dice.pick(&files)) else {
            return;
        };
        if a != b {
            self.note(&format!("swap {a:?} and"), &b);
            let between = self.root.with_extension("between");
            fs::rename(self.at(&a), &between).unwrap();
            fs::rename(self.at(&b), self.at(&a)).unwrap();
            fs::rename(&between, self.at(&b)).unwrap();
        }
    }

    /// Empties a file, or everything in a directory.
    fn empty(&mut self) {
        let here = self.look();
        if let Some(path) = self.dice.pick(&here.files) {
            self.note("empty", &path);
            fs::write(self.at(&path), b"").unwrap();
        }
        if let Some(dir) = self.dice.pick(&here.dirs[1..]) {
            self.note("clear", &dir);
            fs::remove_dir_all(self.at(&dir)).unwrap();
            fs::create_dir(self.at(&dir)).unwrap();
        }
    }

    fn point_elsewhere(&mut self) {
        if let Some(path) = self.dice.pick(&self.look().links) {
            self.note("point elsewhere", &path);
            fs::remove_file(self.at(&path)).unwrap();
            symlink(self.target(), self.at(&path)).unwrap();
        }
    }

    fn remove(&mut self) {
        let here = self.look();
        let all: Vec<PathBuf> = [here.files, here.links, here.dirs[1..].to_vec()].concat();
        if let Some(path) = self.dice.pick(&all) {
            self.take_away(&path);
        }
    }

    fn take_away(&mut self, path: &Path) {
        self.note("remove", path);
        let full = self.at(path);
        if fs::symlink_metadata(&full).unwrap().is_dir() {
            fs::remove_dir_all(full).unwrap();
        } else {
            fs::remove_file(full).unwrap();
        }
    }
}

/// Writes other bytes of the same length into a file, in place, and puts the old
/// mtime back. An empty file stays as it is.
pub(crate) fn rewrite_unnoticed(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let bytes: Vec<u8> = fs::read(path).unwrap().iter().map(|byte| !byte).collect();
    let file = File::options().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    file.set_times(FileTimes::new().set_modified(modified))
        .unwrap();
    drop(file);
    assert_eq!(fs::metadata(path).unwrap().modified().unwrap(), modified);
}

fn is_root() -> bool {
    let me = fs::metadata("/proc/self");
    me.is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

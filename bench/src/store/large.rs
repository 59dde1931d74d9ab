//! A store whose half is unreferenced.

use std::fs;
use std::path::{Path, PathBuf};

use super::process::{backtrail, run};
use crate::Result;
use crate::parts::settle;

/// The average length of a file.
const MEAN: u64 = 64 << 10;
const PER_DIR: usize = 256;

/// A store with two states of a directory: all files, and every other one of them.
#[derive(Debug)]
pub(super) struct Large {
    pub(super) store: PathBuf,
}

impl Large {
    /// Creates a store with about `bytes` bytes of objects.
    pub(super) fn make(bin: &Path, dir: &Path, bytes: u64) -> Result<Self> {
        let (store, tree) = (dir.join("store"), dir.join("tree"));
        fs::create_dir(&tree)?;
        let files = usize::try_from(bytes / MEAN)? & !1;
        let mut noise = Noise::new();
        for n in 0..files {
            let path = path_of(&tree, n);
            if n % PER_DIR == 0 {
                fs::create_dir(path.parent().ok_or("no directory")?)?;
            }
            fs::write(path, noise.next(n))?;
        }
        keep(bin, &store, &tree, files)?;
        // Every other file, so that half of every pack is unreferenced.
        for n in (0..files).step_by(2) {
            fs::remove_file(path_of(&tree, n))?;
        }
        keep(bin, &store, &tree, files / 2)?;
        // The disk may be small, and nothing reads them any more.
        fs::remove_dir_all(&tree)?;
        settle(dir)?;
        Ok(Self { store })
    }

    /// Returns the total length of the packs.
    pub(super) fn len(&self) -> Result<u64> {
        let mut len = 0;
        for entry in fs::read_dir(self.packs())? {
            len += entry?.metadata()?.len();
        }
        Ok(len)
    }

    pub(super) fn packs(&self) -> PathBuf {
        self.store.join("objects")
    }
}

fn keep(bin: &Path, store: &Path, tree: &Path, files: usize) -> Result<()> {
    let mut command = backtrail(bin, store, &["checkpoint", "--yes", "--workspace"]);
    let told = run(command.arg(tree))?.told;
    match told["files"] == files {
        true => Ok(()),
        false => Err(format!("{told} where {files} files are").into()),
    }
}

fn path_of(tree: &Path, n: usize) -> PathBuf {
    let dir = tree.join(format!("{:04}", n / PER_DIR));
    dir.join(format!("{:03}", n % PER_DIR))
}

/// Incompressible bytes, different each time.
struct Noise {
    block: Vec<u8>,
    state: u64,
}

impl Noise {
    fn new() -> Self {
        Self {
            block: vec![0; 2 * MEAN as usize],
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Returns file `n`: half to one and a half times the average length.
    fn next(&mut self, n: usize) -> &[u8] {
        for word in self.block.chunks_exact_mut(8) {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            word.copy_from_slice(&self.state.to_le_bytes());
        }
        let len = MEAN / 2 + (n as u64 * 7_919) % MEAN;
        &self.block[..len as usize]
    }
}

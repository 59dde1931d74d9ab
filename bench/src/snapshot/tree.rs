//! Directories like those of projects, the same in every run.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::random::Random;
use super::source::{Vocabulary, noise};
use crate::Result;

/// The size of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) files: usize,
    pub(crate) dirs: usize,
    pub(crate) bytes: u64,
}

/// A directory with everything below it.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// Files, directories without the root, and bytes when it was created.
    pub(crate) extent: Extent,
    /// The text files, relative to the root.
    texts: Vec<PathBuf>,
    words: Vocabulary,
}

/// An edited file.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) path: PathBuf,
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

/// Typical ignore rules; nothing here matches them.
const IGNORED: &str = "/target/\nnode_modules/\n*.log\n*.pyc\n.env\n/dist/\n*.swp\n.DS_Store\n";
/// The distribution of directory depths.
const DEPTHS: [f64; 4] = [0.004, 0.08, 0.45, 1.0];
const EXTENSIONS: [&str; 8] = ["rs", "ts", "py", "go", "c", "h", "md", "json"];
/// One file in this many is not text.
const BINARY: usize = 100;

impl Tree {
    /// Creates a tree of the requested size in `root`, which must be new.
    pub(crate) fn make(root: &Path, asked: Extent) -> Result<Self> {
        let mut random = Random::new(asked.files as u64);
        let words = Vocabulary::new(&mut random);
        fs::create_dir(root)?;
        let dirs = make_dirs(root, &words, &mut random, asked.dirs)?;
        fs::write(root.join(".gitignore"), IGNORED)?;
        let mut bytes = IGNORED.len() as u64;
        let mut texts = Vec::new();
        for (n, len) in sizes(&mut random, asked).into_iter().enumerate() {
            // One for each directory first, so that none is empty.
            let dir = dirs.get(n).unwrap_or_else(|| random.of(&dirs));
            let name = words.name(&mut random);
            let (content, extension) = match random.below(BINARY) {
                0 => (noise(&mut random, len), "png"),
                _ => (words.text(&mut random, len), *random.of(&EXTENSIONS)),
            };
            let path = dir.join(format!("{name}{n}.{extension}"));
            fs::write(root.join(&path), &content)?;
            bytes += content.len() as u64;
            if extension != "png" {
                texts.push(path);
            }
        }
        let extent = Extent { bytes, ..asked };
        let root = root.canonicalize()?;
        Ok(Self {
            root,
            extent,
            texts,
            words,
        })
    }

    /// Edits this many files, a line or two in each, in place as agents do; returns
    /// which.
    pub(crate) fn change(&self, random: &mut Random, count: usize) -> Result<Vec<Edited>> {
        let mut known = HashSet::new();
        let mut changed = Vec::with_capacity(count);
        while changed.len() < count {
            let path = random.of(&self.texts);
            if !known.insert(path) {
                continue;
            }
            let path = self.root.join(path);
            let before = fs::read(&path)?;
            let after = self.edited(random, &before);
            fs::write(&path, &after)?;
            changed.push(Edited {
                path,
                before,
                after,
            });
        }
        Ok(changed)
    }

    /// Returns a text with one line replaced by one or two others.
    fn edited(&self, random: &mut Random, content: &[u8]) -> Vec<u8> {
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        let at = random.below(lines.len());
        let mut edited = lines[..at].concat();
        for _ in 0..1 + random.below(2) {
            edited.extend(self.words.new_line(random));
        }
        edited.extend(lines[at + 1..].concat());
        edited
    }
}

/// Creates directories up to four deep; returns them relative to the root.
fn make_dirs(
    root: &Path,
    words: &Vocabulary,
    random: &mut Random,
    count: usize,
) -> Result<Vec<PathBuf>> {
    let mut dirs: Vec<PathBuf> = Vec::with_capacity(count);
    let mut above = vec![PathBuf::new()];
    for part in DEPTHS {
        let end = ((count as f64 * part).ceil() as usize).min(count);
        let first = dirs.len();
        for n in first..end {
            let parent = random.of(&above).clone();
            let dir = parent.join(format!("{}{n}", words.pick(random)));
            fs::create_dir(root.join(&dir))?;
            dirs.push(dir);
        }
        if first < end {
            above = dirs[first..end].to_vec();
        }
    }
    Ok(dirs)
}

/// Returns the length of each file except `.gitignore`: most are small, a few large.
fn sizes(random: &mut Random, asked: Extent) -> Vec<usize> {
    let weights: Vec<f64> = (1..asked.files)
        .map(|_| random.normal().clamp(-3.0, 3.5).exp())
        .collect();
    let each = asked.bytes as f64 / weights.iter().sum::<f64>();
    weights
        .into_iter()
        .map(|weight| (weight * each) as usize + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::walk;

    const SMALL: Extent = Extent {
        files: 400,
        dirs: 40,
        bytes: 4_000_000,
    };

    #[test]
    fn a_tree_is_as_large_as_was_asked_and_the_same_every_time() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| Tree::make(&dir.path().join(name), SMALL).unwrap());
        let found = walk::look(&a.root).unwrap();
        assert_eq!((found.files, found.dirs), (SMALL.files, SMALL.dirs));
        assert_eq!(found.bytes, a.extent.bytes);
        let off = a.extent.bytes as f64 / SMALL.bytes as f64;
        assert!((0.95..1.1).contains(&off), "{off}");
        assert_eq!(a.texts, b.texts);
        for path in &a.texts {
            let [a, b] = [&a, &b].map(|tree| fs::read(tree.root.join(path)).unwrap());
            assert_eq!(a, b, "{}", path.display());
        }
    }

    #[test]
    fn a_change_changes_as_many_files_as_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::make(&dir.path().join("tree"), SMALL).unwrap();
        let read = |path: &PathBuf| fs::read(tree.root.join(path)).unwrap();
        let before: Vec<_> = tree.texts.iter().map(read).collect();
        let changed = tree.change(&mut Random::new(1), 10).unwrap();
        let differ = tree.texts.iter().zip(&before);
        let differ = differ.filter(|(path, before)| read(path) != **before);
        assert_eq!((changed.len(), differ.count()), (10, 10));
    }
}

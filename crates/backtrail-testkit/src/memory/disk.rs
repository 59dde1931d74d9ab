//! The disk of a memory storage: its inodes, paths and space.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::content::Content;
use super::loss::{Dice, Loss};
use super::names::Names;

// Error numbers, the same on Linux and macOS. Errors created from them have the kind and
// the text of a real file system's.
pub(super) const EPERM: i32 = 1;
pub(super) const ENOENT: i32 = 2;
pub(super) const EBADF: i32 = 9;
pub(super) const EEXIST: i32 = 17;
pub(super) const ENOTDIR: i32 = 20;
pub(super) const EISDIR: i32 = 21;
pub(super) const EINVAL: i32 = 22;
pub(super) const ENOSPC: i32 = 28;
pub(super) const ENOTEMPTY: i32 = 39;

/// Returns the error with this number.
pub(super) fn errno<T>(number: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(number))
}

/// The target of a name: an index into [`Disk::files`] or [`Disk::dirs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    File(usize),
    Dir(usize),
}

const ROOT: usize = 0;

/// Inodes and the space they may use.
///
/// Inodes stay even without a name, because a crash may undo a removal that was not
/// synced.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) files: Vec<Inode>,
    pub(super) dirs: Vec<Names>,
    /// How many more bytes fit; `None` for no limit.
    pub(super) space: Option<u64>,
    next_handle: u64,
    /// Renames that may not be on disk yet.
    renamed: Vec<Renamed>,
}

/// A renamed file or directory.
#[derive(Debug, Clone)]
struct Renamed {
    from: (usize, OsString),
    to: (usize, OsString),
    entry: Entry,
}

/// A file, whatever its names.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    pub(super) content: Content,
    /// The handle that holds the exclusive lock.
    pub(super) locked_by: Option<u64>,
    /// The handles that share the lock.
    shared_by: BTreeSet<u64>,
    links: usize,
    handles: usize,
}

impl Inode {
    /// Returns the space that the file uses: none once it is unreachable.
    fn used(&self) -> u64 {
        let reachable = self.links > 0 || self.handles > 0;
        if reachable {
            self.content.live().len() as u64
        } else {
            0
        }
    }
}

impl Disk {
    /// Returns an empty disk with a root directory.
    pub(super) fn new() -> Self {
        Self {
            files: Vec::new(),
            dirs: vec![Names::default()],
            space: None,
            next_handle: 0,
            renamed: Vec::new(),
        }
    }

    /// Returns the target of a path.
    pub(super) fn find(&self, path: &Path) -> io::Result<Entry> {
        let mut trail = vec![ROOT];
        let mut found = Entry::Dir(ROOT);
        for component in path.components() {
            let Entry::Dir(dir) = found else {
                return errno(ENOTDIR);
            };
            found = match component {
                Component::Normal(name) => match self.dirs[dir].live().get(name) {
                    Some(entry) => *entry,
                    None => return errno(ENOENT),
                },
                Component::ParentDir => {
                    trail.pop();
                    Entry::Dir(trail.pop().unwrap_or(ROOT))
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => found,
            };
            if let Entry::Dir(dir) = found
                && trail.last() != Some(&dir)
            {
                trail.push(dir);
            }
        }
        Ok(found)
    }

    pub(super) fn find_dir(&self, path: &Path) -> io::Result<usize> {
        match self.find(path)? {
            Entry::Dir(dir) => Ok(dir),
            Entry::File(_) => errno(ENOTDIR),
        }
    }

    pub(super) fn find_file(&self, path: &Path) -> io::Result<usize> {
        match self.find(path)? {
            Entry::File(file) => Ok(file),
            Entry::Dir(_) => errno(EISDIR),
        }
    }

    /// Returns the directory and the name that a path leads to.
    pub(super) fn slot(&self, path: &Path) -> io::Result<(usize, OsString)> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok((self.find_dir(parent)?, name.to_owned())),
            // The root, or a path that ends in `..`: an existing directory.
            _ => errno(EEXIST),
        }
    }

    /// Returns the directory and the name for a new entry.
    pub(super) fn free_slot(&self, path: &Path) -> io::Result<(usize, OsString)> {
        let (dir, name) = self.slot(path)?;
        if self.dirs[dir].live().contains_key(&name) {
            return errno(EEXIST);
        }
        Ok((dir, name))
    }

    pub(super) fn create_file(&mut self, path: &Path) -> io::Result<usize> {
        let slot = self.free_slot(path)?;
        self.files.push(Inode::default());
        let file = self.files.len() - 1;
        self.link(slot, file);
        Ok(file)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.free_slot(path)?;
        self.dirs.push(Names::default());
        let new = Entry::Dir(self.dirs.len() - 1);
        self.dirs[dir].insert(name, new);
        Ok(())
    }

    /// Gives a file another name.
    pub(super) fn link(&mut self, (dir, name): (usize, OsString), file: usize) {
        self.dirs[dir].insert(name, Entry::File(file));
        self.files[file].links += 1;
    }

    /// Removes a name of a file.
    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let file = self.find_file(path)?;
        let (dir, name) = self.slot(path)?;
        let before = self.files[file].used();
        self.dirs[dir].remove(&name);
        self.files[file].links -= 1;
        self.give_back(before - self.files[file].used());
        Ok(())
    }

    /// Returns the number of a new handle to a file.
    pub(super) fn open(&mut self, file: usize) -> u64 {
        self.files[file].handles += 1;
        self.next_handle += 1;
        self.next_handle
    }

    /// Closes a handle and releases its lock.
    pub(super) fn close(&mut self, file: usize, handle: u64) {
        self.unlock(file, handle);
        let before = self.files[file].used();
        self.files[file].handles -= 1;
        self.give_back(before - self.files[file].used());
    }

    /// Takes the exclusive lock if no other handle holds or shares it.
    pub(super) fn try_lock(&mut self, file: usize, handle: u64) -> bool {
        let inode = &mut self.files[file];
        // As in the system, a shared lock is released before it becomes exclusive.
        let others = inode.shared_by.iter().any(|sharer| *sharer != handle);
        inode.shared_by.remove(&handle);
        !others && *inode.locked_by.get_or_insert(handle) == handle
    }

    /// Takes a shared lock unless another handle holds it exclusively.
    pub(super) fn try_share(&mut self, file: usize, handle: u64) -> bool {
        let inode = &mut self.files[file];
        if inode.locked_by.is_some_and(|owner| owner != handle) {
            return false;
        }
        inode.locked_by = None;
        inode.shared_by.insert(handle);
        true
    }

    pub(super) fn unlock(&mut self, file: usize, handle: u64) {
        self.files[file].locked_by.take_if(|owner| *owner == handle);
        self.files[file].shared_by.remove(&handle);
    }

    /// Renames a file or directory. After a crash it has one of both names.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.slot(from)?;
        self.slot(to)?;
        let entry = self.find(from)?;
        let (to_dir, to_name) = self.free_slot(to)?;
        if self.holds(entry, to_dir) {
            return errno(EINVAL);
        }
        self.settle(|renamed| renamed.entry == entry);
        self.dirs[from_dir].remove(&from_name);
        self.dirs[to_dir].insert(to_name.clone(), entry);
        self.renamed.push(Renamed {
            from: (from_dir, from_name),
            to: (to_dir, to_name),
            entry,
        });
        Ok(())
    }

    /// Returns whether a directory is inside another one or the same.
    fn holds(&self, entry: Entry, dir: usize) -> bool {
        let Entry::Dir(outer) = entry else {
            return false;
        };
        let mut below = self.dirs[outer].live().values();
        outer == dir || below.any(|entry| self.holds(*entry, dir))
    }

    /// Replaces a file by another. After a crash one of both is there.
    pub(super) fn replace(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.slot(from)?;
        let slot = self.slot(to)?;
        let file = self.find_file(from)?;
        if self.find_file(to).is_ok_and(|there| there == file) {
            return Ok(());
        }
        match self.find_file(to) {
            Ok(there) => {
                let before = self.files[there].used();
                self.files[there].links -= 1;
                self.give_back(before - self.files[there].used());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // The replaced name is never without a file.
        self.dirs[slot.0].insert(slot.1, Entry::File(file));
        self.dirs[from_dir].remove(&from_name);
        Ok(())
    }

    /// Removes an empty directory.
    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let dir = self.find_dir(path)?;
        if !self.dirs[dir].live().is_empty() {
            return errno(ENOTEMPTY);
        }
        let (parent, name) = self.slot(path)?;
        self.settle(|renamed| renamed.entry == Entry::Dir(dir));
        self.dirs[parent].remove(&name);
        Ok(())
    }

    /// Writes the names in a directory to disk, and those elsewhere that changed with one
    /// of them.
    pub(super) fn sync_names(&mut self, dir: usize) {
        self.settle(|renamed| renamed.from.0 == dir || renamed.to.0 == dir);
        self.dirs[dir].sync();
    }

    /// Writes both names of matching renames to disk.
    fn settle(&mut self, fits: impl Fn(&Renamed) -> bool) {
        for renamed in self.renamed.extract_if(.., |renamed| fits(renamed)) {
            for (dir, name) in [renamed.from, renamed.to] {
                self.dirs[dir].sync_name(&name);
            }
        }
    }

    /// Appends as much as fits and returns how much that was.
    pub(super) fn append(&mut self, file: usize, bytes: &[u8]) -> io::Result<usize> {
        let space = self.space.unwrap_or(u64::MAX);
        let taken = bytes
            .len()
            .min(usize::try_from(space).unwrap_or(usize::MAX));
        if taken == 0 && !bytes.is_empty() {
            return errno(ENOSPC);
        }
        self.files[file].content.append(&bytes[..taken]);
        self.take(taken as u64);
        Ok(taken)
    }

    /// Truncates a file, or extends it with zero bytes, which use space too.
    pub(super) fn resize(&mut self, file: usize, len: u64) -> io::Result<()> {
        let Ok(new_len) = usize::try_from(len) else {
            return errno(ENOSPC);
        };
        let old_len = self.files[file].content.live().len() as u64;
        if self
            .space
            .is_some_and(|space| len > old_len.saturating_add(space))
        {
            return errno(ENOSPC);
        }
        self.files[file].content.resize(new_len);
        self.give_back(old_len.saturating_sub(len));
        self.take(len.saturating_sub(old_len));
        Ok(())
    }

    /// Returns the paths of all files, in order.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        self.walk(&mut |path, _| paths.push(path));
        paths.sort();
        paths
    }

    /// Returns the disk that survives a loss.
    pub(super) fn survivor(&self, loss: Loss) -> Self {
        let mut dice = Dice::new(match loss {
            Loss::Shuffled { seed } => seed,
            Loss::Unsynced | Loss::Nothing | Loss::Tail { .. } => 0,
        });
        let mut survivor = self.clone();
        for names in &mut survivor.dirs {
            *names = Names::durable(names.survivor(loss, &mut dice));
        }
        survivor.mend_renamed();
        for file in &mut survivor.files {
            file.content = Content::durable(file.content.survivor(loss, &mut dice));
        }
        survivor.restarted(self)
    }

    /// Gives renamed entries one of their names if a loss left both or none.
    fn mend_renamed(&mut self) {
        for renamed in std::mem::take(&mut self.renamed) {
            let [from, to] = [&renamed.from, &renamed.to]
                .map(|(dir, name)| self.dirs[*dir].live().get(name) == Some(&renamed.entry));
            if from == to {
                let (dir, name) = renamed.to;
                let mut names = self.dirs[dir].live().clone();
                match to {
                    true => names.remove(&name),
                    false => names.insert(name, renamed.entry),
                };
                self.dirs[dir] = Names::durable(names);
            }
        }
    }

    /// Returns this disk without the processes that had it open.
    pub(super) fn without_handles(&self) -> Self {
        self.clone().restarted(self)
    }

    /// Removes handles and locks, and recounts links and space.
    fn restarted(mut self, before: &Self) -> Self {
        let mut links = vec![0; self.files.len()];
        self.walk(&mut |_, file| links[file] += 1);
        for (file, links) in self.files.iter_mut().zip(links) {
            *file = Inode {
                content: std::mem::take(&mut file.content),
                links,
                ..Inode::default()
            };
        }
        // The disk is as large as before.
        let (used_before, used) = (before.used(), self.used());
        self.space = before
            .space
            .map(|space| space.saturating_add(used_before).saturating_sub(used));
        self
    }

    /// Visits every name of every file.
    fn walk(&self, visit: &mut dyn FnMut(PathBuf, usize)) {
        let mut open = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, dir)) = open.pop() {
            for (name, entry) in self.dirs[dir].live() {
                match entry {
                    Entry::File(file) => visit(path.join(name), *file),
                    Entry::Dir(dir) => open.push((path.join(name), *dir)),
                }
            }
        }
    }

    fn used(&self) -> u64 {
        self.files.iter().map(Inode::used).sum()
    }

    fn take(&mut self, bytes: u64) {
        self.space = self.space.map(|space| space.saturating_sub(bytes));
    }

    fn give_back(&mut self, bytes: u64) {
        self.space = self.space.map(|space| space.saturating_add(bytes));
    }
}

//! A storage that fails at the nth operation.
//!
//! It performs one operation at a time, so the counts and the log are what happened, in
//! that order, and nothing happens after a crash. A thread that waits for a lock is not
//! an operation in progress: it gets the crash's error like any other.

mod control;
mod file;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use backtrail::rewind::{Touch, TouchHook};
use backtrail::{Storage, StorageFile};

use crate::lock::lock;
use control::{Control, Kind, Share};
pub use control::{Count, Fault, When};
use file::FaultyFile;

/// Wraps a storage, counts operations and makes one of them fail.
///
/// Clones, and the files opened from them, share the count and the fault. Without a fault
/// it only counts.
///
/// A clone is also a [`TouchHook`]: changes that a store on this storage makes to its
/// workspaces are counted together with those to its own files, and can fail too. A crash
/// after such a change lets it happen.
#[derive(Debug, Clone)]
pub struct FaultyStorage {
    inner: Arc<dyn Storage>,
    control: Gate,
}

impl FaultyStorage {
    /// Returns a storage that passes everything on to `inner` and counts
    /// [`Count::Writes`].
    pub fn new(inner: impl Storage) -> Self {
        Self::from(Arc::new(inner) as Arc<dyn Storage>)
    }

    /// Sets which operations are counted.
    #[must_use]
    pub fn counting(self, count: Count) -> Self {
        lock(&self.control.0).count = count;
        self
    }

    /// Starts counting from 0, with `fault` at operation `n`.
    ///
    /// A crashed machine runs again.
    pub fn arm(&self, n: u64, fault: Fault) {
        lock(&self.control.0).arm(Some((n, fault)));
    }

    /// Lets every operation work from now on, even after a crash.
    pub fn disarm(&self) {
        lock(&self.control.0).disarm();
    }

    /// Returns how many operations were counted since the storage was created or last
    /// armed, without those refused by a crashed machine.
    pub fn operations(&self) -> u64 {
        lock(&self.control.0).operations
    }

    /// Returns whether the operation of the fault was reached.
    ///
    /// This is also true for a fault that does nothing to that operation.
    pub fn fired(&self) -> bool {
        lock(&self.control.0).fired
    }

    /// Returns whether the machine has stopped.
    pub fn crashed(&self) -> bool {
        lock(&self.control.0).crashed
    }

    /// Returns one short line for each counted operation, to be shown by failing tests.
    pub fn log(&self) -> Vec<String> {
        lock(&self.control.0).log.clone()
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(FaultyFile::new(inner, self.control.clone(), name(path)))
    }
}

impl From<Arc<dyn Storage>> for FaultyStorage {
    fn from(inner: Arc<dyn Storage>) -> Self {
        Self {
            inner,
            control: Gate::default(),
        }
    }
}

impl TouchHook for FaultyStorage {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        let label = format_args!("{} {}", touch.call, touch.path.display());
        let mut control = lock(&self.control.0);
        let step = control.step(Kind::Change, label)?;
        if step.then_crash {
            control.crash();
        }
        Ok(())
    }
}

/// The gate that every operation passes through.
#[derive(Debug, Clone, Default)]
struct Gate(Arc<Mutex<Control>>);

impl Gate {
    /// Performs an operation as the control decides, while no other is running.
    fn pass<T>(
        &self,
        kind: Kind,
        label: fmt::Arguments<'_>,
        act: impl FnOnce(Share) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut control = lock(&self.0);
        let step = control.step(kind, label)?;
        let result = act(step.share);
        if step.then_crash {
            return Err(control.crash());
        }
        result
    }

    /// Continues an operation that was counted when it began.
    fn pass_again<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut control = lock(&self.0);
        if control.crashed {
            return Err(control.crash());
        }
        act()
    }
}

/// Returns the last part of a path, which is enough to tell files apart in a log.
fn name(path: &Path) -> String {
    let last = path.file_name().unwrap_or(path.as_os_str());
    last.to_string_lossy().into_owned()
}

impl Storage for FaultyStorage {
    fn within(&self, root: &Path) -> Option<Arc<dyn Storage>> {
        let inner = self.inner.within(root)?;
        let control = self.control.clone();
        Some(Arc::new(Self { inner, control }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let path_name = name(path);
        let label = format_args!("create {path_name}");
        let create = |_| self.inner.create_new(path);
        let inner = self.control.pass(Kind::Change, label, create)?;
        Ok(self.wrap(path, inner))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let path_name = name(path);
        let label = format_args!("open_append {path_name}");
        let open = |_| self.inner.open_append(path);
        let inner = self.control.pass(Kind::Read, label, open)?;
        Ok(self.wrap(path, inner))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let path_name = name(path);
        let label = format_args!("open_read {path_name}");
        let open = |_| self.inner.open_read(path);
        let inner = self.control.pass(Kind::Read, label, open)?;
        Ok(self.wrap(path, inner))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let path_name = name(path);
        let label = format_args!("create_dir {path_name}");
        let create = |_| self.inner.create_dir(path);
        self.control.pass(Kind::Change, label, create)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from_name = name(from);
        let to_name = name(to);
        let label = format_args!("link {from_name} {to_name}");
        let link = |_| self.inner.link_new(from, to);
        self.control.pass(Kind::Change, label, link)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let path_name = name(path);
        let label = format_args!("remove {path_name}");
        let remove = |_| self.inner.remove_file(path);
        self.control.pass(Kind::Change, label, remove)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from_name = name(from);
        let to_name = name(to);
        let label = format_args!("rename {from_name} {to_name}");
        let rename = |_| self.inner.rename_new(from, to);
        self.control.pass(Kind::Change, label, rename)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from_name = name(from);
        let to_name = name(to);
        let label = format_args!("replace {from_name} {to_name}");
        let replace = |_| self.inner.replace(from, to);
        self.control.pass(Kind::Change, label, replace)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let path_name = name(path);
        let label = format_args!("remove_dir {path_name}");
        let remove = |_| self.inner.remove_dir(path);
        self.control.pass(Kind::Change, label, remove)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let dir_name = name(dir);
        let label = format_args!("list {dir_name}");
        let list = |_| self.inner.list(dir);
        self.control.pass(Kind::Read, label, list)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path_name = name(path);
        let label = format_args!("exists {path_name}");
        let exists = |_| self.inner.exists(path);
        self.control.pass(Kind::Read, label, exists)
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        let path_name = name(path);
        let label = format_args!("is_dir {path_name}");
        let is_dir = |_| self.inner.is_dir(path);
        self.control.pass(Kind::Read, label, is_dir)
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        let path_name = name(path);
        let label = format_args!("is_link {path_name}");
        let is_link = |_| self.inner.is_link(path);
        self.control.pass(Kind::Read, label, is_link)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir_name = name(dir);
        let label = format_args!("sync_dir {dir_name}");
        self.control.pass(Kind::Sync, label, |share| {
            if share.is_some() {
                self.inner.sync_dir(dir)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "faulty_tests.rs"]
mod tests;

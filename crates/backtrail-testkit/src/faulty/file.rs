//! An open file of a faulty storage.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use backtrail::StorageFile;

use super::Gate;
use super::control::Kind;

/// How long to wait before trying a lock again.
const LOCK_POLL: Duration = Duration::from_micros(200);

/// A handle that passes through the gate of its storage.
///
/// Closing it does not: whatever the state of the machine, the inner handle is dropped,
/// and its lock with it.
#[derive(Debug)]
pub(super) struct FaultyFile {
    inner: Arc<dyn StorageFile>,
    gate: Gate,
    name: String,
}

impl FaultyFile {
    pub(super) fn new(inner: Arc<dyn StorageFile>, gate: Gate, name: String) -> Self {
        Self { inner, gate, name }
    }

    /// Tries the lock as a counted operation.
    ///
    /// A crash after the lock was taken releases it: for the caller it failed, so nothing
    /// else would release it, and threads that share this process with the stopped
    /// machine would wait forever.
    fn count_lock(&self, verb: &str, take: Take) -> io::Result<bool> {
        let label = format_args!("{verb} {}", self.name);
        let mut taken = false;
        let locked = self.gate.pass(Kind::Change, label, |_| {
            taken = take(self.inner.as_ref())?;
            Ok(taken)
        });
        if taken && locked.is_err() {
            self.inner.unlock().ok();
        }
        locked
    }

    /// Retries instead of waiting inside the inner storage, because a crash may stop the
    /// holder while it has the lock.
    fn wait(&self, verb: &str, take: Take) -> io::Result<()> {
        let mut locked = self.count_lock(verb, take)?;
        while !locked {
            thread::sleep(LOCK_POLL);
            locked = self.gate.pass_again(|| take(self.inner.as_ref()))?;
        }
        Ok(())
    }
}

/// Tries a lock of the inner file.
type Take = fn(&dyn StorageFile) -> io::Result<bool>;

impl StorageFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        let label = format_args!("len {}", self.name);
        self.gate.pass(Kind::Read, label, |_| self.inner.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let label = format_args!("read {} {}+{}", self.name, offset, buf.len());
        self.gate
            .pass(Kind::Read, label, |_| self.inner.read_at(buf, offset))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let label = format_args!("append {} {}", self.name, bytes.len());
        self.gate.pass(Kind::Append, label, |share| {
            self.inner.append(&bytes[..share.of(bytes.len())])
        })
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let label = format_args!("truncate {} {len}", self.name);
        self.gate
            .pass(Kind::Change, label, |_| self.inner.truncate(len))
    }

    /// Never fails and is not counted: signs of life come at any time.
    fn replace_end(&self, len: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.replace_end(len, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        let label = format_args!("sync {}", self.name);
        self.gate.pass(Kind::Sync, label, |share| {
            if share.is_some() {
                self.inner.sync()?;
            }
            Ok(())
        })
    }

    fn lock(&self) -> io::Result<()> {
        self.wait("lock", |file| file.try_lock())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.count_lock("try_lock", |file| file.try_lock())
    }

    fn lock_shared(&self) -> io::Result<()> {
        self.wait("lock_shared", |file| file.try_lock_shared())
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.count_lock("try_lock_shared", |file| file.try_lock_shared())
    }

    /// Releases the lock even if it reports an error, so that no other thread waits for a
    /// stopped machine.
    fn unlock(&self) -> io::Result<()> {
        let unlocked = self.inner.unlock();
        let label = format_args!("unlock {}", self.name);
        self.gate.pass(Kind::Change, label, |_| unlocked)
    }
}

//! An in-memory disk with one file, which can fail and lose power.
//!
//! Bytes reach the platter by a sync. After a failed sync they never do, as on a real
//! system, where the next sync treats them as written.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::storage::{Storage, StorageFile};

#[derive(Debug, Clone, Default)]
pub(super) struct Disk(Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
struct DiskState {
    /// The file as programs see it.
    file: Option<Vec<u8>>,
    /// The file after a power cut, if its name survives.
    platter: Vec<u8>,
    name_is_durable: bool,
    /// The start of the bytes that the next sync covers.
    dirty_from: usize,
    fault: Option<(usize, Fault)>,
    is_down: bool,
    log: Vec<&'static str>,
    bytes_read: usize,
}

/// A fault at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It fails without effect; later operations work.
    Error,
    /// It fails without effect, and so does the next one.
    Twice,
    /// An append writes half of its bytes and fails for the rest; anything else fails.
    Tear,
    /// It fails, and so does everything after it: the machine stopped.
    Stop,
    /// As `Stop`, but an append still writes half of its bytes, and anything else still
    /// happens.
    StopHalfWay,
}

/// What a power cut leaves of unsynced bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Left {
    Nothing,
    Half,
    Nuls,
    All,
}

impl Disk {
    pub(super) fn with(file: &[u8]) -> Self {
        let state = DiskState {
            file: Some(file.to_vec()),
            platter: file.to_vec(),
            name_is_durable: true,
            dirty_from: file.len(),
            ..DiskState::default()
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the file's bytes.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap().file.clone()
    }

    /// Makes the nth operation from now on fail.
    pub(super) fn arm(&self, n: usize, fault: Fault) {
        let mut state = self.0.lock().unwrap();
        state.fault = Some((n + state.log.len(), fault));
    }

    /// Returns whether the fault has occurred.
    pub(super) fn fired(&self) -> bool {
        self.0.lock().unwrap().fault.is_none()
    }

    /// Returns whether the machine stopped.
    pub(super) fn is_down(&self) -> bool {
        self.0.lock().unwrap().is_down
    }

    /// Returns the operations since the last call.
    pub(super) fn take_log(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap().log)
    }

    pub(super) fn bytes_read(&self) -> usize {
        self.0.lock().unwrap().bytes_read
    }

    /// Returns the disk after a power cut.
    pub(super) fn cut_power(&self, left: Left) -> Self {
        let state = self.0.lock().unwrap();
        let mut file = state.platter.clone();
        let live = state.file.clone().unwrap_or_default();
        let unsynced = live.get(file.len()..).unwrap_or_default();
        match left {
            Left::Nothing => {}
            Left::Half => file.extend(&unsynced[..unsynced.len() / 2]),
            Left::Nuls => file.resize(file.len() + unsynced.len(), 0),
            Left::All => {
                // Except for bytes that a failed sync dropped.
                file.resize(file.len().max(state.dirty_from), 0);
                file.extend(live.get(file.len()..).unwrap_or_default());
            }
        }
        if state.name_is_durable {
            Self::with(&file)
        } else {
            Self::default()
        }
    }

    /// Performs an operation, or the part that the fault allows.
    fn act<T>(
        &self,
        name: &'static str,
        act: impl FnOnce(&mut DiskState, Share) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.0.lock().unwrap();
        let n = state.log.len();
        state.log.push(name);
        let share = if name == "append" {
            Share::Half
        } else {
            Share::All
        };
        match state.fault.take_if(|(at, _)| *at == n) {
            _ if state.is_down => Err(io::Error::other("the machine is down")),
            None => act(&mut state, Share::All),
            Some((_, Fault::Tear)) if name == "append" => {
                state.fault = Some((n + 1, Fault::Error));
                act(&mut state, Share::Half)
            }
            Some((_, fault)) => {
                state.is_down = matches!(fault, Fault::Stop | Fault::StopHalfWay);
                if fault == Fault::Twice {
                    state.fault = Some((n + 1, Fault::Error));
                }
                if fault == Fault::StopHalfWay {
                    act(&mut state, share).ok();
                } else if name == "sync" && !state.is_down {
                    state.dirty_from = state.live().len();
                }
                Err(io::Error::other("a fault"))
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Share {
    All,
    Half,
}

impl DiskState {
    fn live(&mut self) -> &mut Vec<u8> {
        self.file.as_mut().expect("an open file exists")
    }
}

impl Storage for Disk {
    fn create_new(&self, _: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.act("create", |state, _| match state.file {
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => {
                state.file = Some(Vec::new());
                Ok(Arc::new(self.clone()) as _)
            }
        })
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.open_read(path)
    }

    fn open_read(&self, _: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.act("open", |state, _| match state.file {
            Some(_) => Ok(Arc::new(self.clone()) as _),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.act("sync_dir", |state, _| {
            state.name_is_durable = state.file.is_some();
            Ok(())
        })
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        unreachable!()
    }

    fn link_new(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!()
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        unreachable!()
    }

    fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
        unreachable!()
    }

    fn exists(&self, _: &Path) -> io::Result<bool> {
        unreachable!()
    }
}

impl StorageFile for Disk {
    fn len(&self) -> io::Result<u64> {
        self.act("len", |state, _| Ok(state.live().len() as u64))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.act("read", |state, _| {
            let file = state.live();
            let from = usize::try_from(offset).unwrap().min(file.len());
            let n = buf.len().min(file.len() - from);
            buf[..n].copy_from_slice(&file[from..from + n]);
            state.bytes_read += n;
            Ok(n)
        })
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.act("append", |state, share| {
            let n = if share == Share::All {
                bytes.len()
            } else {
                bytes.len() / 2
            };
            state.live().extend_from_slice(&bytes[..n]);
            Ok(n)
        })
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.act("truncate", |state, _| {
            let len = usize::try_from(len).unwrap();
            state.live().truncate(len);
            state.platter.truncate(len);
            state.dirty_from = state.dirty_from.min(len);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.act("sync", |state, _| {
            let live = state.live().clone();
            let from = state.dirty_from;
            state.platter.resize(live.len(), 0);
            state.platter[from..].copy_from_slice(&live[from..]);
            state.dirty_from = live.len();
            Ok(())
        })
    }

    fn lock(&self) -> io::Result<()> {
        unreachable!()
    }

    fn try_lock(&self) -> io::Result<bool> {
        unreachable!()
    }

    fn unlock(&self) -> io::Result<()> {
        unreachable!()
    }
}

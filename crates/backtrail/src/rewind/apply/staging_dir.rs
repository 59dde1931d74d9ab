//! The staging directory of one step: new files wait there, and old files stay there until
//! everything is done.
//!
//! It is in the workspace's root, so that every move is a rename. The names in it say what
//! they are: `n-` and the hash of the path for what is to be put in place (or came out in
//! exchange), `o-` for what was moved out of the way, `modes-` for the modes of directories
//! that are writable for now.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::compare::errno;
use super::root_dir::{RootDir, may_write};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::STAGING;
use crate::snapshot::scan::sys::{self, Names};

pub(super) const OLD: &str = "o-";
pub(super) const NEW: &str = "n-";
const MODES: &str = "modes-";
/// The bits that a directory needs while we work in it.
pub(super) const OPEN: u32 = 0o700;

/// The staging directory.
#[derive(Debug)]
pub(super) struct StagingDir {
    pub(super) fd: OwnedFd,
    pub(super) name: PathBuf,
    /// Directories that are writable for now, and their own modes.
    pub(super) made_writable: Vec<(PathBuf, u32)>,
    /// How many files record them.
    notes: u32,
    /// Our user id on the file system.
    pub(super) uid: u32,
}

/// Returns the name of a step's staging directory.
pub(super) fn staging_name(id: CheckpointId) -> PathBuf {
    let mut name = STAGING.to_vec();
    name.extend_from_slice(id.to_string().as_bytes());
    PathBuf::from(OsStr::from_bytes(&name))
}

/// One of the two states of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Old,
    New,
}

impl Version {
    /// Returns the staged name of a path's file.
    pub(super) fn staged_name(self, path: &Path) -> String {
        let prefix = match self {
            Self::Old => OLD,
            Self::New => NEW,
        };
        format!("{prefix}{}", hash_of(path))
    }
}

pub(super) fn hash_of(path: &Path) -> String {
    let mut hash = blake3::hash(bytes_of(path)).to_hex().to_string();
    hash.truncate(16);
    hash
}

impl StagingDir {
    /// Creates the staging directory of a step, which must not exist.
    pub(super) fn create(root_dir: &RootDir<'_>, id: CheckpointId) -> Result<Self> {
        let name = staging_name(id);
        let lend = Self::open_root(root_dir)?;
        let mut made = Self::make(root_dir, &name);
        if let (Ok(staging), Some(mode)) = (&mut made, lend) {
            let noted = staging.record_modes(root_dir, vec![(PathBuf::new(), mode)]);
            if let Err(error) = noted {
                staging.remove(root_dir).ok();
                made = Err(error);
            }
        }
        if let (Err(_), Some(mode)) = (&made, lend) {
            root_dir.set_mode(Path::new(""), mode, |_| true).ok();
        }
        made
    }

    /// Makes the root writable if it is not, and returns its mode.
    fn open_root(root_dir: &RootDir<'_>) -> Result<Option<u32>> {
        let path = Path::new("");
        let failed =
            |call, error| root_dir.failed("write in the workspace's directory", call, path, error);
        if may_write(root_dir.root()).map_err(|error| failed("faccessat", error))? {
            return Ok(None);
        }
        let root = sys::seen(root_dir.root()).map_err(|error| failed("fstat", error))?;
        let mode = root.stamp.mode;
        let set = root_dir.set_mode(path, mode | OPEN, |_| true);
        set.map_err(|error| failed("fchmod", error))
    }

    fn make(root_dir: &RootDir<'_>, name: &Path) -> Result<Self> {
        let doing = "create a directory for new files";
        root_dir
            .make_dir(name)
            .map_err(|error| root_dir.failed(doing, "mkdirat", name, error))?;
        let made = Self::open(root_dir, name).and_then(|staging| {
            // Files must not inherit the group of a directory that they only wait in.
            let set = root_dir.set_mode(&staging.name, OPEN, |_| true);
            set.map_err(|error| root_dir.failed(doing, "fchmod", name, error))?;
            Ok(staging)
        });
        made.inspect_err(|_| root_dir.remove_dir(name).unwrap_or_default())
    }

    /// Opens the staging directory of an interrupted step; `None` if there is none.
    pub(super) fn find(root_dir: &RootDir<'_>, id: CheckpointId) -> Result<Option<Self>> {
        let name = staging_name(id);
        let seen = root_dir.look(&name);
        let doing = "read the staging directory";
        match seen.map_err(|error| root_dir.failed(doing, "fstatat", &name, error))? {
            None => return Ok(None),
            Some(seen) if seen.kind == FileKind::Dir => {}
            Some(_) => {
                let what = "something else has the name of the staging directory";
                let error = Error::new(ErrorKind::Conflict, what);
                return Err(error.at_path(&root_dir.path.join(name)));
            }
        }
        let mut staging = Self::open(root_dir, &name)?;
        staging.read_modes(root_dir)?;
        Ok(Some(staging))
    }

    fn open(root_dir: &RootDir<'_>, name: &Path) -> Result<Self> {
        let failed = |error| root_dir.failed("open the staging directory", "openat", name, error);
        let fd = root_dir.open_dir(bytes_of(name)).map_err(failed)?;
        let uid = sys::seen(&fd).map_err(failed)?.uid;
        Ok(Self {
            fd,
            name: name.to_owned(),
            made_writable: Vec::new(),
            notes: 0,
            uid,
        })
    }

    /// Returns the names in it.
    pub(super) fn names(&self, root_dir: &RootDir<'_>) -> Result<Vec<String>> {
        let mut names = Names::default();
        // A new handle reads from the beginning.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let read = rustix::fs::openat(&self.fd, ".", flags, Mode::empty());
        let read = read.and_then(|fd| names.read(&fd));
        let doing = "read the staging directory";
        read.map_err(|error| root_dir.failed(doing, "getdents64", &self.name, error))?;
        let names = names.iter().map(|(name, _)| name.to_string_lossy());
        Ok(names.map(|name| name.into_owned()).collect())
    }

    /// Records and syncs the modes of directories that are about to be made writable.
    pub(super) fn record_modes(
        &mut self,
        root_dir: &RootDir<'_>,
        lent: Vec<(PathBuf, u32)>,
    ) -> Result<()> {
        let name = format!("{MODES}{}", self.notes);
        self.notes += 1;
        let mut bytes = Vec::new();
        for (path, mode) in &lent {
            bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
            bytes.extend_from_slice(bytes_of(path));
            bytes.push(0);
        }
        let noted = self.write_modes(root_dir, &name, &bytes);
        let doing = "record the modes of directories";
        noted.map_err(|error| root_dir.failed(doing, "write", &self.name, error))?;
        self.made_writable.extend(lent);
        Ok(())
    }

    fn write_modes(
        &self,
        root_dir: &RootDir<'_>,
        name: &str,
        bytes: &[u8],
    ) -> rustix::io::Result<()> {
        let path = &self.name;
        let mut file = root_dir.create_file(&self.fd, name.as_bytes(), path)?;
        root_dir.ask("write", path)?;
        file.write_all(bytes).map_err(errno)?;
        root_dir.ask("fsync", path)?;
        rustix::fs::fsync(&file)?;
        root_dir.ask("fsync", path)?;
        rustix::fs::fsync(&self.fd)?;
        root_dir.sync(Path::new(""))
    }

    fn read_modes(&mut self, root_dir: &RootDir<'_>) -> Result<()> {
        for name in self.names(root_dir)? {
            let Some(number) = name.strip_prefix(MODES) else {
                continue;
            };
            let number = number.parse::<u32>().unwrap_or(0);
            self.notes = self.notes.max(number.saturating_add(1));
            let mut bytes = Vec::new();
            let file = sys::open_file(&self.fd, name.as_str()).map(File::from);
            let read = file
                .map_err(Into::into)
                .and_then(|file| file.take(1 << 26).read_to_end(&mut bytes));
            let doing = "read the modes of directories";
            read.map_err(|error| root_dir.failed(doing, "read", &self.name, errno(error)))?;
            self.made_writable.extend(parse_modes(&bytes));
        }
        Ok(())
    }

    /// Restores the mode of a directory that was made writable, unless somebody else
    /// changed it meanwhile.
    pub(super) fn restore_mode(
        &self,
        root_dir: &RootDir<'_>,
        path: &Path,
        mode: u32,
    ) -> Result<()> {
        let set = root_dir.set_mode(path, mode, |seen| {
            seen.kind == FileKind::Dir && seen.stamp.mode == mode | OPEN
        });
        set.map(drop)
            .map_err(|error| root_dir.failed("set the mode of a directory", "fchmod", path, error))
    }

    /// Removes the recorded modes and the staging directory itself, and returns whether it
    /// was removed: it stays if there is anything else in it.
    pub(super) fn remove(&self, root_dir: &RootDir<'_>) -> Result<bool> {
        for name in self.names(root_dir)? {
            if name.starts_with(MODES) {
                self.unlink(root_dir, &name, &self.name)?;
            }
        }
        match root_dir.remove_dir(&self.name) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => {
                Err(root_dir.failed("remove a staged file", "unlinkat", &self.name, error))
            }
        }
    }

    /// Removes a name in it; `path` is the path that it belongs to.
    pub(super) fn unlink(&self, root_dir: &RootDir<'_>, name: &str, path: &Path) -> Result<()> {
        let unlinked = root_dir.call("unlinkat", path, || {
            rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())
        });
        match unlinked {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(root_dir.failed("remove a staged file", "unlinkat", path, error)),
        }
    }
}

/// Reads recorded modes. What a power cut left incomplete is skipped: nothing was done
/// about it yet.
fn parse_modes(bytes: &[u8]) -> Vec<(PathBuf, u32)> {
    let whole = bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let lines = bytes[..whole].split(|byte| *byte == 0);
    let parse = |line: &[u8]| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let mode = str::from_utf8(&line[..at]).ok()?;
        let path = PathBuf::from(OsStr::from_bytes(&line[at + 1..]));
        super::root_dir::SplitPath::check(&path).ok()?;
        Some((path, u32::from_str_radix(mode, 8).ok()? & 0o7777))
    };
    lines.filter_map(parse).collect()
}

//! The store's directory and its format file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use super::imported::IMPORTED;
use super::{OBJECTS, SESSIONS, Store, WORKSPACES};
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::log::TRASH;
use crate::storage::{Storage, append_all, is_absent, make_dir, read_full};

/// The version of the store's layout.
const STORE_VERSION: u32 = 2;
const FORMAT_FILE: &str = "format";
/// The store's directories.
const PARTS: [&str; 6] = [SESSIONS, WORKSPACES, OBJECTS, TRASH, IMPORTED, "derived"];

impl Store {
    /// Creates the directories, and last the format file: a store with one is complete.
    pub(super) fn create(&self) -> Result<()> {
        let storage = self.storage();
        self.create_root()?;
        let root = self.root();
        create_dir(storage, &self.0.sessions)?;
        sync_dir(storage, root)?;
        self.create_format()?;
        sync_dir(storage, root)
    }

    /// Creates the store's directory and the missing ones above it.
    fn create_root(&self) -> Result<()> {
        let storage = self.storage();
        let mut missing = Vec::new();
        let mut dir = Some(self.root());
        while let Some(path) = dir.filter(|path| *path != Path::new("")) {
            match storage.exists(path) {
                Ok(true) => break,
                Ok(false) => missing.push(path),
                Err(error) => return Err(Error::io("cannot find the store", path, error)),
            }
            dir = path.parent();
        }
        let made = missing.len();
        for path in missing.into_iter().rev() {
            create_dir(storage, path)?;
        }
        // A process that created one of these directories may have died before syncing it. A
        // directory that cannot be opened was not created by such a process.
        for (n, dir) in self.root().ancestors().skip(1).enumerate() {
            let dir = if dir == Path::new("") {
                Path::new(".")
            } else {
                dir
            };
            match storage.sync_dir(dir) {
                Err(error) if n >= made && cannot_be_ours(&error) => {}
                synced => synced.context("cannot create the store", dir)?,
            }
        }
        Ok(())
    }

    fn create_format(&self) -> Result<()> {
        let storage = self.storage();
        let path = self.root().join(FORMAT_FILE);
        let failed = |error| Error::io("cannot create the store", &path, error);
        let mut bytes = [0; 8];
        self.random().fill(&mut bytes).map_err(failed)?;
        let aside = self
            .root()
            .join(format!("{FORMAT_FILE}.new-{:x}", u64::from_ne_bytes(bytes)));
        let file = storage.create_new(&aside).map_err(failed)?;
        let content = format!("backtrail {STORE_VERSION}\n");
        let linked = append_all(file.as_ref(), content.as_bytes())
            .and_then(|()| file.sync())
            .and_then(|()| match storage.link_new(&aside, &path) {
                // Another process created it first, with the same content.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            });
        storage.remove_file(&aside).ok();
        linked.map_err(failed)
    }

    /// Returns the error for a directory that is not a store.
    fn no_store(&self) -> Result<Error> {
        let (storage, root) = (self.storage(), self.root());
        let nothing = || {
            let what = format!("no Backtrail store in {}", root.display());
            Error::new(ErrorKind::NotFound, what).at_path(root)
        };
        let names = match storage.list(root) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let what = format!("{} is not a directory", root.display());
                return Ok(Error::invalid(what).at_path(root));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(nothing()),
            Err(error) => return Err(Error::io("cannot find the store", root, error)),
        };
        let is_part = |name: &OsString| PARTS.iter().any(|part| name == part);
        let ours = |name: &OsString| is_part(name) || is_aside_format(name);
        if !names.iter().all(|name| ours(name) || is_setting(name)) {
            let what = format!(
                "{} is neither empty nor a Backtrail store; use another directory",
                root.display()
            );
            return Ok(Error::invalid(what).at_path(root));
        }
        // A crash during creation leaves no session.
        if self.sessions()?.is_empty() {
            return Ok(nothing());
        }
        let what = format!(
            "the store's format file is gone; if this is a store of this version, \
             create one with the line \"backtrail {STORE_VERSION}\""
        );
        Ok(Error::new(ErrorKind::Corrupt, what).at_path(&root.join(FORMAT_FILE)))
    }

    /// Reads the format file, and refuses a format that this version does not know.
    pub(super) fn check_format(&self) -> Result<()> {
        let path = self.root().join(FORMAT_FILE);
        let file = match self.storage().open_read(&path) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => {
                let nothing = self.no_store()?;
                // Another process may have created the store meanwhile.
                match self.storage().open_read(&path) {
                    Ok(file) => file,
                    Err(_) => return Err(nothing),
                }
            }
            Err(error) => return Err(Error::io("cannot open the store", &path, error)),
        };
        let mut bytes = [0; 64];
        let len = read_full(file.as_ref(), &mut bytes, 0)
            .map_err(|error| Error::io("cannot open the store", &path, error))?;
        let version = std::str::from_utf8(&bytes[..len])
            .ok()
            .and_then(|text| text.trim().strip_prefix("backtrail "))
            .and_then(|version| version.parse::<u32>().ok());
        match version {
            Some(STORE_VERSION) => Ok(()),
            Some(newer) if newer > STORE_VERSION => Err(Error::new(
                ErrorKind::NewerFormat,
                format!(
                    "the store has format {newer}, but this program knows {STORE_VERSION}; upgrade Backtrail"
                ),
            )
            .at_path(&path)),
            _ => Err(Error::new(
                ErrorKind::Corrupt,
                format!("the store's format file is not \"backtrail {STORE_VERSION}\""),
            )
            .at_path(&path)),
        }
    }
}

impl Store {
    /// Creates the trash if it is missing.
    pub(crate) fn make_trash_dir(&self) -> Result<()> {
        self.make_part("cannot create the trash", &self.trash_dir())
    }

    pub(super) fn make_part(&self, doing: &str, path: &Path) -> Result<()> {
        let failed = |error| Error::io(doing, path, error);
        make_dir(self.storage(), path).map_err(failed)?;
        self.storage().sync_dir(self.root()).map_err(failed)
    }
}

/// Returns whether a directory cannot be synced because of its kind or its permissions.
fn cannot_be_ours(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::Unsupported
    )
}

fn is_aside_format(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == FORMAT_FILE || name.starts_with("format.new-")
}

/// Settings may be written before the store is created.
pub(super) fn is_setting(name: &OsStr) -> bool {
    name == "config.toml"
}

/// Creates a directory unless it exists.
fn create_dir(storage: &dyn Storage, path: &Path) -> Result<()> {
    make_dir(storage, path).context("cannot create the store", path)
}

fn sync_dir(storage: &dyn Storage, path: &Path) -> Result<()> {
    storage
        .sync_dir(path)
        .context("cannot create the store", path)
}

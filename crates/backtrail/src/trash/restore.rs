//! Restoring what was deleted.

use std::io;

use super::{TrashKind, TrashName};
use crate::error::{Error, ErrorKind, Result};
use crate::log::DELETED;
use crate::storage::is_absent;
use crate::store::Store;
use crate::trail::trail_number;

impl Store {
    /// Restores an entry of the trash.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) where it is not in the trash, and with
    /// [`Invalid`](ErrorKind::Invalid) where its name is taken.
    pub fn restore_deleted(&self, name: &TrashName) -> Result<()> {
        let dir = self.trash_dir().join(name.to_string());
        if !self.is_dir(&dir)? {
            return Err(not_there(name));
        }
        let _guard = self.hold_trash()?;
        match name.kind {
            TrashKind::Session => self.restore_session(name),
            TrashKind::Trails => self.restore_trails(name),
        }
    }

    fn restore_session(&self, name: &TrashName) -> Result<()> {
        let files = self.files(&name.id);
        let from = files.deleted();
        let renamed = self.storage().rename_new(from.path(), files.path());
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                let what = format!(
                    "cannot restore session {}: another session has this id",
                    name.id
                );
                Error::invalid(what).at_path(files.path())
            }
            io::ErrorKind::NotFound => not_there(name),
            _ => Error::io("cannot restore the session", from.path(), error),
        })?;
        self.sync_dirs([self.sessions_dir(), self.trash_dir().as_path()])?;
        // It has no meaning outside the trash.
        self.storage().remove_file(&files.path().join(DELETED)).ok();
        Ok(())
    }

    /// Moves trails back to the others of their session.
    fn restore_trails(&self, name: &TrashName) -> Result<()> {
        let files = self.files(&name.id);
        files.head().map_err(|error| match error.in_trash() {
            Some(_) => error.with_note("restore it first"),
            None => error,
        })?;
        let dir = files.trails_in_trash();
        let failed = |error| Error::io("cannot restore the trails", &dir, error);
        let names = match self.storage().list(&dir) {
            Err(error) if is_absent(&error) => return Err(not_there(name)),
            names => names.map_err(failed)?,
        };
        for trail in names.iter().filter_map(|name| trail_number(name)) {
            let to = files.trail_path(trail);
            let from = dir.join(crate::trail::file_name(trail));
            self.storage().rename_new(&from, &to).map_err(failed)?;
        }
        self.sync_dirs([files.path(), &dir])?;
        let removed = self.remove_session_dir(&dir)?;
        match removed.left.first() {
            Some(left) => {
                let what =
                    "the trails are restored, but another program's file is left in the trash";
                Err(Error::invalid(what).at_path(left))
            }
            None => Ok(()),
        }
    }
}

fn not_there(name: &TrashName) -> Error {
    Error::new(ErrorKind::NotFound, format!("{name} is not in the trash"))
}

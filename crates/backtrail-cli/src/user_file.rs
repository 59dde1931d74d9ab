//! Settings files of other programs: read whole, backed up, and replaced in one step or not at all.
//!
//! A file is written to a temporary one beside it, synced and renamed, so a kill at any moment
//! leaves the old or the new content. A link stays a link: the file that it leads to is replaced.
//! Mode and owner stay. Files that cannot be replaced like this are refused with the reason.

#![expect(
    clippy::disallowed_methods,
    reason = "these files are the user's, not the store's"
)]

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{CommandError, Result};

/// Larger files are not settings.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A file, as it was read.
#[derive(Debug)]
pub(crate) struct UserFile {
    path: PathBuf,
    /// `None` if there is no file.
    content: Option<Content>,
}

#[derive(Debug)]
struct Content {
    text: String,
    /// The file itself, where a path leads through links.
    target: PathBuf,
    metadata: fs::Metadata,
}

impl UserFile {
    /// Reads a file, or finds that there is none. Refuses one that cannot be replaced.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    path,
                    content: None,
                });
            }
            Err(error) => return Err(cannot("read", &path, &error)),
        };
        let target = match fs::canonicalize(&path) {
            Ok(target) => target,
            Err(error) if found.is_symlink() && error.kind() == io::ErrorKind::NotFound => {
                return Err(refused(&path, "is a link to a file that does not exist"));
            }
            Err(error) => return Err(cannot("read", &path, &error)),
        };
        let metadata = fs::metadata(&target).map_err(|error| cannot("read", &path, &error))?;
        check(&path, &metadata)?;
        let text = read_text(&path, &target)?;
        let content = Some(Content {
            text,
            target,
            metadata,
        });
        Ok(Self { path, content })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text of the file; `None` if there is none.
    pub(crate) fn text(&self) -> Option<&str> {
        self.content.as_ref().map(|content| content.text.as_str())
    }

    /// Returns how many directories above the file do not exist.
    pub(crate) fn missing_directories(&self) -> usize {
        let above = self.path.ancestors().skip(1);
        above.take_while(|dir| !dir.exists()).count()
    }

    /// Returns the file that keeps the content from before a change.
    pub(crate) fn backup(&self) -> PathBuf {
        beside(&self.path, "", ".backtrail-backup")
    }

    /// Replaces the content, after a copy of it was saved. Creates a file that is not there, and the
    /// directories above it; `mode` is that of a new file.
    pub(crate) fn write(&self, text: &str, mode: u32) -> Result<()> {
        let Some(content) = &self.content else {
            let dir = self.path.parent().unwrap_or(Path::new("."));
            create_directories(dir).map_err(|error| cannot("create", dir, &error))?;
            return self.replace(&self.path, text, mode, None);
        };
        let permissions = content.metadata.permissions();
        self.replace(&self.backup(), &content.text, mode, Some(&permissions))?;
        self.replace(&content.target, text, mode, Some(&permissions))
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> Result<()> {
        self.check_unchanged()?;
        match &self.content {
            Some(_) => remove_if_there(&self.path),
            None => Ok(()),
        }
    }

    /// Removes the copy from before a change.
    pub(crate) fn remove_backup(&self) -> Result<()> {
        remove_if_there(&self.backup())
    }

    /// Removes empty directories above the file, at most so many.
    pub(crate) fn remove_directories(&self, most: usize) {
        for dir in self.path.ancestors().skip(1).take(most) {
            // One that is not empty stays, and those above it.
            if fs::remove_dir(dir).is_err() {
                return;
            }
        }
    }

    fn replace(
        &self,
        target: &Path,
        text: &str,
        mode: u32,
        permissions: Option<&Permissions>,
    ) -> Result<()> {
        let failed = |error: &io::Error| cannot("write", target, error);
        let (temporary, mut file) = self.temporary(target)?;
        let written = (|| {
            file.write_all(text.as_bytes())?;
            self.take_over(&file, mode, permissions)?;
            file.sync_all()
        })();
        let written = written.map_err(|error| failed(&error));
        let unchanged = written.and_then(|()| self.check_unchanged());
        let renamed =
            unchanged.and_then(|()| fs::rename(&temporary, target).map_err(|error| failed(&error)));
        if renamed.is_err() {
            fs::remove_file(&temporary).ok();
        }
        renamed?;
        // The rename is durable once its directory is.
        let dir = target.parent().unwrap_or(Path::new("."));
        let synced = File::open(dir).and_then(|dir| dir.sync_all());
        synced.map_err(|error| failed(&error))
    }

    /// Creates the temporary file, or takes over one that a killed process left.
    fn temporary(&self, target: &Path) -> Result<(PathBuf, File)> {
        let path = beside(target, ".", ".backtrail-new");
        let failed = |error: &io::Error| {
            cannot("write", target, error).hint("its directory must be writable")
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(refused(&path, "is not a regular file"));
        }
        let file = options.open(&path).map_err(|error| failed(&error))?;
        let other = || refused(&self.path, "is being changed by another backtrail setup");
        file.try_lock().map_err(|_| other())?;
        // Another process may have renamed it before we had the lock.
        match (file.metadata(), fs::symlink_metadata(&path)) {
            (Ok(ours), Ok(there)) if is_same_file(&ours, &there) => {}
            _ => return Err(other()),
        }
        file.set_len(0).map_err(|error| failed(&error))?;
        Ok((path, file))
    }

    /// Gives a new file the mode and the owner of the old one.
    fn take_over(
        &self,
        file: &File,
        mode: u32,
        permissions: Option<&Permissions>,
    ) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
            if let Some(content) = &self.content {
                let (old, new) = (&content.metadata, file.metadata()?);
                if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                    std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()))?;
                }
            }
            let mode = Permissions::from_mode(mode);
            file.set_permissions(permissions.cloned().unwrap_or(mode))
        }
        #[cfg(not(unix))]
        {
            drop(mode);
            permissions.map_or(Ok(()), |permissions| {
                file.set_permissions(permissions.clone())
            })
        }
    }

    /// Fails if the file is not what was read.
    fn check_unchanged(&self) -> Result<()> {
        let now = match &self.content {
            Some(content) => Some(read_text(&self.path, &content.target)?),
            None if fs::symlink_metadata(&self.path).is_ok() => Some(String::new()),
            None => None,
        };
        match now.as_deref() == self.text() {
            true => Ok(()),
            false => Err(refused(&self.path, "was changed meanwhile").hint("try again")),
        }
    }
}

fn read_text(path: &Path, target: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(target).map_err(|error| cannot("read", path, &error))?;
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot("read", path, &error))?;
    String::from_utf8(bytes).map_err(|_| refused(path, "is not UTF-8 text"))
}

fn check(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    if !metadata.is_file() {
        return Err(refused(path, "is not a regular file"));
    }
    if metadata.permissions().readonly() {
        let error = refused(path, "is read-only");
        return Err(error.hint(format!("chmod u+w {}", crate::shell::quote_path(path))));
    }
    if metadata.len() > LARGEST {
        return Err(refused(path, "is larger than 64 MiB"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(metadata) > 1 {
        let error = refused(
            path,
            "has another hard link, which would keep the old content",
        );
        return Err(error.hint("replace it by a copy or a symbolic link"));
    }
    Ok(())
}

fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        one.len() == other.len()
    }
}

/// Creates directories that only their owner can use.
fn create_directories(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(cannot("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Returns the path of a file whose name has something before and after.
fn beside(path: &Path, before: &str, after: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(before);
    name.push(path.file_name().unwrap_or_default());
    name.push(after);
    path.with_file_name(name)
}

fn refused(path: &Path, reason: &str) -> CommandError {
    CommandError::invalid(format!("{} {reason}", path.display())).at_path(path)
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::io(
        format!("cannot {verb} {}", path.display()),
        Some(path),
        error,
    )
}

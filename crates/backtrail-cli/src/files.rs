//! Files that the command reads itself: the user's, the system's and, only to look, the store's.
//! And files that it writes for the user.

#![expect(
    clippy::disallowed_methods,
    reason = "the engine's own files are only looked at"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use backtrail::{LocalStorage, Storage as _};
use rustix::fs::OFlags;

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Creates a file that only its owner can read. Fails if there is one, or a link.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a file to write over, with the permissions that it has, or creates one that only its
/// owner can read. A link that leads nowhere is not followed.
pub(crate) fn replace_private(path: &Path) -> io::Result<File> {
    match OpenOptions::new().write(true).truncate(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_private(path),
        opened => opened,
    }
}

/// A regular file that is to be replaced.
#[derive(Debug)]
pub(crate) struct RegularFile {
    /// Where it is, without links.
    pub(crate) path: PathBuf,
    permissions: fs::Permissions,
}

/// Finds the regular file at a path, through links; `None` if there is nothing.
pub(crate) fn regular(path: &Path) -> io::Result<Option<RegularFile>> {
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        path => path?,
    };
    let metadata = fs::metadata(&path)?;
    match metadata.is_file() {
        true => Ok(Some(RegularFile {
            path,
            permissions: metadata.permissions(),
        })),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

impl RegularFile {
    /// Puts another file in its place, with its permissions.
    pub(crate) fn replace_with(&self, new: &Path) -> io::Result<()> {
        fs::set_permissions(new, self.permissions.clone())?;
        fs::rename(new, &self.path)?;
        LocalStorage.sync_dir(self.path.parent().unwrap_or(Path::new(".")))
    }
}

/// Returns the name of a temporary file beside another one.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

/// Creates a file whole or not at all, with the directories above it, readable for its owner
/// alone. Fails if there is one.
pub(crate) fn create_whole<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> Result<(), E>,
) -> Result<(), E> {
    Ok(StagedFile::write(path, write)?.finish()?)
}

/// A file that is written and synced, and does not have its name yet. It is removed unless it
/// gets that.
#[derive(Debug)]
pub(crate) struct StagedFile {
    temporary: PathBuf,
    path: PathBuf,
    new_dirs: Vec<PathBuf>,
}

impl StagedFile {
    /// Writes a file beside its place, with the directories above it, readable for its owner
    /// alone.
    pub(crate) fn write<E: From<io::Error>>(
        path: &Path,
        write: impl FnOnce(&mut dyn io::Write) -> Result<(), E>,
    ) -> Result<Self, E> {
        let path = std::path::absolute(path)?;
        let dir = path.parent().unwrap_or(Path::new("/"));
        let new_dirs = dir.ancestors().take_while(|dir| !dir.exists());
        let new_dirs: Vec<PathBuf> = new_dirs.map(Path::to_owned).collect();
        fs::create_dir_all(dir)?;
        let staged = Self {
            // No agent takes it for a session if we are killed.
            temporary: beside(&path),
            path,
            new_dirs,
        };
        write_synced(&staged.temporary, write)?;
        Ok(staged)
    }

    /// Gives the file its name. Fails if there is one of that name; then, and if the name cannot
    /// be made durable, there is no new file.
    pub(crate) fn finish(self) -> io::Result<()> {
        LocalStorage.rename_new(&self.temporary, &self.path)?;
        let synced = self.sync_names();
        if synced.is_err() {
            fs::remove_file(&self.path).ok();
        }
        synced
    }

    fn sync_names(&self) -> io::Result<()> {
        LocalStorage.sync_dir(self.path.parent().unwrap_or(Path::new("/")))?;
        let mut above = self.new_dirs.iter().filter_map(|dir| dir.parent());
        above.try_for_each(|dir| LocalStorage.sync_dir(dir))
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // After the rename there is none.
        fs::remove_file(&self.temporary).ok();
    }
}

fn write_synced<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = io::BufWriter::new(create_private(path)?);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.sync_all()?)
}

/// Reads a whole text.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Returns who may do what with a file: the bits of its mode.
pub(crate) fn mode(path: &Path) -> Option<u32> {
    let found = fs::metadata(path).ok()?;
    Some(std::os::unix::fs::PermissionsExt::mode(
        &found.permissions(),
    ))
}

/// Returns the paths in a directory.
pub(crate) fn entries(dir: &Path) -> io::Result<impl Iterator<Item = PathBuf> + use<>> {
    let (names, dir) = (LocalStorage.list(dir)?, dir.to_owned());
    Ok(names.into_iter().map(move |name| dir.join(name)))
}

/// Sets a file's time to now; creates it, and the directories above it, if there is none. Links
/// are not followed.
pub(crate) fn touch(path: &Path) -> io::Result<()> {
    open_own(path)?.set_modified(SystemTime::now())
}

/// Waits for the lock of a file, which is held until the file is dropped. Creates the file as
/// [`touch`] does.
pub(crate) fn hold(path: &Path) -> io::Result<File> {
    let file = open_own(path)?;
    file.lock()?;
    Ok(file)
}

/// Writes a file that only its owner can read; creates the directories above it. Links are not
/// followed.
pub(crate) fn write_own(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_own(path)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

fn open_own(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options.open(path)
}

/// Removes a file, or a link.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// Removes a directory with everything in it. Links in it are removed, not followed.
pub(crate) fn remove_tree(dir: &Path) -> io::Result<()> {
    for path in entries(dir)? {
        match fs::symlink_metadata(&path)?.is_dir() {
            true => remove_tree(&path)?,
            false => fs::remove_file(&path)?,
        }
    }
    fs::remove_dir(dir)
}

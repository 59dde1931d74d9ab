//! Files of derived data: readable by their owner only, and never behind a link.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use backtrail::plumbing::LinkRefused;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;

/// Creates an empty file, replacing an existing one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    open_private(
        path,
        File::options().write(true).create(true).truncate(true),
    )
}

/// Opens a file for locking, and creates it if it is missing.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    open_private(
        path,
        File::options().write(true).create(true).truncate(false),
    )
}

fn open_private(path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = options.mode(0o600).custom_flags(flags).open(path)?;
    make_private(&file)?;
    Ok(file)
}

/// Makes a file readable and writable by its owner, whatever the umask is, and by nobody
/// else.
pub(crate) fn make_private(file: &File) -> io::Result<()> {
    match file.metadata()?.permissions().mode() & 0o777 {
        0o600 => Ok(()),
        _ => file.set_permissions(fs::Permissions::from_mode(0o600)),
    }
}

/// Creates a directory for its owner alone, unless it exists.
pub(crate) fn create_dir(dir: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        // A strict umask must not make a directory that even its owner cannot use.
        Ok(()) => fs::set_permissions(dir, fs::Permissions::from_mode(0o700)),
    }
}

/// Returns the names in a directory with what they are. Unlike `std::fs::read_dir`, it does
/// not panic if the directory cannot be closed.
pub(crate) fn entries(dir: &Path) -> io::Result<Vec<(String, FileType)>> {
    Ok(entries_in(open_dir(dir)?)?)
}

/// Opens a directory that is not a link; those above it may be.
pub(crate) fn open_dir(dir: &Path) -> io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, dir, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP if dir.is_symlink() => LinkRefused::at(dir),
        error => error.into(),
    })
}

/// Returns the names in a directory that are UTF-8, as Backtrail's are.
pub(crate) fn entries_in(
    dir: impl Into<std::os::fd::OwnedFd>,
) -> Result<Vec<(String, FileType)>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::new(dir)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push((name.to_owned(), entry.file_type()));
        }
    }
    Ok(names)
}

/// Returns the first link in the way of the catalogue and the search index: the directory
/// itself, or one of the files.
pub(crate) fn find_link(derived: &Path) -> Option<PathBuf> {
    let is_link = |dir: &Path, name: &str, kind: FileType| match kind {
        FileType::Unknown => dir.join(name).is_symlink(),
        kind => kind == FileType::Symlink,
    };
    let mut dirs = vec![derived.to_owned()];
    while let Some(dir) = dirs.pop() {
        let listed = match entries(&dir) {
            Ok(listed) => listed,
            Err(error) if LinkRefused::link(&error).is_some() => return Some(dir),
            Err(_) => continue,
        };
        for (name, kind) in listed {
            let ours = name.starts_with("catalogue") || name.starts_with("search");
            if dir == derived && !ours {
                continue;
            }
            if is_link(&dir, &name, kind) {
                return Some(dir.join(name));
            }
            if dir == derived && kind == FileType::Directory {
                dirs.push(dir.join(name));
            }
        }
    }
    None
}

/// Removes a file, or a directory with everything in it. A link is removed, not followed.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    for name in backtrail::Storage::list(&backtrail::LocalStorage, path)? {
        remove_all(&path.join(name))?;
    }
    fs::remove_dir(path)
}

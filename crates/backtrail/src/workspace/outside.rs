//! Places for a new directory: outside all workspaces, and outside the store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::identity::{Place, known};
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::scan::sys::Names;
use crate::snapshot::shown;
use crate::store::Store;

/// How many names in a directory an error tells.
const NAMED: usize = 3;

/// Where a new directory shall be.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    /// Its parent, without links.
    pub(crate) parent: PathBuf,
    pub(crate) name: OsString,
    /// Whether an empty directory is there, which it takes the place of.
    pub(crate) is_there: bool,
}

impl Outside {
    /// Takes a path where nothing is, or an empty directory, that lies neither in a
    /// workspace nor in the store, nor around one.
    pub(crate) fn find(store: &Store, path: &Path) -> Result<Self> {
        let place = Self::at(path)?;
        let whole = place.path();
        place.outside_store(store, &whole)?;
        place.outside_workspaces(store, &whole)?;
        if place.is_there {
            must_be_empty(&whole)?;
        }
        Ok(place)
    }

    /// Returns the path, without links.
    pub(crate) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Finds out what is there, through no link at the end.
    fn at(path: &Path) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Error::invalid("the directory's name is empty; name one"));
        }
        // A slash at the end would lead through a link.
        let path: PathBuf = path.components().collect();
        let kind = match rustix::fs::lstat(&path) {
            Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
            Err(Errno::NOENT) => None,
            Err(Errno::NOTDIR) => return Err(refused(&path, "leads through what is no directory")),
            Err(error) => return Err(Error::io("cannot look there", &path, error.into())),
        };
        match kind {
            None => Self::absent(&path),
            Some(FileType::Directory) => Self::there(&path),
            Some(FileType::Symlink) => Err(refused(&path, "is a link; name the directory itself")),
            Some(_) => Err(refused(
                &path,
                "is no directory; name one that is empty, or one that is not there yet",
            )),
        }
    }

    fn absent(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)
            .map_err(|error| Error::io("cannot tell where that is", path, error))?;
        let parts = path.parent().zip(path.file_name());
        let (parent, name) = parts.ok_or_else(|| refused(&path, "names no directory"))?;
        match parent.canonicalize() {
            Ok(parent) => Ok(Self {
                parent,
                name: name.to_owned(),
                is_there: false,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let what = format!(
                    "{} is not there, so nothing can be made in it; make it first",
                    shown(parent)
                );
                Err(Error::new(ErrorKind::NotFound, what).at_path(parent))
            }
            Err(error) => Err(Error::io("cannot open the directory", parent, error)),
        }
    }

    fn there(path: &Path) -> Result<Self> {
        let whole = path
            .canonicalize()
            .map_err(|error| Error::io("cannot open the directory", path, error))?;
        match (whole.parent(), whole.file_name()) {
            (Some(parent), Some(name)) => Ok(Self {
                parent: parent.to_owned(),
                name: name.to_owned(),
                is_there: true,
            }),
            _ => Err(refused(path, "is the whole file system")),
        }
    }

    fn outside_store(&self, store: &Store, whole: &Path) -> Result<()> {
        let root = store.root();
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        if whole.starts_with(&root) {
            return Err(refused(whole, "lies in the store; name another directory"));
        }
        if root.starts_with(whole) {
            return Err(refused(
                whole,
                "is around the store; name another directory",
            ));
        }
        Ok(())
    }

    fn outside_workspaces(&self, store: &Store, whole: &Path) -> Result<()> {
        let around: Vec<Place> = whole
            .ancestors()
            .filter_map(|dir| Place::of(dir).ok())
            .collect();
        for known in known(store)? {
            let roots = [
                Some(known.root().to_owned()),
                known.root().canonicalize().ok(),
            ];
            let mut roots = roots.into_iter().flatten();
            let why = roots.find_map(|root| in_the_way(&root, whole));
            let moved = || {
                let moved = around.iter().any(|place| known.moved_to(place));
                moved.then(|| within(known.root()))
            };
            // One of which nothing was ever kept is in nobody's way.
            if let Some(why) = why.or_else(moved).filter(|_| known.is_used(store)) {
                return Err(refused(whole, &why));
            }
        }
        Ok(())
    }
}

/// Says how a workspace is in the way of a new directory, if it is.
fn in_the_way(root: &Path, whole: &Path) -> Option<String> {
    if root == whole {
        return Some(
            "is a workspace already, with a history of its own; name another directory".to_owned(),
        );
    }
    if whole.starts_with(root) {
        return Some(within(root));
    }
    root.starts_with(whole).then(|| {
        let root = shown(root);
        format!("is around the workspace {root}; name a directory outside it")
    })
}

fn within(root: &Path) -> String {
    let root = shown(root);
    format!("lies in the workspace {root}; name a directory outside it")
}

fn refused(path: &Path, why: &str) -> Error {
    Error::invalid(format!("{} {why}", shown(path))).at_path(path)
}

fn must_be_empty(path: &Path) -> Result<()> {
    let failed = |error: Errno| Error::io("cannot look into the directory", path, error.into());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let mut names = Names::default();
    names.read(&dir).map_err(failed)?;
    let all = names.iter().count();
    if all == 0 {
        return Ok(());
    }
    let first = names.iter().take(NAMED);
    let first: Vec<String> = first
        .map(|(name, _)| shown(Path::new(crate::snapshot::name::os_str(name.to_bytes()))))
        .collect();
    let more = match all - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let holds = format!(
        "is not empty: it holds {}{more}; name a directory that is empty, or not there yet",
        first.join(", ")
    );
    Err(refused(path, &holds))
}

//! The place of a new directory: outside all workspaces, and outside the store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::identity::{Directory, known};
use crate::error::{Error, Result};
use crate::snapshot::scan::sys::Names;
use crate::snapshot::shown;
use crate::store::Store;

/// How many names in a directory an error shows.
const NAMED: usize = 3;

/// The place of a new directory.
#[derive(Debug, Clone)]
pub(crate) struct NewDirectory {
    /// Its parent, without links.
    pub(crate) parent: PathBuf,
    pub(crate) name: OsString,
    /// Whether it replaces an empty directory.
    pub(crate) is_there: bool,
}

impl NewDirectory {
    /// Accepts a path that does not exist or is an empty directory, and that neither is in nor
    /// contains a workspace or the store.
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

    /// Inspects the path. A link at its end is not followed.
    fn at(path: &Path) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Error::invalid("the directory's name is empty; name one"));
        }
        // A slash at the end would follow a link.
        let path: PathBuf = path.components().collect();
        let kind = match rustix::fs::lstat(&path) {
            Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
            Err(Errno::NOENT) => None,
            Err(Errno::NOTDIR) => {
                return Err(refused(&path, "has a parent that is not a directory"));
            }
            Err(error) => {
                let doing = "cannot read the directory's metadata";
                return Err(Error::io(doing, &path, error.into()));
            }
        };
        match kind {
            None => Self::absent(&path),
            Some(FileType::Directory) => Self::there(&path),
            Some(FileType::Symlink) => Err(refused(&path, "is a link; name the directory itself")),
            Some(_) => Err(refused(
                &path,
                "is not a directory; name an empty one, or one that does not exist yet",
            )),
        }
    }

    fn absent(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)
            .map_err(|error| Error::io("cannot make the path absolute", path, error))?;
        let parts = path.parent().zip(path.file_name());
        let (parent, name) = parts.ok_or_else(|| refused(&path, "is not a directory name"))?;
        match parent.canonicalize() {
            Ok(parent) => Ok(Self {
                parent,
                name: name.to_owned(),
                is_there: false,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let what = format!("{} does not exist; create it first", shown(parent));
                Err(Error::invalid(what).at_path(parent))
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
            return Err(refused(whole, "is in the store; use another directory"));
        }
        if root.starts_with(whole) {
            return Err(refused(whole, "contains the store; use another directory"));
        }
        Ok(())
    }

    fn outside_workspaces(&self, store: &Store, whole: &Path) -> Result<()> {
        let around: Vec<Directory> = whole
            .ancestors()
            .filter_map(|dir| Directory::of(dir).ok())
            .collect();
        for known in known(store)? {
            let mut roots = [Some(known.root.clone()), known.root.canonicalize().ok()]
                .into_iter()
                .flatten();
            let why = roots.find_map(|root| conflict_with(&root, whole));
            let moved = || {
                let moved = around.iter().any(|place| known.moved_to(place));
                moved.then(|| within(&known.root))
            };
            // A workspace without checkpoints does not count.
            if let Some(why) = why.or_else(moved).filter(|_| known.is_used(store)) {
                return Err(refused(whole, &why));
            }
        }
        Ok(())
    }
}

/// Returns the reason why a workspace conflicts with a new directory, if it does.
fn conflict_with(root: &Path, whole: &Path) -> Option<String> {
    if root == whole {
        return Some("is already a workspace with checkpoints; use another directory".to_owned());
    }
    if whole.starts_with(root) {
        return Some(within(root));
    }
    root.starts_with(whole).then(|| {
        let root = shown(root);
        format!("contains the workspace {root}; use a directory outside it")
    })
}

fn within(root: &Path) -> String {
    let root = shown(root);
    format!("is in the workspace {root}; name a directory outside it")
}

fn refused(path: &Path, why: &str) -> Error {
    Error::invalid(format!("{} {why}", shown(path))).at_path(path)
}

fn must_be_empty(path: &Path) -> Result<()> {
    let failed = |error: Errno| Error::io("cannot list the directory", path, error.into());
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
        "is not empty: it has {}{more}; name an empty directory, or one that does not exist yet",
        first.join(", ")
    );
    Err(refused(path, &holds))
}

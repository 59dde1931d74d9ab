//! Where the store and the workspace are.

use std::env;
use std::path::{Path, PathBuf};

use backtrail::Store;

use crate::error::{CommandError, Result};
use crate::text::visible_path;

/// Returns the store's directory, and what its path comes from: an option, a variable or
/// the default.
pub(crate) fn store_dir(flag: Option<&Path>) -> Result<(PathBuf, &'static str)> {
    if let Some(dir) = flag {
        return Ok((absolute(dir)?, "--store"));
    }
    match env::var_os("BACKTRAIL_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => Ok((absolute(Path::new(&dir))?, "BACKTRAIL_HOME")),
        None => Ok((data_dir()?.join("backtrail"), "default")),
    }
}

fn absolute(dir: &Path) -> Result<PathBuf> {
    std::path::absolute(dir)
        .map_err(|error| CommandError::io("cannot find the store", Some(dir), &error))
}

/// Returns the platform's directory for a user's data.
fn data_dir() -> Result<PathBuf> {
    let home = env::home_dir().filter(|home| home.is_absolute());
    let dir = if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library/Application Support"))
    } else if cfg!(windows) {
        env::var_os("LOCALAPPDATA").map(PathBuf::from)
    } else {
        env::var_os("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute())
            .or_else(|| home.map(|home| home.join(".local/share")))
    };
    dir.ok_or_else(|| {
        CommandError::invalid("cannot find your data directory")
            .hint("set the store: --store DIR or BACKTRAIL_HOME")
    })
}

/// Returns the user's home directory.
pub(crate) fn home_dir() -> Option<PathBuf> {
    env::home_dir()
}

/// Returns the directories in which programs are looked for.
pub(crate) fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}

/// Returns the first file of this name in the directories of programs.
pub(crate) fn in_path(name: &Path) -> Option<PathBuf> {
    search_path()
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// Returns the file of git's global ignore rules.
pub(crate) fn global_excludes() -> Option<PathBuf> {
    ignore::gitignore::gitconfig_excludes_path()
}

/// Returns a path for people: from `~` if it is in the home directory.
pub(crate) fn tilde(path: &Path) -> String {
    let home = env::home_dir().filter(|home| home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", visible_path(rest)),
        None => visible_path(path),
    }
}

/// Returns the current directory.
pub(crate) fn current_dir() -> Result<PathBuf> {
    env::current_dir().map_err(|error| {
        CommandError::io("cannot find the current directory", None, &error)
            .hint("set the workspace: --workspace DIR")
    })
}

/// Returns the root of the workspace around the current directory; `None` if the current
/// directory is gone.
pub(crate) fn workspace_root(store: &Store) -> Option<PathBuf> {
    store.workspace_root(&env::current_dir().ok()?).ok()
}

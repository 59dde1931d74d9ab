//! Projects: workspaces that share a git remote or a repository.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

pub use backtrail::plumbing::remote_of;
use backtrail::plumbing::repository_of;
use serde::Serialize;

/// A project: workspaces that share a git remote, or a repository without a remote and its
/// worktrees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Project {
    /// Its name: the last part of the remote or of the directory.
    pub name: String,
    /// Its remote, without scheme and credentials: `github.com/acme/shop`.
    pub remote: Option<String>,
}

impl Project {
    /// Creates a project from a known name and remote.
    pub(crate) fn named(name: String, remote: Option<String>) -> Self {
        Self { name, remote }
    }

    /// Returns the project of a directory; `remote` is the one that is known of it. A worktree
    /// belongs to the project of its repository.
    pub fn of(root: &Path, remote: Option<String>) -> Self {
        let repository = repository_of(root).or_else(|| repository_in(root));
        let of_repository = || repository.as_deref().and_then(remote_of);
        let remote = remote.or_else(|| remote_of(root)).or_else(of_repository);
        Self::new(repository.as_deref().unwrap_or(root), remote.as_deref())
    }

    /// Creates the project of a directory from its remote, if it has one.
    pub fn new(root: &Path, remote: Option<&str>) -> Self {
        let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let name = match remote {
            Some(remote) => last(remote),
            None => root.file_name().map_or_else(
                || root.to_string_lossy().into_owned(),
                |name| without_git(last_of_windows(&name.to_string_lossy())),
            ),
        };
        Self {
            name,
            remote: remote.map(str::to_owned),
        }
    }
}

/// Returns the last part of a path on Windows, which is one name here.
fn last_of_windows(name: &str) -> &str {
    let is_path = name.get(1..3) == Some(":\\") || name.starts_with("\\\\");
    let last = name.trim_end_matches('\\').rsplit('\\').next();
    last.filter(|last| is_path && !last.is_empty())
        .unwrap_or(name)
}

/// Returns the name of a repository without files of its own as people say it.
fn without_git(name: &str) -> String {
    let bare = name.strip_suffix(".git").filter(|bare| !bare.is_empty());
    bare.unwrap_or(name).to_owned()
}

/// Returns the repository of a worktree by where agents put worktrees: most are removed when the
/// work is done, and only their path is known.
fn repository_in(root: &Path) -> Option<PathBuf> {
    let name = |dir: &Path| dir.file_name().map(OsStr::to_owned);
    // From the directory that holds worktrees down to the root: `.claude/worktrees/feature`.
    let worktrees = root.ancestors().skip(1).find(|dir| {
        let is_hidden = |dir: &Path| name(dir).is_some_and(|it| it.as_bytes().starts_with(b"."));
        let is_plain = name(dir).is_some_and(|it| it == "worktrees");
        name(dir).is_some_and(|it| it == ".worktrees")
            || (is_plain && dir.parent().is_some_and(is_hidden))
    })?;
    let below = root.strip_prefix(worktrees).ok()?;
    let agent = worktrees.parent()?;
    match name(agent)?.to_str() {
        _ if name(worktrees)? == ".worktrees" => Some(agent.to_owned()),
        // ~/.codex/worktrees/ID/REPOSITORY and ~/.cursor/worktrees/REPOSITORY/ID
        Some(".codex") => below.iter().nth(1).map(PathBuf::from),
        Some(".cursor") => below.iter().next().map(PathBuf::from),
        _ => agent.parent().map(Path::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_of_windows_has_its_last_name() {
        let name = |root: &str| Project::new(Path::new(root), None).name;
        assert_eq!(name(r"C:\work\shop"), "shop");
        assert_eq!(name(r"C:\work\shop\"), "shop");
        assert_eq!(name(r"\\server\share\shop"), "shop");
        assert_eq!(name("C:\\"), "C:");
        assert_eq!(name(r"/w/a\b"), r"a\b");
    }

    #[test]
    fn a_worktree_belongs_to_its_repository() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("shop/.git/worktrees/feature")).unwrap();
        fs::write(at("shop/.git/worktrees/feature/commondir"), "../..\n").unwrap();
        fs::create_dir_all(at("try-1")).unwrap();
        let pointer = format!("gitdir: {}\n", at("shop/.git/worktrees/feature").display());
        fs::write(at("try-1/.git"), pointer).unwrap();
        let project = |path: &str| Project::of(&at(path), None);
        assert_eq!(project("try-1"), Project::new(&at("shop"), None));
        assert_eq!(project("shop").name, "shop");
        let config = "[remote \"origin\"]\n\turl = git@github.com:acme/store.git\n";
        fs::write(at("shop/.git/config"), config).unwrap();
        let expected = Project::named("store".into(), Some("github.com/acme/store".into()));
        assert_eq!(project("try-1"), expected);
        assert_eq!(project("shop/.claude/worktrees/gone"), expected);
        // A submodule is a repository of its own.
        fs::create_dir_all(at("shop/.git/modules/lib")).unwrap();
        fs::create_dir_all(at("shop/lib")).unwrap();
        fs::write(at("shop/lib/.git"), "gitdir: ../.git/modules/lib\n").unwrap();
        assert_eq!(project("shop/lib").name, "lib");
    }

    #[test]
    fn a_worktree_that_is_gone_is_known_by_its_path() {
        for (path, name) in [
            ("/home/u/shop/.claude/worktrees/fix-1", "shop"),
            ("/home/u/shop/.gemini/worktrees/fix-1", "shop"),
            ("/home/u/shop/.worktrees/fix-1", "shop"),
            ("/home/u/.codex/worktrees/3f2a/shop", "shop"),
            ("/home/u/.cursor/worktrees/shop/3f2a", "shop"),
            ("/srv/shop.git", "shop"),
            ("/home/u/shop", "shop"),
            ("/home/u/worktrees/fix-1", "fix-1"),
            ("/home/u/shop/.claude/worktrees", "worktrees"),
            ("/", "/"),
        ] {
            assert_eq!(Project::of(Path::new(path), None).name, name, "{path}");
        }
    }
}

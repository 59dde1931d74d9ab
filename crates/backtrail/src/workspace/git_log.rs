//! The commits that were made in a repository, from git's own logs of HEAD and branches. They
//! are only read, and git is not run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::git_dir::GitDir;
use super::git_head::{is_commit, repository_around};
use crate::time::Timestamp;

/// The longest log that is read.
const LONGEST_LOG: u64 = 256 << 20;

/// A commit that git's log says was made, and when. Git's times have whole seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct LoggedCommit {
    /// The commit.
    pub id: String,
    /// The commit that HEAD was at before; `None` for the first of a repository.
    pub before: Option<String>,
    /// When it was made.
    pub at: Timestamp,
    /// The first line of its message, as far as git logged it.
    pub subject: String,
    /// The directory that it was made in: the root of a worktree.
    #[serde(skip)]
    pub root: PathBuf,
}

impl LoggedCommit {
    /// Finds the commits whose ids begin with `prefix` that were made in the repository around a
    /// directory, in any of its worktrees: each once, the oldest first. None if there is no
    /// repository, or it keeps no logs.
    pub fn find(dir: &Path, prefix: &str) -> Vec<Self> {
        let Some(repository) = repository_around(dir) else {
            return Vec::new();
        };
        let root = |dir: &Path| dir.join(".git").symlink_metadata().is_ok();
        let root = dir.ancestors().find(|dir| root(dir)).unwrap_or(dir);
        let mut found = logged(&repository, root, prefix);
        for (git, root) in repository.worktrees() {
            found.extend(logged(&git, &root, prefix));
        }
        found.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        let mut known = std::collections::HashSet::new();
        found.retain(|commit| known.insert(commit.id.clone()));
        found
    }
}

/// Reads the log of one worktree's HEAD.
fn logged(git: &GitDir, root: &Path, prefix: &str) -> Vec<LoggedCommit> {
    let log = git.read_own("logs/HEAD", LONGEST_LOG).unwrap_or_default();
    let lines = log.split(|byte| *byte == b'\n');
    let commits = lines.filter_map(|line| parse(&String::from_utf8_lossy(line), root));
    commits.filter(|it| it.id.starts_with(prefix)).collect()
}

/// Reads a line, if it says that a commit was made: `OLD NEW NAME <EMAIL> SECONDS ZONE\tcommit:
/// SUBJECT`.
fn parse(line: &str, root: &Path) -> Option<LoggedCommit> {
    let (head, action) = line.split_once('\t')?;
    let subject = made(action)?;
    let (before, rest) = head.split_once(' ')?;
    let (id, rest) = rest.split_once(' ')?;
    let (_, time) = rest.rsplit_once('>')?;
    let seconds: i64 = time.split_whitespace().next()?.parse().ok()?;
    let is_nothing = before.bytes().all(|byte| byte == b'0');
    (is_commit(id) && is_commit(before)).then_some(())?;
    Some(LoggedCommit {
        id: id.to_owned(),
        before: (!is_nothing).then(|| before.to_owned()),
        at: Timestamp::from_millis(seconds.checked_mul(1000)?)?,
        subject: subject.to_owned(),
        root: root.to_owned(),
    })
}

/// Returns the subject, if an action made a commit and did not only move to one.
fn made(action: &str) -> Option<&str> {
    let (verb, subject) = action.split_once(": ").unwrap_or((action, ""));
    let first = verb.split([' ', '(']).next().unwrap_or_default();
    let is_made = match first {
        "commit" | "cherry-pick" | "revert" | "am" => true,
        "rebase" => !["start", "finish", "abort"]
            .iter()
            .any(|it| verb.contains(it)),
        "merge" | "pull" => !subject.starts_with("Fast-forward"),
        _ => false,
    };
    is_made.then_some(subject)
}

impl GitDir {
    /// Returns the other worktrees of the repository, and the main one: where git keeps their
    /// files, and where they are.
    fn worktrees(&self) -> Vec<(Self, PathBuf)> {
        let mut found = Vec::new();
        if let Some(root) = self.common().parent().filter(|_| self.is_linked()) {
            found.push((Self::main(self.common()), root.to_owned()));
        }
        for name in self.worktree_names() {
            let own = self.common().join("worktrees").join(&name);
            let git = Self::linked(own, self.common());
            let pointer = git.read_own("gitdir", 16 << 10).unwrap_or_default();
            let pointer = Path::new(OsStr::from_bytes(pointer.trim_ascii()));
            if let Some(root) = pointer.parent().filter(|root| root.is_absolute()) {
                found.push((git, root.to_owned()));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "1111111111111111111111111111111111111111";
    const NEW: &str = "2222222222222222222222222222222222222222";

    fn read(action: &str) -> Option<LoggedCommit> {
        let line = format!("{OLD} {NEW} A <B> C <a@b> 1700000000 +0100\t{action}");
        parse(&line, Path::new("/w"))
    }

    #[test]
    fn only_actions_that_make_a_commit_count() {
        let made = [
            "commit: one: two",
            "commit (initial): x",
            "commit (amend): x",
            "commit (merge): x",
            "cherry-pick: x",
            "revert: x",
            "rebase (pick): x",
            "merge topic: Merge made by the 'ort' strategy.",
            "am: x",
        ];
        for action in made {
            assert_eq!(read(action).unwrap().id, NEW, "{action}");
        }
        let moved = [
            "checkout: moving from a to b",
            "reset: moving to HEAD~1",
            "merge topic: Fast-forward",
            "pull: Fast-forward",
            "rebase (start): checkout main",
            "rebase (finish): returning to refs/heads/a",
            "clone: from x",
            "",
        ];
        for action in moved {
            assert_eq!(read(action), None, "{action}");
        }
        let found = read("commit: one: two").unwrap();
        assert_eq!(found.subject, "one: two");
        assert_eq!(found.at.as_millis(), 1_700_000_000_000);
        assert_eq!(found.before.as_deref(), Some(OLD));
    }

    #[test]
    fn broken_lines_are_skipped() {
        let zero = "0".repeat(40);
        let first = format!("{zero} {NEW} A <a> 1 +0000\tcommit (initial): x");
        assert_eq!(parse(&first, Path::new("/w")).unwrap().before, None);
        for line in [
            "",
            "\t",
            "a b\tcommit: x",
            &format!("{OLD} {NEW} A a 1 +0000\tcommit: x"),
            &format!("{OLD} {NEW} A <a> x +0000\tcommit: x"),
            &format!("{OLD} {NEW} A <a> 99999999999999999 +0000\tcommit: x"),
            &format!("{OLD} 22 A <a> 1 +0000\tcommit: x"),
        ] {
            assert_eq!(parse(line, Path::new("/w")), None, "{line}");
        }
    }
}

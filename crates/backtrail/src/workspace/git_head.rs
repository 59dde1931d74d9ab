//! The branch and commit that git's HEAD names, read from git's own files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::git_dir::GitDir;

/// The longest file with one reference.
const LONGEST_REF: u64 = 4 << 10;
/// The longest file with all references of a repository.
const LONGEST_PACKED: u64 = 64 << 20;
/// How often a reference may name another one.
const DEEPEST: u32 = 5;
const BRANCHES: &str = "refs/heads/";
/// Where git points HEAD if another kind of storage has the references.
const ELSEWHERE: &str = "refs/heads/.invalid";

/// The branch and commit that git's HEAD names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GitHead {
    /// The branch; `None` if HEAD is detached.
    #[serde(default)]
    pub branch: Option<String>,
    /// The commit; `None` if the branch has none yet.
    #[serde(default)]
    pub commit: Option<String>,
}

impl GitHead {
    /// Reads HEAD of the repository that a directory is in. `None` if there is none, or if it
    /// keeps its references in a way that is not known here.
    pub fn read(root: &Path) -> Option<Self> {
        let repository = repository_around(root)?;
        let head = text_of(repository.read_own("HEAD", LONGEST_REF)?)?;
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
            let commit = Some(head).filter(|head| is_commit(head))?;
            return Some(Self {
                branch: None,
                commit: Some(commit),
            });
        };
        if name == ELSEWHERE || !is_ref(name) {
            return None;
        }
        let branch = name.strip_prefix(BRANCHES).map(ToOwned::to_owned);
        let commit = commit_of(&repository, name, 0);
        // A reference without a commit that is not a branch says nothing.
        (branch.is_some() || commit.is_some()).then_some(Self { branch, commit })
    }

    /// Returns the commit that a branch of the repository around a directory names now.
    pub fn commit_of_branch(root: &Path, branch: &str) -> Option<String> {
        let repository = repository_around(root)?;
        commit_of(&repository, &format!("{BRANCHES}{branch}"), 0)
    }
}

/// Finds the repository that a directory is in, as git does.
pub(super) fn repository_around(root: &Path) -> Option<GitDir> {
    let mut around = root.ancestors().filter_map(GitDir::of);
    around.find(|git| git.read_own("HEAD", LONGEST_REF).is_some())
}

/// Returns the commit that a reference names.
fn commit_of(repository: &GitDir, name: &str, depth: u32) -> Option<String> {
    if depth > DEEPEST || !is_ref(name) {
        return None;
    }
    // Each worktree has its own of these.
    let own = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];
    let loose = match own.iter().any(|own| name.starts_with(own)) {
        true => repository.read_own(name, LONGEST_REF),
        false => repository.read_common(name, LONGEST_REF),
    };
    let Some(text) = loose.and_then(text_of) else {
        return packed(repository, name);
    };
    match text.strip_prefix("ref:") {
        Some(other) => commit_of(repository, other.trim(), depth + 1),
        None => Some(text).filter(|text| is_commit(text)),
    }
}

/// Finds a reference in the file that has many.
fn packed(repository: &GitDir, name: &str) -> Option<String> {
    let packed = repository.read_common("packed-refs", LONGEST_PACKED)?;
    let mut lines = packed.split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (commit, its) = line.trim_end().split_once(' ')?;
        (its == name && is_commit(commit)).then(|| commit.to_owned())
    })
}

fn text_of(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim().to_owned())
}

/// Returns whether a name is one of a reference, and stays within the repository.
fn is_ref(name: &str) -> bool {
    let is_odd = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    name.starts_with("refs/")
        && !name.split('/').any(is_odd)
        && !name.contains(|c: char| c.is_control() || " ~^:?*[\\".contains(c))
}

/// Returns whether a text is the name of a commit, in SHA-1 or SHA-256.
pub(super) fn is_commit(text: &str) -> bool {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    matches!(text.len(), 40 | 64) && text.bytes().all(is_hex)
}

#[cfg(test)]
#[path = "git_head_tests.rs"]
mod tests;

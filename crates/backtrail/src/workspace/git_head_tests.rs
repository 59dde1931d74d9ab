//! HEAD is read as git writes it, and nothing that it could name leaves the repository.

#![allow(
    clippy::disallowed_methods,
    reason = "the directories of people are no files of the store"
)]

use std::fs;
use std::path::{Path, PathBuf};

use super::GitHead;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A directory with a repository whose HEAD has this text.
fn repository(head: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    write(&root, ".git/HEAD", head);
    (dir, root)
}

fn head(branch: Option<&str>, commit: Option<&str>) -> Option<GitHead> {
    Some(GitHead {
        branch: branch.map(ToOwned::to_owned),
        commit: commit.map(ToOwned::to_owned),
    })
}

#[test]
fn a_branch_is_loose_or_packed_or_has_no_commit_yet() {
    let (_dir, root) = repository("ref: refs/heads/feat/x\n");
    assert_eq!(GitHead::read(&root), head(Some("feat/x"), None));
    let packed = format!(
        "# pack-refs with: peeled fully-peeled sorted \n{B} refs/heads/feat\n\
         {A} refs/heads/feat/x\n^{B}\n{B} refs/heads/feat/x2\n"
    );
    write(&root, ".git/packed-refs", &packed);
    assert_eq!(GitHead::read(&root), head(Some("feat/x"), Some(A)));
    // What is loose is newer.
    write(&root, ".git/refs/heads/feat/x", &format!("{B}\n"));
    assert_eq!(GitHead::read(&root), head(Some("feat/x"), Some(B)));
    assert_eq!(
        GitHead::commit_of_branch(&root, "feat/x2").as_deref(),
        Some(B)
    );
    assert_eq!(GitHead::commit_of_branch(&root, "none"), None);
    // A directory within the repository has the same HEAD.
    let below = root.join("a/b");
    fs::create_dir_all(&below).unwrap();
    assert_eq!(GitHead::read(&below), head(Some("feat/x"), Some(B)));
}

#[test]
fn a_detached_head_is_a_commit_of_either_length() {
    for commit in [A.to_owned(), "0123456789abcdef".repeat(4)] {
        let (_dir, root) = repository(&format!("{commit}\n"));
        assert_eq!(GitHead::read(&root), head(None, Some(&commit)));
    }
}

#[test]
fn a_worktree_has_its_own_head_and_shares_the_branches() {
    let (_dir, root) = repository("ref: refs/heads/main\n");
    let tree = root.parent().unwrap().join("tree");
    let own = root.join(".git/worktrees/tree");
    for pointer in ["../root/.git/worktrees/tree", own.to_str().unwrap()] {
        write(&tree, ".git", &format!("gitdir: {pointer}\n"));
        write(&own, "HEAD", "ref: refs/heads/topic\n");
        write(&own, "commondir", "../..\n");
        write(&root, ".git/refs/heads/topic", &format!("{A}\n"));
        assert_eq!(GitHead::read(&tree), head(Some("topic"), Some(A)));
        // Each has its own bisection.
        write(&own, "HEAD", "ref: refs/bisect/bad\n");
        write(&own, "refs/bisect/bad", &format!("{B}\n"));
        assert_eq!(GitHead::read(&tree), head(None, Some(B)));
    }
}

#[test]
fn a_reference_may_name_another_but_not_forever() {
    let (_dir, root) = repository("ref: refs/heads/alias\n");
    write(&root, ".git/refs/heads/alias", "ref: refs/heads/main\n");
    write(&root, ".git/refs/heads/main", &format!("{A}\n"));
    assert_eq!(GitHead::read(&root), head(Some("alias"), Some(A)));
    write(&root, ".git/refs/heads/main", "ref: refs/heads/alias\n");
    assert_eq!(GitHead::read(&root), head(Some("alias"), None));
}

/// What is not known is not guessed, and no name leads out of the repository.
#[test]
fn odd_heads_are_unknown() {
    let (dir, root) = repository("");
    write(dir.path(), "secret", &format!("{A}\n"));
    let long = format!("ref: refs/heads/{}\n", "x".repeat(5000));
    for text in [
        "",
        "\n",
        "ref:",
        "ref: refs/heads/.invalid\n",
        "ref: refs/heads/../../../secret\n",
        "ref: ../../secret\n",
        "ref: /etc/passwd\n",
        "ref: refs/heads/a\u{1b}[31mb\n",
        "ref: refs/heads/\n",
        "ref: refs/tags/none\n",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
        "aaaa\n",
        &long,
    ] {
        write(&root, ".git/HEAD", text);
        assert_eq!(GitHead::read(&root), None, "{text:?}");
    }
    fs::write(root.join(".git/HEAD"), b"ref: refs/heads/\xff\n").unwrap();
    assert_eq!(GitHead::read(&root), None);
    fs::remove_file(root.join(".git/HEAD")).unwrap();
    fs::create_dir(root.join(".git/HEAD")).unwrap();
    assert_eq!(GitHead::read(&root), None);
    assert_eq!(GitHead::read(&root.join("gone")), None);
}

//! `backtrail fork --into --git`: the new directory as a detached git worktree.
//!
//! This is the only code that runs git. It adds a worktree to the repository and fills its
//! index; hooks do not run, and nothing of the user's own worktrees is written: no index, no
//! branch, no lock.
//!
//! The worktree is made while the directory has its temporary name, and is locked until the
//! directory has its own. If the process is killed in between, git keeps a locked entry that
//! names the temporary directory; the next fork of the repository removes it.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use backtrail::rewind::ForkCompanion;
use backtrail::workspace::GitHead;
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::Serialize;

use crate::error::{CommandError, Result};
use crate::files;
use crate::home::tilde;
use crate::text::{clean, one_line, visible_path};

/// What git's entry of an unfinished worktree begins with, as the reason for its lock.
const LOCKED: &str = "backtrail is making this worktree in ";
/// How the names of unfinished directories begin.
const STAGING: &str = ".backtrail-staging-fork-";
/// The longest file of git's that is read.
const LONGEST: u64 = 16 << 10;
/// The variables by which git finds a repository other than the one that is meant.
const ENVIRONMENT: [&str; 13] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_SHALLOW_FILE",
    "GIT_CEILING_DIRECTORIES",
];

/// A worktree that is planned or made.
#[derive(Debug, Serialize)]
pub(super) struct Worktree {
    /// The commit that it is at.
    commit: String,
    /// Whether HEAD named it at the point; otherwise it is the present commit.
    of_point: bool,
    /// Why it is the present commit, if it is.
    #[serde(skip)]
    reason: Option<String>,
    #[serde(skip)]
    root: PathBuf,
    /// The directory with what all worktrees share.
    #[serde(skip)]
    common: PathBuf,
    #[serde(skip)]
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Git's own directory of the new worktree, once it is made.
    entry: Option<PathBuf>,
    error: Option<CommandError>,
    /// What earlier forks left behind and could not be removed.
    left: Vec<PathBuf>,
}

impl Worktree {
    /// Checks the repository, and finds the commit: that of a point, else the present one.
    pub(super) fn plan(root: &Path, head: Option<&GitHead>) -> Result<Self> {
        let common = repository(root)?;
        let known = head.and_then(|head| head.commit.as_deref());
        let found = known.map(|commit| commit_of(root, commit)).transpose()?;
        let (commit, reason) = match (known, found.flatten()) {
            (_, Some(commit)) => (commit, None),
            (known, None) => {
                let reason = match known {
                    Some(commit) => format!("{} is no longer in the repository", short(commit)),
                    None => "the commit at that point is not known".to_owned(),
                };
                let present = commit_of(root, "HEAD")?.ok_or_else(|| {
                    let what = format!("{} has no commit yet", tilde(root));
                    CommandError::invalid(what).hint("commit something first, or omit --git")
                })?;
                (present, Some(reason))
            }
        };
        Ok(Self {
            commit,
            of_point: reason.is_none(),
            reason,
            root: root.to_owned(),
            common,
            state: Mutex::default(),
        })
    }

    /// Returns what it is, in one line.
    pub(super) fn describe(&self) -> String {
        let commit = short(&self.commit);
        match &self.reason {
            None => format!("git: a detached worktree at {commit}"),
            Some(reason) => {
                format!("git: a detached worktree at the current commit, {commit}: {reason}")
            }
        }
    }

    /// Returns the reason why it could not be made.
    pub(super) fn error(&self) -> Option<CommandError> {
        self.state().error.take()
    }

    /// Names the directories that interrupted forks left elsewhere.
    pub(super) fn left_over(&self) -> Vec<String> {
        let left = self.state().left.clone().into_iter();
        left.map(|dir| {
            let dir = visible_path(&dir);
            format!("left by an interrupted fork: {dir} (you can remove it)")
        })
        .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the worktree in an empty directory, for its final path.
    fn add(&self, dir: &Path, to: &Path) -> Result<()> {
        self.clear_interrupted();
        let mut add = git(&self.root);
        add.args(["worktree", "add", "--detach", "--no-checkout", "--lock"]);
        let added = run(add.arg(dir).arg(&self.commit));
        // It is removed again even if git failed after it had made it.
        let entry = entry_of(dir);
        self.state().entry.clone_from(&entry);
        added?;
        let wrong = |error: io::Error| {
            CommandError::io("cannot read the worktree that git made", Some(dir), &error)
        };
        let entry = entry.ok_or_else(|| wrong(io::ErrorKind::InvalidData.into()))?;
        // The lock keeps git from removing the entry while its directory has another name.
        let reason = [LOCKED.as_bytes(), dir.as_os_str().as_bytes(), b"\n"].concat();
        let path = [to.join(".git").as_os_str().as_bytes(), b"\n"].concat();
        let written = write(&entry.join("locked"), &reason)
            .and_then(|()| write(&entry.join("gitdir"), &path));
        written.map_err(wrong)?;
        // The index is that of the commit. The files are compared with it by the next git
        // status, not here.
        let mut fill = git(&self.root);
        fill.arg("--git-dir").arg(&entry);
        fill.arg("--work-tree").arg(dir);
        run(fill.args(["read-tree", "HEAD"])).map(drop)
    }

    /// Removes what interrupted forks left in the repository. What cannot be removed stays.
    fn clear_interrupted(&self) {
        let entries = files::entries(&self.common.join("worktrees"));
        for entry in entries.into_iter().flatten() {
            let Some(staging) = staging_of(&entry) else {
                continue;
            };
            if is_in_use(&staging) {
                continue;
            }
            let dir = pointer(&entry.join("gitdir")).and_then(|git| Some(git.parent()?.to_owned()));
            let is_whole = |dir: &PathBuf| !is_staging(dir) && entry_of(dir) == real(&entry);
            match dir.filter(is_whole) {
                // It was only the lock that was not removed any more.
                Some(_) => unlock(&entry),
                None => remove_entry(&entry, &self.common),
            }
            if staging.exists() {
                self.state().left.push(staging);
            }
        }
    }
}

impl ForkCompanion for Worktree {
    fn make(&self, dir: &Path, to: &Path) -> io::Result<()> {
        self.add(dir, to).map_err(|error| {
            let text = error.to_string();
            self.state().error = Some(error);
            io::Error::other(text)
        })
    }

    fn done(&self) {
        let entry = self.state().entry.take();
        entry.iter().for_each(|entry| unlock(entry));
    }

    fn undo(&self) {
        let entry = self.state().entry.take();
        entry
            .iter()
            .for_each(|entry| remove_entry(entry, &self.common));
    }
}

/// Checks that a directory is the top of a repository's worktree, and returns the directory
/// that its worktrees share.
fn repository(root: &Path) -> Result<PathBuf> {
    let refused = |why: &str| {
        let what = format!("{} {why}", tilde(root));
        Err(CommandError::invalid(what).hint("fork without git: omit --git"))
    };
    if root.join(".git").symlink_metadata().is_err() {
        let is_bare = ["HEAD", "objects", "refs"]
            .iter()
            .all(|name| root.join(name).exists());
        return match is_bare {
            true => refused("is a bare git repository, which has no worktree"),
            false => refused("is not the top of a git repository"),
        };
    }
    let mut ask = git(root);
    ask.args(["rev-parse", "--is-inside-work-tree", "--git-common-dir"]);
    let told = run(&mut ask)?;
    let mut lines = told.split(|byte| *byte == b'\n');
    if lines.next() != Some(b"true") {
        return refused("is a bare git repository, which has no worktree");
    }
    let common = lines.next().unwrap_or_default();
    Ok(root.join(OsStr::from_bytes(common)))
}

/// Returns the commit of a name; `None` if the repository does not have it.
fn commit_of(root: &Path, name: &str) -> Result<Option<String>> {
    let mut ask = git(root);
    let name = format!("{name}^{{commit}}");
    let told = output(ask.args([
        "rev-parse",
        "--quiet",
        "--verify",
        "--end-of-options",
        &name,
    ]))?;
    let commit = String::from_utf8_lossy(&told.stdout).trim().to_owned();
    Ok((told.status.success() && !commit.is_empty()).then_some(commit))
}

/// Returns git for a repository: without hooks, and without anything that works on later.
fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ] {
        git.args(["-c", setting]);
    }
    for name in ENVIRONMENT {
        git.env_remove(name);
    }
    git.env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    git
}

fn output(git: &mut Command) -> Result<Output> {
    git.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CommandError::not_found("--git needs git, which is not in PATH")
            .hint("install git, or omit --git"),
        _ => CommandError::io("cannot run git", None, &error),
    })
}

/// Runs git and returns what it prints.
fn run(git: &mut Command) -> Result<Vec<u8>> {
    let told = output(git)?;
    if told.status.success() {
        return Ok(told.stdout);
    }
    let text = String::from_utf8_lossy(&told.stderr);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    let line = line.map_or_else(|| told.status.to_string(), |line| clean(line).into_owned());
    let reason = one_line(&line, 300);
    Err(CommandError::invalid("git could not make the worktree").cause(reason))
}

/// Returns git's own directory of the worktree in a directory.
fn entry_of(dir: &Path) -> Option<PathBuf> {
    let text = bytes_of(&dir.join(".git"))?;
    let entry = text.strip_prefix(b"gitdir:")?.trim_ascii();
    real(&dir.join(OsStr::from_bytes(entry)))
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// Reads a small file of git's. A path in it need not be UTF-8.
fn bytes_of(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = files::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the path that is the only line of a file of git's.
fn pointer(path: &Path) -> Option<PathBuf> {
    let text = bytes_of(path)?;
    let line = text.split(|byte| *byte == b'\n').next()?;
    Some(path.parent()?.join(OsStr::from_bytes(line)))
}

/// Returns the temporary directory of an entry that an unfinished fork made.
fn staging_of(entry: &Path) -> Option<PathBuf> {
    let reason = bytes_of(&entry.join("locked")).unwrap_or_default();
    if let Some(dir) = reason.strip_prefix(LOCKED.as_bytes()) {
        return Some(PathBuf::from(OsStr::from_bytes(dir.trim_ascii_end())));
    }
    let git = pointer(&entry.join("gitdir"))?;
    git.parent()
        .filter(|dir| is_staging(dir))
        .map(Path::to_owned)
}

fn is_staging(dir: &Path) -> bool {
    let name = dir.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with(STAGING))
}

/// Returns whether a process is writing to a temporary directory.
fn is_in_use(dir: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(dir, flags, Mode::empty());
    opened
        .is_ok_and(|dir| rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive).is_err())
}

#[expect(
    clippy::disallowed_methods,
    reason = "git's entry of a worktree that was made here"
)]
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::write(path, bytes)
}

#[expect(
    clippy::disallowed_methods,
    reason = "git's entry of a worktree that was made here"
)]
fn unlock(entry: &Path) {
    // A lock that stays is harmless: git worktree unlock removes it.
    std::fs::remove_file(entry.join("locked")).ok();
}

/// Removes git's entry of a worktree that is not there, and nothing else.
fn remove_entry(entry: &Path, common: &Path) {
    let all = real(&common.join("worktrees"));
    if real(entry).and_then(|entry| real(entry.parent()?)) != all {
        return;
    }
    files::remove_tree(entry).ok();
    // As git does: the last one takes the directory with it.
    all.iter().for_each(|all| _ = std::fs::remove_dir(all));
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

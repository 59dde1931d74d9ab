//! The baseline: git as agents use it, a separate repository whose work tree is the
//! directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::size::Size;
use crate::Result;
use crate::command::run_quietly;
use crate::measure::time;

/// A repository beside a directory, with a persistent index.
#[derive(Debug)]
pub(crate) struct Shadow {
    dir: PathBuf,
    tree: PathBuf,
}

impl Shadow {
    /// Creates a repository in `dir` for the files in `tree`, with git's defaults.
    pub(super) fn create(dir: &Path, tree: &Path) -> Result<Self> {
        let shadow = Self {
            dir: dir.to_owned(),
            tree: tree.to_owned(),
        };
        run_quietly(shadow.git().arg("init"))?;
        Ok(shadow)
    }

    /// Stores the state of the files and returns the time it took.
    pub(super) fn keep(&self) -> Result<Duration> {
        let mut add = self.git();
        add.args(["add", "-A"]);
        let mut write_tree = self.git();
        write_tree.arg("write-tree");
        time(|| {
            run_quietly(&mut add)?;
            run_quietly(&mut write_tree).map(drop)
        })
    }

    /// Stores the state of the files and returns the id of its tree.
    pub(super) fn keep_tree(&self) -> Result<String> {
        run_quietly(self.git().args(["add", "-A"]))?;
        let mut write_tree = self.git();
        let output = write_tree.arg("write-tree").output()?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?.trim_end().to_owned()),
            false => Err(format!("{write_tree:?} failed: {}", output.status).into()),
        }
    }

    /// Updates the index for the files as they are.
    pub(super) fn refresh(&self) -> Result<()> {
        run_quietly(self.git().args(["update-index", "-q", "--refresh"])).map(drop)
    }

    /// Changes the files from one tree to another and returns the time it took.
    pub(super) fn go(&self, from: &str, to: &str) -> Result<Duration> {
        run_quietly(self.git().args(["read-tree", "-m", "-u", from, to]))
    }

    /// Returns the size of its objects.
    pub(super) fn size(&self) -> Result<Size> {
        Size::of(&self.dir.join("objects"), None)
    }

    fn git(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env("GIT_DIR", &self.dir)
            .env("GIT_WORK_TREE", &self.tree)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env_remove("GIT_INDEX_FILE")
            .env_remove("GIT_OBJECT_DIRECTORY")
            .current_dir(&self.tree);
        command
    }
}

/// Returns git's version; returns the reason if there is none.
pub(crate) fn version() -> Result<String, String> {
    let output = Command::new("git")
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().strip_prefix("git version ") {
        Some(version) => Ok(version.to_owned()),
        None => Err("git does not tell its version".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_shadow_takes_files_back_that_others_wrote_in_the_same_state() {
        if let Err(why) = version() {
            eprintln!("SKIPPED: {why}");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let file = tree.join("file");
        fs::write(&file, "one").unwrap();
        let shadow = Shadow::create(&dir.path().join("shadow"), &tree).unwrap();
        let one = shadow.keep_tree().unwrap();
        fs::write(&file, "two more").unwrap();
        let two = shadow.keep_tree().unwrap();
        assert_ne!(one, two);
        fs::remove_file(&file).unwrap();
        fs::write(&file, "two more").unwrap();
        shadow.refresh().unwrap();
        shadow.go(&two, &one).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"one");
        assert!(shadow.go(&two, "none").is_err());
    }

    #[test]
    fn a_shadow_keeps_what_changed_and_leaves_the_directory_alone() {
        if let Err(why) = version() {
            eprintln!("SKIPPED: {why}");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("file"), "one").unwrap();
        let shadow = Shadow::create(&dir.path().join("shadow"), &tree).unwrap();
        shadow.keep().unwrap();
        let first = shadow.size().unwrap();
        shadow.keep().unwrap();
        assert_eq!(shadow.size().unwrap(), first);
        fs::write(tree.join("file"), "two more").unwrap();
        shadow.keep().unwrap();
        assert!(shadow.size().unwrap().since(first).bytes > 0);
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 1);
    }
}

//! A store and workspaces in a directory of their own.

use std::fs;
use std::path::{Path, PathBuf};

use backtrail::{Checkpoint, CheckpointOptions, Store, StoreOptions, Workspace};
use tempfile::TempDir;

use super::tree::{Tree, materialised, read_tree, same, totals};

/// A store, and a workspace with a directory to change.
pub(crate) struct Desk {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
    pub(crate) workspace: Workspace,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(StoreOptions::new())
    }

    pub(crate) fn with(options: StoreOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = options.open_or_create(dir.path().join("store")).unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let workspace = store.workspace(&dir.path().join("work")).unwrap();
        Self {
            dir,
            store,
            workspace,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.workspace.root()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Makes a checkpoint and checks that it is what the directory holds.
    pub(crate) fn keep(&self) -> Checkpoint {
        let tree = read_tree(self.root());
        let checkpoint = self.workspace.checkpoint(CheckpointOptions::new()).unwrap();
        check_checkpoint(&checkpoint, &tree).unwrap();
        checkpoint
    }

    /// Makes a checkpoint with a label.
    pub(crate) fn label(&self, label: &str) -> Checkpoint {
        let options = CheckpointOptions::new().label(label);
        self.workspace.checkpoint(options).unwrap()
    }

    pub(crate) fn verify(&self) {
        let report = self.store.verify_snapshots().unwrap();
        assert!(report.is_ok(), "{report:#?}");
    }
}

/// Checks a checkpoint, all of whose workspace was captured, against the tree.
pub(crate) fn check_checkpoint(checkpoint: &Checkpoint, tree: &Tree) -> Result<(), String> {
    let snapshot = checkpoint.snapshot().map_err(|error| error.to_string())?;
    same(&materialised(&snapshot), tree)?;
    let told = (checkpoint.files(), checkpoint.bytes());
    if told != totals(tree) {
        return Err(format!("{told:?} are told where {:?} are", totals(tree)));
    }
    if checkpoint.skipped().count != 0 {
        return Err(format!("{:?} is missing", checkpoint.skipped()));
    }
    Ok(())
}

//! Compares a workspace's present files with snapshots, without storing them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::Workspace;
use super::checkpoint::SkippedFiles;
use super::new_checkpoint::skipped;
use super::unprotected::Included;
use crate::error::{ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::entry::Dir;
use crate::snapshot::name::bytes_of;
use crate::snapshot::node::write_empty;
use crate::snapshot::scan::{Progress, ScanOptions, Sink, SnapshotLimits, scan};
use crate::snapshot::{Diff, Snapshot};
use crate::time::Timestamp;

/// How the present files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// What the stat cache has is not read again.
    Quick,
    /// Every file is read, and every listing is made again: the store's copies of unchanged
    /// ones may be damaged.
    Thorough,
}

impl Workspace {
    /// Returns the files as they are now. Nothing is stored: their contents are read from the
    /// directory.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub fn present(&self) -> Result<Snapshot> {
        const MODE: u32 = 0o755;
        let (present, _) = self.scan_present(MODE, Look::Quick, None)?;
        Ok(present)
    }

    /// Compares a snapshot with the present state of the directory. Nothing is stored.
    ///
    /// # Errors
    ///
    /// Fails if the snapshot or the directory cannot be read.
    pub fn changes_since(&self, before: &Snapshot) -> Result<Diff> {
        self.changes_since_with(before, None).map(|(diff, _)| diff)
    }

    /// Compares a snapshot with the present state of the directory, and reports progress; also
    /// returns the files that were skipped.
    ///
    /// # Errors
    ///
    /// Fails if the snapshot or the directory cannot be read.
    pub fn changes_since_with(
        &self,
        before: &Snapshot,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<(Diff, SkippedFiles)> {
        let compare = |look| -> Result<_> {
            let mode = before.root().mode;
            let (present, skipped) = self.scan_present(mode, look, progress.clone())?;
            Ok((before.diff(&present)?, skipped))
        };
        match compare(Look::Quick) {
            Err(error) if error.kind() == ErrorKind::Corrupt => compare(Look::Thorough),
            compared => compared,
        }
    }

    /// Scans the present state of the directory; also returns the files that were skipped. A
    /// directory that is gone counts as empty, with this mode.
    pub(crate) fn scan_present(
        &self,
        mode: u32,
        look: Look,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<(Snapshot, SkippedFiles)> {
        if !self.root_exists()? {
            let empty = self.unstored(|put| write_empty(mode, put))?;
            return Ok((empty, SkippedFiles::default()));
        }
        let mut options = self.scan_options(&self.included()?, None, progress);
        // Files in the last checkpoint are scanned even if ignored.
        options.keep = true;
        options.reread = look == Look::Thorough;
        let cache = self.load_cache();
        let scanned = scan(self.root(), &options, &cache, Sink::HashOnly, scan_time())?;
        let skipped = skipped(&scanned);
        let found = (scanned.id, scanned.root);
        let present = Snapshot::present(self.root(), found, scanned.nodes, self.objects());
        Ok((present, skipped))
    }

    /// Returns a snapshot that is not stored. `write` writes its listings.
    pub(super) fn unstored(
        &self,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<ObjectId>) -> Result<(ObjectId, Dir)>,
    ) -> Result<Snapshot> {
        let mut nodes = HashMap::new();
        let found = write(&mut |bytes: &[u8]| {
            let id = ObjectId::of(bytes);
            nodes.insert(id, bytes.to_vec());
            Ok(id)
        })?;
        Ok(Snapshot::present(self.root(), found, nodes, self.objects()))
    }

    /// Returns the options of a scan that includes these ignored paths.
    pub(crate) fn scan_options(
        &self,
        included: &[Included],
        limits: Option<SnapshotLimits>,
        progress: Option<Arc<dyn Progress>>,
    ) -> ScanOptions {
        let store = self.store();
        let root = store.root();
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let included = included.iter();
        ScanOptions {
            included: included.map(|it| bytes_of(&it.path).to_vec()).collect(),
            cap: store.snapshot_cap(),
            include_cap: store.include_cap(),
            global_excludes: store.global_excludes().map(ToOwned::to_owned),
            limits,
            progress,
            ..ScanOptions::new(root)
        }
    }
}

/// Returns the time to compare files' times with: the system's, even if the store has
/// another clock.
pub(super) fn scan_time() -> Timestamp {
    SystemTime::now().into()
}

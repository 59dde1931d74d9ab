//! Which lines of the log changed some paths.

use std::collections::HashMap;
use std::path::PathBuf;

use backtrail::snapshot::{Diff, ObjectId};
use backtrail::{Checkpoint, ErrorKind, Snapshot, Workspace};

use super::lines::Line;
use crate::text::{count, plural};
use crate::ui::Ui;

/// Finds the changes to some paths. Where files were dropped, that may be impossible: such
/// lines are counted instead of listed.
pub(super) struct PathFilter<'a> {
    workspace: &'a Workspace,
    paths: &'a [PathBuf],
    /// The checkpoints that have files, by their state; read when one without is met.
    kept: Option<HashMap<ObjectId, Checkpoint>>,
    unknown: u64,
}

impl<'a> PathFilter<'a> {
    pub(super) fn new(workspace: &'a Workspace, paths: &'a [PathBuf]) -> Self {
        Self {
            workspace,
            paths,
            kept: None,
            unknown: 0,
        }
    }

    /// Returns whether all paths are meant.
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns what a line changed in the paths; `None` if that is nothing, or unknown because
    /// files were dropped.
    pub(super) fn changes(&mut self, line: &Line) -> backtrail::Result<Option<Diff>> {
        let Some(before) = &line.before else {
            return Ok(None);
        };
        if before.snapshot_id() == line.after.snapshot_id() {
            return Ok(None);
        }
        let (Some(before), Some(after)) = (self.open(before)?, self.open(&line.after)?) else {
            self.unknown += 1;
            return Ok(None);
        };
        let diff = before.diff(&after)?.only(self.paths)?;
        Ok(Some(diff).filter(|diff| !diff.is_empty()))
    }

    /// Opens the files of a checkpoint. If they were dropped, another one may have the same.
    fn open(&mut self, checkpoint: &Checkpoint) -> backtrail::Result<Option<Snapshot>> {
        match checkpoint.snapshot() {
            Err(error) if error.kind() == ErrorKind::Dropped => {}
            snapshot => return snapshot.map(Some),
        }
        let kept = match &mut self.kept {
            Some(kept) => kept,
            none => none.insert(kept(self.workspace)?),
        };
        let same = kept.get(&checkpoint.snapshot_id());
        same.map(Checkpoint::snapshot).transpose()
    }

    /// Returns whether nothing is known about some lines.
    pub(super) fn has_unknown(&self) -> bool {
        self.unknown > 0
    }

    /// Reports how many lines are not listed because nothing is known about them.
    pub(super) fn report_unknown(&self, thing: &str, ui: &Ui) {
        if self.unknown == 0 {
            return;
        }
        let lines = count(self.unknown, thing);
        let are = plural(self.unknown, "is", "are");
        let their = plural(self.unknown, "its", "their");
        ui.warning(
            &format!(
                "{lines} {are} not listed: {their} files were dropped, so changes to these paths \
                 are unknown"
            ),
            None,
        );
    }
}

fn kept(workspace: &Workspace) -> backtrail::Result<HashMap<ObjectId, Checkpoint>> {
    let mut kept = HashMap::new();
    for checkpoint in workspace.checkpoints()? {
        let checkpoint = checkpoint?;
        if checkpoint.dropped()?.is_none() {
            kept.insert(checkpoint.snapshot_id(), checkpoint);
        }
    }
    Ok(kept)
}

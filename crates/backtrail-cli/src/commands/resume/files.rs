//! The files of a session that is resumed: as they were, here or in a directory of their own.

use std::path::{Path, PathBuf};

use backtrail::rewind::ForkInto;
use backtrail::{ErrorKind, Point, Rewind, RewindPlan, Store, Workspace};

use super::session::Found;
use crate::commands::moves::workspace_of;
use crate::commands::recovery::Finish;
use crate::commands::short;
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::text::count;
use crate::ui::Ui;

/// Puts the files to their state at the end of a session.
pub(super) struct FilesBack {
    plan: RewindPlan,
}

impl FilesBack {
    /// Does it. If it fails, nothing was touched, or the next command finishes it.
    pub(super) fn apply(self, ui: &Ui) -> Result<()> {
        let outcome = self.plan.apply()?;
        let changed = outcome.restored().len() + outcome.deleted().len();
        match changed {
            0 => ui.status("the files are as they were then"),
            _ => {
                ui.status(&format!("restored {}", count(changed, "file")));
                ui.status(&format!("to reverse: {} undo", ui.program()));
            }
        }
        Ok(())
    }
}

impl Found {
    /// Plans to put the files to their state at the session's last record. Fails if files that
    /// you changed stop that.
    pub(super) fn files_back(&self, store: &Store, ui: &Ui) -> Result<FilesBack> {
        let workspace = self.workspace(store, ui)?;
        Finish::ToWrite.finish(&workspace, ui)?;
        let plan = workspace.rewind_plan(&self.point(), Rewind::files());
        let plan = plan.map_err(|error| self.no_state(error, ui))?;
        if !plan.is_stopped() {
            return Ok(FilesBack { plan });
        }
        let files = count(plan.outcome().stopping().count(), "file");
        let what = format!("{files} changed since then; nothing was touched");
        let (program, place) = (ui.program(), self.place());
        Err(CommandError::new(ErrorKind::Conflict, what)
            .hint(format!(
                "see them, and choose: {program} rewind {place} --files"
            ))
            .hint(format!(
                "then without --with-files: {program} resume {place}{}",
                self.flag
            )))
    }

    /// Writes the files as they were to a new directory, and continues there.
    pub(super) fn move_into(&mut self, store: &Store, dir: &Path, ui: &Ui) -> Result<()> {
        let workspace = self.workspace(store, ui)?;
        let plan = workspace.fork_into_plan(&self.point(), dir, ForkInto::new());
        let forked = plan.and_then(|plan| plan.apply());
        let forked = forked.map_err(|error| self.no_state(error, ui))?;
        let root: PathBuf = forked.workspace.root().to_owned();
        let files = count(forked.files, "file");
        ui.status(&format!("created {} ({files})", tilde(&root)));
        let id = forked.session.id().clone();
        forked.session.close()?;
        self.directory = root;
        // The fork has the same records, and knows its directory.
        self.parent = store.read_session(&id)?;
        Ok(())
    }

    /// Returns the workspace of the session: the one that it names, or that of its directory.
    fn workspace(&self, store: &Store, ui: &Ui) -> Result<Workspace> {
        let id = self.reader.id();
        let named = workspace_of(store, id)?;
        let directory = store.moved_root(&self.info);
        let directory = directory.or_else(|| self.info.workspace_root.clone());
        let found = match (named, directory) {
            (None, Some(directory)) if directory.is_dir() => {
                let root = store.workspace_root(&directory)?;
                store.find_workspace(&root)?
            }
            (None, Some(directory)) => {
                let mut all = store.workspaces()?.into_iter();
                all.find(|workspace| workspace.root() == directory)
            }
            (named, _) => named,
        };
        found.ok_or_else(|| {
            let (program, place) = (ui.program(), self.place());
            let what = format!("session {} has no file checkpoints", short(id));
            let hint = format!("without the files: {program} resume {place}{}", self.flag);
            CommandError::invalid(what).hint(hint)
        })
    }

    fn point(&self) -> Point {
        Point::record(self.reader.id(), self.files_seq())
    }

    /// Adds a way out to the error for a record without a state of the files.
    fn no_state(&self, error: backtrail::Error, ui: &Ui) -> CommandError {
        let (program, place) = (ui.program(), self.place());
        let hint = format!("without the files: {program} resume {place}{}", self.flag);
        CommandError::from(error).hint(hint)
    }
}

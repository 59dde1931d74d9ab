//! Emptying the trash. What is emptied is gone for good.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::deleted::Deleted;
use super::family::Family;
use super::{EMPTIED, TrashContents, TrashEntry, TrashKind, TrashName};
use crate::error::{Error, ErrorKind, Result};
use crate::hex::lossy_paths;
use crate::ids::SessionId;
use crate::storage::if_found;
use crate::store::Store;

/// Options for emptying the trash.
#[derive(Debug, Clone, Default)]
pub struct EmptyOptions {
    only: Option<Vec<TrashName>>,
    older_than: Option<Duration>,
}

impl EmptyOptions {
    /// Returns options for everything in the trash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties only these.
    #[must_use]
    pub fn only(mut self, names: impl IntoIterator<Item = TrashName>) -> Self {
        self.only = Some(names.into_iter().collect());
        self
    }

    /// Empties what was deleted longer ago than this. What has no time of deletion stays.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }
}

/// An entry that stays in the trash, and the sessions that read it there.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct KeptEntry {
    /// The entry.
    pub entry: TrashEntry,
    /// The sessions that read it, or that cannot be read and so may.
    pub read_by: Vec<SessionId>,
    /// Whether those sessions cannot be read.
    pub in_doubt: bool,
}

/// An emptying that was planned.
#[derive(Debug)]
pub struct EmptyPlan {
    store: Store,
    options: EmptyOptions,
    emptied: Vec<TrashEntry>,
    kept: Vec<KeptEntry>,
    contents: TrashContents,
}

/// What emptying the trash did.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct EmptyReport {
    /// The entries that were removed.
    pub emptied: Vec<TrashName>,
    /// How many bytes were freed, including leftovers of an interrupted emptying.
    pub bytes: u64,
    /// The entries that stay because sessions read them.
    pub kept: Vec<KeptEntry>,
    /// Foreign files, which were left alone.
    #[serde(serialize_with = "lossy_paths")]
    pub left: Vec<PathBuf>,
}

impl Store {
    /// Plans to empty the trash, and changes nothing.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) where a named entry is not in the trash.
    pub fn empty_plan(&self, options: &EmptyOptions) -> Result<EmptyPlan> {
        let mut contents = self.trash()?;
        let mut wanted = Vec::new();
        let all = std::mem::take(&mut contents.entries);
        for name in options.only.iter().flatten() {
            if !all.iter().any(|entry| entry.name == *name) {
                let what = format!("{name} is not in the trash");
                return Err(Error::new(ErrorKind::NotFound, what));
            }
        }
        for entry in all {
            if self.is_wanted(&entry, options) {
                wanted.push(entry);
            }
        }
        let family = Family::read(self)?;
        let (emptied, kept) = separate(&family, wanted);
        Ok(EmptyPlan {
            store: self.clone(),
            options: options.clone(),
            emptied,
            kept,
            contents,
        })
    }

    fn is_wanted(&self, entry: &TrashEntry, options: &EmptyOptions) -> bool {
        let named = match &options.only {
            Some(names) => names.contains(&entry.name),
            None => true,
        };
        let Some(age) = options.older_than else {
            return named;
        };
        let now = self.now().as_millis();
        let limit = now.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        // Clocks may go back: what was deleted in the future is new.
        named && entry.deleted_at.is_some_and(|at| at.as_millis() <= limit)
    }
}

impl Store {
    /// Records that an imported session is emptied: its agent's file may still exist, and must
    /// not bring it back.
    fn record_emptied(&self, entry: &TrashEntry) -> Result<()> {
        let is_own = || matches!(entry.reader().info(), Ok(info) if info.belongs_to.is_none());
        if entry.name.kind != TrashKind::Session || is_own() {
            return Ok(());
        }
        let path = self.emptied_path(&entry.name.id);
        Deleted::now(self).write_file(self.storage(), &path)
    }

    /// Returns the file that records that an imported session was emptied from the trash.
    fn emptied_path(&self, id: &SessionId) -> PathBuf {
        self.trash_dir().join(format!("{id}{EMPTIED}"))
    }

    /// Returns whether an imported session was emptied from the trash, and is not here again.
    pub(crate) fn was_emptied(&self, id: &SessionId) -> bool {
        let storage = self.storage();
        let is_here = || storage.exists(self.files(id).path()).unwrap_or(false);
        storage.exists(&self.emptied_path(id)).unwrap_or(false) && !is_here()
    }

    /// Forgets that an imported session was emptied from the trash, so that it can be imported
    /// again. Returns whether it was.
    ///
    /// # Errors
    ///
    /// Fails if the trash cannot be written.
    #[doc(hidden)]
    pub fn forget_emptied(&self, id: &SessionId) -> Result<bool> {
        let (path, was_emptied) = (self.emptied_path(id), self.was_emptied(id));
        if was_emptied {
            let removed = if_found(self.storage().remove_file(&path));
            removed.map_err(|error| Error::io("cannot forget the deletion", &path, error))?;
        }
        Ok(was_emptied)
    }
}

/// Separates what can go from what is still read, by a live session or by one in the trash
/// that stays.
fn separate(family: &Family, mut wanted: Vec<TrashEntry>) -> (Vec<TrashEntry>, Vec<KeptEntry>) {
    let mut kept = Vec::new();
    loop {
        let goes = |id: &SessionId| {
            let is_it =
                |entry: &TrashEntry| entry.name.id == *id && entry.name.kind == TrashKind::Session;
            wanted.iter().any(is_it)
        };
        let readers = |entry: &TrashEntry| -> (Vec<SessionId>, bool) {
            let stays = entry.continued_by.iter().filter(|id| !goes(id)).cloned();
            let stays: Vec<SessionId> = stays.collect();
            if !stays.is_empty() {
                return (stays, false);
            }
            // A session that cannot be read may continue any of them.
            let doubt = family.unreadable();
            let doubt =
                doubt.filter(|relative| relative.id != entry.name.id && !goes(&relative.id));
            (doubt.map(|relative| relative.id.clone()).collect(), true)
        };
        let found = wanted.iter().enumerate().find_map(|(n, entry)| {
            let (read_by, in_doubt) = readers(entry);
            (!read_by.is_empty()).then_some((n, read_by, in_doubt))
        });
        let Some((n, read_by, in_doubt)) = found else {
            return (wanted, kept);
        };
        kept.push(KeptEntry {
            entry: wanted.remove(n),
            read_by,
            in_doubt,
        });
    }
}

impl EmptyPlan {
    /// Returns the entries that would be removed.
    pub fn emptied(&self) -> &[TrashEntry] {
        &self.emptied
    }

    /// Returns the entries that would stay because sessions read them.
    pub fn kept(&self) -> &[KeptEntry] {
        &self.kept
    }

    /// Returns leftovers of an interrupted emptying, which would be removed.
    pub fn leftovers(&self) -> &[PathBuf] {
        &self.contents.leftovers
    }

    /// Returns foreign files, which stay.
    pub fn unknown(&self) -> &[PathBuf] {
        &self.contents.unknown
    }

    /// Removes the planned entries for good, as far as they can still go.
    ///
    /// # Errors
    ///
    /// Fails where the trash cannot be read or written.
    pub fn apply(self) -> Result<EmptyReport> {
        let Self {
            store,
            mut options,
            emptied,
            kept,
            ..
        } = self;
        // What was deleted since the plan stays.
        options.only = Some(emptied.iter().map(|entry| entry.name.clone()).collect());
        let cleared = store.clear_emptying()?;
        let _guard = store.hold_trash()?;
        let mut report = EmptyReport {
            bytes: cleared.bytes,
            left: cleared.left,
            ..EmptyReport::default()
        };
        let names = options.only.iter_mut().flatten();
        let mut there = Vec::new();
        for name in names {
            if store.is_dir(&store.trash_dir().join(name.to_string()))? {
                there.push(name.clone());
            }
        }
        options.only = Some(there);
        let plan = store.empty_plan(&options)?;
        for entry in &plan.emptied {
            store.record_emptied(entry)?;
            let path = store.mark_for_removal(&entry.name)?;
            let removed = store.remove_session_dir(&path)?;
            report.bytes += removed.bytes;
            report.left.extend(removed.left);
        }
        report.left.extend(plan.contents.unknown);
        report.emptied = plan.emptied.into_iter().map(|entry| entry.name).collect();
        report.kept = kept;
        report.kept.extend(plan.kept);
        Ok(report)
    }
}

//! Emptying the trash: plan, then act. What is emptied is gone for good.

use std::path::PathBuf;
use std::time::Duration;

use super::family::Family;
use super::{TrashContents, TrashEntry, TrashName, TrashKind};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::store::Store;

/// What shall be emptied from the trash.
#[derive(Debug, Clone, Default)]
pub struct EmptyOptions {
    only: Option<Vec<TrashName>>,
    older_than: Option<Duration>,
}

impl EmptyOptions {
    /// Makes options for all that is in the trash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties these alone.
    #[must_use]
    pub fn only(mut self, names: impl IntoIterator<Item = TrashName>) -> Self {
        self.only = Some(names.into_iter().collect());
        self
    }

    /// Empties what was deleted longer ago than this. What does not say when it was
    /// deleted stays.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }
}

/// Something that stays in the trash, and the sessions that go on reading it there.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeptEntry {
    /// What stays.
    pub entry: TrashEntry,
    /// Who reads it, or cannot be read and so may.
    pub read_by: Vec<SessionId>,
    /// Whether those cannot be read.
    pub in_doubt: bool,
}

/// What emptying the trash would do.
#[derive(Debug)]
pub struct EmptyPlan {
    store: Store,
    options: EmptyOptions,
    emptied: Vec<TrashEntry>,
    kept: Vec<KeptEntry>,
    contents: TrashContents,
}

/// What emptying the trash did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct EmptyReport {
    /// What is gone.
    pub emptied: Vec<TrashName>,
    /// How many bytes that freed, what an interrupted emptying had left included.
    pub bytes: u64,
    /// What stays because it is read.
    pub kept: Vec<KeptEntry>,
    /// What is not ours, and was left where it is.
    pub left: Vec<PathBuf>,
}

impl Store {
    /// Finds out what emptying the trash would do.
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
        let (emptied, kept) = part(&family, wanted);
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
        // A clock that jumped must not make something old that is not: what is of the
        // future is new.
        named && entry.deleted_at.is_some_and(|at| at.as_millis() <= limit)
    }
}

/// Parts what can go from what is still read, by a live session or by one in the trash
/// that stays. It ends when nothing more has to stay.
fn part(family: &Family, mut wanted: Vec<TrashEntry>) -> (Vec<TrashEntry>, Vec<KeptEntry>) {
    let mut kept = Vec::new();
    loop {
        let goes = |id: &SessionId| {
            let is_it =
                |entry: &TrashEntry| entry.name.id == *id && entry.name.what == TrashKind::Session;
            wanted.iter().any(is_it)
        };
        let readers = |entry: &TrashEntry| -> (Vec<SessionId>, bool) {
            let stays = entry.continued_by.iter().filter(|id| !goes(id)).cloned();
            let stays: Vec<SessionId> = stays.collect();
            if !stays.is_empty() {
                return (stays, false);
            }
            // What cannot be read may go on from any of them.
            let doubt = family.unreadable();
            let doubt = doubt.filter(|relative| relative.id != entry.name.id && !goes(&relative.id));
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
    /// Returns what would be gone.
    pub fn emptied(&self) -> &[TrashEntry] {
        &self.emptied
    }

    /// Returns what would stay because it is read.
    pub fn kept(&self) -> &[KeptEntry] {
        &self.kept
    }

    /// Returns what is left of an emptying that was interrupted, and would go.
    pub fn leftovers(&self) -> &[PathBuf] {
        &self.contents.leftovers
    }

    /// Returns what is not ours, and stays.
    pub fn unknown(&self) -> &[PathBuf] {
        &self.contents.unknown
    }

    /// Empties the trash, as it is now.
    pub fn apply(self) -> Result<EmptyReport> {
        let Self {
            store,
            mut options,
            emptied,
            kept,
            ..
        } = self;
        // What came since was not asked for.
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

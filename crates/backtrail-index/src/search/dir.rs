//! Opens the index on disk and checks whether it can be trusted.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tantivy::{Index, ReloadPolicy, Searcher};

use super::commit::Commit;
pub(crate) use super::commit::IndexedTrail;
use super::document::{schema, tokenizers};
use super::files::Files;
use crate::error::Result;
use crate::seal::Seal;

/// The directory's name; the number is the version of its contents.
const DIR: &str = "search-2";

/// The result of opening the index.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It is as it was left.
    Ready(SearchIndex),
    /// It does not exist.
    Missing,
    /// It cannot be trusted and must be rebuilt, with the reason.
    Unusable(String),
}

impl Opened {
    /// Returns the index, unless so many of its records belong to removed or reindexed
    /// trails that it should be rebuilt.
    pub(crate) fn usable(self) -> Option<SearchIndex> {
        match self {
            Self::Ready(index) if !index.is_worn() => Some(index),
            _ => None,
        }
    }
}

/// The index on disk as of one commit, or one in memory. Later commits are not visible.
pub(crate) struct SearchIndex {
    pub(super) commit: Commit,
    pub(super) searcher: Searcher,
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex")
            .field("trails", &self.commit.trails.len())
            .field("docs", &self.commit.docs)
            .finish_non_exhaustive()
    }
}

/// How often another process may commit while this one opens the index.
const TRIES: usize = 20;

impl SearchIndex {
    /// Opens the index in the directory of derived data. Errors are I/O errors.
    pub(crate) fn open(derived: &Path) -> Result<Opened> {
        let dir = path(derived);
        let mut last = None;
        for _ in 0..TRIES {
            let commit = match Commit::read(&dir)? {
                Some(Ok(commit)) => commit,
                Some(Err(why)) => return Ok(Opened::Unusable(why.to_owned())),
                None => return Ok(Opened::Missing),
            };
            match open_commit(&dir, &commit) {
                Ok(searcher) => return Ok(Opened::Ready(Self { commit, searcher })),
                // Unless another process committed meanwhile and removed files, this is
                // final.
                Err(why) if last.as_ref() == Some(&commit) => return Ok(Opened::Unusable(why)),
                Err(_) => last = Some(commit),
            }
        }
        let why = "other processes keep writing to it".to_owned();
        Ok(Opened::Unusable(why))
    }

    /// Opens what was just committed.
    pub(super) fn of_commit(dir: &Path, commit: Commit) -> Result<Self, String> {
        let searcher = open_commit(dir, &commit)?;
        Ok(Self { commit, searcher })
    }

    /// Returns the trails in the index by session and number.
    pub(crate) fn known(&self) -> &[IndexedTrail] {
        &self.commit.trails
    }

    pub(super) fn is_worn(&self) -> bool {
        let live: u64 = self.commit.trails.iter().map(|t| u64::from(t.docs)).sum();
        let dead = self.commit.docs.saturating_sub(live);
        // A few do not matter.
        dead > 1_000 && dead * 3 > self.commit.docs
    }
}

/// Opens a commit; `Err` is the reason why it cannot be trusted.
fn open_commit(dir: &Path, commit: &Commit) -> Result<Searcher, String> {
    match Seal::of(dir, &commit.seal.names()) {
        Ok(seal) if seal == commit.seal => {}
        Ok(_) => return Err("its files were changed".to_owned()),
        Err(error) => return Err(format!("its files cannot be inspected: {error}")),
    }
    let searcher = guarded(|| {
        let files = Files::open(dir)?.with_meta(&commit.meta);
        searcher_of(&open_index(files)?)
    })?;
    if searcher.num_docs() != commit.docs {
        return Err("records are missing".to_owned());
    }
    Ok(searcher)
}

/// Returns the path of the index.
pub(super) fn path(derived: &Path) -> PathBuf {
    derived.join(DIR)
}

/// Opens tantivy's part of the index.
pub(super) fn open_index(files: Files) -> tantivy::Result<Index> {
    let mut index = Index::open(files)?;
    if index.schema() != schema() {
        let what = "the fields differ".to_owned();
        return Err(tantivy::TantivyError::SchemaError(what));
    }
    index.set_tokenizers(tokenizers());
    Ok(index)
}

/// Returns a searcher for the current state of an index.
pub(super) fn searcher_of(index: &Index) -> tantivy::Result<Searcher> {
    let reader: tantivy::IndexReader = index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .try_into()?;
    Ok(reader.searcher())
}

/// Runs tantivy code, which panics on damaged files.
pub(super) fn guarded<T>(run: impl FnOnce() -> tantivy::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("its files are damaged".to_owned()),
    }
}

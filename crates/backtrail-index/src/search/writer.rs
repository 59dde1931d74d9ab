//! Adds records to the index on disk, or makes one in memory.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use backtrail::SessionId;
use tantivy::{Directory as _, Index, IndexMeta, SegmentMeta};

use super::commit::{self, Commit, sync_dir};
use super::dir::{SearchIndex, guarded, open_index, path, searcher_of};
use super::document::{Batch, schema, tokenizers};
use super::files::{Files, META};
use super::segments::{SegmentBuilder, SegmentBuilders, merge_small, settings};
use super::trail_table::TrailTable;
use crate::error::{Error, Result};
use crate::feed::{End, FedRecord, Sink, TrailPlace};
use crate::files;
use crate::plan::{ChangedSession, Derived, Plan};
use crate::seal::Seal;

/// How much text is sent to a thread at once.
const BATCH: usize = 512 << 10;
/// The initial size of a segment built without a thread; it grows as needed.
const LITTLE: usize = 1 << 20;

/// Adds to the index, or rebuilds it. The caller holds the lock, so there is only one.
///
/// The directory belongs to the index alone: anything in it that the last commit does not
/// name is removed.
pub(crate) struct SearchWriter {
    /// `None` if the index is in memory.
    dir: Option<PathBuf>,
    index: Index,
    /// The segments of the index, committed or not.
    segments: Vec<SegmentMeta>,
    trails: TrailTable,
    batch: Batch,
    makers: Option<SegmentBuilders>,
}

impl fmt::Debug for SearchWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchWriter")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl SearchWriter {
    /// Adds to an opened index, which must be the newest.
    pub(crate) fn resume(derived: &Path, opened: &SearchIndex) -> Result<Self> {
        let dir = path(derived);
        let commit = &opened.commit;
        clean(&dir, &commit.seal)?;
        let (index, segments) = tantivy(|| {
            let index = open_index(Files::open(&dir)?.with_meta(&commit.meta))?;
            let segments = index.searchable_segment_metas()?;
            Ok((index, segments))
        })?;
        let trails = TrailTable::new(&commit.trails, commit.next_ordinal);
        Ok(Self::with(Some(dir), index, segments, trails))
    }

    /// Builds a new index. The existing one answers until the first commit.
    pub(crate) fn rebuild(derived: &Path) -> Result<Self> {
        let dir = path(derived);
        make_dir(&dir)?;
        match Commit::read(&dir)? {
            Some(Ok(commit)) => clean(&dir, &commit.seal)?,
            _ => remove_all_but(&dir, &HashSet::new())?,
        }
        let index = tantivy(|| {
            let mut index = Index::create(Files::open(&dir)?, schema(), settings())?;
            index.set_tokenizers(tokenizers());
            Ok(index)
        })?;
        let trails = TrailTable::default();
        Ok(Self::with(Some(dir), index, Vec::new(), trails))
    }

    /// Builds an index in memory.
    pub(crate) fn in_memory() -> Result<Self> {
        let builder = Index::builder().schema(schema()).settings(settings());
        let index = tantivy(|| builder.tokenizers(tokenizers()).create_in_ram())?;
        Ok(Self::with(None, index, Vec::new(), TrailTable::default()))
    }

    fn with(
        dir: Option<PathBuf>,
        index: Index,
        segments: Vec<SegmentMeta>,
        trails: TrailTable,
    ) -> Self {
        Self {
            dir,
            index,
            segments,
            trails,
            batch: Batch::default(),
            makers: None,
        }
    }

    /// Makes the added records durable and visible, and returns the new index. After an
    /// error, drop this writer; earlier commits remain.
    pub(crate) fn commit(&mut self) -> Result<SearchIndex> {
        self.trails.give_up();
        self.write_segments()?;
        if let Some(dir) = &self.dir {
            let segments = std::mem::take(&mut self.segments);
            self.segments = tantivy(|| merge_small(dir, &self.index, segments))?;
        }
        let meta = IndexMeta {
            index_settings: settings(),
            segments: self.segments.clone(),
            ..IndexMeta::with_schema(schema())
        };
        let (trails, next_ordinal) = self.trails.known();
        let commit = Commit {
            seal: match &self.dir {
                Some(dir) => seal(dir, &meta)?,
                None => Seal::default(),
            },
            meta: serde_json::to_vec(&meta).map_err(|error| failed(error.to_string()))?,
            next_ordinal,
            docs: self.segments.iter().map(|s| u64::from(s.max_doc())).sum(),
            trails,
        };
        let Some(dir) = &self.dir else {
            let searcher = tantivy(|| {
                let files = self.index.directory();
                files.atomic_write(Path::new(META), &commit.meta)?;
                searcher_of(&self.index)
            })?;
            return Ok(SearchIndex { commit, searcher });
        };
        // The files that the commit names are made durable before it.
        sync_dir(dir)?;
        commit.write(dir)?;
        clean(dir, &commit.seal)?;
        SearchIndex::of_commit(dir, commit).map_err(failed)
    }

    /// Writes the records added since the last commit.
    fn write_segments(&mut self) -> Result<()> {
        let last = std::mem::take(&mut self.batch);
        let made = match self.makers.take() {
            Some(makers) => {
                makers.give(last);
                makers.end().map_err(failed)?
            }
            None => tantivy(|| {
                let mut making = SegmentBuilder::begin(&self.index, LITTLE)?;
                making.add(last)?;
                Ok(making.end()?.into_iter().collect())
            })?,
        };
        self.segments.extend(made);
        Ok(())
    }
}

/// Returns the state of the files of segments.
fn seal(dir: &Path, meta: &IndexMeta) -> Result<Seal> {
    let files = meta.list_segment_files();
    let names: Vec<&str> = files.iter().filter_map(|path| path.to_str()).collect();
    Seal::of(dir, &names).map_err(|error| Error::io("cannot inspect the files in", dir, error))
}

impl Derived for SearchWriter {
    fn start(&mut self, plan: &Plan) -> Result<()> {
        for id in &plan.gone {
            self.trails.forget_session(&id.parse()?);
        }
        Ok(())
    }

    fn session(&mut self, session: &ChangedSession) -> Result<()> {
        if session.from_start {
            self.trails.forget_session(&session.id);
        }
        Ok(())
    }

    fn unreadable(&mut self, id: &SessionId, _error: &backtrail::Error) -> Result<()> {
        self.trails.forget_session(id);
        Ok(())
    }
}

impl Sink for SearchWriter {
    fn begin(&mut self, place: &TrailPlace) -> Result<()> {
        self.trails.begin(place)
    }

    fn record(&mut self, record: &FedRecord<'_>) -> Result<()> {
        let Some(trail) = self.trails.ordinal(record.byte) else {
            return Ok(());
        };
        if self.batch.add_record(trail, record) {
            self.trails.count();
        }
        if self.batch.bytes() >= BATCH {
            let makers = self
                .makers
                .get_or_insert_with(|| SegmentBuilders::start(&self.index));
            makers.give(std::mem::take(&mut self.batch));
        }
        Ok(())
    }

    fn end(&mut self, end: Option<End>) -> Result<()> {
        self.trails.end(end);
        Ok(())
    }
}

/// Creates the directory, replacing anything else with its name.
fn make_dir(dir: &Path) -> Result<()> {
    let failed = |error| Error::io("cannot create", dir, error);
    if fs::symlink_metadata(dir).is_ok_and(|meta| !meta.is_dir()) {
        fs::remove_file(dir).map_err(failed)?;
    }
    files::create_dir(dir).map_err(failed)
}

/// Removes everything from the directory but the commit and the files it names: leftovers
/// of dead processes and of older commits. Readers that have them open keep them.
fn clean(dir: &Path, keep: &Seal) -> Result<()> {
    let names = keep.names().into_iter().chain([commit::NAME]);
    remove_all_but(dir, &names.collect())
}

fn remove_all_but(dir: &Path, names: &HashSet<&str>) -> Result<()> {
    let failed = |error| Error::io("cannot clean up", dir, error);
    for (name, _) in files::entries(dir).map_err(failed)? {
        if names.contains(name.as_str()) {
            continue;
        }
        let path = dir.join(name);
        match files::remove_all(&path) {
            Err(error) if !commit::is_missing(&error) => {
                return Err(Error::io("cannot remove", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn tantivy<T>(run: impl FnOnce() -> tantivy::Result<T>) -> Result<T> {
    guarded(run).map_err(failed)
}

fn failed(what: String) -> Error {
    Error::Search {
        doing: "cannot write the full-text index",
        what,
    }
}

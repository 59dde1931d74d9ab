//! The catalogue: sessions, turns, calls and their costs, in SQLite.
//!
//! Everything that is read from trails in one go is written in one transaction, together
//! with the position up to which it was read. A process that dies leaves the catalogue as
//! it was.

mod db;
mod ledger;
mod query;
mod schema;
mod sessions;
mod workspaces;
mod writer;

use std::collections::{BTreeSet, HashMap};

use backtrail::{Store, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

pub(crate) use db::{Opened, Paths, copy_to_memory, in_memory};

use crate::error::{Error, Result};
use crate::feed::Sink;
use crate::plan::Plan;
use crate::prices::Prices;
use crate::trail_dirs::{KnownDir, KnownDirs, KnownTrail, TrailDir, TrailFile};
pub(crate) use sessions::full_text;
use workspaces::Workspaces;
use writer::Writer;

/// Converts an SQLite error.
fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |source| Error::Database { doing, source }
}

/// A catalogue, on disk or in memory.
#[derive(Debug)]
pub(crate) struct Catalogue {
    db: Connection,
}

impl Catalogue {
    pub(crate) fn new(db: Connection) -> Self {
        Self { db }
    }

    /// Creates an empty catalogue in memory.
    pub(crate) fn empty_in_memory() -> Result<Self> {
        let db = in_memory()?;
        db::make_tables(&db)?;
        Ok(Self { db })
    }

    /// Returns whether the catalogue only exists in this process.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.db.path().is_none_or(str::is_empty)
    }

    pub(crate) fn db(&self) -> &Connection {
        &self.db
    }

    pub(crate) fn into_db(self) -> Connection {
        self.db
    }

    /// Returns how far each session was read.
    pub(crate) fn known(&self) -> Result<KnownDirs> {
        let reading = failed("cannot read the catalogue");
        // Two scans of whole tables in their own order cost less than a join.
        let mut trails: HashMap<i64, Vec<KnownTrail>> = HashMap::new();
        let mut all = self
            .db
            .prepare_cached("SELECT session, number, bytes, modified, read_to, sum FROM trails")
            .map_err(&reading)?;
        let mut rows = all.query([]).map_err(&reading)?;
        while let Some(row) = rows.next().map_err(&reading)? {
            let session = row.get(0).map_err(&reading)?;
            let trail = known_trail(row).map_err(&reading)?;
            trails.entry(session).or_default().push(trail);
        }
        let mut all = self
            .db
            .prepare_cached("SELECT key, id, settled FROM sessions")
            .map_err(&reading)?;
        let mut rows = all.query([]).map_err(&reading)?;
        let mut known = KnownDirs::with_capacity(trails.len());
        while let Some(row) = rows.next().map_err(&reading)? {
            let key: i64 = row.get(0).map_err(&reading)?;
            let mut dir = KnownDir {
                settled: row.get(2).map_err(&reading)?,
                trails: trails.remove(&key).unwrap_or_default(),
            };
            dir.trails.sort_unstable_by_key(|trail| trail.seen.number);
            known.insert(row.get(1).map_err(&reading)?, dir);
        }
        Ok(known)
    }

    /// Returns how far each workspace was read.
    pub(crate) fn known_workspaces(&self) -> Result<KnownDirs> {
        workspaces::known(&self.db)
    }

    /// Returns whether there is nothing to do.
    pub(crate) fn is_current(
        &self,
        plan: &Plan,
        (known, seen): (&KnownDirs, &[TrailDir]),
        prices: &Prices,
    ) -> Result<bool> {
        Ok(plan.is_empty()
            && !workspaces::have_changed(known, seen)
            && self.unreadable()? == plan.unreadable.len() as u64
            && self.setting("prices")?.as_deref() == Some(&prices.fingerprint()))
    }

    /// Returns how many sessions could not be read.
    fn unreadable(&self) -> Result<u64> {
        self.db
            .prepare_cached("SELECT count(*) FROM sessions WHERE settled = -1")
            .and_then(|mut count| count.query_row([], |row| row.get::<_, i64>(0)))
            .map(i64::unsigned_abs)
            .map_err(failed("cannot read the catalogue"))
    }

    fn setting(&self, name: &str) -> Result<Option<String>> {
        self.db
            .prepare_cached("SELECT value FROM about WHERE name = ?1")
            .and_then(|mut find| find.query_row([name], |row| row.get(0)).optional())
            .map_err(failed("cannot read the catalogue"))
    }

    fn set_setting(&self, name: &str, value: &str) -> Result<()> {
        self.db
            .prepare_cached("INSERT OR REPLACE INTO about VALUES (?1, ?2)")
            .and_then(|mut set| set.execute([name, value]))
            .map(drop)
            .map_err(failed("cannot write to the catalogue"))
    }

    /// Begins an update. Other processes see nothing of it before it ends.
    pub(crate) fn begin<'a>(&'a self, prices: &'a Prices) -> Result<CatalogueUpdate<'a>> {
        self.db
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(failed("cannot write to the catalogue"))?;
        Ok(CatalogueUpdate {
            catalogue: self,
            writer: Writer::new(&self.db, prices),
            prices,
            forgotten: BTreeSet::new(),
            unread: Vec::new(),
            came_or_went: false,
            is_over: false,
        })
    }
}

/// Reads a trail from a row: number, length, time, position and sum, from the second
/// column on.
fn known_trail(row: &rusqlite::Row<'_>) -> rusqlite::Result<KnownTrail> {
    Ok(KnownTrail {
        seen: TrailFile {
            number: row.get(1)?,
            bytes: row.get::<_, i64>(2)?.unsigned_abs(),
            modified: row.get(3)?,
        },
        read_to: row.get::<_, i64>(4)?.unsigned_abs(),
        sum: row.get::<_, i64>(5)?.to_be_bytes(),
    })
}

/// A running update. If it is dropped before it ends, nothing changes.
#[derive(Debug)]
pub(crate) struct CatalogueUpdate<'a> {
    catalogue: &'a Catalogue,
    writer: Writer<'a>,
    prices: &'a Prices,
    /// Responses of forgotten sessions, which other sessions may have too.
    forgotten: BTreeSet<i64>,
    /// Sessions that could not be read, with the reason.
    unread: Vec<(i64, String)>,
    came_or_went: bool,
    is_over: bool,
}

impl Drop for CatalogueUpdate<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // Closing the file would do the same.
            self.catalogue.db.execute_batch("ROLLBACK").ok();
        }
    }
}

impl CatalogueUpdate<'_> {
    /// Returns the sink that receives records.
    pub(crate) fn sink(&mut self) -> &mut dyn Sink {
        &mut self.writer
    }

    /// Forgets a session that is gone or read again from the beginning.
    pub(crate) fn forget(&mut self, id: &str) -> Result<()> {
        let db = &self.catalogue.db;
        let forgetting = failed("cannot remove a session from the catalogue");
        let key: Option<i64> = db
            .prepare_cached("SELECT key FROM sessions WHERE id = ?1")
            .and_then(|mut find| find.query_row([id], |row| row.get(0)).optional())
            .map_err(&forgetting)?;
        let Some(key) = key else {
            return Ok(());
        };
        let mut shared = db
            .prepare_cached(
                "SELECT response FROM ledger WHERE session = ?1 AND response_id IS NOT NULL",
            )
            .map_err(&forgetting)?;
        let rows = shared.query_map([key], |row| row.get(0));
        let rows: rusqlite::Result<Vec<i64>> = rows.map_err(&forgetting)?.collect();
        self.forgotten.extend(rows.map_err(&forgetting)?);
        for sql in [
            "DELETE FROM messages WHERE trail IN (SELECT key FROM trails WHERE session = ?1)",
            "DELETE FROM tool_calls WHERE trail IN (SELECT key FROM trails WHERE session = ?1)",
            "DELETE FROM trails WHERE session = ?1",
            "DELETE FROM ledger WHERE session = ?1",
            "DELETE FROM totals WHERE session = ?1",
            "DELETE FROM totals_by_time WHERE session = ?1",
            "DELETE FROM sessions WHERE key = ?1",
        ] {
            db.prepare_cached(sql)
                .and_then(|mut delete| delete.execute([key]))
                .map_err(&forgetting)?;
        }
        self.came_or_went = true;
        Ok(())
    }

    /// Sets when names in a session's directory last changed.
    pub(crate) fn settle(&mut self, id: &backtrail::SessionId, settled: i64) -> Result<()> {
        let key = self.writer.session_key(id)?;
        self.writer.touched.insert(key);
        let db = &self.catalogue.db;
        db.prepare_cached("UPDATE sessions SET settled = ?2 WHERE key = ?1")
            .and_then(|mut set| set.execute(params![key, settled]))
            .map(drop)
            .map_err(failed("cannot write to the catalogue"))
    }

    /// Marks a session as unreadable and keeps what is known of it.
    pub(crate) fn unreadable(&mut self, id: &backtrail::SessionId, why: String) -> Result<()> {
        let key = self.writer.session_key(id)?;
        self.came_or_went = true;
        self.unread.push((key, why));
        Ok(())
    }

    /// Returns the sessions that were unreadable before.
    pub(crate) fn were_unreadable(&self) -> Result<Vec<String>> {
        let reading = failed("cannot read the catalogue");
        let db = &self.catalogue.db;
        let mut all = db
            .prepare_cached("SELECT id FROM sessions WHERE settled = -1")
            .map_err(&reading)?;
        let rows = all.query_map([], |row| row.get(0)).map_err(&reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(&reading)
    }

    fn write_unreadable(&self) -> Result<()> {
        let mut set = self
            .catalogue
            .db
            .prepare_cached("UPDATE sessions SET settled = -1, error = ?2 WHERE key = ?1")
            .map_err(failed("cannot write to the catalogue"))?;
        for (key, why) in &self.unread {
            set.execute(params![key, why])
                .map_err(failed("cannot write to the catalogue"))?;
        }
        Ok(())
    }

    /// Updates everything that depends on the new records, and commits. `fresh` means
    /// that the catalogue was empty before.
    pub(crate) fn end(
        mut self,
        store: &Store,
        workspaces: &[TrailDir],
        fresh: bool,
        before_commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let db = &self.catalogue.db;
        let touched = std::mem::take(&mut self.writer.touched);
        let mut responses = std::mem::take(&mut self.forgotten);
        responses.extend(self.writer.responses.drain(..));
        let mut of_files = workspaces::catch_up(db, store, workspaces)?;
        let mut roots = Workspaces::new(db);
        for key in &touched {
            let id: Option<String> = db
                .prepare_cached("SELECT id FROM sessions WHERE key = ?1")
                .and_then(|mut find| find.query_row([key], |row| row.get(0)).optional())
                .map_err(failed("cannot read the catalogue"))?;
            if let Some(id) = id {
                sessions::refresh(db, store, *key, &id, &mut roots)?;
                of_files.insert(id);
            }
        }
        self.write_unreadable()?;
        if self.came_or_went || !touched.is_empty() {
            sessions::write_families(db)?;
        }
        sessions::write_files_changed(db, &of_files)?;
        db.execute_batch(schema::LATE)
            .map_err(failed("cannot write to the catalogue"))?;
        let settled = ledger::settle_shared(db, (!fresh).then_some(&responses))?;
        let fingerprint = self.prices.fingerprint();
        let repriced = !fresh && self.catalogue.setting("prices")?.as_deref() != Some(&fingerprint);
        let summed = if repriced {
            self.all_keys()?
        } else {
            &touched | &settled
        };
        for key in &summed {
            ledger::write_totals(db, *key, self.prices, repriced)?;
        }
        self.catalogue.set_setting("prices", &fingerprint)?;
        before_commit()?;
        db.execute_batch("COMMIT")
            .map_err(failed("cannot write to the catalogue"))?;
        self.is_over = true;
        Ok(())
    }

    fn all_keys(&self) -> Result<BTreeSet<i64>> {
        let reading = failed("cannot read the catalogue");
        let db = &self.catalogue.db;
        let mut all = db.prepare("SELECT key FROM sessions").map_err(&reading)?;
        let rows = all.query_map([], |row| row.get(0)).map_err(&reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(&reading)
    }
}

fn moment(millis: Option<i64>) -> Option<Timestamp> {
    millis.and_then(Timestamp::from_millis)
}

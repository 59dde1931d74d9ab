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

use backtrail::{SessionId, Store, Timestamp};
use rusqlite::{Connection, params};

pub(crate) use self::db::{Opened, Paths};
pub(crate) use self::sessions::full_text;
use self::workspaces::Workspaces;
use self::writer::Writer;
use crate::error::Result;
use crate::feed::Sink;
use crate::plan::Plan;
use crate::prices::Prices;
use crate::trail_dirs::{KnownDir, KnownDirs, KnownTrail, TrailDir, TrailFile};

/// A catalogue, on disk or in memory.
#[derive(Debug)]
pub(crate) struct Catalogue {
    db: Connection,
}

impl Catalogue {
    /// Returns whether the catalogue only exists in this process.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.db.path().is_none_or(str::is_empty)
    }

    /// Returns how far each session was read.
    pub(crate) fn known(&self) -> Result<KnownDirs> {
        // Two scans of whole tables in their own order cost less than a join.
        let mut trails: HashMap<i64, Vec<KnownTrail>> = HashMap::new();
        let sql = "SELECT session, number, bytes, modified, read_to, sum FROM trails";
        let () = self.rows(sql, [], |row| {
            let of_session = trails.entry(row.get(0)?).or_default();
            of_session.push(known_trail(row)?);
            Ok(())
        })?;
        let sql = "SELECT key, id, settled FROM sessions";
        self.rows(sql, [], |row| {
            let mut dir = KnownDir {
                settled: row.get(2)?,
                trails: trails.remove(&row.get(0)?).unwrap_or_default(),
            };
            dir.trails.sort_unstable_by_key(|trail| trail.seen.number);
            Ok((row.get(1)?, dir))
        })
    }

    /// Returns how far each workspace was read.
    pub(crate) fn known_workspaces(&self) -> Result<KnownDirs> {
        workspaces::known(self)
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
            && self.unreadable()?.len() == plan.unreadable.len()
            && self.priced_with()?.as_deref() == Some(&prices.fingerprint()))
    }

    /// Returns the sessions that could not be read.
    fn unreadable(&self) -> Result<Vec<String>> {
        let sql = "SELECT id FROM sessions WHERE settled = -1";
        self.rows(sql, [], |row| row.get(0))
    }

    /// Returns the fingerprint of the prices that costs were computed with.
    fn priced_with(&self) -> Result<Option<String>> {
        let sql = "SELECT value FROM about WHERE name = 'prices'";
        self.first(sql, [], |row| row.get(0))
    }

    /// Begins an update. Other processes see nothing of it before it ends.
    pub(crate) fn begin<'a>(&'a self, prices: &'a Prices) -> Result<CatalogueUpdate<'a>> {
        self.run("BEGIN IMMEDIATE", [])?;
        Ok(CatalogueUpdate {
            catalogue: self,
            writer: Writer::new(self, prices),
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
        let db = self.catalogue;
        let sql = "SELECT key FROM sessions WHERE id = ?1";
        let Some(key) = db.first(sql, [id], |row| row.get::<_, i64>(0))? else {
            return Ok(());
        };
        let shared: Vec<i64> = db.rows(
            "SELECT response FROM ledger WHERE session = ?1 AND response_id IS NOT NULL",
            [key],
            |row| row.get(0),
        )?;
        self.forgotten.extend(shared);
        for sql in [
            "DELETE FROM messages WHERE trail IN (SELECT key FROM trails WHERE session = ?1)",
            "DELETE FROM tool_calls WHERE trail IN (SELECT key FROM trails WHERE session = ?1)",
            "DELETE FROM trails WHERE session = ?1",
            "DELETE FROM ledger WHERE session = ?1",
            "DELETE FROM totals WHERE session = ?1",
            "DELETE FROM totals_by_time WHERE session = ?1",
            "DELETE FROM sessions WHERE key = ?1",
        ] {
            db.run(sql, [key])?;
        }
        self.came_or_went = true;
        Ok(())
    }

    /// Sets when names in a session's directory last changed.
    pub(crate) fn settle(&mut self, id: &SessionId, settled: i64) -> Result<()> {
        let key = self.writer.session_key(id)?;
        self.writer.touched.insert(key);
        let sql = "UPDATE sessions SET settled = ?2 WHERE key = ?1";
        self.catalogue.run(sql, [key, settled])
    }

    /// Marks a session as unreadable and keeps what is known of it.
    pub(crate) fn unreadable(&mut self, id: &SessionId, why: String) -> Result<()> {
        let key = self.writer.session_key(id)?;
        self.came_or_went = true;
        self.unread.push((key, why));
        Ok(())
    }

    /// Returns the sessions that were unreadable before.
    pub(crate) fn were_unreadable(&self) -> Result<Vec<String>> {
        self.catalogue.unreadable()
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
        let db = self.catalogue;
        let touched = std::mem::take(&mut self.writer.touched);
        let mut responses = std::mem::take(&mut self.forgotten);
        responses.extend(std::mem::take(&mut self.writer.responses));
        let mut of_files = workspaces::catch_up(db, store, workspaces)?;
        let mut roots = Workspaces::new(db);
        for key in &touched {
            let sql = "SELECT id FROM sessions WHERE key = ?1";
            if let Some(id) = db.first(sql, [key], |row| row.get::<_, String>(0))? {
                sessions::refresh(db, store, *key, &id, &mut roots)?;
                of_files.insert(id);
            }
        }
        for (key, why) in &self.unread {
            let sql = "UPDATE sessions SET settled = -1, error = ?2 WHERE key = ?1";
            db.run(sql, params![key, why])?;
        }
        if self.came_or_went || !touched.is_empty() {
            sessions::write_families(db)?;
        }
        sessions::write_files_changed(db, &of_files)?;
        db.run(schema::LATE, [])?;
        let settled = ledger::settle_shared(db, (!fresh).then_some(&responses))?;
        let fingerprint = self.prices.fingerprint();
        let repriced = !fresh && self.catalogue.priced_with()?.as_deref() != Some(&fingerprint);
        let summed: BTreeSet<i64> = match repriced {
            true => db.rows("SELECT key FROM sessions", [], |row| row.get(0))?,
            false => &touched | &settled,
        };
        for key in &summed {
            ledger::write_totals(db, *key, self.prices, repriced)?;
        }
        let sql = "INSERT OR REPLACE INTO about VALUES ('prices', ?1)";
        db.run(sql, [&fingerprint])?;
        before_commit()?;
        db.run("COMMIT", [])?;
        self.is_over = true;
        Ok(())
    }
}

fn moment(millis: Option<i64>) -> Option<Timestamp> {
    millis.and_then(Timestamp::from_millis)
}

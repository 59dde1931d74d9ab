//! The catalogue: sessions, turns, calls and their costs, in SQLite.
//!
//! Everything that is read from trails in one go is written in one transaction, together
//! with the position up to which it was read. A process that dies leaves the catalogue as
//! it was.

mod branches;
mod db;
mod files;
mod ledger;
mod query;
mod recent;
mod schema;
mod sessions;
mod spending;
mod tools;
mod turns;
mod workspaces;
mod writer;

use std::collections::{BTreeSet, HashMap};

use backtrail::plumbing::ShortIds;
use backtrail::{SessionId, Store, Timestamp};
use rusqlite::{Connection, params};

pub(crate) use self::db::{Opened, Paths};
use self::workspaces::Workspaces;
use self::writer::Trail;
use crate::error::Result;
use crate::plan::{ChangedSession, Derived, Plan};
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
            db: self,
            prices,
            trail: None,
            touched: BTreeSet::new(),
            responses: BTreeSet::new(),
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
    db: &'a Catalogue,
    prices: &'a Prices,
    /// The trail that is being read.
    trail: Option<Trail>,
    /// The sessions of which something was read.
    touched: BTreeSet<i64>,
    /// The responses whose rows were written or forgotten: other sessions may have them too.
    responses: BTreeSet<i64>,
    /// Sessions that could not be read, with the reason.
    unread: Vec<(i64, String)>,
    came_or_went: bool,
    is_over: bool,
}

impl Drop for CatalogueUpdate<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // Closing the file would do the same.
            self.db.db.execute_batch("ROLLBACK").ok();
        }
    }
}

impl CatalogueUpdate<'_> {
    /// Returns the key of a session, adding a row for a new one.
    fn session_key(&self, id: &SessionId) -> Result<i64> {
        let sql = "SELECT key FROM sessions WHERE id = ?1";
        match self.db.first(sql, [id.as_str()], |row| row.get(0))? {
            Some(key) => Ok(key),
            None => {
                let sql = "INSERT INTO sessions (id, short) VALUES (?1, ?2)";
                let short = ShortIds::hash(id).cast_signed();
                self.db.insert(sql, params![id.as_str(), short])
            }
        }
    }

    /// Forgets a session that is gone or read again from the beginning.
    fn forget(&mut self, id: &str) -> Result<()> {
        let db = self.db;
        let sql = "SELECT key FROM sessions WHERE id = ?1";
        let Some(key) = db.first(sql, [id], |row| row.get::<_, i64>(0))? else {
            return Ok(());
        };
        let shared: Vec<i64> = db.rows(
            "SELECT response FROM ledger WHERE session = ?1 AND response_id IS NOT NULL",
            [key],
            |row| row.get(0),
        )?;
        self.responses.extend(shared);
        for sql in [
            "DELETE FROM messages WHERE trail IN (SELECT key FROM trails WHERE session = ?1)",
            "DELETE FROM tool_calls WHERE trail IN (SELECT key FROM trails WHERE session = ?1)",
            "DELETE FROM edits WHERE trail IN (SELECT key FROM trails WHERE session = ?1)",
            "DELETE FROM files WHERE session = ?1",
            "DELETE FROM branches WHERE session = ?1",
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
    fn settle(&mut self, id: &SessionId, settled: i64) -> Result<()> {
        let key = self.session_key(id)?;
        self.touched.insert(key);
        let sql = "UPDATE sessions SET settled = ?2 WHERE key = ?1";
        self.db.run(sql, [key, settled])
    }

    /// Marks a session as unreadable and keeps what is known of it.
    fn mark_unreadable(&mut self, id: &SessionId, why: String) -> Result<()> {
        let key = self.session_key(id)?;
        self.came_or_went = true;
        self.unread.push((key, why));
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
        let db = self.db;
        let touched = std::mem::take(&mut self.touched);
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
        files::write_of_sessions(db, &of_files)?;
        for index in schema::LATE {
            db.run(index, [])?;
        }
        let settled = ledger::settle_shared(db, (!fresh).then_some(&self.responses))?;
        let fingerprint = self.prices.fingerprint();
        let repriced = !fresh && db.priced_with()?.as_deref() != Some(&fingerprint);
        let summed: BTreeSet<i64> = match repriced {
            true => db.rows("SELECT key FROM sessions", [], |row| row.get(0))?,
            false => &touched | &settled,
        };
        for key in &summed {
            ledger::write_totals(db, *key, self.prices, repriced)?;
        }
        db.run(schema::BY_TIME, [])?;
        let sql = "INSERT OR REPLACE INTO about VALUES ('prices', ?1)";
        db.run(sql, [&fingerprint])?;
        before_commit()?;
        db.run("COMMIT", [])?;
        self.is_over = true;
        Ok(())
    }
}

impl Derived for CatalogueUpdate<'_> {
    fn start(&mut self, plan: &Plan) -> Result<()> {
        for id in &plan.gone {
            self.forget(id)?;
        }
        // Those that no longer are unreadable are unmarked.
        for id in self.db.unreadable()? {
            if !plan.unreadable.iter().any(|(bad, _)| *bad == id) {
                self.settle(&id.parse()?, 0)?;
            }
        }
        for (id, why) in &plan.unreadable {
            self.mark_unreadable(&id.parse()?, why.clone())?;
        }
        Ok(())
    }

    fn session(&mut self, session: &ChangedSession) -> Result<()> {
        if session.from_start {
            self.forget(session.id.as_str())?;
        }
        self.settle(&session.id, session.settled)
    }

    fn unreadable(&mut self, id: &SessionId, error: &backtrail::Error) -> Result<()> {
        self.mark_unreadable(id, sessions::full_text(error))
    }
}

fn moment(millis: Option<i64>) -> Option<Timestamp> {
    millis.and_then(Timestamp::from_millis)
}

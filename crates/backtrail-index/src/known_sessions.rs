//! What the catalogue knows about sessions, at once: it is not brought up to date.

use std::path::PathBuf;

use backtrail::{Store, Timestamp};
use rusqlite::{Connection, OpenFlags};

use crate::catalogue::Paths;

/// A session, as the catalogue knew it last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownSession {
    /// Its id.
    pub id: String,
    /// Its title, or else how it begins; may be empty.
    pub title: String,
    /// When it was last active.
    pub updated_at: Option<Timestamp>,
    /// The directory that it works in.
    pub root: Option<PathBuf>,
}

/// Returns the sessions that the catalogue knows, newest first; none if it cannot be read. It
/// reads one file and writes nothing, so it may be old: a session may be gone, or missing.
pub fn known_sessions(store: &Store) -> Vec<KnownSession> {
    read(store).unwrap_or_default()
}

fn read(store: &Store) -> Option<Vec<KnownSession>> {
    let path = Paths::new(&store.root().join("derived")).database();
    // Nothing in a store is read through a link.
    path.symlink_metadata().ok().filter(|it| it.is_file())?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).ok()?;
    let query = "SELECT s.id, coalesce(s.title, s.begins, ''), s.updated_at, w.root
         FROM sessions s LEFT JOIN workspaces w ON w.key = s.workspace
         WHERE s.error IS NULL ORDER BY s.updated_at DESC, s.id";
    let mut query = db.prepare(query).ok()?;
    let rows = query.query_map([], |row| {
        let updated_at: Option<i64> = row.get(2)?;
        let root: Option<String> = row.get(3)?;
        Ok(KnownSession {
            id: row.get(0)?,
            title: row.get(1)?,
            updated_at: updated_at.and_then(Timestamp::from_millis),
            root: root.map(PathBuf::from),
        })
    });
    rows.ok()?.collect::<rusqlite::Result<_>>().ok()
}

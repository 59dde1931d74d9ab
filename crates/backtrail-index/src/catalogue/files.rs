//! Which files a session changed: from the checkpoints of its turns and runs, and from its calls
//! that edit files. Sessions of other agents often have only the calls.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::snapshot::FileKind;
use backtrail::{Change, Checkpoint, Workspace};
use rusqlite::params;

use super::Catalogue;
use crate::error::Result;

/// The checkpoints that end something that a session did.
pub(super) const ENDS: &str = "('turn-end', 'tool-end', 'run-end', 'interrupted')";

/// Writes which files changed before each new checkpoint of a workspace: an empty text if that
/// cannot be read. Then only the number is known, which the checkpoint has.
pub(super) fn write_changes(db: &Catalogue, key: i64, workspace: &Workspace) -> Result<()> {
    let sql = format!(
        "SELECT id, trail, seq FROM checkpoints WHERE workspace = ?1 AND files IS NULL
         AND changed > 0 AND session IS NOT NULL AND why IN {ENDS}"
    );
    let mut wanted: BTreeMap<String, (u32, i64)> = db.rows(&sql, [key], |row| {
        Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))
    })?;
    if wanted.is_empty() {
        return Ok(());
    }
    let mut later: Option<(Checkpoint, (u32, i64))> = None;
    for checkpoint in workspace.checkpoints_back()? {
        let Ok(checkpoint) = checkpoint else {
            break;
        };
        if let Some((after, place)) = later.take() {
            write_checkpoint(db, key, place, &changed_between(&checkpoint, &after))?;
        }
        if wanted.is_empty() {
            break;
        }
        let place = wanted.remove(&checkpoint.id().to_string());
        later = place.map(|place| (checkpoint, place));
    }
    Ok(())
}

/// Returns the files that differ; `None` if that cannot be read any more.
fn changed_between(before: &Checkpoint, after: &Checkpoint) -> Option<Vec<String>> {
    let is_kept = |it: &Checkpoint| matches!(it.dropped(), Ok(None));
    if !is_kept(before) || !is_kept(after) {
        return None;
    }
    let diff = before.snapshot().ok()?.diff(&after.snapshot().ok()?).ok()?;
    let is_file = |change: &&Change| {
        let states = [&change.before, &change.after].into_iter().flatten();
        states.into_iter().any(|state| state.kind != FileKind::Dir)
    };
    let files = diff.changes().iter().filter(is_file);
    let paths = files.map(|change| change.path.to_string_lossy().into_owned());
    Some(paths.collect())
}

fn write_checkpoint(
    db: &Catalogue,
    key: i64,
    (trail, seq): (u32, i64),
    paths: &Option<Vec<String>>,
) -> Result<()> {
    let paths = paths.as_ref().and_then(|it| serde_json::to_string(it).ok());
    let paths = paths.unwrap_or_default();
    let sql = "UPDATE checkpoints SET files = ?4 WHERE workspace = ?1 AND trail = ?2 AND seq = ?3";
    db.run(sql, params![key, trail, seq, paths])
}

/// Forgets which files changed before a checkpoint and before the next one: its files were
/// dropped, and a rebuild could not tell either.
pub(super) fn forget_dropped(
    db: &Catalogue,
    key: i64,
    checkpoint: &str,
    sessions: &mut BTreeSet<String>,
) -> Result<()> {
    let sql =
        "SELECT trail, seq, session FROM checkpoints WHERE workspace = ?1 AND (trail, seq) >= (
             SELECT trail, seq FROM checkpoints WHERE workspace = ?1 AND id = ?2)
         ORDER BY trail, seq LIMIT 2";
    let places: Vec<(u32, i64, Option<String>)> =
        db.rows(sql, params![key, checkpoint], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    for (trail, seq, session) in places {
        let sql = "UPDATE checkpoints SET files = ''
            WHERE workspace = ?1 AND trail = ?2 AND seq = ?3 AND files IS NOT NULL";
        db.run(sql, params![key, trail, seq])?;
        sessions.extend(session);
    }
    Ok(())
}

/// Writes which files sessions changed, and how many those are.
pub(super) fn write_of_sessions(db: &Catalogue, sessions: &BTreeSet<String>) -> Result<()> {
    for id in sessions {
        let sql = "SELECT key FROM sessions WHERE id = ?1";
        if let Some(key) = db.first(sql, [id], |row| row.get(0))? {
            write_of_session(db, key, id)?;
        }
    }
    Ok(())
}

fn write_of_session(db: &Catalogue, key: i64, id: &str) -> Result<()> {
    let (mut files, unknown) = of_checkpoints(db, id)?;
    let roots = roots(db, key)?;
    let edited: Vec<String> = db.rows(EDITED, [key], |row| row.get(0))?;
    files.extend(edited.iter().map(|path| within(path, &roots)));
    db.run("DELETE FROM files WHERE session = ?1", [key])?;
    for path in &files {
        let sql = "INSERT INTO files (session, path) VALUES (?1, ?2)";
        db.run(sql, params![key, path])?;
    }
    let count = unknown.max(files.len() as u64);
    let sql = "UPDATE sessions SET files_changed = ?2, runs = (
            SELECT count(*) FROM checkpoints WHERE session = ?3 AND why = 'run-start')
        WHERE key = ?1";
    db.run(sql, params![key, count as i64, id])
}

/// The paths that calls of a session edited, except those that failed.
const EDITED: &str = "SELECT DISTINCT e.path FROM trails AS t
    JOIN edits AS e ON e.trail = t.key
    LEFT JOIN tool_calls AS c ON c.trail = e.trail AND c.seq = e.seq AND c.n = e.n
    WHERE t.session = ?1 AND c.failed IS NOT 1";

/// Returns the files that turns and runs of a session changed, and the most of one of which only
/// the number is known.
fn of_checkpoints(db: &Catalogue, id: &str) -> Result<(BTreeSet<String>, u64)> {
    let sql =
        format!("SELECT files, changed FROM checkpoints WHERE session = ?1 AND why IN {ENDS}");
    let rows: Vec<(Option<String>, i64)> =
        db.rows(&sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut files = BTreeSet::new();
    let mut unknown = 0;
    for (paths, changed) in rows {
        match serde_json::from_str::<Vec<String>>(&paths.unwrap_or_default()) {
            Ok(paths) => files.extend(paths),
            Err(_) => unknown = unknown.max(changed.unsigned_abs()),
        }
    }
    Ok((files, unknown))
}

/// Returns where the workspace of a session is and was.
fn roots(db: &Catalogue, key: i64) -> Result<Vec<String>> {
    let sql = "SELECT w.root FROM sessions AS s JOIN workspaces AS w ON w.key = s.workspace
         WHERE s.key = ?1
         UNION ALL SELECT f.root FROM sessions AS s JOIN former_roots AS f
         ON f.workspace = s.workspace WHERE s.key = ?1";
    db.rows(sql, [key], |row| row.get(0))
}

/// Returns a path relative to the workspace, if it is in there.
fn within(path: &str, roots: &[String]) -> String {
    let below = |root: &String| path.strip_prefix(root.as_str())?.strip_prefix('/');
    let path = roots.iter().find_map(below).unwrap_or(path);
    let parts = path.split('/').filter(|part| *part != ".");
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_calls_are_those_of_checkpoints() {
        let roots = ["/home/u/shop".to_owned(), "/old/shop".to_owned()];
        for (path, expected) in [
            ("/home/u/shop/src/a.rs", "src/a.rs"),
            ("/old/shop/src/a.rs", "src/a.rs"),
            ("src/a.rs", "src/a.rs"),
            ("./src/./a.rs", "src/a.rs"),
            ("/home/u/shopping/a.rs", "/home/u/shopping/a.rs"),
            ("/tmp/a.rs", "/tmp/a.rs"),
            ("/home/u/shop", "/home/u/shop"),
        ] {
            assert_eq!(within(path, &roots), expected);
        }
    }
}

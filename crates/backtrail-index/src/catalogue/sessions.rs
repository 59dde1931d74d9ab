//! The catalogue's row of a session.

use std::collections::{BTreeSet, HashMap};

use backtrail::conversation::TitleFinder;
use backtrail::plumbing::LinePart;
use backtrail::{SessionInfo, SessionReader, Store, Timestamp};
use rusqlite::params;

use super::Catalogue;
use super::workspaces::Workspaces;
use crate::error::Result;

/// Counts for a line of history.
#[derive(Debug, Default)]
struct Counts {
    messages: u64,
    turns: u64,
    tool_calls: u64,
    begins: Option<String>,
    title: TitleFinder,
    /// Whether later prompts do not change the title.
    has_title: bool,
}

/// Updates the row of a session from its trails. An unreadable session keeps what is
/// known of it and gets an error.
pub(super) fn refresh(
    db: &Catalogue,
    store: &Store,
    key: i64,
    id: &str,
    workspaces: &mut Workspaces<'_>,
) -> Result<()> {
    let read = |id: &str| -> Result<_> {
        let reader = store.read_session(&id.parse()?)?;
        let info = reader.info()?;
        let counts = count_line(db, &reader)?;
        let title = title(&reader, &info, &counts)?;
        Ok((info, counts, title))
    };
    match read(id) {
        Ok((info, counts, title)) => write(db, key, &info, title, &counts, workspaces),
        Err(crate::Error::Store(error)) => {
            let sql = "UPDATE sessions SET error = ?2 WHERE key = ?1";
            db.run(sql, params![key, full_text(&error)])
        }
        Err(error) => Err(error),
    }
}

/// Returns the title of a session, by the engine's rule. The catalogue knows its prompts; one
/// without any is read.
fn title(reader: &SessionReader, info: &SessionInfo, counts: &Counts) -> Result<Option<String>> {
    let given = info.title.clone().filter(|title| !title.trim().is_empty());
    match given.or_else(|| counts.title.clone().finish()) {
        Some(title) => Ok(Some(title)),
        None => Ok(reader.title()?),
    }
}

/// Formats an error with its causes.
pub(crate) fn full_text(error: &backtrail::Error) -> String {
    let mut text = error.message();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Counts the line of a session, using the rows of the trails it consists of.
fn count_line(db: &Catalogue, reader: &SessionReader) -> Result<Counts> {
    let mut counts = Counts::default();
    for part in reader.line_parts()? {
        if !count_part(db, &part, &mut counts)? {
            // It continues a session that was deleted and is not in the catalogue.
            return count_by_reading(reader);
        }
    }
    Ok(counts)
}

fn count_part(db: &Catalogue, part: &LinePart, counts: &mut Counts) -> Result<bool> {
    let trail = db.first(
        "SELECT t.key FROM trails AS t JOIN sessions AS s ON s.key = t.session
         WHERE s.id = ?1 AND t.number = ?2",
        params![part.session.as_str(), part.trail],
        |row| row.get::<_, i64>(0),
    )?;
    let Some(trail) = trail else {
        return Ok(false);
    };
    let until = i64::try_from(part.until).unwrap_or(i64::MAX);
    let count = |sql: &str| -> Result<u64> {
        let count = db.first(sql, [trail, until], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or(0).unsigned_abs())
    };
    counts.messages += count("SELECT count(*) FROM messages WHERE trail = ?1 AND seq <= ?2")?;
    counts.turns += count(
        "SELECT count(*) FROM messages WHERE trail = ?1 AND seq <= ?2 AND prompt IS NOT NULL",
    )?;
    counts.tool_calls += count("SELECT count(*) FROM tool_calls WHERE trail = ?1 AND seq <= ?2")?;
    find_title(db, trail, until, counts)?;
    Ok(true)
}

/// Looks for the prompt that gives the session its title, and for the first one.
fn find_title(db: &Catalogue, trail: i64, until: i64, counts: &mut Counts) -> Result<()> {
    let mut after = -1;
    while !counts.has_title {
        let found = db.first(
            "SELECT seq, prompt FROM messages WHERE trail = ?1 AND seq <= ?2 AND seq > ?3
             AND prompt IS NOT NULL AND prompt <> '' ORDER BY seq LIMIT 1",
            [trail, until, after],
            |row| Ok((row.get(0)?, row.get::<_, String>(1)?)),
        )?;
        let Some((seq, prompt)) = found else {
            break;
        };
        after = seq;
        counts.has_title = counts.title.add(&prompt);
        counts.begins.get_or_insert_with(|| one_line(&prompt));
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count_by_reading(reader: &SessionReader) -> Result<Counts> {
    let stats = reader.stats()?;
    let mut title = TitleFinder::default();
    let mut begins = None;
    for prompt in reader.prompts()? {
        let prompt = prompt?.text;
        let is_found = title.add(&prompt);
        begins.get_or_insert_with(|| one_line(&prompt));
        if is_found {
            break;
        }
    }
    Ok(Counts {
        title,
        has_title: true,
        messages: stats.messages.total,
        turns: stats.turns,
        tool_calls: stats.tool_calls,
        begins: begins.map(|text| text.chars().take(200).collect()),
    })
}

fn write(
    db: &Catalogue,
    key: i64,
    info: &SessionInfo,
    title: Option<String>,
    counts: &Counts,
    workspaces: &mut Workspaces<'_>,
) -> Result<()> {
    let workspace = match &info.workspace_root {
        Some(root) => Some(workspaces.key(info.workspace_id.as_ref(), root)?),
        None => None,
    };
    let fork = info.forked_from.as_ref();
    let tags = serde_json::to_string(&info.tags).unwrap_or_default();
    let sql = "UPDATE sessions SET error = NULL, title = ?2, begins = ?3, agent = ?4,
        belongs_to = ?5, model = ?6, tags = ?7, pinned = ?8, workspace = ?9, created_at = ?10,
        updated_at = ?11, last_seq = ?12, forked_from = ?13, forked_at = ?14, branch = ?15,
        spawned_by = ?16, original_id = ?17, messages = ?18, turns = ?19, tool_calls = ?20,
        times_from_file = ?21,
        damaged = (SELECT coalesce(sum(damaged + behind), 0) FROM trails WHERE session = ?1)
        WHERE key = ?1";
    let row = params![
        key,
        title,
        info.begins.as_ref().or(counts.begins.as_ref()),
        info.agent,
        info.belongs_to,
        info.model,
        tags,
        info.pinned,
        workspace,
        info.created_at.map(Timestamp::as_millis),
        info.updated_at.map(Timestamp::as_millis),
        info.last_seq as i64,
        fork.map(|fork| fork.parent_session_id.to_string()),
        fork.and_then(|fork| fork.seq).map(|seq| seq as i64),
        fork.and_then(|fork| fork.branch_name.clone()),
        info.spawned_by.as_ref().map(|by| by.session_id.to_string()),
        info.original_id,
        counts.messages as i64,
        counts.turns as i64,
        counts.tool_calls as i64,
        info.times_from_file,
    ];
    db.run(sql, row)
}

/// Sets the root of each session's family, after sessions were added or removed.
pub(super) fn write_families(db: &Catalogue) -> Result<()> {
    let sql = "SELECT id, coalesce(forked_from, spawned_by), family FROM sessions";
    let sessions: HashMap<String, (Option<String>, String)> =
        db.rows(sql, [], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    for (id, (_, known)) in &sessions {
        let root = root_of(id, &sessions);
        if root != known {
            let sql = "UPDATE sessions SET family = ?2 WHERE id = ?1";
            db.run(sql, [id.as_str(), root])?;
        }
    }
    Ok(())
}

/// Returns the session that a family began with, which may be gone.
fn root_of<'a>(id: &'a str, sessions: &'a HashMap<String, (Option<String>, String)>) -> &'a str {
    let mut root = id;
    let mut passed = BTreeSet::new();
    while let Some((Some(parent), _)) = sessions.get(root)
        && passed.insert(root)
    {
        root = parent;
    }
    root
}

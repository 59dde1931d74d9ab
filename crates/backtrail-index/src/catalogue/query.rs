//! Queries to the catalogue.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use backtrail::SessionId;
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};

use super::ledger::{SUMS, read_sum};
use super::{Catalogue, moment};
use crate::error::Result;
use crate::filter::Filter;
use crate::projects::Project;
use crate::rows::{Family, Field, SessionRow, Spending, UnpricedModel};
use crate::search::FilePattern;

/// The prompts before later records are not counted while somebody waits.
const MOST_COUNTED: u64 = 50_000;

/// A condition with its values.
#[derive(Debug, Clone, Default)]
pub(super) struct Where {
    sql: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Where {
    pub(super) fn add(&mut self, sql: impl Into<String>, values: impl IntoIterator<Item = Value>) {
        self.sql.push(sql.into());
        self.values.extend(values);
    }

    /// Adds a condition that any of several values satisfies.
    pub(super) fn any(&mut self, sql: &str, values: Vec<String>) {
        if values.is_empty() {
            return;
        }
        let each = vec![sql; values.len()].join(" OR ");
        // The condition may use a value twice.
        let times = sql.matches('?').count();
        let values = values
            .into_iter()
            .flat_map(|value| vec![Value::Text(value); times]);
        self.add(format!("({each})"), values);
    }

    /// Adds the condition that a call was made in the time of a filter.
    pub(super) fn within(&mut self, filter: &Filter) {
        if let Some(since) = filter.since {
            self.add("t.at >= ?", [Value::Integer(since.as_millis())]);
        }
        if let Some(until) = filter.until {
            self.add("t.at < ?", [Value::Integer(until.as_millis())]);
        }
    }

    pub(super) fn sql(&self) -> String {
        match self.sql.as_slice() {
            [] => String::new(),
            all => format!(" WHERE {}", all.join(" AND ")),
        }
    }
}

/// The condition that a session matches a filter, except for times and models.
pub(super) fn of_sessions(filter: &Filter) -> Where {
    let mut fits = Where::default();
    if let Some(id) = &filter.session {
        fits.add("s.id = ?", [Value::Text(id.to_string())]);
    }
    if let Some(id) = &filter.family_of {
        let sql = "s.family = (SELECT family FROM sessions WHERE id = ?)";
        fits.add(sql, [Value::Text(id.to_string())]);
    }
    let lower = |texts: &[String]| texts.iter().map(|text| text.to_lowercase()).collect();
    fits.any(
        "lower(coalesce(s.agent, s.belongs_to)) = ?",
        lower(&filter.agents),
    );
    fits.any(
        "(lower(w.project) = ? OR lower(w.remote) = ? OR lower(w.remote) LIKE '%/' || ?)",
        lower(&filter.projects),
    );
    fits.any(
        "EXISTS (SELECT 1 FROM json_each(s.tags) WHERE lower(value) = ?)",
        lower(&filter.tags),
    );
    if let Some(workspace) = &filter.workspace {
        let root = Value::Text(workspace.root.to_string_lossy().into_owned());
        match &workspace.id {
            // The workspace of an unreadable session is unknown, so it is never hidden.
            Some(id) => fits.add(
                // A directory that was moved and not written to since is still known by
                // its old name.
                "((s.error IS NOT NULL OR s.damaged > 0) AND w.key IS NULL OR w.id = ? OR (w.id IS NULL
                  AND (w.root = ? OR w.root = (SELECT root FROM workspaces WHERE id = ?))))",
                [
                    Value::Text(id.to_string()),
                    root,
                    Value::Text(id.to_string()),
                ],
            ),
            None => fits.add(
                "((s.error IS NOT NULL OR s.damaged > 0) AND w.key IS NULL OR w.root = ?)",
                [root],
            ),
        }
    }
    fits
}

/// The workspace `w` of a session `s`. A session that names a directory and no workspace
/// belongs to the workspace that was there when it began.
const MOVED: &str = "LEFT JOIN workspaces AS n ON n.key = s.workspace
    LEFT JOIN workspaces AS w ON w.key = coalesce((
        SELECT f.workspace FROM former_roots AS f WHERE n.id IS NULL AND f.root = n.root
        AND (s.created_at IS NULL OR s.created_at < f.until)
        AND (s.created_at IS NULL OR f.since IS NULL OR s.created_at >= f.since)
        ORDER BY f.until LIMIT 1), n.key)";

/// The same if no workspace was ever moved, which takes a tenth of the time.
const IN_PLACE: &str = "LEFT JOIN workspaces AS w ON w.key = s.workspace";

/// A pattern that finds a text anywhere.
pub(super) fn anywhere(text: &str) -> String {
    let text = text.to_lowercase();
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%");
    format!("%{}%", escaped.replace('_', "\\_"))
}

impl Catalogue {
    /// Returns the matching sessions, pinned ones first, then the newest.
    pub(crate) fn sessions(&self, filter: &Filter) -> Result<Vec<SessionRow>> {
        let workspace = self.of_workspace()?;
        let mut fits = of_sessions(filter);
        if let Some(since) = filter.since {
            fits.add("s.updated_at >= ?", [Value::Integer(since.as_millis())]);
        }
        if let Some(until) = filter.until {
            fits.add("s.created_at < ?", [Value::Integer(until.as_millis())]);
        }
        fits.any(
            "(lower(s.model) LIKE ? ESCAPE '\\' OR EXISTS (SELECT 1 FROM totals AS t
              WHERE t.session = s.key AND lower(t.model) LIKE ? ESCAPE '\\'))",
            filter.models.iter().map(|model| anywhere(model)).collect(),
        );
        let spent = self.spent_by_session(filter.session.as_ref())?;
        let sql = format!(
            "SELECT s.key, s.id, s.error, s.title, s.begins, s.agent, s.belongs_to, s.model, s.tags,
             s.pinned, w.root, w.bytes, w.id, w.project, w.remote, s.created_at, s.updated_at,
             s.family, s.forked_from, s.forked_at, s.branch, s.spawned_by, s.messages, s.turns,
             s.tool_calls, s.files_changed, s.damaged, s.last_seq, s.original_id,
             s.times_from_file, s.runs
             FROM sessions AS s {workspace}{}
             ORDER BY s.pinned DESC, s.updated_at DESC, s.id",
            fits.sql()
        );
        let rows: Vec<_> = self.rows(&sql, params_from_iter(fits.values), |row| {
            read_session(row, &spent)
        })?;
        // An invalid id was not written by Backtrail.
        Ok(rows.into_iter().flatten().collect())
    }

    /// Returns the join that finds the workspace of a session.
    pub(super) fn of_workspace(&self) -> Result<&'static str> {
        let moved = self.first("SELECT 1 FROM former_roots LIMIT 1", [], |_| Ok(()))?;
        Ok(moved.map_or(IN_PLACE, |()| MOVED))
    }

    /// Returns the spending of each session, or of one.
    fn spent_by_session(&self, only: Option<&SessionId>) -> Result<HashMap<i64, Spending>> {
        let of_one = match only {
            Some(_) => " WHERE session = (SELECT key FROM sessions WHERE id = ?)",
            None => "",
        };
        let sql = format!("SELECT session, {SUMS} FROM totals{of_one}");
        let id = only.iter().map(|id| id.as_str());
        let mut spent: HashMap<i64, Spending> = HashMap::new();
        let () = self.rows(&sql, params_from_iter(id), |row| {
            spent
                .entry(row.get(0)?)
                .or_default()
                .add(&read_sum(row, 1)?);
            Ok(())
        })?;
        Ok(spent)
    }

    /// Returns the ids of the matching sessions, ignoring times and models; `None` for
    /// all.
    pub(crate) fn fitting(&self, filter: &Filter) -> Result<Option<HashSet<String>>> {
        let workspace = self.of_workspace()?;
        let fits = of_sessions(filter);
        if fits.sql.is_empty() {
            return Ok(None);
        }
        let sql = format!("SELECT s.id FROM sessions AS s {workspace}{}", fits.sql());
        let ids = self.rows(&sql, params_from_iter(fits.values), |row| row.get(0))?;
        Ok(Some(ids))
    }

    /// Returns the models of the calls that match a filter and have no price, the one with the
    /// most tokens first.
    pub(crate) fn unpriced(&self, filter: &Filter) -> Result<Vec<UnpricedModel>> {
        let workspace = self.of_workspace()?;
        let mut fits = of_sessions(filter);
        fits.any(
            "lower(t.model) LIKE ? ESCAPE '\\'",
            filter.models.iter().map(|model| anywhere(model)).collect(),
        );
        fits.within(filter);
        // The sums have no time.
        let calls = match filter.since.or(filter.until) {
            Some(_) => UNPRICED_CALLS.to_owned(),
            None => format!("{UNPRICED_SUMS} UNION ALL {UNPRICED_CALLS} {OF_MIXED_SUMS}"),
        };
        let sql = format!(
            "SELECT t.model, sum(t.calls), sum(t.tokens) FROM ({calls}) AS t
             JOIN sessions AS s ON s.key = t.session {workspace}{}
             GROUP BY t.model ORDER BY 3 DESC, 1",
            fits.sql()
        );
        self.rows(&sql, params_from_iter(&fits.values), |row| {
            Ok(UnpricedModel {
                model: row.get(0)?,
                calls: row.get::<_, i64>(1)?.unsigned_abs(),
                // The sum may be over what SQLite's numbers can count.
                tokens: row.get::<_, f64>(2)? as u64,
            })
        })
    }

    /// Returns the sessions that changed a file, by their calls or by their checkpoints.
    pub(crate) fn sessions_that_changed(&self, file: &FilePattern) -> Result<HashSet<SessionId>> {
        let sql = "SELECT s.id, f.path FROM files AS f JOIN sessions AS s ON s.key = f.session";
        let all: Vec<(String, String)> =
            self.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let changed = all.into_iter().filter(|(_, path)| file.matches(path));
        Ok(changed.filter_map(|(id, _)| id.parse().ok()).collect())
    }

    /// Returns the tool that a call of a session used.
    pub(crate) fn tool_of(&self, session: &SessionId, call: &str) -> Option<String> {
        let found = self.first(
            "SELECT c.name FROM sessions AS s JOIN trails AS t ON t.session = s.key
             JOIN tool_calls AS c ON c.trail = t.key WHERE s.id = ?1 AND c.id = ?2 LIMIT 1",
            [session.as_str(), call],
            |row| row.get(0),
        );
        found.ok().flatten()
    }

    /// Returns the number of the turn that contains a record, on the line of its session.
    pub(crate) fn turn_of(
        &self,
        parts: &[backtrail::plumbing::LinePart],
        session: &SessionId,
        trail: u32,
        seq: u64,
    ) -> Result<Option<u64>> {
        let mut turns = 0;
        for part in parts {
            let is_here = part.session == *session && part.trail == trail;
            if is_here && seq > part.until {
                return Ok(None);
            }
            let until = if is_here { seq } else { part.until };
            let until = i64::try_from(until).unwrap_or(i64::MAX);
            let count = self.first(
                "SELECT count(*) FROM messages AS m JOIN trails AS t ON t.key = m.trail
                 JOIN sessions AS s ON s.key = t.session
                 WHERE s.id = ?1 AND t.number = ?2 AND m.seq <= ?3 AND m.prompt IS NOT NULL",
                params![part.session.as_str(), part.trail, until],
                |row| row.get::<_, i64>(0),
            )?;
            turns += count.unwrap_or(0).unsigned_abs();
            if is_here {
                return Ok(Some(turns).filter(|turns| *turns > 0));
            }
        }
        Ok(None)
    }

    /// Returns how many prompts come before record `seq` on the line of a session, and the record
    /// up to which that is known; `None` if it would take long to count them.
    pub(crate) fn turns_before(
        &self,
        parts: &[backtrail::plumbing::LinePart],
        seq: u64,
    ) -> Result<Option<(u64, u64)>> {
        if seq > MOST_COUNTED {
            return Ok(None);
        }
        let (mut turns, mut known) = (0, 0);
        for part in parts {
            let until = part.until.min(seq.saturating_sub(1));
            let until = i64::try_from(until).unwrap_or(i64::MAX);
            let found = self.first(
                "SELECT count(m.prompt), max(m.seq) FROM sessions AS s
                 JOIN trails AS t ON t.session = s.key JOIN messages AS m ON m.trail = t.key
                 WHERE s.id = ?1 AND t.number = ?2 AND m.seq <= ?3",
                params![part.session.as_str(), part.trail, until],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)),
            )?;
            let (prompts, last) = found.unwrap_or_default();
            turns += prompts.unsigned_abs();
            known = known.max(last.unwrap_or(0).unsigned_abs());
            if part.until >= seq {
                break;
            }
        }
        Ok(Some((turns, known)))
    }

    /// Returns the hashes that the short ids of sessions come from.
    pub(crate) fn short_hashes(&self) -> Result<Vec<u64>> {
        let sql = "SELECT short FROM sessions ORDER BY short";
        self.rows(sql, [], |row| Ok(row.get::<_, i64>(0)?.cast_unsigned()))
    }

    /// Returns the models with the most calls of sessions.
    pub(crate) fn main_models(&self, sessions: &[&SessionId]) -> Result<HashMap<String, String>> {
        let ids = serde_json::to_string(sessions).unwrap_or_default();
        // Of several rows of a session the last one stays.
        let sql = "SELECT s.id, t.model FROM json_each(?1) AS asked
             JOIN sessions AS s ON s.id = asked.value JOIN totals AS t ON t.session = s.key
             WHERE t.model <> '' ORDER BY t.calls, t.model DESC";
        self.rows(sql, params![ids], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Returns how many different files sessions changed: those that are known by name, or the
    /// most of one session if it is more.
    pub(crate) fn files_changed(&self, sessions: &[&SessionId]) -> Result<u64> {
        let ids = serde_json::to_string(sessions).unwrap_or_default();
        let sql = "WITH asked AS (SELECT key, files_changed FROM sessions
                 WHERE id IN (SELECT value FROM json_each(?1)))
             SELECT max((SELECT count(DISTINCT path) FROM files
                 WHERE session IN (SELECT key FROM asked)),
             (SELECT coalesce(max(files_changed), 0) FROM asked))";
        let count = self.first(sql, [ids], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    /// Returns all values of a field, to suggest one for a misspelled value.
    pub(crate) fn values(&self, what: Field) -> Result<Vec<String>> {
        let sql = match what {
            Field::Agents => {
                "SELECT DISTINCT coalesce(agent, belongs_to) FROM sessions
                 WHERE coalesce(agent, belongs_to) IS NOT NULL ORDER BY 1"
            }
            Field::Projects => {
                "SELECT DISTINCT project FROM workspaces
                 WHERE key IN (SELECT workspace FROM sessions) ORDER BY 1"
            }
            Field::Models => "SELECT DISTINCT model FROM totals WHERE model <> '' ORDER BY 1",
            Field::Tags => {
                "SELECT DISTINCT value FROM sessions, json_each(sessions.tags) ORDER BY 1"
            }
            Field::Sessions => "SELECT id FROM sessions ORDER BY id",
        };
        self.rows(sql, [], |row| row.get(0))
    }
}

/// Single calls without a price.
const UNPRICED_CALLS: &str =
    "SELECT l.session, l.at, coalesce(l.model, c.model) AS model, 1 AS calls,
    0.0 + l.input + l.output + l.cache_write + l.cache_read AS tokens
    FROM ledger AS l JOIN sessions AS c ON c.key = l.session
    WHERE l.counts AND l.measured AND l.cost IS NULL";

/// The sums of sessions and models of which no call has a price: they take a fraction of the time.
const UNPRICED_SUMS: &str = "SELECT session, NULL AS at, nullif(model, '') AS model,
    unpriced AS calls, 0.0 + input + output + cache_write + cache_read AS tokens
    FROM totals WHERE unpriced > 0 AND unpriced = calls";

/// Limits [`UNPRICED_CALLS`] to the sums that some calls with a price are in, too.
const OF_MIXED_SUMS: &str = "AND l.session IN (SELECT session FROM totals
    WHERE unpriced > 0 AND unpriced < calls) AND EXISTS (SELECT 1 FROM totals AS s WHERE s.session = l.session
    AND s.model = coalesce(l.model, c.model, '') AND s.unpriced > 0 AND s.unpriced < s.calls)";

fn read_session(
    row: &Row<'_>,
    spent: &HashMap<i64, Spending>,
) -> rusqlite::Result<Option<SessionRow>> {
    let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let Ok(id) = row.get_ref(1)?.as_str()?.parse() else {
        return Ok(None);
    };
    let workspace = match row.get::<_, Option<Vec<u8>>>(11)? {
        Some(bytes) => Some(OsString::from_vec(bytes).into()),
        None => row.get::<_, Option<String>>(10)?.map(PathBuf::from),
    };
    let project = row.get::<_, Option<String>>(13)?;
    let forked_from = row.get::<_, Option<String>>(18)?;
    Ok(Some(SessionRow {
        id,
        error: row.get(2)?,
        title: row.get(3)?,
        begins: row.get(4)?,
        agent: row.get(5)?,
        belongs_to: row.get(6)?,
        model: row.get(7)?,
        tags: serde_json::from_str(row.get_ref(8)?.as_str()?).unwrap_or_default(),
        pinned: row.get(9)?,
        workspace,
        workspace_id: row
            .get::<_, Option<String>>(12)?
            .and_then(|id| id.parse().ok()),
        project: match project {
            Some(name) => Some(Project::named(name, row.get(14)?)),
            None => None,
        },
        created_at: moment(row.get(15)?),
        updated_at: moment(row.get(16)?),
        family: Family {
            root: row.get(17)?,
            forked_from: match forked_from {
                Some(id) => Some((id, row.get::<_, Option<i64>>(19)?.map(i64::unsigned_abs))),
                None => None,
            },
            branch: row.get(20)?,
            spawned_by: row.get(21)?,
        },
        messages: count(22)?,
        turns: count(23)?,
        tool_calls: count(24)?,
        files_changed: count(25)?,
        damaged: count(26)?,
        last_seq: count(27)?,
        original_id: row.get(28)?,
        times_from_file: row.get(29)?,
        runs: count(30)?,
        spending: spent.get(&row.get(0)?).copied().unwrap_or_default(),
    }))
}

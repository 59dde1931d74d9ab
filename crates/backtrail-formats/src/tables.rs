//! Sessions in the tables of a database.
//!
//! A format names the tables ([`Tables`]); everything else is done here. A session is written
//! out as one line of JSON for each row: `{"table":"message","row":{"id":"msg_1",…}}`, with all
//! columns in the table's order. Numbers are numbers (a REAL has a point or an exponent), NULL
//! is `null`, TEXT is a string and a BLOB is `{"$blob":"<Base64>"}`. A TEXT that is itself a
//! JSON object or array on one line is written as it is, so that it needs no second parsing;
//! one that is not UTF-8 is `{"$text":"<Base64>"}`. So each line gives back its row exactly. A
//! row that cannot be read is `{"table":"message","rowid":7,"damaged":"why"}`.
//! The row of the session comes last: it changes with every message, and what was written before
//! it stays the same.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;

use crate::container::{ContainedSession, Container, Contents, FileStamp, Spool};
use crate::error::{Error, Result};
use crate::sqlite::{Cursor, Row, Snapshot, Table, Value, retry};

/// Which rows of a database make up a session.
#[derive(Debug)]
pub struct Tables {
    /// The table with one row for each session.
    pub sessions: Sessions,
    /// The tables whose rows belong to a session, in the order in which they are written. A
    /// database must have the first; the others may be missing.
    pub rows: &'static [Rows],
    /// Columns of the first of these by which the agent's databases are told from those of
    /// others that have tables of the same names.
    pub columns: &'static [&'static str],
}

/// The table with one row for each session.
#[derive(Debug)]
pub struct Sessions {
    /// The table's name.
    pub table: &'static str,
    /// The column with the session's id.
    pub id: &'static str,
    /// The column with the id of the session that started it.
    pub parent: Option<&'static str>,
}

/// A table whose rows belong to a session.
#[derive(Debug)]
pub struct Rows {
    /// The table's name.
    pub table: &'static str,
    /// The column with the session's id.
    pub session: &'static str,
    /// The columns by which rows are sorted; by rowid if there are none.
    pub order: &'static [&'static str],
    /// Rows of another table that follow each row.
    pub below: Option<Below>,
}

/// A table whose rows belong to those of another one.
#[derive(Debug)]
pub struct Below {
    /// The table's name.
    pub table: &'static str,
    /// The column with the `id` of the row above.
    pub column: &'static str,
    /// The column with the session's id, if it has one: rows without a row above them are then
    /// written after all others.
    pub session: Option<&'static str>,
    /// The columns by which rows are sorted; by rowid if there are none.
    pub order: &'static [&'static str],
}

impl Tables {
    /// Returns whether a database has these tables.
    pub(crate) fn are_in(&self, snapshot: &Snapshot) -> bool {
        let has = |table: &str, column: &str| {
            let table = snapshot.table(table);
            table.is_some_and(|table| table.column(column).is_some())
        };
        has(self.sessions.table, self.sessions.id)
            && self.rows.first().is_some_and(|rows| {
                let mut columns = [rows.session]
                    .into_iter()
                    .chain(self.columns.iter().copied());
                columns.all(|column| has(rows.table, column))
            })
    }
}

/// A database with sessions in it.
pub(crate) struct Database {
    path: PathBuf,
    tables: &'static Tables,
    view: Mutex<Arc<View>>,
}

/// Opens a database. `None` if it does not have the tables.
pub(crate) fn open_database(
    path: &Path,
    tables: &'static Tables,
) -> Result<Option<Box<dyn Container>>> {
    let database = Database::open(path, tables)?;
    Ok(database.map(|database| Box::new(database) as Box<dyn Container>))
}

/// Returns the path under which a session in a database is imported, by its id there.
pub fn contained_file(database: &Path, session: &str) -> PathBuf {
    let name = session.replace('%', "%25").replace('/', "%2F");
    database.join(format!("{name}.jsonl"))
}

/// The database as of one moment, and where its sessions are.
struct View {
    snapshot: Snapshot,
    index: OnceLock<Index>,
}

impl Database {
    /// Opens a database. `None` if it does not have the tables.
    pub(crate) fn open(path: &Path, tables: &'static Tables) -> Result<Option<Self>> {
        let snapshot = Snapshot::open(path)?;
        Ok(tables.are_in(&snapshot).then(|| Self {
            path: path.to_owned(),
            tables,
            view: Mutex::new(Arc::new(View::new(snapshot))),
        }))
    }

    /// Reads something as of one moment. If the database changes too much meanwhile, it is read
    /// again.
    fn read<T>(&self, mut read: impl FnMut(&View) -> Result<T>) -> Result<T> {
        retry(&self.path, || {
            let view = Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner));
            let result = read(&view);
            if view.snapshot.is_valid() {
                return result.map(Some);
            }
            let newer = Arc::new(View::new(Snapshot::open(&self.path)?));
            let mut current = self.view.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have opened it again already.
            if Arc::ptr_eq(&current, &view) {
                *current = newer;
            }
            Ok(None)
        })
    }

    fn session_id(session: &ContainedSession) -> Option<String> {
        let name = session.path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        Some(name.replace("%2F", "/").replace("%25", "%"))
    }
}

impl Container for Database {
    fn contents(&self) -> Result<Contents> {
        self.read(|view| {
            let index = view.index(self.tables)?;
            let session = |(id, at): (&String, &usize)| {
                let entry = &index.entries[*at];
                ContainedSession {
                    path: contained_file(&self.path, id),
                    stamp: entry.stamp(),
                    is_sub_agent: entry.has_parent,
                }
            };
            Ok(Contents {
                sessions: index.sessions.iter().map(session).collect(),
                others: index.others.clone(),
                damaged: index.damaged,
            })
        })
    }

    fn write(&self, session: &ContainedSession, out: &mut Spool) -> Result<bool> {
        let Some(id) = Self::session_id(session) else {
            return Ok(false);
        };
        self.read(|view| {
            out.restart()?;
            out.promise_json_lines();
            view.write(self.tables, &id, out)
        })
    }
}

/// Where the sessions of a database are.
#[derive(Debug, Default)]
struct Index {
    entries: Vec<Entry>,
    /// The positions of the entries, by the sessions' ids.
    sessions: BTreeMap<String, usize>,
    others: BTreeMap<String, u64>,
    damaged: u64,
}

/// Where a session is.
#[derive(Debug, Default)]
struct Entry {
    /// Its row.
    rowid: i64,
    has_parent: bool,
    /// Its rows in each of the tables.
    rows: Vec<Vec<i64>>,
    /// The rows below those, with a hash of the id of the row above.
    below: Vec<Vec<(u64, i64)>>,
    bytes: u64,
    hash: u64,
}

impl Entry {
    fn new(rowid: i64, tables: usize) -> Self {
        Self {
            rowid,
            rows: vec![Vec::new(); tables],
            below: vec![Vec::new(); tables],
            ..Self::default()
        }
    }

    /// Adds a row to the stamp.
    fn add(&mut self, row: &Row<'_>) {
        let mut hasher = DefaultHasher::new();
        (row.rowid, row.len).hash(&mut hasher);
        row.each_part(|part| hasher.write(part));
        // The order of rows in the file does not matter.
        self.hash = self.hash.wrapping_add(hasher.finish());
        self.bytes += row.len;
    }

    fn stamp(&self) -> FileStamp {
        FileStamp {
            len: self.bytes,
            modified_ns: 0,
            inode: self.hash,
        }
    }
}

impl View {
    fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            index: OnceLock::new(),
        }
    }

    /// Finds the sessions: in one pass through the tables.
    fn index(&self, tables: &Tables) -> Result<&Index> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = Indexer::new(&self.snapshot, tables).run()?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Writes the rows of a session.
    fn write(&self, tables: &Tables, id: &str, out: &mut Spool) -> Result<bool> {
        let index = self.index(tables)?;
        let Some(entry) = index.sessions.get(id).map(|at| &index.entries[*at]) else {
            return Ok(false);
        };
        let out = &mut RowWriter::new(out);
        for ((rows, rowids), below) in tables.rows.iter().zip(&entry.rows).zip(&entry.below) {
            let Some(table) = self.snapshot.table(rows.table) else {
                continue;
            };
            let mut cursor = self.snapshot.cursor(table);
            let mut below = self.rows_below(rows, below);
            for rowid in sorted(&mut cursor, table, rows.order, rowids) {
                if let Some(row) = out.write(&mut cursor, table, rowid)?
                    && let Some(below) = &mut below
                {
                    below.write(table, &row, out)?;
                }
            }
            if let Some(below) = &mut below {
                below.write_rest(out)?;
            }
        }
        if let Some(table) = self.snapshot.table(tables.sessions.table) {
            out.write(&mut self.snapshot.cursor(table), table, entry.rowid)?;
        }
        Ok(true)
    }

    fn rows_below(&self, rows: &Rows, below: &[(u64, i64)]) -> Option<RowsBelow<'_>> {
        let definition = rows.below.as_ref()?;
        let table = self.snapshot.table(definition.table)?;
        let mut rowids: HashMap<u64, Vec<i64>> = HashMap::new();
        for (above, rowid) in below {
            rowids.entry(*above).or_default().push(*rowid);
        }
        Some(RowsBelow {
            table,
            order: definition.order,
            cursor: self.snapshot.cursor(table),
            rowids,
        })
    }
}

/// The rows that follow those of another table.
struct RowsBelow<'s> {
    table: &'s Table,
    order: &'static [&'static str],
    cursor: Cursor<'s>,
    rowids: HashMap<u64, Vec<i64>>,
}

impl RowsBelow<'_> {
    /// Writes the rows whose row above is missing.
    fn write_rest(&mut self, out: &mut RowWriter<'_>) -> Result<()> {
        let mut rest: Vec<i64> = self.rowids.drain().flat_map(|(_, rowids)| rowids).collect();
        rest.sort_unstable();
        self.write_all(&rest, out)
    }

    fn write(&mut self, above: &Table, row: &Row<'_>, out: &mut RowWriter<'_>) -> Result<()> {
        let id = id_hash(row, above.column("id"))?;
        let rowids = id
            .and_then(|id| self.rowids.remove(&id))
            .unwrap_or_default();
        self.write_all(&rowids, out)
    }

    fn write_all(&mut self, rowids: &[i64], out: &mut RowWriter<'_>) -> Result<()> {
        for rowid in sorted(&mut self.cursor, self.table, self.order, rowids) {
            out.write(&mut self.cursor, self.table, rowid)?;
        }
        Ok(())
    }
}

/// Builds an index.
struct Indexer<'s> {
    snapshot: &'s Snapshot,
    tables: &'s Tables,
    index: Index,
    /// The positions of the entries, by the hashes of their ids.
    sessions: HashMap<u64, usize>,
}

impl<'s> Indexer<'s> {
    fn new(snapshot: &'s Snapshot, tables: &'s Tables) -> Self {
        Self {
            snapshot,
            tables,
            index: Index::default(),
            sessions: HashMap::new(),
        }
    }

    fn run(mut self) -> Result<Index> {
        self.add_sessions()?;
        for (at, rows) in self.tables.rows.iter().enumerate() {
            let above = self.add_rows(at, rows)?;
            if let Some(below) = &rows.below {
                self.add_below(at, below, &above)?;
            }
        }
        Ok(self.index)
    }

    fn add_sessions(&mut self) -> Result<()> {
        let definition = &self.tables.sessions;
        let tables = self.tables.rows.len();
        let Some(table) = self.snapshot.table(definition.table) else {
            return Ok(());
        };
        let id = table.column(definition.id);
        let parent = definition.parent.and_then(|parent| table.column(parent));
        self.scan(table, |this, row| {
            let id = column(row, id)?;
            let Some(id) = id.text().filter(|id| !id.is_empty()) else {
                this.count("sessions without an id");
                return Ok(());
            };
            let mut entry = Entry::new(row.rowid, tables);
            let parent = column(row, parent)?;
            entry.has_parent = parent.text().is_some_and(|parent| !parent.is_empty());
            entry.add(row);
            let at = this.index.entries.len();
            let at = *this.index.sessions.entry(id.to_owned()).or_insert(at);
            this.sessions.insert(hash_value(id), at);
            if at == this.index.entries.len() {
                this.index.entries.push(entry);
            }
            Ok(())
        })
    }

    /// Adds the rows of a table. Returns the sessions of all rows that others may be below of.
    fn add_rows(&mut self, at: usize, rows: &'static Rows) -> Result<HashMap<u64, u64>> {
        let mut above = HashMap::new();
        let Some(table) = self.snapshot.table(rows.table) else {
            return Ok(above);
        };
        let (session, id) = (table.column(rows.session), table.column("id"));
        self.scan(table, |this, row| {
            let session = id_hash(row, session)?;
            if let Some(session) = session
                && let Some(entry) = this.entry(session)
            {
                entry.add(row);
                entry.rows[at].push(row.rowid);
                if rows.below.is_some()
                    && let Some(id) = id_hash(row, id)?
                {
                    above.insert(id, session);
                }
            } else {
                this.count(&format!("{} rows without a session", rows.table));
            }
            Ok(())
        })?;
        Ok(above)
    }

    fn add_below(
        &mut self,
        at: usize,
        below: &'static Below,
        above: &HashMap<u64, u64>,
    ) -> Result<()> {
        let Some(table) = self.snapshot.table(below.table) else {
            return Ok(());
        };
        let column = table.column(below.column);
        let session_column = below.session.and_then(|session| table.column(session));
        self.scan(table, |this, row| {
            let id = id_hash(row, column)?;
            let mut session = id.and_then(|id| above.get(&id).copied());
            if session.is_none() {
                session = id_hash(row, session_column)?;
            }
            if let Some(session) = session
                && let Some(entry) = this.entry(session)
            {
                let id = id.unwrap_or_default();
                entry.add(row);
                entry.below[at].push((id, row.rowid));
            } else {
                this.count(&format!("{} rows without a session", below.table));
            }
            Ok(())
        })
    }

    /// Passes each row of a table on.
    fn scan(
        &mut self,
        table: &'s Table,
        mut each: impl FnMut(&mut Self, &Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = self.snapshot.cursor(table);
        let mut next = cursor.rewind().map(|()| None);
        loop {
            match next {
                Ok(Some(row)) => {
                    if each(self, &row).is_err() {
                        self.index.damaged += 1;
                    }
                }
                Ok(None) => {}
                Err(_) => self.index.damaged += 1,
            }
            next = match cursor.next() {
                Ok(None) => return Ok(()),
                next => next,
            };
        }
    }

    fn entry(&mut self, session: u64) -> Option<&mut Entry> {
        let at = self.sessions.get(&session)?;
        self.index.entries.get_mut(*at)
    }

    fn count(&mut self, what: &str) {
        *self.index.others.entry(what.to_owned()).or_default() += 1;
    }
}

/// Returns the value of a column; NULL if the table has none.
fn column<'r>(row: &'r Row<'_>, column: Option<usize>) -> Result<Value<'r>> {
    match column {
        Some(column) => row.value(column),
        None => Ok(Value::Null),
    }
}

/// Returns a hash of the id in a column. `None` if there is no id.
fn id_hash(row: &Row<'_>, at: Option<usize>) -> Result<Option<u64>> {
    Ok(match column(row, at)? {
        Value::Integer(number) => Some(hash_value(&number.to_string())),
        value => value.text().map(hash_value),
    })
}

fn hash_value(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// Sorts rows by columns, and then by rowid. Those that cannot be read come first.
fn sorted(cursor: &mut Cursor<'_>, table: &Table, order: &[&str], rowids: &[i64]) -> Vec<i64> {
    let mut rowids = rowids.to_vec();
    rowids.sort_unstable();
    let columns: Vec<usize> = order.iter().filter_map(|name| table.column(name)).collect();
    if columns.is_empty() || rowids.len() < 2 {
        return rowids;
    }
    let mut keys = |rowid: i64| -> Option<Vec<Value<'static>>> {
        let row = cursor.find(rowid).ok()??;
        let values = columns
            .iter()
            .map(|column| row.value(*column).map(Value::into_owned));
        values.collect::<Result<_>>().ok()
    };
    let mut keyed: Vec<_> = rowids
        .into_iter()
        .map(|rowid| (keys(rowid), rowid))
        .collect();
    keyed.sort_by(|(a, a_rowid), (b, b_rowid)| {
        let mut keys = a.iter().flatten().zip(b.iter().flatten());
        let unequal = keys.find_map(|(a, b)| Some(compare(a, b)).filter(|order| order.is_ne()));
        let readable = a.is_some().cmp(&b.is_some());
        readable.then(unequal.unwrap_or_else(|| a_rowid.cmp(b_rowid)))
    });
    keyed.into_iter().map(|(_, rowid)| rowid).collect()
}

/// Compares two values as SQLite does.
fn compare(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    let class = |value: &Value<'_>| match value {
        Value::Null => 0,
        Value::Integer(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    };
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Integer(a), Value::Real(b)) => (*a as f64).total_cmp(b),
        (Value::Real(a), Value::Integer(b)) => a.total_cmp(&(*b as f64)),
        (Value::Real(a), Value::Real(b)) => a.total_cmp(b),
        (Value::Text(a), Value::Text(b)) | (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
        (a, b) => class(a).cmp(&class(b)),
    }
}

/// Writes rows as lines.
struct RowWriter<'o> {
    out: &'o mut Spool,
    line: Vec<u8>,
}

impl<'o> RowWriter<'o> {
    fn new(out: &'o mut Spool) -> Self {
        Self {
            out,
            line: Vec::new(),
        }
    }

    /// Writes a row, and returns it. For one that cannot be read, the line says so.
    fn write<'s>(
        &mut self,
        cursor: &mut Cursor<'s>,
        table: &Table,
        rowid: i64,
    ) -> Result<Option<Row<'s>>> {
        let read = cursor.find(rowid).and_then(|row| {
            row.as_ref()
                .map_or(Ok(()), |row| self.set_line(table, row))?;
            Ok(row)
        });
        let row = match read {
            Ok(Some(row)) => Some(row),
            Ok(None) => return Ok(None),
            Err(error) => {
                self.set_damaged_line(table, rowid, &error);
                None
            }
        };
        self.out.add(&self.line)?;
        Ok(row)
    }

    fn start_line(&mut self, table: &Table) {
        self.line.clear();
        self.line.extend_from_slice(b"{\"table\":");
        push_string(&mut self.line, &table.name);
    }

    fn set_line(&mut self, table: &Table, row: &Row<'_>) -> Result<()> {
        self.start_line(table);
        let line = &mut self.line;
        line.extend_from_slice(b",\"row\":{");
        for (at, column) in table.columns.iter().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            push_string(line, &column.name);
            line.push(b':');
            push_value(line, row.value(at)?);
        }
        line.extend_from_slice(b"}}\n");
        Ok(())
    }

    fn set_damaged_line(&mut self, table: &Table, rowid: i64, error: &Error) {
        self.start_line(table);
        let line = &mut self.line;
        line.extend_from_slice(format!(",\"rowid\":{rowid},\"damaged\":").as_bytes());
        push_string(line, error.message());
        line.extend_from_slice(b"}\n");
    }
}

fn push_value(line: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Null => line.extend_from_slice(b"null"),
        Value::Integer(number) => {
            write!(line, "{number}").expect("memory can be written");
        }
        Value::Real(number) if number.is_finite() => {
            write!(line, "{number:?}").expect("memory can be written");
        }
        Value::Real(number) => push_marked(line, "$real", &number.to_string()),
        Value::Blob(bytes) => push_marked(line, "$blob", &STANDARD.encode(bytes)),
        Value::Text(bytes) => match simdutf8::basic::from_utf8(&bytes) {
            Ok(text) if is_plain_json(text) => line.extend_from_slice(text.as_bytes()),
            Ok(text) => push_string(line, text),
            Err(_) => push_marked(line, "$text", &STANDARD.encode(bytes)),
        },
    }
}

/// Returns whether a text is a JSON object or array on one line, and no value of ours.
fn is_plain_json(text: &str) -> bool {
    text.starts_with(['{', '['])
        && !text.starts_with("{\"$")
        && memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none()
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn push_marked(line: &mut Vec<u8>, mark: &str, value: &str) {
    line.push(b'{');
    push_string(line, mark);
    line.push(b':');
    push_string(line, value);
    line.push(b'}');
}

fn push_string(line: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(line, text).expect("memory can be written");
}

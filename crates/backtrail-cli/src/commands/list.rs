//! `backtrail list`: every session, newest first.

use std::io::Write;

use backtrail::{Role, SessionId, SessionInfo, SessionReader, Store};
use serde_json::{Value, json};

use super::{Answer, open_store};
use crate::args::Global;
use crate::error::{Result, full_text};
use crate::text::{count, one_line, path_json};
use crate::ui::{BOLD, DIM, Ui, unwritable};
use crate::when;

/// List the sessions: pinned ones, then the newest, first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let Some(store) = open_store(global)? else {
        return print(&[], None, ui);
    };
    let mut sessions = store.infos()?;
    sessions.sort_by_key(|(_, info)| {
        let info = info.as_ref().ok();
        let pinned = info.is_some_and(|info| info.pinned);
        std::cmp::Reverse((pinned, info.and_then(|info| info.updated_at)))
    });
    print(&sessions, Some(&store), ui)
}

type Row = (SessionId, backtrail::Result<SessionInfo>);

fn print(rows: &[Row], store: Option<&Store>, ui: &Ui) -> Result<Answer> {
    if ui.json() {
        let list: Vec<Value> = rows.iter().map(row_json).collect();
        ui.print_json(&Value::from(list))?;
        return Ok(Answer::Done);
    }
    let Some(store) = store.filter(|_| !rows.is_empty()) else {
        ui.status("no sessions yet; record something: backtrail record --text hello");
        return Ok(Answer::Done);
    };
    print_table(rows, store, ui).map_err(|error| unwritable(&error))?;
    Ok(Answer::Done)
}

fn print_table(rows: &[Row], store: &Store, ui: &Ui) -> std::io::Result<()> {
    let ids = unique_len(rows).max("ID".len());
    let columns = Columns::new(ids, ui.width());
    let mut out = ui.out();
    let head = columns.row(("ID", "WHEN", "RECORDS"), "TITLE");
    writeln!(out, "{DIM}{}{DIM:#}", head.0 + &head.1)?;
    for (id, info) in rows {
        let id = id.prefix(ids);
        let (id, rest) = match info {
            Ok(info) => {
                let at = info.updated_at.map_or_else(|| "?".to_owned(), when::brief);
                let title = format!("{}{}", marks(info), title(store, info));
                columns.row((id, &at, &info.last_seq.to_string()), &title)
            }
            Err(error) => {
                let reason = format!("unreadable: {}", full_text(error));
                columns.row((id, "?", "?"), &reason)
            }
        };
        writeln!(out, "{BOLD}{id}{BOLD:#}{rest}")?;
    }
    out.flush()?;
    ui.remark(&format!(
        "{} in {}",
        count(rows.len() as u64, "session"),
        store.root().display()
    ));
    Ok(())
}

/// Returns what sets a session apart from others: pinned, a fork, a sub-agent's.
fn marks(info: &SessionInfo) -> String {
    let mut marks = String::new();
    if info.pinned {
        marks += "* ";
    }
    if let Some(origin) = &info.forked_from {
        marks += &match &origin.branch_name {
            Some(name) => format!("[fork {name}] "),
            None => "[fork] ".to_owned(),
        };
    }
    if info.spawned_by.is_some() {
        marks += "[sub-agent] ";
    }
    marks
}

/// How wide the columns are. A line that wraps hurts: where the terminal is too
/// narrow, the records go first, then the time.
struct Columns {
    ids: usize,
    when: bool,
    records: bool,
    title: usize,
}

impl Columns {
    const WHEN: usize = 2 + 10;
    const RECORDS: usize = 2 + 7;
    /// A title that says something.
    const TITLE: usize = 2 + 20;

    fn new(ids: usize, width: Option<usize>) -> Self {
        let width = width.unwrap_or(ids + Self::WHEN + Self::RECORDS + 2 + 100);
        let when = ids + Self::WHEN + Self::TITLE <= width;
        let records = ids + Self::WHEN + Self::RECORDS + Self::TITLE <= width;
        let mut used = ids + 2;
        if when {
            used += Self::WHEN;
        }
        if records {
            used += Self::RECORDS;
        }
        Self {
            ids,
            when,
            records,
            title: width.saturating_sub(used).max(10),
        }
    }

    /// Returns a row: the id, and the rest of it.
    fn row(&self, (id, when, records): (&str, &str, &str), title: &str) -> (String, String) {
        let mut rest = String::new();
        if self.when {
            rest += &format!("  {when:<10}");
        }
        if self.records {
            rest += &format!("  {records:>7}");
        }
        rest += &format!("  {}", one_line(title, self.title));
        (format!("{id:<ids$}", ids = self.ids), rest)
    }
}

/// Returns how many characters tell all ids apart; 4 at least.
fn unique_len(rows: &[Row]) -> usize {
    let mut ids: Vec<&str> = rows.iter().map(|(id, _)| id.as_str()).collect();
    ids.sort_unstable();
    let shared = |pair: &[&str]| {
        let letters = pair[0].bytes().zip(pair[1].bytes());
        letters.take_while(|(a, b)| a == b).count()
    };
    ids.windows(2)
        .map(|pair| shared(pair) + 1)
        .max()
        .unwrap_or(0)
        .max(4)
}

/// Returns the title, or the beginning of what the user said first.
fn title(store: &Store, info: &SessionInfo) -> String {
    match &info.title {
        Some(title) => title.clone(),
        None => match &info.begins {
            Some(words) => words.clone(),
            None => {
                let reader = store.read_session(&info.id).ok();
                reader
                    .and_then(|reader| first_words(&reader))
                    .unwrap_or_default()
            }
        },
    }
}

/// Returns the beginning of a session's first prompt.
pub(super) fn first_words(reader: &SessionReader) -> Option<String> {
    /// A session where nobody speaks for so long is not read to its end.
    const LOOKED_AT: usize = 50;
    let mut records = reader.records().ok()?;
    for _ in 0..LOOKED_AT {
        let message = records.next().ok()??.stored_message();
        if let Ok(Some(message)) = message
            && message.role == Role::User
        {
            return Some(message.text().chars().take(200).collect());
        }
    }
    None
}

fn row_json((id, info): &Row) -> Value {
    match info {
        Ok(info) => info_json(info),
        Err(error) => json!({"id": id, "error": full_text(error)}),
    }
}

/// Writes what is known of a session; what is not known is null.
pub(super) fn info_json(info: &SessionInfo) -> Value {
    json!({
        "id": info.id,
        "title": info.title,
        "agent": info.agent,
        "model": info.model,
        "tags": info.tags,
        "pinned": info.pinned,
        "workspace": info.workspace_root.as_deref().map(path_json),
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "last_seq": info.last_seq,
        "trails": info.trails,
        "forked_from": info.forked_from,
        "spawned_by": info.spawned_by,
        "original_id": info.original_id,
    })
}

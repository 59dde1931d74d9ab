//! `backtrail list`: every session, newest first.

use std::io::Write;

use backtrail::{Role, SessionId, SessionInfo, Store};
use serde_json::{Value, json};

use super::{Answer, open_store};
use crate::args::Global;
use crate::error::{Result, full_text};
use crate::text::{count, one_line, path_json};
use crate::ui::{BOLD, DIM, Ui, unwritable};
use crate::when;

/// List the sessions, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let Some(store) = open_store(global)? else {
        return print(&[], None, ui);
    };
    let mut sessions = store.infos()?;
    sessions.sort_by_key(|(_, info)| {
        std::cmp::Reverse(info.as_ref().ok().and_then(|info| info.updated_at))
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
    let mut out = ui.out();
    writeln!(
        out,
        "{DIM}{:<ids$}  {:<10}  {:>7}  TITLE{DIM:#}",
        "ID", "WHEN", "RECORDS"
    )?;
    // What stands before the title, and no last column: a wrapped line hurts.
    let title_width = ui.width().map_or(100, |width| {
        width.saturating_sub(ids + 2 + 10 + 2 + 7 + 2).max(10)
    });
    for (id, info) in rows {
        let id = id.prefix(ids);
        match info {
            Ok(info) => {
                let at = info.updated_at.map_or_else(|| "?".to_owned(), when::brief);
                let title = one_line(&title(store, info), title_width);
                let records = info.last_seq;
                writeln!(
                    out,
                    "{BOLD}{id:<ids$}{BOLD:#}  {at:<10}  {records:>7}  {title}"
                )?;
            }
            Err(error) => {
                let reason = one_line(&format!("unreadable: {}", full_text(error)), title_width);
                writeln!(
                    out,
                    "{BOLD}{id:<ids$}{BOLD:#}  {:<10}  {:>7}  {reason}",
                    "?", "?"
                )?;
            }
        }
    }
    out.flush()?;
    ui.remark(&format!(
        "{} in {}",
        count(rows.len() as u64, "session"),
        store.root().display()
    ));
    Ok(())
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
        None => first_words(store, &info.id).unwrap_or_default(),
    }
}

fn first_words(store: &Store, id: &SessionId) -> Option<String> {
    /// A session where nobody speaks for so long is not read to its end.
    const LOOKED_AT: usize = 50;
    let mut records = store.read_session(id).ok()?.records().ok()?;
    for _ in 0..LOOKED_AT {
        let message = records.next().ok()??.message();
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
        "workspace": info.workspace_root.as_deref().map(path_json),
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "last_seq": info.last_seq,
        "trails": info.trails,
    })
}

//! `backtrail trash list`: what was deleted.

use std::io::Write;
use std::path::Path;

use backtrail::trash::{TrashContents, TrashEntry, TrashKind};
use serde_json::{Value, json};

use super::{Answer, Global, Result, Ui, short};
use crate::commands::list::first_words;
use crate::commands::{open_store, relative};
use crate::text::{count, one_line, path_json, size, visible_path};
use crate::ui::{BOLD, DIM, unwritable};
use crate::when;

/// List what was deleted, the newest first
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let Some(store) = open_store(global)? else {
        if ui.json() {
            ui.print_json(&Value::Array(Vec::new()))?;
        }
        return Ok(Answer::Done);
    };
    let mut contents = store.trash()?;
    contents
        .entries
        .sort_by_key(|entry| std::cmp::Reverse(entry.deleted_at));
    if ui.json() {
        let list: Vec<Value> = contents.entries.iter().map(entry_json).collect();
        ui.print_json(&Value::from(list))?;
    } else if contents.entries.is_empty() {
        ui.status("the trash is empty");
    } else {
        print(&contents, ui).map_err(|error| unwritable(&error))?;
    }
    for path in &contents.leftovers {
        let path = visible_path(relative(&store, path));
        let hint = format!("{} trash empty does the rest", ui.program());
        ui.warning(&format!("{path} was not removed to its end"), Some(&hint));
    }
    for path in &contents.unknown {
        warn_unknown(relative(&store, path), ui);
    }
    Ok(Answer::Done)
}

pub(super) fn warn_unknown(path: &Path, ui: &Ui) {
    let path = visible_path(path);
    ui.warning(&format!("{path} is not ours, and is left alone"), None);
}

fn print(contents: &TrashContents, ui: &Ui) -> std::io::Result<()> {
    const DELETED: usize = 10;
    const SIZE: usize = 9;
    let id = |entry: &TrashEntry| match entry.name.what {
        TrashKind::Trails => format!("{}.trails", short(&entry.name.id)),
        _ => short(&entry.name.id).to_owned(),
    };
    let ids = contents.entries.iter().map(|entry| id(entry).len());
    let ids = ids.max().unwrap_or(0).max(2);
    let used = ids + 2 + DELETED + 2 + SIZE + 2;
    let room = ui.width().unwrap_or(used + 80).saturating_sub(used).max(10);
    let mut out = ui.out();
    writeln!(
        out,
        "{DIM}{:<ids$}  {:<DELETED$}  {:>SIZE$}  TITLE{DIM:#}",
        "ID", "DELETED", "SIZE"
    )?;
    for entry in &contents.entries {
        let at = entry.deleted_at.map_or_else(|| "?".to_owned(), when::brief);
        writeln!(
            out,
            "{BOLD}{:<ids$}{BOLD:#}  {at:<DELETED$}  {:>SIZE$}  {}",
            id(entry),
            size(entry.bytes),
            one_line(&about(entry), room)
        )?;
    }
    out.flush()?;
    let n = contents.entries.len() as u64;
    let bytes = contents.entries.iter().map(|entry| entry.bytes).sum();
    let entries = if n == 1 {
        "1 entry"
    } else {
        &format!("{n} entries")
    };
    ui.remark(&format!("{entries}, {}", size(bytes)));
    Ok(())
}

/// Writes what it is, and who reads it.
fn about(entry: &TrashEntry) -> String {
    let reads = match entry.continued_by.as_slice() {
        [] => String::new(),
        [one] => format!("[read by {}] ", short(one)),
        more => format!("[read by {}] ", count(more.len() as u64, "session")),
    };
    reads + &title(entry).unwrap_or_default()
}

/// Returns the title, or the beginning of what the user said first.
fn title(entry: &TrashEntry) -> Option<String> {
    let info = entry.reader().info().ok()?;
    let title = info.title.or(info.begins);
    title.or_else(|| first_words(entry.reader()))
}

pub(super) fn entry_json(entry: &TrashEntry) -> Value {
    json!({
        "name": entry.name.to_string(),
        "session": entry.name.id,
        "what": match entry.name.what {
            TrashKind::Trails => "trails",
            _ => "session",
        },
        "title": title(entry),
        "deleted_at": entry.deleted_at,
        "deleted_by": entry.deleted_by,
        "bytes": entry.bytes,
        "continued_by": entry.continued_by,
        "path": path_json(Path::new("trash").join(entry.name.to_string()).as_path()),
    })
}

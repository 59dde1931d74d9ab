//! `backtrail trash`: lists, restores and removes what was deleted.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::Store;
use backtrail::trash::{
    EmptyOptions, EmptyPlan, KeptEntry, TrashContents, TrashEntry, TrashKind, TrashName,
};
use serde_json::{Value, json};

use super::list::first_words;
use super::{Answer, open_store, relative, require_store, short};
use crate::amount::read_age;
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::layout::{Column, Table, styled};
use crate::text::{count, one_line, path_json, size, visible_path};
use crate::ui::{BOLD, Ui, unwritable};
use crate::when;

/// List, restore or permanently remove what was deleted
///
/// Without a command it lists the trash, newest first.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct TrashArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Restore(RestoreArgs),
    Empty(EmptyArgs),
}

/// Restore what was deleted
///
/// Fails if the name is taken by now.
#[derive(Debug, clap::Args)]
struct RestoreArgs {
    /// What to restore: a session's id or its first 4 or more characters, or ID.trails for
    /// older trails of a session
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
}

/// Remove what was deleted, permanently
///
/// What a session still reads is kept and named.
#[derive(Debug, clap::Args)]
struct EmptyArgs {
    /// Only these: a session's id or its first 4 or more characters, or ID.trails
    #[arg(value_name = "REF")]
    references: Vec<String>,

    /// Only what was deleted longer ago than this: 30d, 12h, 4w
    #[arg(long, value_name = "AGE", value_parser = read_age)]
    older_than: Option<Duration>,

    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    /// Remove without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &TrashArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    match &args.verb {
        None => list(global, ui),
        Some(Verb::Restore(args)) => restore(args, global, ui),
        Some(Verb::Empty(args)) => empty(args, global, ui),
    }
}

fn list(global: &Global, ui: &Ui) -> Result<Answer> {
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
        let hint = format!("remove the rest: {} trash empty", ui.program());
        ui.warning(&format!("{path} was only partly removed"), Some(&hint));
    }
    for path in &contents.unknown {
        warn_unknown(relative(&store, path), ui);
    }
    Ok(Answer::Done)
}

fn warn_unknown(path: &Path, ui: &Ui) {
    let path = visible_path(path);
    ui.warning(
        &format!("{path} is not part of the store; left alone"),
        None,
    );
}

fn print(contents: &TrashContents, ui: &Ui) -> std::io::Result<()> {
    let mut table = Table::new([
        Column::text("ID").style(BOLD),
        Column::text("DELETED"),
        Column::number("SIZE"),
        Column::text("TITLE").between(10, 80),
    ]);
    for entry in &contents.entries {
        let id = match entry.name.kind {
            TrashKind::Trails => format!("{}.trails", short(&entry.name.id)),
            _ => short(&entry.name.id).to_owned(),
        };
        let at = entry.deleted_at.map_or_else(|| "?".to_owned(), when::brief);
        let title = one_line(&about(entry), 80);
        table.push([id.into(), at.into(), size(entry.bytes).into(), title.into()]);
    }
    let mut out = ui.out();
    for line in table.lines(ui.width()) {
        writeln!(out, "{}", styled(&line))?;
    }
    out.flush()?;
    let n = contents.entries.len();
    let bytes = contents.entries.iter().map(|entry| entry.bytes).sum();
    let entries = if n == 1 { "entry" } else { "entries" };
    ui.remark(&format!("{n} {entries}, {}", size(bytes)));
    Ok(())
}

/// Returns the title, after the sessions that still read the entry.
fn about(entry: &TrashEntry) -> String {
    let reads = match entry.continued_by.as_slice() {
        [] => String::new(),
        [one] => format!("[read by {}] ", short(one)),
        more => format!("[read by {}] ", count(more.len() as u64, "session")),
    };
    reads + &title(entry).unwrap_or_default()
}

/// Returns the title, else the beginning of the first prompt.
fn title(entry: &TrashEntry) -> Option<String> {
    let info = entry.reader().info().ok()?;
    let title = info.title.or(info.begins);
    title.or_else(|| first_words(entry.reader()))
}

fn entry_json(entry: &TrashEntry) -> Value {
    json!({
        "name": entry.name.to_string(),
        "session": entry.name.id,
        "what": match entry.name.kind {
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

fn restore(args: &RestoreArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let mut names: Vec<TrashName> = Vec::new();
    for reference in &args.references {
        let name = find(&store, reference, ui)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in &names {
        store.restore_deleted(name)?;
        if !ui.json() {
            ui.print_line(&format!("restored {}", describe(name)))?;
        }
    }
    if ui.json() {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        ui.print_json(&json!({"restored": names}))?;
    } else if let [name] = names.as_slice()
        && name.kind == TrashKind::Session
    {
        ui.to_reverse(&format!("delete {}", short(&name.id)));
    }
    Ok(Answer::Done)
}

fn describe(name: &TrashName) -> String {
    match name.kind {
        TrashKind::Trails => format!("older trails of session {}", short(&name.id)),
        _ => format!("session {}", short(&name.id)),
    }
}

/// The shortest prefix of an id that is accepted.
const SHORTEST: usize = 4;

/// Finds the entry that a reference means.
fn find(store: &Store, reference: &str, ui: &Ui) -> Result<TrashName> {
    let entries = store.trash()?.entries;
    let (beginning, trails) = match reference.strip_suffix(".trails") {
        Some(beginning) => (beginning, true),
        None => (reference, false),
    };
    let fits = |entry: &&TrashEntry| {
        let id = entry.name.id.as_str();
        id == beginning || (beginning.len() >= SHORTEST && id.starts_with(beginning))
    };
    let of = |what: TrashKind| {
        let fitting = entries.iter().filter(fits);
        let names = fitting.map(|entry| entry.name.clone());
        names.filter(|name| name.kind == what).collect::<Vec<_>>()
    };
    let mut found = match trails {
        true => Vec::new(),
        false => of(TrashKind::Session),
    };
    if found.is_empty() {
        found = of(TrashKind::Trails);
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let shown = one_line(reference, 60);
            let what = format!("nothing in the trash matches \"{shown}\"");
            let hint = format!("see what is there: {} trash", ui.program());
            Err(CommandError::not_found(what).hint(hint))
        }
        n => {
            let shown = one_line(reference, 60);
            let what = format!("\"{shown}\" matches {n} entries in the trash");
            let error = CommandError::ambiguous(what);
            let names = found.iter().take(5);
            Err(names.fold(error, |error, name| error.hint(name.to_string())))
        }
    }
}

fn empty(args: &EmptyArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let mut options = EmptyOptions::new();
    if let Some(age) = args.older_than {
        options = options.older_than(age);
    }
    if !args.references.is_empty() {
        let names = args.references.iter();
        let names = names.map(|reference| find(&store, reference, ui));
        options = options.only(names.collect::<Result<Vec<_>>>()?);
    }
    let plan = store.empty_plan(&options)?;
    if args.dry_run {
        return dry_run(&store, &plan, ui);
    }
    let nothing = plan.emptied().is_empty() && plan.leftovers().is_empty();
    if !nothing && !args.yes && !plan.emptied().is_empty() {
        let question = format!(
            "permanently remove {}? this cannot be undone",
            describe_all(plan.emptied())
        );
        if !ui.confirm(&question)? {
            ui.status("nothing removed");
            return Ok(Answer::No);
        }
    }
    let report = plan.apply()?;
    if ui.json() {
        let names = report.emptied.iter().map(ToString::to_string);
        ui.print_json(&json!({
            "emptied": names.collect::<Vec<_>>(),
            "bytes": report.bytes,
            "kept": report.kept.iter().map(kept_json).collect::<Vec<_>>(),
            "left": paths_json(&report.left),
            "dry_run": false,
        }))?;
    } else {
        for name in &report.emptied {
            ui.print_line(&format!("removed {}", describe(name)))?;
        }
        report_kept(&report.kept, ui);
        match (report.emptied.len(), report.bytes) {
            (0, 0) => ui.status("nothing removed"),
            (_, bytes) => ui.status(&format!("freed {}", size(bytes))),
        }
    }
    for path in &report.left {
        warn_unknown(relative(&store, path), ui);
    }
    Ok(Answer::Done)
}

fn dry_run(store: &Store, plan: &EmptyPlan, ui: &Ui) -> Result<Answer> {
    if ui.json() {
        let bytes: u64 = plan.emptied().iter().map(|entry| entry.bytes).sum();
        let names = plan.emptied().iter().map(|entry| entry.name.to_string());
        ui.print_json(&json!({
            "emptied": names.collect::<Vec<_>>(),
            "bytes": bytes,
            "kept": plan.kept().iter().map(kept_json).collect::<Vec<_>>(),
            "left": paths_json(plan.unknown()),
            "dry_run": true,
        }))?;
    } else {
        for entry in plan.emptied() {
            let bytes = size(entry.bytes);
            ui.print_line(&format!("would remove {} ({bytes})", describe(&entry.name)))?;
        }
        if plan.emptied().is_empty() {
            ui.status("nothing would be removed");
        }
        report_kept(plan.kept(), ui);
    }
    for path in plan.unknown() {
        warn_unknown(relative(store, path), ui);
    }
    Ok(Answer::Done)
}

fn describe_all(entries: &[TrashEntry]) -> String {
    let bytes = size(entries.iter().map(|entry| entry.bytes).sum());
    match entries {
        [one] => format!("{} ({bytes})", describe(&one.name)),
        more => format!("{} entries ({bytes})", more.len()),
    }
}

fn report_kept(kept: &[KeptEntry], ui: &Ui) {
    for kept in kept {
        let what = describe(&kept.entry.name);
        let first = kept.read_by.first().map_or("", short);
        let by = match kept.read_by.len() {
            0 | 1 => first.to_owned(),
            n => format!("{first} and {} more", n - 1),
        };
        ui.status(&match kept.in_doubt {
            false => format!("kept {what}: {by} continues it"),
            true => format!("kept {what}: {by} cannot be read and may continue it"),
        });
    }
}

fn kept_json(kept: &KeptEntry) -> Value {
    let mut value = entry_json(&kept.entry);
    value["read_by"] = json!(kept.read_by);
    value["in_doubt"] = kept.in_doubt.into();
    value
}

fn paths_json(paths: &[PathBuf]) -> Vec<Value> {
    paths.iter().map(|path| path_json(path)).collect()
}

//! `backtrail trash`: lists, restores and removes what was deleted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::plumbing::named_by;
use backtrail::trash::{EmptyOptions, KeptEntry, TrashContents, TrashEntry, TrashKind, TrashName};
use backtrail::{ErrorKind, Store};
use serde_json::{Value, json};

use super::{Answer, open_store, relative, require_store, short};
use crate::amount::read_age;
use crate::error::{CommandError, Result};
use crate::layout::{BOLD, Column, Table};
use crate::text::{count, one_line, path_json, size, some_of, visible_path};
use crate::ui::Ui;
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
/// Fails if the id is in use again.
#[derive(Debug, clap::Args)]
struct RestoreArgs {
    /// What to restore: a session id or a prefix of 4+ characters, or ID.trails for a
    /// session's older trails
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
}

/// Permanently remove what was deleted
///
/// Anything that a session still reads is kept and listed.
#[derive(Debug, clap::Args)]
struct EmptyArgs {
    /// Only these: a session id or a prefix of 4+ characters, or ID.trails
    #[arg(value_name = "REF")]
    references: Vec<String>,

    /// Only what has been in the trash longer than this: 30d, 12h, 4w
    #[arg(long, value_name = "AGE", value_parser = read_age)]
    older_than: Option<Duration>,

    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,

    /// Remove without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &TrashArgs, ui: &Ui) -> Result<Answer> {
    match &args.verb {
        None => list(ui),
        Some(Verb::Restore(args)) => restore(args, ui),
        Some(Verb::Empty(args)) => empty(args, ui),
    }
}

const EMPTY: &str = "the trash is empty";

fn list(ui: &Ui) -> Result<Answer> {
    let Some(store) = open_store(ui)? else {
        if ui.json() {
            return ui.answer_json(&[(); 0]);
        }
        ui.status(EMPTY);
        return Ok(Answer::Done);
    };
    let mut contents = store.trash()?;
    contents
        .entries
        .sort_by_key(|entry| std::cmp::Reverse(entry.deleted_at));
    if ui.json() {
        ui.print_json(&contents.entries.iter().map(entry_json).collect::<Vec<_>>())?;
    } else if contents.entries.is_empty() {
        ui.status(EMPTY);
    } else {
        print(&contents, ui)?;
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

pub(super) fn warn_unknown(path: &Path, ui: &Ui) {
    let what = "is not part of the store; left alone";
    ui.warning(&format!("{} {what}", visible_path(path)), None);
}

fn print(contents: &TrashContents, ui: &Ui) -> Result<()> {
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
    ui.print_table(&table, ui.width())?;
    let bytes = contents.entries.iter().map(|entry| entry.bytes).sum();
    let entries = count(contents.entries.len(), "entry");
    ui.remark(&format!("{entries}, {}", size(bytes)));
    Ok(())
}

/// Returns the title, after the sessions that still read the entry.
fn about(entry: &TrashEntry) -> String {
    let reads = match entry.continued_by.as_slice() {
        [] => String::new(),
        [one] => format!("[read by {}] ", short(one)),
        more => format!("[read by {}] ", count(more.len(), "session")),
    };
    reads + &title(entry).unwrap_or_default()
}

fn title(entry: &TrashEntry) -> Option<String> {
    entry.reader().title().ok().flatten()
}

fn entry_json(entry: &TrashEntry) -> Value {
    let mut value = json!(entry);
    value["session"] = json!(entry.name.id);
    value["what"] = json!(entry.name.kind);
    value["title"] = json!(title(entry));
    value["path"] = format!("trash/{}", entry.name).into();
    value
}

fn restore(args: &RestoreArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
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
        ui.print_json(&json!({"restored": names}))?;
    } else if let [name] = names.as_slice()
        && name.kind == TrashKind::Session
    {
        ui.to_reverse(&format!("delete {}", short(&name.id)));
    }
    Ok(Answer::Done)
}

/// Says what an entry is.
pub(super) fn describe(name: &TrashName) -> String {
    match name.kind {
        TrashKind::Trails => format!("older trails of session {}", short(&name.id)),
        _ => format!("session {}", short(&name.id)),
    }
}

/// Finds the entry that a reference means.
pub(super) fn find(store: &Store, reference: &str, ui: &Ui) -> Result<TrashName> {
    let entries = store.trash()?.entries;
    let of = |reference: &str, kind: TrashKind| {
        let names = entries.iter().map(|entry| &entry.name);
        let names = names.filter(|name| name.kind == kind);
        let ids = names.clone().map(|name| name.id.clone()).collect();
        let ids = named_by(ids, reference, |_| true);
        let fitting = names.filter(|name| ids.contains(&name.id));
        fitting.cloned().collect::<Vec<_>>()
    };
    let mut found = match reference.strip_suffix(".trails") {
        Some(beginning) => of(beginning, TrashKind::Trails),
        None => of(reference, TrashKind::Session),
    };
    if found.is_empty() {
        found = of(reference, TrashKind::Trails);
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
            let error = CommandError::new(ErrorKind::Ambiguous, what);
            let names = found.iter().take(5);
            Err(names.fold(error, |error, name| error.hint(name.to_string())))
        }
    }
}

fn empty(args: &EmptyArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
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
    let output = EmptyOutput {
        store: &store,
        dry_run: args.dry_run,
        ui,
    };
    if args.dry_run {
        let names: Vec<TrashName> = plan.emptied().iter().map(|it| it.name.clone()).collect();
        let bytes = plan.emptied().iter().map(|entry| entry.bytes).sum();
        return output.print(&names, bytes, plan.kept(), plan.unknown());
    }
    if !args.yes && !plan.emptied().is_empty() {
        let bytes = size(plan.emptied().iter().map(|entry| entry.bytes).sum());
        let what = match plan.emptied() {
            [one] => describe(&one.name),
            more => count(more.len(), "entry"),
        };
        let question = format!("permanently remove {what} ({bytes})? this cannot be undone");
        if !ui.confirm(&question)? {
            ui.status("nothing removed");
            return Ok(Answer::No);
        }
    }
    let report = plan.apply()?;
    output.print(&report.emptied, report.bytes, &report.kept, &report.left)
}

/// Prints what was removed, or would be.
struct EmptyOutput<'a> {
    store: &'a Store,
    dry_run: bool,
    ui: &'a Ui,
}

impl EmptyOutput<'_> {
    fn print(
        &self,
        emptied: &[TrashName],
        bytes: u64,
        kept: &[KeptEntry],
        left: &[PathBuf],
    ) -> Result<Answer> {
        let ui = self.ui;
        if ui.json() {
            ui.print_json(&json!({
                "emptied": emptied,
                "bytes": bytes,
                "kept": kept.iter().map(kept_json).collect::<Vec<_>>(),
                "left": left.iter().map(|path| path_json(path)).collect::<Vec<_>>(),
                "dry_run": self.dry_run,
            }))?;
        } else {
            let (removed, freed, nothing) = match self.dry_run {
                true => ("would remove", "would free", "nothing would be removed"),
                false => ("removed", "freed", "nothing removed"),
            };
            for name in emptied {
                ui.print_line(&format!("{removed} {}", describe(name)))?;
            }
            report_kept(kept, ui);
            ui.status(&match (emptied, bytes) {
                ([], 0) => nothing.to_owned(),
                (_, bytes) => format!("{freed} {}", size(bytes)),
            });
        }
        for path in left {
            warn_unknown(relative(self.store, path), ui);
        }
        Ok(Answer::Done)
    }
}

fn report_kept(kept: &[KeptEntry], ui: &Ui) {
    for kept in kept {
        let what = describe(&kept.entry.name);
        let readers = kept.read_by.iter().map(|id| short(id).to_owned());
        let by = some_of(readers, 1, kept.read_by.len());
        ui.status(&match kept.in_doubt {
            false => format!("kept {what}: continued by {by}"),
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

//! `backtrail trash empty`: what was deleted goes for good.

use std::path::PathBuf;
use std::time::Duration;

use backtrail::Store;
use backtrail::trash::{EmptyOptions, EmptyPlan, KeptEntry, TrashEntry};
use serde_json::{Value, json};

use super::list::{entry_json, warn_unknown};
use super::{Answer, Global, Result, Ui, find, require_store, short, words};
use crate::amount::read_age;
use crate::commands::relative;
use crate::text::{count, path_json, size};

/// Remove what was deleted, for good
///
/// What a session still reads there is kept, and named.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only these: the id of a session, the first 4 or more characters of it, or ID.trails
    #[arg(value_name = "REF")]
    references: Vec<String>,

    /// Only what was deleted longer ago than this: 30d, 12h, 4w
    #[arg(long, value_name = "AGE", value_parser = read_age)]
    older_than: Option<Duration>,

    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,

    /// Remove without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
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
            "remove {} for good? that cannot be taken back",
            all(plan.emptied())
        );
        if !ui.confirm(&question)? {
            ui.status("nothing was removed");
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
            "left": paths(&report.left),
            "dry_run": false,
        }))?;
    } else {
        for name in &report.emptied {
            ui.print_line(&format!("{} is gone", words(name)))?;
        }
        say_kept(&report.kept, ui);
        match (report.emptied.len(), report.bytes) {
            (0, 0) => ui.status("nothing was removed"),
            (_, bytes) => ui.status(&format!("{} freed", size(bytes))),
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
            "left": paths(plan.unknown()),
            "dry_run": true,
        }))?;
    } else {
        for entry in plan.emptied() {
            let bytes = size(entry.bytes);
            ui.print_line(&format!("{} would go ({bytes})", words(&entry.name)))?;
        }
        if plan.emptied().is_empty() {
            ui.status("nothing would be removed");
        }
        say_kept(plan.kept(), ui);
    }
    for path in plan.unknown() {
        warn_unknown(relative(store, path), ui);
    }
    Ok(Answer::Done)
}

fn all(entries: &[TrashEntry]) -> String {
    let bytes = size(entries.iter().map(|entry| entry.bytes).sum());
    match entries {
        [one] => format!("{} ({bytes})", words(&one.name)),
        more => format!("{} ({bytes})", count(more.len() as u64, "thing")),
    }
}

fn say_kept(kept: &[KeptEntry], ui: &Ui) {
    for kept in kept {
        let what = words(&kept.entry.name);
        let first = kept.read_by.first().map_or("", short);
        let by = match kept.read_by.len() {
            0 | 1 => first.to_owned(),
            n => format!("{first} and {} more", n - 1),
        };
        ui.status(&match kept.in_doubt {
            false => format!("{what} is kept: {by} goes on from it"),
            true => format!("{what} is kept: {by} cannot be read, and may go on from it"),
        });
    }
}

fn kept_json(kept: &KeptEntry) -> Value {
    let mut value = entry_json(&kept.entry);
    value["read_by"] = json!(kept.read_by);
    value["in_doubt"] = kept.in_doubt.into();
    value
}

fn paths(paths: &[PathBuf]) -> Vec<Value> {
    paths.iter().map(|path| path_json(path)).collect()
}

//! `backtrail trash`: what was deleted, and what becomes of it.

mod empty;
mod list;

use backtrail::Store;
use backtrail::trash::{TrashEntry, TrashKind, TrashName};
use serde_json::json;

use super::{Answer, require_store, short};
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::text::one_line;
use crate::ui::Ui;

/// Manage what was deleted
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    List(list::Args),
    Restore(RestoreArgs),
    Empty(empty::Args),
}

/// Bring back what was deleted
///
/// Refused where the name is taken by now.
#[derive(Debug, clap::Args)]
struct RestoreArgs {
    /// What to bring back: the id of a session, the first 4 or more characters of it, or
    /// ID.trails for older trails of one
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    match &args.verb {
        Verb::List(args) => list::run(args, global, ui),
        Verb::Restore(args) => restore(args, global, ui),
        Verb::Empty(args) => empty::run(args, global, ui),
    }
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
            ui.print_line(&format!("{} is restored", words(name)))?;
        }
    }
    if ui.json() {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        ui.print_json(&json!({"restored": names}))?;
    } else if let [name] = names.as_slice()
        && name.what == TrashKind::Session
    {
        ui.take_back(&format!("delete {}", short(&name.id)));
    }
    Ok(Answer::Done)
}

/// Writes what an entry is.
fn words(name: &TrashName) -> String {
    match name.what {
        TrashKind::Trails => format!("older trails of session {}", short(&name.id)),
        _ => format!("session {}", short(&name.id)),
    }
}

/// The shortest beginning of an id that counts.
const SHORTEST: usize = 4;

/// Finds what a reference means in the trash.
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
        names.filter(|name| name.what == what).collect::<Vec<_>>()
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
            let what = format!("nothing in the trash begins with \"{shown}\"");
            let hint = format!("see what there is: {} trash list", ui.program());
            Err(CommandError::not_found(what).hint(hint))
        }
        n => {
            let shown = one_line(reference, 60);
            let what = format!("{n} things in the trash begin with \"{shown}\"");
            let error = CommandError::ambiguous(what);
            let names = found.iter().take(5);
            Err(names.fold(error, |error, name| error.hint(name.to_string())))
        }
    }
}

//! `backtrail delete`: sessions to the trash, or out of the store for good.

mod purge;

use backtrail::trash::{DeletePlan, DeleteScope, Deletion, DeletionReason};
use backtrail::{SessionId, Store};
use serde_json::{Value, json};

use super::{Answer, locked_hint, require_store, resolve, short};
use crate::args::Global;
use crate::error::Result;
use crate::text::count;
use crate::ui::Ui;

/// Move sessions to the trash, or purge them
///
/// Nothing is lost: trash restore brings them back, and what was forked from them goes on
/// reading them there. The files of a workspace are not touched, and what a session did to
/// them can still be taken back.
///
/// With --purge no byte of a session stays in the store: for a key that leaked. Its words,
/// its payloads and its states of files go, here and in the trash; the space of those files
/// is free after the next gc. What was forked from it stays, and says what is gone. Files are
/// removed, not overwritten on the disk.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions: their ids, the first 4 or more characters of each, or latest
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,

    /// Take along what was forked from them, and the sessions of their sub-agents
    #[arg(long)]
    cascade: bool,

    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Remove them for good, from the trash as well
    #[arg(long)]
    purge: bool,

    /// Purge without asking
    #[arg(long, requires = "purge")]
    yes: bool,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    if args.purge {
        return purge::run(args, &store, ui);
    }
    let ids = args.references.iter();
    let ids = ids.map(|reference| resolve(&store, reference));
    let ids = ids.collect::<Result<Vec<SessionId>>>()?;
    let plan = store.delete_plan(&ids, scope(args))?;
    let deletions = plan.deletions().to_vec();
    let forks = plan.forks().to_vec();
    if !args.dry_run {
        apply(plan, &deletions)?;
    }
    if ui.json() {
        let list: Vec<Value> = deletions.iter().map(deletion_json).collect();
        ui.print_json(&json!({
            "deleted": list,
            "forks": forks,
            "dry_run": args.dry_run,
        }))?;
        return Ok(Answer::Done);
    }
    let outcome = if args.dry_run { "would go to" } else { "is in" };
    for deletion in &deletions {
        let because = because(deletion);
        let id = short(&deletion.id);
        ui.print_line(&format!("session {id}{because} {outcome} the trash"))?;
    }
    for fork in &forks {
        ui.status(&format!(
            "{} was forked from it, and reads it there",
            short(fork)
        ));
    }
    if !args.dry_run {
        // In the order in which they can be read at once: the one that others come from first.
        let ids = deletions.iter().rev().map(|deletion| short(&deletion.id));
        let ids: Vec<&str> = ids.collect();
        ui.take_back(&format!("trash restore {}", ids.join(" ")));
    }
    Ok(Answer::Done)
}

fn scope(args: &Args) -> DeleteScope {
    match args.cascade {
        true => DeleteScope::WithDescendants,
        false => DeleteScope::Named,
    }
}

fn apply(plan: DeletePlan, deletions: &[Deletion]) -> Result<()> {
    plan.apply().map_err(|error| locked(error, deletions))
}

/// Says who speaks in a session that therefore stays.
fn locked(error: backtrail::Error, deletions: &[Deletion]) -> crate::error::CommandError {
    let text = error.to_string();
    let named = |deletion: &&Deletion| text.contains(deletion.id.as_str());
    match deletions.iter().find(named) {
        Some(deletion) if error.kind() == backtrail::ErrorKind::Locked => {
            locked_hint(error, &deletion.id)
                .without_hints()
                .hint("end it there first; nothing was deleted")
        }
        _ => error.into(),
    }
}

fn because(deletion: &Deletion) -> String {
    match &deletion.reason {
        DeletionReason::Fork { of } => format!(" (forked from {})", short(of)),
        DeletionReason::SubAgent { of } => format!(" (begun by {})", short(of)),
        _ => String::new(),
    }
}

fn deletion_json(deletion: &Deletion) -> Value {
    let (reason, of) = match &deletion.reason {
        DeletionReason::Fork { of } => ("fork", Some(of)),
        DeletionReason::SubAgent { of } => ("sub_agent", Some(of)),
        _ => ("named", None),
    };
    json!({"session": deletion.id, "reason": reason, "of": of})
}

/// Finds a session, in the trash as well, or purged before.
fn resolve_anywhere(store: &Store, reference: &str) -> Result<SessionId> {
    let Err(error) = store.resolve(reference, None) else {
        return resolve(store, reference);
    };
    match error.in_trash().or(error.was_purged()) {
        Some(id) => Ok(id.clone()),
        None => resolve(store, reference),
    }
}

/// Writes several sessions as one tells them apart.
fn all_short(ids: &[SessionId]) -> String {
    const NAMED: usize = 5;
    let names: Vec<&str> = ids.iter().take(NAMED).map(short).collect();
    match ids.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        n => format!("{} and {}", names.join(", "), count(n as u64, "more")),
    }
}

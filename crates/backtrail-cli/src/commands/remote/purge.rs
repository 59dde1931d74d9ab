//! `remote delete`, `remote restore` and `remote purge`: sessions at a remote.

use backtrail::replica::{LogStatus, Replica, delete_there, purge_there, restore_there};
use backtrail::{SessionId, Store};
use serde_json::json;

use super::failure::with_hints;
use super::open::{Database, open_database};
use super::sessions::{know_short_ids, resolve_there, sessions};
use crate::commands::{Answer, open_store};
use crate::error::Result;
use crate::progress::while_waiting;
use crate::short::short;
use crate::text::some_of;
use crate::ui::Ui;

/// Move sessions at a remote to its trash
///
/// Nobody can push to them or pull them until they are restored. Sessions here are not touched.
#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    name: String,

    /// Sessions there: ids or prefixes of 4+ characters
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
}

/// Restore sessions from the trash of a remote
#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    name: String,

    /// Sessions there: ids or prefixes of 4+ characters
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
}

/// Permanently remove sessions from a remote
///
/// Their lines, payloads and keys are removed; the id is refused from then on, whoever pushes it.
/// Backups of the database still have them. Sessions here are not touched: delete --purge.
#[derive(Debug, clap::Args)]
pub(super) struct PurgeArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    name: String,

    /// Sessions there: ids or prefixes of 4+ characters
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,

    /// Purge without asking
    #[arg(long)]
    yes: bool,
}

/// Sessions at a remote that were named.
struct Named {
    database: Database,
    ids: Vec<SessionId>,
}

impl Named {
    fn find(name: &str, references: &[String], ui: &Ui) -> Result<Self> {
        let store = open_store(ui)?;
        let database = open_database(name, ui)?;
        let there = while_waiting(ui, "listing", || sessions(&*database.remote, name))?;
        know_short_ids(store.as_ref(), &there);
        let mut ids = Vec::new();
        for reference in references {
            let id = resolve(reference, store.as_ref(), &there, name)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(Self { database, ids })
    }

    /// Does something with each of them.
    fn each(&self, act: impl Fn(&dyn Replica, &SessionId) -> backtrail::Result<()>) -> Result<()> {
        self.ids.iter().try_for_each(|id| {
            let done = act(&*self.database.remote, id);
            done.map_err(|error| with_hints(error, self.database.name()))
        })
    }

    fn print(&self, done: &'static str, shown: &str, ui: &Ui) -> Result<()> {
        let name = self.database.name();
        if ui.json() {
            return ui.print_json(&json!({"remote": name, done: self.ids}));
        }
        for id in &self.ids {
            ui.print_line(&shown.replace("ID", &short(id)).replace("REMOTE", name))?;
        }
        Ok(())
    }

    /// Returns the ids as arguments of a command.
    fn arguments(&self) -> String {
        let ids: Vec<String> = self.ids.iter().map(short).collect();
        format!("{} {}", self.database.name(), ids.join(" "))
    }
}

/// Finds the session that a reference means: there, or else here, also one that was purged here.
fn resolve(
    reference: &str,
    store: Option<&Store>,
    there: &[(SessionId, LogStatus)],
    remote: &str,
) -> Result<SessionId> {
    let missing = match resolve_there(reference, there, remote) {
        Ok(id) => return Ok(id),
        Err(error) => error,
    };
    let here = store.map(|store| store.resolve(reference));
    match here {
        Some(Ok(id)) => Ok(id),
        Some(Err(error)) => error.was_purged().cloned().ok_or(missing),
        None => Err(missing),
    }
}

pub(super) fn delete(args: &DeleteArgs, ui: &Ui) -> Result<Answer> {
    let named = Named::find(&args.name, &args.references, ui)?;
    named.each(delete_there)?;
    named.print("deleted", "moved session ID to the trash of REMOTE", ui)?;
    ui.to_reverse(&format!("remote restore {}", named.arguments()));
    Ok(Answer::Done)
}

pub(super) fn restore(args: &RestoreArgs, ui: &Ui) -> Result<Answer> {
    let named = Named::find(&args.name, &args.references, ui)?;
    named.each(restore_there)?;
    named.print("restored", "restored session ID at REMOTE", ui)?;
    ui.to_reverse(&format!("remote delete {}", named.arguments()));
    Ok(Answer::Done)
}

pub(super) fn purge(args: &PurgeArgs, ui: &Ui) -> Result<Answer> {
    let named = Named::find(&args.name, &args.references, ui)?;
    if !args.yes {
        let ids = some_of(named.ids.iter().map(short), 5, named.ids.len());
        let question = format!(
            "permanently purge {ids} at {}? this cannot be undone",
            args.name
        );
        if !ui.confirm(&question)? {
            ui.status("nothing purged");
            return Ok(Answer::No);
        }
    }
    while_waiting(ui, "purging", || named.each(purge_there))?;
    named.print("purged", "purged session ID at REMOTE", ui)?;
    Ok(Answer::Done)
}

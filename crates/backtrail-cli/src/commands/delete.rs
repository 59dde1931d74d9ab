//! `backtrail delete`: moves sessions to the trash, or purges them.

mod copies;

use backtrail::trash::{
    DeletePlan, DeleteScope, Deletion, DeletionReason, PurgePlan, PurgeReport, RemainingFiles,
};
use backtrail::{ErrorKind, SessionId, Store};
use backtrail_formats::forgetting_sessions;
use serde_json::{Value, json};

use self::copies::Copies;
use super::trash::warn_unknown;
use super::{Answer, locked_hint, require_store, resolve, short};
use crate::error::{CommandError, Result};
use crate::progress::while_waiting;
use crate::settings::Settings;
use crate::text::{count, size, some_of, visible_path};
use crate::ui::Ui;
use crate::when;

/// Move sessions to the trash, or purge them
///
/// `trash restore` restores them, and their forks still work. The files of a workspace are not
/// touched, and what a session did to them can still be undone.
///
/// --purge removes every byte of a session from the store and the trash, for example after a
/// key leaked: its messages, payloads and saved files. The next gc frees the space of the
/// files. Forks stay, without the part that was purged. Files are deleted, not overwritten:
/// the disk may still hold their bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// Sessions: ids, prefixes of 4+ characters, or latest
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,

    /// Also delete their forks and sub-agent sessions
    #[arg(long)]
    cascade: bool,

    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,

    /// Remove them permanently, even from the trash
    #[arg(long)]
    purge: bool,

    /// Purge without asking
    #[arg(long, requires = "purge")]
    yes: bool,
}

pub(crate) fn run(args: &DeleteArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
    let scope = match args.cascade {
        true => DeleteScope::WithDescendants,
        false => DeleteScope::Named,
    };
    let ids = args.references.iter().map(|reference| match args.purge {
        true => resolve_anywhere(&store, reference),
        false => resolve(&store, reference),
    });
    let ids = ids.collect::<Result<Vec<SessionId>>>()?;
    match args.purge {
        true => purge(args, &store, store.purge_plan(&ids, scope)?, ui),
        false => delete(args, store.delete_plan(&ids, scope)?, ui),
    }
}

fn delete(args: &DeleteArgs, plan: DeletePlan, ui: &Ui) -> Result<Answer> {
    let (deletions, forks) = (plan.deletions().to_vec(), plan.forks().to_vec());
    if !args.dry_run {
        plan.apply().map_err(|error| locked(error, &deletions))?;
    }
    if ui.json() {
        return ui.answer_json(&json!({
            "deleted": deletions,
            "forks": forks,
            "dry_run": args.dry_run,
        }));
    }
    let moved = if args.dry_run { "would move" } else { "moved" };
    for deletion in &deletions {
        ui.print_line(&describe(deletion, moved))?;
    }
    for fork in &forks {
        ui.status(&still_reads(fork));
    }
    if !args.dry_run {
        // Parents first, so that each can be read at once.
        let ids = deletions.iter().rev().map(|deletion| short(&deletion.id));
        let ids: Vec<String> = ids.collect();
        ui.to_reverse(&format!("trash restore {}", ids.join(" ")));
    }
    Ok(Answer::Done)
}

/// Says which session was moved to the trash, or would be.
pub(super) fn describe(deletion: &Deletion, moved: &str) -> String {
    let relation = match &deletion.reason {
        DeletionReason::Fork { of } => format!(" (a fork of {})", short(of)),
        DeletionReason::SubAgent { of } => format!(" (a sub-agent of {})", short(of)),
        _ => String::new(),
    };
    let id = short(&deletion.id);
    format!("{moved} session {id}{relation} to the trash")
}

/// Says that a fork of what is deleted stays.
pub(super) fn still_reads(fork: &SessionId) -> String {
    format!("{} is a fork of it and still reads it there", short(fork))
}

/// Names the process that is writing to a session, which therefore is not deleted.
pub(super) fn locked(error: backtrail::Error, deletions: &[Deletion]) -> CommandError {
    let text = error.to_string();
    let named = |deletion: &&Deletion| text.contains(deletion.id.as_str());
    match deletions.iter().find(named) {
        Some(deletion) if error.kind() == ErrorKind::Locked => locked_hint(error, &deletion.id)
            .without_hints()
            .hint("stop it first; nothing was deleted"),
        _ => error.into(),
    }
}

/// Finds a session, also in the trash or purged before.
fn resolve_anywhere(store: &Store, reference: &str) -> Result<SessionId> {
    let found = store.resolve(reference);
    let gone = found
        .err()
        .and_then(|error| error.in_trash().or(error.was_purged()).cloned());
    gone.map_or_else(|| resolve(store, reference), Ok)
}

/// Returns the short ids of sessions, the first few of many.
fn all_short(ids: &[SessionId]) -> String {
    some_of(ids.iter().map(|id| short(id).to_owned()), 5, ids.len())
}

fn purge(args: &DeleteArgs, store: &Store, plan: PurgePlan, ui: &Ui) -> Result<Answer> {
    let copies = Copies::find(store, &plan);
    let mut json = json!({
        "deletions": plan.deletions(),
        "again": plan.again(),
        "forks": plan.forks(),
        "sub_agents": plan.sub_agents(),
        "copies": copies.sessions_json(),
        "agents_files": copies.files_json(),
        "remaining_files": plan.remaining_files(),
        "dry_run": args.dry_run,
    });
    if args.dry_run {
        if ui.json() {
            ui.print_json(&json)?;
        } else {
            for deletion in plan.deletions() {
                ui.print_line(&format!("would purge session {}", short(&deletion.id)))?;
            }
            for id in plan.again() {
                ui.status(&format!("session {} is already purged", short(id)));
            }
            warn(&plan, &copies, ui);
        }
        return Ok(Answer::Done);
    }
    let deletions = plan.deletions().to_vec();
    // A purge that is only to be finished needs no confirmation.
    if args.yes || !deletions.is_empty() {
        warn(&plan, &copies, ui);
    }
    if !args.yes && !deletions.is_empty() {
        let all: Vec<SessionId> = deletions.iter().map(|it| it.id.clone()).collect();
        let question = format!(
            "permanently purge {}? this cannot be undone",
            all_short(&all)
        );
        if !ui.confirm(&question)? {
            ui.status("nothing purged");
            return Ok(Answer::No);
        }
    }
    let all: Vec<SessionId> = deletions.iter().map(|it| it.id.clone()).collect();
    let report = while_waiting(ui, "purging", || {
        forgetting_sessions(store, &all, || plan.apply())
    });
    let report = report.map_err(|error| locked(error, &deletions))?;
    if let (true, Some(json), Value::Object(report)) =
        (ui.json(), json.as_object_mut(), json!(report))
    {
        json.extend(report);
        ui.print_json(json)?;
    } else {
        print_purged(&report, ui)?;
    }
    warn_left(&report, ui);
    remind_of_remotes(store, &all, ui);
    Ok(Answer::Done)
}

/// A purge here does not reach what was pushed.
fn remind_of_remotes(store: &Store, ids: &[SessionId], ui: &Ui) {
    let remotes = Settings::read(store.root()).map(|settings| settings.remotes.value);
    for remote in remotes
        .unwrap_or_default()
        .iter()
        .filter(|_| !ids.is_empty())
    {
        let ids: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
        ui.status(&format!(
            "what was pushed to {name} is still there: {program} remote purge {name} {ids}",
            name = remote.name,
            program = ui.program(),
            ids = ids.join(" ")
        ));
    }
}

fn print_purged(report: &PurgeReport, ui: &Ui) -> Result<()> {
    for id in &report.purged {
        ui.print_line(&format!("purged session {}", short(id)))?;
    }
    let files = size(report.bytes);
    match report.checkpoints {
        // Only an earlier purge was finished.
        0 if report.bytes == 0 => {}
        0 => ui.status(&format!("removed {files}")),
        n => ui.status(&format!(
            "removed {files} and the files of {}; run {} gc to free the space",
            count(n, "checkpoint"),
            ui.program()
        )),
    }
    if !report.renamed.is_empty() {
        let forks = all_short(&report.renamed);
        ui.status(&format!(
            "also removed the title and tags that {forks} inherited"
        ));
    }
    Ok(())
}

/// Warns of what a purge will leave.
fn warn(plan: &PurgePlan, copies: &Copies, ui: &Ui) {
    let ids = plan.deletions().iter().map(|it| short(&it.id).to_owned());
    let ids: Vec<String> = ids.collect();
    let cascade = format!(
        "{} delete --purge --cascade {}",
        ui.program(),
        ids.join(" ")
    );
    let purge_too = format!("to purge them too: {cascade}");
    if !plan.forks().is_empty() {
        let forks = all_short(plan.forks());
        let what = format!("its forks stay, without the part before the fork: {forks}");
        ui.warning(&what, Some(&purge_too));
    }
    copies.warn(&cascade, ui);
    if !plan.sub_agents().is_empty() {
        let sessions = all_short(plan.sub_agents());
        let what = format!("the sessions of its sub-agents stay: {sessions}");
        ui.warning(&what, Some(&purge_too));
    }
    let Some(first) = plan.remaining_files().first() else {
        return;
    };
    let more = match plan.remaining_files().len() {
        1 => String::new(),
        n => format!("; so do {} after it", count(n as u64 - 1, "checkpoint")),
    };
    let what = format!("its files remain in the store: {}{more}", held(first));
    let hint = match &first.session {
        Some(session) => format!(
            "to purge it too: backtrail delete --purge {}",
            short(session)
        ),
        None => "to erase them there too: delete the files, run backtrail checkpoint, then \
                 backtrail gc --older-than 0d"
            .to_owned(),
    };
    ui.warning(&what, Some(&hint));
}

fn held(held: &RemainingFiles) -> String {
    let paths = held.paths.iter().map(|path| visible_path(path));
    let paths = some_of(paths, held.paths.len(), held.count as usize);
    let by = match &held.session {
        Some(session) => format!("of session {}", short(session)),
        None => "of yours".to_owned(),
    };
    format!(
        "checkpoint {} {by} ({}) has {paths}",
        held.checkpoint.prefix(8),
        when::brief(held.at),
    )
}

fn warn_left(report: &PurgeReport, ui: &Ui) {
    if !report.still_named.is_empty() {
        let forks = all_short(&report.still_named);
        let what = format!("these forks still have its title or tags: {forks}");
        ui.warning(
            &what,
            Some("purge them too, or stop the processes writing to them and retry"),
        );
    }
    let quoted = &report.still_quoted;
    if !quoted.is_empty() {
        let names = some_of(quoted.iter().map(|id| id.prefix(8)), 1, quoted.len());
        let what = "text by other sessions that quotes this one is kept";
        ui.warning(&format!("{what}: checkpoint {names}"), None);
    }
    for path in &report.unread {
        let what = format!("{} cannot be read; left alone", visible_path(path));
        ui.warning(&what, Some("backtrail verify"));
    }
    for path in &report.left {
        warn_unknown(path, ui);
    }
}

//! `backtrail delete --purge`: no byte of a session stays.

use backtrail::trash::{PurgePlan, PurgeReport, RemainingFiles};
use backtrail::{SessionId, Store};
use serde_json::{Value, json};

use super::{Args, all_short, deletion_json, locked, resolve_anywhere, scope};
use crate::commands::{Answer, short};
use crate::error::Result;
use crate::text::{count, path_json, size, visible_path};
use crate::ui::Ui;
use crate::when;

pub(super) fn run(args: &Args, store: &Store, ui: &Ui) -> Result<Answer> {
    let ids = args.references.iter();
    let ids = ids.map(|reference| resolve_anywhere(store, reference));
    let ids = ids.collect::<Result<Vec<SessionId>>>()?;
    let plan = store.purge_plan(&ids, scope(args))?;
    if args.dry_run {
        if ui.json() {
            ui.print_json(&to_json(&plan, &PurgeReport::default(), args))?;
        } else {
            for deletion in plan.deletions() {
                ui.print_line(&format!("session {} would be purged", short(&deletion.id)))?;
            }
            for id in plan.again() {
                ui.status(&format!("session {} was purged before", short(id)));
            }
            warn(&plan, ui);
        }
        return Ok(Answer::Done);
    }
    // What is only to be finished is gone for good already.
    if !args.yes && !plan.deletions().is_empty() {
        warn(&plan, ui);
        let all: Vec<SessionId> = plan.deletions().iter().map(|it| it.id.clone()).collect();
        let question = format!(
            "purge {} for good? it cannot be taken back",
            all_short(&all)
        );
        if !ui.confirm(&question)? {
            ui.status("nothing was purged");
            return Ok(Answer::No);
        }
    }
    let told = to_json(&plan, &PurgeReport::default(), args);
    let deletions = plan.deletions().to_vec();
    if args.yes {
        warn(&plan, ui);
    }
    let report = plan.apply().map_err(|error| locked(error, &deletions))?;
    if ui.json() {
        let mut value = told;
        add_report(&mut value, &report);
        ui.print_json(&value)?;
    } else {
        print(&report, ui)?;
    }
    warn_left(&report, ui);
    Ok(Answer::Done)
}

fn print(report: &PurgeReport, ui: &Ui) -> Result<()> {
    for id in &report.purged {
        ui.print_line(&format!("session {} is purged", short(id)))?;
    }
    let files = size(report.bytes);
    match report.checkpoints {
        // Only what an earlier purge left was done.
        0 if report.bytes == 0 => {}
        0 => ui.status(&format!("{files} removed")),
        n => ui.status(&format!(
            "{files} removed, and the files of {} let go of; free their space: {} gc",
            count(n, "checkpoint"),
            ui.program()
        )),
    }
    if !report.renamed.is_empty() {
        let forks = all_short(&report.renamed);
        ui.status(&format!(
            "the title and tags that {forks} had of it are gone, too"
        ));
    }
    Ok(())
}

/// Says what a purge leaves, before it is done.
fn warn(plan: &PurgePlan, ui: &Ui) {
    if !plan.forks().is_empty() {
        let forks = all_short(plan.forks());
        let what = format!("what was forked from it stays, without what came before: {forks}");
        ui.warning(&what, Some("--cascade purges those as well"));
    }
    if !plan.sub_agents().is_empty() {
        let sessions = all_short(plan.sub_agents());
        let what = format!("the sessions of its sub-agents stay: {sessions}");
        ui.warning(&what, Some("--cascade purges those as well"));
    }
    let Some(first) = plan.remaining_files().first() else {
        return;
    };
    let more = match plan.remaining_files().len() {
        1 => String::new(),
        n => format!(", and {} after it", count(n as u64 - 1, "checkpoint")),
    };
    let what = format!(
        "files as it left them stay in the store: {}{more}",
        held(first)
    );
    let hint = match &first.session {
        Some(session) => format!("purge that session, too: delete --purge {}", short(session)),
        None => "older file states are let go of by gc --older-than, the newest with the next \
                 checkpoint after those files are gone from the directory"
            .to_owned(),
    };
    ui.warning(&what, Some(&hint));
}

fn held(held: &RemainingFiles) -> String {
    let paths: Vec<String> = held.paths.iter().map(|path| visible_path(path)).collect();
    let more = match held.count.saturating_sub(paths.len() as u64) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let by = match &held.session {
        Some(session) => format!("of session {}", short(session)),
        None => "of yours".to_owned(),
    };
    format!(
        "checkpoint {} {by} ({}) has {}{more}",
        held.checkpoint.prefix(8),
        when::brief(held.at),
        paths.join(", ")
    )
}

fn warn_left(report: &PurgeReport, ui: &Ui) {
    if !report.still_named.is_empty() {
        let forks = all_short(&report.still_named);
        let what = format!("the title or tags that these inherited are still there: {forks}");
        ui.warning(
            &what,
            Some("purge them, too, or end what speaks in them and purge again"),
        );
    }
    if let Some(first) = report.still_quoted.first() {
        let others = match report.still_quoted.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let what = format!(
            "what others said stays, though it has its words: checkpoint {}{others}",
            first.prefix(8)
        );
        ui.warning(&what, None);
    }
    for path in &report.unread {
        let what = format!("{} cannot be read, so it was left", visible_path(path));
        ui.warning(&what, Some("backtrail verify"));
    }
    for path in &report.left {
        let what = format!("{} is not ours, so it was left", visible_path(path));
        ui.warning(&what, None);
    }
}

fn to_json(plan: &PurgePlan, report: &PurgeReport, args: &Args) -> Value {
    let held = plan.remaining_files().iter().map(|held| {
        json!({
            "workspace": path_json(&held.root),
            "checkpoint": held.checkpoint.to_string(),
            "at": held.at,
            "session": held.session,
            "files": held.count,
            "first": held.paths.iter().map(|path| path_json(path)).collect::<Vec<_>>(),
        })
    });
    let mut value = json!({
        "purged": plan.deletions().iter().map(deletion_json).collect::<Vec<_>>(),
        "again": plan.again(),
        "forks": plan.forks(),
        "sub_agents": plan.sub_agents(),
        "remaining_files": held.collect::<Vec<_>>(),
        "dry_run": args.dry_run,
    });
    if !args.dry_run {
        add_report(&mut value, report);
    }
    value
}

fn add_report(value: &mut Value, report: &PurgeReport) {
    let paths = |paths: &[std::path::PathBuf]| -> Vec<Value> {
        paths.iter().map(|path| path_json(path)).collect()
    };
    value["bytes"] = report.bytes.into();
    value["checkpoints"] = report.checkpoints.into();
    value["renamed"] = json!(report.renamed);
    value["still_named"] = json!(report.still_named);
    value["still_quoted"] = json!(report.still_quoted);
    value["unread"] = paths(&report.unread).into();
    value["left"] = paths(&report.left).into();
}

//! Mending the file states of all workspaces.

use std::io::Write;

use backtrail::Store;
use backtrail::verify::{Recaptured, SnapshotsRepair, SnapshotsRepairOptions};
use serde_json::{Value, json};

use crate::args::Global;
use crate::commands::verify::Lost;
use crate::commands::{Answer, relative, require_files_store};
use crate::error::{Result, full_text};
use crate::home::tilde;
use crate::text::{count, path_json};
use crate::ui::{Ui, unwritable};

pub(super) fn run(dry_run: bool, give_up: bool, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_files_store(global)?;
    let mut options = SnapshotsRepairOptions::new();
    if give_up {
        options = options.give_up_lost();
    }
    let plan = store.repair_snapshots_plan(options)?;
    let applied;
    let repair = if dry_run {
        plan.repair()
    } else {
        applied = plan.apply()?;
        &applied
    };
    if ui.json() {
        ui.print_json(&to_json(&store, repair))?;
    } else {
        print(&store, repair, ui).map_err(|error| unwritable(&error))?;
    }
    Ok(match repair.has_losses() && !give_up {
        true => Answer::No,
        false => Answer::Done,
    })
}

fn to_json(store: &Store, repair: &SnapshotsRepair) -> Value {
    let recaptured = |found: &Recaptured| {
        json!({
            "object": found.object,
            "from": path_json(&found.from),
        })
    };
    let unseen = repair.unseen.iter().map(|(workspace, error)| {
        json!({
            "workspace": path_json(workspace.root()),
            "reason": full_text(error),
        })
    });
    let trails = repair.trails.iter().map(|(workspace, report)| {
        json!({
            "workspace": path_json(workspace.root()),
            "trail": report.trail,
            "copied": report.copied,
            "missing": report.missing.iter().map(|gap| [gap.start(), gap.end()]).collect::<Vec<_>>(),
            "damaged_count": report.damage.count(),
        })
    });
    let unreadable = repair.unreadable.iter().map(|broken| {
        json!({
            "trail": path_json(relative(store, &broken.trail)),
            "reason": full_text(&broken.error),
        })
    });
    json!({
        "dry_run": repair.dry_run,
        "recaptured": repair.recaptured.iter().map(recaptured).collect::<Vec<_>>(),
        "lost": repair.lost.iter().map(|lost| Lost::new(lost).to_json()).collect::<Vec<_>>(),
        "damaged_trails": repair.damaged_trails,
        "trails": trails.collect::<Vec<_>>(),
        "unseen": unseen.collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "given_up": repair.given_up,
    })
}

fn print(store: &Store, repair: &SnapshotsRepair, ui: &Ui) -> std::io::Result<()> {
    let mut out = ui.out();
    if repair.is_empty() {
        writeln!(out, "nothing to repair in the file states")?;
        out.flush()?;
        ui.status("a session is repaired by its name: backtrail repair REF");
        return Ok(());
    }
    let again = match repair.dry_run {
        true => "there   ",
        false => "captured",
    };
    for found in &repair.recaptured {
        writeln!(out, "{again} {}", tilde(&found.from))?;
    }
    for lost in &repair.lost {
        writeln!(out, "lost     {}", Lost::new(lost))?;
    }
    for (workspace, report) in &repair.trails {
        let root = tilde(workspace.root());
        for gap in &report.missing {
            let records = match gap.end() - gap.start() {
                0 => format!("record {}", gap.start()),
                _ => format!("records {} to {}", gap.start(), gap.end()),
            };
            writeln!(out, "lost     {records} of the trail of {root}")?;
        }
    }
    for broken in &repair.unreadable {
        let trail = relative(store, &broken.trail).display();
        writeln!(out, "lost     {trail}: {}", full_text(&broken.error))?;
    }
    for (workspace, error) in &repair.unseen {
        let root = tilde(workspace.root());
        writeln!(out, "unseen   {root}: {}", full_text(error))?;
    }
    writeln!(out, "{}", sum(repair))?;
    out.flush()?;
    if repair.dry_run {
        ui.status("do it: backtrail repair");
    } else if repair.given_up == 0 && repair.lost.iter().any(|lost| lost.is_dir) {
        ui.status(
            "gc stops as long as a directory of a checkpoint is lost; to let such checkpoints go: \
             backtrail repair --give-up",
        );
    }
    Ok(())
}

/// Says what it comes to, in one line.
fn sum(repair: &SnapshotsRepair) -> String {
    let mut parts = Vec::new();
    let objects = repair.recaptured.len() as u64;
    let would = match (repair.dry_run, objects) {
        // What is below a directory shows when it can be read.
        (true, _) => "at least would be",
        (false, 1) => "was",
        (false, _) => "were",
    };
    if objects > 0 {
        parts.push(format!(
            "{} {would} captured again",
            count(objects, "object")
        ));
    }
    if repair.damaged_trails > 0 {
        let trails = count(repair.damaged_trails, "trail");
        parts.push(match repair.dry_run {
            true => format!("{trails} of workspaces would be repaired"),
            false => format!("{trails} of workspaces repaired; the old files stay"),
        });
    }
    let lost = repair.lost.len() as u64;
    if lost > 0 {
        parts.push(format!("{} nowhere to be found", count(lost, "file state")));
    }
    if repair.given_up > 0 {
        let checkpoints = count(repair.given_up, "checkpoint");
        parts.push(format!("the files of {checkpoints} were let go"));
    }
    if parts.is_empty() {
        parts.push("nothing can be made of that".to_owned());
    }
    parts.join("; ")
}

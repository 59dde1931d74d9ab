//! Mending the file states of all workspaces.

use std::io::Write;

use backtrail::{Recaptured, SnapshotsRepair};
use serde_json::{Value, json};

use crate::args::Global;
use crate::commands::verify::Lost;
use crate::commands::{Answer, require_files_store};
use crate::error::{Result, full_text};
use crate::home::tilde;
use crate::text::{count, path_json};
use crate::ui::{Ui, unwritable};

pub(super) fn run(dry_run: bool, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_files_store(global)?;
    let repair = store.repair_snapshots(dry_run)?;
    if ui.json() {
        ui.print_json(&to_json(&repair))?;
    } else {
        print(&repair, ui).map_err(|error| unwritable(&error))?;
    }
    Ok(match repair.lost.is_empty() {
        true => Answer::Done,
        false => Answer::No,
    })
}

fn to_json(repair: &SnapshotsRepair) -> Value {
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
            "damaged_count": report.damage.count(),
        })
    });
    json!({
        "dry_run": repair.dry_run,
        "recaptured": repair.recaptured.iter().map(recaptured).collect::<Vec<_>>(),
        "lost": repair.lost.iter().map(|lost| Lost::new(lost).to_json()).collect::<Vec<_>>(),
        "damaged_trails": repair.damaged_trails,
        "trails": trails.collect::<Vec<_>>(),
        "unseen": unseen.collect::<Vec<_>>(),
    })
}

fn print(repair: &SnapshotsRepair, ui: &Ui) -> std::io::Result<()> {
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
    for (workspace, error) in &repair.unseen {
        let root = tilde(workspace.root());
        writeln!(out, "unseen   {root}: {}", full_text(error))?;
    }
    writeln!(out, "{}", sum(repair))?;
    out.flush()?;
    if repair.dry_run {
        ui.status("do it: backtrail repair");
    }
    Ok(())
}

/// Says what it comes to, in one line.
fn sum(repair: &SnapshotsRepair) -> String {
    let mut parts = Vec::new();
    let objects = repair.recaptured.len() as u64;
    let would = match (repair.dry_run, objects) {
        (true, _) => "would be",
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
    parts.join("; ")
}

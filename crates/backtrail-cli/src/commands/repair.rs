//! `backtrail repair`: repairs sessions and saved files.

use std::io::Write;
use std::ops::RangeInclusive;

use backtrail::verify::{DamageReport, SnapshotsRepair, SnapshotsRepairOptions};
use backtrail::{SessionId, Store};
use serde::Serialize;
use serde_json::{Value, json};

use super::verify::{AsideFile, DamagedPlace, lost_json, lost_text, write_damaged};
use super::{Answer, find_session, locked_hint, relative, require_files_store, short};
use crate::error::{Result, full_text};
use crate::home::tilde;
use crate::text::{count, path_json, size};
use crate::ui::Ui;

/// Repair a damaged session, or damaged saved files
///
/// With a session: its readable records are copied to a new trail; the damaged files stay.
/// Without one: damaged saved files of all workspaces are saved again if a workspace still has
/// the same content, and lost ones are listed. Exits 1 if something is lost.
#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// A session: its id, a prefix of 4+ characters, or latest [default: the saved
    /// files]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,

    /// Without a session: drop the files of checkpoints that have lost a whole directory, so
    /// that gc can run; the checkpoints stay in the log
    #[arg(long, conflicts_with_all = ["reference", "dry_run"])]
    give_up: bool,
}

pub(crate) fn run(args: &RepairArgs, ui: &Ui) -> Result<Answer> {
    let Some(reference) = &args.reference else {
        return repair_files(args, ui);
    };
    let (store, id) = find_session(reference, ui)?;
    // A repair must not create a session.
    store.read_session(&id)?;
    let plan = store.repair_plan(&id)?;
    let mut outcome = SessionRepair {
        session: id.clone(),
        dry_run: args.dry_run,
        trail: None,
        copied: match plan.damage().is_empty() {
            true => 0,
            false => plan.copied(),
        },
        missing: ends(plan.missing()),
        damaged: places(&store, plan.damage()),
        damaged_count: plan.damage().count(),
        unfinished_bytes: plan.unfinished_bytes(),
        set_aside: Vec::new(),
    };
    if !args.dry_run && !plan.is_empty() {
        // The session may have changed since it was planned.
        let report = plan.apply().map_err(|error| locked_hint(error, &id))?;
        let set_aside = report.set_aside.iter();
        outcome.trail = report.trail;
        outcome.copied = report.copied;
        outcome.missing = ends(&report.missing);
        outcome.damaged = places(&store, &report.damage);
        outcome.damaged_count = report.damage.count();
        outcome.unfinished_bytes = set_aside.clone().map(|aside| aside.bytes).sum();
        outcome.set_aside = set_aside
            .map(|aside| AsideFile::new(&store, &aside.file, aside.bytes))
            .collect();
    }
    match ui.json() {
        true => ui.print_json(&outcome)?,
        false => outcome.print(ui)?,
    }
    Ok(Answer::Done)
}

fn places(store: &Store, damage: &DamageReport) -> Vec<DamagedPlace> {
    let places = damage.first().iter();
    places
        .map(|damage| DamagedPlace::new(store, damage))
        .collect()
}

/// Returns the first and the last record of each range.
fn ends(ranges: &[RangeInclusive<u64>]) -> Vec<(u64, u64)> {
    ranges.iter().map(|it| (*it.start(), *it.end())).collect()
}

/// Names the records of a range.
fn records((first, last): (u64, u64)) -> String {
    match first == last {
        true => format!("record {first}"),
        false => format!("records {first} to {last}"),
    }
}

/// What was done, or would be.
#[derive(Serialize)]
struct SessionRepair {
    session: SessionId,
    dry_run: bool,
    trail: Option<u32>,
    copied: u64,
    missing: Vec<(u64, u64)>,
    damaged: Vec<DamagedPlace>,
    damaged_count: u64,
    unfinished_bytes: u64,
    set_aside: Vec<AsideFile>,
}

impl SessionRepair {
    fn print(&self, ui: &Ui) -> std::io::Result<()> {
        let mut out = ui.out();
        if self.damaged_count == 0 && self.unfinished_bytes == 0 {
            writeln!(out, "nothing to repair")?;
            return out.flush();
        }
        write_damaged(&mut out, &self.damaged, self.damaged_count)?;
        for range in &self.missing {
            writeln!(out, "missing  {}", records(*range))?;
        }
        let would = if self.dry_run { "would be " } else { "" };
        if self.unfinished_bytes > 0 {
            let line = size(self.unfinished_bytes);
            writeln!(
                out,
                "the unfinished end of the trail ({line}) {would}set aside"
            )?;
        }
        if self.damaged_count > 0 {
            let copied = count(self.copied, "readable record");
            writeln!(
                out,
                "{copied} after the first damage {would}copied to a new trail; the old files stay"
            )?;
        }
        out.flush()?;
        if self.dry_run {
            ui.status(&format!(
                "to repair it: backtrail repair {}",
                short(&self.session)
            ));
        }
        Ok(())
    }
}

/// Repairs the saved files of all workspaces.
fn repair_files(args: &RepairArgs, ui: &Ui) -> Result<Answer> {
    let store = require_files_store(ui)?;
    let mut options = SnapshotsRepairOptions::new();
    if args.give_up {
        options = options.give_up_lost();
    }
    let plan = store.repair_snapshots_plan(options)?;
    let applied;
    let repair = if args.dry_run {
        plan.repair()
    } else {
        applied = plan.apply()?;
        &applied
    };
    if ui.json() {
        ui.print_json(&files_json(&store, repair))?;
    } else {
        print_files(&store, repair, ui)?;
    }
    Ok(Answer::no_if(repair.has_losses() && !args.give_up))
}

fn files_json(store: &Store, repair: &SnapshotsRepair) -> Value {
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
            "missing": ends(&report.missing),
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
        "recaptured": repair.recaptured,
        "lost": repair.lost.iter().map(lost_json).collect::<Vec<_>>(),
        "damaged_trails": repair.damaged_trails,
        "trails": trails.collect::<Vec<_>>(),
        "unseen": unseen.collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "given_up": repair.given_up,
    })
}

fn print_files(store: &Store, repair: &SnapshotsRepair, ui: &Ui) -> std::io::Result<()> {
    let mut out = ui.out();
    if repair.is_empty() {
        writeln!(out, "nothing to repair in the saved files")?;
        out.flush()?;
        ui.status("to repair a session: backtrail repair REF");
        return Ok(());
    }
    let again = match repair.dry_run {
        true => "found   ",
        false => "saved   ",
    };
    for found in &repair.recaptured {
        writeln!(out, "{again} {}", tilde(&found.from))?;
    }
    for lost in &repair.lost {
        writeln!(out, "lost     {}", lost_text(lost))?;
    }
    for (workspace, report) in &repair.trails {
        let root = tilde(workspace.root());
        for range in ends(&report.missing) {
            let records = records(range);
            writeln!(out, "lost     {records} of the trail of {root}")?;
        }
    }
    for broken in &repair.unreadable {
        let trail = relative(store, &broken.trail).display();
        writeln!(out, "lost     {trail}: {}", full_text(&broken.error))?;
    }
    for (workspace, error) in &repair.unseen {
        let root = tilde(workspace.root());
        writeln!(out, "skipped  {root}: {}", full_text(error))?;
    }
    writeln!(out, "{}", files_summary(repair))?;
    out.flush()?;
    if repair.dry_run {
        ui.status("to repair it: backtrail repair");
    } else if repair.given_up == 0 && repair.lost.iter().any(|lost| lost.is_dir) {
        ui.status(
            "gc cannot run while a checkpoint has lost a directory; to drop the files of such \
             checkpoints: backtrail repair --give-up",
        );
    }
    Ok(())
}

/// Returns the result in one line.
fn files_summary(repair: &SnapshotsRepair) -> String {
    let mut parts = Vec::new();
    let objects = repair.recaptured.len();
    let would = match (repair.dry_run, objects) {
        // What is in a lost directory is only known once it is repaired.
        (true, _) => "or more would be",
        (false, 1) => "was",
        (false, _) => "were",
    };
    if objects > 0 {
        parts.push(format!("{} {would} saved again", count(objects, "object")));
    }
    if repair.damaged_trails > 0 {
        let trails = count(repair.damaged_trails, "workspace trail");
        parts.push(match repair.dry_run {
            true => format!("{trails} would be repaired"),
            false => format!("{trails} repaired; the old files stay"),
        });
    }
    if !repair.lost.is_empty() {
        let lost = count(repair.lost.len(), "saved file");
        parts.push(format!("{lost} lost"));
    }
    if repair.given_up > 0 {
        let checkpoints = count(repair.given_up, "checkpoint");
        parts.push(format!("dropped the files of {checkpoints}"));
    }
    if parts.is_empty() {
        parts.push("none of it can be recovered".to_owned());
    }
    parts.join("; ")
}

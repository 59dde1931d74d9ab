//! `backtrail repair`: repairs sessions and saved files.

use std::io::Write;
use std::ops::RangeInclusive;

use backtrail::verify::DamageReport;
use backtrail::verify::{Recaptured, SnapshotsRepair, SnapshotsRepairOptions};
use backtrail::{SessionId, Store};
use serde_json::{Value, json};

use super::verify::{DamagedPlace, LostFile, set_aside_json};
use super::{Answer, locked_hint, relative, require_files_store, require_store, resolve, short};
use crate::args::Global;
use crate::error::{Result, full_text};
use crate::home::tilde;
use crate::text::{count, path_json, size};
use crate::ui::{Ui, unwritable};

/// Repair a damaged session, or damaged saved files
///
/// With a session: its readable records are copied to a new trail; the damaged files stay.
/// Without one: damaged saved files of all workspaces are saved again if a workspace still has
/// the same content, and those that are lost are named. Exits 1 if something is lost.
#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// A session: its id, the first 4 or more characters of it, or latest [default: the saved
    /// files]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Without a session: drop the files of checkpoints that have lost a whole directory, so
    /// that gc can run; the checkpoints stay in the log
    #[arg(long, conflicts_with_all = ["reference", "dry_run"])]
    give_up: bool,
}

pub(crate) fn run(args: &RepairArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let Some(reference) = &args.reference else {
        return repair_files(args, global, ui);
    };
    let store = require_store(global)?;
    let id = resolve(&store, reference)?;
    // A repair must not create a session.
    store.read_session(&id)?;
    let plan = store.repair_plan(&id)?;
    let outcome = if args.dry_run || plan.is_empty() {
        SessionRepair {
            id,
            dry_run: args.dry_run,
            trail: None,
            copied: if plan.damage().is_empty() {
                0
            } else {
                plan.copied()
            },
            missing: plan.missing().to_vec(),
            unfinished: plan.unfinished_bytes(),
            set_aside: Vec::new(),
            damage: plan.damage().clone(),
        }
    } else {
        let report = plan.apply().map_err(|error| locked_hint(error, &id))?;
        let set_aside = report.set_aside.iter();
        SessionRepair {
            id,
            dry_run: false,
            trail: report.trail,
            copied: report.copied,
            missing: report.missing,
            unfinished: report.set_aside.iter().map(|aside| aside.bytes).sum(),
            set_aside: set_aside
                .map(|aside| set_aside_json(&store, aside))
                .collect(),
            damage: report.damage,
        }
    };
    if ui.json() {
        ui.print_json(&outcome.to_json(&store))?;
    } else {
        outcome
            .print(&store, ui)
            .map_err(|error| unwritable(&error))?;
    }
    Ok(Answer::Done)
}

/// What was done, or would be.
struct SessionRepair {
    id: SessionId,
    dry_run: bool,
    trail: Option<u32>,
    copied: u64,
    missing: Vec<RangeInclusive<u64>>,
    unfinished: u64,
    set_aside: Vec<Value>,
    damage: DamageReport,
}

impl SessionRepair {
    fn to_json(&self, store: &Store) -> Value {
        let places = self.damage.first().iter();
        let missing = self
            .missing
            .iter()
            .map(|range| json!([range.start(), range.end()]));
        json!({
            "session": self.id,
            "dry_run": self.dry_run,
            "trail": self.trail,
            "copied": self.copied,
            "missing": missing.collect::<Vec<_>>(),
            "damaged": places.map(|damage| DamagedPlace::new(store, damage).to_json()).collect::<Vec<_>>(),
            "damaged_count": self.damage.count(),
            "unfinished_bytes": self.unfinished,
            "set_aside": self.set_aside,
        })
    }

    fn print(&self, store: &Store, ui: &Ui) -> std::io::Result<()> {
        let mut out = ui.out();
        if self.damage.is_empty() && self.unfinished == 0 {
            writeln!(out, "nothing to repair")?;
            return out.flush();
        }
        for damage in self.damage.first() {
            writeln!(out, "damaged  {}", DamagedPlace::new(store, damage))?;
        }
        let unlisted = self.damage.count() - self.damage.first().len() as u64;
        if unlisted > 0 {
            writeln!(out, "damaged  {}", count(unlisted, "more place"))?;
        }
        for range in &self.missing {
            match (range.start(), range.end()) {
                (first, last) if first == last => writeln!(out, "missing  record {first}")?,
                (first, last) => writeln!(out, "missing  records {first} to {last}")?,
            }
        }
        let would = if self.dry_run { "would be " } else { "" };
        if self.unfinished > 0 {
            let line = size(self.unfinished);
            writeln!(
                out,
                "the unfinished end of the trail ({line}) {would}set aside"
            )?;
        }
        if !self.damage.is_empty() {
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
                short(&self.id)
            ));
        }
        Ok(())
    }
}

/// Repairs the saved files of all workspaces.
fn repair_files(args: &RepairArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_files_store(global)?;
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
        print_files(&store, repair, ui).map_err(|error| unwritable(&error))?;
    }
    Ok(match repair.has_losses() && !args.give_up {
        true => Answer::No,
        false => Answer::Done,
    })
}

fn files_json(store: &Store, repair: &SnapshotsRepair) -> Value {
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
        "lost": repair.lost.iter().map(|lost| LostFile::new(lost).to_json()).collect::<Vec<_>>(),
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
        writeln!(out, "lost     {}", LostFile::new(lost))?;
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
    let objects = repair.recaptured.len() as u64;
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
        let trails = count(repair.damaged_trails, "trail");
        parts.push(match repair.dry_run {
            true => format!("{trails} of workspaces would be repaired"),
            false => format!("{trails} of workspaces repaired; the old files stay"),
        });
    }
    let lost = repair.lost.len() as u64;
    if lost > 0 {
        parts.push(format!("{} lost", count(lost, "saved file")));
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

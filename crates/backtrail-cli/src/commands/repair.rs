//! `backtrail repair`: bring together what is readable.

mod files;

use std::io::Write;
use std::ops::RangeInclusive;

use backtrail::{DamageReport, SessionId, Store};
use serde_json::{Value, json};

use super::verify::{Place, set_aside_json};
use super::{Answer, locked_hint, require_store, resolve, short};
use crate::args::Global;
use crate::error::Result;
use crate::text::{count, size};
use crate::ui::{Ui, unwritable};

/// Bring what is readable of a damaged session together, or mend damaged file states
///
/// With a session: its readable records go on in a new trail, and the damaged files stay
/// as they are. Without one, the file states of all workspaces: what is damaged in the
/// store is captured again where the same content still lies in a workspace, and what is
/// lost is named. Exits 1 if something is lost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest [default: the
    /// file states]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Without a session: let go of the files of checkpoints of which a whole directory is
    /// lost for good, so that gc can go on; their records stay
    #[arg(long, conflicts_with_all = ["reference", "dry_run"])]
    give_up: bool,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let Some(reference) = &args.reference else {
        return files::run(args.dry_run, args.give_up, global, ui);
    };
    let store = require_store(global)?;
    let id = resolve(&store, reference)?;
    // A session that nobody can find must not be "repaired" into being.
    store.read_session(&id)?;
    let plan = store.repair_plan(&id)?;
    let outcome = if args.dry_run || plan.is_empty() {
        Outcome {
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
        Outcome {
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
struct Outcome {
    id: SessionId,
    dry_run: bool,
    trail: Option<u32>,
    copied: u64,
    missing: Vec<RangeInclusive<u64>>,
    unfinished: u64,
    set_aside: Vec<Value>,
    damage: DamageReport,
}

impl Outcome {
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
            "damaged": places.map(|damage| Place::new(store, damage).to_json()).collect::<Vec<_>>(),
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
            writeln!(out, "damaged  {}", Place::new(store, damage))?;
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
                "{copied} after the first damage {would}brought together in a new trail; \
                 the old files stay"
            )?;
        }
        out.flush()?;
        if self.dry_run {
            ui.status(&format!("do it: backtrail repair {}", short(&self.id)));
        }
        Ok(())
    }
}

//! `backtrail verify`: is everything as it was written?

mod lost;
mod place;

use std::io::Write;
use std::path::PathBuf;

use backtrail::verify::VerifyOptions;
use backtrail::{Damage, HistoryGap, Reason, SessionId, Store};
use serde_json::{Value, json};

pub(super) use lost::Lost;
use place::aside_json;
pub(super) use place::{Place, set_aside_json};

use super::{Answer, open_store, relative, require_store, resolve, short};
use crate::args::Global;
use crate::error::{Result, full_text};
use crate::progress::while_read;
use crate::text::{count, size};
use crate::ui::{DIM, Ui, unwritable};

/// Check that everything is as it was written; it only reads
///
/// Without a session, the snapshots of all workspaces are checked as well: every
/// checkpoint must be complete and every object what its name says. What is damaged is
/// named, and so is each file that it is part of. Exits 1 if something is damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest [default: all]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Check only that everything is there and hangs together, not every byte
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let mut total = Total::default();
    let store = match &args.reference {
        Some(_) => Some(require_store(global)?),
        None => open_store(global)?,
    };
    if let Some(store) = &store {
        let ids = match &args.reference {
            Some(reference) => vec![resolve(store, reference)?],
            None => {
                let mut ids = store.sessions()?;
                ids.sort_unstable();
                ids
            }
        };
        for id in ids {
            total.check(store, &id, args.quick);
        }
        if args.reference.is_none() {
            total.check_snapshots(store, ui, args.quick)?;
        }
    }
    let printed = if ui.json() {
        ui.print_json(&total.to_json())
    } else {
        total.print(ui).map_err(|error| unwritable(&error))
    };
    // The answer is in the exit code, too: it stands whoever stops reading.
    printed.or_else(|error| {
        if error.is_broken_pipe() {
            Ok(())
        } else {
            Err(error)
        }
    })?;
    Ok(if total.is_ok() {
        Answer::Done
    } else {
        Answer::No
    })
}

/// How many lost file states are printed one by one.
const LISTED: usize = 100;

/// What all checked sessions come to.
#[derive(Default)]
struct Total {
    sessions: u64,
    records: u64,
    damaged: Vec<Place>,
    damaged_count: u64,
    /// Those that a repair could help.
    damaged_sessions: Vec<SessionId>,
    lost_payloads: bool,
    repaired: Vec<Place>,
    set_aside: Vec<(PathBuf, u64)>,
    gaps: Vec<(SessionId, HistoryGap)>,
    workspaces: u64,
    checkpoints: u64,
    dropped: u64,
    objects: u64,
    bytes: u64,
    spare: u64,
    lost: Vec<Lost>,
    damaged_trails: bool,
    quick: bool,
}

impl Total {
    fn is_ok(&self) -> bool {
        self.damaged_count == 0 && self.lost.is_empty()
    }

    /// Checks the snapshots of all workspaces.
    fn check_snapshots(&mut self, store: &Store, ui: &Ui, quick: bool) -> Result<()> {
        let report = while_read(ui, "verifying", |progress| {
            let mut options = VerifyOptions::new();
            if quick {
                options = options.quick();
            }
            if let Some(progress) = progress {
                options = options.progress(progress);
            }
            store.verify_snapshots_with(&options)
        })?;
        self.workspaces = report.workspaces;
        self.checkpoints = report.checkpoints;
        self.dropped = report.dropped;
        self.objects = report.objects;
        self.bytes = report.bytes;
        self.spare = report.spare;
        self.lost = report.lost.iter().map(Lost::new).collect();
        self.damaged_trails = report.trails.iter().any(|(_, trail)| !trail.is_ok());
        for (_, trail) in &report.trails {
            self.damaged_count += trail.damage.count();
            let places = trail.damage.first().iter();
            self.damaged
                .extend(places.map(|damage| Place::new(store, damage)));
            let asides = trail.set_aside.iter();
            let asides = asides.map(|(file, bytes)| (relative(store, file).to_owned(), *bytes));
            self.set_aside.extend(asides);
        }
        self.damaged_count += report.damaged + report.incomplete.len() as u64;
        self.damaged
            .extend(report.damage.iter().map(|damage| Place {
                file: relative(store, &damage.file).to_owned(),
                line: None,
                byte: Some(damage.byte),
                reason: match &damage.object {
                    Some(object) => format!("{} (object {object})", damage.reason),
                    None => damage.reason.clone(),
                },
            }));
        self.damaged
            .extend(report.incomplete.iter().map(|broken| Place {
                file: relative(store, &broken.trail).to_owned(),
                line: None,
                byte: None,
                reason: full_text(&broken.error),
            }));
        Ok(())
    }

    fn check(&mut self, store: &Store, id: &SessionId, quick: bool) {
        self.sessions += 1;
        self.quick = quick;
        let reader = store.read_session(id);
        let checked = reader.and_then(|reader| match quick {
            true => reader.verify_structure(),
            false => reader.verify(),
        });
        let report = match checked {
            Ok(report) => report,
            // A session that cannot be read is not one that can be passed over,
            // and no repair helps it.
            Err(error) => {
                // Deleted meanwhile, it is not damaged.
                if error.is_moved() {
                    self.sessions -= 1;
                    return;
                }
                self.damaged_count += 1;
                let file = error.path().unwrap_or(store.root());
                self.damaged.push(Place {
                    file: relative(store, file).to_owned(),
                    line: None,
                    byte: None,
                    reason: format!("unreadable: {}", full_text(&error)),
                });
                return;
            }
        };
        self.records += report.records;
        let is_lost = |damage: &Damage| matches!(damage.reason, Reason::LostPayload(_));
        self.lost_payloads |= report.damage.first().iter().any(is_lost);
        if !report.damage.first().iter().all(is_lost) {
            self.damaged_sessions.push(id.clone());
        }
        self.damaged_count += report.damage.count();
        let place = |damage: &Damage| Place::new(store, damage);
        self.damaged.extend(report.damage.first().iter().map(place));
        self.repaired
            .extend(report.repaired.first().iter().map(place));
        let gaps = report.gaps.into_iter();
        self.gaps.extend(gaps.map(|gap| (id.clone(), gap)));
        let asides = report.set_aside.into_iter();
        self.set_aside
            .extend(asides.map(|(file, bytes)| (relative(store, &file).to_owned(), bytes)));
    }

    fn to_json(&self) -> Value {
        json!({
            "ok": self.is_ok(),
            "quick": self.quick,
            "sessions": self.sessions,
            "records": self.records,
            "workspaces": self.workspaces,
            "checkpoints": self.checkpoints,
            "dropped": self.dropped,
            "objects": self.objects,
            "bytes": self.bytes,
            "damaged": self.damaged.iter().map(Place::to_json).collect::<Vec<_>>(),
            "damaged_count": self.damaged_count,
            "spare": self.spare,
            "lost": self.lost.iter().map(Lost::to_json).collect::<Vec<_>>(),
            "repaired": self.repaired.iter().map(Place::to_json).collect::<Vec<_>>(),
            "gaps": self.gaps.iter().map(gap_json).collect::<Vec<_>>(),
            "set_aside": self.set_aside.iter().map(aside_json).collect::<Vec<_>>(),
        })
    }

    fn snapshots(&self) -> String {
        if self.checkpoints == 0 {
            return String::new();
        }
        let checkpoints = count(self.checkpoints, "checkpoint");
        let workspaces = count(self.workspaces, "workspace");
        let objects = count(self.objects, "object");
        let let_go = match self.dropped {
            0 => String::new(),
            n => format!(" (the files of {n} were let go)"),
        };
        format!(", {checkpoints} of {workspaces}{let_go}, {objects}")
    }

    fn print(&self, ui: &Ui) -> std::io::Result<()> {
        let mut out = ui.out();
        for place in &self.damaged {
            writeln!(out, "damaged  {place}")?;
        }
        let unlisted = self.damaged_count - self.damaged.len() as u64;
        if unlisted > 0 {
            writeln!(out, "damaged  {}", count(unlisted, "more place"))?;
        }
        for lost in self.lost.iter().take(LISTED) {
            writeln!(out, "lost     {lost}")?;
        }
        let unlisted = self.lost.len().saturating_sub(LISTED) as u64;
        if unlisted > 0 {
            writeln!(out, "lost     {}", count(unlisted, "more file state"))?;
        }
        for place in &self.repaired {
            writeln!(out, "{DIM}repaired {place}{DIM:#}")?;
        }
        for (id, gap) in &self.gaps {
            writeln!(out, "{DIM}gone     {}: {gap}{DIM:#}", short(id))?;
        }
        for (file, bytes) in &self.set_aside {
            let file = file.display();
            writeln!(out, "{DIM}aside    {file}: {}{DIM:#}", size(*bytes))?;
        }
        if self.spare > 0 {
            let copies = count(self.spare, "damaged copy").replace("copys", "copies");
            let line = format!("{copies} of objects that are whole elsewhere");
            writeln!(out, "{DIM}spare    {line}{DIM:#}")?;
        }
        writeln!(out, "{}", self.sum())?;
        out.flush()?;
        self.hints(ui);
        Ok(())
    }

    /// Says what it comes to, in one line.
    fn sum(&self) -> String {
        let records = count(self.records, "record");
        let sessions = count(self.sessions, "session");
        let records_in = match self.quick {
            true => sessions.clone(),
            false => format!("{records} in {sessions}"),
        };
        if self.is_ok() {
            let quick = match self.quick {
                true => "; only the structure was checked",
                false => "",
            };
            return format!("ok: {records_in}{}{quick}", self.snapshots());
        }
        let mut found = Vec::new();
        if self.damaged_count > 0 {
            found.push(count(self.damaged_count, "damaged place"));
        }
        if !self.lost.is_empty() {
            found.push(format!(
                "{} lost",
                count(self.lost.len() as u64, "file state")
            ));
        }
        let are = if self.records == 1 { "is" } else { "are" };
        let all = match (self.sessions, self.workspaces) {
            (_, 1..) if self.damaged_count == 0 => count(self.workspaces, "workspace"),
            (0, 1..) => count(self.workspaces, "workspace"),
            (_, 0) => sessions,
            _ => format!("{sessions} and {}", count(self.workspaces, "workspace")),
        };
        let whole = match (self.sessions, self.quick) {
            (0, _) | (_, true) => String::new(),
            _ => format!("; {records} {are} whole"),
        };
        format!("{} in {all}{whole}", found.join(", "))
    }

    fn hints(&self, ui: &Ui) {
        if self.lost_payloads {
            ui.status("a payload that is lost is not mended; a copy of the file, or saying it again, brings it back");
        }
        for id in self.damaged_sessions.iter().take(5) {
            ui.status(&format!(
                "see what can be mended: backtrail repair {} --dry-run",
                short(id)
            ));
        }
        if !self.lost.is_empty() || self.damaged_trails {
            ui.status("see what can be captured again: backtrail repair --dry-run");
        }
    }
}

fn gap_json((id, gap): &(SessionId, HistoryGap)) -> Value {
    json!({"session": id, "gap": gap})
}

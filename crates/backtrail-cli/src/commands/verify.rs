//! `backtrail verify`: is everything as it was written?

use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::{Damage, Reason, SessionId, SetAside, Store};
use serde_json::{Value, json};

use super::{Answer, open_store, relative, require_store, resolve, short};
use crate::args::Global;
use crate::error::{Result, full_text};
use crate::text::{count, path_json, size};
use crate::ui::{DIM, Ui, unwritable};

/// Check that everything is as it was written; it only reads
///
/// Without a session, the snapshots of all workspaces are checked as well: every
/// checkpoint must be complete and every object what its name says. Exits 1 if
/// something is damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest [default: all]
    #[arg(value_name = "REF")]
    reference: Option<String>,
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
            total.check(store, &id);
        }
        if args.reference.is_none() {
            total.check_snapshots(store)?;
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
    Ok(if total.damaged_count == 0 {
        Answer::Done
    } else {
        Answer::No
    })
}

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
    workspaces: u64,
    checkpoints: u64,
    objects: u64,
}

impl Total {
    /// Checks the snapshots of all workspaces.
    fn check_snapshots(&mut self, store: &Store) -> Result<()> {
        let report = store.verify_snapshots()?;
        self.workspaces = report.workspaces;
        self.checkpoints = report.checkpoints;
        self.objects = report.objects;
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
                reason: match broken.checkpoint {
                    Some(id) => format!("checkpoint {id}: {}", full_text(&broken.error)),
                    None => full_text(&broken.error),
                },
            }));
        Ok(())
    }

    fn check(&mut self, store: &Store, id: &SessionId) {
        self.sessions += 1;
        let checked = store.read_session(id).and_then(|reader| reader.verify());
        let report = match checked {
            Ok(report) => report,
            // A session that cannot be read is not one that can be passed over,
            // and no repair helps it.
            Err(error) => {
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
        let asides = report.set_aside.into_iter();
        self.set_aside
            .extend(asides.map(|(file, bytes)| (relative(store, &file).to_owned(), bytes)));
    }

    fn to_json(&self) -> Value {
        json!({
            "ok": self.damaged_count == 0,
            "sessions": self.sessions,
            "records": self.records,
            "workspaces": self.workspaces,
            "checkpoints": self.checkpoints,
            "objects": self.objects,
            "damaged": self.damaged.iter().map(Place::to_json).collect::<Vec<_>>(),
            "damaged_count": self.damaged_count,
            "repaired": self.repaired.iter().map(Place::to_json).collect::<Vec<_>>(),
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
        format!(", {checkpoints} of {workspaces}, {objects}")
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
        for place in &self.repaired {
            writeln!(out, "{DIM}repaired {place}{DIM:#}")?;
        }
        for (file, bytes) in &self.set_aside {
            let file = file.display();
            writeln!(out, "{DIM}aside    {file}: {}{DIM:#}", size(*bytes))?;
        }
        let records = count(self.records, "record");
        let sessions = count(self.sessions, "session");
        if self.damaged_count == 0 {
            let snapshots = self.snapshots();
            writeln!(out, "ok: {records} in {sessions}{snapshots}")?;
        } else {
            let places = count(self.damaged_count, "damaged place");
            let are = if self.records == 1 { "is" } else { "are" };
            let all = match (self.sessions, self.workspaces) {
                (0, 1..) => count(self.workspaces, "workspace"),
                (_, 0) => sessions,
                _ => format!("{sessions} and {}", count(self.workspaces, "workspace")),
            };
            let whole = match self.sessions {
                0 => String::new(),
                _ => format!("; {records} {are} whole"),
            };
            writeln!(out, "{places} in {all}{whole}")?;
        }
        out.flush()?;
        if self.lost_payloads {
            ui.status("a payload that is lost is not mended; a copy of the file, or saying it again, brings it back");
        }
        for id in self.damaged_sessions.iter().take(5) {
            ui.status(&format!(
                "see what can be mended: backtrail repair {} --dry-run",
                short(id)
            ));
        }
        Ok(())
    }
}

/// A damaged place, as seen from the store.
pub(super) struct Place {
    file: PathBuf,
    line: Option<u64>,
    byte: Option<u64>,
    reason: String,
}

impl Place {
    pub(super) fn new(store: &Store, damage: &Damage) -> Self {
        Self {
            file: relative(store, &damage.file).to_owned(),
            line: damage.line,
            byte: Some(damage.byte),
            reason: damage.reason.to_string(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "file": path_json(&self.file),
            "line": self.line,
            "byte": self.byte,
            "reason": self.reason,
        })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        if let Some(byte) = self.byte {
            write!(f, " (byte {byte})")?;
        }
        write!(f, ": {}", self.reason)
    }
}

fn aside_json((file, bytes): &(PathBuf, u64)) -> Value {
    json!({"file": path_json(file), "bytes": bytes})
}

/// Writes what a repair set aside.
pub(super) fn set_aside_json(store: &Store, aside: &SetAside) -> Value {
    let file: &Path = relative(store, &aside.file);
    aside_json(&(file.to_owned(), aside.bytes))
}

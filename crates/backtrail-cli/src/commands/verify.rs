//! `backtrail verify`: checks the store for damage.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::snapshot::ObjectId;
use backtrail::verify::{Damage, HistoryGap, SetAside};
use backtrail::verify::{LostState, VerifyOptions};
use backtrail::{Reason, SessionId, Store};
use serde_json::{Value, json};

use super::{Answer, open_store, relative, require_store, resolve, short};
use crate::args::Global;
use crate::error::{Result, full_text};
use crate::home::tilde;
use crate::progress::while_read;
use crate::text::{count, path_json, size, visible_path};
use crate::ui::{DIM, Ui, unwritable};

/// Check the store for damage; it only reads
///
/// Without a session it also checks the snapshots of all workspaces: every checkpoint must be
/// complete and every object must match its checksum. It names the damage and each file that
/// is affected. Exits 1 if something is damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// A session: its id, the first 4 or more characters of it, or latest [default: all]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Check the structure only, not every byte
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &VerifyArgs, global: &Global, ui: &Ui) -> Result<Answer> {
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
    // The exit code has the answer even if nobody reads the output.
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

/// The results of all checks.
#[derive(Default)]
struct Total {
    sessions: u64,
    records: u64,
    damaged: Vec<DamagedPlace>,
    damaged_count: u64,
    /// Those that can be repaired.
    damaged_sessions: Vec<SessionId>,
    lost_payloads: bool,
    repaired: Vec<DamagedPlace>,
    set_aside: Vec<(PathBuf, u64)>,
    gaps: Vec<(SessionId, HistoryGap)>,
    workspaces: u64,
    checkpoints: u64,
    dropped: u64,
    objects: u64,
    bytes: u64,
    spare: u64,
    lost: Vec<LostFile>,
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
        self.lost = report.lost.iter().map(LostFile::new).collect();
        self.damaged_trails = report.trails.iter().any(|(_, trail)| !trail.is_ok());
        for (_, trail) in &report.trails {
            self.damaged_count += trail.damage.count();
            let places = trail.damage.first().iter();
            self.damaged
                .extend(places.map(|damage| DamagedPlace::new(store, damage)));
            let asides = trail.set_aside.iter();
            let asides = asides.map(|(file, bytes)| (relative(store, file).to_owned(), *bytes));
            self.set_aside.extend(asides);
        }
        self.damaged_count += report.damaged + report.incomplete.len() as u64;
        self.damaged
            .extend(report.damage.iter().map(|damage| DamagedPlace {
                file: relative(store, &damage.file).to_owned(),
                line: None,
                byte: Some(damage.byte),
                reason: match &damage.object {
                    Some(object) => format!("{} (object {object})", damage.reason),
                    None => damage.reason.clone(),
                },
            }));
        self.damaged
            .extend(report.incomplete.iter().map(|broken| DamagedPlace {
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
            // A session that cannot be read is damaged, and cannot be repaired.
            Err(error) => {
                // It was deleted meanwhile.
                if error.is_moved() {
                    self.sessions -= 1;
                    return;
                }
                self.damaged_count += 1;
                let file = error.path().unwrap_or(store.root());
                self.damaged.push(DamagedPlace {
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
        let place = |damage: &Damage| DamagedPlace::new(store, damage);
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
            "damaged": self.damaged.iter().map(DamagedPlace::to_json).collect::<Vec<_>>(),
            "damaged_count": self.damaged_count,
            "spare": self.spare,
            "lost": self.lost.iter().map(LostFile::to_json).collect::<Vec<_>>(),
            "repaired": self.repaired.iter().map(DamagedPlace::to_json).collect::<Vec<_>>(),
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
        let dropped = match self.dropped {
            0 => String::new(),
            n => format!(" ({n} without files)"),
        };
        format!(", {checkpoints} of {workspaces}{dropped}, {objects}")
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
            let line = format!("{copies} of objects that have an intact copy");
            writeln!(out, "{DIM}spare    {line}{DIM:#}")?;
        }
        writeln!(out, "{}", self.sum())?;
        out.flush()?;
        self.hints(ui);
        Ok(())
    }

    /// Returns the result in one line.
    fn sum(&self) -> String {
        let records = count(self.records, "record");
        let sessions = count(self.sessions, "session");
        let records_in = match self.quick {
            true => sessions.clone(),
            false => format!("{records} in {sessions}"),
        };
        if self.is_ok() {
            let quick = match self.quick {
                true => "; structure only",
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
            _ => format!("; {records} {are} intact"),
        };
        format!("{} in {all}{whole}", found.join(", "))
    }

    fn hints(&self, ui: &Ui) {
        if self.lost_payloads {
            ui.status("lost payloads cannot be repaired; restore the file from a backup or record the message again");
        }
        for id in self.damaged_sessions.iter().take(5) {
            ui.status(&format!(
                "see what can be repaired: backtrail repair {} --dry-run",
                short(id)
            ));
        }
        if !self.lost.is_empty() || self.damaged_trails {
            ui.status("see what can be repaired: backtrail repair --dry-run");
        }
    }
}

fn gap_json((id, gap): &(SessionId, HistoryGap)) -> Value {
    json!({"session": id, "gap": gap})
}

/// A damaged place; its file is relative to the store.
pub(super) struct DamagedPlace {
    file: PathBuf,
    line: Option<u64>,
    byte: Option<u64>,
    reason: String,
}

impl DamagedPlace {
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

impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// Returns what a repair set aside as JSON.
pub(super) fn set_aside_json(store: &Store, aside: &SetAside) -> Value {
    let file: &Path = relative(store, &aside.file);
    aside_json(&(file.to_owned(), aside.bytes))
}

/// A saved file that is lost.
pub(super) struct LostFile {
    text: String,
    json: Value,
    object: ObjectId,
}

impl LostFile {
    pub(super) fn new(state: &LostState) -> Self {
        Self {
            text: text(state),
            json: json!({
                "workspace": path_json(state.workspace.root()),
                "path": path_json(&state.path),
                "directory": state.is_dir,
                "object": state.object,
                "checkpoints": state.checkpoints,
                "reason": full_text(&state.error),
            }),
            object: state.object,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        self.json.clone()
    }
}

fn text(state: &LostState) -> String {
    let path = visible_path(&state.path);
    let root = tilde(state.workspace.root());
    let what = match (state.is_dir, path.as_str()) {
        (true, ".") => format!("all files of {root}"),
        (true, _) => format!("all files of {path}/ in {root}"),
        (false, _) => format!("{path} in {root}"),
    };
    let first = state.checkpoints.first();
    let first = first.map_or_else(String::new, |id| id.prefix(8));
    let more = state.checkpoints.len().saturating_sub(1) as u64;
    let checkpoints = match (more, state.checkpoints.last()) {
        (0, _) | (_, None) => format!("in checkpoint {first}"),
        (_, Some(last)) => format!(
            "in {}, {first} to {}",
            count(more + 1, "checkpoint"),
            last.prefix(8)
        ),
    };
    format!("{what}, {checkpoints}")
}

impl fmt::Display for LostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = self.object.to_string();
        write!(
            f,
            "{} (object {})",
            self.text,
            &object[..16.min(object.len())]
        )
    }
}

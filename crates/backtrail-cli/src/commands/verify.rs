//! `backtrail verify`: checks the store for damage.

mod remote;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::plumbing::LinkRefused;
use backtrail::verify::{
    Damage, HistoryGap, LostState, SnapshotsReport, VerifyOptions, VerifyReport,
};
use backtrail::{Reason, SessionId, Store};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Answer, open_store, relative, require_store, resolve, short};
use crate::error::{Result, full_text};
use crate::home::tilde;
use crate::layout::DIM;
use crate::progress::while_read;
use crate::text::{count, path_json, plural, size, visible_path};
use crate::ui::Ui;

/// Check the store for damage (read-only)
///
/// Without a session it also checks the snapshots of all workspaces: every checkpoint must be
/// complete and every object must match its checksum. It lists the damage and each affected
/// file. Exits 1 if something is damaged. A last line that a killed process did not finish is
/// not damage.
///
/// With --remote it checks what a remote has instead: that every trail is there, in order and with
/// its end. With --deep it gets everything into a temporary store, and checks every checksum and
/// payload there.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// A session: its id, a prefix of 4+ characters, or latest [default: all]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Check the structure only, not every byte
    #[arg(long, conflicts_with = "remote")]
    quick: bool,

    /// Check what this remote has
    #[arg(long, value_name = "REMOTE")]
    remote: Option<String>,

    /// Get and check everything that the remote has
    #[arg(long, requires = "remote")]
    deep: bool,

    /// Decrypt with the keys in this file [default: $BACKTRAIL_IDENTITY, else the remote's
    /// identity in config.toml]
    #[arg(long, value_name = "FILE", requires = "remote")]
    identity: Option<String>,
}

pub(crate) fn run(args: &VerifyArgs, ui: &Ui) -> Result<Answer> {
    if let Some(name) = &args.remote {
        return remote::verify(name, args, ui);
    }
    let mut total = Total::default();
    let store = match &args.reference {
        Some(_) => Some(require_store(ui)?),
        None => open_store(ui)?,
    };
    if let Some(store) = &store {
        let ids = match &args.reference {
            Some(reference) => vec![resolve(store, reference)?],
            None => total.look_for_links(store)?,
        };
        for id in ids {
            total.check(store, &id, args.quick);
        }
        if args.reference.is_none() {
            total.check_snapshots(store, ui, args.quick)?;
        }
    }
    let printed = match ui.json() {
        true => ui.print_json(&total.to_json()),
        false => total.print(ui).map_err(Into::into),
    };
    // The exit code has the answer even if nobody reads the output.
    match printed {
        Err(error) if !error.broken_pipe => Err(error),
        _ => Ok(Answer::no_if(!total.is_ok())),
    }
}

/// How many lost saved files are printed one by one.
const LISTED: usize = 100;

/// The results of all checks.
#[derive(Default)]
struct Total {
    sessions: u64,
    records: u64,
    /// Symbolic links in the store, which are not followed.
    links: Vec<PathBuf>,
    /// Last lines that a killed process did not finish.
    unfinished: Vec<DamagedPlace>,
    damaged: Vec<DamagedPlace>,
    damaged_count: u64,
    /// Those that can be repaired.
    damaged_sessions: Vec<SessionId>,
    lost_payloads: bool,
    repaired: Vec<DamagedPlace>,
    set_aside: Vec<AsideFile>,
    gaps: Vec<(SessionId, HistoryGap)>,
    snapshots: SnapshotsReport,
    quick: bool,
}

impl Total {
    fn is_ok(&self) -> bool {
        self.damaged_count == 0 && self.snapshots.lost.is_empty() && self.links.is_empty()
    }

    /// Finds the links in the store. Returns the sessions that can be checked, sorted.
    fn look_for_links(&mut self, store: &Store) -> Result<Vec<SessionId>> {
        self.links = store.links()?;
        let mut ids = match store.sessions() {
            Err(error) if self.is_known(&error) => Vec::new(),
            ids => ids?,
        };
        ids.sort_unstable();
        Ok(ids)
    }

    /// Returns whether an error is about a link that is listed.
    fn is_known(&self, error: &backtrail::Error) -> bool {
        let source = std::error::Error::source(error);
        let source = source.and_then(|source| source.downcast_ref());
        let link = source.and_then(LinkRefused::link);
        link.is_some_and(|link| self.links.iter().any(|known| known == link))
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
        });
        let mut report = match report {
            Err(error) if self.is_known(&error) => return Ok(()),
            report => report?,
        };
        report
            .incomplete
            .retain(|broken| !self.is_known(&broken.error));
        for (_, trail) in &report.trails {
            self.add_trails(store, trail);
        }
        self.damaged_count += report.damaged + report.incomplete.len() as u64;
        self.damaged
            .extend(report.damage.iter().map(|damage| DamagedPlace {
                byte: Some(damage.byte),
                ..DamagedPlace::whole(
                    store,
                    &damage.file,
                    match &damage.object {
                        Some(object) => format!("{} (object {object})", damage.reason),
                        None => damage.reason.clone(),
                    },
                )
            }));
        let incomplete = report.incomplete.iter();
        self.damaged.extend(
            incomplete
                .map(|broken| DamagedPlace::whole(store, &broken.trail, full_text(&broken.error))),
        );
        self.snapshots = report;
        Ok(())
    }

    /// Adds what is damaged and set aside on the trails of a session or workspace.
    fn add_trails(&mut self, store: &Store, report: &VerifyReport) {
        if let Some(line) = &report.unfinished {
            let mut place = DamagedPlace::new(store, line);
            place.reason = format!("{}; the next write sets it aside", size(line.bytes));
            self.unfinished.push(place);
        }
        self.damaged_count += report.damage.count();
        let places = report.damage.first().iter();
        self.damaged
            .extend(places.map(|damage| DamagedPlace::new(store, damage)));
        let asides = report.set_aside.iter();
        self.set_aside
            .extend(asides.map(|(file, bytes)| AsideFile::new(store, file, *bytes)));
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
                // It was deleted meanwhile, or is behind a link that is listed.
                if error.is_moved() || self.is_known(&error) {
                    self.sessions -= 1;
                    return;
                }
                self.damaged_count += 1;
                let file = error.path().unwrap_or(store.root());
                let reason = format!("unreadable: {}", full_text(&error));
                self.damaged.push(DamagedPlace::whole(store, file, reason));
                return;
            }
        };
        self.records += report.records;
        let is_lost = |damage: &Damage| matches!(damage.reason, Reason::LostPayload(_));
        self.lost_payloads |= report.damage.first().iter().any(is_lost);
        if !report.damage.first().iter().all(is_lost) {
            self.damaged_sessions.push(id.clone());
        }
        self.add_trails(store, &report);
        let repaired = report.repaired.first().iter();
        self.repaired
            .extend(repaired.map(|damage| DamagedPlace::new(store, damage)));
        let gaps = report.gaps.into_iter();
        self.gaps.extend(gaps.map(|gap| (id.clone(), gap)));
    }

    fn to_json(&self) -> Value {
        let gap = |(id, gap): &(SessionId, HistoryGap)| json!({"session": id, "gap": gap});
        let snapshots = &self.snapshots;
        json!({
            "ok": self.is_ok(),
            "quick": self.quick,
            "sessions": self.sessions,
            "records": self.records,
            "workspaces": snapshots.workspaces,
            "checkpoints": snapshots.checkpoints,
            "dropped": snapshots.dropped,
            "objects": snapshots.objects,
            "bytes": snapshots.bytes,
            "links": self.links.iter().map(|link| path_json(link)).collect::<Vec<_>>(),
            "unfinished": self.unfinished,
            "damaged": self.damaged,
            "damaged_count": self.damaged_count,
            "spare": snapshots.spare,
            "lost": snapshots.lost.iter().map(lost_json).collect::<Vec<_>>(),
            "repaired": self.repaired,
            "gaps": self.gaps.iter().map(gap).collect::<Vec<_>>(),
            "set_aside": self.set_aside,
        })
    }

    fn snapshots_text(&self) -> String {
        let snapshots = &self.snapshots;
        if snapshots.checkpoints == 0 {
            return String::new();
        }
        let checkpoints = count(snapshots.checkpoints, "checkpoint");
        let workspaces = count(snapshots.workspaces, "workspace");
        let objects = count(snapshots.objects, "object");
        let dropped = match snapshots.dropped {
            0 => String::new(),
            n => format!(" ({n} without files)"),
        };
        format!(", {checkpoints} in {workspaces}{dropped}, {objects}")
    }

    fn print(&self, ui: &Ui) -> std::io::Result<()> {
        let mut out = ui.out();
        for link in &self.links {
            let link = visible_path(link);
            writeln!(out, "link     {link}: not followed")?;
        }
        write_damaged(&mut out, &self.damaged, self.damaged_count)?;
        let lost = &self.snapshots.lost;
        for state in lost.iter().take(LISTED) {
            writeln!(out, "lost     {}", lost_text(state))?;
        }
        let unlisted = lost.len().saturating_sub(LISTED);
        if unlisted > 0 {
            writeln!(out, "lost     {}", count(unlisted, "more saved file"))?;
        }
        for place in &self.unfinished {
            writeln!(out, "{DIM}cut off  {place}{DIM:#}")?;
        }
        for place in &self.repaired {
            writeln!(out, "{DIM}repaired {place}{DIM:#}")?;
        }
        for (id, gap) in &self.gaps {
            writeln!(out, "{DIM}gone     {}: {gap}{DIM:#}", short(id))?;
        }
        for AsideFile { file, bytes } in &self.set_aside {
            writeln!(out, "{DIM}aside    {file}: {}{DIM:#}", size(*bytes))?;
        }
        if self.snapshots.spare > 0 {
            let copies = count(self.snapshots.spare, "damaged copy");
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
            let quick = if self.quick { "; structure only" } else { "" };
            return format!("ok: {records_in}{}{quick}", self.snapshots_text());
        }
        let mut found = Vec::new();
        if !self.links.is_empty() {
            found.push(count(self.links.len(), "symbolic link"));
        }
        if self.damaged_count > 0 {
            found.push(count(self.damaged_count, "damaged place"));
        }
        if !self.snapshots.lost.is_empty() {
            let lost = count(self.snapshots.lost.len(), "file state");
            found.push(format!("{lost} lost"));
        }
        let are = plural(self.records, "is", "are");
        let workspaces = count(self.snapshots.workspaces, "workspace");
        let all = match (self.sessions, self.snapshots.workspaces) {
            (_, 1..) if self.damaged_count == 0 => workspaces,
            (0, 1..) => workspaces,
            (_, 0) => sessions,
            _ => format!("{sessions} and {workspaces}"),
        };
        let whole = match (self.sessions, self.quick) {
            (0, _) | (_, true) => String::new(),
            _ => format!("; {records} {are} intact"),
        };
        format!("{} in {all}{whole}", found.join(", "))
    }

    fn hints(&self, ui: &Ui) {
        if !self.links.is_empty() {
            ui.status("put what a link points to in its place, or remove it; links inside a store are not followed");
        }
        if self.lost_payloads {
            ui.status("lost payloads cannot be repaired; restore the file from a backup or record the message again");
        }
        for id in self.damaged_sessions.iter().take(5) {
            ui.status(&format!(
                "see what can be repaired: backtrail repair {} --dry-run",
                short(id)
            ));
        }
        let trails = &self.snapshots.trails;
        if !self.snapshots.lost.is_empty() || trails.iter().any(|(_, trail)| !trail.is_ok()) {
            ui.status("see what can be repaired: backtrail repair --dry-run");
        }
    }
}

/// A damaged place; its file is relative to the store.
#[derive(Serialize)]
pub(super) struct DamagedPlace {
    file: String,
    line: Option<u64>,
    byte: Option<u64>,
    reason: String,
}

impl DamagedPlace {
    pub(super) fn new(store: &Store, damage: &Damage) -> Self {
        Self {
            line: damage.line,
            byte: Some(damage.byte),
            ..Self::whole(store, &damage.file, damage.reason.to_string())
        }
    }

    /// Makes a file that is damaged as a whole.
    fn whole(store: &Store, file: &Path, reason: String) -> Self {
        Self {
            file: relative(store, file).display().to_string(),
            line: None,
            byte: None,
            reason,
        }
    }
}

impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        if let Some(byte) = self.byte {
            write!(f, " (byte {byte})")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Writes the damaged places, of which only the first may be listed.
pub(super) fn write_damaged(
    out: &mut impl Write,
    listed: &[DamagedPlace],
    all: u64,
) -> std::io::Result<()> {
    for place in listed {
        writeln!(out, "damaged  {place}")?;
    }
    match all - listed.len() as u64 {
        0 => Ok(()),
        more => writeln!(out, "damaged  {}", count(more, "more place")),
    }
}

/// A file with what was set aside; it is relative to the store.
#[derive(Serialize)]
pub(super) struct AsideFile {
    file: String,
    bytes: u64,
}

impl AsideFile {
    pub(super) fn new(store: &Store, file: &Path, bytes: u64) -> Self {
        let file = relative(store, file).display().to_string();
        Self { file, bytes }
    }
}

/// Returns a saved file that is lost as JSON.
pub(super) fn lost_json(state: &LostState) -> Value {
    json!({
        "workspace": path_json(state.workspace.root()),
        "path": path_json(&state.path),
        "directory": state.is_dir,
        "object": state.object,
        "checkpoints": state.checkpoints,
        "reason": full_text(&state.error),
    })
}

/// Returns a saved file that is lost, and the checkpoints that have it.
pub(super) fn lost_text(state: &LostState) -> String {
    let path = visible_path(&state.path);
    let root = tilde(state.workspace.root());
    let what = match (state.is_dir, path.as_str()) {
        (true, ".") => format!("all files of {root}"),
        (true, _) => format!("all files of {path}/ in {root}"),
        (false, _) => format!("{path} in {root}"),
    };
    let checkpoints = match state.checkpoints.as_slice() {
        [] => String::new(),
        [one] => format!(", in checkpoint {}", one.prefix(8)),
        [first, .., last] => {
            let all = count(state.checkpoints.len(), "checkpoint");
            format!(", in {all}, {} to {}", first.prefix(8), last.prefix(8))
        }
    };
    format!(
        "{what}{checkpoints} (object {:.16})",
        state.object.to_string()
    )
}

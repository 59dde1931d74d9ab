//! `backtrail status`: shows the state of this workspace.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use backtrail::rewind::{Ending, Unfinished};
use backtrail::snapshot::Diff;
use backtrail::workspace::{Activity, CheckpointReason, Included, LogEntry, LogKind};
use backtrail::{Checkpoint, CheckpointId, SessionInfo, Workspace};
use serde_json::{Value, json};

use super::log::{Listed, about_with_labels, kind, mark};
use super::protection::included_names;
use super::recovery::{Finish, report_unfinished};
use super::workspace::WorkspaceArgs;
use super::{Answer, describe_info, titled};
use crate::error::Result;
use crate::files;
use crate::home::tilde;
use crate::layout::DIM;
use crate::progress;
use crate::text::{count, one_line, path_json, size, some_of, visible, visible_path};
use crate::ui::Ui;
use crate::when;

/// Show what is running here and what changed since the last checkpoint
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &StatusArgs, ui: &Ui) -> Result<Answer> {
    let Some(workspace) = args.here.find(ui, Finish::ToRead)? else {
        if ui.json() {
            ui.print_json(&json!({"workspace": null}))?;
        } else {
            args.here.report_no_checkpoints(ui);
        }
        return Ok(Answer::Done);
    };
    warn_of_strays(&workspace, ui);
    let status = Status::look(workspace, ui)?;
    if ui.json() {
        ui.print_json(&status.to_json())?;
    } else {
        if let Some(unfinished) = &status.unfinished {
            report_unfinished(unfinished, ui);
        }
        status.print(&args.here, ui)?;
    }
    Ok(Answer::Done)
}

/// Warns of files that an unknown rewind left.
fn warn_of_strays(workspace: &Workspace, ui: &Ui) {
    for path in workspace.strays().unwrap_or_default() {
        let path = visible_path(&path);
        let what = format!("{path}/ has files from an old rewind");
        ui.warning(&what, Some("move your files out, then remove it"));
    }
}

/// A store larger than this gets a warning.
const LARGE: u64 = 10 << 30;

/// The checkpoints of a workspace, and what is running there.
#[derive(Default)]
pub(super) struct Timeline {
    pub(super) checkpoints: u64,
    pub(super) first: Option<Checkpoint>,
    last: Option<Checkpoint>,
    pub(super) running: Vec<Activity>,
}

impl Timeline {
    pub(super) fn of(workspace: &Workspace) -> backtrail::Result<Self> {
        let mut timeline = Self {
            running: workspace.active()?,
            ..Self::default()
        };
        for checkpoint in workspace.checkpoints()? {
            let checkpoint = checkpoint?;
            // A checkpoint made before a rewind serves undo alone.
            let counts = *checkpoint.reason() != CheckpointReason::BeforeRewind;
            timeline.checkpoints += u64::from(counts);
            timeline.first.get_or_insert_with(|| checkpoint.clone());
            timeline.last = Some(checkpoint);
        }
        Ok(timeline)
    }

    /// Returns the ignored paths that are protected.
    fn included(&self) -> &[Included] {
        self.last.as_ref().map_or(&[], Checkpoint::included)
    }

    /// Returns what changed since the last checkpoint; `None` if its files were dropped: its
    /// session may have been purged.
    pub(super) fn changed(
        &self,
        workspace: &Workspace,
        ui: &Ui,
    ) -> backtrail::Result<Option<Diff>> {
        match &self.last {
            Some(last) if last.dropped()?.is_none() => {
                progress::changes_since(ui, workspace, &last.snapshot()?).map(Some)
            }
            _ => Ok(None),
        }
    }
}

struct Status {
    workspace: Workspace,
    session: Option<SessionInfo>,
    timeline: Timeline,
    /// What changed since the last checkpoint.
    changed: Option<Diff>,
    store_bytes: u64,
    /// A rewind that is half done.
    unfinished: Option<Unfinished>,
    /// The newest turn or run.
    last_run: Option<LogEntry>,
    /// The turns and runs that did not end.
    unended: HashMap<CheckpointId, Ending>,
}

impl Status {
    fn look(workspace: Workspace, ui: &Ui) -> Result<Self> {
        let store = workspace.store();
        let session = match workspace.latest_session()? {
            Some(id) => Some(titled(store, store.read_session(&id)?.info()?)),
            None => None,
        };
        let timeline = Timeline::of(&workspace)?;
        Ok(Self {
            session,
            changed: timeline.changed(&workspace, ui)?,
            timeline,
            store_bytes: bytes_in(store.root()),
            unfinished: workspace.unfinished()?,
            last_run: last_run(&workspace)?,
            unended: workspace.unended()?,
            workspace,
        })
    }

    fn to_json(&self) -> Value {
        let store = self.workspace.store().root();
        let last = self.timeline.last.clone();
        let last = last.map(|last| Listed::new(last, &self.unended));
        json!({
            "workspace": {
                "id": self.workspace.id(),
                "root": path_json(self.workspace.root()),
            },
            "session": self.session.as_ref().map(|info| json!({
                "id": info.id,
                "title": info.title,
                "updated_at": info.updated_at,
            })),
            "running": self.timeline.running.iter().map(|activity| json!({
                "checkpoint": activity.checkpoint,
                "session": activity.session,
                "about": activity.about,
                "pid": activity.holder.pid,
                "since": activity.holder.since,
            })).collect::<Vec<_>>(),
            "checkpoints": self.timeline.checkpoints,
            "last": last,
            "changed": self.changed.as_ref().map_or(Value::Null, |diff| json!(diff.changes())),
            "store": {"path": path_json(store), "bytes": self.store_bytes},
            "included": self.timeline.included(),
            "unfinished": self.unfinished,
        })
    }

    fn print(&self, here: &WorkspaceArgs, ui: &Ui) -> std::io::Result<()> {
        let mut out = ui.out();
        let mut line = |name: &str, text: String| writeln!(out, "{DIM}{name:<10}{DIM:#} {text}");
        let root = tilde(self.workspace.root());
        let timeline = &self.timeline;
        let checkpoints = count(timeline.checkpoints, "checkpoint");
        let since = timeline.first.as_ref().map_or_else(String::new, |first| {
            format!(" since {}", when::brief(first.at()))
        });
        line("workspace", format!("{root} ({checkpoints}{since})"))?;
        if let Some(info) = &self.session {
            line("session", describe_info(info))?;
        }
        for activity in &timeline.running {
            line("running", running(activity))?;
        }
        if timeline.running.is_empty() {
            line("running", "nothing".to_owned())?;
        }
        if let Some(entry) = &self.last_run {
            line("last", last_text(entry))?;
        }
        if let (Some(last), Some(changed)) = (&timeline.last, &self.changed) {
            line("changed", since_last(last, changed))?;
        }
        if let Some(names) = included_names(timeline.included()) {
            line("included", format!("{names} (protected although ignored)"))?;
        }
        let store = tilde(self.workspace.store().root());
        line("store", format!("{store}, {}", size(self.store_bytes)))?;
        out.flush()?;
        if self.store_bytes > LARGE {
            let what = format!("the store is larger than {}", size(LARGE));
            let gc = format!("{} gc", ui.program());
            let hint = format!(
                "see what can be freed: {gc} --older-than 30d --dry-run, or {gc} --max-size 10G --dry-run"
            );
            ui.warning(&what, Some(&hint));
        }
        if self.changed.as_ref().is_some_and(|it| !it.is_empty()) {
            ui.remark(&format!("see them: {} last", here.command(ui, "diff")));
        }
        Ok(())
    }
}

/// Returns the newest turn or run, unless it is running: that is shown anyway.
fn last_run(workspace: &Workspace) -> backtrail::Result<Option<LogEntry>> {
    let mut log = workspace.log()?.into_iter().rev();
    let is_run = |entry: &LogEntry| matches!(entry.kind(), LogKind::Turn | LogKind::Run);
    let newest = log.find(is_run);
    Ok(newest.filter(|entry| entry.ending() != Some(Ending::Running)))
}

fn last_text(entry: &LogEntry) -> String {
    let about = one_line(&visible(&about_with_labels(entry)), 50);
    let mark = entry.ending().and_then(mark);
    let words = [kind(entry).into_owned(), about, mark.unwrap_or_default()];
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    format!("{}, {}", words.join(" "), when::brief(entry.at()))
}

pub(super) fn running(activity: &Activity) -> String {
    let about = one_line(&visible(activity.about.as_deref().unwrap_or("a turn")), 40);
    let since = when::brief(activity.holder.since);
    format!("{about} (process {}, since {since})", activity.holder.pid)
}

fn since_last(last: &Checkpoint, changed: &Diff) -> String {
    let when = when::brief(last.at());
    let all = changed.changes();
    if all.is_empty() {
        return format!("nothing since the last checkpoint ({when})");
    }
    let names = all.iter().map(|change| one_line(&change.to_string(), 50));
    let names = some_of(names, 3, all.len());
    let paths = count(all.len(), "path");
    format!("{paths} since the last checkpoint ({when}): {names}")
}

/// Returns the size of the readable files below a directory.
pub(super) fn bytes_in(dir: &Path) -> u64 {
    let entries = files::entries(dir).into_iter().flatten();
    let bytes = entries.map(|path| match path.symlink_metadata() {
        Ok(found) if found.is_dir() => bytes_in(&path),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    });
    bytes.sum()
}

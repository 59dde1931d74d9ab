//! The lines of the log, and the rows that are made of them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use backtrail::rewind::Ending;
use backtrail::snapshot::Diff;
use backtrail::verify::DamageReport;
use backtrail::workspace::{Checkpoints, LogEntry, LogKind};
use backtrail::{Checkpoint, ErrorKind, SessionId, Timestamp, Workspace};

use super::path_filter::PathFilter;
use super::rows::{Changed, Row, change};
use super::{about, described, kind, labels};
use crate::error::{Result, full_text};
use crate::progress;
use crate::short::short;
use crate::text::{count, visible_path};
use crate::ui::Ui;
use crate::when;

/// One line of the log.
pub(in crate::commands) struct Line {
    kind: String,
    /// Set if the line is of the log, and not of one checkpoint.
    pub(in crate::commands) entry: Option<LogEntry>,
    pub(super) before: Option<Checkpoint>,
    pub(in crate::commands) after: Checkpoint,
}

impl From<LogEntry> for Line {
    fn from(entry: LogEntry) -> Self {
        Self {
            kind: kind(&entry).into_owned(),
            before: entry.before().cloned(),
            after: entry.after().clone(),
            entry: Some(entry),
        }
    }
}

/// Returns a line for each checkpoint, the oldest first.
pub(super) fn every_checkpoint(workspace: &Workspace) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for after in workspace.checkpoints()? {
        let after = after?;
        lines.push(Line {
            kind: after.reason().to_string(),
            entry: None,
            before: lines.last().map(|line| line.after.clone()),
            after,
        });
    }
    Ok(lines)
}

impl Line {
    /// Returns what it is about. That may read a record of a session, so it is asked only
    /// of lines that are shown.
    fn about(&self) -> String {
        match &self.entry {
            Some(entry) => about(entry),
            None => described(&self.after),
        }
    }

    fn labels(&self) -> Vec<String> {
        match &self.entry {
            Some(entry) => labels(entry),
            None => self
                .after
                .label()
                .map(ToOwned::to_owned)
                .into_iter()
                .collect(),
        }
    }

    /// Returns how a turn or run ended, if that is known.
    fn ending(&self) -> Option<Ending> {
        match &self.entry {
            Some(entry) => entry.ending(),
            None => self.after.ending(),
        }
    }

    /// Makes the line as it is printed.
    fn row(&self, change: Changed, id_length: usize) -> Row {
        let session = match &self.entry {
            Some(entry) => entry.begun().and_then(Checkpoint::session),
            None => self.after.session(),
        };
        Row {
            kind: self.kind.clone(),
            at: when::time(self.after.at()),
            day: Some(when::heading(self.after.at())),
            about: self.about(),
            labels: self.labels(),
            ending: self.ending(),
            session: session.map_or_else(String::new, |place| short(&place.id)),
            took: self.took().map_or_else(String::new, when::duration),
            change,
            id: self.after.id().prefix(id_length),
            ..Row::default()
        }
    }

    /// Returns how long a turn or run took, if it ended.
    fn took(&self) -> Option<Duration> {
        let entry = self.entry.as_ref().filter(|entry| entry.ended())?;
        let from = entry.begun()?.at().as_millis();
        let ms = entry.at().as_millis().checked_sub(from)?;
        u64::try_from(ms).ok().map(Duration::from_millis)
    }

    /// Returns whether what changed says best what it was about.
    fn is_named_by_files(&self) -> bool {
        let kind = self.entry.as_ref().map(LogEntry::kind);
        matches!(
            kind,
            Some(LogKind::Person | LogKind::PersonOrRun | LogKind::Checkpoint)
        )
    }

    /// Returns whether it may be folded with others: a run that changed nothing, did what
    /// was asked for, and has no label.
    fn folds(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| {
            entry.kind() == LogKind::Run
                && !entry.is_step()
                && entry.labels().next().is_none()
                && entry.ending().is_none_or(|ending| ending == Ending::Done)
        })
    }

    /// Makes the line of several runs that changed nothing.
    fn folded_row(&self, runs: usize, id_length: usize) -> Row {
        Row {
            about: format!("{} without changes", count(runs, "run")),
            session: String::new(),
            took: String::new(),
            ..self.row(Changed::default(), id_length)
        }
    }

    /// Returns the changes; `None` for the first checkpoint of all.
    fn changes(&self) -> backtrail::Result<Option<Diff>> {
        let Some(before) = &self.before else {
            return Ok(None);
        };
        let diff = before.snapshot()?.diff(&self.after.snapshot()?)?;
        Ok(Some(diff))
    }

    /// Returns what it changed, and how much.
    fn change(&self, damage: &mut Damage) -> Result<(Option<Diff>, Changed)> {
        let text = |text: &str| Ok((None, Changed::Text(text.to_owned())));
        if self.after.dropped()?.is_some() {
            return text("files dropped");
        }
        match self.changes() {
            // The state that it began with was dropped.
            Err(error) if error.kind() == ErrorKind::Dropped => {
                text(&count(self.after.files(), "file"))
            }
            Ok(None) => text(&count(self.after.files(), "file")),
            changes => {
                let diff = damage.note(changes).flatten();
                let changed = changed(diff.as_ref(), damage);
                Ok((diff, changed))
            }
        }
    }
}

/// Returns the names of the files that changed.
fn names(diff: Option<&Diff>) -> Vec<String> {
    let changes = diff.into_iter().flat_map(Diff::iter);
    changes.map(|change| visible_path(&change.path)).collect()
}

/// Makes the rows of lines.
pub(in crate::commands) struct RowMaker<'a> {
    deleted: HashSet<SessionId>,
    /// How many characters of ids are shown.
    ids: usize,
    pub(super) damage: Damage,
    pub(super) filter: PathFilter<'a>,
}

impl<'a> RowMaker<'a> {
    /// Makes rows of changes to some paths, or to all.
    pub(in crate::commands) fn new(
        workspace: &'a Workspace,
        paths: &'a [PathBuf],
        ids: usize,
    ) -> Result<Self> {
        Ok(Self {
            deleted: workspace.store().deleted_sessions()?.into_iter().collect(),
            ids,
            damage: Damage::default(),
            filter: PathFilter::new(workspace, paths),
        })
    }

    /// Makes the row of a line, or of several that are folded; `None` if it changed none of the
    /// paths.
    pub(in crate::commands) fn row(&mut self, line: &Line, folded: usize) -> Result<Option<Row>> {
        if folded > 1 {
            let is_shown = self.filter.is_empty();
            return Ok(is_shown.then(|| line.folded_row(folded, self.ids)));
        }
        let (diff, change) = if self.filter.is_empty() {
            line.change(&mut self.damage)?
        } else {
            match self.damage.note(self.filter.changes(line)) {
                Some(None) => return Ok(None),
                changes => {
                    let diff = changes.flatten();
                    let changed = changed(diff.as_ref(), &mut self.damage);
                    (diff, changed)
                }
            }
        };
        let mut row = line.row(change, self.ids);
        if line.is_named_by_files() {
            row.files = names(diff.as_ref());
        }
        let session = line.after.session();
        if session.is_some_and(|place| self.deleted.contains(&place.id)) && row.about != DELETED {
            row.about += &format!(" ({DELETED})");
        }
        Ok(Some(row))
    }

    /// Makes the row of changes since the newest checkpoint, if there are any.
    pub(in crate::commands) fn now(
        &mut self,
        workspace: &Workspace,
        paths: &[PathBuf],
        ui: &Ui,
    ) -> Result<Option<Row>> {
        now_row(workspace, paths, &mut self.damage, ui)
    }
}

/// Returns the lines from the newest to the oldest, each with how many are folded with it.
pub(in crate::commands) fn newest_first(lines: &[Line]) -> impl Iterator<Item = (&Line, usize)> {
    let mut ahead = lines.iter().rev().peekable();
    std::iter::from_fn(move || {
        let line = ahead.next()?;
        let mut folded = 1;
        let folds = line.folds();
        while folds && ahead.next_if(|line| line.folds()).is_some() {
            folded += 1;
        }
        Some((line, folded))
    })
}

const DELETED: &str = "session deleted";

/// Returns the line for changes since the newest checkpoint, if there are any.
fn now_row(
    workspace: &Workspace,
    paths: &[PathBuf],
    damage: &mut Damage,
    ui: &Ui,
) -> Result<Option<Row>> {
    let Some(last) = workspace.last_checkpoint()? else {
        return Ok(None);
    };
    let compared = last.snapshot().and_then(|before| {
        let diff = progress::changes_since(ui, workspace, &before)?;
        diff.only(paths)
    });
    let diff = match compared {
        // The directory may be gone; its log can be shown all the same.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        compared => damage.note(compared),
    };
    if diff.as_ref().is_some_and(Diff::is_empty) {
        return Ok(None);
    }
    Ok(Some(Row {
        at: "now".to_owned(),
        day: Some(when::heading(Timestamp::from(SystemTime::now()))),
        about: "since the last checkpoint".to_owned(),
        files: names(diff.as_ref()),
        change: changed(diff.as_ref(), damage),
        ..Row::default()
    }))
}

/// Returns how much changed, or a question mark.
fn changed(diff: Option<&Diff>, damage: &mut Damage) -> Changed {
    let change = diff.and_then(|diff| damage.note(change(diff)));
    change.unwrap_or_else(Changed::unknown)
}

/// What is damaged in the log.
#[derive(Default)]
pub(super) struct Damage {
    /// Lines whose changes are unknown, and the reason for the first of them.
    lines: u64,
    reason: Option<String>,
    /// Places on the trail that cannot be read.
    places: u64,
}

impl Damage {
    /// Keeps a failure to be reported at the end.
    pub(super) fn note<T>(&mut self, result: backtrail::Result<T>) -> Option<T> {
        result
            .map_err(|error| {
                self.lines += 1;
                self.reason.get_or_insert_with(|| full_text(&error));
            })
            .ok()
    }

    pub(super) fn on_trail(&mut self, checkpoints: &Checkpoints) {
        let damaged = checkpoints.damage().map_or(0, DamageReport::count);
        self.places = damaged + checkpoints.flawed();
    }

    pub(super) fn warn(&self, ui: &Ui) {
        let hint = format!("see what is damaged: {} verify", ui.program());
        if let Some(reason) = &self.reason {
            let lines = count(self.lines, "line");
            let what = format!("changes are unknown in {lines}: {reason}");
            ui.warning(&what, Some(&hint));
        }
        if self.places > 0 {
            let places = count(self.places, "damaged place");
            let what = format!("{places} on the trail of this workspace; checkpoints are missing");
            ui.warning(&what, Some(&hint));
        }
    }
}

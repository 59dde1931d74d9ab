//! `backtrail log`: what happened in this workspace.

mod path_filter;
mod rows;
mod steps;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use backtrail::rewind::{Ending, Program};
use backtrail::snapshot::Diff;
use backtrail::verify::DamageReport;
use backtrail::workspace::{CheckpointReason, Checkpoints, GitHead, LogEntry, LogKind};
use backtrail::{Checkpoint, CheckpointId, ErrorKind, Timestamp, Workspace};
use serde::Serialize;
use serde_json::{Value, json};

use self::path_filter::PathFilter;
pub(super) use self::rows::{Changed, Row, change, draw_rows, mark};
use super::Answer;
use super::cat::within_all;
use super::moves::program_name;
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use crate::derived::prefix;
use crate::error::{Result, full_text};
use crate::home::tilde;
use crate::progress;
use crate::short::short;
use crate::text::{count, one_line, visible, visible_path};
use crate::ui::Ui;
use crate::when;

/// Show what happened in this workspace: turns, runs, checkpoints and your own changes
///
/// The newest comes first. The letters after the text are the session; the id at the end of a
/// line is the checkpoint after it: a point for diff, cat, restore and rewind.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// With --steps, a session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF", requires = "steps")]
    reference: Option<String>,

    /// Only changes to these files and directories
    #[arg(value_name = "PATHS", last = true)]
    paths: Vec<PathBuf>,

    /// Show up to COUNT lines [default: 30, or all as JSON]
    #[arg(long, short = 'n', value_name = "COUNT")]
    count: Option<usize>,

    /// Show every checkpoint
    #[arg(long)]
    all: bool,

    /// List the steps to undo and redo; → marks the next ones
    #[arg(long, conflicts_with_all = ["paths", "count", "all"])]
    steps: bool,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &LogArgs, ui: &Ui) -> Result<Answer> {
    if args.steps {
        return steps::run(args, ui);
    }
    let Some(workspace) = args.here.find(ui, Finish::ToRead)? else {
        if ui.json() {
            ui.print_json(&[(); 0])?;
        } else {
            args.here.report_no_checkpoints(ui);
        }
        return Ok(Answer::Done);
    };
    let paths = within_all(workspace.root(), &args.paths)?;
    if ui.json() {
        return print_json(&workspace, args, &paths, ui);
    }
    let lines = if args.all {
        every_checkpoint(&workspace)?
    } else {
        workspace.log()?.into_iter().map(Line::from).collect()
    };
    print(&workspace, &lines, args, &paths, ui)
}

fn print_json(workspace: &Workspace, args: &LogArgs, paths: &[PathBuf], ui: &Ui) -> Result<Answer> {
    let mut damage = Damage::default();
    let unended = workspace.unended()?;
    let most = args.count.unwrap_or(usize::MAX);
    let wanted = |checkpoint: &Checkpoint| args.all || !is_minor(checkpoint);
    let mut list = Vec::new();
    let mut checkpoints = workspace.checkpoints_back()?;
    if paths.is_empty() {
        while list.len() < most
            && let Some(checkpoint) = checkpoints.next().transpose()?
        {
            list.extend(Some(checkpoint).filter(wanted));
        }
    } else {
        let mut lines = every_checkpoint(workspace)?;
        if !args.all {
            begin_where_steps_began(&mut lines);
        }
        let mut filter = PathFilter::new(workspace, paths);
        let lines = lines.into_iter().rev();
        let touching = lines.filter(|line| {
            wanted(&line.after) && {
                let changes = damage.note(filter.changes(line));
                // If that is damaged, it may have.
                changes.is_none_or(|changes| changes.is_some())
            }
        });
        list = touching.take(most).map(|line| line.after).collect();
        checkpoints.by_ref().for_each(drop);
        filter.report_unknown("checkpoint", ui);
    }
    damage.on_trail(&checkpoints);
    let list: Vec<_> = list
        .into_iter()
        .map(|it| Listed::new(it, &unended))
        .collect();
    ui.print_json(&list)?;
    damage.warn(ui);
    Ok(Answer::Done)
}

/// Makes the lines of turns and runs begin where those began, and not at the last tool call.
fn begin_where_steps_began(lines: &mut [Line]) {
    let all: HashMap<_, _> = lines
        .iter()
        .map(|line| (line.after.id(), line.after.clone()))
        .collect();
    let begins = |reason: &CheckpointReason| {
        matches!(
            reason,
            CheckpointReason::TurnStart | CheckpointReason::RunStart
        )
    };
    for line in lines.iter_mut().filter(|line| !begins(line.after.reason())) {
        let start = line.after.begun_by().and_then(|id| all.get(&id));
        line.before = start.cloned().or(line.before.take());
    }
}

/// A checkpoint as JSON; the first one of a turn or run that did not end says so.
#[derive(Serialize)]
pub(super) struct Listed {
    #[serde(flatten)]
    checkpoint: Checkpoint,
    #[serde(flatten)]
    ending: Option<Ending>,
}

impl Listed {
    pub(super) fn new(checkpoint: Checkpoint, unended: &HashMap<CheckpointId, Ending>) -> Self {
        let ending = unended.get(&checkpoint.id()).copied();
        Self { checkpoint, ending }
    }
}

/// Adds how a turn or run ended to an object.
pub(super) fn add_ending(object: &mut Value, ending: Option<Ending>) {
    if let (Value::Object(fields), Value::Object(ending)) = (object, json!(ending)) {
        fields.extend(ending);
    }
}

/// Returns whether a checkpoint is part of a turn, or was made before a rewind.
fn is_minor(checkpoint: &Checkpoint) -> bool {
    matches!(
        checkpoint.reason(),
        CheckpointReason::ToolEnd | CheckpointReason::TurnResume | CheckpointReason::BeforeRewind
    )
}

/// Returns whether a checkpoint counts: those before a rewind exist only for undo.
fn is_counted(checkpoint: &backtrail::Result<Checkpoint>) -> bool {
    let is_own = |checkpoint: &Checkpoint| *checkpoint.reason() == CheckpointReason::BeforeRewind;
    !checkpoint.as_ref().is_ok_and(is_own)
}

/// What is damaged in the log.
#[derive(Default)]
struct Damage {
    /// Lines whose changes are unknown, and the reason for the first of them.
    lines: u64,
    reason: Option<String>,
    /// Places on the trail that cannot be read.
    places: u64,
}

impl Damage {
    /// Keeps a failure to be reported at the end.
    fn note<T>(&mut self, result: backtrail::Result<T>) -> Option<T> {
        result
            .map_err(|error| {
                self.lines += 1;
                self.reason.get_or_insert_with(|| full_text(&error));
            })
            .ok()
    }

    fn on_trail(&mut self, checkpoints: &Checkpoints) {
        let damaged = checkpoints.damage().map_or(0, DamageReport::count);
        self.places = damaged + checkpoints.flawed();
    }

    fn warn(&self, ui: &Ui) {
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

/// One line of the log.
struct Line {
    kind: String,
    /// Set if the line is of the log, and not of one checkpoint.
    entry: Option<LogEntry>,
    before: Option<Checkpoint>,
    after: Checkpoint,
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
fn every_checkpoint(workspace: &Workspace) -> Result<Vec<Line>> {
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
        matches!(kind, Some(LogKind::Person | LogKind::PersonOrRun))
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

/// How many lines are shown by default.
const LINES: usize = 30;
const DELETED: &str = "session deleted";

fn print(
    workspace: &Workspace,
    lines: &[Line],
    args: &LogArgs,
    paths: &[PathBuf],
    ui: &Ui,
) -> Result<Answer> {
    let deleted = workspace.store().deleted_sessions()?;
    let total = lines.len();
    let ids = unique_length(lines);
    let mut rows = Vec::new();
    let mut damage = Damage::default();
    let mut filter = PathFilter::new(workspace, paths);
    let mut looked_at = 0;
    let mut ahead = lines.iter().rev().peekable();
    while rows.len() < args.count.unwrap_or(LINES)
        && let Some(line) = ahead.next()
    {
        looked_at += 1;
        let mut folded = 1;
        let folds = line.folds();
        while folds && ahead.next_if(|line| line.folds()).is_some() {
            folded += 1;
        }
        if folded > 1 {
            looked_at += folded - 1;
            rows.extend(paths.is_empty().then(|| line.folded_row(folded, ids)));
            continue;
        }
        let (diff, change) = if paths.is_empty() {
            line.change(&mut damage)?
        } else {
            match damage.note(filter.changes(line)) {
                Some(None) => continue,
                changes => {
                    let diff = changes.flatten();
                    let changed = changed(diff.as_ref(), &mut damage);
                    (diff, changed)
                }
            }
        };
        let mut row = line.row(change, ids);
        if line.is_named_by_files() {
            row.files = names(diff.as_ref());
        }
        let session = line.after.session();
        if session.is_some_and(|place| deleted.contains(&place.id)) && row.about != DELETED {
            row.about += &format!(" ({DELETED})");
        }
        rows.push(row);
    }
    let now = now_row(workspace, paths, &mut damage, ui)?;
    let mut all = workspace.checkpoints_back()?;
    let counted = all.by_ref().filter(is_counted);
    let checkpoints = counted.count() as u64;
    damage.on_trail(&all);
    ui.remark(&format!(
        "{} · {}",
        tilde(workspace.root()),
        count(checkpoints, "checkpoint")
    ));
    if rows.is_empty() && now.is_none() {
        let known = if filter.has_unknown() { "known " } else { "" };
        ui.status(&format!("no {known}changes to these paths"));
    }
    rows.splice(0..0, now);
    without_today(&mut rows);
    ui.page(&draw_rows(&rows, ui.width()))?;
    if looked_at < total {
        let more = count(total - looked_at, "more line");
        ui.remark(&format!("{more} (-n {total} for all)"));
    }
    filter.report_unknown("line", ui);
    damage.warn(ui);
    Ok(Answer::Done)
}

/// Removes the headings if all is of today: the times say enough.
fn without_today(rows: &mut [Row]) {
    let today = when::heading(Timestamp::from(SystemTime::now()));
    let is_today = |row: &Row| row.day.as_ref().is_none_or(|day| *day == today);
    if rows.iter().all(is_today) {
        rows.iter_mut().for_each(|row| row.day = None);
    }
}

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

pub(super) fn kind(entry: &LogEntry) -> Cow<'static, str> {
    let kind = match entry.kind() {
        LogKind::Turn => "turn",
        LogKind::Run => "run",
        LogKind::Checkpoint => "checkpoint",
        LogKind::Person => "you",
        LogKind::PersonOrRun => {
            let or = entry.or().map_or_else(|| "run".to_owned(), short_name);
            return format!("you or {or}").into();
        }
        LogKind::AgentRewind => {
            let agent = entry.or().map_or_else(|| "agent".to_owned(), short_name);
            return agent.into();
        }
        // A rewind is named by its verb.
        _ => return entry.after().reason().to_string().into(),
    };
    kind.into()
}

/// Returns what a program is called, in a word or two.
fn short_name(program: &Program) -> String {
    match program {
        Program::Turn => "turn".to_owned(),
        Program::Run => "run".to_owned(),
        Program::Process(command) => {
            let program = command.split(' ').next().unwrap_or(command);
            let name = program.rsplit('/').next().unwrap_or(program);
            one_line(&visible(name), 20)
        }
        other => program_name(other),
    }
}

/// Returns what an entry is about, without its labels.
pub(super) fn about(entry: &LogEntry) -> String {
    match entry.kind() {
        LogKind::Person | LogKind::PersonOrRun => git_moved(entry).unwrap_or_default(),
        LogKind::AgentRewind => "went back in its session".to_owned(),
        LogKind::Turn | LogKind::Run => entry.begun().map(described).unwrap_or_default(),
        LogKind::Checkpoint if entry.before().is_none() && entry.after().label().is_none() => {
            "the first".to_owned()
        }
        LogKind::Checkpoint => String::new(),
        _ => described(entry.after()),
    }
}

/// Returns what you did with git in between, if its HEAD moved: `git switch main`.
fn git_moved(entry: &LogEntry) -> Option<String> {
    let before = entry.before()?.git_head()?;
    let after = entry.after().git_head()?;
    let branch = |head: &GitHead| head.branch.clone();
    match branch(after) {
        Some(name) if branch(before) != branch(after) => Some(format!("git switch {name}")),
        None if branch(before).is_some() => Some("git switch --detach".to_owned()),
        _ if before.commit != after.commit => Some("git HEAD moved".to_owned()),
        _ => None,
    }
}

pub(super) fn labels(entry: &LogEntry) -> Vec<String> {
    let mut labels: Vec<String> = entry.labels().map(ToOwned::to_owned).collect();
    labels.extend(entry.not_protected().map(|_| NOT_PROTECTED.to_owned()));
    labels
}

/// Marks a turn whose snapshot is missing or came late.
const NOT_PROTECTED: &str = "NOT PROTECTED";

/// Returns what an entry is about, with its labels behind it.
pub(super) fn about_with_labels(entry: &LogEntry) -> String {
    let (about, labels) = (about(entry), labels(entry).join("] ["));
    match (about.as_str(), labels.as_str()) {
        (_, "") => about,
        ("", _) => labels,
        _ => format!("{about} [{labels}]"),
    }
}

fn described(checkpoint: &Checkpoint) -> String {
    let about = checkpoint.about();
    about.map_or_else(String::new, |about| about.to_string())
}

/// Returns how many characters make the ids in the log unique: four at least.
fn unique_length(lines: &[Line]) -> usize {
    let mut ids: Vec<String> = lines
        .iter()
        .map(|line| line.after.id().to_string())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let lengths = ids.iter().map(|id| prefix(id, &ids).len());
    lengths.max().unwrap_or(4)
}

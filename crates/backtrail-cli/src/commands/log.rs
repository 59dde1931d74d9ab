//! `backtrail log`: what happened in this workspace.

mod lines;
mod path_filter;
mod rows;
mod steps;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::SystemTime;

use backtrail::rewind::{Ending, Program};
use backtrail::workspace::{CheckpointReason, GitHead, LogEntry, LogKind};
use backtrail::{Checkpoint, CheckpointId, Timestamp, Workspace};
use serde::Serialize;
use serde_json::{Value, json};

use self::lines::{Damage, every_checkpoint};
pub(super) use self::lines::{Line, RowMaker, newest_first};
use self::path_filter::PathFilter;
pub(super) use self::rows::{Changed, Row, change, draw_rows, kind_style, mark};
use super::Answer;
use super::cat::within_all;
use super::moves::program_name;
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use crate::derived::prefix;
use crate::error::Result;
use crate::home::tilde;
use crate::text::{count, one_line, visible};
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

/// How many lines are shown by default.
const LINES: usize = 30;
fn print(
    workspace: &Workspace,
    lines: &[Line],
    args: &LogArgs,
    paths: &[PathBuf],
    ui: &Ui,
) -> Result<Answer> {
    let total = lines.len();
    let mut maker = RowMaker::new(workspace, paths, unique_length(lines))?;
    let mut rows = Vec::new();
    let mut looked_at = 0;
    for (line, folded) in newest_first(lines) {
        if rows.len() >= args.count.unwrap_or(LINES) {
            break;
        }
        looked_at += folded;
        rows.extend(maker.row(line, folded)?);
    }
    let now = maker.now(workspace, paths, ui)?;
    let mut all = workspace.checkpoints_back()?;
    let counted = all.by_ref().filter(is_counted);
    let checkpoints = counted.count() as u64;
    maker.damage.on_trail(&all);
    ui.remark(&format!(
        "{} · {}",
        tilde(workspace.root()),
        count(checkpoints, "checkpoint")
    ));
    if rows.is_empty() && now.is_none() {
        let known = if maker.filter.has_unknown() {
            "known "
        } else {
            ""
        };
        ui.status(&format!("no {known}changes to these paths"));
    }
    rows.splice(0..0, now);
    without_today(&mut rows);
    ui.page(&draw_rows(&rows, ui.width()))?;
    if looked_at < total {
        let more = count(total - looked_at, "more line");
        ui.remark(&format!("{more} (-n {total} for all)"));
    }
    maker.filter.report_unknown("line", ui);
    maker.damage.warn(ui);
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

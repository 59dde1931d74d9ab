//! `backtrail log`: what happened in this workspace.

use std::io::Write;
use std::path::PathBuf;

use backtrail::{Checkpoint, Diff, ErrorKind, LogEntry, LogKind, Why, Workspace};
use serde_json::Value;

use super::Answer;
use super::cat::within;
use super::checkpoint::checkpoint_json;
use super::diff::lines_of;
use super::here::Here;
use crate::args::Global;
use crate::error::Result;
use crate::home::tilde;
use crate::progress;
use crate::text::{count, one_line};
use crate::ui::{BOLD, DIM, Ui, unwritable};
use crate::when;

/// Show what happened in this workspace: turns, runs, checkpoints, and your own work
///
/// The newest comes first. The id at the end of a line is a point: the files as
/// they were after it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only what changed these files and directories
    #[arg(value_name = "PATHS", last = true)]
    paths: Vec<PathBuf>,

    /// Show that many lines
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 30)]
    count: usize,

    /// Show every checkpoint there is
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    here: Here,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let Some(workspace) = args.here.find(global)? else {
        if ui.json() {
            ui.print_json(&Value::Array(Vec::new()))?;
        } else {
            ui.status("nothing was kept here yet; begin with: backtrail run -- COMMAND");
        }
        return Ok(Answer::Done);
    };
    let paths = args.paths.iter().map(|path| within(workspace.root(), path));
    let paths = paths.collect::<Result<Vec<_>>>()?;
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

fn print_json(workspace: &Workspace, args: &Args, paths: &[PathBuf], ui: &Ui) -> Result<Answer> {
    let mut list = Vec::new();
    for checkpoint in workspace.checkpoints_back()? {
        let checkpoint = checkpoint?;
        let wanted = args.all || *checkpoint.why() != Why::ToolEnd;
        if wanted && (paths.is_empty() || touches(&checkpoint.changes_before()?, paths)?) {
            list.push(checkpoint_json(&checkpoint));
        }
    }
    ui.print_json(&Value::Array(list))?;
    Ok(Answer::Done)
}

fn touches(diff: &Diff, paths: &[PathBuf]) -> Result<bool> {
    Ok(!diff.clone().only(paths)?.is_empty())
}

/// What a line is about.
struct Line {
    kind: String,
    about: String,
    before: Option<Checkpoint>,
    after: Checkpoint,
}

impl From<LogEntry> for Line {
    fn from(entry: LogEntry) -> Self {
        Self {
            kind: kind(&entry).to_owned(),
            about: about(&entry),
            before: entry.before().cloned(),
            after: entry.after().clone(),
        }
    }
}

/// Returns a line for each checkpoint, the oldest first.
fn every_checkpoint(workspace: &Workspace) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for after in workspace.checkpoints()? {
        let after = after?;
        let about = after.label().or(after.about()).unwrap_or_default();
        lines.push(Line {
            kind: after.why().to_string(),
            about: about.to_owned(),
            before: lines.last().map(|line| line.after.clone()),
            after,
        });
    }
    Ok(lines)
}

impl Line {
    /// Returns what changed; `None` for the first checkpoint of all.
    fn changes(&self) -> Result<Option<Diff>> {
        match &self.before {
            Some(before) => Ok(Some(before.snapshot()?.diff(&self.after.snapshot()?)?)),
            None => Ok(None),
        }
    }
}

/// One line as it is printed.
struct Row {
    kind: String,
    at: String,
    about: String,
    change: String,
    id: String,
}

fn print(
    workspace: &Workspace,
    lines: &[Line],
    args: &Args,
    paths: &[PathBuf],
    ui: &Ui,
) -> Result<Answer> {
    let total = lines.len();
    let ids = unique_length(lines);
    let mut rows = Vec::new();
    let mut looked_at = 0;
    for line in lines.iter().rev() {
        if rows.len() == args.count {
            break;
        }
        looked_at += 1;
        let diff = match line.changes()? {
            Some(diff) if !paths.is_empty() => Some(diff.only(paths)?),
            diff => diff,
        };
        if !paths.is_empty() && diff.as_ref().is_none_or(Diff::is_empty) {
            continue;
        }
        rows.push(row(line, diff.as_ref(), ids)?);
    }
    let now = now_row(workspace, paths, ui)?;
    let checkpoints = workspace.checkpoints_back()?.count() as u64;
    ui.remark(&format!(
        "{} · {}",
        tilde(workspace.root()),
        count(checkpoints, "checkpoint")
    ));
    if rows.is_empty() && now.is_none() {
        ui.status("nothing here changed that");
    }
    rows.splice(0..0, now);
    print_rows(&rows, ui).map_err(|error| unwritable(&error))?;
    if looked_at < total {
        let more = count((total - looked_at) as u64, "more line");
        ui.remark(&format!("{more}; show them with -n {total}"));
    }
    Ok(Answer::Done)
}

/// Returns the line for what changed since the newest checkpoint, if anything did.
fn now_row(workspace: &Workspace, paths: &[PathBuf], ui: &Ui) -> Result<Option<Row>> {
    let Some(last) = workspace.last_checkpoint()? else {
        return Ok(None);
    };
    let before = last.snapshot()?;
    let compared = progress::while_shown(ui, |progress| {
        workspace.changes_since_with(&before, progress)
    });
    let diff = match compared {
        Ok((diff, _)) => diff.only(paths)?,
        // The directory may be gone; what happened in it can be told all the same.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if diff.is_empty() {
        return Ok(None);
    }
    Ok(Some(Row {
        kind: String::new(),
        at: "now".to_owned(),
        about: "since the last checkpoint".to_owned(),
        change: change(&diff)?,
        id: String::new(),
    }))
}

fn row(line: &Line, diff: Option<&Diff>, id_length: usize) -> Result<Row> {
    let after = &line.after;
    Ok(Row {
        kind: line.kind.clone(),
        at: when::brief(after.at()),
        about: line.about.clone(),
        change: match diff {
            Some(diff) => change(diff)?,
            None => count(after.files(), "file"),
        },
        id: after.id().prefix(id_length),
    })
}

fn kind(entry: &LogEntry) -> &'static str {
    match entry.kind() {
        LogKind::Turn => "turn",
        LogKind::Run => "run",
        LogKind::Checkpoint => "checkpoint",
        LogKind::Person => "you",
        _ => "other",
    }
}

fn about(entry: &LogEntry) -> String {
    let first = entry.before().and_then(Checkpoint::about);
    let label = entry.after().label();
    let mut text = match (first, label, entry.kind()) {
        (_, _, LogKind::Person) => String::new(),
        (Some(about), Some(label), LogKind::Turn | LogKind::Run) => format!("{about} [{label}]"),
        (Some(about), None, LogKind::Turn | LogKind::Run) => about.to_owned(),
        (_, Some(label), _) => label.to_owned(),
        (_, None, LogKind::Checkpoint) if entry.before().is_none() => "the first".to_owned(),
        _ => String::new(),
    };
    if !entry.ended() {
        text += " (did not end)";
    }
    text
}

fn change(diff: &Diff) -> Result<String> {
    if diff.is_empty() {
        return Ok("no change".to_owned());
    }
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter() {
        if let Some((more, less)) = lines_of(diff, change)? {
            added += more;
            removed += less;
        }
    }
    let paths = count(diff.changes().len() as u64, "file");
    Ok(match (added, removed) {
        (0, 0) => paths,
        (added, 0) => format!("+{added}  {paths}"),
        (0, removed) => format!("−{removed}  {paths}"),
        (added, removed) => format!("+{added} −{removed}  {paths}"),
    })
}

/// Returns how many characters tell the ids in the log apart: four at least.
fn unique_length(lines: &[Line]) -> usize {
    let mut ids: Vec<String> = lines
        .iter()
        .map(|line| line.after.id().to_string())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let shared = |(a, b): (&String, &String)| {
        let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b);
        same.count()
    };
    let longest = ids.iter().zip(ids.iter().skip(1)).map(shared).max();
    longest.map_or(4, |shared| (shared + 1).max(4))
}

/// What stands between two columns.
const GAP: usize = 2;
/// The narrowest column for what it was about, and the widest.
const ABOUT: (usize, usize) = (8, 50);

fn print_rows(rows: &[Row], ui: &Ui) -> std::io::Result<()> {
    let widest = |text: fn(&Row) -> &str| {
        let widths = rows.iter().map(|row| text(row).chars().count());
        widths.max().unwrap_or(0)
    };
    let at = widest(|row| &row.at);
    let kind = widest(|row| &row.kind);
    let change = widest(|row| &row.change);
    let id = widest(|row| &row.id);
    let others = at + kind + change + id + 4 * GAP;
    let room = ui
        .width()
        .map_or(ABOUT.1, |width| width.saturating_sub(others));
    let about = widest(|row| &row.about).min(room.clamp(ABOUT.0, ABOUT.1));
    let mut out = ui.out();
    for row in rows {
        let text = one_line(&row.about, about);
        let pad = " ".repeat(about.saturating_sub(unicode_width::UnicodeWidthStr::width(&*text)));
        writeln!(
            out,
            "{DIM}{:<at$}{DIM:#}  {BOLD}{:<kind$}{BOLD:#}  {text}{pad}  {:<change$}  {DIM}{}{DIM:#}",
            row.at, row.kind, row.change, row.id
        )?;
    }
    out.flush()
}

//! `backtrail blame`: who wrote each line of a file.

pub(super) mod screen;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use backtrail::workspace::{Blame, OriginKind};
use backtrail::{Checkpoint, ErrorKind, Point};

use super::Answer;
use super::cat::within;
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use crate::error::{CommandError, Result};
use crate::shell::quote_path;
use crate::text::count;
use crate::ui::Ui;

/// Show which session, turn and prompt wrote each line of a file
///
/// Shell commands count as well as edits: the lines are followed through the checkpoints, also
/// through renames and undo. A ~ marks lines that an edit of an imported session has and no
/// checkpoint proves, a ? marks lines that came while checkpoints are missing.
#[derive(Debug, clap::Args)]
pub(crate) struct BlameArgs {
    /// The file, relative to the current directory; FILE:LINE shows one line with its whole prompt
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The file as it was then: a checkpoint or record id, a label, last, last~N or REF:SEQ
    /// [default: now]
    #[arg(value_name = "POINT")]
    point: Option<Point>,

    /// Only these lines: 10,20 or 10, or ,20 or 10,+5
    #[arg(long, short = 'L', value_name = "LINES")]
    lines: Option<LineRange>,

    #[command(flatten)]
    here: WorkspaceArgs,
}

/// Lines of a file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineRange(RangeInclusive<u64>);

impl FromStr for LineRange {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || "write the first and the last line, such as 10,20".to_owned();
        let number = |text: &str, default: u64| match text {
            "" => Ok(default),
            text => text.parse().map_err(|_| wrong()),
        };
        let (first, last) = text.split_once(',').unwrap_or((text, text));
        if first.is_empty() && last.is_empty() {
            return Err(wrong());
        }
        let first = number(first, 1)?;
        let last = match last.strip_prefix('+') {
            Some(many) => first.saturating_add(number(many, 1)?).saturating_sub(1),
            None => number(last, u64::MAX)?,
        };
        match first >= 1 && first <= last {
            true => Ok(Self(first..=last)),
            false => Err("lines count from 1, and the first comes before the last".to_owned()),
        }
    }
}

pub(crate) fn run(args: &BlameArgs, ui: &Ui) -> Result<Answer> {
    let workspace = args.here.require(ui, Finish::ToRead)?;
    let (file, line) = split_line(args);
    let lines = match (&args.lines, line) {
        (Some(_), Some(_)) => {
            let what = ":LINE already selects a line";
            return Err(CommandError::invalid(what).hint("omit :LINE or -L"));
        }
        (lines, line) => lines.clone().or(line.map(|line| LineRange(line..=line))),
    };
    let path = within(workspace.root(), &file)?;
    if path.as_os_str().is_empty() {
        let what = format!("{} is a directory; name a file in it", quote_path(&file));
        return Err(CommandError::invalid(what));
    }
    let at = args.point.as_ref();
    let at = at.map(|point| args.here.resolve(&workspace, point, ui));
    let at = at.transpose()?;
    let blame = workspace
        .blame(&path, at.as_ref())
        .map_err(|error| explained(error, args, &file, at.as_ref(), ui))?;
    let blame = match &lines {
        Some(LineRange(lines)) => selected(blame, lines.clone())?,
        None => blame,
    };
    if ui.json() {
        return ui.answer_json(&blame);
    }
    match line {
        Some(_) => screen::print_one(&blame, ui)?,
        None if blame.lines.is_empty() => {
            ui.status(&format!("{} is empty", quote_path(&file)));
        }
        None => screen::print(&blame, ui)?,
    }
    report_gaps(&blame, ui);
    Ok(Answer::Done)
}

/// Splits `FILE:LINE`, unless there is a file of that name.
fn split_line(args: &BlameArgs) -> (PathBuf, Option<u64>) {
    let whole = || (args.file.clone(), None);
    let Some((file, line)) = args.file.to_str().and_then(|text| text.rsplit_once(':')) else {
        return whole();
    };
    match line.parse() {
        Ok(line) if !file.is_empty() && !args.file.exists() => (PathBuf::from(file), Some(line)),
        _ => whole(),
    }
}

fn selected(blame: Blame, lines: RangeInclusive<u64>) -> Result<Blame> {
    let all = blame.lines.len();
    let first = *lines.start();
    if first == 0 || first > all as u64 {
        let what = format!(
            "there is no line {first}: the file has {}",
            count(all, "line")
        );
        return Err(CommandError::not_found(what).hint("lines count from 1"));
    }
    Ok(blame.only(lines))
}

/// Adds what to do about a file that cannot be blamed.
fn explained(
    error: backtrail::Error,
    args: &BlameArgs,
    file: &std::path::Path,
    at: Option<&Checkpoint>,
    ui: &Ui,
) -> CommandError {
    let kind = error.kind();
    let points = error.points().to_vec();
    let is_protection = error.message().contains("protected");
    let command = CommandError::from(error);
    let name = quote_path(file);
    let then = points.first().filter(|_| kind == ErrorKind::NotFound);
    match (kind, then) {
        (ErrorKind::NotFound, Some(then)) => command.hint(format!(
            "as it was when it was last saved: {} {name} {then}",
            args.here.command(ui, "blame")
        )),
        (ErrorKind::NotFound, None) => command.hint(match at {
            Some(_) => args.here.when_changed(file, ui),
            None => "paths are relative to the current directory".to_owned(),
        }),
        (ErrorKind::Dropped, _) => command.hint(format!(
            "see what is left: {} -- {name}",
            args.here.command(ui, "log")
        )),
        (ErrorKind::Invalid, _) if is_protection => command.hint(format!(
            "protect it from now on: {} --include-ignored {name}",
            args.here.command(ui, "checkpoint")
        )),
        _ => command,
    }
}

/// Says which lines are in doubt because checkpoints are missing.
fn report_gaps(blame: &Blame, ui: &Ui) {
    let is_doubtful = |origin: usize| {
        let origin = &blame.origins[origin];
        origin.since.is_some() || origin.kind == OriginKind::Restored
    };
    let doubtful = blame.lines.iter().filter(|line| is_doubtful(line.origin));
    let doubtful = doubtful.count();
    if doubtful > 0 {
        ui.status(&format!(
            "?: {} came while files of checkpoints are missing (dropped, damaged or not protected)",
            count(doubtful, "line")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines_are_read_as_git_reads_them() {
        let range = |text: &str| text.parse().map(|LineRange(range)| range).ok();
        assert_eq!(range("10,20"), Some(10..=20));
        assert_eq!(range("10"), Some(10..=10));
        assert_eq!(range("10,"), Some(10..=u64::MAX));
        assert_eq!(range(",20"), Some(1..=20));
        assert_eq!(range("10,+5"), Some(10..=14));
        for wrong in ["", ",", "0,3", "5,4", "a,b", "1,2,3", "-1", "10,+0"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }
}

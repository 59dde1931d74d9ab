//! `backtrail diff`: shows what changed.

pub(super) mod stat;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use backtrail::snapshot::{ChangeKind, Diff, TextDiff};
use backtrail::{Change, ErrorKind, Point, Snapshot, Workspace};

use super::Answer;
use super::cat::within_all;
use super::checkpoint::named;
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use crate::error::Result;
use crate::home::tilde;
use crate::layout::BOLD;
use crate::pager::Paged;
use crate::progress;
use crate::text::visible;
use crate::ui::Ui;

pub(super) const ADDED: Style = AnsiColor::Green.on_default();
pub(super) const REMOVED: Style = AnsiColor::Red.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();
/// How many lines around a change are shown.
pub(super) const CONTEXT: usize = 3;

/// Show what changed between two points, or since one
///
/// Without a point: what the last turn or run changed, and everything since. With one point:
/// from there to now. A point is the id of a checkpoint or record (or a prefix of 4+
/// characters), a label, last, last~N (before the last N turns or runs), or REF:SEQ (a
/// record
/// of a session).
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The start
    #[arg(value_name = "A")]
    from: Option<Point>,

    /// The end [default: now]
    #[arg(value_name = "B")]
    to: Option<Point>,

    /// Only these files and directories
    #[arg(value_name = "PATHS", last = true)]
    paths: Vec<PathBuf>,

    /// Show how many lines changed in each file
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,

    /// Show only the names of the files
    #[arg(long)]
    name_only: bool,

    /// End each name with a NUL byte, unquoted
    #[arg(short = 'z', requires = "name_only")]
    zero: bool,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &DiffArgs, ui: &Ui) -> Result<Answer> {
    let workspace = args.here.require(ui, Finish::ToRead)?;
    let paths = within_all(workspace.root(), &args.paths)?;
    let diff = compare(args, &workspace, ui)?.only(&paths)?;
    if ui.json() {
        ui.print_json(&diff.changes())?;
    } else if diff.is_empty() {
        ui.status(&format!("no changes in {}", tilde(workspace.root())));
    } else {
        let mut out = if args.zero {
            Paged::stdout()
        } else {
            Paged::new()
        };
        match () {
            () if args.name_only => print_names(&diff, args.zero, &mut out)?,
            () if args.stat => stat::print(&diff, ui.width(), &mut styled(ui, &mut out))?,
            () => print_unified(&diff, ui, &mut out)?,
        }
        out.finish()?;
    }
    if let Some(text) = named(diff.no_longer_captured()) {
        ui.status(&format!("no longer protected: {text}"));
    }
    Ok(Answer::Done)
}

fn compare(args: &DiffArgs, workspace: &Workspace, ui: &Ui) -> Result<Diff> {
    let before = match &args.from {
        Some(point) => args.here.resolve(workspace, point, ui)?.snapshot()?,
        None => start_of_last(workspace)?,
    };
    match &args.to {
        Some(point) => {
            let after = args.here.resolve(workspace, point, ui)?.snapshot()?;
            Ok(before.diff(&after)?)
        }
        None => Ok(progress::changes_since(ui, workspace, &before)?),
    }
}

/// Returns the files before the last turn or run; without one, at the last checkpoint.
fn start_of_last(workspace: &Workspace) -> Result<Snapshot> {
    let found = match workspace.resolve(&Point::turns_back(1)) {
        Err(error) if error.kind() == ErrorKind::NotFound => workspace.resolve(&Point::last()),
        found => found,
    };
    Ok(found?.snapshot()?)
}

/// Prints the paths: byte for byte and NUL-terminated, or one a line, quoted where needed.
fn print_names(diff: &Diff, zero: bool, out: &mut impl Write) -> io::Result<()> {
    for change in diff.iter() {
        match zero {
            true => {
                out.write_all(change.path.as_os_str().as_encoded_bytes())?;
                out.write_all(b"\0")?;
            }
            false => writeln!(out, "{}", change.quoted_path())?,
        }
    }
    Ok(())
}

/// How many lines a change added and removed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lines {
    Counted(u64, u64),
    /// One side is not text; the sizes before and after.
    Binary(Option<u64>, Option<u64>),
    /// One side is too large to compare line by line.
    TooLarge(Option<u64>, Option<u64>),
}

impl Lines {
    fn added(&self) -> u64 {
        match self {
            Self::Counted(added, _) => *added,
            Self::Binary(..) | Self::TooLarge(..) => 0,
        }
    }

    fn removed(&self) -> u64 {
        match self {
            Self::Counted(_, removed) => *removed,
            Self::Binary(..) | Self::TooLarge(..) => 0,
        }
    }
}

/// Counts the lines that a change added and removed.
pub(crate) fn lines_of(diff: &Diff, change: &Change) -> backtrail::Result<Lines> {
    if change.kind == ChangeKind::Mode {
        return Ok(Lines::Counted(0, 0));
    }
    Ok(match diff.text(change, 0)? {
        TextDiff::Text { added, removed, .. } => Lines::Counted(added, removed),
        TextDiff::TooLarge { before, after, .. } => Lines::TooLarge(before, after),
        TextDiff::Binary { before, after, .. } => Lines::Binary(before, after),
        _ => Lines::Binary(None, None),
    })
}

fn print_unified(diff: &Diff, ui: &Ui, out: &mut impl Write) -> Result<()> {
    if !ui.styles_stdout() && !io::stdout().is_terminal() {
        // Unchanged, so that it can be applied as a patch.
        diff.write_unified(out, CONTEXT)?;
        return Ok(());
    }
    let mut out = styled(ui, out);
    for change in diff.iter() {
        let text = diff.text(change, CONTEXT)?;
        paint(text.unified(), &mut out)?;
    }
    Ok(())
}

/// Colours a unified diff and makes its terminal escapes visible.
pub(crate) fn paint(text: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut in_hunk = false;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = String::from_utf8_lossy(line);
        in_hunk = (in_hunk || line.starts_with("@@")) && !line.starts_with("diff ");
        let style = match line.bytes().next() {
            Some(b'@') => PLACE,
            Some(b'+') if in_hunk => ADDED,
            Some(b'-') if in_hunk => REMOVED,
            _ if in_hunk => Style::new(),
            _ => BOLD,
        };
        writeln!(out, "{style}{}{style:#}", visible(&line))?;
    }
    Ok(())
}

/// Returns a stream that removes styles where they are not wanted.
pub(super) fn styled<'a>(ui: &Ui, out: &'a mut impl Write) -> Box<dyn Write + 'a> {
    if ui.styles_stdout() {
        Box::new(out)
    } else {
        Box::new(Strip(out))
    }
}

/// Removes styles from what is written.
struct Strip<'a, W>(&'a mut W);

impl<W: Write> Write for Strip<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = anstream::adapter::strip_bytes(bytes).into_vec();
        self.0.write_all(&plain)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

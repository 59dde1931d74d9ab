//! `backtrail restore`: some files back to a point.

use std::path::{Path, PathBuf};

use backtrail::{Point, Rewind};

use super::Answer;
use super::cat::within;
use super::moves::{How, HunkRequest, Move, MoveRequest};
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use crate::args::Global;
use crate::error::Result;
use crate::shell::{arguments, quote};
use crate::ui::Ui;

/// Restore some files and directories as they were at a point
///
/// Everything else stays as it is, the conversation too. Files deleted since then
/// are restored, and files created since then are deleted. Nothing is lost: undo
/// reverses it.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// A checkpoint's or record's id, a label, last, last~N or REF:SEQ
    #[arg(value_name = "POINT")]
    point: Point,

    /// The files and directories, from the current directory
    #[arg(value_name = "PATHS", required = true)]
    paths: Vec<PathBuf>,

    /// Show each hunk and ask whether to restore it; needs a terminal
    #[arg(long, short = 'p', conflicts_with_all = ["dry_run", "keep", "merge", "overwrite"])]
    patch: bool,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &RestoreArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    if args.patch {
        HunkRequest::can_ask(ui)?;
    }
    let workspace = args.here.require(global, ui, Finish::ToWrite)?;
    let paths = args.paths.iter().map(|path| within(workspace.root(), path));
    let paths = paths.collect::<Result<Vec<_>>>()?;
    let request = MoveRequest {
        ui,
        store: workspace.store(),
        movement: Move::Rewind(&workspace, &args.point),
        options: Rewind::files().paths(&paths),
        how: &args.how,
        moves_both: false,
        line: args.line(),
        behind: args.here.flag(),
        place: None,
    };
    let wrong = |error: backtrail::Error| match error.path().map(Path::is_relative) {
        // A path that does not exist; anything else that is not found is the point.
        Some(true) => args.here.unknown_path(&args.paths, &paths, error, ui),
        _ => args.here.wrong_point(&workspace, &args.point, ui, error),
    };
    match args.patch {
        true => HunkRequest(&request).go(wrong),
        false => request.go(wrong),
    }
}

impl RestoreArgs {
    /// Returns the command line that does it, without the program.
    fn line(&self) -> String {
        let paths = self.paths.iter().map(|path| path.to_string_lossy());
        let paths = arguments(&paths.collect::<Vec<_>>());
        let paths = paths.strip_prefix("-- ").unwrap_or(&paths);
        let point = quote(&self.point.to_string());
        let (here, how) = (self.here.flag(), self.how.flags());
        let patch = if self.patch { " --patch" } else { "" };
        format!("restore {point}{patch}{how}{here} -- {paths}")
    }
}

//! `backtrail restore`: some files back to a point.

use std::path::PathBuf;

use backtrail::{Point, Rewind};

use super::Answer;
use super::cat::within_all;
use super::moves::{How, Move, MoveRequest, check_patch};
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use crate::error::Result;
use crate::shell::{quote, quote_paths};
use crate::ui::Ui;

/// Restore some files and directories as they were at a point
///
/// Everything else stays, including the conversation. Files deleted since then
/// are restored, and files created since then are deleted. Nothing is lost: undo
/// reverses it.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// A checkpoint or record id, a label, last, last~N or REF:SEQ (see: help diff)
    #[arg(value_name = "POINT")]
    point: Point,

    /// The paths, relative to the current directory
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

pub(crate) fn run(args: &RestoreArgs, ui: &Ui) -> Result<Answer> {
    check_patch(args.patch, ui)?;
    let workspace = args.here.require(ui, Finish::ToWrite)?;
    let (here, how) = (args.here.flag(), args.how.flags());
    let point = quote(&args.point.to_string());
    let patch = if args.patch { " --patch" } else { "" };
    let paths = quote_paths(&args.paths);
    let request = MoveRequest {
        ui,
        movement: Move::Rewind(&workspace, &args.point),
        options: Rewind::files().paths(&within_all(workspace.root(), &args.paths)?),
        patch: args.patch,
        how: &args.how,
        here: &args.here,
        paths: &args.paths,
        moves_both: false,
        line: format!("restore {point}{patch}{how}{here} -- {paths}"),
        behind: here,
        place: None,
    };
    request.go(|error| args.here.wrong_point(&workspace, &args.point, ui, error))
}

//! `backtrail undo`.

use std::path::PathBuf;

use backtrail::rewind::Verb;

use super::Answer;
use super::moves::StepArgs;
use crate::error::Result;
use crate::ui::Ui;

/// Undo the last step: a turn, a run, a rewind, a restore or a compaction
///
/// Without REF, undoes the last step in this workspace, whichever session made it. Only what
/// that step changed in files and conversation is undone; redo reverses it.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// Undo only these files and directories, in the last step that changed any of
    /// them; the conversation stays
    #[arg(long, value_name = "PATHS", num_args = 1.., conflicts_with = "chat")]
    paths: Vec<PathBuf>,

    /// Undo only the last tool call that changed files; the conversation stays
    #[arg(long, conflicts_with_all = ["paths", "chat"])]
    tool: bool,

    /// Abandon a rewind that was interrupted and cannot be finished; the files stay as they are
    #[arg(long, conflicts_with_all = ["reference", "paths", "files", "chat", "dry_run"])]
    abandon: bool,

    #[command(flatten)]
    step: StepArgs,
}

pub(crate) fn run(args: &UndoArgs, ui: &Ui) -> Result<Answer> {
    match args.abandon {
        true => args.step.abandon(ui),
        false if args.tool => args.step.undo_call(ui),
        false => args.step.run(Verb::Undo, &args.paths, ui),
    }
}

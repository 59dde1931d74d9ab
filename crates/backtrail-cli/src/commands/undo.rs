//! `backtrail undo`.

use std::path::PathBuf;

use backtrail::rewind::Verb;

use super::Answer;
use super::moves::{How, StepRequest, What};
use super::workspace::WorkspaceArgs;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Undo the last step: a turn, a run, a rewind, a restore or a compaction
///
/// Without REF it is the last step of this workspace, in whichever session. Only
/// what the step changed in files and conversation is undone; redo restores it.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Undo only these files and directories, in the last step that changed any of
    /// them; the conversation stays
    #[arg(long, value_name = "PATHS", num_args = 1.., conflicts_with = "chat")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &UndoArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let request = StepRequest {
        verb: Verb::Undo,
        reference: args.reference.as_deref(),
        what: &args.what,
        how: &args.how,
        here: &args.here,
        paths: &args.paths,
    };
    request.go(global, ui)
}

//! `backtrail undo`.

use std::path::PathBuf;

use backtrail::Verb;

use super::Answer;
use super::moves::{How, Stepping, What};
use super::workspace::WorkspaceArgs;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Take the newest step back: a turn, a run, a rewind, a restore or a compaction
///
/// Without REF it is the newest step of this workspace, whichever session it
/// belongs to. What the step changed in files and conversation is taken back,
/// and nothing else; redo brings it forward again.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Take back these files and directories alone, of the newest step that changed
    /// any of them; all else stays, the conversation too
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
    let stepping = Stepping {
        verb: Verb::Undo,
        reference: args.reference.as_deref(),
        what: &args.what,
        how: &args.how,
        here: &args.here,
        paths: &args.paths,
    };
    stepping.go(global, ui)
}

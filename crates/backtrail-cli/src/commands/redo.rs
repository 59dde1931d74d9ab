//! `backtrail redo`.

use backtrail::Verb;

use super::Answer;
use super::moves::{How, Stepping, What};
use super::workspace::WorkspaceArgs;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Bring the step that was undone last forward again
///
/// Without REF it is that of this workspace. A new turn, run or move ends this,
/// and so does anything that was said since in a conversation that it would move.
#[derive(Debug, clap::Args)]
pub(crate) struct RedoArgs {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF")]
    reference: Option<String>,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &RedoArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let stepping = Stepping {
        verb: Verb::Redo,
        reference: args.reference.as_deref(),
        what: &args.what,
        how: &args.how,
        here: &args.here,
        paths: &[],
    };
    stepping.go(global, ui)
}

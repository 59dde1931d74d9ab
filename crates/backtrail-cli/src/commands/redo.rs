//! `backtrail redo`.

use backtrail::rewind::Verb;

use super::Answer;
use super::moves::{How, StepRequest, What};
use super::workspace::WorkspaceArgs;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Redo the last undone step
///
/// Without REF it is the last one of this workspace. A new turn, run or rewind ends
/// this, and so do new messages in a conversation that it would move.
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
    let request = StepRequest {
        verb: Verb::Redo,
        reference: args.reference.as_deref(),
        what: &args.what,
        how: &args.how,
        here: &args.here,
        paths: &[],
    };
    request.go(global, ui)
}

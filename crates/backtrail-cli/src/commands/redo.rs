//! `backtrail redo`.

use backtrail::rewind::Verb;

use super::Answer;
use super::moves::StepArgs;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Redo the last undone step
///
/// Without REF it is the last one of this workspace. A new turn, run or rewind ends
/// this, and so do new messages in a conversation that it would move.
#[derive(Debug, clap::Args)]
pub(crate) struct RedoArgs {
    #[command(flatten)]
    step: StepArgs,
}

pub(crate) fn run(args: &RedoArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    args.step.run(Verb::Redo, &[], global, ui)
}

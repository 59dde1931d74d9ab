//! `backtrail redo`.

use backtrail::rewind::Verb;

use super::Answer;
use super::moves::StepArgs;
use crate::error::Result;
use crate::ui::Ui;

/// Redo the last undone step
///
/// Without REF, redoes the last one in this workspace. After a new turn, run or rewind, or new
/// messages in the conversation, there is nothing left to redo.
#[derive(Debug, clap::Args)]
pub(crate) struct RedoArgs {
    #[command(flatten)]
    step: StepArgs,
}

pub(crate) fn run(args: &RedoArgs, ui: &Ui) -> Result<Answer> {
    args.step.run(Verb::Redo, &[], ui)
}

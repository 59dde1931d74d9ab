//! `backtrail completions`.

use super::Answer;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Print a script that completes commands in a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, _global: &Global, _ui: &Ui) -> Result<Answer> {
    Ok(Answer::Done)
}

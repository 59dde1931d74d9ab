//! `backtrail relink`.

use super::Answer;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Say where a directory that was moved is now
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, _global: &Global, _ui: &Ui) -> Result<Answer> {
    Ok(Answer::Done)
}

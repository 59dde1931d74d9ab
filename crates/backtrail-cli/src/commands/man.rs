//! `backtrail man`.

use super::Answer;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Print the manual page
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, _global: &Global, _ui: &Ui) -> Result<Answer> {
    Ok(Answer::Done)
}

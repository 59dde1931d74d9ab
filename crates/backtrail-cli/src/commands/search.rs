//! `backtrail search`.

use super::Answer;
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Find anything that was said or done
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, _global: &Global, _ui: &Ui) -> Result<Answer> {
    Ok(Answer::Done)
}

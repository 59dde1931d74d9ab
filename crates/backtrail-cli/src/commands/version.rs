//! `backtrail version`.

use serde_json::json;

use super::Answer;
use crate::error::Result;
use crate::ui::Ui;

/// Print the version
#[derive(Debug, clap::Args)]
pub(crate) struct VersionArgs {}

pub(crate) fn run(_args: &VersionArgs, ui: &Ui) -> Result<Answer> {
    let version = env!("CARGO_PKG_VERSION");
    match ui.json() {
        true => ui.print_json(&json!({"version": version}))?,
        false => ui.print_line(&format!("backtrail {version}"))?,
    }
    Ok(Answer::Done)
}

//! `backtrail rebuild`: what is derived from the sessions, built anew.

use serde_json::json;

use super::{Answer, require_store};
use crate::args::Global;
use crate::derived;
use crate::error::Result;
use crate::text::{count, size};
use crate::ui::Ui;

/// Build the catalogue and the search index anew
///
/// They are made from the sessions, and can be deleted at any time. Whoever reads the old
/// ones meanwhile is not disturbed. Damaged ones are built anew without being asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Take in only what is new: as every question does first
    #[arg(long)]
    new: bool,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let done = derived::ask(&store, ui, "reading sessions:", |index| match args.new {
        true => index.catch_up(),
        false => index.rebuild(),
    })?;
    if ui.json() {
        ui.print_json(&json!({"sessions": done.sessions, "bytes": done.bytes}))?;
    } else {
        let sessions = count(done.sessions, "session");
        let bytes = size(done.bytes);
        ui.print_line(&match (args.new, done.sessions) {
            (true, 0) => "catalogue and search are up to date".to_owned(),
            (true, _) => format!("catalogue and search took in {sessions}, {bytes}"),
            (false, _) => format!("catalogue and search were built anew from {sessions}, {bytes}"),
        })?;
    }
    Ok(Answer::Done)
}

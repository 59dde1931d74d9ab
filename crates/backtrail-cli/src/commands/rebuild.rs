//! `backtrail rebuild`: rebuilds the catalogue and the search index.

use serde_json::json;

use super::{Answer, require_store};
use crate::derived;
use crate::error::Result;
use crate::text::{count, size};
use crate::ui::Ui;

/// Rebuild the catalogue and search index
///
/// Both are derived from the sessions and may be deleted at any time. Programs that are
/// reading the old ones are not disturbed. Damaged ones are rebuilt automatically.
#[derive(Debug, clap::Args)]
pub(crate) struct RebuildArgs {
    /// Index only what is new (every query does this first)
    #[arg(long)]
    new: bool,
}

pub(crate) fn run(args: &RebuildArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
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
            (true, 0) => "the catalogue and search index are up to date".to_owned(),
            (true, _) => format!("indexed {sessions}, {bytes}"),
            (false, _) => {
                format!("rebuilt the catalogue and search index from {sessions}, {bytes}")
            }
        })?;
    }
    Ok(Answer::Done)
}

//! `backtrail pin`: a session that shall stay on top.

use backtrail::Note;
use serde_json::json;

use super::{Answer, require_store, resolve, short};
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Pin a session, so that it is listed first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// Take the pin away
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let id = resolve(&store, &args.reference)?;
    let before = store.read_session(&id)?.info()?.pinned;
    let pinned = !args.off;
    if before != pinned {
        store.note(&id, &Note::new().pinned(pinned))?;
    }
    if ui.json() {
        ui.print_json(&json!({"session": id, "pinned": pinned, "before": before}))?;
        return Ok(Answer::Done);
    }
    let id = short(&id);
    let is = if pinned { "is pinned" } else { "is not pinned" };
    if before == pinned {
        ui.print_line(&format!("{id} {is} already"))?;
        return Ok(Answer::Done);
    }
    ui.print_line(&format!("{id} {is} now"))?;
    let off = if pinned { " --off" } else { "" };
    ui.take_back(&format!("pin {id}{off}"));
    Ok(Answer::Done)
}

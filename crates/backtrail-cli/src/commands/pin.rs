//! `backtrail pin`: keeps a session on top of the list.

use backtrail::Note;
use serde_json::json;

use super::{Answer, find_session, short};
use crate::error::Result;
use crate::ui::Ui;

/// Pin a session to the top of the list
#[derive(Debug, clap::Args)]
pub(crate) struct PinArgs {
    /// A session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// Unpin it
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(args: &PinArgs, ui: &Ui) -> Result<Answer> {
    let (store, id) = find_session(&args.reference, ui)?;
    let before = store.read_session(&id)?.info()?.pinned;
    let pinned = !args.off;
    if before != pinned {
        store.note(&id, &Note::new().pinned(pinned))?;
    }
    if ui.json() {
        return ui.answer_json(&json!({"session": id, "pinned": pinned, "before": before}));
    }
    let id = short(&id);
    if before == pinned {
        let state = if pinned {
            "already pinned"
        } else {
            "not pinned"
        };
        ui.print_line(&format!("{id} is {state}"))?;
        return Ok(Answer::Done);
    }
    let done = if pinned { "pinned" } else { "unpinned" };
    ui.print_line(&format!("{done} {id}"))?;
    let off = if pinned { " --off" } else { "" };
    ui.to_reverse(&format!("pin {id}{off}"));
    Ok(Answer::Done)
}

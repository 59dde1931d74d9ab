//! `backtrail pin`: keeps a session on top of the list.

use backtrail::{Note, SessionId, Store};
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
    let pinned = !args.off;
    let (before, done) = set(&store, &id, pinned)?;
    if ui.json() {
        return ui.answer_json(&json!({"session": id, "pinned": pinned, "before": before}));
    }
    ui.print_line(&done)?;
    if before != pinned {
        let off = if pinned { " --off" } else { "" };
        ui.to_reverse(&format!("pin {}{off}", short(&id)));
    }
    Ok(Answer::Done)
}

/// Pins or unpins a session; returns whether it was pinned, and what to report.
pub(super) fn set(store: &Store, id: &SessionId, pinned: bool) -> Result<(bool, String)> {
    let before = store.read_session(id)?.info()?.pinned;
    if before != pinned {
        store.note(id, &Note::new().pinned(pinned))?;
    }
    let short = short(id);
    let done = match (before, pinned) {
        (true, true) => format!("{short} is already pinned"),
        (false, false) => format!("{short} is not pinned"),
        (false, true) => format!("pinned {short}"),
        (true, false) => format!("unpinned {short}"),
    };
    Ok((before, done))
}

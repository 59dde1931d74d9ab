//! `backtrail rewind`: take the conversation back.

use super::moves::{self, Verb};
use super::{Answer, Point, locked_hint, require_store, short};
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// Take a conversation back to an earlier record
///
/// Nothing is lost: undo goes back to where it was.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session and the last record that stays; 0 empties the conversation
    #[arg(value_name = "REF:SEQ")]
    point: Point,

    /// Move the conversation; files stay as they are
    #[arg(long)]
    chat: bool,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    if !args.chat {
        let what = "only the conversation can be rewound yet, and that must be said";
        return Err(CommandError::invalid(what).hint("add --chat; files stay as they are"));
    }
    let store = require_store(global)?;
    let id = args.point.resolve(&store)?;
    let Some(seq) = args.point.seq else {
        let hint = format!("backtrail rewind {}:SEQ --chat", short(&id));
        return Err(
            CommandError::invalid("say which record shall be the last one that stays")
                .hint(hint)
                .hint(format!("see the records: backtrail show {}", short(&id))),
        );
    };
    let session = store
        .open_session(&id)
        .map_err(|error| locked_hint(error, &id))?;
    let moved = session.rewind(seq).map_err(|error| {
        CommandError::from(error).hint(format!("see the records: backtrail show {}", short(&id)))
    })?;
    moves::report(Verb::Rewind, &session, moved, ui)
}

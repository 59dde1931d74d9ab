//! `backtrail undo`.

use super::moves::{self, Verb};
use super::{Answer, locked_hint, require_store, resolve};
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Take the newest step of a conversation back: a rewind or a compaction
///
/// The conversation goes on from where it was before that step. What was said
/// since goes with it; redo brings both back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF", default_value = "latest")]
    reference: String,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let id = resolve(&store, &args.reference)?;
    let session = store
        .open_session(&id)
        .map_err(|error| locked_hint(error, &id))?;
    moves::report(Verb::Undo, &session, session.undo()?, ui)
}

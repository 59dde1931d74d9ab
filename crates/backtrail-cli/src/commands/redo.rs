//! `backtrail redo`.

use super::moves::{self, Verb};
use super::{Answer, locked_hint, require_store, resolve};
use crate::args::Global;
use crate::error::Result;
use crate::ui::Ui;

/// Bring the step that was undone last forward again
///
/// Anything that was said or done since the undo ends this.
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
    moves::report(Verb::Redo, &session, session.redo()?, ui)
}

//! `backtrail compact`: a summary in place of earlier messages.

use std::path::PathBuf;

use backtrail::Compaction;
use serde_json::json;

use super::{Answer, find_session, locked_hint, open_to_write, short};
use crate::error::Result;
use crate::input::read_text;
use crate::text::count;
use crate::ui::Ui;

/// Replace earlier messages with a summary in the model's context
///
/// The messages stay in the history; from now on, the context starts with the summary.
#[derive(Debug, clap::Args)]
pub(crate) struct CompactArgs {
    /// A session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// The file with the summary; - reads stdin
    #[arg(long, value_name = "FILE")]
    summary_file: PathBuf,

    /// Keep at least this many of the last messages; more if a tool call would lose its result
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep: u64,
}

pub(crate) fn run(args: &CompactArgs, ui: &Ui) -> Result<Answer> {
    let (store, id) = find_session(&args.reference, ui)?;
    let summary = read_text(&args.summary_file, "the summary")?;
    let session = open_to_write(&store, &id, None, ui).map_err(|error| locked_hint(error, &id))?;
    let id = session.id().clone();
    let done = session.compact(&Compaction::new(summary).keep(args.keep))?;
    session.close()?;
    if ui.json() {
        let mut json = json!(done);
        json["session"] = json!(id);
        return ui.answer_json(&json);
    }
    let id = short(&id);
    ui.print_line(&format!(
        "the summary replaces {} of {id} (record {}); {} kept after it",
        count(done.removed_message_count, "message"),
        done.seq,
        count(done.kept, "message"),
    ))?;
    ui.to_reverse(&format!("undo {id}"));
    Ok(Answer::Done)
}

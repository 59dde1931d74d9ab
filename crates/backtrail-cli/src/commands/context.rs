//! `backtrail context`: prints what a model should be sent.

use std::io::{self, Write};

use backtrail::Shape;

use super::{Answer, find_session, report_gaps, short};
use crate::error::Result;
use crate::text::{count, harmless};
use crate::ui::Ui;

/// Print the messages to send to a model, as JSON
///
/// These are the instructions, the last summary and the messages since. What a provider
/// would reject is repaired by fixed rules: see docs/context.md.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// A session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// The provider's format
    #[arg(long, value_name = "SHAPE", default_value = "neutral")]
    #[arg(value_parser = ["neutral", "anthropic", "openai", "openai-chat"])]
    format: String,
}

pub(crate) fn run(args: &ContextArgs, ui: &Ui) -> Result<Answer> {
    let shape: Shape = args.format.parse()?;
    let (store, id) = find_session(&args.reference, ui)?;
    let reader = store.read_session(&id)?;
    let context = reader.context(shape)?;
    let mut out = io::stdout().lock();
    out.write_all(harmless(context.as_json()).as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())?;
    report_gaps(&reader.gaps()?, ui);
    for mend in context.mends() {
        ui.remark(&format!("repaired: {mend}"));
    }
    if context.skipped() > 0 {
        let text = format!(
            "{} in the history cannot be read; messages may be missing",
            count(context.skipped(), "place")
        );
        ui.warning(&text, Some(&format!("backtrail verify {}", short(&id))));
    }
    Ok(Answer::Done)
}

//! `backtrail context`: prints what a model should be sent, or what it was sent.

mod as_sent;

use std::io::{self, Write};

use backtrail::Shape;

use super::{Answer, find_session, report_gaps, short, split_place};
use crate::error::{CommandError, Result};
use crate::text::{count, harmless};
use crate::ui::Ui;

/// Print the messages to send to a model, as JSON
///
/// These are the instructions, the last summary and the messages since. What a provider
/// would reject is repaired by fixed rules: see docs/context.md. With --as-sent, it is the
/// request that an agent really sent, if the agent keeps a record of it.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// A session: its id, a prefix of 4+ characters, or latest; with --as-sent also REF:SEQ
    #[arg(value_name = "REF")]
    reference: String,

    /// The provider's format
    #[arg(long, value_name = "SHAPE", default_value = "neutral")]
    #[arg(value_parser = ["neutral", "anthropic", "openai", "openai-chat"])]
    format: String,

    /// Print the last request that was sent, or the one at or before record SEQ of REF:SEQ;
    /// only Claude Code from 2.1.325 keeps them
    #[arg(long, conflicts_with = "format")]
    as_sent: bool,
}

pub(crate) fn run(args: &ContextArgs, ui: &Ui) -> Result<Answer> {
    let (reference, seq) = split_place(&args.reference)?;
    if args.as_sent {
        return as_sent::run(reference, seq, ui);
    }
    if seq.is_some() {
        let what = "the context of an earlier record is not known; only what was sent then is";
        return Err(CommandError::invalid(what).hint("add --as-sent, or fork the session there"));
    }
    let shape: Shape = args.format.parse()?;
    let (store, id) = find_session(reference, ui)?;
    let reader = store.read_session(&id)?;
    let context = reader.context(shape)?;
    print(context.as_json())?;
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

/// Prints JSON.
fn print(json: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(harmless(json).as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())?;
    Ok(())
}

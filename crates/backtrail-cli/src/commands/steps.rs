//! `backtrail steps`: what undo and redo would do.

use std::io::Write;

use backtrail::{Step, Steps};
use serde_json::{Value, json};

use super::moves::step_json;
use super::{Answer, require_store, resolve, short};
use crate::args::Global;
use crate::error::Result;
use crate::ui::{BOLD, DIM, Ui, unwritable};
use crate::when;

/// List the steps of a conversation that undo and redo would take
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF", default_value = "latest")]
    reference: String,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let id = resolve(&store, &args.reference)?;
    let steps = store.read_session(&id)?.steps()?;
    if ui.json() {
        let list = |steps: &[Step]| steps.iter().map(step_json).collect::<Vec<Value>>();
        ui.print_json(&json!({
            "session": id,
            "undo": list(&steps.to_undo),
            "redo": list(&steps.to_redo),
        }))?;
        return Ok(Answer::Done);
    }
    if steps.to_undo.is_empty() && steps.to_redo.is_empty() {
        ui.status(&format!(
            "{} has no steps; rewind and compact make them",
            short(&id)
        ));
        return Ok(Answer::Done);
    }
    print(&steps, ui).map_err(|error| unwritable(&error))?;
    let next = [("undo", &steps.to_undo), ("redo", &steps.to_redo)];
    for (verb, _) in next.iter().filter(|(_, steps)| !steps.is_empty()) {
        ui.status(&format!("next: backtrail {verb} {}", short(&id)));
    }
    Ok(Answer::Done)
}

/// Prints what redo would bring on top, so that time goes downwards to the past.
fn print(steps: &Steps, ui: &Ui) -> std::io::Result<()> {
    let mut out = ui.out();
    for step in steps.to_redo.iter().rev() {
        row(&mut out, "redo", step)?;
    }
    for step in &steps.to_undo {
        row(&mut out, "undo", step)?;
    }
    out.flush()
}

fn row(out: &mut impl Write, verb: &str, step: &Step) -> std::io::Result<()> {
    let at = step.at.map_or_else(|| "?".to_owned(), when::brief);
    writeln!(out, "{BOLD}{verb}{BOLD:#}  {DIM}{at:<10}{DIM:#}  {step}")
}

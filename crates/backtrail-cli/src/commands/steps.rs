//! `backtrail steps`: what undo and redo would do.

use std::io::Write;

use backtrail::{Step, Steps};
use serde_json::{Value, json};

use super::moves::{Scope, step_json};
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use super::{Answer, short};
use crate::args::Global;
use crate::error::Result;
use crate::home::tilde;
use crate::text::clean;
use crate::ui::{BOLD, DIM, Ui, unwritable};
use crate::when;

/// List the steps that undo and redo would take
///
/// Without REF those of this workspace, whichever sessions they belong to.
#[derive(Debug, clap::Args)]
pub(crate) struct StepsArgs {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF")]
    reference: Option<String>,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &StepsArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let reference = args.reference.as_deref();
    let scope = Scope::find(reference, &args.here, global, ui, Finish::ToRead)?;
    let (steps, session, workspace) = match &scope {
        Scope::Workspace {
            workspace, session, ..
        } => {
            let steps = workspace.steps(session.as_ref())?;
            (steps, session.as_ref(), Some(workspace))
        }
        Scope::Session(store, id) => (store.read_session(id)?.steps()?, Some(id), None),
    };
    if ui.json() {
        let list = |steps: &[Step]| steps.iter().map(step_json).collect::<Vec<Value>>();
        ui.print_json(&json!({
            "session": session,
            "workspace": workspace.map(|workspace| workspace.id()),
            "undo": list(&steps.to_undo),
            "redo": list(&steps.to_redo),
        }))?;
        return Ok(Answer::Done);
    }
    if steps.to_undo.is_empty() && steps.to_redo.is_empty() {
        let makers = match workspace {
            Some(_) => "turns, runs, rewinds, restores and compactions make them",
            None => "rewind and compact make them",
        };
        let whose = match (session, workspace) {
            (Some(id), _) => short(id).to_owned(),
            (None, Some(workspace)) => tilde(workspace.root()),
            (None, None) => "it".to_owned(),
        };
        ui.status(&format!("{whose} has no steps; {makers}"));
        return Ok(Answer::Done);
    }
    print(&steps, ui).map_err(|error| unwritable(&error))?;
    let next = [("undo", &steps.to_undo), ("redo", &steps.to_redo)];
    let behind = session.map_or_else(String::new, |id| format!(" {}", short(id)));
    let here = args.here.flag();
    for (verb, _) in next.iter().filter(|(_, steps)| !steps.is_empty()) {
        ui.status(&format!("next: {} {verb}{behind}{here}", ui.program()));
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
    let words = step.to_string();
    let words = clean(&words);
    writeln!(out, "{BOLD}{verb}{BOLD:#}  {DIM}{at:<10}{DIM:#}  {words}")
}

//! `backtrail log --steps`: what undo and redo would do.

use std::io::Write;

use backtrail::Step;
use serde_json::json;

use super::{LogArgs, mark};
use crate::commands::moves::Scope;
use crate::commands::recovery::Finish;
use crate::commands::{Answer, short};
use crate::error::Result;
use crate::layout::{BOLD, DIM};
use crate::text::clean;
use crate::ui::Ui;
use crate::when;

pub(super) fn run(args: &LogArgs, ui: &Ui) -> Result<Answer> {
    let reference = args.reference.as_deref();
    let scope = Scope::find(reference, &args.here, ui, Finish::ToRead)?;
    let session = scope.session();
    let (steps, workspace) = match (&scope, session) {
        (Scope::Session(store, id), _) => (store.read_session(id)?.steps()?, None),
        (Scope::Workspace { workspace, .. }, Some(id)) => {
            (workspace.steps_of(id)?, Some(workspace))
        }
        (Scope::Workspace { workspace, .. }, None) => (workspace.steps()?, Some(workspace)),
    };
    if ui.json() {
        return ui.answer_json(&json!({
            "session": session,
            "workspace": workspace.map(|workspace| workspace.id()),
            "undo": steps.to_undo,
            "redo": steps.to_redo,
        }));
    }
    if steps.to_undo.is_empty() && steps.to_redo.is_empty() {
        ui.status(&match session {
            Some(id) => format!("nothing to undo in {}", short(id)),
            None => "nothing to undo here".to_owned(),
        });
        return Ok(Answer::Done);
    }
    // The newest step first; an arrow marks the ones that undo and redo take next.
    let mut out = ui.out();
    for (n, step) in steps.to_redo.iter().enumerate().rev() {
        print_step(&mut out, "redo", n == 0, step)?;
    }
    for (n, step) in steps.to_undo.iter().enumerate() {
        print_step(&mut out, "undo", n == 0, step)?;
    }
    out.flush()?;
    Ok(Answer::Done)
}

fn print_step(out: &mut impl Write, verb: &str, is_next: bool, step: &Step) -> std::io::Result<()> {
    let arrow = if is_next { "→" } else { " " };
    let at = step.at.map_or_else(|| "?".to_owned(), when::brief);
    let text = step.to_string();
    let mark = step.ending.and_then(mark);
    let mark = mark.map_or_else(String::new, |mark| format!(" {mark}"));
    writeln!(
        out,
        "{arrow} {BOLD}{verb}{BOLD:#}  {DIM}{at:<10}{DIM:#}  {}{mark}",
        clean(&text)
    )
}

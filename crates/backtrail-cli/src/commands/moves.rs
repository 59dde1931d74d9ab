//! What rewind, undo and redo have in common: what they say.

use backtrail::{Move, Session, Step, StepKind};
use serde_json::{Value, json};

use super::{Answer, short};
use crate::error::Result;
use crate::ui::Ui;

/// Which of them it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Rewind,
    Undo,
    Redo,
}

/// Says what was done, and how to take it back.
pub(super) fn report(
    verb: Verb,
    session: &Session,
    moved: Option<Move>,
    ui: &Ui,
) -> Result<Answer> {
    let id = session.id().clone();
    let last = session.last_seq();
    if ui.json() {
        ui.print_json(&json!({
            "session": id,
            "moved": moved.is_some(),
            "from": moved.as_ref().map_or(last, |moved| moved.from),
            "to": moved.as_ref().map_or(last, |moved| moved.to),
            "step": moved.as_ref().map(|moved| step_json(&moved.step)),
        }))?;
        return Ok(answer(verb, moved.is_some()));
    }
    let id = short(&id);
    let Some(moved) = moved else {
        ui.status(&match verb {
            Verb::Rewind if last == 0 => format!("the conversation of {id} is empty already"),
            Verb::Rewind => format!("the conversation of {id} ends at record {last} already"),
            Verb::Undo => format!("nothing to undo in {id}; see: backtrail steps {id}"),
            Verb::Redo => format!("nothing to redo in {id}; see: backtrail steps {id}"),
        });
        // Where files were kept, they are what was meant, perhaps.
        if verb == Verb::Undo && matches!(session.workspace(), Ok(Some(_))) {
            ui.status("undo takes back conversations, and files not yet; what a run changed:");
            ui.status("  all of it:     backtrail diff last~1");
            ui.status("  a file before: backtrail cat last~1 PATH");
        }
        return Ok(answer(verb, false));
    };
    let ends = match moved.to {
        0 => "is empty now".to_owned(),
        to => format!("ends at record {to} now"),
    };
    let did = match verb {
        Verb::Rewind => String::new(),
        Verb::Undo => format!("took back {}: ", moved.step),
        Verb::Redo => format!("brought back {}: ", moved.step),
    };
    ui.print_line(&format!(
        "{did}the conversation of {id} {ends} (before: {})",
        moved.from
    ))?;
    let back = match verb {
        Verb::Undo => "redo",
        Verb::Rewind | Verb::Redo => "undo",
    };
    ui.take_back(&format!("{back} {id}"));
    Ok(Answer::Done)
}

/// To be there already is fine; to find nothing to undo is a no.
fn answer(verb: Verb, moved: bool) -> Answer {
    if moved || verb == Verb::Rewind {
        Answer::Done
    } else {
        Answer::No
    }
}

pub(super) fn step_json(step: &Step) -> Value {
    let mut value = json!({
        "kind": step.kind.as_str(),
        "words": step.to_string(),
        "at": step.at,
    });
    match &step.kind {
        StepKind::Rewind { from, to } => {
            value["from"] = (*from).into();
            value["to"] = (*to).into();
        }
        StepKind::Compaction {
            seq,
            count,
            removed_message_count,
        } => {
            value["seq"] = (*seq).into();
            value["count"] = (*count).into();
            value["removed_message_count"] = (*removed_message_count).into();
        }
        _ => {}
    }
    value
}

//! File states that are lost, and the checkpoints that have them.

use std::fmt;

use backtrail::ObjectId;
use backtrail::verify::LostState;
use serde_json::{Value, json};

use crate::error::full_text;
use crate::home::tilde;
use crate::text::{count, path_json, visible_path};

/// A file state that is lost, as it is told.
pub(crate) struct Lost {
    text: String,
    json: Value,
    object: ObjectId,
}

impl Lost {
    pub(crate) fn new(state: &LostState) -> Self {
        Self {
            text: text(state),
            json: json!({
                "workspace": path_json(state.workspace.root()),
                "path": path_json(&state.path),
                "directory": state.is_dir,
                "object": state.object,
                "checkpoints": state.checkpoints,
                "reason": full_text(&state.error),
            }),
            object: state.object,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        self.json.clone()
    }
}

fn text(state: &LostState) -> String {
    let path = visible_path(&state.path);
    let root = tilde(state.workspace.root());
    let what = match (state.is_dir, path.as_str()) {
        (true, ".") => format!("all files of {root}"),
        (true, _) => format!("all that was in {path}/ of {root}"),
        (false, _) => format!("{path} of {root}"),
    };
    let first = state.checkpoints.first();
    let first = first.map_or_else(String::new, |id| id.prefix(8));
    let more = state.checkpoints.len().saturating_sub(1) as u64;
    let checkpoints = match (more, state.checkpoints.last()) {
        (0, _) | (_, None) => format!("in checkpoint {first}"),
        (_, Some(last)) => format!(
            "in {}, {first} to {}",
            count(more + 1, "checkpoint"),
            last.prefix(8)
        ),
    };
    format!("{what}, {checkpoints}")
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = self.object.to_string();
        write!(
            f,
            "{} (object {})",
            self.text,
            &object[..16.min(object.len())]
        )
    }
}

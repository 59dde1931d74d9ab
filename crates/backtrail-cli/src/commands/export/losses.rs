//! What an export lost or changed, in one shape for all formats. `resume` reports the same.

use backtrail::version1;
use backtrail_formats::Loss;
use serde::Serialize;
use serde_json::{Value, json};

use crate::text::count;
use crate::ui::Ui;

/// One kind of loss.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct ExportLoss {
    /// What it is; the name is stable.
    kind: Value,
    /// How many there are.
    count: u64,
    /// The same as a phrase.
    text: String,
}

impl ExportLoss {
    pub(in crate::commands) fn new(kind: &'static str, count: u64, text: String) -> Self {
        Self {
            kind: Value::from(kind),
            count,
            text,
        }
    }

    /// Returns how much could not be read; nothing if that is nothing.
    pub(in crate::commands) fn unreadable(places: u64) -> Vec<Self> {
        let text = || format!("{} could not be read completely", count(places, "place"));
        let loss = (places > 0).then(|| Self::new("unreadable", places, text()));
        loss.into_iter().collect()
    }

    /// Returns it as a phrase.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Reports losses on stderr.
    pub(super) fn report(losses: &[Self], ui: &Ui) {
        if !losses.is_empty() {
            ui.status_json(&json!({"losses": losses}));
        }
        for loss in losses {
            ui.status(&format!("note: {}", loss.text));
        }
    }
}

impl From<Loss> for ExportLoss {
    fn from(loss: Loss) -> Self {
        Self::new(loss.kind, loss.count, loss.text)
    }
}

impl From<&version1::Loss> for ExportLoss {
    fn from(loss: &version1::Loss) -> Self {
        Self {
            kind: json!(loss.kind),
            count: loss.count,
            text: loss.to_string(),
        }
    }
}

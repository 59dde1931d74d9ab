//! What notes say of a session: its title, tags, agent and model.

use backtrail::{RecordRef, SessionReader};
use serde::Deserialize;

use crate::text::one_line;

/// What is known of a session that may change.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Known {
    title: Option<String>,
    tags: Option<Vec<String>>,
    agent: Option<String>,
    model: Option<String>,
    pinned: Option<bool>,
}

impl Known {
    /// Reads what is known of a session from its beginning.
    pub(super) fn at_first(reader: &SessionReader) -> Self {
        let opener = || {
            let mut records = reader.trail_records(0, 0).ok()?;
            let first = records.next().ok()??;
            serde_json::from_slice(first.record.bytes()).ok()
        };
        opener().unwrap_or_default()
    }

    /// Takes in a note and says what it changed; `None` where that is nothing that one
    /// reads.
    pub(super) fn learn(&mut self, record: &RecordRef<'_>) -> Option<String> {
        let note: Self = serde_json::from_slice(record.bytes()).ok()?;
        let mut words = Vec::new();
        let mut said = |name: &str, before: Option<&str>, now: Option<&str>| {
            let (before, now) = (before.unwrap_or_default(), now.unwrap_or_default());
            match now {
                now if now == before => {}
                "" => words.push(format!("no {name}")),
                now => words.push(format!("{name} {}", one_line(now, 60))),
            }
        };
        said("title", self.title.as_deref(), note.title.as_deref());
        let tags = |known: &Self| known.tags.clone().unwrap_or_default().join(", ");
        said("tags", Some(&tags(self)), Some(&tags(&note)));
        said("agent", self.agent.as_deref(), note.agent.as_deref());
        said("model", self.model.as_deref(), note.model.as_deref());
        match (self.pinned.unwrap_or(false), note.pinned.unwrap_or(false)) {
            (false, true) => words.push("pinned".to_owned()),
            (true, false) => words.push("no longer pinned".to_owned()),
            _ => {}
        }
        *self = note;
        (!words.is_empty()).then(|| words.join(", "))
    }
}

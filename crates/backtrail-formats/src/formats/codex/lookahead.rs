//! Looks ahead in a rollout: whether the messages of events are in items as well.
//!
//! Most rollouts contain each message twice: as an item, which went to the model, and as an
//! event for the screen. Items contain more and are used. Some rollouts have only the events.
//! This must be known before the first event is read.

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use super::items;
use crate::error::Result;
use crate::json::Object;
use crate::lines::{Line, Lines};
use crate::source::Source;

/// Which messages are in the rollout twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Duplicates {
    pub(super) prompts: Duplicate,
    pub(super) replies: Duplicate,
    pub(super) thoughts: Duplicate,
}

/// Whether there are items of a kind, and whether events of it were used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Duplicate {
    pub(super) items: bool,
    pub(super) events: bool,
}

impl Duplicates {
    /// Scans the rollout from a byte on, until nothing more can be found.
    pub(super) fn scan(&mut self, source: &Source, from: u64) -> Result<()> {
        let item = Finder::new("response_item");
        let (message, reasoning) = (Finder::new("\"message\""), Finder::new("\"reasoning\""));
        let mut lines = Lines::new(source, from, 0);
        while !self.are_known()
            && let Some(line) = lines.next()?
        {
            let bytes = line.bytes;
            let wanted = (!self.are_messages_known() && message.find(bytes).is_some())
                || (!self.thoughts.items && reasoning.find(bytes).is_some());
            if wanted && item.find(bytes).is_some() {
                self.learn(&line);
            }
        }
        Ok(())
    }

    /// Returns whether events were used that turned out to be items as well.
    pub(super) fn contradict(&self, before: &Self) -> bool {
        let pairs = [
            (before.prompts, self.prompts),
            (before.replies, self.replies),
            (before.thoughts, self.thoughts),
        ];
        let wrong =
            |(before, now): (Duplicate, Duplicate)| before.events && !before.items && now.items;
        pairs.into_iter().any(wrong)
    }

    fn are_messages_known(&self) -> bool {
        self.prompts.items && self.replies.items
    }

    fn are_known(&self) -> bool {
        self.are_messages_known() && self.thoughts.items
    }

    fn learn(&mut self, line: &Line<'_>) {
        let text = line.text();
        let Some(payload) = payload_of(&text, "response_item") else {
            return;
        };
        match payload.string("type").as_deref() {
            Some("message") => match payload.string("role").as_deref() {
                Some("user") if !self.prompts.items => {
                    self.prompts.items = items::is_prompt(&payload);
                }
                Some("assistant") => self.replies.items = true,
                _ => {}
            },
            Some("reasoning") => self.thoughts.items = true,
            _ => {}
        }
    }
}

/// Returns the content of a record of this type.
fn payload_of<'a>(line: &'a str, kind: &str) -> Option<Object<'a>> {
    let record = Object::parse(line).ok()?;
    (record.string("type")? == kind).then(|| record.object("payload"))?
}

/// Returns how many turns are rolled back from a byte on.
pub(super) fn rolled_back_turns(source: &Source, from: u64) -> Result<u64> {
    let event = Finder::new("thread_rolled_back");
    let mut lines = Lines::new(source, from, 0);
    let mut turns = 0u64;
    while let Some(line) = lines.next()? {
        if event.find(line.bytes).is_none() {
            continue;
        }
        let text = line.text();
        let count = payload_of(&text, "event_msg").and_then(|event| event.number("num_turns"));
        turns = turns.saturating_add(count.unwrap_or(0));
    }
    Ok(turns)
}

/// Returns the thread whose `session_meta` is on the second line: the one that a fork copied.
pub(super) fn copied_thread(source: &Source) -> Result<Option<String>> {
    let mut lines = Lines::new(source, 0, 0);
    lines.next()?;
    let Some(line) = lines.next()? else {
        return Ok(None);
    };
    let text = line.text();
    let id = payload_of(&text, "session_meta").and_then(|meta| meta.string("id"));
    Ok(id.map(|id| id.into_owned()))
}

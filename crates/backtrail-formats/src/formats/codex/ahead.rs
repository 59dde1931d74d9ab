//! Looks ahead in a rollout: whether what events say is said by items as well.
//!
//! Most rollouts tell what was said twice: as an item, which went to the model, and as an
//! event, for the screen. The items say more, and are told. Some have the events alone.
//! Which it is must be known before the first event is told.

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use super::items;
use crate::error::Result;
use crate::json::Object;
use crate::lines::{Line, Lines};
use crate::source::Source;

/// Of each kind of thing that can be said twice: how it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Twins {
    pub(super) prompts: Twin,
    pub(super) replies: Twin,
    pub(super) thoughts: Twin,
}

/// Whether there are items of a kind, and whether events of it were told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Twin {
    pub(super) items: bool,
    pub(super) events: bool,
}

impl Twins {
    /// Looks at what comes from a byte on, up to where nothing more is to be found.
    pub(super) fn look(&mut self, source: &Source, from: u64) -> Result<()> {
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

    /// Returns whether events were told of which there turned out to be items.
    pub(super) fn were_wrong(&self, before: &Self) -> bool {
        let pairs = [
            (before.prompts, self.prompts),
            (before.replies, self.replies),
            (before.thoughts, self.thoughts),
        ];
        let wrong = |(before, now): (Twin, Twin)| before.events && !before.items && now.items;
        pairs.into_iter().any(wrong)
    }

    fn are_messages_known(&self) -> bool {
        self.prompts.items && self.replies.items
    }

    fn are_known(&self) -> bool {
        self.are_messages_known() && self.thoughts.items
    }

    fn learn(&mut self, line: &Line<'_>) {
        let Some(payload) = item_of(line) else {
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

fn item_of(line: &Line<'_>) -> Option<Object> {
    let object = Object::parse(&line.text()).ok()?;
    let is_item = object.string("type")? == "response_item";
    is_item.then(|| object.object("payload")).flatten()
}

/// Returns how many turns are taken back from a byte on.
pub(super) fn turns_taken_back(source: &Source, from: u64) -> Result<u64> {
    let event = Finder::new("thread_rolled_back");
    let mut lines = Lines::new(source, from, 0);
    let mut turns = 0u64;
    while let Some(line) = lines.next()? {
        if event.find(line.bytes).is_none() {
            continue;
        }
        let object = Object::parse(&line.text()).ok();
        let payload = object.and_then(|object| object.object("payload"));
        let taken = payload.and_then(|payload| payload.number("num_turns"));
        turns = turns.saturating_add(taken.unwrap_or(0));
    }
    Ok(turns)
}

/// Returns the thread whose `session_meta` stands in the second line: that of which a
/// fork copied.
pub(super) fn copied_thread(source: &Source) -> Result<Option<String>> {
    let mut lines = Lines::new(source, 0, 0);
    lines.next()?;
    let Some(line) = lines.next()? else {
        return Ok(None);
    };
    let Ok(object) = Object::parse(&line.text()) else {
        return Ok(None);
    };
    let is_meta = object
        .string("type")
        .is_some_and(|kind| kind == "session_meta");
    let payload = is_meta.then(|| object.object("payload")).flatten();
    Ok(payload.and_then(|payload| Some(payload.string("id")?.into_owned())))
}

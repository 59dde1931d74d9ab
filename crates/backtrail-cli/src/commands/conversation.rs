//! What `show`, Markdown, HTML and `stats` share: the numbers of a conversation, and
//! sentences for everything in it that is not dialogue.

pub(super) mod changes;

use std::time::Duration;

use backtrail::conversation::{
    Item, NoteChange, SpendingItem, Stats, StoredCompaction, format_duration,
};
use backtrail::{Role, Run, SessionInfo, SessionReader, Store};
use backtrail_index::{Prices, SessionPrices, Spending};

use super::short;
use crate::error::Result;
use crate::settings::Settings;
use crate::text::{cost, count, one_line, short_number};

/// A session, read once for its numbers.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) stats: Stats,
    /// The record that each turn begins with.
    pub(super) turns: Vec<u64>,
    /// What the conversation used and cost: the part that a fork shares included, undone
    /// turns not.
    pub(super) spending: Spending,
}

impl Survey {
    pub(super) fn of(store: &Store, reader: &SessionReader, info: &SessionInfo) -> Result<Self> {
        let prices = session_prices(store, info)?;
        let mut spending = Spending::default();
        let survey = reader.survey(|response| spending.add(&prices.spending(&response)))?;
        Ok(Self {
            stats: survey.stats,
            turns: survey.turns,
            spending,
        })
    }

    /// Writes how much was said and done, and what it cost.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![count(self.stats.turns, "turn")];
        if self.stats.tool_calls > 0 {
            words.push(count(self.stats.tool_calls, "tool call"));
        }
        words.extend(spending_words(&self.spending));
        words
    }
}

/// Returns the prices of a session, with those from the settings.
pub(super) fn session_prices(store: &Store, info: &SessionInfo) -> Result<SessionPrices> {
    let prices = Prices::with_own(Settings::read(store.root())?.prices.value);
    Ok(SessionPrices::of(info, prices))
}

/// Writes what was spent: `412 k tokens`, `$1.84`. Nothing for calls that were not
/// measured.
pub(super) fn spending_words(spending: &Spending) -> Vec<String> {
    let mut words = Vec::new();
    if spending.tokens() > 0 {
        words.push(format!("{} tokens", short_number(spending.tokens())));
    }
    if spending.calls > 0 {
        words.push(cost(spending));
    }
    words
}

/// Adds up what a turn spends.
#[derive(Debug)]
pub(super) struct TurnSpending {
    prices: SessionPrices,
    spending: Spending,
}

impl TurnSpending {
    pub(super) fn new(prices: SessionPrices) -> Self {
        Self {
            prices,
            spending: Spending::default(),
        }
    }

    /// Returns what a response used and cost since it was last mentioned.
    pub(super) fn of(&self, item: &SpendingItem) -> Spending {
        let mut spending = self.prices.spending(&item.response);
        if let Some(already) = &item.already {
            spending.remove(&self.prices.spending(already));
        }
        spending
    }

    pub(super) fn add(&mut self, item: &SpendingItem) {
        self.spending.add(&self.of(item));
    }

    /// Ends the turn, and returns what it spent.
    pub(super) fn take(&mut self) -> Vec<String> {
        spending_words(&std::mem::take(&mut self.spending))
    }
}

/// Returns how a message is called that is not part of the dialogue.
pub(super) fn injected_name(role: &Role) -> String {
    match role {
        Role::User => "added by the agent".to_owned(),
        role => one_line(role.as_str(), 40),
    }
}

/// Says how a run ended, and how long it took.
pub(super) fn run_words(run: &Run) -> String {
    let end = match (run.exit_code, run.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "exit status unknown".to_owned(),
    };
    let took = format_duration(Duration::from_millis(run.duration_ms));
    format!("{end}, {took}")
}

/// Says what the summary of a compaction replaces.
pub(super) fn compaction_words(stored: &StoredCompaction) -> String {
    let covered = count(stored.removed_message_count, "message");
    format!("replaces {covered} in the model's context:")
}

pub(super) const LOST_SUMMARY: &str = "the summary cannot be read";
pub(super) const HIDDEN_THINKING: &str = "thinking, hidden by the provider";

/// Says what an item is that is not part of the dialogue, in one line; `None` for any other.
pub(super) fn remark(item: &Item) -> Option<String> {
    Some(match item {
        Item::Gap(gap) => gap.to_string(),
        Item::Note(note) => note_words(&note.changes),
        Item::Spawned(item) => match &item.spawned {
            Some(spawned) => format!("started sub-agent session {}", short(&spawned.session_id)),
            None => "started a sub-agent session".to_owned(),
        },
        Item::Fork(item) => {
            let parent = one_line(&item.origin.parent_session_id, 60);
            let parent = parent.parse().map_or(parent, |id| short(&id).to_owned());
            format!("forked here from {parent}")
        }
        Item::Damage(item) => {
            let places = count(item.places, "damaged place");
            match item.is_at_end {
                true => format!("skipped {places} at the end"),
                false => format!("skipped {places} before record {}", item.seq),
            }
        }
        Item::Unreadable(item) if item.in_part => format!("record {} is incomplete", item.seq),
        Item::Unreadable(item) => format!("record {} cannot be read", item.seq),
        Item::Run(item) if item.run.is_none() => format!("run {} cannot be read", item.seq),
        Item::Other(other) => {
            let kind = one_line(&other.kind, 40);
            format!("record {} has an unknown type: {kind}", other.seq)
        }
        _ => return None,
    })
}

/// Says what a note changed.
fn note_words(changes: &[NoteChange]) -> String {
    let named = |name: &str, value: Option<&str>| match value.unwrap_or_default() {
        "" => format!("no {name}"),
        value => format!("{name} {}", one_line(value, 60)),
    };
    let change = |change: &NoteChange| match change {
        NoteChange::Title(title) => named("title", title.as_deref()),
        NoteChange::Tags(tags) => named("tags", Some(&tags.join(", "))),
        NoteChange::Agent(agent) => named("agent", agent.as_deref()),
        NoteChange::Model(model) => named("model", model.as_deref()),
        NoteChange::Pinned(true) => "pinned".to_owned(),
        NoteChange::Pinned(false) => "no longer pinned".to_owned(),
        _ => "changed".to_owned(),
    };
    let changes: Vec<String> = changes.iter().map(change).collect();
    format!("note: {}", changes.join(", "))
}

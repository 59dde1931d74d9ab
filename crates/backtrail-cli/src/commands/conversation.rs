//! What `show`, Markdown, HTML and `stats` share: the numbers of a conversation, and
//! sentences for everything in it that is not dialogue.

pub(super) mod call;
pub(super) mod changes;
pub(super) mod compare;
pub(super) mod prose;
pub(super) mod sub_agents;
mod written_edits;

use std::time::Duration;

use backtrail::conversation::{
    InjectedKind, InjectedMessage, Item, NoteChange, SpendingItem, Stats, StoredCompaction,
    format_duration,
};
use backtrail::{Role, Run, SessionId, SessionInfo, SessionReader, Store};
use backtrail_index::{Prices, SessionPrices, SessionRow, Spending};

use super::short;
use crate::error::Result;
use crate::settings::Settings;
use crate::text::{cost, count, one_line, plus_note, short_number, size, tokens};

/// A session, read once for its numbers.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) stats: Stats,
    /// The record that each turn begins with.
    pub(super) turns: Vec<u64>,
    /// What the session spent, as in `list`: undone turns included, inherited ones not.
    pub(super) spending: Spending,
    /// How many files it changed.
    pub(super) files: u64,
    /// Tokens of the conversation that count in other sessions.
    pub(super) counted_elsewhere: u64,
}

impl Survey {
    /// Reads a session; what it spent is in the catalogue, which counts each call once.
    pub(super) fn of(reader: &SessionReader, spending: Spending) -> Result<Self> {
        let survey = reader.survey(|_| {})?;
        Ok(Self {
            stats: survey.stats,
            turns: survey.turns,
            spending,
            ..Self::default()
        })
    }

    /// Adds what only the catalogue knows.
    pub(super) fn with_row(mut self, row: Option<&SessionRow>) -> Self {
        if let Some(row) = row {
            let all = self.stats.usage.total();
            self.counted_elsewhere = all.saturating_sub(row.spending.tokens());
            self.files = row.files_changed;
        }
        self
    }

    /// Explains why the turns used more than the session, if so.
    pub(super) fn elsewhere_note(&self) -> Option<String> {
        let tokens = short_number(self.counted_elsewhere);
        (self.counted_elsewhere > 0).then(|| {
            format!("{tokens} tokens are counted in other sessions with the same responses")
        })
    }

    /// Writes how much was said and done, and what it cost.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![count(self.stats.turns, "turn")];
        if self.stats.tool_calls > 0 {
            words.push(count(self.stats.tool_calls, "tool call"));
        }
        if self.files > 0 {
            words.push(format!("{} changed", count(self.files, "file")));
        }
        let used = Some(tokens(&self.spending)).filter(|tokens| !tokens.is_empty());
        words.extend(used.map(|tokens| format!("{tokens} tokens")));
        words.extend(Some(cost(&self.spending)).filter(|cost| !cost.is_empty()));
        words
    }
}

/// Returns the prices of a session, with those from the settings.
pub(super) fn session_prices(store: &Store, info: &SessionInfo) -> Result<SessionPrices> {
    let prices = Prices::with_own(Settings::read(store.root())?.prices.value);
    Ok(SessionPrices::of(info, prices))
}

/// Writes what a turn spent: `412 k tokens`, `$1.84`. Nothing for calls that were not
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
    /// The costs that have a `+`, added up.
    lower_bounds: Spending,
}

impl TurnSpending {
    pub(super) fn new(prices: SessionPrices) -> Self {
        Self {
            prices,
            spending: Spending::default(),
            lower_bounds: Spending::default(),
        }
    }

    /// Explains the `+` after costs, if a turn had one.
    pub(super) fn plus_note(&self) -> Option<String> {
        plus_note(&self.lower_bounds)
    }

    /// Adds what a response used and cost since it was last mentioned. A cost that is reported
    /// after its call replaces the price.
    pub(super) fn add(&mut self, item: &SpendingItem) {
        self.spending.add(&self.prices.spending(&item.response));
        if let Some(already) = &item.already {
            self.spending.remove(&self.prices.spending(already));
        }
    }

    /// Ends the turn, and returns what it spent.
    pub(super) fn take(&mut self) -> Vec<String> {
        let spending = std::mem::take(&mut self.spending);
        if plus_note(&spending).is_some() {
            self.lower_bounds.add(&spending);
        }
        spending_words(&spending)
    }
}

/// Returns how a text is called that is not part of the dialogue.
pub(super) fn injected_name(message: &InjectedMessage) -> String {
    match &message.role {
        Role::Other(role) => one_line(role, 40),
        _ => message.kind.label().to_owned(),
    }
}

/// Says what an injected text is, and how long.
pub(super) fn injected_words(name: &str, kind: InjectedKind, text: &str) -> String {
    match kind {
        InjectedKind::Interruption => name.to_owned(),
        _ => format!("{name} ({})", size(text.len() as u64)),
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
    let length = size(stored.summary.len() as u64);
    match stored.removed_message_count {
        0 => format!("a summary ({length}) was added to the model's context"),
        n => {
            let covered = count(n, "message");
            format!("a summary ({length}) replaces {covered} in the model's context")
        }
    }
}

/// The title of a session in which nothing was said or done.
pub(super) const NO_TITLE: &str = "(nothing was said)";
pub(super) const LOST_SUMMARY: &str = "the summary cannot be read";
pub(super) const HIDDEN_THINKING: &str = "thinking, hidden by the provider";

/// Says that a call started a sub-agent.
pub(super) fn started_words(session: &SessionId) -> String {
    format!("started sub-agent session {}", short(session))
}

/// Says what an item is that is not part of the dialogue, in one line; `None` for any other.
pub(super) fn remark(item: &Item) -> Option<String> {
    Some(match item {
        Item::Gap(gap) => gap.to_string(),
        Item::Note(note) => note_words(&note.changes),
        Item::Spawned(item) => match &item.spawned {
            Some(spawned) => started_words(&spawned.session_id),
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

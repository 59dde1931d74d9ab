//! What model calls used and cost, as a page tells it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use backtrail::{RecordRef, Timestamp, Usage};
use backtrail_index::{Money, Prices};
use serde::Deserialize;

use super::glyphs::Glyphs;

/// What some calls used and cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    tokens: u64,
    cost: Money,
    priced: u64,
    unpriced: u64,
}

/// Counts calls, each of them once.
#[derive(Debug)]
pub(super) struct Ledger {
    prices: Prices,
    /// The model of calls that do not say theirs.
    model: Option<String>,
    /// The calls since the last look, by the id of their response.
    open: HashMap<u64, Call>,
    /// The responses that were counted.
    counted: HashSet<u64>,
    unnamed: u64,
}

#[derive(Debug, Default)]
struct Call {
    usage: Option<Usage>,
    cost: Option<f64>,
    model: Option<String>,
    at: Option<Timestamp>,
}

impl Ledger {
    pub(super) fn new(prices: Prices, model: Option<String>) -> Self {
        Self {
            prices,
            model,
            open: HashMap::new(),
            counted: HashSet::new(),
            unnamed: 0,
        }
    }

    /// Takes in what a record says of its call; the last one of a response counts.
    pub(super) fn take(&mut self, record: &RecordRef<'_>, usage: Option<Usage>) {
        let details = record.details();
        if usage.is_none() && details.cost_usd.is_none() {
            return;
        }
        let key = match &details.response_id {
            Some(id) => hash(id),
            None => {
                self.unnamed += 1;
                hash(&self.unnamed)
            }
        };
        if self.counted.contains(&key) {
            return;
        }
        let call = self.open.entry(key).or_default();
        call.usage = usage.or(call.usage.take());
        call.cost = details.cost_usd.or(call.cost);
        call.model = details.model.or(call.model.take());
        call.at = record.at().or(call.at);
    }

    /// Takes in a compaction, whose usage stands elsewhere.
    pub(super) fn take_compaction(&mut self, record: &RecordRef<'_>) {
        #[derive(Deserialize, Default)]
        struct Body {
            usage: Option<Usage>,
        }
        let body = serde_json::from_slice::<Body>(record.bytes());
        self.take(record, body.unwrap_or_default().usage);
    }

    /// Returns what was spent since the last time that this was asked.
    pub(super) fn close(&mut self) -> Spent {
        let mut spent = Spent::default();
        for (key, call) in self.open.drain() {
            self.counted.insert(key);
            let usage = call.usage.unwrap_or_default();
            spent.tokens = spent.tokens.saturating_add(usage.total());
            let model = call.model.as_ref().or(self.model.as_ref());
            let worked_out = || model.and_then(|model| self.prices.cost(model, call.at, &usage));
            match call.cost.map(Money::from_dollars).or_else(worked_out) {
                Some(cost) => {
                    spent.cost = spent.cost.plus(cost);
                    spent.priced += 1;
                }
                None => spent.unpriced += 1,
            }
        }
        spent
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Spent {
    pub(super) fn add(&mut self, other: &Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost.plus(other.cost);
        self.priced += other.priced;
        self.unpriced += other.unpriced;
    }

    /// Writes it: `412 k tokens · $1.84`; nothing where nothing is known.
    pub(super) fn words(&self, glyphs: &Glyphs) -> String {
        let mut words = Vec::new();
        if self.tokens > 0 {
            words.push(format!("{} tokens", short(self.tokens)));
        }
        match (self.priced, self.unpriced) {
            (0, 0) => {}
            (0, _) => words.push("unpriced".to_owned()),
            (_, 0) => words.push(dollars(self.cost)),
            // Some calls are not in it.
            (_, _) => words.push(format!("{} or more", dollars(self.cost))),
        }
        words.join(&format!(" {} ", glyphs.dot))
    }
}

/// Writes a number in three digits: `412`, `1.9 k`, `412 k`, `1.9 M`.
fn short(n: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = UNITS.iter().find(|(unit, _)| n >= *unit);
    let Some((unit, name)) = unit else {
        return n.to_string();
    };
    let whole = n / unit;
    let tenths = n % unit * 10 / unit;
    match whole < 10 && tenths > 0 {
        true => format!("{whole}.{tenths} {name}"),
        false => format!("{whole} {name}"),
    }
}

/// Writes dollars: in cents, or where that would be nothing in as many digits as it takes.
fn dollars(money: Money) -> String {
    let dollars = money.dollars();
    match dollars {
        0.0 => "$0.00".to_owned(),
        _ if dollars.abs() >= 0.01 => format!("${dollars:.2}"),
        _ if dollars.abs() >= 0.0001 => format!("${dollars:.4}"),
        _ => "less than $0.0001".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_amounts_are_short() {
        let all = [0, 999, 1_000, 1_949, 12_345, 412_000, 1_900_000];
        let words = ["0", "999", "1 k", "1.9 k", "12 k", "412 k", "1.9 M"];
        assert_eq!(all.map(short), words);
        let all = [0.0, 1.8432, 0.0125, 0.004, 0.000_001];
        let all = all.map(|amount| dollars(Money::from_dollars(amount)));
        let words = ["$0.00", "$1.84", "$0.01", "$0.0040", "less than $0.0001"];
        assert_eq!(all, words);
    }
}

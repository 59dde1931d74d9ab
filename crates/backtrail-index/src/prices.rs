//! What model calls cost.
//!
//! The user's own prices come first, then those that the crate `genai-prices` knows, at
//! the time of the call. Where there is neither, a call is unpriced: that is an answer
//! of its own, and never a cost of nothing. A name is only ever priced as a model that it
//! names in full; see [`names`].
//!
//! Amounts are counted in whole trillionths of a dollar, and rounded once per call.

mod names;
mod rates;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use backtrail::{Timestamp, Usage};

use self::names::Known;
use self::rates::{Rates, Signature};
pub use self::session::SessionPrices;
use crate::rows::Money;

/// The prices that come with this version, and how they are read. Both are a part of
/// [`Prices::fingerprint`]; a test holds the first against `Cargo.lock`.
const DATA: &str = "genai-prices 0.2.1";
const READING: u32 = 1;

/// How many seconds a price holds for at least: a day, and half an hour where it depends
/// on the time of day.
const DAY: i64 = 86_400;
const HALF_HOUR: i64 = 1_800;
/// The moment that calls without a time are priced at: the newest prices, whenever the
/// question is asked.
const NEWEST: i64 = 4_102_444_800;
/// What is remembered is bounded, whatever names and times a damaged trail has.
const MOST_NAMES: usize = 4_096;
const MOST_SLOTS: usize = 20_000;

/// The prices of models: those that are known, and those that the user says.
///
/// Clones share what they have looked up.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: Arc<Vec<Own>>,
    found: Arc<RwLock<HashMap<String, Entry>>>,
}

/// The user's own price of a model, in dollars for a million tokens.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// The model's name.
    pub model: String,
    /// For what is read.
    pub input: f64,
    /// For what is written.
    pub output: f64,
    /// For what is written to a cache; the price of input unless it is said.
    pub cache_write: Option<f64>,
    /// For what is written to a cache for an hour; that of other writes unless it is said.
    pub cache_write_1h: Option<f64>,
    /// For what is read from a cache; the price of input unless it is said.
    pub cache_read: Option<f64>,
}

impl Price {
    /// Makes a price of input and output alone.
    pub fn new(model: impl Into<String>, input: f64, output: f64) -> Self {
        Self {
            model: model.into(),
            input,
            output,
            cache_write: None,
            cache_write_1h: None,
            cache_read: None,
        }
    }

    /// Tells whether an amount can be a price: a number of dollars that is not negative,
    /// and no more than a million of them for a million tokens.
    pub fn is_amount(dollars: f64) -> bool {
        (0.0..=1e6).contains(&dollars)
    }

    fn amounts(&self) -> impl Iterator<Item = f64> {
        [Some(self.input), Some(self.output)]
            .into_iter()
            .chain([self.cache_write, self.cache_write_1h, self.cache_read])
            .flatten()
    }
}

/// An own price, ready to be used.
#[derive(Debug)]
struct Own {
    /// In lower case.
    name: String,
    rates: Arc<Rates>,
}

/// What is known of a model's name.
#[derive(Debug)]
struct Entry {
    source: Source,
    /// How long a price holds: [`DAY`] or [`HALF_HOUR`].
    slot: i64,
    slots: HashMap<i64, Arc<Rates>>,
    /// The prices it had at one time or another.
    regimes: Vec<(Signature, Arc<Rates>)>,
}

#[derive(Debug)]
enum Source {
    Own(Arc<Rates>),
    Known(Known),
    Nothing,
}

impl Prices {
    /// Makes prices of which the user says some. One without a name, or whose amounts are
    /// none (see [`Price::is_amount`]), is left out.
    pub fn with_own(own: Vec<Price>) -> Self {
        let mut own: Vec<Own> = own
            .iter()
            .filter(|price| !price.model.trim().is_empty())
            .filter(|price| price.amounts().all(Price::is_amount))
            .map(|price| Own {
                name: price.model.trim().to_lowercase(),
                rates: Arc::new(Rates::of_own(price)),
            })
            .collect();
        own.sort_by(|a, b| (&a.name, &a.rates).cmp(&(&b.name, &b.rates)));
        Self {
            own: Arc::new(own),
            found: Arc::default(),
        }
    }

    /// Returns what tells these prices from others: costs are worked out anew where it is
    /// another one.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for own in self.own.iter() {
            hasher.update(format!("{:?}\n", (&own.name, &own.rates)).as_bytes());
        }
        let own = hasher.finalize().to_hex();
        format!("{DATA}, read {READING}, own {}", &own[..32])
    }

    /// Returns what a call cost, at the prices of its day; `None` where the model has no
    /// price. A call without a time is priced as of the newest prices.
    pub fn cost(&self, model: &str, at: Option<Timestamp>, usage: &Usage) -> Option<Money> {
        let at = at.map_or(NEWEST, |at| at.as_millis().div_euclid(1_000));
        let remembered = {
            let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
            found
                .get(model)
                .and_then(|entry| entry.remembered(at))
                .map(|rates| rates.map(|rates| rates.cost(usage)))
        };
        remembered.unwrap_or_else(|| self.look_up(model, at).map(|rates| rates.cost(usage)))
    }

    /// Finds the prices of a model at a moment, and remembers them.
    fn look_up(&self, model: &str, at: i64) -> Option<Arc<Rates>> {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        if found.len() >= MOST_NAMES && !found.contains_key(model) {
            found.clear();
        }
        let entry = found
            .entry(model.to_owned())
            .or_insert_with(|| Entry::new(self.source(model)));
        entry.rates(at)
    }

    fn source(&self, model: &str) -> Source {
        if let Some(rates) = self.own_rates(model) {
            return Source::Own(rates);
        }
        names::find(model).map_or(Source::Nothing, Source::Known)
    }

    /// Returns the user's price of a model: by its name, or else by the longest name that
    /// it begins with. A name with its provider in front (`openai/gpt-5`) is also
    /// understood without it.
    fn own_rates(&self, model: &str) -> Option<Arc<Rates>> {
        let whole = model.trim().to_lowercase();
        let bare = whole.rsplit('/').next().unwrap_or(&whole);
        [whole.as_str(), bare].into_iter().find_map(|name| {
            let fits = |own: &&Own| name.starts_with(&own.name);
            let longest = self
                .own
                .iter()
                .filter(fits)
                .max_by_key(|own| own.name.len());
            longest.map(|own| Arc::clone(&own.rates))
        })
    }
}

impl Entry {
    fn new(source: Source) -> Self {
        Self {
            source,
            slot: DAY,
            slots: HashMap::new(),
            regimes: Vec::new(),
        }
    }

    /// Returns the prices at a moment, if they were looked up before.
    fn remembered(&self, at: i64) -> Option<Option<&Rates>> {
        match &self.source {
            Source::Own(rates) => Some(Some(rates)),
            Source::Nothing => Some(None),
            Source::Known(_) => {
                let rates = self.slots.get(&at.div_euclid(self.slot))?;
                Some(Some(rates))
            }
        }
    }

    fn rates(&mut self, at: i64) -> Option<Arc<Rates>> {
        let known = match &self.source {
            Source::Own(rates) => return Some(Arc::clone(rates)),
            Source::Nothing => return None,
            Source::Known(known) => known.clone(),
        };
        if let Some(rates) = self.slots.get(&at.div_euclid(self.slot)) {
            return Some(Arc::clone(rates));
        }
        let Some(rates) = self.regime(&known, at) else {
            // It has a name, but no price that can be said in tokens.
            self.source = Source::Nothing;
            return None;
        };
        if self.slots.len() >= MOST_SLOTS {
            self.slots.clear();
        }
        self.slots
            .insert(at.div_euclid(self.slot), Arc::clone(&rates));
        Some(rates)
    }

    /// Returns the prices at a moment. A whole price list is put together only when it is
    /// seen for the first time.
    fn regime(&mut self, known: &Known, at: i64) -> Option<Arc<Rates>> {
        let signature = Signature::at(known, self.beginning(at))?;
        let seen = self.regimes.iter().find(|(seen, _)| *seen == signature);
        if let Some((_, rates)) = seen {
            return Some(Arc::clone(rates));
        }
        if self.slot == DAY && changes_within_the_day(known, at, &signature) {
            self.slot = HALF_HOUR;
            self.slots.clear();
            return self.regime(known, at);
        }
        let rates = Arc::new(Rates::of_known(known, self.beginning(at))?);
        self.regimes.push((signature, Arc::clone(&rates)));
        Some(rates)
    }

    fn beginning(&self, at: i64) -> i64 {
        at.div_euclid(self.slot).saturating_mul(self.slot)
    }
}

fn changes_within_the_day(known: &Known, at: i64, signature: &Signature) -> bool {
    let midnight = at.div_euclid(DAY).saturating_mul(DAY);
    (0..DAY / HALF_HOUR)
        .filter_map(|slot| Signature::at(known, midnight.saturating_add(slot * HALF_HOUR)))
        .any(|other| other != *signature)
}

#[cfg(test)]
mod tests {
    use super::DATA;

    /// Costs that were worked out with other prices are worked out anew only if the
    /// fingerprint tells that the prices are others.
    #[test]
    fn the_fingerprint_names_the_prices_that_come_with_this_version() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        let (_, rest) = lock
            .split_once("name = \"genai-prices\"\nversion = \"")
            .unwrap();
        let (version, _) = rest.split_once('"').unwrap();
        assert_eq!(DATA, format!("genai-prices {version}"));
    }
}

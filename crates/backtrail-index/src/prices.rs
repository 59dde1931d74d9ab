//! The cost of model calls.
//!
//! The user's own prices come first, then those of the crate `genai-prices` at the time
//! of the call. Without either, a call is unpriced, which is different from costing
//! nothing. A name is only priced as a model that it names in full; see [`names`].
//!
//! Amounts are counted in trillionths of a dollar and rounded once per call.

mod names;
mod rates;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use backtrail::{Timestamp, Usage};

use self::names::Known;
use self::rates::{Rates, Signature};
pub use self::session::SessionPrices;
use crate::rows::Money;

/// The price data of this version and the version of the code that reads it. Both are
/// part of [`Prices::fingerprint`]; a test compares the first with `Cargo.lock`.
const DATA: &str = "genai-prices 0.2.1";
const READING: u32 = 2;

/// How many seconds a price is valid at least: a day, or half an hour if it depends on
/// the time of day.
const DAY: i64 = 86_400;
const HALF_HOUR: i64 = 1_800;
/// The time at which calls without a time are priced, so that they get the newest prices.
const NEWEST: i64 = 4_102_444_800;
/// Limits of the cache, whatever names and times a damaged trail has.
const MOST_NAMES: usize = 4_096;
const MOST_SLOTS: usize = 20_000;

/// The prices of models: known ones, and the user's own.
///
/// Clones share a cache.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: Arc<Vec<Own>>,
    found: Arc<Mutex<HashMap<String, Entry>>>,
}

/// The user's own price of a model, in dollars per million tokens.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// The model's name.
    pub model: String,
    /// The price of input.
    pub input: f64,
    /// The price of output.
    pub output: f64,
    /// The price of cache writes; defaults to the price of input.
    pub cache_write: Option<f64>,
    /// The price of one-hour cache writes; defaults to that of other cache writes.
    pub cache_write_1h: Option<f64>,
    /// The price of cache reads; defaults to the price of input.
    pub cache_read: Option<f64>,
}

impl Price {
    /// Creates a price with input and output only.
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

    /// Returns whether an amount is a valid price: not negative, and at most a million
    /// dollars per million tokens.
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

/// One of the user's prices, prepared for lookup.
#[derive(Debug)]
struct Own {
    /// In lower case.
    name: String,
    rates: Arc<Rates>,
}

/// The cached prices of a model name.
#[derive(Debug)]
struct Entry {
    source: Source,
    /// How long a price is valid: [`DAY`] or [`HALF_HOUR`].
    slot: i64,
    slots: HashMap<i64, Arc<Rates>>,
    /// The different price lists it had over time.
    regimes: Vec<(Signature, Arc<Rates>)>,
}

#[derive(Debug)]
enum Source {
    Own(Arc<Rates>),
    Known(Known),
    Nothing,
}

impl Prices {
    /// Creates prices with some of the user's own. Prices without a name or with invalid
    /// amounts (see [`Price::is_amount`]) are skipped.
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

    /// Returns a fingerprint of these prices. Costs are recomputed if it changes.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for own in self.own.iter() {
            hasher.update(format!("{:?}\n", (&own.name, &own.rates)).as_bytes());
        }
        let own = hasher.finalize().to_hex();
        format!("{DATA}, read {READING}, own {}", &own[..32])
    }

    /// Returns the cost of a call at the prices of its day; `None` if the model has no
    /// price. A call without a time gets the newest prices.
    pub fn cost(&self, model: &str, at: Option<Timestamp>, usage: &Usage) -> Option<Money> {
        let at = at.map_or(NEWEST, |at| at.as_millis().div_euclid(1_000));
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = found.get_mut(model) {
            return entry.rates(at).map(|rates| rates.cost(usage));
        }
        if found.len() >= MOST_NAMES {
            found.clear();
        }
        let entry = found.entry(model.to_owned());
        let entry = entry.or_insert_with(|| Entry::new(self.source(model)));
        entry.rates(at).map(|rates| rates.cost(usage))
    }

    fn source(&self, model: &str) -> Source {
        if let Some(rates) = self.own_rates(model) {
            return Source::Own(rates);
        }
        names::find(model).map_or(Source::Nothing, Source::Known)
    }

    /// Returns the user's price of a model: by its name, or by the longest own name that
    /// it begins with. A name with its provider in front (`openai/gpt-5`) is also tried
    /// without it.
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

    /// Returns the prices at a moment.
    fn rates(&mut self, at: i64) -> Option<Arc<Rates>> {
        if let Some(rates) = self.slots.get(&at.div_euclid(self.slot)) {
            return Some(Arc::clone(rates));
        }
        let known = match &self.source {
            Source::Own(rates) => return Some(Arc::clone(rates)),
            Source::Nothing => return None,
            Source::Known(known) => known.clone(),
        };
        let Some(rates) = self.regime(&known, at) else {
            // The model is known, but not priced by tokens.
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

    /// Returns the prices at a moment. A price list is only assembled when it is first
    /// seen.
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

    /// Costs computed with other prices are only recomputed if the fingerprint changes.
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

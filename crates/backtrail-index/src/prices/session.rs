//! What the responses of one session cost.

use backtrail::SessionInfo;
use backtrail::conversation::Response;

use super::Prices;
use crate::rows::{Money, Spending};

/// The agent whose logs have fewer output tokens than there were.
const PARTIAL_OUTPUT: &str = "claude-code";

impl Prices {
    /// Returns what a response cost: what its provider says, else by the price of a model.
    pub(crate) fn cost_of(&self, response: &Response, model: Option<&str>) -> Option<Money> {
        let priced = || self.cost(model?, response.at, response.usage.as_ref()?);
        let reported = response.cost_usd.map(Money::from_dollars);
        reported.or_else(priced)
    }
}

/// Prices the responses of one session: for the ledger and for everyone else who counts.
#[derive(Debug, Clone)]
pub struct SessionPrices {
    prices: Prices,
    /// The model of responses that do not name theirs.
    model: Option<String>,
    /// Whether its output tokens are a lower bound.
    has_partial_output: bool,
}

impl SessionPrices {
    pub(crate) fn new(prices: Prices, model: Option<String>, belongs_to: Option<&str>) -> Self {
        Self {
            prices,
            model,
            has_partial_output: belongs_to == Some(PARTIAL_OUTPUT),
        }
    }

    /// Makes the prices of a session.
    pub fn of(info: &SessionInfo, prices: Prices) -> Self {
        Self::new(prices, info.model.clone(), info.belongs_to.as_deref())
    }

    /// Returns what a response used and cost.
    pub fn spending(&self, response: &Response) -> Spending {
        self.spending_at(response, self.cost(response))
    }

    /// Returns the model of a response.
    pub(crate) fn model<'a>(&'a self, response: &'a Response) -> Option<&'a str> {
        response.model.as_deref().or(self.model.as_deref())
    }

    pub(crate) fn cost(&self, response: &Response) -> Option<Money> {
        self.prices.cost_of(response, self.model(response))
    }

    pub(crate) fn spending_at(&self, response: &Response, cost: Option<Money>) -> Spending {
        if !response.is_measured() {
            return Spending {
                estimated_calls: 1,
                estimated_tokens: response.estimated_tokens,
                ..Spending::default()
            };
        }
        let usage = response.usage.clone().unwrap_or_default();
        Spending {
            calls: 1,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_write_tokens: usage.cache_creation_input_tokens,
            cache_write_1h_tokens: usage.cache_creation_1h_input_tokens.unwrap_or(0),
            cache_read_tokens: usage.cache_read_input_tokens,
            reasoning_tokens: usage.reasoning_output_tokens.unwrap_or(0),
            cost: cost.unwrap_or_default(),
            reported_calls: u64::from(response.cost_usd.is_some()),
            unpriced_calls: u64::from(cost.is_none()),
            // What the provider reports is the cost of the whole output.
            lower_bound_calls: u64::from(self.has_partial_output && response.cost_usd.is_none()),
            ..Spending::default()
        }
    }
}

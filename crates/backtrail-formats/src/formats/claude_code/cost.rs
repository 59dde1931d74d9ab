//! The agent's own cost, shared out among the calls that it is for.
//!
//! A `cost-state` line is written at the end of a run. Its figures are those of the session so
//! far, or of the run if the agent could not restore them: then they are smaller than before.

use std::collections::VecDeque;

use backtrail::Usage;
use serde::{Deserialize, Serialize};

use crate::event::MessageEvent;
use crate::json::Object;

/// How many calls can get a share. The engine accepts no cost for older ones.
const MAX_CALLS: usize = 1_000;

/// What is known about the cost at the end of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LastCost {
    total: f64,
    /// The tokens that were sent.
    sent: u64,
    /// Where the lines of the next run start.
    pub(super) from: u64,
    /// Whether the next cost is also for calls that are not on the main line: those of
    /// sub-agents, branches and other sessions.
    pub(super) is_shared: bool,
    /// Whether not all calls in the lines since then are on the main line, so that only the
    /// whole file shows which are.
    pub(super) needs_whole: bool,
}

/// The calls since the last cost.
#[derive(Debug, Default)]
pub(super) struct CostCalls(VecDeque<CostCall>);

/// A call.
#[derive(Debug)]
pub(super) struct CostCall {
    pub(super) response: String,
    pub(super) model: Option<String>,
    pub(super) usage: Usage,
}

impl CostCalls {
    /// Adds the call of a message, if it has one without a cost.
    pub(super) fn add(&mut self, event: &MessageEvent, last: &mut LastCost) {
        let (Some(response), Some(usage), None) =
            (&event.response_id, &event.message.usage, event.cost_usd)
        else {
            return;
        };
        // Other responses are between the lines of one only if they ran at the same time.
        let mut newest = self.0.iter_mut().rev().take(8);
        if let Some(same) = newest.find(|call| call.response == *response) {
            same.usage = usage.clone();
            return;
        }
        if self.0.len() == MAX_CALLS {
            self.0.pop_front();
            last.is_shared = true;
        }
        self.0.push_back(CostCall {
            response: response.clone(),
            model: event.model.clone(),
            usage: usage.clone(),
        });
    }

    /// Shares out the cost in a line that ends at a byte.
    pub(super) fn share(
        &mut self,
        record: &Object<'_>,
        last: &mut LastCost,
        end: u64,
    ) -> Vec<(CostCall, f64)> {
        let Some(total) = record.float("totalCostUSD").filter(|total| *total >= 0.0) else {
            return Vec::new();
        };
        let prices = UnitPrices::of(record);
        let sent = prices.sent();
        let is_restored = total >= last.total && sent.is_none_or(|sent| sent >= last.sent);
        let before = match is_restored {
            true => std::mem::take(last),
            false => LastCost {
                is_shared: last.is_shared,
                ..LastCost::default()
            },
        };
        *last = LastCost {
            total,
            sent: sent.unwrap_or(before.sent),
            from: end,
            ..LastCost::default()
        };
        let (cost, is_shared) = (total - before.total, before.is_shared);
        let calls = self.covered(sent.map_or(u64::MAX, |sent| sent - before.sent));
        if cost <= 0.0 || record.is_true("hasUnknownModelCost") {
            return Vec::new();
        }
        let mut costs: Vec<f64> = calls.iter().map(|call| prices.cost(call)).collect();
        let sum: f64 = costs.iter().sum();
        // Other calls have the rest of a shared cost. Otherwise all of it is for these calls:
        // it includes those that the agent does not write down, and tokens that it does not.
        if !is_shared || sum > cost {
            costs.iter_mut().for_each(|part| *part *= cost / sum);
        }
        let shares = calls.into_iter().zip(costs);
        shares.filter(|(_, cost)| cost.is_finite()).collect()
    }

    /// Removes all calls, and returns the newest: those that sent so many tokens. Older ones
    /// belong to a run that wrote no cost.
    fn covered(&mut self, mut tokens: u64) -> Vec<CostCall> {
        let mut covered = Vec::new();
        for call in std::mem::take(&mut self.0).into_iter().rev() {
            match tokens.checked_sub(sent_tokens(&call.usage)) {
                Some(rest) => tokens = rest,
                None => break,
            }
            covered.push(call);
        }
        covered.reverse();
        covered
    }
}

/// Returns how many tokens a call sent.
fn sent_tokens(usage: &Usage) -> u64 {
    usage
        .input_tokens
        .saturating_add(usage.cache_creation_input_tokens)
        .saturating_add(usage.cache_read_input_tokens)
}

/// Returns the tokens of a call as input tokens of the same price. The prices of Claude's
/// models all have these ratios.
fn weight(usage: &Usage) -> f64 {
    let written_1h = usage.cache_creation_1h_input_tokens.unwrap_or(0);
    let written_5m = usage.cache_creation_input_tokens.saturating_sub(written_1h);
    usage.input_tokens as f64
        + 5.0 * usage.output_tokens as f64
        + 1.25 * written_5m as f64
        + 2.0 * written_1h as f64
        + 0.1 * usage.cache_read_input_tokens as f64
}

/// What each model used and cost, as the agent says.
struct UnitPrices(Vec<ModelCost>);

struct ModelCost {
    model: String,
    usage: Usage,
    cost: f64,
}

impl UnitPrices {
    fn of(record: &Object<'_>) -> Self {
        let models = record.object("modelUsage").unwrap_or_default();
        let read = |(model, json): (&str, &str)| {
            let used = Object::from_json(json)?;
            let count = |name: &str| used.number(name).unwrap_or(0);
            let mut usage = Usage::new(count("inputTokens"), count("outputTokens"))
                .cache_creation(count("cacheCreationInputTokens"))
                .cache_read(count("cacheReadInputTokens"));
            usage.cache_creation_1h_input_tokens =
                used.number("cacheCreationEphemeral1hInputTokens");
            Some(ModelCost {
                model: model.to_owned(),
                usage,
                cost: used.float("costUSD").unwrap_or(0.0),
            })
        };
        Self(models.fields().filter_map(read).collect())
    }

    /// Returns how many tokens were sent, if the line says so.
    fn sent(&self) -> Option<u64> {
        let each = self.0.iter().map(|model| sent_tokens(&model.usage));
        each.reduce(u64::saturating_add)
    }

    /// Returns the cost of a call at the prices of its model, or of all of them.
    fn cost(&self, call: &CostCall) -> f64 {
        let same = |model: &&ModelCost| Some(&model.model) == call.model.as_ref();
        let of_model = self.0.iter().filter(same);
        let price = unit_price(of_model).or_else(|| unit_price(self.0.iter()));
        weight(&call.usage) * price.unwrap_or(1.0)
    }
}

/// Returns what an input token costs.
fn unit_price<'m>(models: impl Iterator<Item = &'m ModelCost>) -> Option<f64> {
    let (mut cost, mut weights) = (0.0, 0.0);
    for model in models {
        cost += model.cost;
        weights += weight(&model.usage);
    }
    let price = cost / weights;
    (price.is_finite() && price > 0.0).then_some(price)
}

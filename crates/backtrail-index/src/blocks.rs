//! Blocks of five hours, by which some providers limit usage.
//!
//! A block begins at the full hour (UTC) of the first call that is not in the block before, and
//! lasts five hours.

use backtrail::Timestamp;
use serde::Serialize;

use crate::rows::{Money, Spending};

const HOUR: i64 = 3_600_000;
const LENGTH: i64 = 5 * HOUR;

/// A block of five hours with calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageBlock {
    /// When it begins.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
    /// The time of its first call.
    pub first_at: Timestamp,
    /// The time of its last call.
    pub last_at: Timestamp,
    /// Whether it is not over.
    pub active: bool,
    /// What was spent in it.
    pub spending: Spending,
    /// Tokens per hour, between the first and the last call; `None` if those are the same, or if
    /// no call reports tokens.
    pub tokens_per_hour: Option<f64>,
    /// Dollars per hour, likewise; `None` also if no call has a price.
    pub cost_per_hour: Option<Money>,
    /// The tokens at the end of an active block, if it goes on like this.
    pub projected_tokens: Option<u64>,
    /// The cost at the end of an active block, likewise.
    pub projected_cost: Option<Money>,
}

/// Divides calls, the first one first, into blocks.
pub(crate) fn of_calls(calls: &[(i64, Spending)], now: i64) -> Vec<UsageBlock> {
    let mut blocks: Vec<(i64, i64, i64, Spending)> = Vec::new();
    for (at, spending) in calls {
        match blocks.last_mut() {
            Some((start, _, last, sum)) if *at - *start < LENGTH => {
                *last = *at;
                sum.add(spending);
            }
            _ => blocks.push((at.div_euclid(HOUR) * HOUR, *at, *at, *spending)),
        }
    }
    blocks
        .into_iter()
        .filter_map(|block| finished(block, now))
        .collect()
}

fn finished(
    (start, first, last, spending): (i64, i64, i64, Spending),
    now: i64,
) -> Option<UsageBlock> {
    let end = start + LENGTH;
    let active = now < end;
    let hours = (last - first) as f64 / HOUR as f64;
    let per_hour = |amount: f64, known: u64| (last > first && known > 0).then(|| amount / hours);
    let priced = spending.calls.saturating_sub(spending.unpriced_calls);
    let tokens_per_hour = per_hour(spending.tokens() as f64, spending.calls);
    let cost_per_hour = per_hour(spending.cost.dollars(), priced);
    let left = (end - now.max(last)) as f64 / HOUR as f64;
    let projected = |spent: f64, per_hour: Option<f64>| {
        per_hour
            .filter(|_| active)
            .map(|per_hour| spent + per_hour * left)
    };
    let tokens = projected(spending.tokens() as f64, tokens_per_hour);
    let cost = projected(spending.cost.dollars(), cost_per_hour);
    Some(UsageBlock {
        start: Timestamp::from_millis(start)?,
        end: Timestamp::from_millis(end)?,
        first_at: Timestamp::from_millis(first)?,
        last_at: Timestamp::from_millis(last)?,
        active,
        spending,
        tokens_per_hour,
        cost_per_hour: cost_per_hour.map(Money::from_dollars),
        projected_tokens: tokens.map(|tokens| tokens.round() as u64),
        projected_cost: cost.map(Money::from_dollars),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(minute: i64, tokens: u64, cents: i64) -> (i64, Spending) {
        let spending = Spending {
            calls: 1,
            input_tokens: tokens,
            cost: Money(cents * 10_000_000),
            ..Spending::default()
        };
        (minute * 60_000, spending)
    }

    #[test]
    fn a_block_begins_at_the_full_hour_and_lasts_five() {
        // 10:10, 14:59 and 15:00; then 21:30 after a gap.
        let calls = [
            call(610, 1, 0),
            call(899, 2, 0),
            call(900, 4, 0),
            call(1290, 8, 0),
        ];
        let blocks = of_calls(&calls, 1_300 * 60_000);
        let seen: Vec<(i64, u64, bool)> = blocks
            .iter()
            .map(|it| {
                (
                    it.start.as_millis() / 60_000,
                    it.spending.tokens(),
                    it.active,
                )
            })
            .collect();
        assert_eq!(seen, [(600, 3, false), (900, 4, false), (1260, 8, true)]);
        assert_eq!(blocks[2].end.as_millis(), 1560 * 60_000);
        assert_eq!(of_calls(&[], 0), []);
    }

    #[test]
    fn a_rate_is_between_the_first_and_the_last_call_and_goes_on() {
        // 300 tokens and $6 in two hours; the block has one hour and a half left.
        let calls = [call(60, 100, 200), call(180, 200, 400)];
        let block = &of_calls(&calls, 270 * 60_000)[0];
        assert_eq!(block.tokens_per_hour, Some(150.0));
        assert_eq!(block.cost_per_hour, Some(Money::from_dollars(3.0)));
        assert_eq!(block.projected_tokens, Some(300 + 225));
        assert_eq!(block.projected_cost, Some(Money::from_dollars(10.5)));
        let over = &of_calls(&calls, 360 * 60_000)[0];
        assert_eq!((over.active, over.projected_tokens), (false, None));
        let single = &of_calls(&calls[..1], 61 * 60_000)[0];
        assert_eq!((single.active, single.tokens_per_hour), (true, None));
    }

    #[test]
    fn what_has_no_price_has_no_cost_per_hour() {
        let mut calls = [call(60, 100, 0), call(180, 200, 0)];
        for (_, spending) in &mut calls {
            spending.unpriced_calls = 1;
        }
        let block = &of_calls(&calls, 270 * 60_000)[0];
        assert_eq!((block.cost_per_hour, block.projected_cost), (None, None));
        assert_eq!(block.projected_tokens, Some(300 + 225));
        // Nor has what is only estimated a number of tokens.
        for (_, spending) in &mut calls {
            *spending = Spending::default();
            spending.estimated_calls = 1;
        }
        let block = &of_calls(&calls, 270 * 60_000)[0];
        assert_eq!(
            (block.tokens_per_hour, block.projected_tokens),
            (None, None)
        );
    }
}

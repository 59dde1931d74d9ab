//! Price lists: the cost of tokens of each kind, by the length of the prompt.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backtrail::Usage;
use genai_prices::{PriceCalculation, UsageKey};

use super::Price;
use super::names::Known;
use crate::rows::Money;

/// The range of prompt lengths in which price changes are searched. Neighbouring lengths
/// are so close that at most one change is between them.
const SHORTEST_PROMPT: u64 = 1_000;
const LONGEST_PROMPT: u64 = 50_000_000;

/// A price list. All amounts are trillionths of a dollar.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rates {
    /// The price of the call itself.
    call: u64,
    /// By prompt length, the shortest first; never empty.
    tiers: Vec<Tier>,
}

/// The prices for prompts of at least this many tokens, including caches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Tier {
    from: u64,
    token: PerToken,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct PerToken {
    input: u64,
    output: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
    cache_write_1h: u64,
}

impl Rates {
    pub(super) fn of_own(price: &Price) -> Self {
        // A dollar per million tokens is a million trillionths per token.
        let rate = |dollars: f64| (dollars * 1e6).round() as u64;
        let input = rate(price.input);
        let output = rate(price.output);
        let cache_write = price.cache_write.map_or(input, rate);
        let token = PerToken {
            input,
            output,
            reasoning: output,
            cache_read: price.cache_read.map_or(input, rate),
            cache_write,
            cache_write_1h: price.cache_write_1h.map_or(cache_write, rate),
        };
        Self {
            call: 0,
            tiers: vec![Tier { from: 0, token }],
        }
    }

    /// Assembles the list of a known model at a moment; `None` if it does not price
    /// tokens.
    pub(super) fn of_known(known: &Known, at: i64) -> Option<Self> {
        let at = moment(at);
        let mut starts = vec![0];
        let mut length = SHORTEST_PROMPT;
        while length < LONGEST_PROMPT {
            let longer = length + length / 4;
            starts.extend(change_between(known, at, length, longer));
            length = longer;
        }
        let tiers: Option<Vec<Tier>> = starts
            .into_iter()
            .map(|from| {
                let token = PerToken::of_known(known, at, from.max(SHORTEST_PROMPT))?;
                Some(Tier { from, token })
            })
            .collect();
        let tiers = tiers?;
        let call = ask(known, at, [(UsageKey::INPUT_TOKENS, 0)])?.total_price;
        let call = (call * 1e12).round() as u64;
        let nothing = call == 0 && tiers.iter().all(|tier| tier.token == PerToken::default());
        // If no token has a price, the model is either free and says so, or not sold by
        // tokens.
        (!nothing || known.is_free()).then_some(Self { call, tiers })
    }

    pub(super) fn cost(&self, usage: &Usage) -> Money {
        let read = usage.cache_read_input_tokens;
        let written = usage.cache_creation_input_tokens;
        let prompt = usage
            .input_tokens
            .saturating_add(read)
            .saturating_add(written);
        let part = |part: Option<u64>, whole: u64| part.unwrap_or(0).min(whole);
        let hour = part(usage.cache_creation_1h_input_tokens, written);
        let reasoning = part(usage.reasoning_output_tokens, usage.output_tokens);
        let token = self.per_token(prompt);
        let sum = [
            (usage.input_tokens, token.input),
            (read, token.cache_read),
            (written - hour, token.cache_write),
            (hour, token.cache_write_1h),
            (usage.output_tokens - reasoning, token.output),
            (reasoning, token.reasoning),
            (1, self.call),
        ]
        .into_iter()
        // A product of two 64-bit numbers fits, and so does a saturating sum of seven of
        // them.
        .map(|(tokens, rate)| u128::from(tokens) * u128::from(rate))
        .fold(0_u128, u128::saturating_add);
        let billionths = sum.saturating_add(500) / 1_000;
        Money(i64::try_from(billionths).unwrap_or(i64::MAX))
    }

    fn per_token(&self, prompt: u64) -> &PerToken {
        let tier = self.tiers.iter().rev().find(|tier| prompt >= tier.from);
        &tier.unwrap_or(&self.tiers[0]).token
    }
}

impl PerToken {
    fn of_known(known: &Known, at: SystemTime, prompt: u64) -> Option<Self> {
        use UsageKey as Key;
        let input = (Key::INPUT_TOKENS, prompt);
        let written = (Key::CACHE_WRITE_TOKENS, prompt);
        let output = (Key::OUTPUT_TOKENS, prompt);
        let rate = |dollars: f64| (dollars / prompt as f64 * 1e12).round() as u64;
        let read_in = |usage: &[(Key, u64)]| {
            ask(known, at, usage.iter().cloned()).map(|price| rate(price.input_price))
        };
        let written_out = |usage: &[(Key, u64)]| {
            ask(known, at, usage.iter().cloned()).map(|price| rate(price.output_price))
        };
        let mut token = Self {
            input: read_in(std::slice::from_ref(&input))?,
            output: written_out(&[input.clone(), output.clone()])?,
            reasoning: written_out(&[
                input.clone(),
                output,
                (Key::OUTPUT_REASONING_TOKENS, prompt),
            ])?,
            cache_read: read_in(&[input.clone(), (Key::CACHE_READ_TOKENS, prompt)])?,
            cache_write: read_in(&[input.clone(), written.clone()])?,
            cache_write_1h: read_in(&[input, written, (Key::CACHE_WRITE_1H_TOKENS, prompt)])?,
        };
        token.mend_hour(known);
        Some(token)
    }

    /// Anthropic's models charge twice the input price for a one-hour cache, wherever
    /// they are sold; some lists only have the five-minute price.
    fn mend_hour(&mut self, known: &Known) {
        let unknown = self.cache_write_1h == self.cache_write && self.cache_write > self.input;
        if unknown && known.is_claude() {
            self.cache_write_1h = self.input.saturating_mul(2);
        }
    }
}

/// Distinguishes the price lists of a model: the costs of two calls, one with the
/// shortest prompt and one with the longest, that use tokens of every kind.
#[derive(Debug, PartialEq)]
pub(super) struct Signature([Mixed; 2]);

/// The cost of tokens of every kind, input and output.
type Mixed = (f64, f64);

impl Signature {
    pub(super) fn at(known: &Known, at: i64) -> Option<Self> {
        let at = moment(at);
        let short = mixed(known, at, SHORTEST_PROMPT)?;
        let long = mixed(known, at, LONGEST_PROMPT)?;
        Some(Self([short, long]))
    }
}

/// Returns the prompt length at which prices change between two lengths, if they do.
fn change_between(known: &Known, at: SystemTime, short: u64, long: u64) -> Option<u64> {
    let price = |prompt: u64| {
        let (input, output) = mixed(known, at, prompt)?;
        Some((input / prompt as f64, output / prompt as f64))
    };
    // The price of a token is a quotient of inexact numbers.
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    let before = price(short)?;
    let is_same = |prompt: u64| {
        let now = price(prompt)?;
        Some(close(now.0, before.0) && close(now.1, before.1))
    };
    if is_same(long)? {
        return None;
    }
    let (mut same, mut other) = (short, long);
    while other - same > 1 {
        let middle = same + (other - same) / 2;
        if is_same(middle)? {
            same = middle;
        } else {
            other = middle;
        }
    }
    Some(other)
}

/// Returns the cost of a call with tokens of every kind.
fn mixed(known: &Known, at: SystemTime, prompt: u64) -> Option<Mixed> {
    use UsageKey as Key;
    // A different amount for each kind.
    let part = |n: f64| prompt as f64 * n / 16.0;
    let usage = [
        (Key::INPUT_TOKENS, prompt as f64),
        (Key::CACHE_READ_TOKENS, part(5.0)),
        (Key::CACHE_WRITE_TOKENS, part(9.0)),
        (Key::CACHE_WRITE_1H_TOKENS, part(3.0)),
        (Key::OUTPUT_TOKENS, prompt as f64),
        (Key::OUTPUT_REASONING_TOKENS, part(7.0)),
    ];
    let price = known.ask(at, &usage.into_iter().collect())?;
    Some((price.input_price, price.output_price))
}

fn ask(
    known: &Known,
    at: SystemTime,
    usage: impl IntoIterator<Item = (UsageKey, u64)>,
) -> Option<PriceCalculation> {
    let usage = usage
        .into_iter()
        .map(|(key, tokens)| (key, tokens as f64))
        .collect();
    known.ask(at, &usage)
}

fn moment(seconds: i64) -> SystemTime {
    let apart = Duration::from_secs(seconds.unsigned_abs());
    let moment = if seconds < 0 {
        UNIX_EPOCH.checked_sub(apart)
    } else {
        UNIX_EPOCH.checked_add(apart)
    };
    moment.unwrap_or(UNIX_EPOCH)
}

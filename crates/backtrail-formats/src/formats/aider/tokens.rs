//! What aider says about a model and what a call used.

use backtrail::Usage;

/// Returns the model that a line of output names.
pub(super) fn model(line: &str) -> Option<&str> {
    let starts = ["Main model: ", "Models: ", "Model: "];
    let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
    let (model, _) = rest.split_once(" with ")?;
    // Symbols after the name tell of its abilities.
    let model = model.trim_end_matches(|c: char| !c.is_ascii() || c == ' ');
    (!model.is_empty() && !model.contains(' ')).then_some(model)
}

/// Returns what a call used and cost: `Tokens: 12k sent, 2,000 cache hit, 1.2k received. Cost:
/// $0.05 message, $0.12 session.`
pub(super) fn used(text: &str) -> Option<(Usage, Option<f64>)> {
    let text = text.strip_prefix("Tokens: ")?;
    let (tokens, cost) = match text.split_once("Cost: ") {
        Some((tokens, cost)) => (tokens, Some(cost)),
        None => (text, None),
    };
    let (mut sent, mut received, mut hit, mut written) = (0, 0, 0, 0);
    for part in tokens.split(", ") {
        let Some((number, what)) = part.trim().split_once(' ') else {
            continue;
        };
        let number = count(number).unwrap_or(0);
        match what.trim_end_matches(['.', ' ', '\n']) {
            "sent" => sent = number,
            "received" => received = number,
            "cache hit" | "cached" => hit = number,
            "cache write" => written = number,
            _ => {}
        }
    }
    // What was written to the cache is a part of what was sent, and so is what came from it,
    // for some providers: what is more than was sent cannot be a part of it.
    let sent = sent - if written <= sent { written } else { 0 };
    let sent = sent - if hit <= sent { hit } else { 0 };
    let usage = Usage::new(sent, received)
        .cache_read(hit)
        .cache_creation(written);
    (usage.total() > 0).then(|| (usage, cost.and_then(dollars)))
}

/// Returns a number: `950`, `1,234`, `12k`, `1.2k` or `1.5M`.
fn count(text: &str) -> Option<u64> {
    let text = text.replace(',', "");
    let (number, factor) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000.0),
        None => match text.strip_suffix(['m', 'M']) {
            Some(number) => (number, 1_000_000.0),
            None => (text.as_str(), 1.0),
        },
    };
    let number: f64 = number.parse().ok()?;
    let number = (number * factor).round();
    (0.0..9e15).contains(&number).then_some(number as u64)
}

/// Returns the first amount: that of the message.
fn dollars(text: &str) -> Option<f64> {
    let amount = text.trim_start().strip_prefix('$')?;
    let amount = amount.split([' ', ',']).next()?;
    let amount: f64 = amount.trim_end_matches('.').parse().ok()?;
    (amount.is_finite() && amount >= 0.0).then_some(amount)
}

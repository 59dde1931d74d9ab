//! The user's own prices of models, in `config.toml`:
//!
//! ```toml
//! [prices."my-local-model"]
//! input = 0.5
//! output = 1.5
//! cache_read = 0.05
//! ```

use backtrail_index::Price;

use super::nearest;
use crate::error::{CommandError, Result};
use crate::text::one_line;

const NAMES: [&str; 5] = [
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_write_1h",
];
const EXAMPLE: &str = "for example: [prices.\"the model\"], and below it: input = 0.5, output = 1.5 \
                       (dollars per million tokens)";

/// Reads the prices of all models.
pub(super) fn read(value: &toml::Value) -> Result<Vec<Price>> {
    let Some(models) = value.as_table() else {
        return Err(CommandError::invalid("prices must be a table of models").hint(EXAMPLE));
    };
    models
        .iter()
        .map(|(model, price)| read_price(model, price))
        .collect()
}

fn read_price(model: &str, value: &toml::Value) -> Result<Price> {
    let key = key_of(model);
    if model.trim().is_empty() {
        let what = format!("{key}: the name of the model is missing");
        return Err(CommandError::invalid(what).hint(EXAMPLE));
    }
    let Some(table) = value.as_table() else {
        // `prices.gpt-5.2.input` is three nested tables.
        let what = format!("{key} must be a table of amounts");
        return Err(CommandError::invalid(what).hint(EXAMPLE));
    };
    if let Some((name, within)) = table.iter().find(|(_, value)| value.is_table())
        && !NAMES.contains(&name.as_str())
    {
        let whole = format!("{model}.{name}");
        let what = format!("{key} must be a table of amounts");
        let inner = within.as_table().and_then(|table| table.keys().next());
        let known = inner.is_some_and(|inner| NAMES.contains(&inner.as_str()));
        let error = CommandError::invalid(what);
        return Err(if known {
            error.hint(format!(
                "a name with a dot needs quotes: [{}]",
                key_of(&whole)
            ))
        } else {
            error.hint(EXAMPLE)
        });
    }
    for name in table.keys() {
        if !NAMES.contains(&name.as_str()) {
            return Err(unknown(&key, name));
        }
    }
    let amount = |name: &str| match table.get(name) {
        Some(value) => read_amount(&key, name, value).map(Some),
        None => Ok(None),
    };
    let needed = |name: &str| {
        amount(name)?.ok_or_else(|| {
            let what = format!("{key} has no price for {name}");
            CommandError::invalid(what)
                .hint(format!("{name} = 0.5 is half a dollar per million tokens"))
        })
    };
    let mut price = Price::new(model.trim(), needed("input")?, needed("output")?);
    price.cache_read = amount("cache_read")?;
    price.cache_write = amount("cache_write")?;
    price.cache_write_1h = amount("cache_write_1h")?;
    Ok(price)
}

fn read_amount(key: &str, name: &str, value: &toml::Value) -> Result<f64> {
    let number = match value {
        toml::Value::Integer(whole) => Some(*whole as f64),
        toml::Value::Float(number) => Some(*number),
        _ => None,
    };
    number
        .filter(|amount| Price::is_amount(*amount))
        .ok_or_else(|| {
            let shown = match value {
                toml::Value::String(text) => format!("\"{}\"", one_line(text, 40)),
                toml::Value::Integer(whole) => whole.to_string(),
                toml::Value::Float(number) => number.to_string(),
                other => format!("a value of type {}", other.type_str()),
            };
            let what = format!("{key}: {name} must be dollars, from 0 to a million, not {shown}");
            CommandError::invalid(what)
                .hint(format!("{name} = 0.5 is half a dollar per million tokens"))
        })
}

fn unknown(key: &str, name: &str) -> CommandError {
    let what = format!("{key}: unknown price \"{}\"", one_line(name, 60));
    nearest(CommandError::invalid(what), name, &NAMES, "known prices:")
}

/// Returns the name of a model's table.
fn key_of(model: &str) -> String {
    format!("prices.\"{}\"", one_line(model, 60))
}

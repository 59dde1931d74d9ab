//! `backtrail config`: prints the settings.

use backtrail_index::Price;
use serde_json::{Value, json};

use super::Answer;
use crate::error::Result;
use crate::layout::{Column, DIM, Table};
use crate::settings::{Setting, Settings};
use crate::text::{clean, exact_size, one_line, path_json, visible_path};
use crate::ui::Ui;

/// Print every setting, its value and where it comes from
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {}

/// The name of a setting, its value as text and as JSON, and where it comes from.
type Row = (&'static str, String, Value, Value);

pub(crate) fn run(_args: &ConfigArgs, ui: &Ui) -> Result<Answer> {
    let (dir, source) = ui.store_dir()?;
    let settings = Settings::read(&dir)?;
    let rows = rows(&settings);
    let store = visible_path(&dir);
    let mut rows = [vec![("store", store, path_json(&dir), source.into())], rows].concat();
    if !settings.prices.value.is_empty() {
        rows.push(prices_row(&settings.prices));
    }
    if ui.json() {
        let row = |(name, _, value, source): &Row| json!({"name": name, "value": value, "source": source});
        return ui.answer_json(&rows.iter().map(row).collect::<Vec<_>>());
    }
    let mut table = Table::new([
        Column::text(""),
        Column::text(""),
        Column::text("").style(DIM),
    ]);
    for (name, shown, _, source) in rows {
        let source = clean(source.as_str().unwrap_or("config.toml")).into_owned();
        table.push([
            name.into(),
            format!("= {shown}").into(),
            format!("({source})").into(),
        ]);
    }
    ui.print_table(&table, None)?;
    let file = dir.join("config.toml");
    ui.remark(&format!("settings file: {}", file.display()));
    Ok(Answer::Done)
}

fn rows(settings: &Settings) -> Vec<Row> {
    let Settings {
        durability,
        rotation,
        keep_trails,
        snapshot_cap,
        include_cap,
        hook_wait,
        tell_agents,
        ..
    } = settings;
    let mode = durability.value.as_str();
    let keep = match keep_trails.value {
        Some(count) => Value::from(count),
        None => Value::from("all"),
    };
    let size = |name, size: &Setting<u64>| {
        let shown = format!("\"{}\"", exact_size(size.value));
        (name, shown, size.value.into(), source_of(size))
    };
    vec![
        (
            "durability",
            format!("\"{mode}\""),
            mode.into(),
            source_of(durability),
        ),
        size("rotation", rotation),
        (
            "keep_trails",
            keep.to_string(),
            keep,
            source_of(keep_trails),
        ),
        size("snapshot_cap", snapshot_cap),
        size("include_cap", include_cap),
        (
            "hook_wait",
            format!("\"{:?}\"", hook_wait.value),
            format!("{:?}", hook_wait.value).into(),
            source_of(hook_wait),
        ),
        (
            "tell_agents",
            tell_agents.value.to_string(),
            tell_agents.value.into(),
            source_of(tell_agents),
        ),
    ]
}

fn prices_row(prices: &Setting<Vec<Price>>) -> Row {
    let names: Vec<&str> = prices.value.iter().map(|p| p.model.as_str()).collect();
    let shown = one_line(&format!("for {}", names.join(", ")), 60);
    let value = prices.value.iter().map(|price| {
        let amounts = json!({
            "input": price.input,
            "output": price.output,
            "cache_read": price.cache_read,
            "cache_write": price.cache_write,
            "cache_write_1h": price.cache_write_1h,
        });
        (price.model.clone(), amounts)
    });
    let value = Value::Object(value.collect());
    ("prices", shown, value, source_of(prices))
}

fn source_of<T>(setting: &Setting<T>) -> Value {
    setting
        .file
        .as_deref()
        .map_or_else(|| "default".into(), path_json)
}

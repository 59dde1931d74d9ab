//! `backtrail config`: prints the settings.

use std::io::Write;
use std::path::Path;

use backtrail_index::Price;
use serde_json::{Value, json};

use super::Answer;
use crate::args::Global;
use crate::error::Result;
use crate::home;
use crate::layout::{Column, Table, styled};
use crate::settings::{Setting, Settings};
use crate::text::{exact_size, one_line, path_json};
use crate::ui::{DIM, Ui, unwritable};

/// Print every setting, its value and where it comes from
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {}

pub(crate) fn run(_args: &ConfigArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let (dir, source) = home::store_dir(global.store.as_deref())?;
    let settings = Settings::read(&dir)?;
    let mut rows = vec![
        Row {
            name: "store",
            shown: dir.display().to_string(),
            value: path_json(&dir),
            source: source.as_str().into(),
        },
        Row {
            name: "durability",
            shown: format!("\"{}\"", settings.durability.value.as_str()),
            value: settings.durability.value.as_str().into(),
            source: source_of(&settings.durability),
        },
        Row {
            name: "rotation",
            shown: format!("\"{}\"", exact_size(settings.rotation.value)),
            value: settings.rotation.value.into(),
            source: source_of(&settings.rotation),
        },
        Row {
            name: "keep_trails",
            shown: match settings.keep_trails.value {
                Some(count) => count.to_string(),
                None => "\"all\"".to_owned(),
            },
            value: settings
                .keep_trails
                .value
                .map_or_else(|| "all".into(), Value::from),
            source: source_of(&settings.keep_trails),
        },
        Row {
            name: "snapshot_cap",
            shown: format!("\"{}\"", exact_size(settings.snapshot_cap.value)),
            value: settings.snapshot_cap.value.into(),
            source: source_of(&settings.snapshot_cap),
        },
    ];
    if !settings.prices.value.is_empty() {
        rows.push(prices_row(&settings.prices));
    }
    if ui.json() {
        ui.print_json(&rows.iter().map(Row::to_json).collect())?;
        return Ok(Answer::Done);
    }
    print(&rows, &dir, ui).map_err(|error| unwritable(&error))?;
    Ok(Answer::Done)
}

fn prices_row(prices: &Setting<Vec<Price>>) -> Row {
    let names: Vec<&str> = prices.value.iter().map(|p| p.model.as_str()).collect();
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
    Row {
        name: "prices",
        shown: one_line(&format!("for {}", names.join(", ")), 60),
        value: Value::Object(value.collect()),
        source: source_of(prices),
    }
}

struct Row {
    name: &'static str,
    shown: String,
    value: Value,
    source: Value,
}

impl Row {
    fn to_json(&self) -> Value {
        json!({"name": self.name, "value": self.value, "source": self.source})
    }
}

fn source_of<T>(setting: &Setting<T>) -> Value {
    setting
        .file
        .as_deref()
        .map_or_else(|| "default".into(), path_json)
}

fn print(rows: &[Row], dir: &Path, ui: &Ui) -> std::io::Result<()> {
    let mut table = Table::new([
        Column::text(""),
        Column::text(""),
        Column::text("").style(DIM),
    ]);
    for row in rows {
        let source = row.source.as_str().unwrap_or("config.toml");
        let Row { name, shown, .. } = row;
        table.push([
            (*name).into(),
            format!("= {shown}").into(),
            format!("({source})").into(),
        ]);
    }
    let mut out = ui.out();
    for line in table.lines(None) {
        writeln!(out, "{}", styled(&line))?;
    }
    out.flush()?;
    ui.remark(&format!(
        "settings file: {}",
        dir.join("config.toml").display()
    ));
    Ok(())
}

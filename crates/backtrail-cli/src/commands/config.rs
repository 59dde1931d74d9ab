//! `backtrail config`: every setting, its value and where it comes from.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::Answer;
use crate::args::Global;
use crate::error::Result;
use crate::home;
use crate::settings::{Setting, Settings};
use crate::text::{exact_size, path_json};
use crate::ui::{DIM, Ui, unwritable};

/// Print every setting, its value and where it comes from
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let (dir, source) = home::store_dir(global.store.as_deref())?;
    let settings = Settings::read(&dir)?;
    let rows = [
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
    if ui.json() {
        ui.print_json(&rows.iter().map(Row::to_json).collect())?;
        return Ok(Answer::Done);
    }
    print(&rows, &dir, ui).map_err(|error| unwritable(&error))?;
    Ok(Answer::Done)
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
    let mut out = ui.out();
    let width = rows
        .iter()
        .map(|row| row.shown.chars().count())
        .max()
        .unwrap_or(0);
    for row in rows {
        let source = row.source.as_str().unwrap_or("config.toml");
        let Row { name, shown, .. } = row;
        writeln!(out, "{name:<12} = {shown:<width$}  {DIM}({source}){DIM:#}")?;
    }
    out.flush()?;
    ui.remark(&format!(
        "settings are kept in {}",
        dir.join("config.toml").display()
    ));
    Ok(())
}

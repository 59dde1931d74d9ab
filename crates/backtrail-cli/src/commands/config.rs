//! `backtrail config`: prints and changes the settings.

pub(super) mod change;

use std::io::Write as _;
use std::time::Duration;

use backtrail_index::Price;
use serde_json::{Value, json};

use super::Answer;
use super::remote::remote_json;
use crate::error::Result;
use crate::layout::{DIM, hanging};
use crate::settings::{RemoteSettings, SETTINGS, Setting, SettingInfo, Settings};
use crate::text::{clean, exact_size, one_line, path_json, visible_path};
use crate::ui::Ui;

/// Print and change settings
///
/// Without a command it prints every setting: its value, where it comes from, its default and what
/// it means. The settings are in config.toml in the store.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Set(SetArgs),
    Unset(UnsetArgs),
    Edit(EditArgs),
    Path(PathArgs),
}

/// Change a setting
///
/// Comments and everything else in config.toml stay as they are.
#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The setting
    #[arg(value_name = "KEY")]
    key: String,

    /// Its value; several for a list
    #[arg(value_name = "VALUE", required = true, allow_hyphen_values = true)]
    value: Vec<String>,
}

/// Remove a setting; its default applies
#[derive(Debug, clap::Args)]
struct UnsetArgs {
    /// The setting
    #[arg(value_name = "KEY")]
    key: String,
}

/// Edit config.toml in $VISUAL or $EDITOR
///
/// The file is replaced only if all settings are valid.
#[derive(Debug, clap::Args)]
struct EditArgs {}

/// Print the path of config.toml
#[derive(Debug, clap::Args)]
struct PathArgs {}

pub(crate) fn run(args: &ConfigArgs, ui: &Ui) -> Result<Answer> {
    match &args.verb {
        None => print(ui),
        Some(Verb::Set(args)) => change::set(args, ui),
        Some(Verb::Unset(args)) => change::unset(args, ui),
        Some(Verb::Edit(_)) => change::edit(ui),
        Some(Verb::Path(_)) => print_path(ui),
    }
}

fn print_path(ui: &Ui) -> Result<Answer> {
    let path = ui.store_dir()?.0.join("config.toml");
    match ui.json() {
        true => ui.print_json(&json!({"path": path_json(&path)}))?,
        false => ui.print_line(&visible_path(&path))?,
    }
    Ok(Answer::Done)
}

/// The name of a setting, its value as text and as JSON, and where it comes from.
type Row = (&'static str, String, Value, Value);

fn print(ui: &Ui) -> Result<Answer> {
    let (dir, source) = ui.store_dir()?;
    let settings = Settings::read(&dir)?;
    let store = ("store", visible_path(&dir), path_json(&dir), source.into());
    let mut rows = vec![store];
    rows.extend(rows_of(&settings));
    if ui.json() {
        return ui.answer_json(&rows.iter().map(row_json).collect::<Vec<_>>());
    }
    let mut out = ui.out();
    for (name, shown, _, source) in rows {
        let source = clean(source.as_str().unwrap_or("config.toml")).into_owned();
        let info = info_of(name);
        let default = match info.filter(|_| source != "default") {
            Some(info) => format!("; default: {}", info.default),
            None => String::new(),
        };
        writeln!(out, "{name} = {shown}  {DIM}({source}{default}){DIM:#}")?;
        if let Some(info) = info {
            let meaning = hanging(4, info.meaning, ui.width());
            writeln!(out, "    {DIM}{meaning}{DIM:#}")?;
        }
    }
    out.flush()?;
    let file = dir.join("config.toml");
    ui.remark(&format!("settings file: {}", file.display()));
    Ok(Answer::Done)
}

fn info_of(name: &str) -> Option<&'static SettingInfo> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

fn row_json((name, _, value, source): &Row) -> Value {
    let mut row = json!({"name": name, "value": value, "source": source});
    if let Some(info) = info_of(name) {
        row["default"] = info.default.into();
        row["allowed"] = info.allowed.into();
        row["meaning"] = info.meaning.into();
    }
    row
}

fn rows_of(settings: &Settings) -> Vec<Row> {
    let Settings {
        durability,
        rotation,
        keep_trails,
        snapshot_cap,
        include_cap,
        hook_wait,
        tell_agents,
        auto_import,
        import_exclude,
        default_command,
        mouse,
        statusline_template,
        statusline_wait,
        prices,
        remotes,
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
    let wait = |name, wait: &Setting<Duration>| {
        let value = format!("{:?}", wait.value);
        let shown = format!("\"{value}\"");
        (name, shown, value.into(), source_of(wait))
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
        wait("hook_wait", hook_wait),
        switch("tell_agents", tell_agents),
        switch("auto_import", auto_import),
        (
            "import.exclude",
            one_line(&format!("{:?}", import_exclude.value), 200),
            json!(import_exclude.value),
            source_of(import_exclude),
        ),
        (
            "default_command",
            format!("\"{}\"", default_command.value.as_str()),
            default_command.value.as_str().into(),
            source_of(default_command),
        ),
        switch("mouse", mouse),
        (
            "statusline.template",
            one_line(&format!("\"{}\"", statusline_template.value), 200),
            statusline_template.value.to_string().into(),
            source_of(statusline_template),
        ),
        wait("statusline.wait", statusline_wait),
        prices_row(prices),
        remotes_row(remotes),
    ]
}

fn switch(name: &'static str, setting: &Setting<bool>) -> Row {
    let value = setting.value;
    (name, value.to_string(), value.into(), source_of(setting))
}

fn prices_row(prices: &Setting<Vec<Price>>) -> Row {
    let names: Vec<&str> = prices.value.iter().map(|p| p.model.as_str()).collect();
    let shown = match names.is_empty() {
        true => "{}".to_owned(),
        false => one_line(&format!("for {}", names.join(", ")), 60),
    };
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

fn remotes_row(remotes: &Setting<Vec<RemoteSettings>>) -> Row {
    let names: Vec<&str> = remotes.value.iter().map(|it| it.name.as_str()).collect();
    let shown = match names.is_empty() {
        true => "{}".to_owned(),
        false => one_line(&names.join(", "), 60),
    };
    let value = remotes.value.iter();
    let value = value.map(|remote| (remote.name.clone(), remote_json(remote)));
    let value = Value::Object(value.collect());
    ("remotes", shown, value, source_of(remotes))
}

fn source_of<T>(setting: &Setting<T>) -> Value {
    setting
        .file
        .as_deref()
        .map_or_else(|| "default".into(), path_json)
}

//! `backtrail stats`: how much was said, done and used.

use std::io::Write;

use backtrail::{Stats, format_duration};
use serde_json::json;

use super::{Answer, require_store, resolve, say_gaps, short};
use crate::args::Global;
use crate::error::Result;
use crate::text::{clean, count, grouped};
use crate::ui::{DIM, Ui, unwritable};
use crate::when;

/// Show the statistics of a session
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF", default_value = "latest")]
    reference: String,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let id = resolve(&store, &args.reference)?;
    let stats = store.read_session(&id)?.stats()?;
    if ui.json() {
        let mut value = json!({"session": id});
        if let (Some(all), Ok(serde_json::Value::Object(stats))) =
            (value.as_object_mut(), serde_json::to_value(&stats))
        {
            all.extend(stats);
        }
        ui.print_json(&value)?;
    } else {
        print(&stats, ui).map_err(|error| unwritable(&error))?;
    }
    if stats.gone > 0 {
        let gone = count(stats.gone, "record");
        ui.status(&format!("not counted: {gone} of the history"));
        say_gaps(&store.read_session(&id)?.gaps()?, ui);
    }
    if stats.damaged > 0 {
        let text = format!(
            "{} of the history could not be read, or not whole",
            count(stats.damaged, "place")
        );
        ui.warning(&text, Some(&format!("backtrail verify {}", short(&id))));
    }
    Ok(Answer::Done)
}

fn print(stats: &Stats, ui: &Ui) -> std::io::Result<()> {
    let mut out = ui.out();
    for (name, text) in rows(stats) {
        writeln!(out, "{DIM}{name:<12}{DIM:#}{text}")?;
    }
    out.flush()
}

fn rows(stats: &Stats) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(at) = stats.started_at {
        rows.push(("started", when::full(at)));
    }
    rows.push(("messages", messages(stats)));
    rows.push(("tool calls", tool_calls(stats)));
    let spans = if stats.time_has_spans {
        " (in part the span of a turn)"
    } else {
        ""
    };
    let time = format_duration(stats.time_spent());
    rows.push(("time spent", format!("{time}{spans}")));
    rows.push(("tokens", tokens(stats)));
    rows.push(("cost", cost(stats)));
    if stats.compactions > 0 {
        rows.push(("compactions", stats.compactions.to_string()));
    }
    if !stats.models.is_empty() {
        rows.push(("models", clean(&stats.models.join(", ")).into_owned()));
    }
    rows
}

fn messages(stats: &Stats) -> String {
    let all = &stats.messages;
    format!(
        "{} in {}: {}, {}",
        grouped(all.total),
        count(stats.turns, "turn"),
        count(all.prompts, "prompt"),
        count(all.answers, "answer")
    )
}

fn tool_calls(stats: &Stats) -> String {
    let mut text = grouped(stats.tool_calls);
    if stats.failed_tool_calls > 0 {
        text += &format!(", {} failed", stats.failed_tool_calls);
    }
    if stats.open_tool_calls > 0 {
        text += &format!(", {} without a result", stats.open_tool_calls);
    }
    text
}

fn tokens(stats: &Stats) -> String {
    let used = &stats.usage;
    let estimated = match stats.estimated_tokens {
        0 => String::new(),
        n => format!("about {} (estimated)", grouped(n)),
    };
    if used.total() == 0 {
        return if estimated.is_empty() {
            "0".to_owned()
        } else {
            estimated
        };
    }
    let plus = if estimated.is_empty() {
        String::new()
    } else {
        format!(", and {estimated}")
    };
    format!(
        "{} measured: {} in, {} out, {} read from cache, {} written to it{plus}",
        grouped(used.total()),
        grouped(used.input_tokens),
        grouped(used.output_tokens),
        grouped(used.cache_read_input_tokens),
        grouped(used.cache_creation_input_tokens),
    )
}

fn cost(stats: &Stats) -> String {
    match stats.cost_usd {
        None => "unknown: no provider said".to_owned(),
        Some(cost) if stats.responses_without_cost > 0 => format!(
            "${cost:.4} reported, and {} without a price",
            count(stats.responses_without_cost, "response")
        ),
        Some(cost) => format!("${cost:.4} reported"),
    }
}

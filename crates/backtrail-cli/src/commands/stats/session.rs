//! The statistics of one session, and what was spent on it and its family.

use std::io::Write;

use backtrail::{SessionId, Stats, Store, format_duration};
use backtrail_index::{Filter, Spending, SpendingReport};
use serde_json::{Value, json};

use super::{Args, Told, bars, numbers, report_json};
use crate::commands::{Answer, report_gaps, short};
use crate::derived;
use crate::error::Result;
use crate::layout::hanging;
use crate::text::{clean, count, grouped};
use crate::ui::{DIM, Ui, unwritable};
use crate::when;

pub(super) fn run(args: &Args, store: &Store, id: &SessionId, ui: &Ui) -> Result<Answer> {
    let stats = store.read_session(id)?.stats()?;
    let (spent, family) = derived::ask(store, ui, "looking through sessions:", |index| {
        let mut filter = Filter::default();
        filter.session = Some(id.clone());
        let spent = Told::ask(index, &filter, args.by)?;
        filter.session = None;
        filter.family_of = Some(id.clone());
        Ok((spent, index.spending(&filter)?))
    })?;
    if ui.json() {
        ui.print_json(&stats_json(args, id, &stats, &spent.report, &family))?;
    } else {
        print(&stats, &spent.report, &family, ui).map_err(|error| unwritable(&error))?;
        if args.by.is_some() {
            spent.print(args, ui)?;
        }
    }
    if stats.gone > 0 {
        let gone = count(stats.gone, "record");
        ui.status(&format!("not counted: {gone} of the history"));
        report_gaps(&store.read_session(id)?.gaps()?, ui);
    }
    if stats.damaged > 0 {
        let text = format!(
            "{} of the history could not be read, or not whole",
            count(stats.damaged, "place")
        );
        ui.warning(&text, Some(&format!("backtrail verify {}", short(id))));
    }
    Ok(Answer::Done)
}

/// Writes the statistics, and what the ledger says.
fn stats_json(
    args: &Args,
    id: &SessionId,
    stats: &Stats,
    spent: &SpendingReport,
    family: &SpendingReport,
) -> Value {
    let mut value = json!({"session": id});
    if let (Some(all), Ok(Value::Object(stats))) =
        (value.as_object_mut(), serde_json::to_value(stats))
    {
        all.extend(stats);
        if let Value::Object(spent) = report_json(spent, args.limit) {
            let named = ["totals", "by", "estimated", "lower_bound_calls"];
            all.extend(
                spent
                    .into_iter()
                    .filter(|(name, _)| named.contains(&name.as_str())),
            );
        }
        let mut totals = numbers(&family.total);
        totals.insert("sessions".to_owned(), json!(family.sessions));
        all.insert("family".to_owned(), Value::Object(totals));
    }
    value
}

fn print(
    stats: &Stats,
    spent: &SpendingReport,
    family: &SpendingReport,
    ui: &Ui,
) -> std::io::Result<()> {
    let mut out = ui.out();
    let mut rows = rows(stats);
    if spent.total.calls > 0 && stats.cost_usd.is_none() {
        // The ledger knows more of it.
        rows.retain(|(name, _)| *name != "cost");
    }
    for (name, text) in rows.into_iter().chain(ledger_rows(spent, family)) {
        let text = hanging(12, &text, ui.width());
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

/// Says what the ledger counts: all calls, those on branches that were taken back, too.
fn ledger_rows(spent: &SpendingReport, family: &SpendingReport) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if spent.total.calls > 0 {
        let calls = format!(
            " in {}{}",
            count(spent.total.calls, "call"),
            unpriced(&spent.total)
        );
        rows.push(("spent", bars::spent(&spent.total, &calls)));
    }
    if family.sessions > 1 && family.total.calls > 0 {
        let calls = count(family.total.calls, "call");
        let sessions = count(family.sessions, "session");
        let calls = format!(" in {calls} of {sessions}{}", unpriced(&family.total));
        rows.push(("family", bars::spent(&family.total, &calls)));
    }
    rows
}

/// Says how many of the calls have no price, where others have one.
fn unpriced(spent: &Spending) -> String {
    match spent.unpriced_calls {
        0 => String::new(),
        n if n == spent.calls => String::new(),
        n => format!(", {} of them unpriced", grouped(n)),
    }
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

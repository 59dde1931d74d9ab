//! `stats REF`: the statistics of one session, and what was spent on it and its family.

use std::io::Write;

use backtrail::conversation::{Stats, format_duration};
use backtrail::{SessionId, Store, Usage};
use backtrail_index::{Filter, Spending, SpendingReport};
use serde_json::{Value, json};

use super::{NamedReport, StatsArgs, bars, numbers, report_json};
use crate::commands::conversation::Survey;
use crate::commands::{Answer, report_gaps, short};
use crate::derived;
use crate::error::Result;
use crate::layout::{DIM, hanging};
use crate::text::{clean, cost_json, count, grouped};
use crate::ui::Ui;
use crate::when;

pub(super) fn run(args: &StatsArgs, store: &Store, id: &SessionId, ui: &Ui) -> Result<Answer> {
    let reader = store.read_session(id)?;
    let (spent, family) = derived::ask(store, ui, "reading sessions:", |index| {
        let mut filter = Filter::default();
        filter.session = Some(id.clone());
        let spent = NamedReport::ask(index, &filter, &args.by)?;
        filter.session = None;
        filter.family_of = Some(id.clone());
        Ok((spent, index.spending(&filter)?))
    })?;
    let row = derived::row(store, id, ui);
    let survey = Survey::of(&reader, spent.report.total)?.with_row(row.as_ref());
    let stats = &survey.stats;
    if ui.json() {
        let mut json = stats_json(args, id, &survey, &spent.report, &family);
        json["unpriced"] = json!(spent.unpriced);
        ui.print_json(&json)?;
    } else {
        print(&survey, &family, ui)?;
        match args.by.is_empty() {
            false => spent.print(args, None, ui)?,
            true => {
                let total = match family.sessions > 1 {
                    true => family.total,
                    false => survey.spending,
                };
                let mut out = ui.out();
                let remarks = bars::price_remarks(&total, &spent.unpriced, ui.width());
                out.write_all(remarks.as_bytes())?;
                out.flush()?;
            }
        }
    }
    if stats.gone > 0 {
        let gone = count(stats.gone, "record");
        ui.status(&format!("not counted: {gone} no longer in the history"));
        report_gaps(&reader.gaps()?, ui);
    }
    if stats.damaged > 0 {
        let text = format!(
            "{} could not be read completely",
            count(stats.damaged, "place")
        );
        ui.warning(&text, Some(&format!("backtrail verify {}", short(id))));
    }
    Ok(Answer::Done)
}

/// Returns the statistics, and what was spent.
fn stats_json(
    args: &StatsArgs,
    id: &SessionId,
    survey: &Survey,
    spent: &SpendingReport,
    family: &SpendingReport,
) -> Value {
    let mut spent = report_json(spent, args);
    let mut value = json!(survey.stats);
    value["session"] = json!(id);
    value["files_changed"] = survey.files.into();
    for name in ["totals", "by", "estimated", "lower_bound_calls"] {
        value[name] = spent[name].take();
    }
    for (name, number) in spent_json(&survey.spending) {
        value[name] = number;
    }
    value["family"] = numbers(&family.total);
    value["family"]["sessions"] = family.sessions.into();
    value
}

/// Returns the fields of the statistics that count what was spent, by the same count as
/// everywhere: without what a fork or a copy inherited.
fn spent_json(spent: &Spending) -> [(&'static str, Value); 5] {
    let usage = Usage::new(spent.input_tokens, spent.output_tokens)
        .cache_creation(spent.cache_write_tokens)
        .cache_read(spent.cache_read_tokens);
    let responses = spent.calls + spent.estimated_calls;
    let without_cost = spent.unpriced_calls + spent.estimated_calls;
    [
        ("usage", json!(usage)),
        ("estimated_tokens", spent.estimated_tokens.into()),
        ("cost_usd", cost_json(spent)),
        ("responses", responses.into()),
        ("responses_without_cost", without_cost.into()),
    ]
}

fn print(survey: &Survey, family: &SpendingReport, ui: &Ui) -> std::io::Result<()> {
    let mut out = ui.out();
    for (name, text) in rows(survey).into_iter().chain(family_row(family)) {
        let text = hanging(12, &text, ui.width());
        writeln!(out, "{DIM}{name:<12}{DIM:#}{text}")?;
    }
    out.flush()
}

/// Returns the rows about the conversation as it is now, and about what the session spent.
fn rows(survey: &Survey) -> Vec<(&'static str, String)> {
    let stats = &survey.stats;
    let mut rows = Vec::new();
    if let Some(at) = stats.started_at {
        rows.push(("started", when::full(at)));
    }
    rows.push(("messages", messages(stats)));
    rows.push(("tool calls", tool_calls(stats)));
    rows.push(("files", format!("{} changed", grouped(survey.files))));
    let about = if stats.time_has_spans { "about " } else { "" };
    let time = format_duration(stats.time_spent());
    rows.push(("active time", format!("{about}{time}")));
    rows.push(("tokens", tokens(&survey.spending)));
    rows.push(("cost", cost(&survey.spending)));
    rows.extend(survey.elsewhere_note().map(|note| ("", note)));
    if stats.compactions > 0 {
        rows.push(("compactions", stats.compactions.to_string()));
    }
    if !stats.models.is_empty() {
        rows.push(("models", clean(&stats.models.join(", ")).into_owned()));
    }
    rows
}

/// Returns the row about the family, if the session is not alone.
fn family_row(family: &SpendingReport) -> Option<(&'static str, String)> {
    if family.sessions < 2 || family.total.calls == 0 {
        return None;
    }
    let calls = count(family.total.calls, "call");
    let sessions = count(family.sessions, "session");
    let calls = format!(" in {calls} of {sessions}{}", unpriced(&family.total));
    Some(("family", bars::spent(&family.total, &calls)))
}

/// Says how many of the calls have no price, if others have one.
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

fn tokens(spent: &Spending) -> String {
    let estimated = match spent.estimated_tokens {
        0 => String::new(),
        n => format!("about {} estimated", grouped(n)),
    };
    if spent.tokens() == 0 {
        return match estimated.as_str() {
            "" => "0".to_owned(),
            _ => estimated,
        };
    }
    let plus = match estimated.as_str() {
        "" => String::new(),
        estimated => format!(", plus {estimated}"),
    };
    format!(
        "{} measured: {} in, {} out, {} read from cache, {} written to it{plus}",
        grouped(spent.tokens()),
        grouped(spent.input_tokens),
        grouped(spent.output_tokens),
        grouped(spent.cache_read_tokens),
        grouped(spent.cache_write_tokens),
    )
}

fn cost(spending: &Spending) -> String {
    match (spending.calls, spending.estimated_calls) {
        (0, 0) => return "nothing".to_owned(),
        (0, _) => return "unknown".to_owned(),
        _ => {}
    }
    let calls = format!(
        " in {}{}",
        count(spending.calls, "call"),
        unpriced(spending)
    );
    bars::spent(spending, &calls)
}

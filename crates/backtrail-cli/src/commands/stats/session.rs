//! `stats REF`: the statistics of one session, and what was spent on it and its family.

use std::io::Write;

use backtrail::conversation::{Stats, format_duration};
use backtrail::{SessionId, Store};
use backtrail_index::{Filter, Spending, SpendingReport};
use serde_json::{Value, json};

use super::{NamedReport, StatsArgs, bars, numbers, report_json};
use crate::commands::conversation::Survey;
use crate::commands::{Answer, report_gaps, short};
use crate::derived;
use crate::error::Result;
use crate::layout::{DIM, hanging};
use crate::text::{clean, count, grouped};
use crate::ui::Ui;
use crate::when;

pub(super) fn run(args: &StatsArgs, store: &Store, id: &SessionId, ui: &Ui) -> Result<Answer> {
    let reader = store.read_session(id)?;
    let survey = Survey::of(store, &reader, &reader.info()?)?;
    let stats = &survey.stats;
    let (spent, family) = derived::ask(store, ui, "reading sessions:", |index| {
        let mut filter = Filter::default();
        filter.session = Some(id.clone());
        let spent = NamedReport::ask(index, &filter, args.by)?;
        filter.session = None;
        filter.family_of = Some(id.clone());
        Ok((spent, index.spending(&filter)?))
    })?;
    if ui.json() {
        ui.print_json(&stats_json(args, id, &survey, &spent.report, &family))?;
    } else {
        print(&survey, &spent.report, &family, ui)?;
        if args.by.is_some() {
            spent.print(args, ui)?;
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

/// Returns the statistics, and what the ledger says.
fn stats_json(
    args: &StatsArgs,
    id: &SessionId,
    survey: &Survey,
    spent: &SpendingReport,
    family: &SpendingReport,
) -> Value {
    let mut spent = report_json(spent, args.limit);
    let mut value = json!(survey.stats);
    value["session"] = json!(id);
    for name in ["totals", "by", "estimated", "lower_bound_calls"] {
        value[name] = spent[name].take();
    }
    value["conversation"] = numbers(&survey.spending);
    value["family"] = numbers(&family.total);
    value["family"]["sessions"] = family.sessions.into();
    value
}

fn print(
    survey: &Survey,
    spent: &SpendingReport,
    family: &SpendingReport,
    ui: &Ui,
) -> std::io::Result<()> {
    let mut out = ui.out();
    for (name, text) in rows(survey)
        .into_iter()
        .chain(ledger_rows(survey, spent, family))
    {
        let text = hanging(12, &text, ui.width());
        writeln!(out, "{DIM}{name:<12}{DIM:#}{text}")?;
    }
    out.flush()
}

/// Returns the rows about the conversation as it is now.
fn rows(survey: &Survey) -> Vec<(&'static str, String)> {
    let stats = &survey.stats;
    let mut rows = Vec::new();
    if let Some(at) = stats.started_at {
        rows.push(("started", when::full(at)));
    }
    rows.push(("messages", messages(stats)));
    rows.push(("tool calls", tool_calls(stats)));
    let about = if stats.time_has_spans { "about " } else { "" };
    let time = format_duration(stats.time_spent());
    rows.push(("active time", format!("{about}{time}")));
    rows.push(("tokens", tokens(stats)));
    rows.push(("cost", cost(&survey.spending)));
    if stats.compactions > 0 {
        rows.push(("compactions", stats.compactions.to_string()));
    }
    if !stats.models.is_empty() {
        rows.push(("models", clean(&stats.models.join(", ")).into_owned()));
    }
    rows
}

/// Returns the rows about all that was spent, if that is something else than what the
/// conversation used: undone turns were paid for, and a fork did not pay for what it
/// inherited.
fn ledger_rows(
    survey: &Survey,
    spent: &SpendingReport,
    family: &SpendingReport,
) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let is_same = (spent.total.calls, spent.total.tokens(), spent.total.cost)
        == (
            survey.spending.calls,
            survey.spending.tokens(),
            survey.spending.cost,
        );
    if !is_same {
        let calls = format!(
            " in {}{}",
            count(spent.total.calls, "call"),
            unpriced(&spent.total)
        );
        let spent = match spent.total.calls {
            0 => "nothing".to_owned(),
            _ => bars::spent(&spent.total, &calls),
        };
        let how = "undone turns included, inherited turns not";
        rows.push(("spent", format!("{spent} ({how})")));
    }
    if family.sessions > 1 && family.total.calls > 0 {
        let calls = count(family.total.calls, "call");
        let sessions = count(family.sessions, "session");
        let calls = format!(" in {calls} of {sessions}{}", unpriced(&family.total));
        rows.push(("family", bars::spent(&family.total, &calls)));
    }
    rows
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

fn tokens(stats: &Stats) -> String {
    let used = &stats.usage;
    let estimated = match stats.estimated_tokens {
        0 => String::new(),
        n => format!("about {} estimated", grouped(n)),
    };
    if used.total() == 0 {
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
        grouped(used.total()),
        grouped(used.input_tokens),
        grouped(used.output_tokens),
        grouped(used.cache_read_input_tokens),
        grouped(used.cache_creation_input_tokens),
    )
}

fn cost(spending: &Spending) -> String {
    if spending.calls == 0 {
        return "unknown".to_owned();
    }
    let calls = format!(
        " in {}{}",
        count(spending.calls, "call"),
        unpriced(spending)
    );
    bars::spent(spending, &calls)
}

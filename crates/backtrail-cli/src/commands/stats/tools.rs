//! `stats --by tool`: how often tools were called.

use std::io::Write;

use backtrail::Store;
use backtrail::conversation::format_duration;
use backtrail_index::{Filter, Group, ToolCount};
use serde_json::{Value, json};

use super::bars::{head, percent, remark};
use super::plot::{Plot, PlotRow};
use super::{Namer, StatsArgs, report_rest, svg};
use crate::commands::Answer;
use crate::derived;
use crate::error::Result;
use crate::text::{count, grouped};
use crate::ui::Ui;

pub(super) fn run(
    args: &StatsArgs,
    store: &Store,
    filter: &Filter,
    groups: &[Group],
    ui: &Ui,
) -> Result<Answer> {
    let (report, names) = derived::ask(store, ui, "reading sessions:", |index| {
        let report = index.tool_calls(filter, groups)?;
        let namer = Namer {
            index,
            by: &args.by,
        };
        let names = report
            .by
            .iter()
            .map(|row| namer.names(&row.key, &row.second));
        let names = names.collect::<backtrail_index::Result<Vec<_>>>()?;
        Ok((report, names))
    })?;
    let rows = names
        .into_iter()
        .zip(&report.by)
        .map(|(names, row)| (names, row.count));
    let mut plot = plot(rows.collect(), &report.total);
    let groups = plot.groups();
    plot.keep(args.shown(groups));
    let title = title(&report.total);
    if let Some(path) = &args.svg {
        svg::write(&plot, &title, path, args.force, ui)?;
    }
    if ui.json() {
        let rows = args.limited(&report.by, |row| &row.key).iter().map(|row| {
            let mut json = json!(row);
            if args.by.len() == 2 {
                json["keys"] = json!([row.key, row.second]);
            }
            json.as_object_mut().and_then(|json| json.remove("second"));
            json
        });
        let by: Vec<Value> = rows.collect();
        return ui.answer_json(&json!({"totals": report.total, "by": by}));
    }
    if report.total.calls == 0 {
        ui.status("no tool calls recorded");
        return Ok(Answer::Done);
    }
    let mut text = head(&title, ui.width());
    text += &plot.draw(ui.width());
    text += &remark(
        "TIME is from call to result, where both have a time; tokens cannot be divided among tools",
        ui.width(),
    );
    let mut out = ui.out();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    report_rest(args, groups, ui);
    Ok(Answer::Done)
}

pub(in crate::commands) fn title(total: &ToolCount) -> String {
    format!(
        "{}, {} failed, {} without a result",
        count(total.calls, "tool call"),
        grouped(total.failed),
        grouped(total.open)
    )
}

/// Draws the calls of tools for a page.
pub(in crate::commands) fn picture(rows: &[(String, ToolCount)], total: &ToolCount) -> String {
    let rows = rows.iter();
    let rows = rows.map(|(name, count)| ([name.clone(), String::new()], *count));
    svg::inline(&plot(rows.collect(), total), &title(total))
}

fn plot(rows: Vec<([String; 2], ToolCount)>, total: &ToolCount) -> Plot {
    let row = |name: &str, is_part: bool, count: &ToolCount| PlotRow {
        name: name.to_owned(),
        is_part,
        weight: count.calls,
        cells: cells(count, total),
    };
    let mut plot: Vec<PlotRow> = Vec::new();
    let mut sums: Vec<(String, ToolCount, Vec<PlotRow>)> = Vec::new();
    for ([first, second], count) in &rows {
        if sums.last().is_none_or(|(name, ..)| name != first) {
            sums.push((first.clone(), ToolCount::default(), Vec::new()));
        }
        if let Some((_, sum, parts)) = sums.last_mut() {
            sum.add(count);
            if !second.is_empty() {
                parts.push(row(second, true, count));
            }
        }
    }
    for (name, sum, parts) in sums {
        plot.push(row(&name, false, &sum));
        plot.extend(parts);
    }
    Plot {
        columns: vec!["CALLS", "SHARE", "FAILED", "NO RESULT", "TIME"],
        choices: vec![vec![0, 1, 2, 3, 4], vec![0, 2, 4], vec![0, 2], vec![0]],
        rows: plot,
    }
}

fn cells(count: &ToolCount, total: &ToolCount) -> Vec<String> {
    let some = |n: u64| if n == 0 { String::new() } else { grouped(n) };
    let time = std::time::Duration::from_millis(count.ms);
    vec![
        grouped(count.calls),
        percent(count.calls as f64 / total.calls.max(1) as f64),
        some(count.failed),
        some(count.open),
        match count.timed {
            0 => String::new(),
            _ => format_duration(time),
        },
    ]
}

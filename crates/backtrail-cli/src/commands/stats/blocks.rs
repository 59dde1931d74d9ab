//! `stats --blocks`: usage in blocks of five hours.

use std::io::Write;

use backtrail::{Store, Timestamp};
use backtrail_index::{Filter, UsageBlock};
use serde_json::{Value, json};

use super::bars::{head, remark, weigher};
use super::plot::{Plot, PlotRow};
use super::{StatsArgs, numbers, report_rest, svg};
use crate::commands::Answer;
use crate::derived;
use crate::error::Result;
use crate::text::{cost, count, money, short_number, tokens};
use crate::ui::Ui;
use crate::when;

pub(super) fn run(args: &StatsArgs, store: &Store, filter: &Filter, ui: &Ui) -> Result<Answer> {
    let now = Timestamp::from(std::time::SystemTime::now());
    let blocks = derived::ask(store, ui, "reading sessions:", |index| {
        index.blocks(filter, now)
    })?;
    let shown = &blocks[args.shown(blocks.len())];
    let plot = plot(shown);
    let title = title(&blocks);
    if let Some(path) = &args.svg {
        svg::write(&plot, &title, path, args.force, ui)?;
    }
    if ui.json() {
        let blocks = match args.limit {
            Some(_) => shown,
            None => &blocks,
        };
        let blocks: Vec<Value> = blocks.iter().map(block_json).collect();
        return ui.answer_json(&json!({"blocks": blocks}));
    }
    if blocks.is_empty() {
        ui.status("no usage with times recorded");
        return Ok(Answer::Done);
    }
    let mut text = head(&title, ui.width()) + &plot.draw(ui.width());
    for block in shown.iter().filter(|block| block.active) {
        text += &remark(&active(block), ui.width());
    }
    let mut out = ui.out();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    report_rest(args, blocks.len(), ui);
    Ok(Answer::Done)
}

fn block_json(block: &UsageBlock) -> Value {
    let mut json = json!(block);
    json["spending"] = numbers(&block.spending);
    json
}

/// Says when the active block ends, and what it will have cost.
fn active(block: &UsageBlock) -> String {
    let mut amounts = Vec::new();
    amounts.extend(block.projected_cost.map(money));
    let tokens = |tokens: u64| format!("{} tokens", short_number(tokens));
    amounts.extend(block.projected_tokens.map(tokens));
    let until = format!("active until {}", when::time(block.end));
    match amounts.is_empty() {
        true => until,
        false => format!("{until}; at this rate {} by then", amounts.join(" and ")),
    }
}

/// Names a block by its beginning.
pub(in crate::commands) fn name(block: &UsageBlock) -> String {
    format!("{} {}", when::day(block.start), when::time(block.start))
}

/// Says what all blocks are.
pub(in crate::commands) fn title(blocks: &[UsageBlock]) -> String {
    format!("{} of 5 hours", count(blocks.len(), "block"))
}

/// Draws blocks for a page.
pub(in crate::commands) fn picture(shown: &[UsageBlock], all: &[UsageBlock]) -> String {
    svg::inline(&plot(shown), &title(all))
}

fn plot(blocks: &[UsageBlock]) -> Plot {
    let weight = weigher(blocks.iter().map(|block| &block.spending));
    let rows = blocks.iter().map(|block| PlotRow {
        name: name(block),
        is_part: false,
        weight: weight(&block.spending),
        cells: vec![
            cost(&block.spending),
            tokens(&block.spending),
            block.cost_per_hour.map(money).unwrap_or_default(),
            block
                .tokens_per_hour
                .map(|rate| short_number(rate as u64))
                .unwrap_or_default(),
            if block.active { "active" } else { "" }.to_owned(),
        ],
    });
    Plot {
        columns: vec!["COST", "TOKENS", "COST/H", "TOKENS/H", ""],
        choices: vec![vec![0, 1, 2, 3, 4], vec![0, 1, 2, 4], vec![0, 4], vec![0]],
        rows: rows.collect(),
    }
}

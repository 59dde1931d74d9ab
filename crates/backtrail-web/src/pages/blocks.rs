//! Blocks of five hours as columns, the oldest first.

use maud::{Markup, html};

use crate::library::SpendingRow;

/// The width of a block, and of the column in it.
const STEP: usize = 22;
const COLUMN: usize = 16;
const HEIGHT: usize = 140;
const TOP: usize = 24;
/// Every so many blocks have their name below.
const NAMED: usize = 6;

/// Returns the plot of blocks, which come oldest first as days do.
pub(super) fn plot(rows: &[SpendingRow]) -> Markup {
    let width = rows.len().max(NAMED) * STEP + 2 * STEP;
    let height = TOP + HEIGHT + 28;
    html! {
        @if rows.is_empty() { p.empty { "Nothing was spent yet." } }
        @else {
            div.plot tabindex="0" role="region" aria-label="Plot of the blocks" {
                svg.blocks viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img"
                    aria-label="What each block of five hours cost; the table has the numbers" {
                    @for (at, row) in rows.iter().enumerate() { (column(at, row)) }
                    line.axis x1="0" x2=(width) y1=(TOP + HEIGHT) y2=(TOP + HEIGHT) {}
                }
            }
        }
    }
}

fn column(at: usize, row: &SpendingRow) -> Markup {
    let share = usize::from(row.share.min(1000));
    let height = (HEIGHT * share / 1000).max(1);
    let x = STEP + at * STEP;
    html! {
        rect.bar x=(x) y=(TOP + HEIGHT - height) width=(COLUMN) height=(height) {
            title { (row.name) ": " (row.cost) ", " (row.tokens) " tokens" }
        }
        @if share == 1000 {
            text.number.middle x=(x + COLUMN / 2) y=(TOP - 8) { (row.cost) }
        }
        @if at.is_multiple_of(NAMED) {
            text.dim x=(x) y=(TOP + HEIGHT + 18) { (row.name) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dearest_block_has_its_cost_and_the_newest_is_last() {
        let block = |name: &str, cost: &str, share| SpendingRow {
            name: name.to_owned(),
            cost: cost.to_owned(),
            share,
            ..SpendingRow::default()
        };
        let rows = [block("yesterday", "$10", 1000), block("today", "$1", 100)];
        let html = plot(&rows).into_string();
        assert!(html.contains("y=\"16\">$10</text>"), "{html}");
        let at = |name: &str| html.find(&format!("<title>{name}:"));
        assert!(at("yesterday") < at("today"));
    }
}

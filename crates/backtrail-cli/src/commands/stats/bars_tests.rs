//! Bars at several widths, with rows made by hand.

use backtrail_index::Money;

use super::*;
use crate::commands::stats::plot::draw_bar;
use backtrail_index::SpendingRow;
use unicode_width::UnicodeWidthStr;

fn spending(calls: u64, tokens: u64, cents: i64) -> Spending {
    let mut spending = Spending::default();
    spending.calls = calls;
    spending.input_tokens = tokens;
    spending.cost = Money(cents * 10_000_000);
    spending
}

fn report(parts: &[(&str, Spending)]) -> (Vec<String>, SpendingReport) {
    let mut report = SpendingReport::default();
    for (name, spending) in parts {
        let mut row = SpendingRow::new(Some((*name).to_owned()));
        row.spending = *spending;
        row.sessions = 1;
        report.total.add(spending);
        report.by.push(row);
    }
    report.sessions = 118;
    let first = Timestamp::from_millis(1_793_534_400_000);
    let last = Timestamp::from_millis(1_794_744_000_000);
    report.span = first.zip(last);
    let names = parts.iter().map(|(name, _)| (*name).to_owned()).collect();
    (names, report)
}

fn november() -> (Vec<String>, SpendingReport) {
    let mut local = spending(311, 900_000, 0);
    local.unpriced_calls = 311;
    report(&[
        ("claude-opus-5", spending(1500, 12_400_000, 3820)),
        ("gpt-5.2-codex", spending(400, 3_000_000, 1204)),
        ("gemini-3-flash", spending(93, 950, 361)),
        ("my-local-model", local),
    ])
}

fn drawn(parts: &(Vec<String>, SpendingReport), width: Option<usize>) -> String {
    let (names, report) = parts;
    let rows = names.iter().zip(&report.by);
    let rows = rows.map(|(name, row)| ([name.clone(), String::new()], row.spending));
    let text = plot(rows.collect(), &report.total).draw(width);
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn bars_read_well() {
    let parts = november();
    let head = head(&title(&parts.1), None);
    assert_eq!(
        anstream::adapter::strip_str(&head).to_string(),
        "November 2026 · 118 sessions · 2,304 calls · $53.85+\n"
    );
    assert_eq!(
        format!("\n{}", drawn(&parts, None)),
        "
                                         COST  SHARE  INPUT  OUTPUT  READ  WRITE
claude-opus-5   ███████████████████    $38.20   71 %   12 M       0     0      0
gpt-5.2-codex   ██████                 $12.04   22 %  3.0 M       0     0      0
gemini-3-flash  █▊                      $3.61    7 %    950       0     0      0
my-local-model                       unpriced         900 k       0     0      0
"
    );
    assert_eq!(
        format!("\n{}", drawn(&parts, Some(50))),
        "
                               COST  SHARE  TOKENS
claude-opus-5   █████████    $38.20   71 %    12 M
gpt-5.2-codex   ██▉          $12.04   22 %   3.0 M
gemini-3-flash  ▉             $3.61    7 %     950
my-local-model             unpriced          900 k
"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut parts = november();
    parts.0[1] = "漢字かな交じり文の模型".to_owned();
    parts.0[2] = "\u{1b}[31me\u{301}vil \u{202e}model".to_owned();
    for width in 30..=170 {
        for line in drawn(&parts, Some(width)).lines() {
            assert!(line.width() <= width, "{width}: {line}");
            assert!(
                !line.contains('\u{1b}') && !line.contains('\u{202e}'),
                "{line}"
            );
        }
    }
}

#[test]
fn where_nothing_has_a_price_tokens_are_compared() {
    let mut one = spending(1, 2_000, 0);
    one.unpriced_calls = 1;
    let mut other = spending(3, 1_000, 0);
    other.unpriced_calls = 3;
    let text = drawn(&report(&[("a", one), ("b", other)]), Some(60));
    let bars = text.lines().skip(1).map(|line| line.matches('█').count());
    let bars: Vec<usize> = bars.collect();
    assert!(bars[0] > 10 && bars[1] == bars[0] / 2, "{text}");
    assert!(text.contains("unpriced"), "{text}");
}

#[test]
fn what_is_only_estimated_has_no_bar_and_says_so() {
    let mut guess = Spending::default();
    guess.estimated_calls = 4;
    guess.estimated_tokens = 88;
    let text = drawn(
        &report(&[("a", spending(1, 2_000, 184)), ("b", guess)]),
        Some(60),
    );
    let line = text.lines().nth(2).expect("a line");
    assert!(
        line.starts_with("b  ") && line.contains("estimated"),
        "{text}"
    );
    assert!(!line.contains('█'), "{text}");
}

#[test]
fn little_is_not_nothing() {
    assert_eq!(draw_bar(0.0, 10, true), "");
    assert_eq!(draw_bar(0.000_1, 10, true), "▏");
    assert_eq!(draw_bar(0.55, 10, true), "█████▌");
    assert_eq!(draw_bar(1.0, 10, true), "█".repeat(10));
    assert_eq!(draw_bar(7.0, 10, true), "█".repeat(10));
    assert_eq!(draw_bar(0.5, 0, true), "");
    assert_eq!(draw_bar(0.01, 10, false), "#");
    assert_eq!(draw_bar(0.5, 10, false), "#####");
    assert_eq!(percent(0.001), "<1 %");
    assert_eq!(percent(0.998), ">99 %");
    assert_eq!(percent(1.0), "100 %");
    assert_eq!(percent(0.71), "71 %");
}

#[test]
fn remarks_say_what_is_not_in_the_numbers() {
    assert_eq!(remarks(&spending(3, 1, 1), &[], None), "");
    let mut some = spending(3, 1, 1);
    some.unpriced_calls = 1;
    some.estimated_calls = 3;
    some.estimated_tokens = 12_000;
    some.lower_bound_calls = 2_000;
    assert_eq!(
        anstream::adapter::strip_str(&remarks(&some, &[], None)).to_string(),
        "\
+ marks a lower bound: 1 call has no known price; 3 calls report no tokens; \
Claude Code logs partial output counts
plus about 12 k estimated tokens (3 calls), not included
"
    );
    for width in 30..=120 {
        let text = remarks(&some, &[], Some(width)) + &head(&title(&november().1), Some(width));
        for line in anstream::adapter::strip_str(&text).to_string().lines() {
            assert!(line.width() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_cost_says_whether_providers_reported_it() {
    let mut some = spending(3, 1, 184);
    assert_eq!(spent(&some, " in 3 calls"), "$1.84 in 3 calls");
    some.reported_calls = 1;
    assert_eq!(spent(&some, ""), "$1.84, partly reported by the providers");
    some.reported_calls = 3;
    assert_eq!(spent(&some, ""), "$1.84, reported by the providers");
    some.estimated_calls = 1;
    assert_eq!(spent(&some, ""), "$1.84+, reported by the providers");
    some.unpriced_calls = 3;
    assert_eq!(spent(&some, ""), "unpriced");
}

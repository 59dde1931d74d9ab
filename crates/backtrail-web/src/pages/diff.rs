//! The difference of a file, unified or side by side.

use backtrail_view::diff_lines::{ShownLine, runs, shown_lines};
use backtrail_view::library::Palette;
use backtrail_view::library::{DiffKind, FileDiff};
use maud::{Markup, html};

use super::code;

/// More lines are not shown: a page of them would be slow and nobody reads it.
const MOST: usize = 20_000;

/// How a difference is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Removed lines above added ones.
    Unified,
    /// Removed lines beside added ones.
    SideBySide,
}

/// Whether single hunks can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hunks {
    /// Each has a button.
    Restorable,
    /// They are only shown.
    Shown,
}

/// Returns the difference.
pub(super) fn table(diff: &FileDiff, layout: Layout, hunks: Hunks) -> Markup {
    let lines = shown_lines(diff, Palette::Sixteen);
    let shown = &lines[..lines.len().min(MOST)];
    let numbered = runs(shown).scan(0, |next, run| {
        let hunk = *next;
        *next += usize::from(is_heading(run));
        Some((hunk, run))
    });
    html! {
        @if let Some(note) = &diff.note { p.note { (note) } }
        @if !lines.is_empty() {
            div.scrolled tabindex="0" role="region" aria-label=(format!("Difference of {}", diff.path)) {
                table.lines.split[layout == Layout::SideBySide] {
                    (head(layout))
                    @for (hunk, run) in numbered {
                        @match run {
                            [heading] if is_heading(run) => (heading_row(heading, hunk, layout, hunks)),
                            _ => (rows(run, layout)),
                        }
                    }
                }
            }
        }
        @if lines.len() > shown.len() {
            p.note { (lines.len() - shown.len()) " more lines are not shown" }
        }
    }
}

fn is_heading(run: &[ShownLine]) -> bool {
    run.iter().any(|line| line.kind == DiffKind::Hunk)
}

fn head(layout: Layout) -> Markup {
    let columns = match layout {
        Layout::Unified => ["Old line", "New line", "Text", ""],
        Layout::SideBySide => ["Old line", "Old text", "New line", "New text"],
    };
    html! {
        thead.hidden { tr {
            @for column in columns.into_iter().filter(|column| !column.is_empty()) {
                th scope="col" { (column) }
            }
        } }
    }
}

fn heading_row(line: &ShownLine, hunk: usize, layout: Layout, hunks: Hunks) -> Markup {
    let columns = match layout {
        Layout::Unified => 3,
        Layout::SideBySide => 4,
    };
    html! {
        tr.hunk { td colspan=(columns) {
            span { (code::line(&line.spans)) }
            @if hunks == Hunks::Restorable {
                button.small type="button" data-write="" data-hunk=(hunk) { "Restore hunk" }
            }
        } }
    }
}

fn rows(run: &[ShownLine], layout: Layout) -> Markup {
    match layout {
        Layout::Unified => html! { @for line in run { (unified(line)) } },
        Layout::SideBySide => side_by_side(run),
    }
}

fn unified(line: &ShownLine) -> Markup {
    html! {
        tr class=(class(line.kind)) {
            td.n { (number(line.old)) }
            td.n { (number(line.new)) }
            (text(line))
        }
    }
}

fn side_by_side(run: &[ShownLine]) -> Markup {
    let of = |kind| {
        let lines = run.iter();
        lines
            .filter(move |line| line.kind == kind || line.kind == DiffKind::Same)
            .collect::<Vec<_>>()
    };
    let (old, new) = (of(DiffKind::Removed), of(DiffKind::Added));
    html! {
        @for n in 0..old.len().max(new.len()) {
            tr {
                (half(old.get(n).copied(), |line| line.old))
                (half(new.get(n).copied(), |line| line.new))
            }
        }
    }
}

fn half(line: Option<&ShownLine>, number_of: fn(&ShownLine) -> Option<u64>) -> Markup {
    html! {
        @match line {
            Some(line) => {
                td class={ "n " (class(line.kind)) } { (number(number_of(line))) }
                (text(line))
            }
            None => { td.n {} td {} }
        }
    }
}

fn text(line: &ShownLine) -> Markup {
    html! {
        td class={ "t " (class(line.kind)) } {
            span.sign { (sign(line.kind)) }
            (code::emphasised(&line.spans, &line.changed))
        }
    }
}

fn number(number: Option<u64>) -> Markup {
    html! { @if let Some(number) = number { (number) } }
}

fn class(kind: DiffKind) -> &'static str {
    match kind {
        DiffKind::Removed => "del",
        DiffKind::Added => "add",
        DiffKind::Hunk | DiffKind::Same => "same",
    }
}

fn sign(kind: DiffKind) -> &'static str {
    match kind {
        DiffKind::Removed => "-",
        DiffKind::Added => "+",
        DiffKind::Hunk | DiffKind::Same => " ",
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

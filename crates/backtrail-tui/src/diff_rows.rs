//! Differences, laid out for a width.

use crate::library::{FileDiff, Span};
use crate::look::Look;
use crate::request::{DiffRequest, DiffRows};

/// Lays a difference out.
pub(crate) fn lay_out(diff: &FileDiff, _: &DiffRequest, _: Look) -> DiffRows {
    let rows = diff.lines.iter();
    DiffRows {
        rows: rows
            .map(|line| (vec![Span::plain(&line.text)], None))
            .collect(),
        note: diff.note.clone(),
    }
}

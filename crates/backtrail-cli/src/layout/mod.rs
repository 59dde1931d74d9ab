//! Text on a terminal: styled spans, cut or wrapped to a width, in tables.
//!
//! Columns are counted as a terminal does: wide characters take two, combining ones none.

mod span;
mod table;
mod wrap;

pub(crate) use self::span::{
    BOLD, DIM, Line, Span, cut, cut_middle, pad_end, pad_start, styled, width_of,
};
pub(crate) use self::table::{Cell, Column, Table};
pub(crate) use self::wrap::{hanging, wrap, wrap_plain, wrap_words};

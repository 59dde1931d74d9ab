//! The screens of the command `backtrail`.
//!
//! A screen is a state. An event changes it and returns effects; drawing reads it and nothing
//! else. Neither needs a terminal. What is shown comes from a [`Library`](backtrail_view::library::Library).

mod answer;
mod app;
mod clipboard;
mod columns;
mod command;
mod cursor;
mod diff_rows;
mod draw;
mod event;
#[cfg(test)]
mod fake_tests;
mod fuzzy;
mod input;
mod lanes;
mod look;
mod options;
pub mod picker;
mod queue;
mod request;
mod runtime;
mod session_columns;
mod signals;
mod surroundings;
mod terminal;
#[cfg(test)]
mod terminal_tests;

pub use self::look::{Background, Look};
pub use self::options::Options;
pub use self::runtime::run;

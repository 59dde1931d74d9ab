//! The files that the browser loads, which are in the program.

/// The page that every address of a page is answered with.
pub(crate) const SHELL: &str = include_str!("shell.html");
/// The script.
pub(crate) const SCRIPT: &str = include_str!("app.js");
/// The style.
pub(crate) const STYLE: &str = include_str!("app.css");

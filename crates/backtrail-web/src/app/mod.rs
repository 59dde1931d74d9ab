//! The shell of the pages, their script and their style: the same bytes for everybody.

use std::sync::OnceLock;

use backtrail_view::CONVERSATION_CSS;

/// The page, without data.
pub(crate) const SHELL: &str = include_str!("shell.html");

/// The script: one module, in the order in which its files need each other.
pub(crate) const SCRIPT: &str = concat!(
    include_str!("page.js"),
    include_str!("column.js"),
    include_str!("events.js"),
    include_str!("dialogs.js"),
    include_str!("changes.js"),
    include_str!("sessions.js"),
    include_str!("session.js"),
    include_str!("workspace.js"),
    include_str!("files.js"),
    include_str!("costs.js"),
    include_str!("main.js"),
);

/// Returns the style: that of a conversation, and what the pages have besides.
pub(crate) fn style() -> &'static str {
    static STYLE: OnceLock<String> = OnceLock::new();
    STYLE.get_or_init(|| [CONVERSATION_CSS, include_str!("app.css")].concat())
}

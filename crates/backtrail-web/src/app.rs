//! The shell of the pages, their script and their style: the same bytes for everybody.

use std::sync::OnceLock;

use backtrail_view::CONVERSATION_CSS;

/// The page, without data.
pub(crate) const SHELL: &str = include_str!("app/shell.html");

/// The script: one module, in the order in which its files need each other.
pub(crate) const SCRIPT: &str = concat!(
    include_str!("app/page.js"),
    include_str!("app/column.js"),
    include_str!("app/events.js"),
    include_str!("app/dialogs.js"),
    include_str!("app/changes.js"),
    include_str!("app/sessions.js"),
    include_str!("app/session.js"),
    include_str!("app/workspace.js"),
    include_str!("app/files.js"),
    include_str!("app/costs.js"),
    include_str!("app/main.js"),
);

/// Returns the style: that of a conversation, and what the pages have besides.
pub(crate) fn style() -> &'static str {
    static STYLE: OnceLock<String> = OnceLock::new();
    STYLE.get_or_init(|| [CONVERSATION_CSS, include_str!("app/app.css")].concat())
}

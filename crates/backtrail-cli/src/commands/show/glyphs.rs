//! The signs on a page.

use std::env;

/// The signs, in Unicode or in ASCII.
#[derive(Debug)]
pub(super) struct Glyphs {
    /// Before a tool call.
    pub(super) tool: &'static str,
    pub(super) done: &'static str,
    pub(super) failed: &'static str,
    /// Before a prompt.
    pub(super) prompt: &'static str,
    /// One column of a rule.
    pub(super) rule: &'static str,
    /// Before a quotation.
    pub(super) bar: &'static str,
    /// Before an item of a list.
    pub(super) bullet: &'static str,
    /// Between two facts.
    pub(super) dot: &'static str,
    /// Before the record that was asked for.
    pub(super) here: &'static str,
    /// Before the tasks of a list, by how far they are.
    pub(super) todo_open: &'static str,
    pub(super) todo_active: &'static str,
    pub(super) todo_done: &'static str,
    pub(super) todo_dropped: &'static str,
}

const UNICODE: Glyphs = Glyphs {
    tool: "⚙",
    done: "✓",
    failed: "✗",
    prompt: "›",
    rule: "─",
    bar: "│",
    bullet: "•",
    dot: "·",
    here: "→",
    todo_open: "○",
    todo_active: "◐",
    todo_done: "●",
    todo_dropped: "✗",
};

const ASCII: Glyphs = Glyphs {
    tool: "*",
    done: "ok:",
    failed: "failed:",
    prompt: ">",
    rule: "-",
    bar: "|",
    bullet: "-",
    dot: "-",
    here: "->",
    todo_open: "[ ]",
    todo_active: "[~]",
    todo_done: "[x]",
    todo_dropped: "[-]",
};

impl Glyphs {
    /// Returns the signs for the locale; Unicode if none is set.
    pub(super) fn of_locale() -> &'static Self {
        match is_unicode() {
            true => &UNICODE,
            false => &ASCII,
        }
    }
}

/// Returns whether the locale has Unicode, or none is set.
pub(crate) fn is_unicode() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let mut set = names.iter().filter_map(env::var_os);
    let locale = set.find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_string_lossy().to_lowercase();
    locale.is_empty() || locale.contains("utf-8") || locale.contains("utf8")
}

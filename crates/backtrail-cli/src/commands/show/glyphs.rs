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
};

impl Glyphs {
    /// Returns the signs for the locale; Unicode if none is set.
    pub(super) fn of_locale() -> &'static Self {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"];
        let mut set = names.iter().filter_map(env::var_os);
        let locale = set.find(|value| !value.is_empty()).unwrap_or_default();
        let locale = locale.to_string_lossy().to_lowercase();
        match locale.is_empty() || locale.contains("utf-8") || locale.contains("utf8") {
            true => &UNICODE,
            false => &ASCII,
        }
    }
}

//! The help of the whole command: the verbs in groups.

use std::io;

use anstyle::{Effects, Style};
use clap::Command;

/// The verbs in groups, each once.
pub(crate) const GROUPS: [(&str, &[&str]); 4] = [
    ("Recording", &["run", "checkpoint", "record", "import"]),
    (
        "Looking",
        &[
            "status", "log", "diff", "cat", "list", "show", "search", "stats", "context", "export",
        ],
    ),
    (
        "Going back",
        &["undo", "redo", "rewind", "restore", "fork", "steps"],
    ),
    (
        "Housekeeping",
        &[
            "title",
            "tag",
            "pin",
            "compact",
            "delete",
            "trash",
            "gc",
            "verify",
            "repair",
            "doctor",
            "rebuild",
            "relink",
            "config",
            "completions",
            "man",
        ],
    ),
];

/// Where what a verb does begins in its line.
const COLUMN: usize = 15;
/// No line is wider.
const WIDEST: usize = 100;

/// Writes the template of the help, for as many columns as there are.
pub(crate) fn template(command: &Command) -> String {
    let heading = Style::new().effects(Effects::BOLD.insert(Effects::UNDERLINE));
    let name = Style::new().bold();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, verbs) in GROUPS {
        text += &format!("\n{heading}{group}:{heading:#}\n");
        for verb in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let pad = " ".repeat(COLUMN.saturating_sub(2 + verb.len()));
            text += &format!("  {name}{verb}{name:#}{pad}{}\n", filled(&about, width()));
        }
    }
    text += &format!(
        "\n{heading}Options:{heading:#}\n{{options}}\n\n\
         Without a verb: how things stand here. `backtrail VERB --help` has examples,\n\
         `backtrail man` is the whole manual."
    );
    text
}

/// Returns how wide the help may be.
fn width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = terminal_size::terminal_size_of(io::stdout());
    let width = terminal
        .map(|(width, _)| usize::from(width.0))
        .or_else(said);
    width.unwrap_or(WIDEST).clamp(40, WIDEST)
}

/// Breaks a text behind the column.
fn filled(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = COLUMN;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > COLUMN && used + 1 + length > width {
            out += &format!("\n{}", " ".repeat(COLUMN));
            used = COLUMN;
        } else if used > COLUMN {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

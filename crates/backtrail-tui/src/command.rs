//! Everything that a key can do: one table for the keys, the help and the command palette.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::cursor::Step;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Go(Step),
    Left,
    Right,
    NextPanel,
    PreviousPanel,
    Open,
    Back,
    Quit,
    ShowSessions,
    ShowTimeline,
    ShowCosts,
    Search,
    NextMatch,
    PreviousMatch,
    Filter,
    NextScope,
    Wordless,
    NextPrompt,
    PreviousPrompt,
    NextPart,
    PreviousPart,
    Fold,
    Diff,
    SideBySide,
    Undo,
    Redo,
    Rewind,
    Restore,
    Mark,
    Compare,
    Files,
    Fork,
    Continue,
    Copy,
    Export,
    Title,
    Tag,
    Pin,
    Delete,
    Undelete,
    Blame,
    OpenWhole,
    OpenSession,
    NextGrouping,
    PreviousGrouping,
    ScrollLeft,
    ScrollRight,
    Help,
    Palette,
    Redraw,
    Suspend,
}

/// Where a command is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Sessions,
    Conversation,
    Changes,
    Diff,
    Timeline,
    Costs,
}

use Command as Do;
use Panel::{Changes, Conversation, Costs, Diff, Sessions, Timeline};

/// A row of the table: the command, its keys as they are shown, what it does, and where.
pub(crate) struct Entry {
    pub(crate) command: Command,
    pub(crate) keys: &'static str,
    pub(crate) about: &'static str,
    /// Empty: everywhere.
    pub(crate) panels: &'static [Panel],
}

const fn entry(
    command: Command,
    keys: &'static str,
    about: &'static str,
    panels: &'static [Panel],
) -> Entry {
    Entry {
        command,
        keys,
        about,
        panels,
    }
}

/// The commands, in the order of the help.
pub(crate) const TABLE: &[Entry] = &[
    entry(Do::Open, "Enter", "open what is selected", &[]),
    entry(Do::NextPanel, "Tab", "next panel", &[]),
    entry(Do::PreviousPanel, "Shift-Tab", "previous panel", &[]),
    entry(Do::ShowSessions, "1", "sessions", &[]),
    entry(Do::ShowTimeline, "2", "timeline of this workspace", &[]),
    entry(Do::ShowCosts, "3", "costs", &[]),
    entry(Do::Search, "/", "search all messages and outputs", &[]),
    entry(Do::NextMatch, "n", "next match", &[]),
    entry(Do::PreviousMatch, "N", "previous match", &[]),
    entry(Do::Filter, "F", "filter the sessions", &[Sessions]),
    entry(
        Do::Wordless,
        ".",
        "show or hide runs and sessions without a word",
        &[Sessions],
    ),
    entry(
        Do::NextScope,
        "a",
        "this workspace, this project, or everything",
        &[Sessions, Costs],
    ),
    entry(Do::NextPrompt, "]", "next prompt", &[Conversation]),
    entry(Do::PreviousPrompt, "[", "previous prompt", &[Conversation]),
    entry(
        Do::NextPart,
        "J",
        "next message, call or hunk",
        &[Conversation, Diff],
    ),
    entry(
        Do::PreviousPart,
        "K",
        "previous message, call or hunk",
        &[Conversation, Diff],
    ),
    entry(
        Do::Fold,
        "z",
        "tools hidden, short or full",
        &[Conversation],
    ),
    entry(
        Do::OpenWhole,
        "o",
        "whole text and output of this part",
        &[Conversation],
    ),
    entry(
        Do::OpenSession,
        "o",
        "open the session at this point",
        &[Timeline],
    ),
    entry(Do::Diff, "d", "diff", &[Conversation, Changes, Timeline]),
    entry(
        Do::SideBySide,
        "v",
        "side by side or unified",
        &[Diff, Changes],
    ),
    entry(Do::ScrollLeft, "<", "scroll left", &[Diff]),
    entry(Do::ScrollRight, ">", "scroll right", &[Diff]),
    entry(Do::Undo, "u", "undo the last step", &[]),
    entry(Do::Redo, "U", "redo", &[]),
    entry(
        Do::Rewind,
        "r",
        "rewind files and conversation to here",
        &[Conversation, Timeline],
    ),
    entry(
        Do::Restore,
        "R",
        "restore this file or hunk",
        &[Changes, Diff],
    ),
    entry(Do::Mark, "Space", "mark", &[Changes, Diff]),
    entry(
        Do::Compare,
        "m",
        "mark a moment, then compare another with it",
        &[Timeline],
    ),
    entry(
        Do::Files,
        "w",
        "the files as they were then",
        &[Timeline, Conversation],
    ),
    entry(Do::Blame, "b", "who wrote each line", &[Changes, Diff]),
    entry(
        Do::Fork,
        "f",
        "fork into a directory",
        &[Sessions, Conversation],
    ),
    entry(
        Do::Continue,
        "c",
        "continue in an agent",
        &[Sessions, Conversation],
    ),
    entry(
        Do::Copy,
        "y",
        "copy",
        &[Sessions, Conversation, Changes, Diff, Timeline],
    ),
    entry(Do::Export, "e", "export", &[Sessions, Conversation]),
    entry(Do::Title, "t", "set the title", &[Sessions, Conversation]),
    entry(
        Do::Tag,
        "#",
        "add or remove tags",
        &[Sessions, Conversation],
    ),
    entry(Do::Pin, "p", "pin or unpin", &[Sessions, Conversation]),
    entry(Do::Delete, "x", "delete the session", &[Sessions]),
    entry(
        Do::Undelete,
        "X",
        "restore the session deleted last",
        &[Sessions],
    ),
    entry(Do::NextGrouping, "]", "next grouping", &[Costs]),
    entry(Do::PreviousGrouping, "[", "previous grouping", &[Costs]),
    entry(Do::Help, "?", "what is possible here", &[]),
    entry(Do::Palette, ":", "find a command", &[]),
    entry(Do::Redraw, "Ctrl-L", "read and draw everything again", &[]),
    entry(Do::Suspend, "Ctrl-Z", "suspend", &[]),
    entry(Do::Back, "q", "back, and out", &[]),
];

impl Entry {
    pub(crate) fn is_possible(&self, panel: Panel) -> bool {
        self.panels.is_empty() || self.panels.contains(&panel)
    }

    fn has_key(&self, key: &str) -> bool {
        self.keys == key
    }
}

/// Returns what a key does in a panel.
pub(crate) fn command_of(key: KeyEvent, panel: Panel) -> Option<Command> {
    if let Some(moved) = movement(key) {
        return Some(moved);
    }
    let name = name_of(key)?;
    let here = TABLE.iter().filter(|entry| entry.is_possible(panel));
    here.into_iter()
        .find(|entry| entry.has_key(&name))
        .map(|entry| entry.command)
}

/// Keys that move, the same everywhere.
pub(crate) fn movement(key: KeyEvent) -> Option<Command> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match (key.code, control) {
        (KeyCode::Char('d'), true) => Do::Go(Step::HalfDown),
        (KeyCode::Char('u'), true) => Do::Go(Step::HalfUp),
        (KeyCode::Char('f'), true) | (KeyCode::PageDown, _) => Do::Go(Step::PageDown),
        (KeyCode::Char('b'), true) | (KeyCode::PageUp, _) => Do::Go(Step::PageUp),
        (KeyCode::Char('n'), true) => Do::Go(Step::Down),
        (KeyCode::Char('p'), true) => Do::Go(Step::Up),
        (KeyCode::Char('c'), true) => Do::Quit,
        (KeyCode::Char('j') | KeyCode::Down, false) => Do::Go(Step::Down),
        (KeyCode::Char('k') | KeyCode::Up, false) => Do::Go(Step::Up),
        (KeyCode::Char('g') | KeyCode::Home, false) => Do::Go(Step::First),
        (KeyCode::Char('G') | KeyCode::End, false) => Do::Go(Step::Last),
        (KeyCode::Char('h') | KeyCode::Left, false) => Do::Left,
        (KeyCode::Char('l') | KeyCode::Right, false) => Do::Right,
        (KeyCode::Char('}'), false) => Do::NextPrompt,
        (KeyCode::Char('{'), false) => Do::PreviousPrompt,
        (KeyCode::Esc, _) => Do::Back,
        _ => return None,
    })
}

/// Keys that move, as the help shows them.
const MOVEMENT: &[(&str, &str)] = &[
    ("j k, arrows", "down and up"),
    ("h l, arrows", "previous and next panel"),
    ("g G, Home End", "first and last"),
    ("Ctrl-D Ctrl-U", "half a page"),
    ("PageDown PageUp", "a page"),
    ("Esc", "back"),
    ("Ctrl-C", "leave"),
];

/// Returns the keys that do something in a panel, and what they do.
pub(crate) fn help_rows(panel: Panel) -> Vec<(&'static str, &'static str)> {
    let here = TABLE.iter().filter(|entry| entry.is_possible(panel));
    let rows = here.map(|entry| (entry.keys, entry.about));
    rows.chain(MOVEMENT.iter().copied()).collect()
}

/// Returns a key as the table names it.
fn name_of(key: KeyEvent) -> Option<String> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => "Shift-Tab".to_owned(),
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) if control => format!("Ctrl-{}", c.to_ascii_uppercase()),
        KeyCode::Char(c) => c.to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const PANELS: [Panel; 6] = [Sessions, Conversation, Changes, Diff, Timeline, Costs];

    #[test]
    fn no_key_means_two_things_in_one_panel() {
        for panel in PANELS {
            let here: Vec<&Entry> = TABLE.iter().filter(|it| it.is_possible(panel)).collect();
            for (n, entry) in here.iter().enumerate() {
                let again = here[n + 1..].iter().find(|other| other.keys == entry.keys);
                assert!(again.is_none(), "{panel:?}: {}", entry.keys);
            }
        }
    }

    #[test]
    fn every_key_of_the_table_does_what_it_says() {
        for panel in PANELS {
            for entry in TABLE.iter().filter(|it| it.is_possible(panel)) {
                let code = match entry.keys {
                    "Enter" => KeyCode::Enter,
                    "Tab" => KeyCode::Tab,
                    "Shift-Tab" => KeyCode::BackTab,
                    "Space" => KeyCode::Char(' '),
                    keys => KeyCode::Char(keys.chars().next_back().unwrap().to_ascii_lowercase()),
                };
                let key = match entry.keys.strip_prefix("Ctrl-") {
                    Some(_) => KeyEvent::new(code, KeyModifiers::CONTROL),
                    None if entry.keys.chars().count() == 1 => {
                        let c = entry.keys.chars().next().unwrap();
                        KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
                    }
                    None => KeyEvent::new(code, KeyModifiers::NONE),
                };
                assert_eq!(
                    command_of(key, panel),
                    Some(entry.command),
                    "{}",
                    entry.keys
                );
            }
        }
    }

    /// docs/ui.md lists every key. `BACKTRAIL_BLESS=1` writes its table again.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the documentation is not in a store"
    )]
    fn the_documentation_lists_every_key() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ui.md");
        let Ok(text) = std::fs::read_to_string(&path) else {
            // A published package has no documentation beside it.
            return;
        };
        let mut table = "<!-- keys -->\n| key | what it does | where |\n|---|---|---|\n".to_owned();
        for entry in TABLE {
            let names: Vec<String> = entry
                .panels
                .iter()
                .map(|panel| format!("{panel:?}").to_lowercase())
                .collect();
            let place = match names.is_empty() {
                true => "everywhere".to_owned(),
                false => names.join(", "),
            };
            table += &format!("| `{}` | {} | {place} |\n", entry.keys, entry.about);
        }
        let (before, rest) = text.split_once("<!-- keys -->").unwrap();
        let (_, after) = rest.split_once("<!-- /keys -->").unwrap();
        let expected = format!("{before}{table}<!-- /keys -->{after}");
        if std::env::var_os("BACKTRAIL_BLESS").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        assert!(text == expected || std::env::var_os("BACKTRAIL_BLESS").is_some());
    }
}

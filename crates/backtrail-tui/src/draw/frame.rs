//! The first and the last lines of the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::rows::{cut, put, row};
use crate::app::{App, Tone, View};
use crate::command::{Command, Panel, TABLE};

/// The commands that the last line names, the most useful first.
const HINTS: &[Command] = &[
    Command::Open,
    Command::Search,
    Command::Diff,
    Command::Undo,
    Command::Rewind,
    Command::Restore,
    Command::Mark,
    Command::Compare,
    Command::NextPrompt,
    Command::Fold,
    Command::NextScope,
    Command::Filter,
    Command::NextGrouping,
    Command::Continue,
];

/// Draws which views there are, and where we are.
pub(super) fn header(app: &App, area: Rect, buf: &mut Buffer) {
    let Some(area) = row(area, 0) else { return };
    let look = app.look;
    let mut spans = Vec::new();
    let views = [
        (View::Sessions, " 1 sessions "),
        (View::Timeline, " 2 timeline "),
        (View::Costs, " 3 costs "),
    ];
    for (view, name) in views {
        let style = match view == app.view {
            true => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
            false => look.dim(),
        };
        spans.push(Span::styled(name, style));
        spans.push(Span::raw(" "));
    }
    let list = &app.sessions.list;
    let name = list.workspace.as_deref().or(list.project.as_deref());
    let left = Line::from(spans);
    let room = usize::from(area.width).saturating_sub(left.width() + 1);
    let name = cut(name.unwrap_or_default(), room, look.signs().ellipsis);
    put(buf, area, &left);
    let right = Line::styled(name, look.dim());
    let width = u16::try_from(right.width()).unwrap_or(area.width);
    let x = (area.x + area.width).saturating_sub(width + 1);
    buf.set_line(x, area.y, &right, width);
}

/// Draws what undo would do or what was done, and what is possible.
pub(super) fn footer(app: &App, area: Rect, buf: &mut Buffer) {
    if let Some(first) = row(area, 0) {
        put(buf, first, &message(app, first.width));
    }
    // What lies over the panels names its own keys.
    if let Some(second) = row(area, 1).filter(|_| app.overlays.is_empty()) {
        put(buf, second, &hints(app, second.width));
    }
}

fn message(app: &App, width: u16) -> Line<'static> {
    let look = app.look;
    let room = usize::from(width).saturating_sub(1);
    let (style, text) = match &app.notice {
        Some((Tone::Done, text)) => (look.fg(Color::Green), text),
        Some((Tone::Wrong, text)) => (look.fg(Color::Yellow), text),
        None => (look.dim(), &app.next_undo),
    };
    let text = cut(text, room, look.signs().ellipsis);
    Line::from(vec![Span::raw(" "), Span::styled(text, style)])
}

fn hints(app: &App, width: u16) -> Line<'static> {
    let look = app.look;
    let mut spans = vec![Span::raw(" ")];
    let mut used = 1;
    // These two are always named.
    let last = [("?", "help"), ("q", "back")];
    let kept: usize = last
        .iter()
        .map(|(key, about)| key.len() + about.len() + 3)
        .sum();
    let here = |command: &&Command| {
        let entry = TABLE.iter().find(|entry| entry.command == **command);
        entry.filter(|entry| entry.is_possible(app.focus))
    };
    let named = HINTS.iter().filter_map(|command| here(&command));
    for entry in named {
        let about = brief(entry.command, app.focus).unwrap_or(entry.about);
        let long = entry.keys.len() + about.len() + 3;
        if used + long + kept > usize::from(width) {
            continue;
        }
        used += long;
        spans.push(Span::styled(entry.keys, look.bold()));
        spans.push(Span::styled(format!(" {about}  "), look.dim()));
    }
    for (key, about) in last {
        spans.push(Span::styled(key, look.bold()));
        spans.push(Span::styled(format!(" {about}  "), look.dim()));
    }
    Line::from(spans)
}

/// Returns a command in a word.
fn brief(command: Command, panel: Panel) -> Option<&'static str> {
    Some(match command {
        Command::Open if panel == Panel::Costs => "sessions",
        Command::Open => "open",
        Command::Search => "search",
        Command::Diff => "diff",
        Command::Undo => "undo",
        Command::Rewind => "rewind",
        Command::Restore => "restore",
        Command::Mark => "mark",
        Command::Compare => "compare",
        Command::NextPrompt => "next prompt",
        Command::Fold => "tools",
        Command::NextScope => "scope",
        Command::Filter => "filter",
        Command::NextGrouping => "group by",
        Command::Continue => "continue",
        _ => return None,
    })
}

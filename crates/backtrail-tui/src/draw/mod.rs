//! Drawing: from the state alone.

mod changes;
mod conversation;
mod costs;
mod dialog;
mod frame;
mod rows;
mod search;
mod sessions;
mod timeline;

use ratatui::Frame;
use ratatui::buffer::Buffer;

use crate::app::App;
use crate::app::areas::Areas;
use crate::app::overlay::Overlay;
use crate::command::Panel;

/// Draws the whole screen.
pub(crate) fn draw(app: &App, frame: &mut Frame<'_>) {
    // The terminal may have another size already, which the state hears of next.
    let size = (frame.area().width, frame.area().height);
    let areas = Areas::new(size, app.view, app.focus);
    let buf = frame.buffer_mut();
    frame::header(app, areas.header, buf);
    for (panel, area) in &areas.panels {
        match panel {
            Panel::Sessions => sessions::draw(app, *area, buf),
            Panel::Conversation => conversation::draw(app, *area, buf),
            Panel::Changes => changes::files(app, *area, buf),
            Panel::Diff => changes::diff(app, *area, buf),
            Panel::Timeline => timeline::draw(app, *area, buf),
            Panel::Costs => costs::draw(app, *area, buf),
        }
    }
    for overlay in &app.overlays {
        match overlay {
            Overlay::Search(search) => search::draw(app, search, areas.body, buf),
            Overlay::Input(input) => dialog::input(app, input, areas.body, buf),
            Overlay::Choose(choose) => dialog::choose(app, choose, areas.body, buf),
            Overlay::Plan(plan) => dialog::plan(app, plan, areas.body, buf),
            Overlay::Text(text) => dialog::text(app, text, areas.body, buf),
            Overlay::Blame(blame) => dialog::blame(app, blame, areas.body, buf),
            Overlay::Help(cursor) => dialog::help(app, *cursor, areas.body, buf),
            Overlay::Failure(failure) => dialog::failure(app, failure, areas.body, buf),
        }
    }
    frame::footer(app, areas.footer, buf);
    if !app.look.unicode {
        in_ascii(buf);
    }
}

/// Replaces everything that the terminal cannot show.
fn in_ascii(buf: &mut Buffer) {
    for cell in &mut buf.content {
        let Some(sign) = cell.symbol().chars().next().filter(|sign| !sign.is_ascii()) else {
            continue;
        };
        cell.set_char(match sign {
            '−' | '–' | '—' | '─' | '‐' => '-',
            '│' | '┃' => '|',
            '›' | '→' | '▸' => '>',
            '·' | '•' => '*',
            '‘' | '’' => '\'',
            '“' | '”' => '"',
            '…' => '~',
            _ => '?',
        });
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;

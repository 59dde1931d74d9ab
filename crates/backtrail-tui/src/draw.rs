//! Drawing: from the state alone.

use ratatui::Frame;

use crate::app::App;

/// Draws the whole screen.
pub(crate) fn draw(app: &App, frame: &mut Frame<'_>) {
    frame.render_widget(format!("{:?}", app.size), frame.area());
}

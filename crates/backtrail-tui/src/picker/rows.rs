//! The rows of the terminal that a picker has.

use std::io::{self, BufWriter, Stderr, Write};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use crossterm::{cursor, execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::draw;
use super::state::PickerState;
use crate::terminal::{self, Hold};

/// A picker has a third of the rows, but not more than this,
const MOST: u16 = 20;
/// and not fewer than this if there are as many.
const LEAST: u16 = 6;

/// Some rows of the terminal, from that of the cursor on.
pub(super) struct Rows {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    area: Rect,
}

impl Rows {
    /// Takes the rows; what is above them scrolls up if there are not enough.
    pub(super) fn enter() -> io::Result<Self> {
        terminal::hold(Hold::Rows)?;
        Self::make().inspect_err(|_| terminal::leave())
    }

    fn make() -> io::Result<Self> {
        let (width, height) = crossterm::terminal::size()?;
        let (_, row) = cursor::position()?;
        let rows = rows_of(height);
        let mut out = io::stderr();
        out.write_all("\n".repeat(usize::from(rows.saturating_sub(1))).as_bytes())?;
        execute!(out, EnableBracketedPaste)?;
        let area = Rect::new(0, row.min(height.saturating_sub(rows)), width, rows);
        let backend = CrosstermBackend::new(BufWriter::new(out));
        let viewport = Viewport::Fixed(area);
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(Self { terminal, area })
    }

    pub(super) fn size(&self) -> Size {
        self.area.as_size()
    }

    /// Takes rows of a terminal that has another size now.
    pub(super) fn resize(&mut self, width: u16, height: u16) -> io::Result<()> {
        self.clear()?;
        let rows = rows_of(height);
        let top = self.area.y.min(height.saturating_sub(rows));
        self.area = Rect::new(0, top, width, rows);
        self.terminal.resize(self.area)
    }

    /// Makes the terminal raw again, after the process was stopped.
    pub(super) fn hold_again(&mut self) -> io::Result<()> {
        terminal::hold(Hold::Rows)?;
        self.terminal.resize(self.area)
    }

    /// Draws a frame. The terminal shows it at once or not at all.
    pub(super) fn draw(&mut self, state: &PickerState) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| draw::draw(state, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Writes a sequence that changes nothing on the screen.
    pub(super) fn write(&mut self, sequence: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        out.write_all(sequence.as_bytes())?;
        out.flush()
    }

    fn clear(&mut self) -> io::Result<()> {
        let to_top = cursor::MoveTo(0, self.area.y);
        queue!(
            self.terminal.backend_mut(),
            to_top,
            Clear(ClearType::FromCursorDown)
        )
    }
}

impl Drop for Rows {
    /// Removes the rows, so that what follows is written in their place.
    fn drop(&mut self) {
        // The terminal may be gone.
        self.clear().ok();
        execute!(self.terminal.backend_mut(), DisableBracketedPaste).ok();
        terminal::leave();
    }
}

/// Returns how many rows of a terminal a picker has.
fn rows_of(height: u16) -> u16 {
    (height / 3).clamp(LEAST, MOST).min(height.max(1))
}

//! The terminal while the screens have it: raw, on its alternate screen, with mouse and pastes.
//!
//! It is restored when [`Screen`] is dropped, before the message of a panic, and before the
//! process ends by a signal.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, ThreadId};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Rect, Size};
use ratatui::{Frame, Terminal};

/// Large enough for most frames, so that each is one write.
const FRAME_BYTES: usize = 64 << 10;

/// How the terminal is ours, and the thread that draws.
static HELD: Mutex<Option<(Hold, ThreadId)>> = Mutex::new(None);

/// How the terminal is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The alternate screen.
    Whole,
    /// Some rows below the command line, drawn on stderr.
    Rows,
}

fn held() -> MutexGuard<'static, Option<(Hold, ThreadId)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the terminal raw. From now on [`leave`] gives it back.
pub(crate) fn hold(hold: Hold) -> io::Result<()> {
    install_panic_hook();
    *held() = Some((hold, thread::current().id()));
    // It would not touch a terminal that it believes to be raw.
    disable_raw_mode()?;
    enable_raw_mode()
}

/// The terminal, and what is on it.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    uses_mouse: bool,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn enter(uses_mouse: bool) -> io::Result<Self> {
        let writer = BufWriter::with_capacity(FRAME_BYTES, io::stdout());
        let terminal = Terminal::new(CrosstermBackend::new(writer))?;
        let mut screen = Self {
            terminal,
            uses_mouse,
        };
        screen.take()?;
        Ok(screen)
    }

    /// Takes the terminal again, after [`leave`] or after another program changed it.
    pub(crate) fn enter_again(&mut self) -> io::Result<()> {
        self.take()?;
        self.redraw()
    }

    fn take(&mut self) -> io::Result<()> {
        hold(Hold::Whole)?;
        let out = self.terminal.backend_mut();
        queue!(
            out,
            EnterAlternateScreen,
            EnableBracketedPaste,
            cursor::Hide
        )?;
        if self.uses_mouse {
            queue!(out, EnableMouseCapture)?;
        }
        out.flush()
    }

    /// Returns columns and rows.
    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        let Size { width, height } = self.terminal.size()?;
        Ok((width, height))
    }

    /// Makes the next frame whole: nothing of what is on the screen is relied on.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        let area = Rect::from((ratatui::layout::Position::ORIGIN, self.terminal.size()?));
        self.terminal.resize(area)
    }

    /// Draws a frame. The terminal shows it at once or not at all.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(draw)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Writes a sequence that changes nothing on the screen.
    pub(crate) fn write(&mut self, sequence: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        out.write_all(sequence.as_bytes())?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back as it was. Does nothing if it is not ours.
pub(crate) fn leave() {
    let Some((hold, _)) = held().take() else {
        return;
    };
    // The terminal may be gone; then nobody sees what is left of us.
    match hold {
        Hold::Whole => execute!(
            io::stdout(),
            EndSynchronizedUpdate,
            DisableMouseCapture,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            cursor::Show
        ),
        Hold::Rows => execute!(
            io::stderr(),
            EndSynchronizedUpdate,
            DisableBracketedPaste,
            cursor::Show
        ),
    }
    .ok();
    disable_raw_mode().ok();
}

/// Restores the terminal before the message of a panic. Panics on other threads are answered
/// with a failure; their message would only spoil the screen.
fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let drawing = held().map(|(_, drawing)| drawing);
            if drawing.is_some_and(|drawing| drawing != thread::current().id()) {
                return;
            }
            leave();
            usual(info);
        }));
    });
}

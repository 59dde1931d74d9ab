//! The state of the screens, and how events change it.

mod reader;
mod sessions;

use crate::library::Scope;
use crate::look::Look;
use crate::request::{Effect, Event};

/// The state of the screens.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) look: Look,
    pub(crate) size: (u16, u16),
}

impl App {
    /// Makes the state for a terminal of `size` columns and rows, and what it wants first.
    pub(crate) fn new(_: Scope, look: Look, size: (u16, u16)) -> (Self, Vec<Effect>) {
        (Self { look, size }, Vec::new())
    }

    /// Changes the state by an event; returns what is to be done.
    pub(crate) fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(_) => vec![Effect::Quit],
            _ => Vec::new(),
        }
    }
}

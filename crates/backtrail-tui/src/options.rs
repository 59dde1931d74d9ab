//! How the screens are started.

use crate::look::Look;
use backtrail_view::library::Scope;

/// How the screens look, and what they show first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Which sessions are listed.
    pub scope: Scope,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// What the terminal can show; `None` to find out.
    pub look: Option<Look>,
}

impl Options {
    /// Makes the usual options for a scope.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            mouse: true,
            look: None,
        }
    }

    /// Sets whether the mouse is used.
    #[must_use]
    pub fn mouse(mut self, mouse: bool) -> Self {
        self.mouse = mouse;
        self
    }

    /// Sets what the terminal can show.
    #[must_use]
    pub fn look(mut self, look: Look) -> Self {
        self.look = Some(look);
        self
    }
}

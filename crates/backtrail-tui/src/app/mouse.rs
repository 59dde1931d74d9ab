//! The mouse: a click selects, a second one opens, the wheel scrolls.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::App;
use super::overlay::Overlay;
use crate::command::Panel;
use crate::cursor::Cursor;
use crate::request::Effect;

/// How many rows the wheel scrolls at once.
const ROWS: isize = 3;

impl App {
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        match mouse.kind {
            MouseEventKind::ScrollDown => self.wheel(mouse, ROWS),
            MouseEventKind::ScrollUp => self.wheel(mouse, -ROWS),
            MouseEventKind::Down(MouseButton::Left) => self.click(mouse),
            _ => Vec::new(),
        }
    }

    fn wheel(&mut self, mouse: MouseEvent, rows: isize) -> Vec<Effect> {
        if let Some(overlay) = self.overlays.last_mut() {
            scroll_overlay(overlay, rows);
            return Vec::new();
        }
        let areas = self.areas();
        let Some(panel) = areas.panel_at(mouse.column, mouse.row) else {
            return Vec::new();
        };
        let height = areas.height(panel);
        if let Some((cursor, len)) = self.cursor_of(panel) {
            cursor.scroll(rows, len, height);
        }
        match panel {
            Panel::Sessions => self.preview(),
            Panel::Timeline => self
                .timeline
                .needed()
                .map(Effect::Ask)
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the cursor of a panel, and how many rows there are.
    fn cursor_of(&mut self, panel: Panel) -> Option<(&mut Cursor, usize)> {
        Some(match panel {
            Panel::Sessions => {
                let len = self.sessions.shown.len();
                (&mut self.sessions.cursor, len)
            }
            Panel::Conversation => {
                let reader = self.reader.as_mut()?;
                let len = reader.len();
                (&mut reader.cursor, len)
            }
            Panel::Changes => {
                let len = self.changes.changes.files.len();
                (&mut self.changes.cursor, len)
            }
            Panel::Diff => {
                let len = self.diff.shown.rows.len();
                (&mut self.diff.cursor, len)
            }
            Panel::Timeline => {
                let len = self.timeline.timeline.rows.len();
                (&mut self.timeline.cursor, len)
            }
            Panel::Costs => {
                let len = self.costs.costs.rows.len();
                (&mut self.costs.cursor, len)
            }
        })
    }

    fn click(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        self.notice = None;
        if !self.overlays.is_empty() {
            return Vec::new();
        }
        let areas = self.areas();
        let Some(panel) = areas.panel_at(mouse.column, mouse.row) else {
            return Vec::new();
        };
        let had_focus = self.focus == panel;
        let mut effects = self.focus_on(panel);
        let Some(inner) = areas.inner(panel) else {
            return effects;
        };
        let Some(row) = mouse
            .row
            .checked_sub(inner.y)
            .filter(|row| *row < inner.height)
        else {
            return effects;
        };
        let Some((cursor, len)) = self.cursor_of(panel) else {
            return effects;
        };
        let clicked = cursor.top + usize::from(row);
        if clicked >= len {
            return effects;
        }
        let is_again = had_focus && cursor.selected == clicked;
        cursor.select(clicked, len, inner.height.into());
        if is_again && panel != Panel::Conversation {
            effects.extend(self.enter());
        } else if panel == Panel::Sessions {
            effects.extend(self.preview());
        }
        effects
    }
}

fn scroll_overlay(overlay: &mut Overlay, rows: isize) {
    let scrolled =
        |top: usize, len: usize| top.saturating_add_signed(rows).min(len.saturating_sub(1));
    match overlay {
        Overlay::Text(text) => text.top = scrolled(text.top, text.lines.len()),
        Overlay::Blame(blame) => {
            blame.cursor.selected = scrolled(blame.cursor.selected, blame.lines.len());
        }
        Overlay::Search(search) => {
            let len = search.results.hits.len();
            search.cursor.selected = scrolled(search.cursor.selected, len);
        }
        Overlay::Choose(choose) => {
            choose.cursor.selected = scrolled(choose.cursor.selected, choose.shown.len());
        }
        Overlay::Plan(plan) => {
            let len = plan.plan.as_ref().map_or(0, |plan| plan.lines.len());
            plan.top = scrolled(plan.top, len);
        }
        _ => {}
    }
}

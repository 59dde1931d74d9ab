//! Where each panel is: a function of the size, the view and the focus, the same for drawing,
//! scrolling and the mouse.

use ratatui::layout::{Constraint, Layout, Position, Rect};

use super::View;
use crate::command::Panel;

/// From this width on, three columns fit side by side.
const THREE_COLUMNS: u16 = 150;
/// From this width on, two columns do.
const TWO_COLUMNS: u16 = 100;
/// From this height on, the list of changed files and a diff fit above each other.
const TWO_ROWS: u16 = 12;

/// The parts of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) header: Rect,
    pub(crate) body: Rect,
    pub(crate) footer: Rect,
    /// The visible panels, with their borders.
    pub(crate) panels: Vec<(Panel, Rect)>,
}

impl Areas {
    pub(crate) fn new((width, height): (u16, u16), view: View, focus: Panel) -> Self {
        let header = u16::from(height >= 8);
        let footer = match height {
            0..=2 => 0,
            3..=11 => 1,
            _ => 2,
        };
        let all = Rect::new(0, 0, width, height);
        let [header, body, footer] = Layout::vertical([
            Constraint::Length(header),
            Constraint::Min(0),
            Constraint::Length(footer),
        ])
        .areas(all);
        Self {
            header,
            body,
            footer,
            panels: panels(body, view, focus),
        }
    }

    /// Returns the area of a panel without its border, if it is visible.
    pub(crate) fn inner(&self, panel: Panel) -> Option<Rect> {
        let (_, area) = self.panels.iter().find(|(it, _)| *it == panel)?;
        Some(inner(*area))
    }

    /// Returns how many rows of a panel are visible.
    pub(crate) fn height(&self, panel: Panel) -> usize {
        self.inner(panel).map_or(0, |area| area.height.into())
    }

    pub(crate) fn is_visible(&self, panel: Panel) -> bool {
        self.panels.iter().any(|(it, _)| *it == panel)
    }

    /// Returns the panel at a position.
    pub(crate) fn panel_at(&self, column: u16, row: u16) -> Option<Panel> {
        let position = Position::new(column, row);
        let found = self.panels.iter().find(|(_, area)| area.contains(position));
        found.map(|(panel, _)| *panel)
    }
}

/// Returns an area without its border.
pub(crate) fn inner(area: Rect) -> Rect {
    Rect {
        x: area.x.saturating_add(1),
        y: area.y.saturating_add(1),
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

fn panels(body: Rect, view: View, focus: Panel) -> Vec<(Panel, Rect)> {
    match view {
        View::Costs => vec![(Panel::Costs, body)],
        View::Timeline => timeline(body, focus),
        View::Sessions => sessions(body, focus),
    }
}

fn sessions(body: Rect, focus: Panel) -> Vec<(Panel, Rect)> {
    let is_right = matches!(focus, Panel::Changes | Panel::Diff);
    if body.width >= THREE_COLUMNS {
        let columns = [
            Constraint::Percentage(30),
            Constraint::Fill(1),
            Constraint::Percentage(34),
        ];
        let [left, middle, right] = Layout::horizontal(columns).areas(body);
        let mut panels = vec![(Panel::Sessions, left), (Panel::Conversation, middle)];
        panels.extend(changes(right, focus));
        return panels;
    }
    if body.width >= TWO_COLUMNS {
        let share = if is_right { 46 } else { 40 };
        let columns = [Constraint::Percentage(share), Constraint::Fill(1)];
        let [left, right] = Layout::horizontal(columns).areas(body);
        return match is_right {
            true => {
                let mut panels = vec![(Panel::Conversation, left)];
                panels.extend(changes(right, focus));
                panels
            }
            false => vec![(Panel::Sessions, left), (Panel::Conversation, right)],
        };
    }
    match is_right {
        true => changes(body, focus),
        false => vec![(focus, body)],
    }
}

fn timeline(body: Rect, focus: Panel) -> Vec<(Panel, Rect)> {
    if body.width >= TWO_COLUMNS {
        let columns = [Constraint::Percentage(50), Constraint::Fill(1)];
        let [left, right] = Layout::horizontal(columns).areas(body);
        let mut panels = vec![(Panel::Timeline, left)];
        panels.extend(changes(right, focus));
        return panels;
    }
    match focus {
        Panel::Changes | Panel::Diff => changes(body, focus),
        _ => vec![(Panel::Timeline, body)],
    }
}

/// The changed files above the diff of one, or the one that has the focus.
fn changes(area: Rect, focus: Panel) -> Vec<(Panel, Rect)> {
    if area.height < TWO_ROWS {
        return vec![match focus {
            Panel::Diff => (Panel::Diff, area),
            _ => (Panel::Changes, area),
        }];
    }
    let rows = [Constraint::Percentage(28), Constraint::Fill(1)];
    let [upper, lower] = Layout::vertical(rows).areas(area);
    vec![(Panel::Changes, upper), (Panel::Diff, lower)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the size, the panel with the focus is there, and panels do not overlap.
    #[test]
    fn the_panel_with_the_focus_is_visible_at_every_size() {
        let views = [
            (
                View::Sessions,
                &[
                    Panel::Sessions,
                    Panel::Conversation,
                    Panel::Changes,
                    Panel::Diff,
                ][..],
            ),
            (
                View::Timeline,
                &[Panel::Timeline, Panel::Changes, Panel::Diff],
            ),
            (View::Costs, &[Panel::Costs]),
        ];
        for width in [1, 20, 60, 80, 99, 100, 149, 150, 200, 400] {
            for height in [1, 3, 5, 8, 12, 24, 60] {
                for (view, focuses) in views {
                    for focus in focuses {
                        let areas = Areas::new((width, height), view, *focus);
                        assert!(areas.is_visible(*focus), "{width}x{height} {focus:?}");
                        let covered: u32 = areas.panels.iter().map(|(_, it)| it.area()).sum();
                        assert_eq!(covered, areas.body.area(), "{width}x{height} {focus:?}");
                    }
                }
            }
        }
    }
}

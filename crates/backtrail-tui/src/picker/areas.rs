//! Where the parts of a picker are.

use ratatui::layout::Rect;

/// From this width on the preview is beside the list.
const WIDE: u16 = 100;
/// With fewer rows below the line that is typed, there is no preview below the list.
const LEAST_ROWS: u16 = 7;

/// The parts of a picker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Areas {
    /// The title and what was typed.
    pub(super) line: Rect,
    pub(super) list: Rect,
    /// The rule between list and preview.
    pub(super) rule: Rect,
    /// Empty if there is no room.
    pub(super) preview: Rect,
}

impl Areas {
    pub(super) fn of(area: Rect) -> Self {
        let line = Rect {
            height: area.height.min(1),
            ..area
        };
        let below = Rect {
            y: area.y + line.height,
            height: area.height - line.height,
            ..area
        };
        let (list, rule, preview) = match () {
            () if area.width >= WIDE => beside(below),
            () if below.height >= LEAST_ROWS => one_below_the_other(below),
            () => (below, Rect::ZERO, Rect::ZERO),
        };
        Self {
            line,
            list,
            rule,
            preview,
        }
    }
}

fn beside(area: Rect) -> (Rect, Rect, Rect) {
    let left = area.width / 2;
    let part = |x: u16, width: u16| Rect {
        x: area.x + x,
        width,
        ..area
    };
    (
        part(0, left),
        part(left, 2),
        part(left + 2, area.width - left - 2),
    )
}

fn one_below_the_other(area: Rect) -> (Rect, Rect, Rect) {
    let upper = (area.height - 1) / 2;
    let part = |y: u16, height: u16| Rect {
        y: area.y + y,
        height,
        ..area
    };
    (
        part(0, upper),
        part(upper, 1),
        part(upper + 1, area.height - upper - 1),
    )
}

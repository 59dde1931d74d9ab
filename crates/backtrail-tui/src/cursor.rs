//! A position in a list that is longer than its panel.

/// How many rows stay visible beyond the selected one.
const MARGIN: usize = 2;

/// The selected row, and the first one that is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cursor {
    pub(crate) selected: usize,
    pub(crate) top: usize,
}

/// A movement in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    First,
    Last,
}

impl Cursor {
    /// Moves within `len` rows, of which `height` are visible.
    pub(crate) fn go(&mut self, step: Step, len: usize, height: usize) {
        let page = height.saturating_sub(1).max(1);
        let half = (height / 2).max(1);
        self.selected = match step {
            Step::Up => self.selected.saturating_sub(1),
            Step::Down => self.selected + 1,
            Step::PageUp => self.selected.saturating_sub(page),
            Step::PageDown => self.selected + page,
            Step::HalfUp => self.selected.saturating_sub(half),
            Step::HalfDown => self.selected + half,
            Step::First => 0,
            Step::Last => usize::MAX,
        };
        self.fit(len, height);
    }

    /// Selects a row.
    pub(crate) fn select(&mut self, row: usize, len: usize, height: usize) {
        self.selected = row;
        self.fit(len, height);
    }

    /// Keeps the selected row within the list, and visible.
    pub(crate) fn fit(&mut self, len: usize, height: usize) {
        self.selected = self.selected.min(len.saturating_sub(1));
        let margin = MARGIN.min(height.saturating_sub(1) / 2);
        let lowest = self.selected.saturating_sub(margin);
        self.top = self.top.min(lowest);
        let needed = (self.selected + margin + 1).min(len);
        self.top = self.top.max(needed.saturating_sub(height));
        self.top = self.top.min(len.saturating_sub(height));
    }

    /// Scrolls without moving the selected row further than must be.
    pub(crate) fn scroll(&mut self, rows: isize, len: usize, height: usize) {
        let most = len.saturating_sub(height);
        self.top = self.top.saturating_add_signed(rows).min(most);
        let margin = MARGIN.min(height.saturating_sub(1) / 2);
        let first = if self.top == 0 { 0 } else { self.top + margin };
        let last = match self.top == most {
            true => len.saturating_sub(1),
            false => (self.top + height).saturating_sub(margin + 1),
        };
        self.selected = self.selected.clamp(first.min(last), last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_row_is_always_in_the_list_and_visible() {
        for len in [0, 1, 3, 10, 100] {
            for height in [0, 1, 2, 5, 20] {
                let mut cursor = Cursor::default();
                let steps = [
                    Step::Down,
                    Step::PageDown,
                    Step::Last,
                    Step::Up,
                    Step::HalfUp,
                    Step::PageUp,
                    Step::HalfDown,
                    Step::First,
                ];
                for step in steps.iter().cycle().take(40) {
                    cursor.go(*step, len, height);
                    assert!(cursor.selected < len.max(1), "{step:?} {len} {height}");
                    if height > 0 && len > 0 {
                        let visible = cursor.top..cursor.top + height;
                        assert!(
                            visible.contains(&cursor.selected),
                            "{step:?} {len} {height}"
                        );
                    }
                    cursor.scroll(3, len, height);
                    assert!(cursor.selected < len.max(1));
                }
            }
        }
    }

    #[test]
    fn a_list_that_shrinks_keeps_its_end_in_view() {
        let mut cursor = Cursor::default();
        cursor.go(Step::Last, 100, 10);
        cursor.fit(5, 10);
        assert_eq!(
            cursor,
            Cursor {
                selected: 4,
                top: 0
            }
        );
    }
}

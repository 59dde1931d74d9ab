//! What was spent, in groups.

use crate::cursor::{Cursor, Step};
use crate::request::Request;
use backtrail_view::library::{CostRow, Costs, CostsBy, Scope};

/// The ways to group, in the order of the keys.
pub(crate) const GROUPINGS: [(CostsBy, &str); 10] = [
    (CostsBy::Day, "day"),
    (CostsBy::Week, "week"),
    (CostsBy::Month, "month"),
    (CostsBy::Model, "model"),
    (CostsBy::Project, "project"),
    (CostsBy::Agent, "agent"),
    (CostsBy::Tool, "tool"),
    (CostsBy::Tag, "tag"),
    (CostsBy::Branch, "branch"),
    (CostsBy::Block, "5-hour block"),
];

/// The groups.
#[derive(Debug, Default)]
pub(crate) struct CostsPanel {
    grouping: usize,
    pub(crate) costs: Costs,
    pub(crate) cursor: Cursor,
    pub(crate) is_loaded: bool,
    pub(crate) error: Option<String>,
}

impl CostsPanel {
    pub(crate) fn by(&self) -> CostsBy {
        GROUPINGS[self.grouping].0
    }

    pub(crate) fn ask(&self, scope: Scope) -> Request {
        Request::Costs(self.by(), scope)
    }

    /// Groups in the next or the previous way.
    pub(crate) fn regroup(&mut self, forwards: bool) {
        let steps = match forwards {
            true => 1,
            false => GROUPINGS.len() - 1,
        };
        self.grouping = (self.grouping + steps) % GROUPINGS.len();
        self.cursor = Cursor::default();
        self.is_loaded = false;
    }

    pub(crate) fn set(&mut self, answer: Result<Costs, String>, height: usize) {
        let is_first = !std::mem::replace(&mut self.is_loaded, true);
        self.error = None;
        match answer {
            Ok(costs) => self.costs = costs,
            Err(message) => self.error = Some(message),
        }
        // Days and weeks are in order: the newest one is the last.
        let is_by_time = matches!(
            self.by(),
            CostsBy::Day | CostsBy::Week | CostsBy::Month | CostsBy::Block
        );
        if is_first && is_by_time {
            self.cursor.go(Step::Last, self.costs.rows.len(), height);
        }
        self.cursor.fit(self.costs.rows.len(), height);
    }

    pub(crate) fn selected(&self) -> Option<&CostRow> {
        self.costs.rows.get(self.cursor.selected)
    }
}

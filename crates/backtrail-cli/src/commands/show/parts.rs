//! A conversation in parts, for a screen that shows some of them at a time.

use std::collections::VecDeque;

use backtrail::SessionInfo;
use backtrail::conversation::{Item, RelativePaths};
use backtrail_index::SessionPrices;
use backtrail_view::library::Palette;

use super::sheet::Sheet;
use super::writer::{ShowOptions, ShowWriter};
use crate::commands::conversation::changes::Changes;
use crate::layout::Line;

/// The most lines of one part: with thinking and output whole, and without.
const MOST_LINES: [usize; 2] = [1_000, 400];
/// How many items before the first part decide how far it is from them.
const BEFORE: usize = 3;

/// How parts are laid out.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct PartOptions {
    pub(in crate::commands) width: usize,
    /// Thinking, output and injected text are whole.
    pub(in crate::commands) full: bool,
    /// The turn was undone.
    pub(in crate::commands) undone: bool,
    /// Something comes before.
    pub(in crate::commands) continued: bool,
    /// The colours of code.
    pub(in crate::commands) palette: Palette,
}

/// Lays out the parts of a conversation as `show` does.
pub(in crate::commands) struct PartWriter<'a> {
    writer: ShowWriter<'a>,
    /// The last items before the first part.
    before: VecDeque<Item>,
}

impl<'a> PartWriter<'a> {
    pub(in crate::commands) fn new(
        options: PartOptions,
        changes: &'a Changes,
        prices: SessionPrices,
        info: &SessionInfo,
    ) -> Self {
        let sheet = Sheet::new(Some(options.width));
        let sheet = match options.continued {
            true => sheet.continued(),
            false => sheet,
        };
        let shown = ShowOptions {
            full: options.full,
            undone: options.undone,
            most_lines: MOST_LINES[usize::from(!options.full)],
            palette: options.palette,
            ..ShowOptions::default()
        };
        let paths = RelativePaths::new(info.workspace_root.as_deref());
        Self {
            writer: ShowWriter::new(sheet, shown, changes, prices, paths),
            before: VecDeque::new(),
        }
    }

    /// Takes note of an item before the first part.
    pub(in crate::commands) fn pass(&mut self, item: Item) {
        match item {
            Item::Reply(_) => {}
            Item::Spending(_) => self.writer.item(&item),
            Item::TurnEnd(_) => self.writer.skip_footer(),
            item => {
                match &item {
                    Item::Prompt(prompt) => self.writer.pass_time(prompt.at),
                    Item::Compaction(compaction) => self.writer.pass_time(compaction.at),
                    _ => {}
                }
                self.before.push_back(item);
                if self.before.len() > BEFORE {
                    self.before.pop_front();
                }
            }
        }
    }

    /// Sets how many turns come before the next part.
    pub(in crate::commands) fn set_turns(&mut self, turns: Option<u64>) {
        self.write_before();
        self.writer.set_turns(turns);
    }

    /// Lays out an item; returns its lines, and whether they are not all of it.
    pub(in crate::commands) fn part(&mut self, item: &Item) -> (Vec<Line>, bool) {
        self.write_before();
        self.writer.item(item);
        self.writer.take()
    }

    /// Writes what comes before the first part, where nobody sees it.
    fn write_before(&mut self) {
        for before in std::mem::take(&mut self.before) {
            self.writer.item(&before);
            self.writer.take();
        }
    }
}

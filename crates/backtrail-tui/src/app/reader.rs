//! A conversation, read page by page.
//!
//! Only a few pages around the cursor are in memory, whatever the session's length. The cursor is a
//! line of them; the part that it is in is the selected one.

use std::collections::VecDeque;

use crate::cursor::{Cursor, Step};
use backtrail_view::library::Palette;
use backtrail_view::library::{Fold, Line, Page, PageAt, PageRequest, Part, PartKind, Place};

/// How many pages are kept.
const PAGES: usize = 8;
/// The next page is asked for when fewer lines than this are left.
const AHEAD: usize = 80;

/// An open conversation.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) session: String,
    pub(crate) title: String,
    pub(crate) facts: String,
    pub(crate) writer: Option<String>,
    /// The trail, if an undone turn is shown.
    pub(crate) trail: Option<u32>,
    pub(crate) fold: Fold,
    pub(crate) width: u16,
    pages: VecDeque<Page>,
    pub(crate) cursor: Cursor,
    /// The requests on their way.
    waiting: Vec<PageRequest>,
    /// The last record of the session.
    pub(crate) end: u64,
    /// The record to go to once its page is there.
    wanted: Option<u64>,
    /// The record of the match that was gone to, and its words in lower case.
    found: Option<u64>,
    words: Vec<String>,
    /// Whether those words are in a part that is not shown whole.
    missed: bool,
    /// Whether the session grew while a page of its end was on its way.
    grew: bool,
    /// Whether more pages of what it grew by are on their way.
    follows: bool,
    pub(crate) error: Option<String>,
}

impl Reader {
    pub(crate) fn new(session: &str, fold: Fold, width: u16) -> Self {
        Self {
            session: session.to_owned(),
            title: String::new(),
            facts: String::new(),
            writer: None,
            trail: None,
            fold,
            width,
            pages: VecDeque::new(),
            cursor: Cursor::default(),
            waiting: Vec::new(),
            end: 0,
            wanted: None,
            found: None,
            words: Vec::new(),
            missed: false,
            grew: false,
            follows: false,
            error: None,
        }
    }

    /// Asks for the page at a place, and forgets all others when it comes.
    pub(crate) fn open(&mut self, at: PageAt) -> PageRequest {
        self.words.clear();
        self.go_to(at)
    }

    /// Does the same for a match: goes to its words in the record.
    pub(crate) fn open_match(&mut self, seq: u64, words: Vec<String>) -> PageRequest {
        self.words = words;
        self.found = Some(seq);
        self.go_to(PageAt::Around(seq))
    }

    /// Reads the match that was missed again, with all outputs; `None` if they are shown.
    pub(crate) fn unfold(&mut self) -> Option<PageRequest> {
        let seq = self.found.filter(|_| self.fold != Fold::Full)?;
        self.fold = Fold::Full;
        Some(self.go_to(PageAt::Around(seq)))
    }

    /// Returns whether a page came that has the record of a match, and not its words.
    pub(crate) fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }

    fn go_to(&mut self, at: PageAt) -> PageRequest {
        self.waiting.clear();
        self.wanted = match at {
            PageAt::Around(seq) => Some(seq),
            _ => None,
        };
        self.request(at)
    }

    fn request(&mut self, at: PageAt) -> PageRequest {
        let request = PageRequest {
            session: self.session.clone(),
            at,
            trail: self.trail,
            width: self.width,
            fold: self.fold,
            // The thread that asks knows the colours.
            palette: Palette::None,
        };
        self.waiting.push(request.clone());
        request
    }

    /// Reads the same place again: another width, or another fold.
    pub(crate) fn reload(&mut self) -> PageRequest {
        match self.selected() {
            Some(part) => {
                let seq = part.seq;
                self.open(PageAt::Around(seq))
            }
            None => self.open(PageAt::End),
        }
    }

    /// Takes a page that came. Returns whether it was wanted.
    pub(crate) fn take(&mut self, request: &PageRequest, page: Page, height: usize) -> bool {
        let Some(at) = self.waiting.iter().position(|it| it == request) else {
            return false;
        };
        self.waiting.remove(at);
        self.error = None;
        if page.end < self.end && matches!(request.at, PageAt::After(_)) {
            // The history went back: what is shown may be gone.
            self.end = page.end;
            self.pages.clear();
        }
        self.end = page.end;
        match request.at {
            PageAt::Before(_) if !self.pages.is_empty() => self.put_before(page),
            PageAt::After(last) if !self.pages.is_empty() => self.put_after(last, page, height),
            at => self.replace(at, page, height),
        }
        self.go_to_wanted(height);
        self.cursor.fit(self.len(), height);
        true
    }

    /// Takes note that a page could not be read.
    pub(crate) fn fail(&mut self, request: &PageRequest, message: String) {
        self.waiting.retain(|it| it != request);
        self.error = Some(message);
    }

    fn replace(&mut self, at: PageAt, page: Page, height: usize) {
        self.pages.clear();
        self.pages.push_back(page);
        self.cursor = Cursor::default();
        if at == PageAt::End {
            self.cursor.go(Step::Last, self.len(), height);
        }
    }

    fn put_before(&mut self, page: Page) {
        let lines = page
            .parts
            .iter()
            .map(|part| part.lines.len())
            .sum::<usize>();
        self.pages.push_front(page);
        self.cursor.selected += lines;
        self.cursor.top += lines;
        while self.pages.len() > PAGES {
            self.pages.pop_back();
        }
    }

    /// Puts a page after the record that it was asked for. Pages that begin later are replaced: a
    /// page at the end is read again when the session grows.
    fn put_after(&mut self, last: u64, page: Page, height: usize) {
        let was_at_end = self.cursor.selected + 1 >= self.len();
        let before = self.pages.len();
        while self.pages.back().is_some_and(|it| it.last > last) {
            self.pages.pop_back();
        }
        // What was read to its end stays at its end, also if that takes several pages.
        let follows = was_at_end && (self.follows || self.pages.len() < before);
        self.follows = follows && page.has_after;
        self.pages.push_back(page);
        while self.pages.len() > PAGES {
            let gone = self.pages.pop_front();
            let parts = gone.iter().flat_map(|page| &page.parts);
            let lines = parts.map(|part| part.lines.len()).sum::<usize>();
            self.cursor.selected = self.cursor.selected.saturating_sub(lines);
            self.cursor.top = self.cursor.top.saturating_sub(lines);
        }
        if follows {
            self.cursor.go(Step::Last, self.len(), height);
        }
    }

    fn go_to_wanted(&mut self, height: usize) {
        let Some(wanted) = self.wanted.take() else {
            return;
        };
        let (row, is_missed) = self.row_of(wanted);
        self.missed = is_missed;
        self.cursor.top = row.saturating_sub(height / 4);
        self.cursor.select(row, self.len(), height);
    }

    /// Returns the row of a record, or of the words in it. Also returns whether there are words to
    /// go to, and the part may hold them and does not show them.
    fn row_of(&self, wanted: u64) -> (usize, bool) {
        let mut line = 0;
        let mut found: Option<(usize, &Part)> = None;
        for part in self.parts() {
            if part.seq > wanted && found.is_some() {
                break;
            }
            if part.seq <= wanted || found.is_none() {
                found = Some((line, part));
            }
            if part.seq == wanted {
                break;
            }
            line += part.lines.len();
        }
        let Some((first, part)) = found else {
            return (0, false);
        };
        let top = first_line(part);
        if self.words.is_empty() {
            return (first + top, false);
        }
        // A result is a record of its own, and below its call.
        let is_result = part.seq != wanted;
        let from = if is_result { top + 1 } else { 0 };
        let below = part.lines.get(from..).unwrap_or_default();
        match line_with(below, &self.words) {
            Some(line) if !is_result || self.fold == Fold::Full => (first + from + line, false),
            _ => (first + top, is_result || is_foldable(part.kind)),
        }
    }

    /// Returns the pages that are needed soon.
    pub(crate) fn needed(&mut self, height: usize) -> Vec<PageRequest> {
        if self.trail.is_some() || !self.waiting.is_empty() {
            return Vec::new();
        }
        let (Some(first), Some(last)) = (self.pages.front(), self.pages.back()) else {
            return Vec::new();
        };
        let below = self.len().saturating_sub(self.cursor.top + height);
        let before = (first.has_before && self.cursor.top < AHEAD).then_some(first.first);
        let after = (last.has_after && below < AHEAD).then_some(last.last);
        let is_end = !last.has_after;
        let mut asked = Vec::new();
        if std::mem::take(&mut self.grew) && is_end {
            asked.extend(self.grow());
            return asked;
        }
        if let Some(seq) = before {
            asked.push(self.request(PageAt::Before(seq)));
        }
        if let Some(seq) = after {
            asked.push(self.request(PageAt::After(seq)));
        }
        asked
    }

    /// The session grew: asks for its last page again, if that is in memory.
    pub(crate) fn grow(&mut self) -> Option<PageRequest> {
        if self.trail.is_some() {
            return None;
        }
        let last = self.pages.back()?;
        if last.has_after {
            self.end = self.end.max(last.last + 1);
            return None;
        }
        let before = last.first.saturating_sub(1);
        // The page that is on its way may have been read before.
        self.grew = !self.waiting.is_empty();
        (!self.grew).then(|| self.request(PageAt::After(before)))
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.pages.iter().flat_map(|page| &page.parts)
    }

    /// Returns how many lines are in memory.
    pub(crate) fn len(&self) -> usize {
        self.parts().map(|part| part.lines.len()).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns whether a page is on its way and none is there yet.
    pub(crate) fn is_opening(&self) -> bool {
        self.pages.is_empty() && !self.waiting.is_empty()
    }

    /// Returns the part that the cursor is in, and its first line.
    fn selected_at(&self) -> Option<(usize, &Part)> {
        let mut line = 0;
        let mut last = None;
        for part in self.parts() {
            if part.lines.is_empty() {
                continue;
            }
            if line > self.cursor.selected {
                break;
            }
            last = Some((line, part));
            line += part.lines.len();
        }
        last
    }

    pub(crate) fn selected(&self) -> Option<&Part> {
        self.selected_at().map(|(_, part)| part)
    }

    /// Returns the lines of the selected part.
    pub(crate) fn selected_lines(&self) -> std::ops::Range<usize> {
        self.selected_at()
            .map_or(0..0, |(first, part)| first..first + part.lines.len())
    }

    /// Returns the record of the selected part.
    pub(crate) fn place(&self) -> Option<Place> {
        let part = self.selected()?;
        Some(Place {
            session: self.session.clone(),
            seq: part.seq,
            trail: self.trail,
        })
    }

    /// Returns the record of the prompt whose turn the selected part is in, if it is in memory.
    pub(crate) fn turn_seq(&self) -> Option<u64> {
        let selected = self.selected()?.seq;
        let prompts = self.parts().filter(|part| part.kind == PartKind::Prompt);
        prompts
            .map(|part| part.seq)
            .take_while(|seq| *seq <= selected)
            .last()
    }

    /// Returns whether there are pages before those in memory.
    pub(crate) fn has_before(&self) -> bool {
        self.pages.front().is_some_and(|page| page.has_before)
    }

    /// Returns whether there are pages after those in memory.
    pub(crate) fn has_after(&self) -> bool {
        self.pages.back().is_some_and(|page| page.has_after)
    }

    /// Goes to the next or the previous part; returns whether there is one in memory.
    pub(crate) fn step_part(&mut self, forwards: bool, height: usize) -> bool {
        self.step_to(forwards, height, |_| true)
    }

    /// Goes to the next or the previous prompt; returns whether there is one in memory.
    pub(crate) fn step_prompt(&mut self, forwards: bool, height: usize) -> bool {
        self.step_to(forwards, height, |part| part.kind == PartKind::Prompt)
    }

    fn step_to(&mut self, forwards: bool, height: usize, fits: impl Fn(&Part) -> bool) -> bool {
        let here = self.selected_lines();
        let mut line = 0;
        let mut found = None;
        for part in self.parts() {
            let first = line;
            line += part.lines.len();
            if part.lines.is_empty() || !fits(part) {
                continue;
            }
            let row = first + first_line(part);
            match forwards {
                true if first >= here.end => {
                    found = Some(row);
                    break;
                }
                false if first < here.start => found = Some(row),
                _ => {}
            }
        }
        let Some(row) = found else {
            return false;
        };
        self.cursor.top = row.saturating_sub(height / 4);
        self.cursor.select(row, self.len(), height);
        true
    }
}

/// Returns the first line of a part that is not empty: those before it are not what one looks for.
fn first_line(part: &Part) -> usize {
    let blank = part.lines.iter().take_while(|line| line.is_empty()).count();
    blank.min(part.lines.len().saturating_sub(1))
}

/// Returns whether only some of a part may be shown.
fn is_foldable(kind: PartKind) -> bool {
    matches!(
        kind,
        PartKind::Tool | PartKind::Thinking | PartKind::Injected
    )
}

/// Returns the line with the most of some words, the first of several; `None` if none has any.
fn line_with(lines: &[Line], words: &[String]) -> Option<usize> {
    let count = |line: &Line| {
        let text = super::changes::text_of(line).to_lowercase();
        words.iter().filter(|word| text.contains(*word)).count()
    };
    let counted = lines.iter().map(count).enumerate();
    let (line, most) = counted.rev().max_by_key(|(_, found)| *found)?;
    (most > 0).then_some(line)
}

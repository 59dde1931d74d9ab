//! Where a file must be cut so that its conversation ends with a given event.
//!
//! The agent's reader answers that: the file's beginnings are read until the shortest is found
//! that has the event. Lines after it that add nothing to the conversation stay, up to those that
//! the agent writes at its next start.

use std::collections::HashSet;

use super::{CopyFormat, CutPoint};
use crate::error::Result;
use crate::event::{Details, Event, EventSink, ReadReport, Thread, ThreadId};
use crate::format::Format;
use crate::json::Object;
use crate::lines::Lines;
use crate::source::Source;

/// Finds the beginning of a file whose own conversation consists of the messages and summaries
/// with these keys. `None` if there is none.
pub(super) fn find(
    format: &dyn Format,
    agent: &dyn CopyFormat,
    source: &Source,
    keys: &[String],
) -> Result<Option<CutPoint>> {
    let Some(last) = keys.last() else {
        return Ok(None);
    };
    let file = Beginnings::of(format, source)?;
    let shortest = file.shortest_with(last)?;
    let Some(shortest) = shortest else {
        return Ok(None);
    };
    let conversation = file.read(shortest)?;
    if !conversation.is(keys) {
        return Ok(None);
    }
    let seen = conversation.seen;
    let adds_more = |count: usize| Ok(!file.read(count)?.seen.is_subset(&seen));
    let too_long = first(shortest + 1, file.ends.len() + 1, adds_more)?;
    let longest = too_long.map_or(file.ends.len(), |count| count - 1);
    let mut count = shortest;
    while count < longest && !file.opens_next(agent, count + 1)? {
        count += 1;
    }
    // What was added meanwhile may have been undone, and then belongs to what follows.
    let count = match file.read(count)?.is(keys) {
        true => count,
        false => shortest,
    };
    file.point(count).map(Some)
}

/// Returns the whole file as far as its lines are complete.
pub(super) fn whole(format: &dyn Format, source: &Source) -> Result<CutPoint> {
    let file = Beginnings::of(format, source)?;
    file.point(file.ends.len())
}

/// The beginnings of a file that end with a complete line.
struct Beginnings<'s> {
    format: &'s dyn Format,
    source: &'s Source,
    /// Where each line ends.
    ends: Vec<u64>,
}

impl<'s> Beginnings<'s> {
    fn of(format: &'s dyn Format, source: &'s Source) -> Result<Self> {
        let mut lines = Lines::new(source, 0, 0);
        let mut ends = Vec::new();
        while let Some(line) = lines.next()? {
            let is_complete = line.ended || Object::parse(&line.text()).is_ok();
            if is_complete {
                ends.push(line.range.end);
            }
        }
        Ok(Self {
            format,
            source,
            ends,
        })
    }

    /// Returns how many lines there are up to the event with a key. Each reading of a long file
    /// takes time, so the first line is tried that contains the key's id.
    fn shortest_with(&self, key: &str) -> Result<Option<usize>> {
        let has = |lines: usize| Ok(self.read(lines)?.seen.contains(key));
        if let Some(lines) = self.first_line_with(key)?
            && has(lines)?
            && !has(lines - 1)?
        {
            return Ok(Some(lines));
        }
        let middle = self.ends.len() / 2;
        let from = if has(middle)? { 1 } else { middle + 1 };
        first(from, self.ends.len() + 1, has)
    }

    /// Returns the number of the first line that contains a key's id.
    fn first_line_with(&self, key: &str) -> Result<Option<usize>> {
        let id = key.split(['~', '/']).next().unwrap_or(key);
        let finder = memchr::memmem::Finder::new(id.as_bytes());
        let mut lines = Lines::new(self.source, 0, 0);
        while let Some(line) = lines.next()? {
            if finder.find(line.bytes).is_some() {
                let end = line.range.end;
                return Ok(self.ends.binary_search(&end).ok().map(|at| at + 1));
            }
        }
        Ok(None)
    }

    /// Returns the length of so many lines.
    fn len(&self, lines: usize) -> u64 {
        let last = lines.checked_sub(1).and_then(|last| self.ends.get(last));
        last.copied().unwrap_or(0)
    }

    /// Reads so many lines.
    fn read(&self, lines: usize) -> Result<ConversationKeys> {
        self.read_with_report(lines).map(|(keys, _)| keys)
    }

    fn read_with_report(&self, lines: usize) -> Result<(ConversationKeys, ReadReport)> {
        let beginning = self.source.beginning(self.len(lines))?;
        let mut keys = ConversationKeys::default();
        let report = self.format.open(&beginning)?.read(&mut keys)?;
        Ok((keys, report))
    }

    /// Returns whether the last of so many lines belongs to the agent's next start.
    fn opens_next(&self, agent: &dyn CopyFormat, lines: usize) -> Result<bool> {
        let line = self.source.line_at(self.len(lines - 1)..self.len(lines))?;
        Ok(Object::parse(&line).is_ok_and(|line| agent.opens_next(&line)))
    }

    fn point(&self, lines: usize) -> Result<CutPoint> {
        let (_, report) = self.read_with_report(lines)?;
        Ok(CutPoint {
            end: self.len(lines),
            damaged: report.damage.count,
        })
    }
}

/// Returns the first number in a range for which `is_it` holds, as it does for all after it.
/// Numbers at the beginning of the range are found with the fewest questions.
fn first(
    from: usize,
    end: usize,
    mut is_it: impl FnMut(usize) -> Result<bool>,
) -> Result<Option<usize>> {
    let (mut low, mut high, mut step) = (from, from, 1);
    while high < end && !is_it(high)? {
        low = high + 1;
        high = end.min(low + step);
        step *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match is_it(middle)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok((low < end).then_some(low))
}

/// The keys of a file's events.
#[derive(Debug, Default)]
struct ConversationKeys {
    /// Those of the file's own conversation, in order, and whether each is a message or a
    /// summary.
    own: Vec<(String, bool)>,
    /// Those of all messages and summaries that were ever there, in any conversation.
    seen: HashSet<String>,
    is_other: bool,
}

impl ConversationKeys {
    /// Returns whether the file's own conversation has these messages and summaries.
    fn is(&self, keys: &[String]) -> bool {
        let own = self.own.iter().filter(|(_, is_spoken)| *is_spoken);
        own.map(|(key, _)| key).eq(keys)
    }
}

impl EventSink for ConversationKeys {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        self.is_other = thread.id != ThreadId::Main;
        Ok(())
    }

    fn details(&mut self, _details: Details) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<()> {
        let is_spoken = !matches!(event, Event::Usage(_));
        if !self.is_other {
            self.own.push((event.key().to_owned(), is_spoken));
        }
        if is_spoken {
            self.seen.insert(event.key().to_owned());
        }
        Ok(())
    }

    fn rewind_to(&mut self, key: Option<&str>) -> Result<()> {
        if !self.is_other {
            let at = key.and_then(|key| self.own.iter().rposition(|(own, _)| own == key));
            self.own.truncate(at.map_or(0, |at| at + 1));
        }
        Ok(())
    }
}

//! Reads a file of JSON lines, one object after the other.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

use crate::error::Result;
use crate::event::ReadReport;
use crate::json::{Object, not_an_object};
use crate::lines::{Line, Lines, MAX_LINE};
use crate::source::Source;

/// Iterates over the lines of a file that are JSON objects. Progress and damaged lines are
/// counted in a [`ReadReport`].
#[derive(Debug)]
pub(crate) struct JsonLines<'s> {
    lines: Lines<'s>,
}

/// A line that is a JSON object.
#[derive(Debug)]
pub(crate) struct JsonLine<'l> {
    text: Cow<'l, str>,
    /// The line's number, from 1.
    pub(crate) number: u64,
    /// Where the line starts and where the next one does.
    pub(crate) range: Range<u64>,
}

impl JsonLine<'_> {
    /// Returns the line's text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the object.
    pub(crate) fn object(&self) -> Object<'_> {
        Object::from_json(&self.text).unwrap_or_default()
    }
}

impl<'s> JsonLines<'s> {
    /// Starts at the beginning of a file, with an empty report.
    pub(crate) fn new(source: &'s Source) -> (Self, ReadReport) {
        Self::resume(source, 0, 0)
    }

    /// Starts at a byte, after so many lines.
    pub(crate) fn resume(source: &'s Source, from: u64, lines: u64) -> (Self, ReadReport) {
        let report = ReadReport {
            read_to: from,
            lines,
            ..ReadReport::default()
        };
        let lines = Lines::new(source, from, lines);
        (Self { lines }, report)
    }

    /// Returns the next object. Other lines are counted as damaged.
    ///
    /// A last line without a line break is returned if it is a complete object, since nothing
    /// that follows can make it another one. Otherwise its agent may still be writing it: it
    /// is not counted as damaged, and is read again next time.
    pub(crate) fn next(&mut self, report: &mut ReadReport) -> Result<Option<JsonLine<'_>>> {
        let check = match self.lines.are_checked() {
            true => |_: &str| Ok(()),
            false => check_object,
        };
        let Some(((), number, range)) = self.next_parsed(report, check)? else {
            return Ok(None);
        };
        let line = self.lines.current();
        Ok(line.map(|line| JsonLine {
            text: line.text(),
            number,
            range,
        }))
    }

    /// Returns the objects of the next line: one, or several without a line break between them,
    /// as programs leave them that write to one file at the same time.
    pub(crate) fn next_joined(
        &mut self,
        report: &mut ReadReport,
    ) -> Result<Option<Vec<JsonLine<'_>>>> {
        let Some((parts, number, range)) = self.next_parsed(report, object_ranges)? else {
            return Ok(None);
        };
        let start = self.lines.current_start();
        let Some(line) = self.lines.current() else {
            return Ok(None);
        };
        let one = |part: Range<usize>| JsonLine {
            text: match line.text() {
                Cow::Borrowed(text) => Cow::Borrowed(&text[part.clone()]),
                Cow::Owned(text) => Cow::Owned(text),
            },
            number,
            range: start + part.start as u64..start + part.end as u64,
        };
        let mut all: Vec<_> = parts.into_iter().map(one).collect();
        if let [only] = all.as_mut_slice() {
            only.range = range;
        }
        Ok(Some(all))
    }

    /// Returns what `parse` makes of the next line that it accepts, with the line's number
    /// and range: for readers that do not need the whole object.
    pub(crate) fn next_parsed<T>(
        &mut self,
        report: &mut ReadReport,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<(T, u64, Range<u64>)>> {
        while let Some(line) = self.lines.next()? {
            let parsed = parse_line(&line, &parse);
            if parsed.is_err() && !line.ended && !line.too_long {
                report.unfinished = true;
                break;
            }
            report.read_to = line.range.end;
            report.lines = line.number;
            match parsed {
                Ok(parsed) => {
                    if line.nulls {
                        let reason = "surrounded by NUL bytes, but could be read";
                        report.add_damage(line.number, &line.range, reason);
                    }
                    return Ok(Some((parsed, line.number, line.range)));
                }
                Err(reason) => report.add_damage(line.number, &line.range, reason),
            }
        }
        report.read_to = report.read_to.max(self.lines.blank_to());
        // An incomplete line at the end is counted when it is complete.
        report.lines = self.lines.number() - u64::from(report.unfinished);
        Ok(None)
    }
}

fn parse_line<T>(line: &Line<'_>, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    if line.too_long {
        return Err(format!("longer than {} MiB", MAX_LINE >> 20));
    }
    if line.bytes.is_empty() {
        return Err("only NUL bytes".to_owned());
    }
    parse(&line.text())
}

/// Checks that a text is a JSON object; the error is the reason why it is not one.
pub(crate) fn check_object(text: &str) -> Result<(), String> {
    let checked: Result<IgnoredAny, _> = serde_json::from_str(text);
    match checked {
        Ok(_) if text.starts_with('{') => Ok(()),
        Ok(_) => Err("not a JSON object".to_owned()),
        Err(error) => Err(not_an_object(text, &error)),
    }
}

/// Returns where the objects of a line are.
fn object_ranges(text: &str) -> Result<Vec<Range<usize>>, String> {
    let mut ranges = Vec::new();
    let checked = check_object(text);
    // With U+FFFD for other bytes, places in the text are not those in the file.
    if checked.is_ok() || !text.starts_with('{') || text.contains('\u{fffd}') {
        ranges.push(0..text.len());
        return checked.map(|()| ranges);
    }
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut from = 0;
    while let Some(object) = objects.next() {
        let to = objects.byte_offset();
        if object.is_err() || !text[from..to].trim_start().starts_with('{') {
            return checked.map(|()| ranges);
        }
        ranges.push(from..to);
        from = to;
    }
    Ok(ranges)
}

#[cfg(test)]
#[path = "json_lines_tests.rs"]
mod tests;

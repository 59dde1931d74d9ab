//! Reads a file of JSON lines: one object after the other, and what could not be read.

use std::collections::BTreeMap;
use std::ops::Range;

use backtrail::Json;

use crate::error::Result;
use crate::json::Object;
use crate::lines::{Line, Lines, MAX_LINE};
use crate::source::Source;
use crate::told::{DamagedLine, Damages, Told};

/// Goes through the objects of a file of JSON lines.
#[derive(Debug)]
pub(crate) struct Reading<'s> {
    lines: Lines<'s>,
    damage: Damages,
    unknown: BTreeMap<String, u64>,
    read_to: u64,
    /// How many lines there are up to there.
    read_lines: u64,
    unfinished: bool,
}

/// An object, and where its line stands.
#[derive(Debug)]
pub(crate) struct Found {
    /// The object.
    pub(crate) object: Object,
    /// Its line's number, from 1.
    pub(crate) line: u64,
    /// Where the line begins, and where the next one does.
    pub(crate) place: Range<u64>,
}

impl<'s> Reading<'s> {
    /// Begins at a byte, behind so many lines.
    pub(crate) fn new(source: &'s Source, from: u64, lines: u64) -> Self {
        Self {
            lines: Lines::new(source, from, lines),
            damage: Damages::default(),
            unknown: BTreeMap::new(),
            read_to: from,
            read_lines: lines,
            unfinished: false,
        }
    }

    /// Returns the next object. What is none is counted and passed over.
    ///
    /// A last line without a line break is told where it is a whole object, since nothing
    /// that follows could make it another one. Else its agent may still be writing it: it
    /// is not told, not counted as damage, and read again next time.
    pub(crate) fn next(&mut self) -> Result<Option<Found>> {
        let found = self.next_as(Object::parse)?;
        Ok(found.map(|(object, line, place)| Found {
            object,
            line,
            place,
        }))
    }

    /// Returns what `parse` makes of the next line it understands, with the line's number
    /// and place. It is for readers that need less than the whole object.
    pub(crate) fn next_as<T>(
        &mut self,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<(T, u64, Range<u64>)>> {
        while let Some(line) = self.lines.next()? {
            let place = line.place.clone();
            match read(&line, &parse) {
                Ok(parsed) => {
                    if line.nulls {
                        let reason = "NUL bytes around it; what it says could be read";
                        self.damage.add(damaged(&line, reason.to_owned()));
                    }
                    let line = line.number;
                    self.read_to = place.end;
                    self.read_lines = line;
                    return Ok(Some((parsed, line, place)));
                }
                Err(_) if !line.ended && !line.too_long => {
                    self.unfinished = true;
                    break;
                }
                Err(reason) => {
                    self.damage.add(damaged(&line, reason));
                    self.read_to = place.end;
                    self.read_lines = line.number;
                }
            }
        }
        self.read_to = self.read_to.max(self.lines.blank_to());
        // Half a line at the end is counted when it is whole.
        self.read_lines = self.lines.number() - u64::from(self.unfinished);
        Ok(None)
    }

    /// Counts a record of a kind that is not known.
    pub(crate) fn unknown(&mut self, kind: &str) {
        // A file of random kinds must not fill the memory.
        const KINDS: usize = 1_000;
        let kind: String = kind.chars().take(64).collect();
        if self.unknown.len() < KINDS || self.unknown.contains_key(&kind) {
            *self.unknown.entry(kind).or_default() += 1;
        } else {
            *self.unknown.entry("(others)".to_owned()).or_default() += 1;
        }
    }

    /// Counts a line that is an object, but cannot be understood.
    pub(crate) fn damaged(&mut self, found: &Found, reason: impl Into<String>) {
        self.damaged_at(found.line, &found.place, reason);
    }

    /// Counts a line that is read, but cannot be understood, by its number and place.
    pub(crate) fn damaged_at(&mut self, line: u64, place: &Range<u64>, reason: impl Into<String>) {
        self.damage.add(DamagedLine {
            line,
            byte: place.start,
            bytes: place.end - place.start,
            reason: reason.into(),
        });
    }

    /// Returns what came of it.
    pub(crate) fn finish(self, session: String, state: Option<Json>) -> Told {
        Told {
            session,
            read_to: self.read_to,
            state,
            lines: self.read_lines,
            damage: self.damage,
            unknown: self.unknown,
            unfinished: self.unfinished,
        }
    }
}

fn damaged(line: &Line<'_>, reason: String) -> DamagedLine {
    DamagedLine {
        line: line.number,
        byte: line.place.start,
        bytes: line.place.end - line.place.start,
        reason,
    }
}

fn read<T>(line: &Line<'_>, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    if line.too_long {
        return Err(format!("longer than {} MiB", MAX_LINE >> 20));
    }
    if line.bytes.is_empty() {
        return Err("nothing but NUL bytes".to_owned());
    }
    parse(&line.text())
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;

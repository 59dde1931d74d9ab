//! Reports what `--redact` removed, and where.

use std::collections::BTreeSet;

use backtrail::SessionReader;
use backtrail_formats::Redactor;
use serde_json::{Value, json};

use crate::error::Result;
use crate::text::{count, some_of};
use crate::ui::Ui;

/// How many places are named at most.
const NAMED: usize = 8;

/// What was removed.
pub(super) struct Removed {
    unit: &'static str,
    kinds: Vec<Kind>,
}

struct Kind {
    name: &'static str,
    count: u64,
    /// In order; 0 is the session's own title, tags and the like.
    places: BTreeSet<u64>,
}

impl Removed {
    /// The places are messages, counted from 1: their records are looked up.
    pub(super) fn in_messages(redactor: &Redactor, reader: &SessionReader) -> Result<Self> {
        let mut removed = Self::new(redactor, "record");
        let mut wanted: BTreeSet<u64> = removed
            .kinds
            .iter()
            .flat_map(|kind| &kind.places)
            .copied()
            .collect();
        let mut found = vec![(0, 0)];
        wanted.remove(&0);
        let (mut records, mut message) = (reader.records()?, 0);
        while let (Some(last), Some(record)) = (wanted.last(), records.next()?) {
            message += u64::from(record.stored_message_json().is_some());
            if message > *last {
                break;
            }
            if record.stored_message_json().is_some() && wanted.contains(&message) {
                found.push((message, record.seq()));
            }
        }
        for kind in &mut removed.kinds {
            let is_here = |(message, _): &&(u64, u64)| kind.places.contains(message);
            kind.places = found.iter().filter(is_here).map(|(_, seq)| *seq).collect();
        }
        Ok(removed)
    }

    /// `unit` is what a place is: a record or a line.
    pub(super) fn new(redactor: &Redactor, unit: &'static str) -> Self {
        let kinds = redactor.findings().map(|found| Kind {
            name: found.kind,
            count: found.count,
            places: found.places.clone(),
        });
        Self {
            unit,
            kinds: kinds.collect(),
        }
    }

    /// Lists what was removed on stderr.
    pub(super) fn report(&self, ui: &Ui) {
        ui.status_json(&json!({"removed": self.to_json()}));
        self.lines().iter().for_each(|line| ui.status(line));
    }

    /// Says what was removed, a line for each kind.
    pub(super) fn lines(&self) -> Vec<String> {
        if self.kinds.is_empty() {
            return vec!["no secrets found".to_owned()];
        }
        let line = |kind: &Kind| {
            let places = self.places(&kind.places);
            format!("removed: {} ({places})", count(kind.count, kind.name))
        };
        self.kinds.iter().map(line).collect()
    }

    fn places(&self, places: &BTreeSet<u64>) -> String {
        let mut words = Vec::new();
        if places.contains(&0) {
            words.push("metadata".to_owned());
        }
        let numbers: Vec<u64> = places.iter().copied().filter(|place| *place > 0).collect();
        let named = some_of(numbers.iter().map(u64::to_string), NAMED, numbers.len());
        match numbers.len() {
            0 => {}
            1 => words.push(format!("{} {named}", self.unit)),
            _ => words.push(format!("{}s {named}", self.unit)),
        }
        words.join(", ")
    }

    pub(super) fn to_json(&self) -> Value {
        let name = format!("{}s", self.unit);
        let kind =
            |kind: &Kind| json!({"kind": kind.name, "count": kind.count, &name: kind.places});
        self.kinds.iter().map(kind).collect()
    }
}

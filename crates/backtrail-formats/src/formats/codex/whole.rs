//! The very first rollouts: one JSON object, written anew with every turn.

use std::collections::BTreeMap;

use super::names;
use super::reader::Reader;
use super::state::State;
use crate::error::Result;
use crate::json::{Object, list_of};
use crate::lines::MAX_LINE;
use crate::source::Source;
use crate::told::{DamagedLine, Damages, Sink, Told};

/// Returns whether a file is one of these: `{"session":{…},"items":[…]}`.
pub(super) fn is_whole(source: &Source) -> bool {
    // Most files are told apart by their first bytes.
    let begin = source.read_range(0..256).unwrap_or_default();
    after_begin(&String::from_utf8_lossy(&begin)).is_some() && {
        let head = source.head();
        after_begin(&String::from_utf8_lossy(&head)).is_some_and(|rest| {
            let session = rest.split('}').next().unwrap_or_default();
            session.contains("\"id\"")
                && session.contains("\"timestamp\"")
                && rest.contains("\"items\"")
        })
    }
}

/// Returns what follows where the session begins.
fn after_begin(text: &str) -> Option<&str> {
    let tokens = ["{", "\"session\"", ":", "{"];
    tokens
        .into_iter()
        .try_fold(text, |text, token| text.trim_start().strip_prefix(token))
}

/// Reads one.
pub(super) fn read(source: &Source, sink: &mut dyn Sink) -> Result<Told> {
    let mut told = Told {
        session: String::new(),
        read_to: 0,
        state: None,
        lines: 0,
        damage: Damages::default(),
        unknown: BTreeMap::new(),
        unfinished: false,
    };
    let parsed = match source.len() > MAX_LINE as u64 {
        true => Err(format!("longer than {} MiB", MAX_LINE >> 20)),
        false => parse(source)?,
    };
    let (session, items) = match parsed {
        Ok(parsed) => parsed,
        Err(reason) => {
            told.session = names::ids_in(source.path()).0.unwrap_or_default();
            told.damage.add(DamagedLine {
                line: 1,
                byte: 0,
                bytes: source.len(),
                reason,
            });
            return Ok(told);
        }
    };
    let mut reader = Reader::new(State::default(), source.path(), sink);
    reader.begin(&session, None)?;
    for (number, item) in (1..).zip(&items) {
        let unknown = match Object::of(item) {
            Some(item) => reader.record(&item, number)?,
            None => Some("(no object)".to_owned()),
        };
        if let Some(kind) = unknown {
            let kind = kind.chars().take(64).collect();
            *told.unknown.entry(kind).or_default() += 1;
        }
    }
    told.session = reader.state.session;
    told.read_to = source.len();
    told.lines = items.len() as u64 + 1;
    Ok(told)
}

type Parsed = (Object, Vec<backtrail::Json>);

fn parse(source: &Source) -> Result<Result<Parsed, String>> {
    let bytes = source.read_range(0..source.len())?;
    let read = || {
        let object = Object::parse(&String::from_utf8_lossy(&bytes))?;
        let session = object.object("session").ok_or("no session in it")?;
        let items = object
            .get("items")
            .and_then(list_of)
            .ok_or("no items in it")?;
        Ok((session, items))
    };
    Ok(read())
}

//! A large database of opencode: the sample's sessions, repeated with other ids.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::home::Home;
use super::{figure, samples};
use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::measure::interleave;
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::run;

/// The memory limit of an import.
const MEMORY: f64 = (300_u32 << 20) as f64;
/// The time limit if nothing is new.
const AGAIN: f64 = 0.050;
/// The least bytes per second of the first import, with catalogue and search.
const RATE: f64 = 80e6;

const IMPORT: [&str; 3] = ["import", "--from", "opencode"];
/// How often the sample's turns are repeated in each session.
const TURNS: u64 = 20;

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("database", &why)]),
    };
    let sample = samples::root().map(|root| root.join(SAMPLE));
    let Some(sample) = sample.filter(|sample| sample.is_file()) else {
        return Ok(vec![Entry::skipped(
            "database",
            "there are no samples here",
        )]);
    };
    let mut entries = Vec::new();
    for events in [Events::Kept, Events::LeftOut] {
        entries.extend(measure_one(args, dir, &bin, &sample, events)?);
    }
    Ok(entries)
}

/// Whether the database has opencode's log of events, which repeats all rows and is not imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Events {
    Kept,
    LeftOut,
}

fn measure_one(
    args: &Args,
    dir: &Path,
    bin: &Path,
    sample: &Path,
    events: Events,
) -> Result<Vec<Entry>> {
    let dir = &dir.join(format!("{events:?}"));
    fs::create_dir_all(dir)?;
    let database = dir.join("opencode.db");
    let sessions = multiply(
        sample,
        &database,
        events,
        args.pick(500_000_000, 30_000_000),
    )?;
    let bytes = fs::metadata(&database)?.len();
    settle(dir)?;
    let without = if events == Events::Kept {
        ""
    } else {
        " without events"
    };
    let name = format!(
        "opencode{without}, {sessions} sessions, {} MB",
        bytes / 1_000_000
    );
    let (peak, homes, last) = (Cell::new(0), Cell::new(0), RefCell::new(None));
    let mut first = || {
        let home = new_home(dir, homes.replace(homes.get() + 1), &database)?;
        let ran = run(&mut home.ours(bin, &IMPORT))?;
        let agent = &ran.told["agents"]["opencode"];
        if agent["new"] != sessions {
            return Err(format!("{agent} where {sessions} sessions are").into());
        }
        peak.set(ran.peak.max(peak.get()));
        last.replace(Some(home));
        Ok(ran.took)
    };
    let [first] = interleave(args.pick(3, 1), [&mut first])?;
    let home = last.into_inner().ok_or("nothing was imported")?;
    let mut again = || run_quietly(&mut home.ours(bin, &IMPORT));
    let [again] = interleave(args.pick(11, 3), [&mut again])?;
    let rate = Quantity::single(bytes as f64 / first.median(), Unit::BytesPerSecond);
    Ok(vec![
        figure(
            format!("{name}: first import"),
            rate,
            None,
            Goal::AtLeast(RATE),
        ),
        figure(
            format!("{name}: peak memory"),
            Quantity::single(peak.get() as f64, Unit::Bytes),
            None,
            Goal::AtMost(MEMORY),
        ),
        figure(
            format!("{name}: again, nothing new"),
            Quantity::of(&again, Unit::Seconds),
            None,
            Goal::AtMost(AGAIN),
        ),
    ])
}

const SAMPLE: &str = "opencode/generated-1.18.34/opencode.db";

/// Creates an unused home with the database in it.
fn new_home(dir: &Path, number: u32, database: &Path) -> Result<Home> {
    let own = dir.join(format!("home-{number}"));
    let place = own.join(".local/share/opencode");
    fs::create_dir_all(&place)?;
    fs::hard_link(database, place.join("opencode.db"))?;
    settle(dir)?;
    Ok(Home::new(&own, own.clone())?)
}

/// Copies a database and repeats its sessions until it has about this many bytes. Returns how
/// many sessions it has.
fn multiply(sample: &Path, to: &Path, events: Events, bytes: u64) -> Result<u64> {
    fs::copy(sample, to)?;
    let mut connection = Connection::open(to)?;
    connection.execute_batch("PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF")?;
    let tables = ["session", "event_sequence", "message", "part", "event"];
    let rows = tables.map(|table| Ok((table, rows(&connection, table)?)));
    let rows = rows.into_iter().collect::<Result<Vec<_>>>()?;
    for table in tables.iter().rev() {
        connection.execute(&format!("DELETE FROM {table}"), ())?;
    }
    let is_wanted = |table: &str| events == Events::Kept || !table.starts_with("event");
    let own_sessions = rows[0].1.len() as u64;
    let mut copies = 0;
    while fs::metadata(to)?.len() < bytes {
        let transaction = connection.transaction()?;
        for _ in 0..20 {
            for (table, rows) in rows.iter().filter(|(table, _)| is_wanted(table)) {
                let is_repeated = !matches!(*table, "session" | "event_sequence");
                for turn in 0..if is_repeated { TURNS } else { 1 } {
                    for row in rows {
                        insert(&transaction, table, row, copies, turn)?;
                    }
                }
            }
            copies += 1;
        }
        transaction.commit()?;
    }
    Ok(copies * own_sessions)
}

/// Returns all rows of a table.
fn rows(connection: &Connection, table: &str) -> Result<Vec<Vec<Value>>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
    let columns = statement.column_count();
    let rows = statement.query_map((), |row| (0..columns).map(|at| row.get(at)).collect())?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn insert(connection: &Connection, table: &str, row: &[Value], copy: u64, turn: u64) -> Result<()> {
    let values = row.iter().map(|value| match value {
        Value::Text(text) => Value::Text(renamed(text, copy, turn)),
        // The numbers of events are unique in their session.
        Value::Integer(number) if table == "event" && *number < 1_000_000 => {
            Value::Integer(number + i64::try_from(turn * 100_000).unwrap_or(0))
        }
        value => value.clone(),
    });
    let marks = vec!["?"; row.len()].join(",");
    let mut insert = connection.prepare_cached(&format!("INSERT INTO {table} VALUES ({marks})"))?;
    insert.execute(params_from_iter(values))?;
    Ok(())
}

/// Replaces the ids in a text: `msg_` and the like, twelve hexadecimal digits of time and
/// fourteen others. Those of later turns are later; those of a session belong to the copy.
fn renamed(text: &str, copy: u64, turn: u64) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = ["ses_", "msg_", "prt_", "evt_"]
        .iter()
        .filter_map(|kind| rest.find(kind))
        .min()
    {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let is_session = from.starts_with("ses_");
        let time = from
            .get(4..16)
            .and_then(|time| u64::from_str_radix(time, 16).ok());
        match (time, from.get(16..30)) {
            (Some(time), Some(tail)) => {
                let time = if is_session {
                    time
                } else {
                    time + (turn << 28)
                };
                out.push_str(&format!(
                    "{}{:012x}{}{copy:06}",
                    &from[..4],
                    time,
                    &tail[..8]
                ));
                rest = &from[30..];
            }
            _ => {
                out.push_str(&from[..4]);
                rest = &from[4..];
            }
        }
    }
    out.push_str(rest);
    out
}

//! `backtrail show`: the conversation as one would like to read it.

pub(super) mod changes;
mod data;
mod follow;
mod glyphs;
mod head;
mod markdown;
mod notes;
mod sheet;
mod spent;
mod table;
mod tell;
pub(super) mod tools;
mod turns;

use std::io::{self, IsTerminal, Write};

use backtrail::{DamageReport, RecordRef, SessionInfo, SessionReader, Store, TrailRecords};
use backtrail_index::Prices;
use serde_json::{Value, json};

use self::changes::Changes;
use self::data::{compaction_json, run_json, write_json};
use self::notes::Known;
use self::sheet::Sheet;
use self::spent::Ledger;
use self::tell::{Manner, Teller};
use self::turns::{Selection, Survey, Turns};
use super::diff::styled;
use super::list::info_json;
use super::{Answer, relative, report_gaps, require_store, resolve, short};
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::pager::Paged;
use crate::settings::Settings;
use crate::text::{count, size, visible};
use crate::ui::{Ui, unwritable};

/// Show what was said and done in a session
///
/// Calls of tools are folded to a line with their result, and thoughts to their first
/// line. On a terminal it goes through a pager.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest; with :SEQ the
    /// turn that holds that record
    #[arg(value_name = "REF")]
    reference: String,

    /// Show these turns only: 5, 2..4, 3.., or -1 for the last one
    #[arg(long, short, value_name = "TURNS", allow_hyphen_values = true)]
    #[arg(conflicts_with = "follow")]
    turn: Option<Turns>,

    /// Go on as the session grows, until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// Show the output of tools and thoughts whole
    #[arg(long)]
    full: bool,

    /// Print the records as they are on disk, a JSON object a line
    #[arg(long, conflicts_with_all = ["follow", "full"])]
    raw: bool,

    /// Where REF:SEQ was taken back: the trail that it stands in
    #[arg(long, value_name = "NUMBER", hide = true)]
    trail: Option<u32>,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let (reference, seq) = args.place();
    if seq.is_some() && (args.turn.is_some() || args.follow) {
        let what = "a record was named, and with it its turn";
        return Err(CommandError::invalid(what).hint("leave out :SEQ, --turn or --follow"));
    }
    let id = resolve(&store, reference)?;
    let reader = store.read_session(&id)?;
    let view = View {
        ui,
        store: &store,
        reader: &reader,
        full: args.full,
        prices: Prices::with_own(Settings::read(store.root())?.prices.value),
    };
    match (args.follow, ui.json()) {
        (true, true) => view.follow_json()?,
        (true, false) => view.follow_text()?,
        (false, json) => {
            let info = reader.info()?;
            let part = view.part(args, seq, &info)?;
            match () {
                () if args.raw => view.print_raw(&part)?,
                () if json => view.print_json(&part, &info)?,
                () => view.print_text(&part, &info)?,
            }
        }
    }
    Ok(Answer::Done)
}

impl Args {
    /// Splits `REF:SEQ`.
    fn place(&self) -> (&str, Option<u64>) {
        let split = self.reference.rsplit_once(':');
        match split.and_then(|(reference, seq)| Some((reference, seq.parse().ok()?))) {
            Some((reference, seq)) => (reference, Some(seq)),
            None => (&self.reference, None),
        }
    }
}

/// What is shown of a session.
enum Shown {
    All,
    /// Some turns of the line.
    Turns(Selection),
    /// A turn that was taken back, in one of the session's trails.
    TakenBack(u32, Selection),
}

struct Part {
    shown: Shown,
    survey: Option<Survey>,
    /// The record that was asked for.
    wanted: Option<u64>,
}

/// What a look at the records finds.
enum Found<'a> {
    Record(&'a RecordRef<'a>),
    /// So many places before this record that cannot be read.
    Damage(u64, u64),
}

struct View<'a> {
    ui: &'a Ui,
    store: &'a Store,
    reader: &'a SessionReader,
    full: bool,
    prices: Prices,
}

impl View<'_> {
    /// Finds out what shall be shown.
    fn part(&self, args: &Args, seq: Option<u64>, info: &SessionInfo) -> Result<Part> {
        let is_text = !args.raw && !self.ui.json();
        let survey = match is_text || args.turn.is_some() || seq.is_some() {
            true => Some(Survey::of(self.reader, info, self.prices.clone())?),
            false => None,
        };
        let shown = match (&survey, &args.turn, seq) {
            (Some(survey), Some(turns), _) => Shown::Turns(survey.records(turns)?),
            (Some(survey), None, Some(seq)) => self.around(survey, seq, args.trail, info)?,
            _ => Shown::All,
        };
        Ok(Part {
            shown,
            survey,
            wanted: seq,
        })
    }

    /// Finds the turn that a record is of: on the line, else on a branch that was taken
    /// back, the newest first.
    fn around(
        &self,
        survey: &Survey,
        seq: u64,
        trail: Option<u32>,
        info: &SessionInfo,
    ) -> Result<Shown> {
        let line = self.reader.line_parts()?;
        let own = |trail: u32| {
            line.iter()
                .find(|it| it.session == info.id && it.trail == trail)
        };
        let is_on_line = |trail: u32| own(trail).is_some_and(|part| seq <= part.until);
        if trail.is_none_or(is_on_line) && self.reader.record(seq)?.is_some() {
            return Ok(Shown::Turns(survey.around(seq)));
        }
        let trails: Vec<u32> = match trail {
            Some(trail) => vec![trail],
            None => (0..info.trails).rev().collect(),
        };
        for trail in trails {
            if matches!(self.reader.trail_record(trail, seq, 0), Ok(Some(_))) {
                let records = self.reader.trail_records(trail, 0)?;
                return Ok(Shown::TakenBack(trail, turn_in(records, seq)?));
            }
        }
        let id = short(&info.id);
        let what = format!("session {id} has no record {seq}");
        Err(CommandError::not_found(what)
            .hint(format!("its last one is {}", info.last_seq))
            .hint(format!("see all of it: {} show {id}", self.ui.program())))
    }

    /// Gives every record that shall be shown to `tell`, and where places were damaged;
    /// returns the damage and how long an unfinished end is.
    fn each(
        &self,
        shown: &Shown,
        mut tell: impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> Result<(DamageReport, u64)> {
        let broken = |error: io::Error| unwritable(&error);
        let selection = match shown {
            Shown::All => None,
            Shown::Turns(selection) => Some(selection),
            Shown::TakenBack(trail, selection) => {
                let mut records = self.reader.trail_records(*trail, 0)?;
                while let Some(found) = records.next()? {
                    let seq = found.record.seq();
                    let is_opener = found.record.kind() == backtrail::RecordKind::Opener;
                    if !is_opener && (selection.first..=selection.last).contains(&seq) {
                        tell(Found::Record(&found.record)).map_err(broken)?;
                    }
                }
                return Ok((DamageReport::default(), 0));
            }
        };
        let mut records = match selection.map_or(0, |selection| selection.first) {
            0 => self.reader.records()?,
            first => self.reader.records_from(first)?,
        };
        let last = selection.map_or(u64::MAX, |selection| selection.last);
        let mut told = 0;
        while let Some(record) = records.next()? {
            let seq = record.seq();
            if seq > last {
                break;
            }
            tell(Found::Record(&record)).map_err(broken)?;
            let damaged = records.damage().count();
            if damaged > told {
                tell(Found::Damage(damaged - told, seq)).map_err(broken)?;
                told = damaged;
            }
        }
        Ok((records.damage().clone(), records.unfinished_bytes()))
    }

    fn print_text(&self, part: &Part, info: &SessionInfo) -> Result<()> {
        let broken = |error: io::Error| unwritable(&error);
        let mut paged = Paged::new();
        let gaps = self.reader.gaps()?;
        if !io::stdout().is_terminal() {
            report_gaps(&gaps, self.ui);
        }
        let mut out = io::BufWriter::new(styled(self.ui, &mut paged));
        let mut sheet = Sheet::new(&mut out, self.ui);
        head::write(&mut sheet, info, part.survey.as_ref()).map_err(broken)?;
        let manner = Manner {
            full: self.full,
            live: false,
        };
        let changes = Changes::find(self.store, self.reader, info);
        let ledger = Ledger::new(self.prices.clone(), info.model.clone());
        let mut teller = Teller::new(sheet, manner, changes, ledger, info)
            .knowing(Known::at_first(self.reader))
            .wanting(part.wanted);
        match &part.shown {
            Shown::All => {
                for gap in &gaps {
                    teller.remark(&gap.to_string()).map_err(broken)?;
                }
            }
            Shown::Turns(selection) => teller = teller.after_turn(selection.before),
            Shown::TakenBack(..) => {
                teller = teller.taken_back();
                teller.remark("this was taken back").map_err(broken)?;
            }
        }
        let (damage, unfinished) = self.each(&part.shown, |found| match found {
            Found::Record(record) => teller.record(record),
            Found::Damage(places, seq) => teller.damaged(places, seq),
        })?;
        teller.finish().map_err(broken)?;
        let unreadable = teller.take_unreadable();
        drop(teller);
        drop(out);
        paged.finish().map_err(broken)?;
        self.warn(&damage, &unreadable);
        self.warn_unfinished(unfinished);
        Ok(())
    }

    /// Writes one object, message by message: a session can be larger than
    /// memory.
    fn print_json(&self, part: &Part, info: &SessionInfo) -> Result<()> {
        let mut out = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
        let broken = |error: io::Error| unwritable(&error);
        let head = info_json(info).to_string();
        let open = head.strip_suffix('}').unwrap_or(&head);
        write!(out, "{open},\"messages\":[").map_err(broken)?;
        let mut unreadable = Vec::new();
        let mut compactions = Vec::new();
        let mut runs = Vec::new();
        let mut separator = "";
        let (damage, unfinished) = self.each(&part.shown, |found| {
            let Found::Record(record) = found else {
                return Ok(());
            };
            compactions.extend(compaction_json(record));
            runs.extend(run_json(record));
            if write_json(&mut out, record, separator, &mut unreadable)? {
                separator = ",";
            }
            Ok(())
        })?;
        let damaged = damage.count() + unreadable.len() as u64;
        let (compactions, runs) = (Value::from(compactions), Value::from(runs));
        let gaps = json!(self.reader.gaps()?);
        writeln!(
            out,
            "],\"compactions\":{compactions},\"runs\":{runs},\"damaged\":{damaged},\"gaps\":{gaps}}}"
        )
        .map_err(broken)?;
        out.flush().map_err(broken)?;
        self.warn(&damage, &unreadable);
        self.warn_unfinished(unfinished);
        Ok(())
    }

    /// Writes the lines as they are; on a terminal, with what could command it made
    /// visible.
    fn print_raw(&self, part: &Part) -> Result<()> {
        let broken = |error: io::Error| unwritable(&error);
        let mut paged = Paged::new();
        let is_terminal = io::stdout().is_terminal();
        let (damage, unfinished) = self.each(&part.shown, |found| {
            let Found::Record(record) = found else {
                return Ok(());
            };
            match is_terminal {
                true => {
                    let text = String::from_utf8_lossy(record.bytes());
                    paged.write_all(visible(&text).as_bytes())?;
                }
                false => paged.write_all(record.bytes())?,
            }
            paged.write_all(b"\n")
        })?;
        paged.finish().map_err(broken)?;
        self.warn(&damage, &[]);
        self.warn_unfinished(unfinished);
        Ok(())
    }

    fn warn(&self, damage: &DamageReport, unreadable: &[u64]) {
        let hint = format!("backtrail verify {}", short(self.reader.id()));
        if let Some(first) = damage.first().first() {
            let n = damage.count();
            let line = first
                .line
                .map_or_else(String::new, |line| format!(", line {line}"));
            let text = format!(
                "{} skipped; the first: {} in {}{line}; the rest is intact",
                count(n, "damaged place"),
                first.reason,
                relative(self.store, &first.file).display(),
            );
            self.ui.warning(&text, Some(&hint));
        }
        if let Some(first) = unreadable.first() {
            let n = count(unreadable.len() as u64, "message");
            let text =
                format!("{n} of an unknown shape or incomplete; the first is record {first}");
            self.ui.warning(&text, Some(&hint));
        }
    }

    /// Speaks of an unfinished line only if nobody is about to finish it.
    fn warn_unfinished(&self, bytes: u64) {
        if bytes > 0 && matches!(self.reader.writer(), Ok(None)) {
            let text = format!(
                "the last line is unfinished ({}, never acknowledged); \
                 the next record sets it aside",
                size(bytes)
            );
            self.ui.warning(&text, None);
        }
    }
}

/// Returns the turn that a record is of, as far as it is in one trail.
fn turn_in(mut records: TrailRecords, seq: u64) -> Result<Selection> {
    let (mut first, mut last) = (0, u64::MAX);
    while let Some(found) = records.next()? {
        let record = found.record;
        let is_prompt = matches!(record.stored_message(), Ok(Some(message)) if message.is_prompt());
        match is_prompt {
            true if record.seq() <= seq => first = record.seq(),
            true => {
                last = record.seq() - 1;
                break;
            }
            false => {}
        }
    }
    Ok(Selection {
        before: 0,
        first,
        last,
    })
}

//! `backtrail show`: the conversation, to be read.

mod code;
mod commit;
mod data;
mod follow;
mod glyphs;
pub(super) mod head;
mod markdown;
pub(super) mod parts;
mod sheet;
mod table;
mod tool_call;
mod turns;
mod writer;

pub(crate) use self::glyphs::is_unicode;
use std::io::{self, IsTerminal, Write};
use std::ops::RangeInclusive;

use backtrail::verify::DamageReport;
use backtrail::{ErrorKind, RecordKind, RecordRef, SessionInfo, SessionReader, Store};
use backtrail_index::SessionRow;
use backtrail_view::library::Palette;
use serde_json::{Value, json};

use self::commit::CommitAnswer;
use self::data::write_json;
use self::sheet::Sheet;
use self::turns::{Selection, Turns};
use self::writer::{ShowOptions, ShowWriter};
use super::conversation::changes::Changes;
use super::conversation::{Survey, session_prices};
use super::diff::styled;
use super::list::{info_json, row_json};
use super::{Answer, fresh, relative, report_gaps, require_store, resolve, short, split_place};
use crate::derived;
use crate::error::{CommandError, Result};
use crate::pager::Paged;
use crate::text::{Filtered, count, harmless, plus_note, size, visible};
use crate::ui::Ui;

/// Show the conversation of a session
///
/// Tool calls are folded to one line with their result, and thinking to its first line.
/// On a terminal the output goes through a pager.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// A session: its id, a prefix of 4+ characters, or latest; or REF:SEQ for the turn with that
    /// record; or a git commit or HEAD, for the turn that made it
    #[arg(value_name = "REF")]
    reference: String,

    /// Show these turns only: 5, 2..4, 3.., or -1 for the last one
    #[arg(long, short, value_name = "TURNS", allow_hyphen_values = true)]
    #[arg(conflicts_with = "follow")]
    turn: Option<Turns>,

    /// Follow new messages until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// Show thinking and tool output in full
    #[arg(long)]
    full: bool,

    /// Print the records as they are on disk, one JSON object per line
    #[arg(long, conflicts_with_all = ["follow", "full"])]
    raw: bool,

    /// If REF:SEQ was undone: the trail that it is in
    #[arg(long, value_name = "NUMBER", hide = true)]
    trail: Option<u32>,
}

pub(crate) fn run(args: &ShowArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
    let (reference, seq) = split_place(&args.reference)?;
    if seq.is_some() && (args.turn.is_some() || args.follow) {
        let what = ":SEQ already selects a turn";
        return Err(CommandError::invalid(what).hint("omit :SEQ, --turn or --follow"));
    }
    fresh::import_new(&store, ui);
    let (id, seq) = match resolve(&store, reference) {
        // Ids of sessions come before those of commits.
        Err(error) if error.kind == ErrorKind::NotFound.as_str() && seq.is_none() => {
            match commit::find(&store, reference, ui)? {
                Some(CommitAnswer::Turn(..)) if args.turn.is_some() || args.follow => {
                    let what = "a commit already selects a turn";
                    return Err(CommandError::invalid(what).hint("omit --turn or --follow"));
                }
                Some(CommitAnswer::Turn(id, seq)) => (id, Some(seq)),
                Some(CommitAnswer::Told(answer)) => return Ok(answer),
                None => return Err(error),
            }
        }
        id => (id?, seq),
    };
    let reader = store.read_session(&id)?;
    let view = View {
        ui,
        store: &store,
        reader: &reader,
        full: args.full,
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

/// Returns the colours of code: the terminal's own, where styles are printed.
fn palette(ui: &Ui) -> Palette {
    match ui.styles_stdout() {
        true => Palette::Sixteen,
        false => Palette::None,
    }
}

/// Which records of a session are shown.
enum Shown {
    All,
    /// Some turns of the line.
    Turns(Selection),
    /// An undone turn: its trail, the record that was asked for, and the turn's records.
    Undone(u32, u64, RangeInclusive<u64>),
}

struct Part {
    shown: Shown,
    survey: Option<Survey>,
    /// What the catalogue has of the session.
    row: Option<SessionRow>,
    /// The record that was asked for.
    wanted: Option<u64>,
}

struct View<'a> {
    ui: &'a Ui,
    store: &'a Store,
    reader: &'a SessionReader,
    full: bool,
}

impl View<'_> {
    /// Decides what is shown.
    fn part(&self, args: &ShowArgs, seq: Option<u64>, info: &SessionInfo) -> Result<Part> {
        let row = match args.raw {
            true => None,
            false => derived::row(self.store, &info.id, self.ui),
        };
        let is_text = !args.raw && !self.ui.json();
        let survey = match is_text || args.turn.is_some() || seq.is_some() {
            true => {
                let spending = row.as_ref().map(|row| row.spending);
                let survey = Survey::of(self.reader, spending.unwrap_or_default())?;
                Some(survey.with_row(row.as_ref()))
            }
            false => None,
        };
        let shown = match (&survey, &args.turn, seq) {
            (Some(survey), Some(turns), _) => Shown::Turns(survey.select(turns)?),
            (Some(survey), None, Some(seq)) => self.around(survey, seq, args.trail, info)?,
            _ => Shown::All,
        };
        Ok(Part {
            shown,
            survey,
            row,
            wanted: seq,
        })
    }

    /// Finds the turn that a record is in: on the line, else on an undone branch, the
    /// newest first.
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
                let records = self.reader.turn_records_in_trail(trail, seq)?;
                return Ok(Shown::Undone(trail, seq, records));
            }
        }
        let id = short(&info.id);
        let what = format!("session {id} has no record {seq}");
        Err(CommandError::not_found(what)
            .hint(format!("its last record is {}", info.last_seq))
            .hint(format!("see all of it: {} show {id}", self.ui.program())))
    }

    /// Gives every record that is shown to `each`; returns the damage and the length of
    /// an unfinished end.
    fn records(
        &self,
        shown: &Shown,
        mut each: impl FnMut(&RecordRef<'_>) -> io::Result<()>,
    ) -> Result<(DamageReport, u64)> {
        let (first, last) = match shown {
            Shown::All => (0, u64::MAX),
            Shown::Turns(selection) => (selection.first, selection.last),
            Shown::Undone(trail, _, wanted) => {
                let mut records = self.reader.trail_records(*trail, 0)?;
                while let Some(found) = records.next()? {
                    let is_opener = found.record.kind() == RecordKind::Opener;
                    if !is_opener && wanted.contains(&found.record.seq()) {
                        each(&found.record)?;
                    }
                }
                return Ok((DamageReport::default(), 0));
            }
        };
        let mut records = match first {
            0 => self.reader.records()?,
            first => self.reader.records_from(first)?,
        };
        while let Some(record) = records.next()? {
            if record.seq() > last {
                break;
            }
            each(&record)?;
        }
        Ok((records.damage().clone(), records.unfinished_bytes()))
    }

    fn print_text(&self, part: &Part, info: &SessionInfo) -> Result<()> {
        let place = part.wanted.map(writer::mark_words);
        let mut paged = Paged::opened_at(place.as_deref());
        if !io::stdout().is_terminal() {
            report_gaps(&self.reader.gaps()?, self.ui);
        }
        let mut out = io::BufWriter::new(styled(self.ui, &mut paged));
        let mut sheet = Sheet::new(self.ui.width());
        let title = self.reader.title()?;
        head::write(&mut sheet, title.as_deref(), info, part.survey.as_ref());
        let mut options = ShowOptions {
            full: self.full,
            turns_before: Some(0),
            wanted: part.wanted,
            palette: palette(self.ui),
            ..ShowOptions::default()
        };
        let mut conversation = match &part.shown {
            Shown::All => self.reader.conversation()?,
            Shown::Turns(turns) => {
                options.turns_before = Some(turns.before);
                self.reader.turns(turns.first, turns.last)?
            }
            Shown::Undone(trail, seq, _) => {
                options.undone = true;
                self.reader.turn_in_trail(*trail, *seq)?
            }
        };
        let changes = Changes::find(self.store, self.reader, info);
        let prices = session_prices(self.store, info)?;
        let paths = self.reader.relative_paths(info.workspace_root.as_deref())?;
        let mut writer = ShowWriter::new(sheet, options, &changes, prices, paths);
        if options.undone {
            writer.remark("this turn was undone");
        }
        for item in conversation.by_ref() {
            writer.item(&item?);
            writer.print(&mut out)?;
        }
        writer.finish();
        let head = part.survey.as_ref();
        let plus = head.and_then(|survey| plus_note(&survey.spending));
        if let Some(note) = plus.or_else(|| writer.plus_note()) {
            writer.remark(&note);
        }
        writer.print(&mut out)?;
        out.flush()?;
        let unreadable = writer.take_unreadable();
        drop(out);
        paged.finish()?;
        self.warn(conversation.damage(), &unreadable);
        self.warn_unfinished(conversation.unfinished_bytes());
        Ok(())
    }

    /// Returns what `list` has of the session, apart from what is counted while it is shown.
    fn head_json(&self, info: &SessionInfo, row: Option<&SessionRow>) -> Value {
        let mut head = info_json(info);
        let unknown = || json!({"tokens": null, "cost_usd": null, "unpriced_calls": null});
        let row = row.map_or_else(unknown, |row| row_json(row, self.store));
        if let (Value::Object(head), Value::Object(row)) = (&mut head, row) {
            let row = row.into_iter();
            for (name, value) in row.filter(|(name, _)| name != "messages" && name != "damaged") {
                if !value.is_null() || !head.contains_key(&name) {
                    head.insert(name, value);
                }
            }
        }
        head
    }

    /// Writes one object, message by message: a session can be larger than
    /// memory.
    fn print_json(&self, part: &Part, info: &SessionInfo) -> Result<()> {
        let out = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
        let mut out = Filtered::new(out, harmless);
        let head = self.head_json(info, part.row.as_ref()).to_string();
        let open = head.strip_suffix('}').unwrap_or(&head);
        write!(out, "{open},\"messages\":[")?;
        let mut unreadable = Vec::new();
        let mut compactions = Vec::new();
        let mut runs = Vec::new();
        let mut separator = "";
        let (damage, unfinished) = self.records(&part.shown, |record| {
            compactions.extend(data::compaction(record));
            runs.extend(data::run(record));
            if write_json(&mut out, record, separator, &mut unreadable)? {
                separator = ",";
            }
            Ok(())
        })?;
        let damaged = damage.count() + unreadable.len() as u64;
        let (compactions, runs) = (json!(compactions), json!(runs));
        let gaps = json!(self.reader.gaps()?);
        writeln!(
            out,
            "],\"compactions\":{compactions},\"runs\":{runs},\"damaged\":{damaged},\"gaps\":{gaps}}}"
        )?;
        out.flush()?;
        self.warn(&damage, &unreadable);
        self.warn_unfinished(unfinished);
        Ok(())
    }

    /// Writes the lines as they are; on a terminal, with its control characters made
    /// visible.
    fn print_raw(&self, part: &Part) -> Result<()> {
        let mut paged = Paged::new();
        let is_terminal = io::stdout().is_terminal();
        let (damage, unfinished) = self.records(&part.shown, |record| {
            match is_terminal {
                true => {
                    let text = String::from_utf8_lossy(record.bytes());
                    paged.write_all(visible(&text).as_bytes())?;
                }
                false => paged.write_all(record.bytes())?,
            }
            paged.write_all(b"\n")
        })?;
        paged.finish()?;
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
                "skipped {}; the first: {} in {}{line}; the rest is intact",
                count(n, "damaged place"),
                first.reason,
                relative(self.store, &first.file).display(),
            );
            self.ui.warning(&text, Some(&hint));
        }
        if let Some(first) = unreadable.first() {
            let n = count(unreadable.len(), "message");
            let text = format!("{n} could not be read completely; the first is record {first}");
            self.ui.warning(&text, Some(&hint));
        }
    }

    /// Warns of an unfinished line, unless a process is about to finish it.
    fn warn_unfinished(&self, bytes: u64) {
        if bytes > 0 && matches!(self.reader.writer(), Ok(None)) {
            let text = format!(
                "the last line is unfinished ({}, never acknowledged); \
                 the next write sets it aside",
                size(bytes)
            );
            self.ui.warning(&text, None);
        }
    }
}

//! Imports one conversation of a file into its session.

use std::collections::HashSet;

use backtrail::plumbing::{CallUsage, ImportWriter, ImportWriterOptions};
use backtrail::{
    Compaction, Draft, ErrorKind, Message, Note, Records, Role, SessionId, SessionOptions,
    SessionReader, Store, Timestamp, Usage,
};

use super::copies::Copies;
use super::destination::{Destination, find_fork_point, is_event};
use super::diff::{Change, Diff, Existing, OnDifference, Step};
use crate::error::Result;
use crate::event::{Details, Event, ForkPoint, MessageEvent, SummaryEvent, UsageEvent};

/// A conversation of a file, and the session that it goes to.
pub(super) struct SessionImport {
    pub(super) id: SessionId,
    pub(super) details: Details,
    pub(super) first_at: Option<Timestamp>,
    pub(super) last_at: Option<Timestamp>,
    /// How many messages were written.
    pub(super) messages: u64,
    pub(super) created: bool,
    pub(super) changed: bool,
    times: FileTimes,
    /// The time of the last event that the session has: that of new ones without any.
    resumed_at: Option<Timestamp>,
    parent: Parent,
    /// The session's store. Without one nothing is written.
    pub(super) store: Option<Store>,
    /// The open session; not in a dry run.
    pub(super) writer: Option<ImportWriter>,
    target: Target,
    diff: Diff<SessionEvents>,
    /// The events of the file that are copies, if it was handed over.
    pub(super) copies: Option<Copies>,
    /// The record before the session's own first one.
    starts_after: u64,
    /// The details that the session was created with.
    created_with: Option<Details>,
}

/// The times of things that have none of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileTimes {
    /// The time in the session's id, as its agent calls it.
    pub(super) in_id: Option<Timestamp>,
    /// When the file was last modified.
    pub(super) modified: Timestamp,
}

/// Where a new session comes from.
#[derive(Debug, Clone)]
pub(super) enum Parent {
    None,
    CopyOf(SessionId),
    Continues(SessionId, u64),
    SpawnedBy(SessionId, u64, String),
}

/// The session that is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// It does not exist yet.
    New,
    Existing,
    /// It is open for writing.
    Open,
    /// It was deleted here, and nothing is imported into it.
    Deleted,
}

impl SessionImport {
    /// Imports into a session that does not exist yet.
    pub(super) fn into_new(
        id: SessionId,
        parent: Parent,
        store: Option<Store>,
        times: FileTimes,
    ) -> Self {
        let starts_after = match parent {
            Parent::Continues(_, seq) => seq,
            _ => 0,
        };
        Self {
            id,
            details: Details::default(),
            first_at: None,
            last_at: None,
            messages: 0,
            created: false,
            changed: false,
            times,
            resumed_at: None,
            parent,
            store,
            writer: None,
            target: Target::New,
            diff: Diff::append(),
            copies: None,
            starts_after,
            created_with: None,
        }
    }

    /// Imports into a new session of which other files may contain the same events.
    pub(super) fn adding_missing(mut self) -> Self {
        self.diff = Diff::add_missing(HashSet::new());
        self
    }

    /// Skips the events of the file that are copies.
    pub(super) fn skipping(mut self, copies: Option<Copies>) -> Self {
        self.copies = copies;
        self
    }

    /// Imports into a session that exists.
    pub(super) fn into_existing(
        id: SessionId,
        store: Store,
        known: Known,
        times: FileTimes,
    ) -> Result<Self> {
        let reader = store.read_session(&id)?;
        let info = reader.info()?;
        let resumed_at = match info.times_from_file {
            // The file's time is newer now.
            true => None,
            false => last_event_at(&reader)?.or(info.created_at),
        };
        let fork = info.forked_from;
        let starts_after = fork.and_then(|fork| fork.seq).unwrap_or(0);
        let diff = match known {
            Known::Everything => Diff::append(),
            Known::EverythingUnlessCrashed => Diff::append_after(last_keys(&reader)?),
            Known::AnyPart => {
                let events = SessionEvents {
                    records: reader.records()?,
                    starts_after: 0,
                };
                let keys = events.map(|event| Ok(event?.key));
                Diff::add_missing(keys.collect::<Result<_>>()?)
            }
            Known::Beginning(on_difference) => {
                let records = reader.records_from(starts_after + 1)?;
                let events = SessionEvents {
                    records,
                    starts_after,
                };
                Diff::compare(events, on_difference)?
            }
        };
        Ok(Self {
            target: Target::Existing,
            diff,
            starts_after,
            resumed_at,
            ..Self::into_new(id, Parent::None, Some(store), times)
        })
    }

    /// Imports nothing: another file of the session was looked at in the same dry run.
    pub(super) fn previewed(id: SessionId, times: FileTimes) -> Self {
        Self {
            target: Target::Existing,
            ..Self::into_new(id, Parent::None, None, times)
        }
    }

    /// Imports nothing: the session was deleted here.
    pub(super) fn deleted(id: SessionId, times: FileTimes) -> Self {
        Self {
            target: Target::Deleted,
            ..Self::into_new(id, Parent::None, None, times)
        }
    }

    pub(super) fn is_new(&self) -> bool {
        self.target == Target::New
    }

    /// Returns whether it does not exist and nothing was said in it.
    pub(super) fn has_nothing(&self) -> bool {
        self.is_new() && !matches!(self.parent, Parent::Continues(..))
    }

    /// Plans the next change of the file.
    pub(super) fn plan(&mut self, change: Change, plan: &mut Vec<Step>) -> Result<()> {
        if let Change::Add(event) = &change {
            // Also of events that the session has, and before a session is created.
            self.note_time(event);
        }
        let change = match &mut self.copies {
            Some(copies) => copies.own(change),
            None => Some(change),
        };
        match (self.target, change) {
            (Target::Deleted, _) | (_, None) => Ok(()),
            (_, Some(change)) => self.diff.next(change, plan),
        }
    }

    /// Plans the end of the file.
    pub(super) fn plan_end(&mut self, plan: &mut Vec<Step>) -> Result<()> {
        match self.target {
            Target::Deleted => Ok(()),
            _ => self.diff.end(plan),
        }
    }

    /// Returns whether the session keeps events after those that the file has.
    pub(super) fn ends_early(&self) -> bool {
        self.diff.ends_early()
    }

    /// Opens the session for writing, and creates it if it does not exist.
    pub(super) fn open(
        &mut self,
        destination: &Destination<'_>,
        agent: &str,
        name: Option<&str>,
    ) -> Result<()> {
        if matches!(self.target, Target::Open | Target::Deleted) {
            return Ok(());
        }
        let is_new = self.is_new();
        if is_new {
            self.created = true;
            self.changed = true;
            self.created_with = Some(self.details.clone());
        }
        self.writer = match self.store.as_ref().filter(|_| !destination.is_dry_run()) {
            Some(store) if is_new => {
                let options = self.options(agent, name);
                Some(store.begin_import(&self.id, options)?)
            }
            Some(store) => Some(store.resume_import(&self.id)?),
            None => None,
        };
        self.target = Target::Open;
        Ok(())
    }

    fn options(&self, agent: &str, name: Option<&str>) -> ImportWriterOptions {
        let details = &self.details;
        let mut options = SessionOptions::new();
        if let Some(title) = details.title.as_deref().and_then(short) {
            options = options.title(title);
        }
        if let Some(model) = details.model.as_deref().and_then(valid_name) {
            options = options.model(model);
        }
        if let Some(directory) = &details.directory {
            options = options.workspace_root(directory);
        }
        if let Some(tags) = &details.tags {
            options = options.tags(tags.iter().filter_map(|tag| short(tag)));
        }
        let mut options = ImportWriterOptions::new(agent, options);
        options = match self.agents_start().or(self.first_at).or(self.times.in_id) {
            Some(at) => options.began(at),
            None => options.began_about(self.times.modified),
        };
        if let Some(name) = name.filter(|name| *name != self.id.as_str()) {
            options = options.original_id(short(name).unwrap_or_default());
        }
        match &self.parent {
            Parent::None => options,
            Parent::CopyOf(parent) => {
                let branch = details.branch.as_deref().and_then(short);
                options.copy_of(parent.as_str(), branch.as_deref())
            }
            Parent::Continues(parent, seq) => options.continues(parent, *seq, None),
            Parent::SpawnedBy(parent, seq, call) => options.spawned_by(parent, *seq, call),
        }
    }

    /// Appends an event to the open session.
    pub(super) fn append(&mut self, event: Event) -> Result<()> {
        let event = without_implausible_usage(event);
        self.changed = true;
        self.messages += u64::from(matches!(event, Event::Message(_)));
        let at = self.note_time(&event);
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        match event {
            Event::Message(message) => append_message(writer, message, at)?,
            Event::Usage(usage) => writer.usage(&call_usage(usage, at))?,
            Event::Summary(summary) => writer.compact(&compaction(summary, at))?,
        }
        Ok(())
    }

    /// Returns the time of an event, and remembers it.
    fn note_time(&mut self, event: &Event) -> Timestamp {
        let own = event.at().filter(|at| is_plausible_time(*at));
        let own = own.or_else(|| Timestamp::in_id(event.key()));
        self.first_at = earliest(self.first_at, own);
        self.last_at = own.or(self.last_at);
        self.time_by_now()
    }

    /// Returns when the session began, if the agent says so.
    fn agents_start(&self) -> Option<Timestamp> {
        self.details.started_at.filter(|at| is_plausible_time(*at))
    }

    /// Returns the time of something that has none: that of the last event before it, else of
    /// the session's beginning, else of its id; the file's own is the last resort.
    pub(super) fn time_by_now(&self) -> Timestamp {
        let known = self.last_at.or(self.resumed_at).or(self.agents_start());
        known.or(self.times.in_id).unwrap_or(self.times.modified)
    }

    /// Rewinds the open session to the event with this key, or to its beginning.
    pub(super) fn rewind_to_key(&mut self, key: Option<String>) -> Result<()> {
        self.changed = true;
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        writer.flush()?;
        let seq = match key {
            Some(key) => find_fork_point(&writer.reader(), &ForkPoint::After(key))?,
            None => Some(self.starts_after),
        };
        // An event that is not there any more was undone before.
        if let Some(seq) = seq {
            writer.back_to(seq)?;
        }
        Ok(())
    }

    /// Rewinds the open session to a record; `None` for the one before its own first.
    pub(super) fn rewind_to_record(&mut self, seq: Option<u64>) -> Result<()> {
        self.changed = true;
        let seq = seq.unwrap_or(self.starts_after);
        if let Some(writer) = &mut self.writer {
            writer.back_to(seq)?;
        }
        Ok(())
    }

    /// Returns the details that the session does not have yet, apart from `known`.
    pub(super) fn new_details(&self, known: &Details) -> Option<Note> {
        let known = self.created_with.as_ref().unwrap_or(known);
        let mut note = Note::new();
        let details = &self.details;
        if let Some(title) = details.title.as_deref().and_then(short)
            && details.title != known.title
        {
            note = note.title(title);
        }
        if let Some(model) = details.model.as_deref().and_then(valid_name)
            && details.model != known.model
        {
            note = note.model(model);
        }
        if let Some(directory) = &details.directory
            && details.directory != known.directory
        {
            note = note.workspace_root(directory);
        }
        if let Some(tags) = &details.tags
            && details.tags != known.tags
        {
            for tag in tags.iter().filter_map(|tag| short(tag)) {
                note = note.add_tag(tag);
            }
        }
        (note != Note::new()).then_some(note)
    }

    /// Closes the session for now.
    pub(super) fn close(&mut self) -> Result<()> {
        if self.target == Target::Open {
            self.target = Target::Existing;
        }
        match self.writer.take() {
            Some(writer) => Ok(writer.close()?),
            None => Ok(()),
        }
    }
}

/// How much of a file's changes a session that exists may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Everything before them and nothing of them.
    Everything,
    /// The same, unless a crash left some of them.
    EverythingUnlessCrashed,
    /// Any part of them: other files contain parts of the session too.
    AnyPart,
    /// Their beginning, or something else.
    Beginning(OnDifference),
}

/// The events of a session, as they are now.
struct SessionEvents {
    records: Records,
    starts_after: u64,
}

impl Iterator for SessionEvents {
    type Item = Result<Existing>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let record = match self.records.next() {
                Ok(record) => record?,
                Err(error) => return Some(Err(error.into())),
            };
            if record.seq() <= self.starts_after || !is_event(record.kind()) {
                continue;
            }
            if let Some(key) = record.id() {
                return Some(Ok(Existing {
                    key: key.into_owned(),
                    seq: record.seq(),
                    has_usage: memchr::memmem::find(record.bytes(), b"\"usage\":{").is_some(),
                }));
            }
        }
    }
}

/// Returns the time of the session's last event.
fn last_event_at(reader: &SessionReader) -> Result<Option<Timestamp>> {
    let mut back = reader.records_back()?;
    while let Some(record) = back.next()? {
        if is_event(record.kind()) {
            return Ok(record.at());
        }
    }
    Ok(None)
}

/// Returns the keys of the last events, which a crash may have left.
fn last_keys(reader: &SessionReader) -> Result<HashSet<String>> {
    const MAX_RECORDS: usize = 1_000;
    let mut keys = HashSet::new();
    let mut back = reader.records_back()?;
    for _ in 0..MAX_RECORDS {
        let Some(record) = back.next()? else {
            break;
        };
        if is_event(record.kind())
            && let Some(key) = record.id()
        {
            keys.insert(key.into_owned());
        }
    }
    Ok(keys)
}

/// Appends a message. One that no record can hold is replaced by a note; it is still in the
/// file's bytes.
fn append_message(writer: &mut ImportWriter, message: MessageEvent, at: Timestamp) -> Result<()> {
    let key = message.key.clone();
    match writer.message(&draft(message, at)) {
        Err(error) if error.kind() == ErrorKind::Invalid => {
            let text = format!("[this message cannot be shown: {error}]");
            let note = Role::Other("note".to_owned());
            let note = Message::new(note, [backtrail::Block::text(text)]);
            writer.message(&Draft::from(note).id(key).at(at))?;
            Ok(())
        }
        result => Ok(result.map(drop)?),
    }
}

/// No call uses more tokens; larger numbers count something else.
const MAX_TOKENS: u64 = 1_000_000_000_000;

/// Removes usage that cannot be real.
fn without_implausible_usage(mut event: Event) -> Event {
    let is_junk = |usage: &Usage| usage.total() > MAX_TOKENS;
    match &mut event {
        Event::Message(message) if message.message.usage.as_ref().is_some_and(is_junk) => {
            message.message.usage = None;
        }
        Event::Usage(usage) if is_junk(&usage.usage) => usage.usage = Usage::default(),
        Event::Summary(summary) if summary.usage.as_ref().is_some_and(is_junk) => {
            summary.usage = None;
        }
        _ => {}
    }
    event
}

/// Returns the earlier of two times.
pub(super) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Returns whether a time can be right: an earlier one comes from a wrong clock.
fn is_plausible_time(at: Timestamp) -> bool {
    const YEAR_2000: i64 = 946_684_800_000;
    at.as_millis() >= YEAR_2000
}

/// Returns a title or tag, shortened; `None` if it is blank.
pub(super) fn short(text: &str) -> Option<String> {
    const MAX_CHARS: usize = 1_000;
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(MAX_CHARS).collect())
}

/// Returns a name, if a record can hold it.
pub(super) fn valid_name(name: &str) -> Option<String> {
    let fits = !name.is_empty() && name.len() <= 256 && !name.chars().any(char::is_control);
    fits.then(|| name.to_owned())
}

/// Returns a cost, if a record can hold it.
fn valid_cost(cost: Option<f64>) -> Option<f64> {
    cost.filter(|cost| cost.is_finite() && *cost >= 0.0)
}

fn draft(event: MessageEvent, at: Timestamp) -> Draft {
    let mut draft = Draft::from(event.message).id(event.key).at(at);
    if let Some(model) = event.model.as_deref().and_then(valid_name) {
        draft = draft.model(model);
    }
    if let Some(id) = event.response_id.as_deref().and_then(valid_name) {
        draft = draft.response_id(id);
    }
    if let Some(duration) = event.duration_ms {
        draft = draft.duration_ms(duration);
    }
    if let Some(cost) = valid_cost(event.cost_usd) {
        draft = draft.cost_usd(cost);
    }
    draft
}

fn call_usage(event: UsageEvent, at: Timestamp) -> CallUsage {
    let mut call = CallUsage::new(event.key, at, event.response_id, event.usage);
    call.model = event.model.as_deref().and_then(valid_name);
    call.duration_ms = event.duration_ms;
    call.cost_usd = valid_cost(event.cost_usd);
    call
}

fn compaction(event: SummaryEvent, at: Timestamp) -> Compaction {
    let summary = match event.summary.trim().is_empty() {
        true => "(The agent does not reveal this summary.)".to_owned(),
        false => event.summary,
    };
    let mut compaction = Compaction::new(summary)
        .keep(event.keep)
        .at(at)
        .id(event.key);
    if let Some(model) = event.model.as_deref().and_then(valid_name) {
        compaction = compaction.model(model);
    }
    if let Some(covers) = event.covers {
        compaction = compaction.covers(covers);
    }
    if let Some(usage) = event.usage {
        compaction = compaction.usage(usage);
    }
    compaction
}

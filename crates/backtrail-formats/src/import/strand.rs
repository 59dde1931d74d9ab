//! One conversation of a file, on its way into its session.

use std::collections::HashSet;

use backtrail::{
    CallUsage, Compaction, Draft, Intake, IntakeOptions, Message, Note, Records, Role, SessionId,
    SessionOptions, Store, Timestamp, Usage,
};

use super::shop::{Shop, find_place, tells_item};
use crate::error::Result;
use crate::told::{About, After, Item, Said, Summarised, Used};

/// A conversation of a file.
pub(super) struct Strand {
    pub(super) id: SessionId,
    /// When the file was last written to: for what says no time.
    written: Timestamp,
    pub(super) about: About,
    pub(super) state: State,
    /// Where a session that is not there yet comes from.
    pub(super) birth: Birth,
    pub(super) first_at: Option<Timestamp>,
    pub(super) last_at: Option<Timestamp>,
    /// Messages that were written.
    pub(super) messages: u64,
    pub(super) created: bool,
    pub(super) changed: bool,
    /// The keys that the session has, where several files tell it: what it does not have
    /// is added.
    pub(super) keys: Option<HashSet<String>>,
    /// What messages used that the session has without it.
    late: Vec<Used>,
    /// What the session knew of itself when it was made.
    made_with: Option<About>,
}

/// Where a session comes from.
#[derive(Debug, Clone)]
pub(super) enum Birth {
    Start,
    CopyOf(SessionId),
    Continues(SessionId, u64),
    Spawned(SessionId, u64, String),
}

/// How far a conversation is.
pub(super) enum State {
    /// There is no session yet.
    Fresh(Option<Store>),
    /// There is one; what it holds is passed by.
    Comparing(Box<Comparing>),
    /// There is one, and it goes on at its end.
    Parked(Option<Store>),
    /// It is being written; with nothing where nothing is to be written.
    Writing(Option<Intake>, Option<Store>),
    /// The session was deleted here.
    Ignored,
}

/// A session that is compared with what a file tells.
pub(super) struct Comparing {
    pub(super) store: Store,
    records: Records,
    /// The next item of the session that was not told yet, and whether it says what it used.
    next: Option<(String, u64)>,
    next_is_measured: bool,
    /// What messages used that the session has without it.
    late: Vec<Used>,
    /// Which of those it knows by now.
    known_late: HashSet<String>,
    /// The last item that both have.
    pub(super) common: Option<(String, u64)>,
    /// The record before the session's own first one.
    pub(super) begins_after: u64,
    /// What was told since the two parted.
    pub(super) pending: Vec<Item>,
}

/// How many items are held back to see whether the file takes them back itself.
const PENDING: usize = 4_096;

impl Comparing {
    pub(super) fn new(store: &Store, id: &SessionId) -> Result<Self> {
        let reader = store.read_session(id)?;
        let fork = reader.info()?.forked_from;
        let begins_after = fork.and_then(|fork| fork.seq).unwrap_or(0);
        let mut comparing = Self {
            store: store.clone(),
            records: reader.records_from(begins_after + 1)?,
            next: None,
            next_is_measured: false,
            late: Vec::new(),
            known_late: HashSet::new(),
            common: None,
            begins_after,
            pending: Vec::new(),
        };
        comparing.advance()?;
        Ok(comparing)
    }

    fn advance(&mut self) -> Result<()> {
        self.next = None;
        while let Some(record) = self.records.next()? {
            if record.seq() <= self.begins_after || !tells_item(record.kind()) {
                continue;
            }
            let Some(id) = record.id() else {
                continue;
            };
            if id.ends_with(LATE) {
                self.known_late.insert(id.into_owned());
                continue;
            }
            self.next_is_measured = memchr::memmem::find(record.bytes(), b"\"usage\":{").is_some();
            self.next = Some((id.into_owned(), record.seq()));
            break;
        }
        Ok(())
    }

    /// Returns whether the session holds more than was told.
    pub(super) fn has_more(&self) -> bool {
        self.next.is_some()
    }

    /// Returns the record up to which both are the same.
    pub(super) fn common_seq(&self) -> u64 {
        self.common
            .as_ref()
            .map_or(self.begins_after, |(_, seq)| *seq)
    }

    /// Takes an item that is told; says what to do with it.
    pub(super) fn take(&mut self, item: Item) -> Result<Verdict> {
        if !self.pending.is_empty() {
            self.pending.push(item);
            return Ok(match self.pending.len() > PENDING {
                true => Verdict::Parted,
                false => Verdict::Same,
            });
        }
        match &self.next {
            None => Ok(Verdict::Behind(item)),
            Some((key, _)) if key == item.key() => {
                if let Item::Said(said) = item
                    && !self.next_is_measured
                {
                    self.late.extend(late_usage(said));
                }
                self.common = self.next.take();
                self.advance()?;
                Ok(Verdict::Same)
            }
            Some(_) => {
                self.pending.push(item);
                Ok(Verdict::Same)
            }
        }
    }

    /// Returns what messages used that the session has without it: another file told them so.
    pub(super) fn late_usage(&mut self) -> Result<Vec<Used>> {
        let mut late = std::mem::take(&mut self.late);
        if late.is_empty() {
            return Ok(late);
        }
        while let Some(record) = self.records.next()? {
            let id = record.id().filter(|id| id.ends_with(LATE));
            self.known_late.extend(id.map(std::borrow::Cow::into_owned));
        }
        late.retain(|used| !self.known_late.contains(&used.key));
        Ok(late)
    }

    /// Takes the told conversation back; returns whether that concerns only what was told
    /// since the two parted.
    pub(super) fn back_to(&mut self, key: Option<&str>) -> bool {
        let common = self.common.as_ref().map(|(key, _)| key.as_str());
        if common == key {
            self.pending.clear();
            return true;
        }
        let kept = self
            .pending
            .iter()
            .rposition(|item| Some(item.key()) == key);
        match kept {
            Some(at) => {
                self.pending.truncate(at + 1);
                true
            }
            None => false,
        }
    }
}

/// How the key of a usage ends that came after its message.
const LATE: &str = "~usage";

/// Returns what a message used, to be told behind it.
fn late_usage(said: Said) -> Option<Used> {
    let usage = said.message.usage?;
    let key = format!("{}{LATE}", said.key.get(..200).unwrap_or(&said.key));
    Some(Used {
        key,
        at: said.at,
        response_id: said.response_id?,
        model: said.model,
        usage,
        duration_ms: said.duration_ms,
        cost_usd: said.cost_usd,
    })
}

/// What a comparison says of an item.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Verdict {
    /// The session has it, or it is held back.
    Same,
    /// The session ends before it.
    Behind(Item),
    /// The two have parted for good.
    Parted,
}

impl Strand {
    pub(super) fn new(id: SessionId, birth: Birth, state: State, written: Timestamp) -> Self {
        Self {
            written,
            id,
            about: About::default(),
            state,
            birth,
            first_at: None,
            last_at: None,
            messages: 0,
            created: false,
            changed: false,
            keys: None,
            late: Vec::new(),
            made_with: None,
        }
    }

    /// Returns the store that the session is in, or shall be.
    pub(super) fn store(&self) -> Option<&Store> {
        match &self.state {
            State::Fresh(store) | State::Parked(store) | State::Writing(_, store) => store.as_ref(),
            State::Comparing(comparing) => Some(&comparing.store),
            State::Ignored => None,
        }
    }

    /// Takes out what messages used that the session has without it.
    pub(super) fn take_late(&mut self) -> Result<Vec<Used>> {
        let mut late = std::mem::take(&mut self.late);
        if let State::Comparing(comparing) = &mut self.state {
            late.extend(comparing.late_usage()?);
        }
        Ok(late)
    }

    /// Sees to it that the session is there and can be written to.
    pub(super) fn open(&mut self, shop: &Shop<'_>, agent: &str, name: Option<&str>) -> Result<()> {
        match &mut self.state {
            State::Writing(..) | State::Ignored => return Ok(()),
            State::Fresh(store) => {
                let store = store.take();
                self.created = true;
                self.changed = true;
                self.made_with = Some(self.about.clone());
                let intake = match &store {
                    Some(store) if !shop.is_dry() => {
                        let options = self.options(agent, name);
                        Some(store.begin_intake(&self.id, options)?)
                    }
                    _ => None,
                };
                self.state = State::Writing(intake, store);
            }
            State::Comparing(_) | State::Parked(_) => {
                self.late = self.take_late()?;
                let store = self.store().cloned();
                let intake = match &store {
                    Some(store) if !shop.is_dry() => Some(store.resume_intake(&self.id)?),
                    _ => None,
                };
                self.state = State::Writing(intake, store);
            }
        }
        Ok(())
    }

    fn options(&self, agent: &str, name: Option<&str>) -> IntakeOptions {
        let about = &self.about;
        let mut options = SessionOptions::new();
        if let Some(title) = about.title.as_deref().and_then(short) {
            options = options.title(title);
        }
        if let Some(model) = about.model.as_deref().and_then(name_of) {
            options = options.model(model);
        }
        if let Some(directory) = &about.directory {
            options = options.workspace_root(directory);
        }
        if let Some(tags) = &about.tags {
            options = options.tags(tags.iter().filter_map(|tag| short(tag)));
        }
        let mut options = IntakeOptions::new(agent, options);
        let began = about.began.filter(|at| at.as_millis() >= EARLIEST);
        options = options.began(began.or(self.first_at).unwrap_or(self.written));
        if let Some(name) = name.filter(|name| *name != self.id.as_str()) {
            options = options.original_id(short(name).unwrap_or_default());
        }
        match &self.birth {
            Birth::Start => options,
            Birth::CopyOf(parent) => {
                let branch = about.branch.as_deref().and_then(short);
                options.copy_of(parent.as_str(), branch.as_deref())
            }
            Birth::Continues(parent, seq) => options.continues(parent, *seq, None),
            Birth::Spawned(parent, seq, call) => options.spawned_by(parent, *seq, call),
        }
    }

    /// Writes an item behind what the session holds. It is open.
    pub(super) fn write(&mut self, item: Item) -> Result<()> {
        let item = plausible(item);
        self.changed = true;
        self.messages += u64::from(matches!(item, Item::Said(_)));
        let at = self.time_of(&item);
        let State::Writing(Some(intake), _) = &mut self.state else {
            return Ok(());
        };
        match item {
            Item::Said(said) => {
                let key = said.key.clone();
                let draft = draft(said, at);
                if let Err(error) = intake.message(&draft) {
                    if error.kind() != backtrail::ErrorKind::Invalid {
                        return Err(error.into());
                    }
                    // What no record can hold is in the file all the same.
                    let text = format!("[a message that cannot be shown here: {error}]");
                    let draft = Draft::from(Message::new(
                        Role::Other("note".to_owned()),
                        [backtrail::Block::text(text)],
                    ));
                    intake.message(&draft.id(key).at(at))?;
                }
            }
            Item::Used(used) => intake.usage(&call_usage(used, at))?,
            Item::Summarised(summarised) => intake.compact(&compaction(summarised, at))?,
        }
        Ok(())
    }

    fn time_of(&mut self, item: &Item) -> Timestamp {
        let told = match item {
            Item::Said(said) => said.at,
            Item::Used(used) => used.at,
            Item::Summarised(summarised) => summarised.at,
        };
        let told = told.filter(|at| at.as_millis() >= EARLIEST);
        let at = told.or(self.last_at).or(self.about.began);
        self.first_at = earliest(self.first_at, told);
        self.last_at = told.or(self.last_at);
        at.unwrap_or(self.written)
    }

    /// Notes when an item that the session has was said.
    pub(super) fn pass_by(&mut self, item: &Item) {
        self.time_of(item);
    }

    /// Takes the conversation back to an item. It is open.
    pub(super) fn back_to(&mut self, key: Option<&str>) -> Result<()> {
        self.changed = true;
        let State::Writing(Some(intake), _) = &mut self.state else {
            return Ok(());
        };
        intake.flush()?;
        let after = key.map_or(After::Nothing, |key| After::Key(key.to_owned()));
        // What is not there any more was taken back before.
        if let Some(seq) = find_place(&intake.reader(), &after)? {
            intake.back_to(seq)?;
        }
        Ok(())
    }

    /// Takes the conversation back to a record. It is open.
    pub(super) fn back_to_seq(&mut self, seq: u64) -> Result<()> {
        self.changed = true;
        if let State::Writing(Some(intake), _) = &mut self.state {
            intake.back_to(seq)?;
        }
        Ok(())
    }

    /// Returns what the session does not know of itself yet, beside `known`.
    pub(super) fn news(&self, known: &About) -> Option<Note> {
        let known = self.made_with.as_ref().unwrap_or(known);
        let mut note = Note::new();
        let about = &self.about;
        if let Some(title) = about.title.as_deref().and_then(short)
            && about.title != known.title
        {
            note = note.title(title);
        }
        if let Some(model) = about.model.as_deref().and_then(name_of)
            && about.model != known.model
        {
            note = note.model(model);
        }
        if let Some(directory) = &about.directory
            && about.directory != known.directory
        {
            note = note.workspace_root(directory);
        }
        if let Some(tags) = &about.tags
            && about.tags != known.tags
        {
            for tag in tags.iter().filter_map(|tag| short(tag)) {
                note = note.add_tag(tag);
            }
        }
        (note != Note::new()).then_some(note)
    }

    /// Writes what waits, and lets go of the session for now.
    pub(super) fn park(&mut self) -> Result<()> {
        if let State::Writing(intake, store) = &mut self.state {
            let (intake, store) = (intake.take(), store.take());
            self.state = State::Parked(store);
            if let Some(intake) = intake {
                intake.close()?;
            }
        }
        Ok(())
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) -> Result<()> {
        if let State::Writing(Some(intake), _) = &mut self.state {
            intake.flush()?;
        }
        Ok(())
    }
}

/// No call uses as many tokens: who says so counts something else.
const MOST_TOKENS: u64 = 1_000_000_000_000;

/// Takes away a usage that cannot be one.
fn plausible(mut item: Item) -> Item {
    let is_junk = |usage: &Usage| usage.total() > MOST_TOKENS;
    match &mut item {
        Item::Said(said) if said.message.usage.as_ref().is_some_and(is_junk) => {
            said.message.usage = None;
        }
        Item::Used(used) if is_junk(&used.usage) => used.usage = Usage::default(),
        Item::Summarised(summary) if summary.usage.as_ref().is_some_and(is_junk) => {
            summary.usage = None;
        }
        _ => {}
    }
    item
}

/// Returns the earlier of two times, as far as they are known.
pub(super) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// What is said to be older than this was said by a clock that is wrong: 2000-01-01.
const EARLIEST: i64 = 946_684_800_000;

/// The longest title or tag that is taken over.
const LONGEST: usize = 1_000;

fn short(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(LONGEST).collect())
}

/// Returns a name that a record can carry.
fn name_of(name: &str) -> Option<String> {
    let fits = !name.is_empty() && name.len() <= 256 && !name.chars().any(char::is_control);
    fits.then(|| name.to_owned())
}

/// Returns a cost that a record can carry.
fn cost_of(cost: Option<f64>) -> Option<f64> {
    cost.filter(|cost| cost.is_finite() && *cost >= 0.0)
}

fn draft(said: Said, at: Timestamp) -> Draft {
    let mut draft = Draft::from(said.message).id(said.key).at(at);
    if let Some(model) = said.model.as_deref().and_then(name_of) {
        draft = draft.model(model);
    }
    if let Some(id) = said.response_id.as_deref().and_then(name_of) {
        draft = draft.response_id(id);
    }
    if let Some(duration) = said.duration_ms {
        draft = draft.duration_ms(duration);
    }
    if let Some(cost) = cost_of(said.cost_usd) {
        draft = draft.cost_usd(cost);
    }
    draft
}

fn call_usage(used: Used, at: Timestamp) -> CallUsage {
    let mut call = CallUsage::new(used.key, at, used.response_id, used.usage);
    call.model = used.model.as_deref().and_then(name_of);
    call.duration_ms = used.duration_ms;
    call.cost_usd = cost_of(used.cost_usd);
    call
}

fn compaction(summarised: Summarised, at: Timestamp) -> Compaction {
    let kept_secret = "(The agent keeps this summary to itself.)".to_owned();
    let summary = match summarised.summary.trim().is_empty() {
        true => kept_secret,
        false => summarised.summary,
    };
    let mut compaction = Compaction::new(summary)
        .keep(summarised.keep)
        .at(at)
        .id(summarised.key);
    if let Some(model) = summarised.model.as_deref().and_then(name_of) {
        compaction = compaction.model(model);
    }
    if let Some(covers) = summarised.covers {
        compaction = compaction.covers(covers);
    }
    if let Some(usage) = summarised.usage {
        compaction = compaction.usage(usage);
    }
    compaction
}

//! Shared support for tests of crash safety: a writer that keeps a diary, and the check
//! that a store contains what the diary says it must.

use std::path::{Path, PathBuf};

use backtrail::{
    Block, Draft, Durability, Error, ErrorKind, Message, Note, Reason, RecordKind, RecordRef,
    Result, Session, SessionId, SessionOptions, SessionReader, Storage, Store, StoreOptions,
};
use backtrail_testkit::{FaultyStorage, Loss, ManualClock, MemoryStorage, SeededRandomness};

/// Where stores are kept; the directories above it do not exist at first either.
pub(crate) const ROOT: &str = "/home/u/store";
/// A trail is full after two or three of the writer's records.
const ROTATION: u64 = 800;

pub(crate) const EVERY_DURABILITY: [Durability; 3] =
    [Durability::Record, Durability::Batch, Durability::Os];

/// The problem that a check found.
pub(crate) type Checked<T = ()> = std::result::Result<T, String>;

/// A recorded item that no other attempt records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Message(String),
    Note(String),
}

/// An attempt to record something, with the seq if it was acknowledged.
#[derive(Debug, Clone)]
struct Attempt {
    said: Said,
    seq: Option<u64>,
}

/// All attempts in one session, in order.
#[derive(Debug, Clone)]
pub(crate) struct Diary {
    pub(crate) id: SessionId,
    attempts: Vec<Attempt>,
}

/// How much of the diary must be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Everything that was acknowledged.
    Acknowledged,
    /// Anything, but nothing that was not attempted.
    Whatever,
}

/// What may be wrong with the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaws {
    None,
    /// Damage that a repair bypassed.
    Repaired,
    /// An unfinished last line.
    Unfinished,
    /// Anything: unsynced pages were lost.
    Any,
}

impl Diary {
    pub(crate) fn of(session: &Session) -> Self {
        Self {
            id: session.id().clone(),
            attempts: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, said: Said, outcome: &Result<u64>) {
        let seq = outcome.as_ref().ok().copied();
        self.attempts.push(Attempt { said, seq });
    }

    /// Strikes out the record `seq`, which the test itself destroyed.
    pub(crate) fn strike_out(&mut self, seq: u64) {
        self.attempts.retain(|attempt| attempt.seq != Some(seq));
    }

    /// Strikes out missing records, which must not reappear either.
    pub(crate) fn strike_out_lost(&mut self, reader: &SessionReader) -> Checked {
        let (history, _) = history(reader)?;
        self.attempts
            .retain(|attempt| history.iter().any(|(_, said)| *said == attempt.said));
        Ok(())
    }

    /// Checks that a session's history is what was attempted, in that order, each item
    /// once and under its number, with nothing missing.
    pub(crate) fn check(&self, reader: &SessionReader, kept: Kept, flaws: Flaws) -> Checked {
        let (history, damaged) = history(reader)?;
        if damaged && !matches!(flaws, Flaws::Any | Flaws::Repaired) {
            return Err("reading passed over damage".to_owned());
        }
        let mut attempts = self.attempts.iter();
        for (seq, said) in &history {
            loop {
                let Some(attempt) = attempts.next() else {
                    return Err(format!("record {seq} was never said here: {said:?}"));
                };
                if attempt.said == *said {
                    attempt.check_seq(*seq)?;
                    break;
                }
                attempt.check_missing(kept)?;
            }
        }
        for attempt in attempts {
            attempt.check_missing(kept)?;
        }
        check_files(reader, flaws)
    }
}

impl Attempt {
    fn check_seq(&self, found: u64) -> Checked {
        match self.seq {
            Some(seq) if seq != found => Err(format!(
                "{:?} was acknowledged as {seq} and is {found}",
                self.said
            )),
            _ => Ok(()),
        }
    }

    fn check_missing(&self, kept: Kept) -> Checked {
        match self.seq {
            Some(seq) if kept == Kept::Acknowledged => {
                Err(format!("record {seq} is lost: {:?}", self.said))
            }
            _ => Ok(()),
        }
    }
}

/// Checks every line of every trail.
fn check_files(reader: &SessionReader, flaws: Flaws) -> Checked {
    let report = reader.verify().map_err(|error| told("verify", &error))?;
    let allowed = |reason: &Reason| match flaws {
        Flaws::None | Flaws::Repaired => false,
        Flaws::Unfinished => *reason == Reason::Unfinished,
        Flaws::Any => true,
    };
    match report.damage.first().iter().find(|d| !allowed(&d.reason)) {
        Some(damage) => Err(format!("verify says: {damage}")),
        None => Ok(()),
    }
}

/// Reads a history through every reader and checks that they agree; returns it, and
/// whether damage was skipped.
pub(crate) fn history(reader: &SessionReader) -> Checked<(Vec<(u64, Said)>, bool)> {
    let mut history = Vec::new();
    let mut records = reader.records().map_err(|e| told("records", &e))?;
    while let Some(record) = records.next().map_err(|e| told("records", &e))? {
        history.push(read(&record)?);
    }
    let damaged = !records.damage().is_empty();
    if !history.is_sorted_by(|(a, _), (b, _)| a < b) {
        return Err(format!("the numbers do not grow: {history:?}"));
    }
    let mut back = Vec::new();
    let mut records = reader
        .records_back()
        .map_err(|e| told("records_back", &e))?;
    while let Some(record) = records.next().map_err(|e| told("records_back", &e))? {
        back.push(read(&record)?);
    }
    back.reverse();
    if back != history {
        return Err(format!("forwards {history:?}\nbackwards {back:?}"));
    }
    check_single(reader, &history)?;
    check_last(reader, &history)?;
    Ok((history, damaged))
}

fn check_single(reader: &SessionReader, history: &[(u64, Said)]) -> Checked {
    let first = history.first().map_or(0, |(seq, _)| *seq);
    let last = history.last().map_or(0, |(seq, _)| *seq);
    for seq in [0, first, first.midpoint(last), last, last + 1] {
        let found = reader.record(seq).map_err(|e| told("record", &e))?;
        let found = found.map(|record| read(&record.as_ref())).transpose()?;
        let expected = history.iter().find(|(n, _)| *n == seq);
        if found.as_ref() != expected {
            return Err(format!("record({seq}) is {found:?}, not {expected:?}"));
        }
    }
    Ok(())
}

/// Checks that each record read by its number is the one that sequential reading gives.
pub(crate) fn check_record_by_record(reader: &SessionReader) -> Checked {
    let (history, _) = history(reader)?;
    for (seq, said) in &history {
        let found = reader.record(*seq).map_err(|e| told("record", &e))?;
        let found = found.map(|record| read(&record.as_ref())).transpose()?;
        if found.as_ref() != Some(&(*seq, said.clone())) {
            return Err(format!("record({seq}) is {found:?}, not {said:?}"));
        }
    }
    Ok(())
}

fn check_last(reader: &SessionReader, history: &[(u64, Said)]) -> Checked {
    for count in [0, 1, 3, history.len() + 1] {
        let last = reader.last_records(count);
        let last = last.map_err(|e| told("last_records", &e))?;
        let found: Checked<Vec<_>> = last.iter().map(|record| read(&record.as_ref())).collect();
        let expected = &history[history.len().saturating_sub(count)..];
        if found? != expected {
            return Err(format!("last_records({count}) differ from {expected:?}"));
        }
    }
    Ok(())
}

fn read(record: &RecordRef<'_>) -> Checked<(u64, Said)> {
    let said = match record.kind() {
        RecordKind::Message => {
            let message = record.message().map_err(|e| told("message", &e))?;
            Said::Message(words(&message.expect("it is one")))
        }
        RecordKind::Note => {
            let fields: serde_json::Value =
                serde_json::from_slice(record.bytes()).map_err(|e| e.to_string())?;
            Said::Note(fields["title"].as_str().unwrap_or_default().to_owned())
        }
        other => return Err(format!("a record of kind {other:?} was never written")),
    };
    Ok((record.seq(), said))
}

/// Returns the text and media of a message.
fn words(message: &Message) -> String {
    let shown = message.blocks.iter().filter_map(|block| match block {
        Block::Media(media) => Some(media.data.as_str()),
        _ => None,
    });
    message.text().into_owned() + &shown.collect::<String>()
}

fn told(what: &str, error: &Error) -> String {
    format!("{what}: {error:?}")
}

/// Checks the sessions of a store against their diaries. Unacknowledged sessions may
/// exist, but must not cause problems.
pub(crate) fn check_store(store: &Store, diaries: &[Diary], kept: Kept, flaws: Flaws) -> Checked {
    for (id, info) in store.infos().map_err(|e| told("infos", &e))? {
        let info = info.map_err(|e| told("info", &e))?;
        if info.id != id {
            return Err(format!("the info of {id} is that of {}", info.id));
        }
    }
    for diary in diaries {
        let reader = match store.read_session(&diary.id) {
            Err(error) if error.kind() == ErrorKind::NotFound && kept == Kept::Whatever => continue,
            opened => opened.map_err(|e| format!("session {} is lost: {e:?}", diary.id))?,
        };
        diary.check(&reader, kept, flaws)?;
    }
    Ok(())
}

/// A writer that continues after errors as an agent would, and keeps a diary.
#[derive(Debug)]
pub(crate) struct DiaryWriter {
    pub(crate) memory: MemoryStorage,
    pub(crate) disk: FaultyStorage,
    pub(crate) diaries: Vec<Diary>,
    pub(crate) errors: Vec<Error>,
    durability: Durability,
    rotation: u64,
    random: SeededRandomness,
    store: Option<Store>,
    session: Option<Session>,
    failed_before: bool,
    words: u32,
}

impl DiaryWriter {
    pub(crate) fn new(durability: Durability) -> Self {
        Self::on(MemoryStorage::new(), durability, SeededRandomness::new(1))
    }

    fn on(memory: MemoryStorage, durability: Durability, random: SeededRandomness) -> Self {
        Self {
            disk: FaultyStorage::new(memory.clone()),
            memory,
            diaries: Vec::new(),
            errors: Vec::new(),
            durability,
            rotation: ROTATION,
            random,
            store: None,
            session: None,
            failed_before: false,
            words: 0,
        }
    }

    /// Sets the length at which trails are rotated.
    pub(crate) fn rotating_at(self, rotation: u64) -> Self {
        Self { rotation, ..self }
    }

    /// Returns a writer that continues with the same diaries on another disk.
    pub(crate) fn moved_to(&self, memory: MemoryStorage) -> Self {
        Self {
            diaries: self.diaries.clone(),
            words: self.words,
            rotation: self.rotation,
            ..Self::on(memory, self.durability, self.random.clone())
        }
    }

    /// Opens the store, creating it if necessary.
    pub(crate) fn store(&mut self) -> Option<Store> {
        if self.store.is_none() {
            let opened = self.options().open_or_create(ROOT);
            self.store = self.or_note_error(opened);
        }
        self.store.clone()
    }

    fn options(&self) -> StoreOptions {
        StoreOptions::new()
            .storage(self.disk.clone())
            .clock(ManualClock::new(1_794_729_600_000))
            .randomness(self.random.clone())
            .durability(self.durability)
            .rotation(self.rotation)
    }

    /// Opens the last session for writing, or creates one.
    pub(crate) fn session(&mut self) -> Option<Session> {
        if self.session.is_none() {
            let store = self.store()?;
            let last = self.diaries.last().map(|diary| diary.id.clone());
            let opened = match &last {
                Some(id) => store.open_session(id),
                None => store.create_session(SessionOptions::new().title("t")),
            };
            self.session = self.or_note_error(opened);
            if let (None, Some(session)) = (last, &self.session) {
                self.diaries.push(Diary::of(session));
            }
        }
        self.session.clone()
    }

    /// Creates a new session in place of the last.
    pub(crate) fn begin(&mut self) {
        self.leave();
        let Some(store) = self.store() else { return };
        let created = store.create_session(SessionOptions::new().title("another"));
        if let Some(session) = self.or_note_error(created) {
            self.diaries.push(Diary::of(&session));
            self.session = Some(session);
        }
    }

    /// Appends a text. After a second failure the session is opened again.
    pub(crate) fn say(&mut self) {
        let Some(session) = self.session() else {
            return;
        };
        let text = self.text();
        let outcome = session.append(Message::user_text(text.as_str()));
        self.write(Said::Message(text), outcome);
    }

    /// Appends a message with a [`picture`](Self::picture).
    pub(crate) fn show(&mut self) {
        let Some(session) = self.session() else {
            return;
        };
        let message = self.picture();
        let outcome = session.append(message.clone());
        self.write(Said::Message(words(&message)), outcome);
    }

    /// Appends several texts at once.
    pub(crate) fn say_batch(&mut self, count: usize) {
        let Some(session) = self.session() else {
            return;
        };
        let texts: Vec<String> = (0..count).map(|_| self.text()).collect();
        let drafts = texts.iter().map(|text| Message::user_text(text.as_str()));
        let outcomes = session.append_batch(drafts.map(Draft::from));
        assert_eq!(outcomes.len(), count);
        for (text, outcome) in texts.into_iter().zip(outcomes) {
            self.write(Said::Message(text), outcome);
        }
    }

    /// Adds a note, as another process would.
    pub(crate) fn note(&mut self) {
        let (Some(store), Some(id)) = (self.store(), self.diaries.last().map(|d| d.id.clone()))
        else {
            return;
        };
        let title = self.text();
        let outcome = store.note(&id, &Note::new().title(title.as_str()));
        self.write(Said::Note(title), outcome);
    }

    /// Closes the session.
    pub(crate) fn close(&mut self) {
        if let Some(session) = self.session.take() {
            let closed = session.close();
            self.or_note_error(closed);
        }
    }

    /// Drops the session.
    pub(crate) fn leave(&mut self) {
        self.session = None;
    }

    /// Repairs the last session.
    pub(crate) fn repair(&mut self) {
        self.leave();
        let (Some(store), Some(id)) = (self.store(), self.diaries.last().map(|d| d.id.clone()))
        else {
            return;
        };
        let repaired = store.repair_plan(&id).and_then(|plan| plan.apply());
        self.or_note_error(repaired);
    }

    /// Leaves half a line at the end of the last session's head trail, as a process does
    /// that is killed while it writes.
    pub(crate) fn tear(&mut self) {
        if self.disk.crashed() {
            return;
        }
        let Some(path) = self.trails().pop() else {
            return;
        };
        let bytes = self.memory.read(&path).expect("it was listed");
        let Some(lines) = bytes.strip_suffix(b"\n") else {
            return;
        };
        let start = lines.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let half = start + (lines.len() - start) / 2;
        let file = self.memory.open_append(&path).expect("it was listed");
        // On a full disk it is less than half.
        file.append(&bytes[start..half]).ok();
    }

    /// Returns the trails of the last session, lowest first.
    pub(crate) fn trails(&self) -> Vec<PathBuf> {
        let Some(diary) = self.diaries.last() else {
            return Vec::new();
        };
        let dir = Path::new(ROOT).join("sessions").join(diary.id.as_str());
        let mut files = self.memory.files();
        files.retain(|path| {
            path.parent() == Some(&dir) && path.extension().is_some_and(|ext| ext == "jsonl")
        });
        files
    }

    /// Returns the next text.
    pub(crate) fn text(&mut self) -> String {
        self.words += 1;
        format!("said as number {}, \"quoted\" and\nbroken", self.words)
    }

    /// Returns a message with one of three pictures.
    fn picture(&mut self) -> Message {
        let text = self.text();
        let data = ["AAECAwQF", "bbbb", "+/+/"][self.words as usize % 3].repeat(100);
        let picture = Block::image("image/png", data).expect("a string is JSON");
        Message::assistant([Block::text(text), picture])
    }

    fn write(&mut self, said: Said, outcome: Result<u64>) {
        let diary = self.diaries.last_mut().expect("a session was acknowledged");
        diary.write(said, &outcome);
        let failed = self.or_note_error(outcome).is_none();
        if failed && self.failed_before {
            self.leave();
        }
        self.failed_before = failed;
    }

    fn or_note_error<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.errors.push(error);
                None
            }
        }
    }
}

/// How a machine or a process ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// The process is killed; its writes are in the page cache.
    Kill,
    /// The power is cut.
    Power(Loss),
}

impl End {
    pub(crate) fn of(self, memory: &MemoryStorage) -> MemoryStorage {
        match self {
            Self::Kill => memory.kill(),
            Self::Power(loss) => memory.crash(loss),
        }
    }

    /// Returns how much must be present afterwards.
    pub(crate) fn keeps(self, durability: Durability) -> Kept {
        match (durability, self) {
            (Durability::Os, Self::Power(loss)) if loss != Loss::Nothing => Kept::Whatever,
            _ => Kept::Acknowledged,
        }
    }

    /// Returns what may be wrong with the files before a repair.
    pub(crate) fn leaves(self) -> Flaws {
        match self {
            Self::Power(Loss::Shuffled { .. }) => Flaws::Any,
            _ => Flaws::Unfinished,
        }
    }
}

/// Checks what the next process finds after the machine stopped, lets it write, and cuts
/// its power as well.
pub(crate) fn check_after(writer: &DiaryWriter, end: End, durability: Durability) -> Checked {
    let kept = end.keeps(durability);
    let mut next = writer.moved_to(end.of(&writer.memory));
    let store = next.store().ok_or_else(|| next.last_error())?;
    check_store(&store, &next.diaries, kept, end.leaves())?;
    if let End::Power(_) = end {
        // Everything present is durable now, and everything else is lost.
        next.strike_out_lost()?;
    }
    let flaws = match end.leaves() {
        Flaws::Unfinished => Flaws::None,
        other => other,
    };
    check_goes_on(&mut next, flaws)
}

/// Checks that an intact store can be used: every session accepts another record, a new
/// one can be created, and all of it survives a power cut that loses unsynced data.
pub(crate) fn check_goes_on(next: &mut DiaryWriter, flaws: Flaws) -> Checked {
    next.say();
    next.say();
    next.close();
    next.begin();
    next.say();
    next.close();
    if let Some(error) = next.errors.first() {
        return Err(format!("cannot go on: {error:?}"));
    }
    let flaws = match flaws {
        Flaws::Any => next.repair_all().map(|()| Flaws::Repaired)?,
        other => other,
    };
    let mut last = next.moved_to(next.memory.crash(Loss::Unsynced));
    let store = last.store().ok_or_else(|| last.last_error())?;
    check_store(&store, &last.diaries, Kept::Acknowledged, flaws)
        .map_err(|wrong| format!("after a second power cut: {wrong}"))
}

impl DiaryWriter {
    /// Strikes out missing records in all diaries.
    pub(crate) fn strike_out_lost(&mut self) -> Checked {
        let store = self.store().ok_or_else(|| self.last_error())?;
        let mut diaries = Vec::new();
        for mut diary in std::mem::take(&mut self.diaries) {
            if let Ok(reader) = store.read_session(&diary.id) {
                diary.strike_out_lost(&reader)?;
                diaries.push(diary);
            }
        }
        self.diaries = diaries;
        Ok(())
    }

    /// Repairs every session and checks that nothing is wrong afterwards.
    pub(crate) fn repair_all(&mut self) -> Checked {
        let store = self.store().ok_or_else(|| self.last_error())?;
        for diary in &self.diaries {
            let plan = store.repair_plan(&diary.id).map_err(|e| told("plan", &e))?;
            plan.apply().map_err(|e| told("repair", &e))?;
        }
        check_store(&store, &self.diaries, Kept::Acknowledged, Flaws::Repaired)
            .map_err(|wrong| format!("after a repair: {wrong}"))
    }

    fn last_error(&self) -> String {
        format!("cannot open the store: {:?}", self.errors.last())
    }
}

//! What the tests of old sessions share: files of version 1, a disk that writes down
//! which file is opened and read, and a look through every door.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use backtrail::verify::DamageReport;
use backtrail::{
    Reason, Record, RecordKind, RecordRef, Result, SessionId, SessionReader, Storage, StorageFile,
    Store, StoreOptions, Transcript,
};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

pub(crate) const ROOT: &str = "/store";
/// The directory of other programs' files.
const DESK: &str = "/desk";
/// When the store's clock starts: after every time in the files.
pub(crate) const NOW: i64 = 1_794_729_600_000;

/// A file as version 1 writes it. Its records have the numbers of their lines.
pub(crate) const LINES: &str = r#"{"created_at_ms":1794726326111,"fork":{"branch_name":"try-2","parent_session_id":"session-1794726326110-0"},"model":"m","session_id":"session-1794726326112-1","type":"session_meta","updated_at_ms":1794726326113,"version":1,"workspace_root":"/home/u/proj"}
{"count":2,"removed_message_count":12,"summary":"they met before","type":"compaction"}
{"text":"fix the bug","timestamp_ms":1794726326114,"type":"prompt_history"}
{"message":{"blocks":[{"text":"fix the bug","type":"text"}],"role":"user"},"type":"message"}
{"message":{"blocks":[{"signature":"EqoB","thinking":"Let me look.","type":"thinking"},{"id":"toolu_01","input":"{\"command\":\"ls\"}","name":"bash","type":"tool_use"}],"role":"assistant","usage":{"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"input_tokens":10,"output_tokens":4}},"type":"message"}
{"message":{"blocks":[{"is_error":false,"output":"src\n","tool_name":"bash","tool_use_id":"toolu_01","type":"tool_result"}],"role":"tool"},"type":"message"}
{"message":{"blocks":[{"id":"toolu_02","input":"echo hi","name":"bash","type":"tool_use"}],"role":"assistant"},"type":"message"}
{"message":{"blocks":[{"is_error":true,"output":"no","tool_name":"bash","tool_use_id":"toolu_02","type":"tool_result"}],"role":"tool"},"type":"message"}
{"message":{"blocks":[{"text":"It is done.","type":"text"}],"role":"assistant"},"type":"message"}
"#;

/// The same talk as one object, without a newline at its end.
pub(crate) fn object() -> String {
    let messages: Vec<&str> = LINES
        .lines()
        .filter_map(|line| {
            line.strip_prefix("{\"message\":")?
                .strip_suffix(",\"type\":\"message\"}")
        })
        .collect();
    format!(
        "{{\"compaction\":{{\"count\":2,\"removed_message_count\":12,\
         \"summary\":\"they met before\"}},\"messages\":[{}],\"version\":1}}",
        messages.join(",")
    )
}

/// A message of version 1 on a line of its own.
pub(crate) fn message(text: &str) -> String {
    format!(
        "{{\"message\":{{\"blocks\":[{{\"text\":\"{text}\",\"type\":\"text\"}}],\
         \"role\":\"user\"}},\"type\":\"message\"}}\n"
    )
}

/// A meta of version 1 on a line of its own.
pub(crate) fn meta(id: &str) -> String {
    format!(
        "{{\"created_at_ms\":1794726326111,\"session_id\":\"{id}\",\"type\":\"session_meta\",\
         \"updated_at_ms\":1794726326113,\"version\":1}}\n"
    )
}

/// A disk with a store on it, and another program's directory beside it.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) memory: MemoryStorage,
    pub(crate) store: Store,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let memory = MemoryStorage::new();
        memory.create_dir(Path::new(DESK)).unwrap();
        memory.sync_dir(Path::new("/")).unwrap();
        Self::on(memory)
    }

    /// Opens the store on a disk that has one, or makes it.
    pub(crate) fn on(memory: MemoryStorage) -> Self {
        let store = options(memory.clone()).open_or_create(ROOT).unwrap();
        Self { memory, store }
    }

    /// Opens the store again, with trails that continue in a new file past `rotation`.
    pub(crate) fn rotating_at(self, rotation: u64) -> Self {
        let store = options(self.memory.clone()).rotation(rotation).open(ROOT);
        Self {
            store: store.unwrap(),
            ..self
        }
    }

    /// Puts a file on the desk.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = Path::new(DESK).join(name);
        self.memory.write(&path, bytes.as_ref()).unwrap();
        path
    }

    /// Puts a file on the desk and loads it.
    pub(crate) fn try_load(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<Transcript> {
        let path = self.put(name, bytes);
        Transcript::load_from_place(path, Arc::new(self.memory.clone()))
    }

    /// Makes a session as an earlier version did that imported a file: the file's bytes
    /// are the first trail, and the second one says so.
    pub(crate) fn old_session(&self, name: &str, bytes: impl AsRef<[u8]>) -> SessionId {
        let id = self.half_session(name, bytes);
        self.store.open_session(&id).unwrap().close().unwrap();
        id
    }

    /// Makes a session whose import died between both trails.
    pub(crate) fn half_session(&self, name: &str, bytes: impl AsRef<[u8]>) -> SessionId {
        let loaded = self.try_load(name, bytes.as_ref());
        let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let id = loaded.session_id().clone();
        let first = trail(&id, 0);
        self.memory.create_dir(first.parent().unwrap()).unwrap();
        self.memory.write(&first, bytes.as_ref()).unwrap();
        for dir in first.ancestors().skip(1) {
            self.memory.sync_dir(dir).unwrap();
        }
        id
    }

    pub(crate) fn reader(&self, id: &SessionId) -> SessionReader {
        self.store.read_session(id).unwrap()
    }

    pub(crate) fn trail(&self, id: &SessionId, number: u32) -> PathBuf {
        trail(id, number)
    }

    /// Returns all that is on the disk.
    pub(crate) fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.memory.files().into_iter();
        files
            .map(|path| (path.clone(), self.memory.read(&path).unwrap()))
            .collect()
    }
}

pub(crate) fn trail(id: &SessionId, number: u32) -> PathBuf {
    Path::new(ROOT)
        .join("sessions")
        .join(id.as_str())
        .join(format!("{number:04}.jsonl"))
}

pub(crate) fn options(storage: impl Storage) -> StoreOptions {
    StoreOptions::new()
        .storage(storage)
        .clock(ManualClock::new(NOW))
        .randomness(SeededRandomness::new(7))
}

/// Returns the text of a record in a word or two.
pub(crate) fn word(record: &RecordRef<'_>) -> String {
    let kind = record.kind();
    match record.message() {
        Ok(Some(message)) => match message.text() {
            text if text.is_empty() => format!("{}…", message.role),
            text => text.into_owned(),
        },
        Ok(None) if kind == RecordKind::Compaction => "*".to_owned(),
        Ok(None) => kind.as_str().to_owned(),
        Err(error) => format!("unreadable: {error}"),
    }
}

/// Reads a history from both ends, checks that they agree, and returns it with how
/// many places were skipped.
pub(crate) fn both_ends(reader: &SessionReader) -> (Vec<(u64, String)>, u64) {
    let mut history = Vec::new();
    let mut records = reader.records().unwrap();
    while let Some(record) = records.next().unwrap() {
        history.push((record.seq(), word(&record)));
    }
    assert!(history.is_sorted_by(|(a, _), (b, _)| a < b), "{history:?}");
    check_backwards(reader, &history, records.damage());
    (history, records.damage().count())
}

/// Reads a history through every door there is; see [`both_ends`].
pub(crate) fn doors(reader: &SessionReader) -> (Vec<(u64, String)>, u64) {
    let (history, damaged) = both_ends(reader);
    check_followed(reader, &history);
    for count in [0, 1, 3, history.len() + 1] {
        let last = reader.last_records(count).unwrap();
        let last: Vec<u64> = last.iter().map(Record::seq).collect();
        let expected = &history[history.len().saturating_sub(count)..];
        assert!(expected.iter().map(|(seq, _)| seq).eq(&last), "{count}");
    }
    let last = history.last().map_or(0, |(seq, _)| *seq);
    for seq in 0..=last + 1 {
        let found = reader.record(seq).unwrap();
        let found = found.map(|record| (seq, word(&record.as_ref())));
        assert_eq!(found.as_ref(), history.iter().find(|(n, _)| *n == seq));
        let from = reader.records_from(seq).unwrap().owned();
        let from: Vec<u64> = from.map(|record| record.unwrap().seq()).collect();
        let expected = history.iter().map(|(n, _)| *n).filter(|n| *n >= seq);
        assert_eq!(from, expected.collect::<Vec<_>>(), "from {seq}");
    }
    (history, damaged)
}

/// Returns the places that cannot be read. A link is only checked forwards.
fn lost(damage: &DamageReport) -> usize {
    let places = damage.first().iter();
    places
        .filter(|damage| !matches!(damage.reason, Reason::BrokenLink(_)))
        .count()
}

fn check_backwards(reader: &SessionReader, history: &[(u64, String)], damage: &DamageReport) {
    let mut back = Vec::new();
    let mut records = reader.records_back().unwrap();
    while let Some(record) = records.next().unwrap() {
        back.push((record.seq(), word(&record)));
    }
    back.reverse();
    assert_eq!(back, history);
    assert_eq!(lost(records.damage()), lost(damage), "{damage:?}");
}

fn check_followed(reader: &SessionReader, history: &[(u64, String)]) {
    let mut followed = Vec::new();
    let mut follower = reader.follow().unwrap();
    while let Some(record) = follower.poll().unwrap() {
        followed.push((record.seq(), word(&record)));
    }
    assert_eq!(followed, history);
}

/// Joins the words of a history in which nothing is damaged.
pub(crate) fn line(reader: &SessionReader) -> String {
    let (history, damaged) = both_ends(reader);
    assert_eq!(damaged, 0);
    let words: Vec<String> = history.into_iter().map(|(_, word)| word).collect();
    words.join(" ")
}

/// What was done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    OpenedToRead,
    Read(usize),
    /// Anything that could change it, its name included.
    Changed(&'static str),
}

/// A disk that writes down what is done to each file.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    inner: MemoryStorage,
    seen: Arc<Mutex<Vec<(PathBuf, Done)>>>,
}

impl Watched {
    pub(crate) fn new(inner: MemoryStorage) -> Self {
        Self {
            inner,
            seen: Arc::default(),
        }
    }

    /// Returns what was done to a file since the last call.
    pub(crate) fn take(&self, path: &Path) -> Vec<Done> {
        let mut seen = self.seen.lock().unwrap();
        let (of_it, rest) = std::mem::take(&mut *seen)
            .into_iter()
            .partition::<Vec<_>, _>(|(at, _)| at == path);
        *seen = rest;
        of_it.into_iter().map(|(_, done)| done).collect()
    }

    fn note(&self, path: &Path, done: Done) {
        self.seen.lock().unwrap().push((path.to_owned(), done));
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(WatchedFile {
            inner,
            watch: self.clone(),
            path: path.to_owned(),
        })
    }
}

impl Storage for Watched {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.note(path, Done::Changed("created"));
        Ok(self.wrap(path, self.inner.create_new(path)?))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.note(path, Done::Changed("opened to append"));
        Ok(self.wrap(path, self.inner.open_append(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.note(path, Done::OpenedToRead);
        Ok(self.wrap(path, self.inner.open_read(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.note(path, Done::Changed("made"));
        self.inner.create_dir(path)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(from, Done::Changed("linked from"));
        self.note(to, Done::Changed("linked to"));
        self.inner.link_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.note(path, Done::Changed("removed"));
        self.inner.remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

#[derive(Debug)]
struct WatchedFile {
    inner: Arc<dyn StorageFile>,
    watch: Watched,
    path: PathBuf,
}

impl WatchedFile {
    fn changed(&self, how: &'static str) -> &dyn StorageFile {
        self.watch.note(&self.path, Done::Changed(how));
        self.inner.as_ref()
    }
}

impl StorageFile for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let n = self.inner.read_at(buf, offset)?;
        self.watch.note(&self.path, Done::Read(n));
        Ok(n)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.changed("appended to").append(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.changed("cut").truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn lock(&self) -> io::Result<()> {
        self.changed("locked").lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.changed("locked").try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }
}

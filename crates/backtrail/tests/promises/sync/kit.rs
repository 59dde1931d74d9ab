//! Two stores on disks in memory, and a replica between them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use backtrail::replica::{
    Answer, BlobName, LogKey, LogOwner, PullOptions, PushOptions, Replica, ReplicaError,
    ReplicaErrorKind, Request, Transfer, Transferred,
};
use backtrail::{
    Block, Error, ForkOptions, Message, Note, Result, SessionId, SessionOptions, SessionReader,
    Storage, Store, StoreOptions, ToolUse,
};
use backtrail_testkit::replica::MemoryReplica;
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

pub(crate) const NOW: i64 = 1_794_729_600_000;
/// A trail is full after a few records.
const ROTATION: u64 = 3000;

pub(crate) fn replica() -> MemoryReplica {
    MemoryReplica::new(ManualClock::new(NOW))
}

/// A store, and its disk.
pub(crate) struct Side {
    pub(crate) disk: MemoryStorage,
    pub(crate) store: Store,
    name: String,
}

pub(crate) fn open(disk: impl Storage, seed: u64) -> Result<Store> {
    StoreOptions::new()
        .storage(disk)
        .clock(ManualClock::new(NOW + i64::try_from(seed).unwrap()))
        .randomness(SeededRandomness::new(seed))
        .rotation(ROTATION)
        .open_or_create("/store")
}

impl Side {
    pub(crate) fn new(seed: u64) -> Self {
        Self::on(MemoryStorage::new(), seed)
    }

    pub(crate) fn on(disk: MemoryStorage, seed: u64) -> Self {
        Self {
            store: open(disk.clone(), seed).unwrap(),
            disk,
            name: format!("machine {seed}"),
        }
    }

    pub(crate) fn try_push(&self, id: &SessionId, replica: &dyn Replica) -> Transfer {
        let options = PushOptions::new(&self.name);
        let ids = std::slice::from_ref(id);
        self.store
            .push(ids, replica, &options, &mut |_| {})
            .unwrap()
    }

    pub(crate) fn push(&self, id: &SessionId, replica: &dyn Replica) -> Transferred {
        named(self.try_push(id, replica), id).unwrap()
    }

    pub(crate) fn push_error(&self, id: &SessionId, replica: &dyn Replica) -> Error {
        named(self.try_push(id, replica), id).unwrap_err()
    }

    pub(crate) fn try_pull(&self, id: &SessionId, replica: &dyn Replica) -> Transfer {
        let ids = std::slice::from_ref(id);
        let options = PullOptions::new();
        self.store
            .pull(ids, replica, &options, &mut |_| {})
            .unwrap()
    }

    pub(crate) fn pull(&self, id: &SessionId, replica: &dyn Replica) -> Transferred {
        named(self.try_pull(id, replica), id).unwrap()
    }

    pub(crate) fn pull_error(&self, id: &SessionId, replica: &dyn Replica) -> Error {
        named(self.try_pull(id, replica), id).unwrap_err()
    }

    /// Returns the trails and payload files of all sessions.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(&self.disk, |_| true)
    }

    /// Returns the trails of all sessions.
    pub(crate) fn trails(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(&self.disk, |name| name != "payloads")
    }

    pub(crate) fn say(&self, id: &SessionId, text: &str) {
        let session = self.store.open_session(id).unwrap();
        session.append(Message::user_text(text)).unwrap();
        session.close().unwrap();
    }

    pub(crate) fn texts(&self, id: &SessionId) -> Vec<String> {
        texts(&self.store.read_session(id).unwrap())
    }

    pub(crate) fn delete(&self, id: &SessionId) {
        let ids = std::slice::from_ref(id);
        let scope = backtrail::trash::DeleteScope::Named;
        self.store.delete_plan(ids, scope).unwrap().apply().unwrap();
    }

    pub(crate) fn purge(&self, id: &SessionId) {
        let ids = std::slice::from_ref(id);
        let scope = backtrail::trash::DeleteScope::Named;
        self.store.purge_plan(ids, scope).unwrap().apply().unwrap();
    }

    /// Checks every session that is there.
    pub(crate) fn verify(&self) {
        for id in self.store.sessions().unwrap() {
            let reader = self.store.read_session(&id).unwrap();
            let report = reader.verify().unwrap();
            assert!(report.is_ok(), "{id}: {:?}", report.damage.first());
            // Everything that is named can be read.
            texts(&reader);
        }
    }
}

pub(crate) fn texts(reader: &SessionReader) -> Vec<String> {
    let records = reader.records().unwrap().owned();
    let messages = records.filter_map(|record| record.unwrap().message().unwrap());
    messages
        .map(|message| message.text().into_owned())
        .collect()
}

fn files(disk: &MemoryStorage, fits: impl Fn(&str) -> bool) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut paths = disk.files();
    paths.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let is_ours = name.ends_with(".jsonl") || name == "payloads";
        path.starts_with("/store/sessions") && is_ours && fits(name)
    });
    let read = |path: PathBuf| (path.clone(), disk.read(&path).unwrap());
    paths.into_iter().map(read).collect()
}

/// Returns the outcome of the session that was named.
pub(crate) fn named(transfer: Transfer, id: &SessionId) -> Result<Transferred> {
    let mut sessions = transfer.check()?.sessions.into_iter();
    let found = sessions.find(|session| session.id == *id);
    found.expect("every named session has an outcome").outcome
}

/// Asserts that two stores have the same files, with a short message.
pub(crate) fn assert_same(a: &BTreeMap<PathBuf, Vec<u8>>, b: &BTreeMap<PathBuf, Vec<u8>>) {
    let names = |side: &BTreeMap<PathBuf, Vec<u8>>| side.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(a), names(b));
    for (path, bytes) in a {
        let other = &b[path];
        let at = bytes.iter().zip(other).position(|(a, b)| a != b);
        assert!(
            bytes == other,
            "{} differs at {at:?}, lengths {} and {}",
            path.display(),
            bytes.len(),
            other.len()
        );
    }
}

pub(crate) fn picture(n: u8) -> Message {
    let data = ["AAECAwQF", "bbbb", "+/+/"][usize::from(n) % 3].repeat(40 + usize::from(n));
    let picture = Block::image("image/png", data).unwrap();
    Message::assistant([Block::text(format!("picture {n}")), picture])
}

/// The sessions of a story.
pub(crate) struct Story {
    pub(crate) main: SessionId,
    pub(crate) agent: SessionId,
    pub(crate) fork: SessionId,
    pub(crate) fork_of_fork: SessionId,
}

impl Story {
    /// Begins a session with pictures, a rotation, a sub-agent, and a fork of a fork.
    pub(crate) fn begin(store: &Store) -> Self {
        let options = SessionOptions::new().title("story");
        let session = store.create_session(options).unwrap();
        session.append(Message::user_text("begin")).unwrap();
        session.append(picture(1)).unwrap();
        session.append(picture(1)).unwrap();
        session
            .append(Message::user_text("x".repeat(2000)))
            .unwrap();
        session.append(picture(2)).unwrap();
        let call = ToolUse::new("t1", "task", &serde_json::json!({"prompt": "look"})).unwrap();
        session.append(Message::assistant([call.into()])).unwrap();
        let agent = session.spawn("t1", SessionOptions::new()).unwrap();
        agent.append(picture(3)).unwrap();
        let agent_id = agent.id().clone();
        agent.close().unwrap();
        let fork = session.fork(&ForkOptions::new().at(3)).unwrap();
        fork.append(picture(4)).unwrap();
        let fork_of_fork = fork.fork(&ForkOptions::new().branch_name("deep")).unwrap();
        fork_of_fork.append(Message::user_text("deeper")).unwrap();
        let story = Self {
            main: session.id().clone(),
            agent: agent_id,
            fork: fork.id().clone(),
            fork_of_fork: fork_of_fork.id().clone(),
        };
        fork.close().unwrap();
        fork_of_fork.close().unwrap();
        session.close().unwrap();
        store
            .note(&story.main, &Note::new().title("named"))
            .unwrap();
        story
    }

    /// Continues it: a rewind, more pictures, a compaction of the line, and an undo.
    pub(crate) fn go_on(&self, store: &Store) {
        let session = store.open_session(&self.main).unwrap();
        session.append(Message::user_text("more")).unwrap();
        session.append(picture(5)).unwrap();
        session.rewind_chat(2).unwrap();
        session.append(picture(6)).unwrap();
        session
            .append(Message::user_text("y".repeat(3500)))
            .unwrap();
        session
            .append(Message::user_text("after the rewind"))
            .unwrap();
        session.close().unwrap();
        let agent = store.open_session(&self.agent).unwrap();
        agent.append(Message::user_text("found it")).unwrap();
        agent.close().unwrap();
    }
}

pub(crate) fn key(id: &SessionId) -> LogKey {
    LogKey {
        owner: LogOwner::Session,
        id: id.clone(),
    }
}

/// A replica that fails from the nth call on, before it is carried out or after.
#[derive(Debug)]
pub(crate) struct CutOff<'r> {
    replica: &'r MemoryReplica,
    left: AtomicU64,
    carried_out: bool,
}

impl<'r> CutOff<'r> {
    pub(crate) fn new(replica: &'r MemoryReplica, calls: u64, carried_out: bool) -> Self {
        Self {
            replica,
            left: AtomicU64::new(calls),
            carried_out,
        }
    }

    pub(crate) fn fired(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn pass<T>(
        &self,
        call: impl FnOnce() -> std::result::Result<T, ReplicaError>,
    ) -> std::result::Result<T, ReplicaError> {
        let left = self.left.load(Ordering::Relaxed);
        if left > 1 {
            self.left.store(left - 1, Ordering::Relaxed);
            return call();
        }
        if left == 1 && self.carried_out {
            call().ok();
        }
        self.left.store(0, Ordering::Relaxed);
        Err(ReplicaError {
            kind: ReplicaErrorKind::Away,
            message: "cut off".to_owned(),
        })
    }
}

impl Replica for CutOff<'_> {
    fn ask(&self, request: &Request) -> std::result::Result<Answer, ReplicaError> {
        self.pass(|| self.replica.ask(request))
    }

    fn has_blobs(
        &self,
        log: &LogKey,
        names: &[BlobName],
    ) -> std::result::Result<Vec<bool>, ReplicaError> {
        self.pass(|| self.replica.has_blobs(log, names))
    }

    fn put_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        bytes: &[u8],
    ) -> std::result::Result<(), ReplicaError> {
        self.pass(|| self.replica.put_blob(log, name, bytes))
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> std::result::Result<Option<Vec<u8>>, ReplicaError> {
        self.pass(|| self.replica.get_blob(log, name, part))
    }
}

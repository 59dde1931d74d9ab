//! Machines with a store each, and the remote that they share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backtrail::replica::{
    Answer, BlobName, LogKey, LogOwner, Order, Remote, Replica, ReplicaError, ReplicaErrorKind,
    Request, WhenAway,
};
use backtrail::{
    Durability, Message, Session, SessionId, SessionOptions, Storage, Store, StoreOptions,
};
use backtrail_testkit::replica::MemoryReplica;
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

pub(super) const ROOT: &str = "/home/u/store";
/// Longer than any test, so that only a test's clock ends a lease.
pub(super) const LEASE: Duration = Duration::from_secs(3600);

/// A way to the remote that fails on command, and counts what is asked.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    pub(super) replica: MemoryReplica,
    pub(super) clock: ManualClock,
    state: Arc<WireState>,
}

#[derive(Debug, Default)]
struct WireState {
    asked: Mutex<Vec<&'static str>>,
    /// Counts every call, and is compared with the call that fails.
    calls: AtomicU64,
    fault: Mutex<Option<(u64, WireFault)>>,
    fired: AtomicBool,
    away: AtomicBool,
    slow: AtomicU64,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireFault {
    RequestLost,
    AnswerLost,
    /// Nothing comes through from then on.
    AwayFrom,
    /// The call is carried out, and nothing comes through from then on.
    AnswerLostThenAway,
    /// Right before the call, the lease runs out and another machine takes it.
    TakenOver,
}

impl Wire {
    pub(super) fn new() -> Self {
        let clock = ManualClock::new(1_000_000);
        Self {
            replica: MemoryReplica::new(clock.clone()),
            clock,
            state: Arc::default(),
        }
    }

    pub(super) fn arm(&self, call: u64, fault: WireFault) {
        self.state.calls.store(0, Ordering::SeqCst);
        self.state.fired.store(false, Ordering::SeqCst);
        *self.state.fault.lock().unwrap() = Some((call, fault));
    }

    pub(super) fn fired(&self) -> bool {
        self.state.fired.load(Ordering::SeqCst)
    }

    pub(super) fn set_away(&self, away: bool) {
        self.state.away.store(away, Ordering::SeqCst);
        *self.state.fault.lock().unwrap() = None;
    }

    pub(super) fn set_slow(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap();
        self.state.slow.store(by, Ordering::SeqCst);
    }

    /// Returns what was asked since the last time.
    pub(super) fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.state.asked.lock().unwrap())
    }

    fn take_over(&self, log: &LogKey) {
        self.clock.advance(LEASE.as_millis() as i64 + 1);
        let lease = Request::Lease {
            log: log.clone(),
            holder: "b".to_owned(),
            ttl_ms: 1,
            wrapped_key: Vec::new(),
        };
        self.replica.ask(&lease).unwrap();
    }

    fn call<T>(
        &self,
        name: &'static str,
        log: Option<&LogKey>,
        carry_out: impl FnOnce() -> Result<T, ReplicaError>,
    ) -> Result<T, ReplicaError> {
        let state = &self.state;
        state.asked.lock().unwrap().push(name);
        std::thread::sleep(Duration::from_millis(state.slow.load(Ordering::SeqCst)));
        let call = state.calls.fetch_add(1, Ordering::SeqCst);
        if state.away.load(Ordering::SeqCst) {
            return Err(away());
        }
        let fault = *state.fault.lock().unwrap();
        let Some((_, fault)) = fault.filter(|(at, _)| *at == call) else {
            return carry_out();
        };
        state.fired.store(true, Ordering::SeqCst);
        match fault {
            WireFault::RequestLost => {}
            WireFault::AwayFrom => state.away.store(true, Ordering::SeqCst),
            WireFault::AnswerLost => drop(carry_out()),
            WireFault::TakenOver => {
                self.take_over(log.unwrap());
                return carry_out();
            }
            WireFault::AnswerLostThenAway => {
                state.away.store(true, Ordering::SeqCst);
                drop(carry_out());
            }
        }
        Err(away())
    }
}

fn away() -> ReplicaError {
    ReplicaError {
        kind: ReplicaErrorKind::Away,
        message: "the connection was closed".to_owned(),
    }
}

impl Replica for Wire {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        let (name, log) = match request {
            Request::Lease { log, .. } => ("lease", Some(log)),
            Request::Renew { log, .. } => ("renew", Some(log)),
            Request::Release { log, .. } => ("release", Some(log)),
            Request::Append { log, .. } => ("append", Some(log)),
            Request::Begin { log, .. } => ("begin", Some(log)),
            _ => ("other", None),
        };
        self.call(name, log, || self.replica.ask(request))
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        self.call("has", None, || self.replica.has_blobs(log, names))
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        self.call("put", None, || self.replica.put_blob(log, name, bytes))
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        self.call("get", None, || self.replica.get_blob(log, name, part))
    }
}

/// A machine with a disk of its own.
#[derive(Debug, Clone)]
pub(super) struct Machine<S> {
    pub(super) disk: S,
    pub(super) root: PathBuf,
    pub(super) store: Store,
}

pub(super) fn options(wire: &Wire, name: &str, when_away: WhenAway) -> StoreOptions {
    let remote = Remote::new("team", wire.clone(), name)
        .lease(LEASE)
        .when_away(when_away);
    let seed = name
        .bytes()
        .fold(7, |seed, byte| seed * 31 + u64::from(byte));
    StoreOptions::new()
        .clock(ManualClock::new(1_700_000_000_000))
        .randomness(SeededRandomness::new(seed))
        .durability(Durability::Remote)
        .remote(remote)
}

impl Machine<MemoryStorage> {
    pub(super) fn new(wire: &Wire, name: &str) -> Self {
        Self::when_away(wire, name, WhenAway::Fail)
    }

    pub(super) fn when_away(wire: &Wire, name: &str, when_away: WhenAway) -> Self {
        let disk = MemoryStorage::new();
        let options = options(wire, name, when_away).storage(disk.clone());
        Self::on(disk, ROOT.into(), options)
    }
}

impl<S: Storage + Clone> Machine<S> {
    pub(super) fn on(disk: S, root: PathBuf, options: StoreOptions) -> Self {
        let store = options.open_or_create(&root).unwrap();
        Self { disk, root, store }
    }

    pub(super) fn create(&self) -> Session {
        self.store.create_session(SessionOptions::new()).unwrap()
    }

    fn dir(&self, id: &SessionId) -> PathBuf {
        self.root.join("sessions").join(id.as_str())
    }

    /// Returns the names of the files of a session.
    pub(super) fn files(&self, id: &SessionId) -> Vec<String> {
        let names = self.disk.list(&self.dir(id)).unwrap().into_iter();
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the trails of a session, byte for byte.
    pub(super) fn trails(&self, id: &SessionId) -> Vec<(u32, String)> {
        let trails = self.files(id).into_iter().filter_map(|name| {
            let number = name.strip_suffix(".jsonl")?.parse().ok()?;
            Some((number, self.read(&self.dir(id).join(name))))
        });
        trails.collect()
    }

    fn read(&self, path: &Path) -> String {
        let file = self.disk.open_read(path).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        let mut at = 0;
        while at < bytes.len() {
            at += file.read_at(&mut bytes[at..], at as u64).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    }

    /// Makes a session of this store what it is at the remote, as a pull does to one that is its
    /// beginning.
    pub(super) fn pull(&self, wire: &Wire, id: &SessionId) {
        let dir = self.dir(id);
        self.disk.create_dir(&dir).ok();
        for (trail, lines) in there(wire, id) {
            let path = dir.join(format!("{trail:04}.jsonl"));
            self.disk.remove_file(&path).ok();
            let file = self.disk.create_new(&path).unwrap();
            file.append(lines.as_bytes()).unwrap();
            file.sync().unwrap();
        }
        self.disk.sync_dir(&dir).unwrap();
    }
}

/// Returns the trails that the remote has, as the files would be.
pub(super) fn there(wire: &Wire, id: &SessionId) -> Vec<(u32, String)> {
    let log = LogKey {
        owner: LogOwner::Session,
        id: id.clone(),
    };
    let trails = Request::Trails { log: log.clone() };
    let Ok(Answer::Trails(trails)) = wire.replica.ask(&trails) else {
        return Vec::new();
    };
    let read = |trail: u32| {
        let request = Request::Read {
            log: log.clone(),
            trail,
            beyond: None,
            order: Order::Forwards,
            max_bytes: u64::MAX,
        };
        let Ok(Answer::Lines { lines, more: false }) = wire.replica.ask(&request) else {
            panic!("trail {trail} cannot be read");
        };
        let lines = lines.into_iter();
        lines.map(|line| String::from_utf8(line.bytes).unwrap() + "\n")
    };
    let trails = trails.into_iter().map(|status| status.end.trail);
    trails.map(|trail| (trail, read(trail).collect())).collect()
}

/// Checks that the remote has the same trails, byte for byte.
#[track_caller]
pub(super) fn same_there<S: Storage + Clone>(machine: &Machine<S>, wire: &Wire, id: &SessionId) {
    assert_eq!(there(wire, id), machine.trails(id));
}

pub(super) fn user(text: &str) -> Message {
    Message::user_text(text)
}

/// Returns the texts of a session.
pub(super) fn texts(store: &Store, id: &SessionId) -> Vec<String> {
    let reader = store.read_session(id).unwrap();
    let mut records = reader.records().unwrap();
    let mut texts = Vec::new();
    while let Some(record) = records.next().unwrap() {
        if let Some(message) = record.message().unwrap() {
            texts.push(message.text().into_owned());
        }
    }
    assert!(records.damage().is_empty());
    assert!(reader.verify().unwrap().damage.is_empty());
    texts
}

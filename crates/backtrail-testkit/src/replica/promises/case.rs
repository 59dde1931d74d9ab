//! What promises have in common: logs of their own, and requests in few words.

use backtrail::SessionId;
use backtrail::replica::{
    Answer, BlobKind, BlobName, Change, End, Fence, Lease, Line, LogKey, LogOwner, LogStatus,
    Order, PackStatus, Replica, Request, TrailStatus,
};

use super::Control;

/// A time that no test takes.
pub(super) const LONG_MS: u64 = 600_000;
/// A time that a test waits for.
pub(super) const SHORT_MS: u64 = 40;

/// A replica, and what a test can do to it.
pub(super) struct Case<'a> {
    pub(super) replica: &'a dyn Replica,
    pub(super) control: &'a dyn Control,
}

/// A writer: a log, its fence, and the end that it knows.
pub(super) struct Writer<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) log: LogKey,
    pub(super) fence: Fence,
    pub(super) end: End,
}

/// Returns a line whose sum follows from its bytes.
pub(super) fn line(seq: u64, bytes: impl AsRef<[u8]>) -> Line {
    let bytes = bytes.as_ref().to_vec();
    let hash = blake3::hash(&bytes);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hash.as_bytes()[..8]);
    Line { seq, sum, bytes }
}

pub(super) fn end_of(trail: u32, line: &Line) -> End {
    End {
        trail,
        seq: line.seq,
        sum: line.sum,
    }
}

pub(super) fn blob(kind: BlobKind, bytes: &[u8]) -> BlobName {
    BlobName {
        kind,
        hash: *blake3::hash(bytes).as_bytes(),
    }
}

impl<'a> Case<'a> {
    pub(super) fn new(replica: &'a dyn Replica, control: &'a dyn Control) -> Self {
        Self { replica, control }
    }

    /// Returns the name of a log that is not there.
    pub(super) fn log(&self) -> LogKey {
        let id: SessionId = self.control.fresh();
        LogKey {
            owner: LogOwner::Session,
            id,
        }
    }

    pub(super) fn ask(&self, request: &Request) -> Answer {
        let answer = self.replica.ask(request);
        answer.unwrap_or_else(|error| panic!("{request:?}: {error}"))
    }

    pub(super) fn try_lease(&self, log: &LogKey, holder: &str, ttl_ms: u64) -> Answer {
        self.ask(&Request::Lease {
            log: log.clone(),
            holder: holder.to_owned(),
            ttl_ms,
            wrapped_key: Vec::new(),
        })
    }

    pub(super) fn lease(&self, log: &LogKey, holder: &str, ttl_ms: u64) -> Fence {
        match self.try_lease(log, holder, ttl_ms) {
            Answer::Leased { fence, .. } => fence,
            other => panic!("no lease: {other:?}"),
        }
    }

    /// Returns a writer of a new log with a trail 0, whose lease lasts.
    pub(super) fn writer(&'a self) -> Writer<'a> {
        self.writer_of(self.log(), LONG_MS)
    }

    pub(super) fn writer_of(&'a self, log: LogKey, ttl_ms: u64) -> Writer<'a> {
        let fence = self.lease(&log, "first", ttl_ms);
        let opener = line(0, format!("opener of {}", log.id));
        let mut writer = Writer {
            case: self,
            log,
            fence,
            end: end_of(0, &opener),
        };
        let answer = self.ask(&writer.begin(None, 0, &opener));
        assert_eq!(answer, Answer::Appended(end_of(0, &opener)));
        writer.end = end_of(0, &opener);
        writer
    }

    pub(super) fn status(&self, log: &LogKey) -> LogStatus {
        match self.ask(&Request::Status { log: log.clone() }) {
            Answer::Log(status) => status,
            other => panic!("no status: {other:?}"),
        }
    }

    pub(super) fn holder(&self, log: &LogKey) -> Option<String> {
        let lease: Option<Lease> = self.status(log).lease;
        lease.map(|lease| lease.holder)
    }

    pub(super) fn trails(&self, log: &LogKey) -> Vec<TrailStatus> {
        match self.ask(&Request::Trails { log: log.clone() }) {
            Answer::Trails(trails) => trails,
            other => panic!("no trails: {other:?}"),
        }
    }

    pub(super) fn page(
        &self,
        log: &LogKey,
        trail: u32,
        beyond: Option<u64>,
        order: Order,
        max_bytes: u64,
    ) -> (Vec<Line>, bool) {
        let request = Request::Read {
            log: log.clone(),
            trail,
            beyond,
            order,
            max_bytes,
        };
        match self.ask(&request) {
            Answer::Lines { lines, more } => {
                assert!(lines.iter().all(|line| Some(line.seq) != beyond));
                (lines, more)
            }
            other => panic!("no lines: {other:?}"),
        }
    }

    /// Returns all lines of a trail, read in small pages.
    pub(super) fn lines(&self, log: &LogKey, trail: u32) -> Vec<Line> {
        let (mut lines, mut more) = self.page(log, trail, None, Order::Forwards, 300);
        while more {
            let last = lines.last().map(|line| line.seq);
            let (next, still) = self.page(log, trail, last, Order::Forwards, 300);
            assert!(!next.is_empty(), "more, but no line behind {last:?}");
            lines.extend(next);
            more = still;
        }
        lines
    }

    /// Returns all changes of a log.
    pub(super) fn changes_of(&self, log: &LogKey) -> Vec<Change> {
        let mut after = 0;
        let mut found = Vec::new();
        loop {
            let changes = self.changes(after, 500);
            let Some(last) = changes.last() else {
                return found;
            };
            after = last.id;
            found.extend(changes.into_iter().filter(|change| change.log == *log));
        }
    }

    pub(super) fn changes(&self, after: u64, limit: u32) -> Vec<Change> {
        match self.ask(&Request::Changes { after, limit }) {
            Answer::Changes(changes) => {
                assert!(changes.iter().all(|change| change.id > after));
                changes
            }
            other => panic!("no changes: {other:?}"),
        }
    }

    pub(super) fn put(&self, log: &LogKey, kind: BlobKind, bytes: &[u8]) -> BlobName {
        let name = blob(kind, bytes);
        let stored = self.replica.put_blob(log, name, bytes);
        stored.unwrap_or_else(|error| panic!("a blob was not stored: {error}"));
        name
    }

    pub(super) fn has(&self, log: &LogKey, name: BlobName) -> bool {
        let has = self.replica.has_blobs(log, &[name]);
        has.unwrap_or_else(|error| panic!("no answer about a blob: {error}")) == [true]
    }

    pub(super) fn get(&self, log: &LogKey, name: BlobName) -> Option<Vec<u8>> {
        let blob = self.replica.get_blob(log, name, None);
        blob.unwrap_or_else(|error| panic!("a blob was not read: {error}"))
    }

    pub(super) fn statuses(&self, request: &Request) -> Vec<PackStatus> {
        match self.ask(request) {
            Answer::Packs(packs) => packs,
            other => panic!("no packs: {other:?}"),
        }
    }
}

impl Writer<'_> {
    pub(super) fn append(&self, lines: &[Line]) -> Request {
        self.append_with(lines, &[])
    }

    pub(super) fn append_with(&self, lines: &[Line], relies_on: &[[u8; 32]]) -> Request {
        Request::Append {
            log: self.log.clone(),
            fence: self.fence,
            after: self.end,
            lines: lines.to_vec(),
            relies_on: relies_on.to_vec(),
            ttl_ms: LONG_MS,
        }
    }

    pub(super) fn begin(&self, head: Option<End>, trail: u32, opener: &Line) -> Request {
        Request::Begin {
            log: self.log.clone(),
            fence: self.fence,
            head,
            trail,
            opener: opener.clone(),
            relies_on: Vec::new(),
            ttl_ms: LONG_MS,
        }
    }

    /// Appends lines, which has to succeed.
    pub(super) fn write(&mut self, lines: &[Line]) {
        let answer = self.case.ask(&self.append(lines));
        let end = end_of(self.end.trail, lines.last().expect("a line"));
        assert_eq!(answer, Answer::Appended(end));
        self.end = end;
    }

    /// Begins a trail, which has to succeed.
    pub(super) fn turn_to(&mut self, trail: u32, opener: &Line) {
        let answer = self.case.ask(&self.begin(Some(self.end), trail, opener));
        assert_eq!(answer, Answer::Appended(end_of(trail, opener)));
        self.end = end_of(trail, opener);
    }

    /// Has the lease taken by another writer, and returns its fence.
    pub(super) fn superseded(&self) -> Fence {
        let released = Request::Release {
            log: self.log.clone(),
            fence: self.fence,
        };
        assert_eq!(self.case.ask(&released), Answer::Renewed);
        self.case.lease(&self.log, "second", LONG_MS)
    }

    /// Asserts that a request does not succeed and changes nothing.
    pub(super) fn changes_nothing(&self, request: &Request) {
        let before = self.contents();
        let answer = self.case.replica.ask(request);
        assert!(
            !matches!(answer, Ok(Answer::Appended(_) | Answer::Done)),
            "{answer:?}"
        );
        assert_eq!(self.contents(), before, "after {request:?}");
    }

    fn contents(&self) -> Contents {
        let status = self.case.status(&self.log);
        let trails = self.case.trails(&self.log).into_iter().map(|trail| {
            let lines = self.case.lines(&self.log, trail.end.trail);
            (trail, lines)
        });
        let changes = self.case.changes_of(&self.log).len();
        (status.head, status.bytes, trails.collect(), changes)
    }
}

/// A log: its end, its size, its trails with their lines, and how many changes it has.
type Contents = (Option<End>, u64, Vec<(TrailStatus, Vec<Line>)>, usize);

//! What tests have in common: a client in few words, and a look at the bucket from outside.

use backtrail::SessionId;
use backtrail::replica::{
    Answer, BlobKind, BlobName, End, Fence, Line, LogKey, LogOwner, Order, Replica, ReplicaError,
    ReplicaErrorKind, Request,
};
use backtrail_remote::RemoteOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const LONG_MS: u64 = 600_000;

pub(crate) fn fresh_id() -> SessionId {
    static IDS: AtomicU32 = AtomicU32::new(0);
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    format!("log-{}-{id}", std::process::id()).parse().unwrap()
}

pub(crate) fn fresh_log() -> LogKey {
    session(fresh_id().as_str())
}

pub(crate) fn session(id: &str) -> LogKey {
    LogKey {
        owner: LogOwner::Session,
        id: id.parse().unwrap(),
    }
}

pub(crate) fn line(seq: u64, text: impl AsRef<[u8]>) -> Line {
    let bytes = text.as_ref().to_vec();
    let sum = blake3::hash(&bytes).as_bytes()[..8].try_into().unwrap();
    Line { seq, sum, bytes }
}

pub(crate) fn end_of(line: &Line) -> End {
    End {
        trail: 0,
        seq: line.seq,
        sum: line.sum,
    }
}

pub(crate) fn payload(bytes: &[u8]) -> BlobName {
    BlobName {
        kind: BlobKind::Payload,
        hash: *blake3::hash(bytes).as_bytes(),
    }
}

/// Asks until there is an answer, as a client does that was told that the remote is away.
pub(crate) fn insist(replica: &dyn Replica, request: &Request) -> Answer {
    loop {
        match replica.ask(request) {
            Ok(answer) => return answer,
            Err(error) => assert_away(&error),
        }
    }
}

pub(crate) fn assert_away(error: &ReplicaError) {
    assert_eq!(error.kind, ReplicaErrorKind::Away, "{error}");
    std::thread::sleep(std::time::Duration::from_millis(5));
}

pub(crate) fn lease(log: &LogKey, holder: &str, ttl_ms: u64) -> Request {
    Request::Lease {
        log: log.clone(),
        holder: holder.to_owned(),
        ttl_ms,
        wrapped_key: Vec::new(),
    }
}

/// Waits for the lease of a log.
pub(crate) fn take_lease(
    replica: &dyn Replica,
    log: &LogKey,
    holder: &str,
    ttl_ms: u64,
) -> (Fence, Option<End>) {
    loop {
        match insist(replica, &lease(log, holder, ttl_ms)) {
            Answer::Leased { fence, log } => return (fence, log.head),
            Answer::Held(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
            other => panic!("no lease: {other:?}"),
        }
    }
}

/// A writer of a log with one trail.
pub(crate) struct Writer<'a> {
    pub(crate) replica: &'a dyn Replica,
    pub(crate) log: LogKey,
    pub(crate) fence: Fence,
    pub(crate) end: End,
    pub(crate) ttl_ms: u64,
}

impl<'a> Writer<'a> {
    /// Takes the lease, and begins a trail if there is none.
    pub(crate) fn new(replica: &'a dyn Replica, log: &LogKey, holder: &str, ttl_ms: u64) -> Self {
        let (fence, head) = take_lease(replica, log, holder, ttl_ms);
        let opener = line(0, format!("opener of {}", log.id.as_str()));
        let end = head.unwrap_or_else(|| {
            let begin = Request::Begin {
                log: log.clone(),
                fence,
                head: None,
                trail: 0,
                opener: opener.clone(),
                relies_on: Vec::new(),
                ttl_ms,
            };
            match insist(replica, &begin) {
                Answer::Appended(end) => end,
                other => panic!("no trail: {other:?}"),
            }
        });
        Self {
            replica,
            log: log.clone(),
            fence,
            end,
            ttl_ms,
        }
    }

    pub(crate) fn next(&self, text: &str) -> Line {
        line(self.end.seq + 1, text)
    }

    pub(crate) fn append(&self, lines: &[Line]) -> Request {
        Request::Append {
            log: self.log.clone(),
            fence: self.fence,
            after: self.end,
            lines: lines.to_vec(),
            relies_on: Vec::new(),
            ttl_ms: self.ttl_ms,
        }
    }

    /// Appends a line, and returns it once it was acknowledged.
    pub(crate) fn write(&mut self, text: &str) -> Line {
        let line = self.next(text);
        let answer = insist(self.replica, &self.append(std::slice::from_ref(&line)));
        assert_eq!(answer, Answer::Appended(end_of(&line)));
        self.end = end_of(&line);
        line
    }
}

/// Returns all lines of a log's first trail but the opener.
pub(crate) fn lines_of(replica: &dyn Replica, log: &LogKey) -> Vec<Line> {
    let mut all = Vec::new();
    let mut beyond = None;
    loop {
        let read = Request::Read {
            log: log.clone(),
            trail: 0,
            beyond,
            order: Order::Forwards,
            max_bytes: 100_000,
        };
        match insist(replica, &read) {
            Answer::Lines { lines, more } => {
                beyond = lines.last().map(|line| line.seq);
                all.extend(lines);
                if !more {
                    return all.split_off(1);
                }
            }
            other => panic!("no lines: {other:?}"),
        }
    }
}

/// A directory for blobs, which goes with the test.
pub(crate) struct Directory(pub(crate) tempfile::TempDir);

impl Directory {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.0.path().display())
    }

    /// Returns all files below it.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(self.0.path(), &mut files);
        files
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

pub(crate) fn with_blobs(mut options: RemoteOptions, url: String) -> RemoteOptions {
    options.blobs = Some(url);
    options
}

/// Returns how many rounds a test has that breaks things at random: `BACKTRAIL_LONG_ROUNDS` sets more.
pub(crate) fn rounds(usual: usize) -> usize {
    let wished = std::env::var("BACKTRAIL_LONG_ROUNDS").ok();
    wished
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(usual)
}

/// Asserts that a log has these lines, each once and in order, and no other but perhaps one behind
/// them: the last one may have been written without being acknowledged.
pub(crate) fn assert_each_once(replica: &dyn Replica, log: &LogKey, acknowledged: &[Line]) {
    let there = lines_of(replica, log);
    let missing = acknowledged.iter().find(|line| !there.contains(line));
    assert_eq!(missing, None, "{} of {}", there.len(), acknowledged.len());
    assert!(there.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    assert!(
        there.len() <= acknowledged.len() + 1,
        "{} more",
        there.len() - acknowledged.len()
    );
}

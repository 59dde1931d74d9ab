//! What encryption promises, in front of a replica in memory that is watched and meddled with.

mod below;
mod hidden;
mod identities;
mod parts;
mod promises;
mod same_answers;
mod tampered;

use age::secrecy::ExposeSecret;
use backtrail::replica::{
    Answer, BlobKind, BlobName, End, Fence, Line, LogKey, LogOwner, Replica, Request,
};

use super::{EncryptedReplica, Identities, Recipient};
use below::Below;

/// A person with an identity file.
struct Person {
    recipient: Recipient,
    identities: Identities,
}

impl Person {
    fn new(file: &str) -> Self {
        let identity = age::x25519::Identity::generate();
        let text = format!(
            "# created: today\n# public key: {}\n{}\n",
            identity.to_public(),
            identity.to_string().expose_secret()
        );
        let mut identities = Identities::none();
        identities.add_file(file, &text).unwrap();
        Self {
            recipient: identity.to_public().to_string().parse().unwrap(),
            identities,
        }
    }

    /// Returns the replica as this person sees it, who encrypts for nobody else.
    fn at(&self, below: &Below) -> EncryptedReplica<Below> {
        EncryptedReplica::new(
            below.clone(),
            vec![self.recipient.clone()],
            self.identities.clone(),
        )
    }
}

fn log(id: &str) -> LogKey {
    LogKey {
        owner: LogOwner::Session,
        id: id.parse().unwrap(),
    }
}

fn line(seq: u64, text: &str) -> Line {
    let mut sum = [0; 8];
    sum.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
    Line {
        seq,
        sum,
        bytes: text.into(),
    }
}

fn end_of(trail: u32, line: &Line) -> End {
    End {
        trail,
        seq: line.seq,
        sum: line.sum,
    }
}

fn named(kind: BlobKind, bytes: &[u8]) -> BlobName {
    BlobName {
        kind,
        hash: *blake3::hash(bytes).as_bytes(),
    }
}

fn lease(log: &LogKey, holder: &str) -> Request {
    Request::Lease {
        log: log.clone(),
        holder: holder.to_owned(),
        ttl_ms: 60_000,
        wrapped_key: Vec::new(),
    }
}

fn begin(log: &LogKey, fence: Fence, head: Option<End>, trail: u32, opener: Line) -> Request {
    Request::Begin {
        log: log.clone(),
        fence,
        head,
        trail,
        opener,
        relies_on: Vec::new(),
        ttl_ms: 60_000,
    }
}

fn append(log: &LogKey, fence: Fence, after: End, lines: Vec<Line>) -> Request {
    Request::Append {
        log: log.clone(),
        fence,
        after,
        lines,
        relies_on: Vec::new(),
        ttl_ms: 60_000,
    }
}

fn read(log: &LogKey, trail: u32) -> Request {
    Request::Read {
        log: log.clone(),
        trail,
        beyond: None,
        order: backtrail::replica::Order::Forwards,
        max_bytes: u64::MAX,
    }
}

fn fence_of(replica: &impl Replica, log: &LogKey) -> Fence {
    match replica.ask(&lease(log, "bot at desk, process 7")).unwrap() {
        Answer::Leased { fence, .. } => fence,
        other => panic!("no lease: {other:?}"),
    }
}

/// Writes a log of two trails, and returns its fence and end.
fn written(replica: &impl Replica, log: &LogKey) -> (Fence, End) {
    let fence = fence_of(replica, log);
    let openers = [line(0, "opener 0"), line(2, "opener 1")];
    let lines = [line(1, "lorem"), line(2, "ipsum"), line(3, "dolor")];
    let requests = [
        begin(log, fence, None, 0, openers[0].clone()),
        append(log, fence, end_of(0, &openers[0]), lines.to_vec()),
        begin(
            log,
            fence,
            Some(end_of(0, &lines[2])),
            1,
            openers[1].clone(),
        ),
    ];
    for request in requests {
        let answer = replica.ask(&request).unwrap();
        assert!(matches!(answer, Answer::Appended(_)), "{answer:?}");
    }
    (fence, end_of(1, &openers[1]))
}

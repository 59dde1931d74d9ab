//! Whatever is asked, an encrypted replica answers as one without encryption does.

use std::collections::HashMap;

use backtrail::replica::{
    Answer, BlobKind, BlobName, End, Fence, Line, LogKey, LogOwner, LogStatus, ObjectPlace, Order,
    Replica, Request,
};
use backtrail_testkit::ManualClock;
use backtrail_testkit::replica::MemoryReplica;
use proptest::prelude::*;

use super::{Below, Person, end_of, line};

/// A few numbers from which a request follows.
type Dice = (u8, u8, u8, u8);

/// What a client knows of a log.
#[derive(Default, Clone)]
struct Known {
    fence: u64,
    end: Option<End>,
    packs: Vec<BlobName>,
    appends: Vec<Request>,
}

#[derive(Default)]
struct Client {
    known: HashMap<LogKey, Known>,
}

fn log(n: u8) -> LogKey {
    let owner = match n % 3 {
        2 => LogOwner::Workspace,
        _ => LogOwner::Session,
    };
    LogKey {
        owner,
        id: format!("log-{}", n % 3).parse().unwrap(),
    }
}

fn object(log: &LogKey, n: u8) -> [u8; 32] {
    *blake3::hash(format!("{} {n}", log.id).as_bytes()).as_bytes()
}

fn blob(log: &LogKey, kind: BlobKind, n: u8) -> (BlobName, Vec<u8>) {
    let bytes = format!("{} {n} ", log.id)
        .into_bytes()
        .repeat(usize::from(n) * 90 + 4);
    (super::named(kind, &bytes), bytes)
}

impl Client {
    /// Returns a request about what the client knows, at times with a mistake.
    fn request(&mut self, (what, which, a, b): Dice) -> Request {
        let log = log(which);
        let known = self.known.entry(log.clone()).or_default().clone();
        let fence = Fence(known.fence.saturating_sub(u64::from(a % 16 == 0)));
        let ttl_ms = u64::from(b % 4) * STEP_MS + STEP_MS / 2;
        let relies_on: Vec<_> = known.packs.iter().take(1).map(|pack| pack.hash).collect();
        match what % 20 {
            0 | 1 => Request::Lease {
                log,
                holder: format!("holder {}", a % 2),
                ttl_ms,
                wrapped_key: Vec::new(),
            },
            2 => Request::Renew { log, fence, ttl_ms },
            3 => Request::Release { log, fence },
            4..=7 => {
                let mut after = known.end.unwrap_or(end_of(0, &line(0, "opener")));
                after.seq += u64::from(b % 16 == 0);
                after.sum[0] ^= u8::from(b % 16 == 1);
                let text = |n: u64| line(after.seq + n, &format!("line {n} {a}"));
                Request::Append {
                    log,
                    fence,
                    after,
                    lines: (1..=u64::from(a % 3) + 1).map(text).collect::<Vec<Line>>(),
                    relies_on,
                    ttl_ms,
                }
            }
            8 | 9 => Request::Begin {
                log,
                fence,
                head: known.end,
                trail: known.end.map_or(0, |end| end.trail + 1),
                opener: line(u64::from(b % 4), "opener"),
                relies_on,
                ttl_ms,
            },
            // The answer may have been lost.
            10 => match known
                .appends
                .get(usize::from(a) % known.appends.len().max(1))
            {
                Some(append) => append.clone(),
                None => Request::Status { log },
            },
            11 => Request::Trails { log },
            12 => Request::Read {
                log,
                trail: u32::from(a % 3),
                beyond: (a & 4 > 0).then_some(u64::from(b % 6)),
                order: if a & 8 > 0 {
                    Order::Forwards
                } else {
                    Order::Backwards
                },
                max_bytes: u64::MAX,
            },
            13 => Request::List {
                after: (a & 1 > 0).then_some(log),
                limit: u32::from(b % 4),
            },
            14 => Request::Changes {
                after: u64::from(a % 8),
                limit: u32::from(b),
            },
            15 => Request::Locate {
                ids: (0..4).map(|n| object(&log, n)).collect(),
                log,
            },
            16 => {
                let (pack, _) = blob(&log, BlobKind::Pack, a % 4);
                let place = |n| ObjectPlace {
                    id: object(&log, n),
                    pack: pack.hash,
                    from: u64::from(n),
                    bytes: 4,
                };
                Request::SealPack {
                    objects: (0..b % 4).map(place).collect(),
                    log,
                }
            }
            17 if a % 8 == 0 => Request::Purge { log },
            18 => Request::Delete {
                log,
                deleted: a & 1 > 0,
            },
            _ => Request::Status { log },
        }
    }

    fn learn(&mut self, request: &Request, answer: &Answer) {
        let log = match request {
            Request::Append { log, .. }
            | Request::Begin { log, .. }
            | Request::Lease { log, .. } => log,
            _ => return,
        };
        let known = self.known.entry(log.clone()).or_default();
        match answer {
            Answer::Leased { fence, log: status } => {
                known.fence = fence.0;
                known.end = status.head;
            }
            Answer::Appended(end) => {
                known.end = Some(*end);
                known.appends.push(request.clone());
            }
            Answer::Moved(end) => known.end = *end,
            _ => {}
        }
    }
}

/// The clocks of both advance a little whenever they are asked, and one is asked more often. No
/// lease ends that near to anything else.
const STEP_MS: u64 = 1_000_000;

/// Returns an answer without what may differ: times, and bytes, which are counted as stored.
fn comparable(mut answer: Answer) -> Answer {
    match &mut answer {
        Answer::Log(status) | Answer::Leased { log: status, .. } => rounded(status),
        Answer::Logs(logs) => logs.iter_mut().for_each(|(_, status)| rounded(status)),
        Answer::Purged(at_ms) => *at_ms = 0,
        Answer::Held(lease)
        | Answer::Fenced {
            lease: Some(lease), ..
        } => lease.left_ms /= STEP_MS,
        Answer::Changes(changes) => changes.iter_mut().for_each(|change| change.at_ms = 0),
        _ => {}
    }
    answer
}

fn rounded(status: &mut LogStatus) {
    status.bytes = 0;
    status.changed_at_ms = 0;
    status.deleted_at_ms = status.deleted_at_ms.map(|_| 0);
    if let Some(lease) = &mut status.lease {
        lease.left_ms /= STEP_MS;
    }
}

fn status(replica: &impl Replica, log: &LogKey) -> Answer {
    let request = Request::Status { log: log.clone() };
    replica.ask(&request).unwrap()
}

/// Asks both about a blob of a log that is there: without encryption a blob may come before it, and a
/// pack stays after it.
fn compare_blobs(plain: &MemoryReplica, encrypted: &impl Replica, dice: Dice, client: &mut Client) {
    let (_, which, a, b) = dice;
    let log = log(which);
    if !matches!(status(plain, &log), Answer::Log(_)) {
        return;
    }
    let kind = match a & 1 {
        0 => BlobKind::Pack,
        _ => BlobKind::Payload,
    };
    let (name, bytes) = blob(&log, kind, (a >> 1) % 4);
    if b & 1 > 0 {
        let stored = plain.put_blob(&log, name, &bytes);
        assert_eq!(encrypted.put_blob(&log, name, &bytes), stored);
        if kind == BlobKind::Pack {
            let known = client.known.entry(log.clone()).or_default();
            known.packs.push(name);
        }
    }
    let has = plain.has_blobs(&log, &[name]);
    assert_eq!(encrypted.has_blobs(&log, &[name]), has);
    let part = (b & 2 > 0).then_some((u64::from(b), u64::from(b >> 4)));
    let read = encrypted.get_blob(&log, name, part);
    match plain.get_blob(&log, name, part) {
        Ok(blob) => assert_eq!(read, Ok(blob)),
        Err(error) => assert_eq!(read.unwrap_err().kind, error.kind),
    }
}

/// Objects are found only with the key of a log.
fn needs_a_log(request: &Request) -> Option<&LogKey> {
    match request {
        Request::Locate { log, .. } | Request::SealPack { log, .. } => Some(log),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_encrypted_replica_answers_as_a_plain_one(
        dice in proptest::collection::vec(any::<Dice>(), 1..150),
    ) {
        let me = Person::new("me.txt");
        let below = Below::new();
        let encrypted = me.at(&below);
        let clock = ManualClock::new(1_700_000_000_000);
        let plain = MemoryReplica::new(clock.clone());
        let mut client = Client::default();
        for dice in dice {
            if dice.0 % 20 == 19 {
                compare_blobs(&plain, &encrypted, dice, &mut client);
                continue;
            }
            let request = client.request(dice);
            let log = needs_a_log(&request);
            if log.is_some_and(|log| !matches!(status(&plain, log), Answer::Log(_))) {
                continue;
            }
            let expected = plain.ask(&request);
            let answer = encrypted.ask(&request);
            match (answer, expected) {
                (Ok(answer), Ok(expected)) => {
                    prop_assert_eq!(
                        comparable(answer),
                        comparable(expected.clone()),
                        "{:?}", request
                    );
                    client.learn(&request, &expected);
                }
                (Err(_), Err(_)) => {}
                (answer, expected) => {
                    prop_assert!(false, "{:?}: {:?} is not {:?}", request, answer, expected);
                }
            }
            for clock in [&clock, &below.clock] {
                clock.advance(i64::from(dice.3 % 3) * STEP_MS as i64);
            }
        }
    }
}

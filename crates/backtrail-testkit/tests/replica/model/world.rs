//! The clients, the replica between them, and what they were told.

use std::collections::BTreeMap;

use backtrail::Randomness;
use backtrail::replica::{
    Answer, BlobKind, BlobName, Change, End, Line, LogKey, LogOwner, ObjectPlace, Order, Replica,
    Request,
};
use backtrail_testkit::replica::{Mishaps, Unreliable};
use backtrail_testkit::{ManualClock, SeededRandomness};

use super::client::Client;
use super::reference::Compared;

const CLIENTS: usize = 50;
const LOGS: usize = 14;

/// How often what happened: a life in which nothing goes wrong proves nothing.
#[derive(Debug, Default)]
pub(super) struct Seen(pub(super) BTreeMap<&'static str, u64>);

impl Seen {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    pub(super) fn assert_nothing_is_missing(&self) {
        for what in [
            "appended",
            "begun",
            "fenced",
            "fenced with lines",
            "fork",
            "held",
            "killed",
            "mishap",
            "note written",
            "old retry",
            "pack removed",
            "packs gone",
            "purged",
            "purged writer",
            "rewind",
            "slept",
            "trash",
        ] {
            assert!(self.0.get(what) > Some(&0), "no {what}");
        }
    }
}

/// Lines that were acknowledged, or refused for good.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) log: LogKey,
    pub(super) trail: u32,
    pub(super) lines: Vec<Line>,
}

impl Written {
    pub(super) fn end(&self) -> End {
        let line = self.lines.last().unwrap();
        End {
            trail: self.trail,
            seq: line.seq,
            sum: line.sum,
        }
    }
}

/// Everything but the clients.
pub(super) struct Shared {
    pub(super) net: Unreliable<Compared>,
    pub(super) clock: ManualClock,
    random: SeededRandomness,
    pub(super) logs: Vec<LogKey>,
    /// What processes without a lease want to be written.
    pub(super) notes: BTreeMap<LogKey, Vec<String>>,
    /// The newest fence that was granted.
    pub(super) fences: BTreeMap<LogKey, u64>,
    pub(super) acknowledged: Vec<Written>,
    pub(super) refused: Vec<Written>,
    /// Purges that were asked for, and whether one was answered.
    pub(super) purges: BTreeMap<LogKey, bool>,
    /// The payloads that were stored.
    pub(super) payloads: Vec<(LogKey, BlobName)>,
    /// What a follower saw, and where it continues.
    pub(super) followed: Vec<Change>,
    pub(super) texts: u64,
    pub(super) seen: Seen,
}

pub(super) struct World {
    shared: Shared,
    clients: Vec<Client>,
    pub(super) seen: Seen,
}

pub(super) fn sum(bytes: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..8]);
    sum
}

impl Shared {
    pub(super) fn draw(&self, limit: usize) -> usize {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes).unwrap();
        (u64::from_le_bytes(bytes) % limit.max(1) as u64) as usize
    }

    /// Returns whether something happens that does so this often, of a hundred times.
    pub(super) fn happens(&self, of_hundred: usize) -> bool {
        self.draw(100) < of_hundred
    }

    pub(super) fn some_log(&self) -> LogKey {
        self.logs[self.draw(self.logs.len())].clone()
    }

    pub(super) fn new_log(&mut self) -> LogKey {
        let owner = if self.happens(80) {
            LogOwner::Session
        } else {
            LogOwner::Workspace
        };
        let id = format!("log-{}", self.logs.len()).parse().unwrap();
        let log = LogKey { owner, id };
        self.logs.push(log.clone());
        log
    }

    /// Asks until there is an answer.
    pub(super) fn insist(&mut self, request: &Request) -> Answer {
        loop {
            match self.net.ask(request) {
                Ok(answer) => return answer,
                Err(_) => self.seen.count("mishap"),
            }
        }
    }

    /// Stores a blob: tries until it is stored.
    pub(super) fn put(&mut self, log: &LogKey, kind: BlobKind, bytes: &[u8]) -> BlobName {
        let hash = *blake3::hash(bytes).as_bytes();
        let name = BlobName { kind, hash };
        while self.net.put_blob(log, name, bytes).is_err() {
            self.seen.count("mishap");
        }
        name
    }

    pub(super) fn locate(&mut self, log: &LogKey, id: [u8; 32]) -> Option<ObjectPlace> {
        let request = Request::Locate {
            log: log.clone(),
            ids: vec![id],
        };
        match self.insist(&request) {
            Answer::Objects(places) => places.first().copied(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the last line of a log, if it has one.
    pub(super) fn last_line(&mut self, log: &LogKey) -> Option<(End, Line)> {
        let Answer::Log(status) = self.insist(&Request::Status { log: log.clone() }) else {
            return None;
        };
        let end = status.head?;
        let request = Request::Read {
            log: log.clone(),
            trail: end.trail,
            beyond: None,
            order: Order::Backwards,
            max_bytes: 1,
        };
        match self.insist(&request) {
            Answer::Lines { mut lines, .. } => Some((end, lines.remove(0))),
            Answer::Absent | Answer::Purged(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Removes the packs that the last line of no log needs, without a waiting time.
    fn clean_up(&mut self) {
        let list = Request::Packs {
            after: None,
            limit: u32::MAX,
        };
        let Answer::Packs(mut unneeded) = self.insist(&list) else {
            panic!("no packs");
        };
        for log in self.logs.clone() {
            let line = self.last_line(&log).map(|(_, line)| line);
            if let Some(id) = line.as_ref().and_then(object_of) {
                let place = self.locate(&log, id).expect("a line names it");
                unneeded.retain(|status| status.pack != place.pack);
            }
        }
        let packs = unneeded.iter().map(|status| (status.pack, status.uses));
        let packs = packs.collect();
        self.insist(&Request::Condemn { packs });
        if self.happens(70) {
            let remove = Request::RemovePacks {
                condemned_ms: 0,
                limit: 5,
            };
            if let Answer::Packs(removed) = self.insist(&remove) {
                removed.iter().for_each(|_| self.seen.count("pack removed"));
            }
        }
    }

    /// Sees what was appended since.
    pub(super) fn follow(&mut self) {
        loop {
            let after = self.followed.last().map_or(0, |change| change.id);
            let Answer::Changes(changes) = self.insist(&Request::Changes { after, limit: 20 })
            else {
                panic!("no changes");
            };
            if changes.is_empty() {
                return;
            }
            self.followed.extend(changes);
        }
    }

    pub(super) fn assert_may_be_purged(&self, log: &LogKey) {
        assert!(self.purges.contains_key(log), "nobody purged {log:?}");
    }
}

/// Returns the word behind another one in a line's text.
fn word_after<'a>(line: &'a Line, before: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(&line.bytes).unwrap();
    let mut words = text.split(' ').skip_while(|word| *word != before);
    words.nth(1)
}

fn hash_after(line: &Line, before: &str) -> Option<[u8; 32]> {
    let hash = blake3::Hash::from_hex(word_after(line, before)?).unwrap();
    Some(*hash.as_bytes())
}

/// Returns the object that a line names.
pub(super) fn object_of(line: &Line) -> Option<[u8; 32]> {
    hash_after(line, "object")
}

/// Returns the payload that a line names.
pub(super) fn payload_of(line: &Line) -> Option<BlobName> {
    let hash = hash_after(line, "payload")?;
    Some(BlobName {
        kind: BlobKind::Payload,
        hash,
    })
}

/// Returns the fence under which a line was written.
pub(super) fn fence_of(line: &Line) -> u64 {
    word_after(line, "fence").unwrap().parse().unwrap()
}

/// Returns the line of another log that an opener continues at: its log, trail and seq.
pub(super) fn source_of(line: &Line) -> Option<(usize, u32, u64)> {
    let mut numbers = word_after(line, "fork")?.split(':');
    let mut next = || numbers.next().unwrap().parse::<u64>().unwrap();
    Some((next() as usize, next() as u32, next()))
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let clock = ManualClock::new(1_700_000_000_000);
        clock.set_step(0);
        let replica = Compared::new(clock.clone());
        let mut shared = Shared {
            net: Unreliable::new(replica, seed, Mishaps::often()),
            clock,
            random: SeededRandomness::new(seed),
            logs: Vec::new(),
            notes: BTreeMap::new(),
            fences: BTreeMap::new(),
            acknowledged: Vec::new(),
            refused: Vec::new(),
            purges: BTreeMap::new(),
            payloads: Vec::new(),
            followed: Vec::new(),
            texts: 0,
            seen: Seen::default(),
        };
        for _ in 0..LOGS {
            shared.new_log();
        }
        Self {
            shared,
            clients: (0..CLIENTS).map(Client::new).collect(),
            seen: Seen::default(),
        }
    }

    /// Lets a client do one thing.
    pub(super) fn step(&mut self) {
        self.shared.clock.advance(self.shared.draw(20) as i64);
        let client = self.shared.draw(CLIENTS);
        self.clients[client].act(&mut self.shared);
        if self.shared.happens(2) {
            self.shared.clean_up();
        }
        if self.shared.happens(4) {
            self.shared.follow();
        }
    }

    /// Ends all failures: what is late arrives.
    pub(super) fn settle(&mut self) {
        self.shared.net.set(Mishaps::default());
        self.shared.net.settle();
        self.shared.follow();
        self.seen = std::mem::take(&mut self.shared.seen);
    }

    /// Checks what is there against what the clients were told.
    pub(super) fn check(&mut self) {
        super::outcome::check(&mut self.shared);
    }
}

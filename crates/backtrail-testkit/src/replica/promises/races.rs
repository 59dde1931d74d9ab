//! Many clients at once: every request is answered in one transaction.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use backtrail::replica::{Answer, BlobKind, BlobName, End, LogKey, ObjectPlace, Order, Request};

use super::case::{Case, LONG_MS, end_of, line};

const CLIENTS: usize = 6;
/// Writers go on until so many packs were removed beside them, or they have enough lines.
const REMOVED: usize = 20;
const MOST_LINES: u64 = 3000;

/// Asks all requests at the same time.
fn at_once(case: &Case<'_>, requests: &[Request]) -> Vec<Answer> {
    let start = Barrier::new(requests.len());
    thread::scope(|scope| {
        let start = &start;
        let ask = |request| {
            scope.spawn(move || {
                start.wait();
                case.ask(request)
            })
        };
        let clients: Vec<_> = requests.iter().map(ask).collect();
        let answers = clients.into_iter().map(|client| client.join());
        answers
            .map(|answer| answer.expect("it was answered"))
            .collect()
    })
}

pub(super) fn one_of_many_gets_the_lease(case: &Case<'_>) {
    for _ in 0..5 {
        let log = case.log();
        let lease = |n| Request::Lease {
            log: log.clone(),
            holder: format!("client {n}"),
            ttl_ms: LONG_MS,
            wrapped_key: Vec::new(),
        };
        let requests: Vec<_> = (0..CLIENTS).map(lease).collect();
        let answers = at_once(case, &requests);
        let is_leased = |answer: &&Answer| matches!(answer, Answer::Leased { .. });
        let is_held = |answer: &&Answer| matches!(answer, Answer::Held(_));
        assert_eq!(answers.iter().filter(is_leased).count(), 1, "{answers:?}");
        assert_eq!(
            answers.iter().filter(is_held).count(),
            CLIENTS - 1,
            "{answers:?}"
        );
    }
}

pub(super) fn one_of_many_appends_at_an_end(case: &Case<'_>) {
    let mut writer = case.writer();
    for round in 1..6 {
        let request = |n: usize| {
            let line = line(round, format!("client {n}"));
            match n % 3 {
                0 => writer.begin(Some(writer.end), writer.end.trail + 1 + n as u32, &line),
                _ => writer.append(&[line]),
            }
        };
        let requests: Vec<_> = (0..CLIENTS).map(request).collect();
        let answers = at_once(case, &requests);
        let appended: Vec<End> = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Appended(end) => Some(*end),
                _ => None,
            })
            .collect();
        assert_eq!(appended.len(), 1, "{answers:?}");
        writer.end = appended[0];
        let moved = Answer::Moved(Some(writer.end));
        let refused = answers.iter().filter(|answer| **answer == moved).count();
        assert_eq!(refused, CLIENTS - 1, "{answers:?}");
        assert_eq!(case.status(&writer.log).head, Some(writer.end));
    }
}

pub(super) fn a_request_that_arrives_many_times_at_once_is_carried_out_once(case: &Case<'_>) {
    let mut writer = case.writer();
    for round in 1..6 {
        let lines = [line(2 * round, "a"), line(2 * round + 1, "b")];
        let answers = at_once(case, &vec![writer.append(&lines); CLIENTS]);
        writer.end = end_of(writer.end.trail, &lines[1]);
        assert_eq!(answers, vec![Answer::Appended(writer.end); CLIENTS]);
        let opener = line(2 * round + 1, format!("opener {round}"));
        let trail = writer.end.trail + 1;
        let answers = at_once(
            case,
            &vec![writer.begin(Some(writer.end), trail, &opener); CLIENTS],
        );
        writer.end = end_of(trail, &opener);
        assert_eq!(answers, vec![Answer::Appended(writer.end); CLIENTS]);
    }
    for trail in 0..=5 {
        let lines = case.lines(&writer.log, trail).len();
        assert_eq!(lines, if trail == 5 { 1 } else { 3 });
    }
    assert_eq!(case.changes_of(&writer.log).len(), 11);
}

/// A number that was given out first and committed last is not missed.
pub(super) fn followers_miss_no_change(case: &Case<'_>) {
    let mut after = 0;
    while let Some(last) = case.changes(after, 1000).last() {
        after = last.id;
    }
    let running = AtomicUsize::new(CLIENTS);
    let (expected, seen) = thread::scope(|scope| {
        let write = || {
            let mut writer = case.writer();
            let mut ends = vec![(writer.log.clone(), writer.end)];
            for seq in 1..=20 {
                writer.write(&[line(seq, format!("line {seq}"))]);
                ends.push((writer.log.clone(), writer.end));
            }
            running.fetch_sub(1, Ordering::SeqCst);
            ends
        };
        let writers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(write)).collect();
        let mut seen = Vec::new();
        loop {
            let is_last_look = running.load(Ordering::SeqCst) == 0
                || writers.iter().all(|writer| writer.is_finished());
            let changes = case.changes(after, 7);
            after = changes.last().map_or(after, |change| change.id);
            if changes.is_empty() && is_last_look {
                break;
            }
            seen.extend(changes.into_iter().map(|change| (change.log, change.end)));
        }
        let ends = writers
            .into_iter()
            .flat_map(|writer| writer.join().expect("it wrote"));
        (ends.collect::<Vec<_>>(), seen)
    });
    for change in expected {
        let count = seen.iter().filter(|seen| **seen == change).count();
        assert_eq!(count, 1, "{change:?}");
    }
}

pub(super) fn a_purge_leaves_nothing_behind_whatever_arrives_meanwhile(case: &Case<'_>) {
    for round in 0..6 {
        let mut writer = case.writer();
        let (log, start) = (writer.log.clone(), Barrier::new(2));
        let names = thread::scope(|scope| {
            let writes = scope.spawn(|| {
                start.wait();
                let mut names = Vec::new();
                for seq in 1..100 {
                    let words = format!("payload {seq}");
                    names.push(case.put(&writer.log, BlobKind::Payload, words.as_bytes()));
                    let line = line(seq, words);
                    match case.ask(&writer.append(&[line])) {
                        Answer::Appended(end) => writer.end = end,
                        Answer::Purged(_) => break,
                        other => panic!("{other:?}"),
                    }
                }
                names
            });
            start.wait();
            for _ in 0..round {
                thread::yield_now();
                case.ask(&Request::Trails { log: log.clone() });
            }
            assert_eq!(case.ask(&Request::Purge { log: log.clone() }), Answer::Done);
            writes.join().expect("it wrote until the purge")
        });
        for name in names {
            assert!(!case.has(&log, name));
            assert_eq!(case.get(&log, name), None);
        }
        assert_eq!(case.changes_of(&log), []);
        let lease = case.try_lease(&log, "first", LONG_MS);
        assert!(matches!(lease, Answer::Purged(_)), "{lease:?}");
    }
}

/// An object that writers store, and that lines name.
#[derive(Clone, Copy)]
struct Thing(u8);

impl Thing {
    fn bytes(self) -> [u8; 20] {
        [self.0; 20]
    }

    fn id(self, realm: &LogKey) -> [u8; 32] {
        let name = format!("{} {}", realm.id, self.0);
        *blake3::hash(name.as_bytes()).as_bytes()
    }
}

/// Writers and a clean-up, over the same few objects.
struct Yard<'a> {
    case: &'a Case<'a>,
    /// Only to tell the objects of this run from others.
    realm: LogKey,
    packs: Mutex<BTreeSet<[u8; 32]>>,
    logs: Vec<LogKey>,
    removed: AtomicUsize,
    done: AtomicBool,
}

impl Yard<'_> {
    fn locate(&self, thing: Thing) -> Option<ObjectPlace> {
        let request = Request::Locate {
            log: self.realm.clone(),
            ids: vec![thing.id(&self.realm)],
        };
        match self.case.ask(&request) {
            Answer::Objects(places) => places.first().copied(),
            other => panic!("no objects: {other:?}"),
        }
    }

    /// Returns a pack that has an object, and stores it if there is none.
    fn stored(&self, thing: Thing) -> [u8; 32] {
        if let Some(place) = self.locate(thing) {
            return place.pack;
        }
        let random = blake3::hash(self.case.control.fresh().as_str().as_bytes());
        let bytes = [&random.as_bytes()[..16], &thing.bytes()].concat();
        let pack = blake3::hash(&bytes);
        self.packs
            .lock()
            .expect("no client panicked")
            .insert(*pack.as_bytes());
        let pack = self.case.put(&self.realm, BlobKind::Pack, &bytes).hash;
        self.case.ask(&Request::SealPack {
            log: self.realm.clone(),
            objects: vec![ObjectPlace {
                id: thing.id(&self.realm),
                pack,
                from: 16,
                bytes: 20,
            }],
        });
        pack
    }

    /// Asserts that an object can be read. A move of it between two questions is not a loss.
    fn assert_there(&self, thing: Thing) {
        for _ in 0..20 {
            let place = self.locate(thing).expect("a line names it");
            let name = BlobName {
                kind: BlobKind::Pack,
                hash: place.pack,
            };
            let part = Some((place.from, place.bytes));
            let read = self.case.replica.get_blob(&self.realm, name, part);
            if let Some(bytes) = read.expect("it is read") {
                assert_eq!(bytes, thing.bytes());
                return;
            }
        }
        panic!("object {} is named and never there", thing.0);
    }

    fn write(&self, log: &LogKey, client: u64) {
        let mut writer = self.case.writer_of(log.clone(), LONG_MS);
        for seq in 1..=MOST_LINES {
            if seq > 25 && self.removed.load(Ordering::SeqCst) >= REMOVED {
                return;
            }
            let thing = Thing(((seq * 7 + client * 3) % 12) as u8);
            let line = line(seq, [thing.0]);
            loop {
                let pack = self.stored(thing);
                let append = writer.append_with(std::slice::from_ref(&line), &[pack]);
                match self.case.ask(&append) {
                    Answer::Appended(end) => writer.end = end,
                    Answer::PacksGone(gone) if gone == [pack] => continue,
                    other => panic!("{other:?}"),
                }
                break;
            }
            self.assert_there(thing);
        }
    }

    /// Returns the object that the last line of a log names: older ones need nothing any more.
    fn named(&self, log: &LogKey) -> Option<Thing> {
        let last = Request::Read {
            log: log.clone(),
            trail: 0,
            beyond: None,
            order: Order::Backwards,
            max_bytes: 1,
        };
        match self.case.ask(&last) {
            Answer::Lines { lines, .. } if lines[0].seq > 0 => Some(Thing(lines[0].bytes[0])),
            Answer::Lines { .. } | Answer::Absent => None,
            other => panic!("{other:?}"),
        }
    }

    /// Removes what no line needs, without a waiting time.
    fn clean_up(&self) {
        let ours = self.packs.lock().expect("no client panicked").clone();
        let packs = Request::Packs {
            after: None,
            limit: u32::MAX,
        };
        let mut unneeded = self.case.statuses(&packs);
        unneeded.retain(|status| ours.contains(&status.pack));
        for thing in self.logs.iter().filter_map(|log| self.named(log)) {
            let place = self.locate(thing);
            unneeded.retain(|status| place.is_none_or(|place| place.pack != status.pack));
        }
        let packs = unneeded.iter().map(|status| (status.pack, status.uses));
        let packs = packs.collect();
        self.case.statuses(&Request::Condemn { packs });
        let remove = Request::RemovePacks {
            condemned_ms: 0,
            limit: u32::MAX,
        };
        let removed = self.case.statuses(&remove).len();
        self.removed.fetch_add(removed, Ordering::SeqCst);
    }
}

pub(super) fn nothing_that_a_line_names_is_removed(case: &Case<'_>) {
    let yard = Yard {
        case,
        realm: case.writer().log,
        packs: Mutex::default(),
        logs: (0..CLIENTS).map(|_| case.log()).collect(),
        removed: AtomicUsize::new(0),
        done: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let clean_up = scope.spawn(|| {
            while !yard.done.load(Ordering::SeqCst) {
                yard.clean_up();
            }
        });
        let write = |(client, log)| {
            let yard = &yard;
            scope.spawn(move || yard.write(log, client))
        };
        let writers: Vec<_> = (0..).zip(&yard.logs).map(write).collect();
        let ends: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        yard.done.store(true, Ordering::SeqCst);
        assert!(ends.iter().all(Result::is_ok), "a writer failed");
        clean_up.join().expect("it cleaned up");
    });
    // How often the clean-up had its turn meanwhile is up to the machine.
    yard.clean_up();
    assert!(
        yard.removed.load(Ordering::SeqCst) > 0,
        "no pack was removed"
    );
    for log in &yard.logs {
        yard.assert_there(yard.named(log).expect("it has lines"));
    }
}

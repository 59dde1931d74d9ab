//! A network between client and server that delays, cuts, and swallows answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use backtrail::replica::{Answer, Line, LogKey, Replica, ReplicaErrorKind, Request};
use backtrail_remote::{Remote, RemoteOptions};

use crate::kit::{LONG_MS, Writer, assert_each_once, fresh_log, payload, rounds, with_blobs};
use crate::servers::{Postgres, Weed, options_through};

/// What a proxy does to the pieces that pass, each so often of a thousand.
#[derive(Clone, Copy, Default)]
pub(crate) struct Odds {
    /// A request does not arrive, and the connection ends.
    pub(crate) lost: u64,
    /// A request arrives, and instead of the answer the connection ends.
    pub(crate) swallowed: u64,
    /// A part of a piece arrives, and the connection ends.
    pub(crate) cut: u64,
    /// A piece is late by a few milliseconds.
    pub(crate) late: u64,
}

/// A proxy to a port, which misbehaves as long as it is told to.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

struct State {
    odds: Odds,
    misbehaves: AtomicBool,
    random: AtomicU64,
    mishaps: AtomicU64,
    requests: AtomicU64,
    is_silent: AtomicBool,
}

impl State {
    fn happens(&self, odds: u64) -> bool {
        if !self.misbehaves.load(Ordering::Relaxed) || odds == 0 {
            return false;
        }
        let drawn = self.random.fetch_add(1, Ordering::Relaxed);
        let mixed = drawn.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let happens = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
        let happens = happens % 1000 < odds;
        self.mishaps
            .fetch_add(u64::from(happens), Ordering::Relaxed);
        happens
    }
}

impl Proxy {
    pub(crate) fn new(to: u16, odds: Odds) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seed = std::env::var("BACKTRAIL_TEST_SEED").ok();
        let state = Arc::new(State {
            odds,
            misbehaves: AtomicBool::new(true),
            random: AtomicU64::new(seed.and_then(|seed| seed.parse().ok()).unwrap_or(24)),
            mishaps: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else {
                    continue;
                };
                pass(&client, &server, &shared, true);
                pass(&server, &client, &shared, false);
            }
        });
        Self { port, state }
    }

    pub(crate) fn behave(&self) {
        self.state.misbehaves.store(false, Ordering::Relaxed);
    }

    /// Passes nothing any more, and keeps the connections.
    fn silence(&self, is_silent: bool) {
        self.state.is_silent.store(is_silent, Ordering::Relaxed);
    }

    /// Returns how many pieces clients sent.
    fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn mishaps(&self) -> u64 {
        self.state.mishaps.load(Ordering::Relaxed)
    }
}

fn pass(from: &TcpStream, to: &TcpStream, state: &Arc<State>, is_request: bool) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    to.set_nodelay(true).unwrap();
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        let mut piece = [0; 16 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut piece) {
            state
                .requests
                .fetch_add(u64::from(is_request), Ordering::Relaxed);
            if state.is_silent.load(Ordering::Relaxed) {
                continue;
            }
            if state.happens(state.odds.late) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let ends = match is_request {
                true => state.happens(state.odds.lost),
                false => state.happens(state.odds.swallowed),
            };
            let cut = state.happens(state.odds.cut);
            let passed = match (ends, cut) {
                (true, _) => 0,
                (_, true) => bytes / 2,
                _ => bytes,
            };
            if to.write_all(&piece[..passed]).is_err() || ends || cut {
                break;
            }
        }
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    });
}

fn bad_network() -> Odds {
    Odds {
        lost: 30,
        swallowed: 60,
        cut: 30,
        late: 30,
    }
}

/// Writes lines, in pieces of one to three, as a client does that asks again.
fn write(replica: &dyn Replica, number: usize, pieces: usize) -> (LogKey, Vec<Line>) {
    let log = fresh_log();
    let mut writer = Writer::new(replica, &log, &format!("writer {number}"), LONG_MS);
    let mut lines = Vec::new();
    for piece in 0..pieces {
        let first = writer.end.seq + 1;
        let count = (piece % 3) as u64 + 1;
        let new: Vec<Line> = (first..first + count)
            .map(|seq| crate::kit::line(seq, format!("line {seq} of writer {number}")))
            .collect();
        match crate::kit::insist(replica, &writer.append(&new)) {
            Answer::Appended(end) => writer.end = end,
            other => panic!("{other:?}"),
        }
        lines.extend(new);
    }
    (log, lines)
}

#[test]
fn every_line_is_there_once_behind_a_network_that_swallows_answers() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let proxy = Proxy::new(cluster.port, bad_network());
    let remote = Remote::new(&through(&proxy, &database)).unwrap();
    let pieces = 10 * rounds(6);
    let written = std::thread::scope(|scope| {
        let remote = &remote;
        let start = |number| scope.spawn(move || write(remote, number, pieces));
        let writers: Vec<_> = (0..4).map(start).collect();
        let ends = writers.into_iter().map(|writer| writer.join().unwrap());
        ends.collect::<Vec<_>>()
    });
    proxy.behave();
    assert!(proxy.mishaps() > 20, "only {} mishaps", proxy.mishaps());
    for (log, lines) in &written {
        assert_each_once(&remote, log, lines);
        let changes = crate::kit::lines_of(&remote, log).len();
        assert_eq!(changes, lines.len());
    }
    // Each piece was appended by one transaction, and told to followers once.
    let answer = remote
        .ask(&Request::Changes {
            after: 0,
            limit: u32::MAX,
        })
        .unwrap();
    let Answer::Changes(changes) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(changes.len(), 4 * (pieces + 1));
}

fn through(proxy: &Proxy, database: &str) -> RemoteOptions {
    options_through(proxy.port, database, "agent")
}

#[test]
fn an_append_is_one_round_trip() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let proxy = Proxy::new(cluster.port, Odds::default());
    let remote = Remote::connect(&through(&proxy, &cluster.database())).unwrap();
    let mut writer = Writer::new(&remote, &fresh_log(), "writer", LONG_MS);
    let before = proxy.requests();
    for n in 0..20 {
        writer.write(&format!("line {n}"));
    }
    assert_eq!(proxy.requests() - before, 20);
}

#[test]
fn a_connection_that_dropped_while_idle_is_replaced_unnoticed() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let remote = Remote::connect(&cluster.options(&database, "agent")).unwrap();
    let mut writer = Writer::new(&remote, &fresh_log(), "writer", LONG_MS);
    for _ in 0..3 {
        let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and usename = 'agent'";
        assert_eq!(cluster.sql(&database, end), "1");
        let line = writer.next("after the connection dropped");
        let answer = remote.ask(&writer.append(std::slice::from_ref(&line)));
        writer.end = crate::kit::end_of(&line);
        assert_eq!(answer, Ok(Answer::Appended(writer.end)));
    }
}

#[test]
fn a_server_that_does_not_answer_is_away_in_time() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let proxy = Proxy::new(cluster.port, Odds::default());
    let mut options = through(&proxy, &cluster.database());
    options.timeout = Duration::from_secs(1);
    let remote = Remote::new(&options).unwrap();
    let log = fresh_log();
    let mut writer = Writer::new(&remote, &log, "writer", LONG_MS);
    writer.write("before");
    proxy.silence(true);
    let asked = std::time::Instant::now();
    let append = writer.append(&[writer.next("in the silence")]);
    let error = remote.ask(&append).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Away, "{error}");
    assert!(error.message.contains("127.0.0.1"), "{error}");
    assert!(asked.elapsed() < Duration::from_secs(10));
    proxy.silence(false);
    writer.write("after it");
}

#[test]
fn a_blob_that_was_acknowledged_is_whole_behind_a_network_that_cuts() {
    let (Some(cluster), Some(weed)) = (Postgres::shared(), Weed::shared()) else {
        return;
    };
    let database = cluster.database();
    let proxy = Proxy::new(weed.port, bad_network());
    let bad = with_blobs(
        cluster.options(&database, "agent"),
        weed.place_through(proxy.port),
    );
    let remote = Remote::connect(&bad).unwrap();
    let log = fresh_log();
    Writer::new(&remote, &log, "writer", LONG_MS);
    let mut stored = 0;
    for n in 0..rounds(10) {
        let bytes = format!("payload {n} ").repeat(4000 + n).into_bytes();
        if remote.put_blob(&log, payload(&bytes), &bytes).is_ok() {
            stored += 1;
            let got = (0..20).find_map(|_| remote.get_blob(&log, payload(&bytes), None).ok());
            assert_eq!(got, Some(Some(bytes)));
        }
    }
    assert!(
        stored > 0 && proxy.mishaps() > 0,
        "{stored} stored, {} mishaps",
        proxy.mishaps()
    );
}

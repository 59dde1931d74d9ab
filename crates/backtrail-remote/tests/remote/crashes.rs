//! The server crashes again and again, while writers append.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use backtrail::replica::Line;
use backtrail_remote::Remote;

use crate::kit::{LONG_MS, Writer, assert_each_once, fresh_log, rounds};
use crate::servers::Postgres;

const WRITERS: usize = 6;

/// Appends until it is told to stop, and returns what was acknowledged.
fn write(
    remote: &Remote,
    number: usize,
    stop: &AtomicBool,
    acknowledged: &AtomicUsize,
) -> (backtrail::replica::LogKey, Vec<Line>) {
    let log = fresh_log();
    let mut writer = Writer::new(remote, &log, &format!("writer {number}"), LONG_MS);
    let mut lines = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        lines.push(writer.write(&format!("{} of writer {number}", lines.len())));
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    (log, lines)
}

/// Waits until that many lines more were acknowledged.
fn await_lines(acknowledged: &AtomicUsize, more: usize) {
    let before = acknowledged.load(Ordering::Relaxed);
    let deadline = Instant::now() + Duration::from_secs(60);
    while acknowledged.load(Ordering::Relaxed) < before + more {
        assert!(Instant::now() < deadline, "writers do not get on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_acknowledged_line_survives_crashes_of_the_server_once() {
    let Some(cluster) = Postgres::own("") else {
        return;
    };
    let rounds = rounds(15);
    let options = cluster.options(&cluster.database(), "agent");
    let remote = Remote::connect(&options).unwrap();
    let stop = AtomicBool::new(false);
    let acknowledged = AtomicUsize::new(0);
    let written = std::thread::scope(|scope| {
        let start = |number| {
            let (remote, stop, acknowledged) = (&remote, &stop, &acknowledged);
            scope.spawn(move || write(remote, number, stop, acknowledged))
        };
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        for round in 0..rounds {
            await_lines(&acknowledged, 20 + 7 * (round % 5));
            cluster.crash();
            cluster.up();
        }
        await_lines(&acknowledged, 20);
        stop.store(true, Ordering::Relaxed);
        let ends = writers.into_iter().map(|writer| writer.join().unwrap());
        ends.collect::<Vec<_>>()
    });
    let count: usize = written.iter().map(|(_, lines)| lines.len()).sum();
    for (log, lines) in &written {
        assert_each_once(&remote, log, lines);
    }
    println!("{count} lines were acknowledged in {rounds} crashes, and are there once");
}

//! Clients that are killed, and clients that sleep past their lease. A client is this binary again, with
//! only the test `client`, and a log to write to in its environment.

use std::io::Write;
use std::process::{Child, Command};
use std::time::Duration;

use backtrail::replica::{Answer, Line, LogKey, Replica};
use backtrail_remote::{Remote, RemoteOptions};

use crate::kit::{
    LONG_MS, Writer, assert_each_once, fresh_log, line, lines_of, rounds, session, take_lease,
};
use crate::servers::{self, Postgres};

const URL: &str = "BACKTRAIL_TEST_REMOTE";
const LOG: &str = "BACKTRAIL_TEST_LOG";
const TTL_MS: u64 = 150;

/// The text of a line: it follows from its number, so that the parent knows it.
fn text(seq: u64) -> String {
    format!("line {seq}")
}

#[test]
#[ignore = "started by others, as a process of its own"]
fn client() {
    let (Ok(url), Ok(log)) = (std::env::var(URL), std::env::var(LOG)) else {
        return;
    };
    let remote = Remote::connect(&RemoteOptions::new(url)).unwrap();
    let holder = format!("client {}", std::process::id());
    let mut writer = Writer::new(&remote, &session(&log), &holder, TTL_MS);
    let mut stdout = std::io::stdout();
    loop {
        let line = writer.next(&text(writer.end.seq + 1));
        match remote.ask(&writer.append(std::slice::from_ref(&line))) {
            Ok(Answer::Appended(end)) => writer.end = end,
            other => {
                writeln!(stdout, "stopped {other:?}").unwrap();
                return;
            }
        }
        writeln!(stdout, "acknowledged {}", line.seq).unwrap();
        stdout.flush().unwrap();
    }
}

/// Starts a client, and returns it with the lines that it prints.
fn start(options: &RemoteOptions, log: &LogKey) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "killed::client", "--ignored", "--nocapture"])
        .env(URL, &options.url)
        .env(LOG, log.id.as_str());
    let (child, lines) = servers::lines_of(&mut command);
    // The first line follows the name of the test on the same line.
    let lines = lines.filter_map(|line| {
        let at = line
            .find("acknowledged ")
            .or_else(|| line.find("stopped "))?;
        Some(line[at..].to_owned())
    });
    (child, lines)
}

fn signal(child: &Child, signal: &str) {
    servers::run(Command::new("kill").args([signal, &child.id().to_string()]));
}

fn acknowledged(line: &str) -> Option<Line> {
    let seq = line.strip_prefix("acknowledged ")?.parse().ok()?;
    Some(self::line(seq, text(seq)))
}

#[test]
fn every_acknowledged_line_survives_the_death_of_its_client_once() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let options = cluster.options(&cluster.database(), "agent");
    let log = fresh_log();
    let mut lines: Vec<Line> = Vec::new();
    let mut unacknowledged = 0;
    for round in 0..rounds(24) {
        let (mut child, said) = start(&options, &log);
        let mut said = said.filter_map(|line| acknowledged(&line));
        lines.extend(said.by_ref().take(3 + round % 7));
        child.kill().unwrap();
        child.wait().unwrap();
        // It may have printed more before it died.
        lines.extend(said);
        unacknowledged += 1;
    }
    let remote = Remote::connect(&options).unwrap();
    let there = lines_of(&remote, &log);
    assert!(lines.iter().all(|line| there.contains(line)));
    let numbers: Vec<u64> = there.iter().map(|line| line.seq).collect();
    let expected: Vec<u64> = (1..=there.len() as u64).collect();
    assert_eq!(numbers, expected, "each once");
    assert!(
        there.len() <= lines.len() + unacknowledged,
        "at most one each was not acknowledged"
    );
}

#[test]
fn a_writer_that_wakes_up_past_its_lease_is_refused() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let options = cluster.options(&cluster.database(), "agent");
    let remote = Remote::connect(&options).unwrap();
    for _ in 0..rounds(5).min(50) {
        let log = fresh_log();
        let (mut child, mut said) = start(&options, &log);
        let first = said.next().unwrap();
        assert!(first.starts_with("acknowledged 1"), "{first}");
        signal(&child, "-STOP");
        // Returns once the lease ran out, and no sooner.
        let (fence, end) = take_lease(&remote, &log, "the next", LONG_MS);
        let mut writer = Writer {
            replica: &remote,
            log: log.clone(),
            fence,
            end: end.unwrap(),
            ttl_ms: LONG_MS,
        };
        let before = lines_of(&remote, &log);
        let ours: Vec<Line> = (0..3)
            .map(|n| writer.write(&format!("line {n} of the next")))
            .collect();
        signal(&child, "-CONT");
        let last = said.find(|line| line.starts_with("stopped ")).unwrap();
        assert!(
            last.contains("Fenced") && last.contains("the next"),
            "{last}"
        );
        child.wait().unwrap();
        let expected = [before, ours].concat();
        assert_eq!(lines_of(&remote, &log), expected);
        assert_each_once(&remote, &log, &expected);
    }
}

#[test]
fn a_sleeping_writers_retry_is_still_answered() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let remote = Remote::connect(&cluster.options(&cluster.database(), "agent")).unwrap();
    let log = fresh_log();
    let writer = Writer::new(&remote, &log, "sleeper", 1);
    let lines = [writer.next("its answer was lost")];
    let append = writer.append(&lines);
    let answer = remote.ask(&append).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    take_lease(&remote, &log, "the next", LONG_MS);
    assert_eq!(remote.ask(&append), Ok(answer));
    let another = remote.ask(&writer.append(&[line(1, "another")])).unwrap();
    assert!(matches!(another, Answer::Fenced { .. }), "{another:?}");
}

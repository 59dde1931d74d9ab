//! Several processes at once, and processes that die.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use backtrail::{Message, SessionOptions, Store};
use backtrail_index::{Filter, Index, IndexOptions, SearchQuery};

use crate::kit::Home;
use crate::random::Random;

const ROLE: &str = "BACKTRAIL_INDEX_TEST_ROLE";
const STORE: &str = "BACKTRAIL_INDEX_TEST_STORE";

/// Starts this program again in a process of its own.
fn start(role: &str, store: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "processes::child",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, role)
        .env(STORE, store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the other process does; nothing if this is the test itself.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let store = Store::open(PathBuf::from(std::env::var_os(STORE).unwrap())).unwrap();
    let (role, n) = role.split_once(' ').unwrap();
    match role {
        "write" => write(&store, n),
        "ask" => ask(&store),
        "rebuild" => {
            let tell = |_| println!("progress");
            let index = Index::open(&store, IndexOptions::new().progress(tell)).unwrap();
            index.rebuild().unwrap();
        }
        "catch-up" => {
            let tell = |_| println!("progress");
            let index = Index::open(&store, IndexOptions::new().progress(tell)).unwrap();
            index.catch_up().unwrap();
        }
        role => panic!("{role} is no role"),
    }
}

fn write(store: &Store, name: &str) {
    for n in 0..3 {
        let options = SessionOptions::new().agent(name);
        let session = store.create_session(options).unwrap();
        for m in 0..20 {
            let text = format!("writer {name} says needle {n} {m}");
            session.append(Message::user_text(text)).unwrap();
        }
    }
}

/// Queries repeatedly: a record that was found once is found again.
fn ask(store: &Store) {
    let mut before = (0, 0);
    for _ in 0..15 {
        let index = Index::open(store, IndexOptions::new()).unwrap();
        let sessions = index.sessions(&Filter::default()).unwrap();
        let messages: u64 = sessions.iter().map(|row| row.messages).sum();
        let found = index.search(&SearchQuery::new("needle")).unwrap().total;
        assert!(messages >= before.0 && found >= before.1, "it went back");
        before = (messages, found);
    }
}

fn everything(home: &Home, index: &Index) -> (Vec<backtrail_index::SessionRow>, u64) {
    let found = index.search(&SearchQuery::new("needle")).unwrap();
    (home.rows(), found.total)
}

#[test]
fn eight_processes_catch_up_while_four_write() {
    let home = Home::new();
    let root = home.store.root();
    let writers = ["a", "b", "c", "d"].map(|name| start(&format!("write {name}"), root));
    let asking: Vec<Child> = (0..8).map(|n| start(&format!("ask {n}"), root)).collect();
    for child in writers.into_iter().chain(asking) {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    let caught_up = everything(&home, &home.index());
    assert_eq!(caught_up.0.len(), 12);
    assert_eq!(caught_up.1, 240);
    home.index().rebuild().unwrap();
    assert_eq!(caught_up, everything(&home, &home.index()));
}

#[test]
fn a_process_that_is_killed_while_it_catches_up_costs_only_time() {
    let home = Home::new();
    let mut random = Random::new(3);
    for round in 0..12 {
        write(&home.store, &format!("round-{round}"));
        let role = if round % 3 == 0 {
            "rebuild 0"
        } else {
            "catch-up 0"
        };
        let mut child = start(role, home.store.root());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // After this many lines, wherever it is then, or at its end.
        let last = random.below(6);
        for line in lines
            .map_while(Result::ok)
            .filter(|line| line == "progress")
            .take(last)
        {
            drop(line);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let answers = everything(&home, &home.index());
        assert_eq!(answers.0.len(), 3 * (round + 1));
        assert_eq!(answers.1, 60 * (round as u64 + 1), "round {round}");
    }
    let answers = everything(&home, &home.index());
    home.index().rebuild().unwrap();
    assert_eq!(answers, everything(&home, &home.index()));
}

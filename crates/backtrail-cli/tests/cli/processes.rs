//! Many processes at once: no byte is mixed, no id collides, one speaks (F4, F7).

use std::collections::HashSet;
use std::process::Stdio;
use std::thread::JoinHandle;

use backtrail::{Note, SessionId, Store};
use serde_json::Value;

use crate::kit::{Cli, Recording, line, short};

#[test]
fn f4_eight_processes_append_to_eight_sessions_and_none_mixes_with_another() {
    let cli = Cli::new();
    let mut children = Vec::new();
    for n in 0..8 {
        let input: String = (0..200)
            .map(|m| line(&format!("process {n} message {m}")))
            .collect();
        let args = [
            "record",
            "--title",
            &format!("session {n}"),
            "--durability",
            "batch",
        ];
        let mut recording = Recording::start(cli.command(&args));
        let mut stdin = recording.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            std::io::Write::write_all(&mut stdin, input.as_bytes()).unwrap();
        });
        children.push((n, recording, writer));
    }
    for (n, mut recording, writer) in children {
        let mut session = String::new();
        for m in 0..200 {
            let answer = recording.answer().unwrap();
            assert_eq!(answer["seq"], m + 1);
            session = answer["session"].as_str().unwrap().to_owned();
        }
        writer.join().unwrap();
        assert_eq!(recording.end(), 0);
        let expected: Vec<String> = (0..200)
            .map(|m| format!("process {n} message {m}"))
            .collect();
        assert_eq!(cli.texts(&session), expected);
    }
    let list = cli.run(&["list", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 8);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn f4_of_eight_writers_one_writes_while_others_add_notes_and_read() {
    let cli = Cli::new();
    let session = cli.new_session("first");
    let args = ["record", "--session", &session, "--durability", "os"];
    let mut speaker = Recording::start(cli.command(&args));
    speaker.say("the speaker is in");
    let pid = speaker.child.id();

    // Seven others want to speak as well; each is told who does.
    let others: Vec<_> = (0..7)
        .map(|_| {
            let mut command = cli.command(&["record", "--session", &session, "--json"]);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for other in others {
        let output = other.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let error: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["error"]["kind"], "locked");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("process {pid}")), "{message}");
        assert!(message.contains("backtrail"), "{message}");
        let hint = format!("to follow it: backtrail show {} --follow", short(&session));
        assert_eq!(error["error"]["hints"][0], hint);
    }

    // Notes come from this process and readers read, as long as the speaker
    // speaks: it stops only when the last note is made.
    let id: SessionId = session.parse().unwrap();
    let store = Store::open(cli.store()).unwrap();
    let noting: Vec<_> = (0..4)
        .map(|thread| {
            let (store, id) = (store.clone(), id.clone());
            std::thread::spawn(move || {
                for n in 0..50 {
                    let title = format!("title {n} of {thread}");
                    store.note(&id, &Note::new().title(title)).unwrap();
                }
            })
        })
        .collect();
    let reading = {
        let (store, id) = (store.clone(), id.clone());
        std::thread::spawn(move || read_until(&store, &id, 700))
    };
    let mut said = 0;
    let mut last = 0;
    while said < 500 || !noting.iter().all(JoinHandle::is_finished) {
        let answer = speaker.say(&format!("message {said}"));
        let seq = answer["seq"].as_u64().unwrap();
        assert!(seq > last);
        last = seq;
        said += 1;
    }
    for noting in noting {
        noting.join().unwrap();
    }
    reading.join().unwrap();
    assert_eq!(speaker.end(), 0);

    let mut expected = vec!["first".to_owned(), "the speaker is in".to_owned()];
    expected.extend((0..said).map(|n| format!("message {n}")));
    let shown = cli.run(&["show", &session, "--json"]).json();
    assert_eq!(crate::kit::texts(&shown), expected);
    assert!(shown["title"].as_str().unwrap().starts_with("title 49 of "));
    assert_eq!(
        shown["last_seq"],
        2 + said + 200,
        "no number is lost or given twice"
    );
    let verified = cli.run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}

/// Reads a session again and again until it has so many records: each time all
/// of it is whole, and never less than before.
fn read_until(store: &Store, id: &SessionId, enough: u64) {
    let reader = store.read_session(id).unwrap();
    let mut most = 0;
    while most < enough {
        let mut records = reader.records().unwrap();
        let mut count = 0;
        while let Some(record) = records.next().unwrap() {
            record.message().unwrap();
            count += 1;
        }
        assert!(
            records.damage().is_empty(),
            "{:?}",
            records.damage().first()
        );
        assert!(count >= most, "a reader saw less than before");
        most = count;
    }
}

#[test]
fn f7_ids_of_64_processes_at_once_never_collide() {
    let cli = Cli::new();
    let children: Vec<_> = (0..64)
        .map(|n| {
            let mut command = cli.command(&["record", "--text", &format!("process {n}")]);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let mut ids = HashSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(ids.insert(answer["session"].as_str().unwrap().to_owned()));
    }
    let shown: HashSet<String> = ids.iter().flat_map(|id| cli.texts(id)).collect();
    assert_eq!(shown.len(), 64, "one session, one text");
}

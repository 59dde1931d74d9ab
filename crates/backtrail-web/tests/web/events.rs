//! A change reaches every open page at once, and one that comes again misses nothing.

use std::thread;

use backtrail_view::library::Change;

use crate::client::{Client, Web, reading, wait_for};

/// Opens a stream, after the event that was seen last.
fn listen(web: &Web, last: Option<&str>) -> Client {
    let last = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\n"));
    let head = format!("GET /api/events HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n{last}\n");
    let mut client = web.connect();
    client.send(web.text(&head).as_bytes());
    let answer = client.head();
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("text/event-stream")
    );
    client.read_to(": connected\n\n");
    client
}

/// Reads the next event: its id, its name and its data.
fn next(client: &mut Client) -> (String, String, String) {
    let id = text_after(client, "id: ");
    (
        id,
        text_after(client, "event: "),
        text_after(client, "data: "),
    )
}

fn text_after(client: &mut Client, name: &str) -> String {
    client.read_to(name);
    client.read_to("\n").trim_end().to_owned()
}

fn session(n: u64) -> Change {
    Change::Session(format!("s{n}"))
}

#[test]
fn a_change_reaches_every_open_stream() {
    let web = reading();
    let mut streams = [(); 5].map(|()| listen(&web, None));
    for stream in &mut streams {
        assert_eq!(next(stream).1, "ready");
    }
    for change in [Change::Sessions, session(7), Change::Workspace] {
        web.fake.report(&change);
        for stream in &mut streams {
            let (_, name, data) = next(stream);
            match &change {
                Change::Sessions => assert_eq!((&*name, &*data), ("sessions", "{}")),
                Change::Session(_) => {
                    assert_eq!((&*name, &*data), ("session", r#"{"session":"s7"}"#))
                }
                Change::Workspace => assert_eq!((&*name, &*data), ("workspace", "{}")),
            }
        }
    }
    drop(streams);
    wait_for("all are closed", || web.connections() == 0);
}

#[test]
fn a_stream_that_is_resumed_misses_nothing() {
    let web = reading();
    let mut stream = listen(&web, None);
    let (begin, _, _) = next(&mut stream);
    web.fake.report(&session(1));
    let (first, _, _) = next(&mut stream);
    drop(stream);
    for n in 2..=5 {
        web.fake.report(&session(n));
    }
    for (last, missed) in [(&first, 2..=5), (&begin, 1..=5)] {
        let mut stream = listen(&web, Some(last));
        for n in missed {
            assert_eq!(next(&mut stream).2, format!("{{\"session\":\"s{n}\"}}"));
        }
    }
}

#[test]
fn a_stream_that_cannot_be_resumed_begins_anew() {
    let web = reading();
    let mut stream = listen(&web, None);
    let (begin, _, _) = next(&mut stream);
    let (start, _) = begin.split_once('-').unwrap();
    for n in 0..1025 {
        web.fake.report(&session(n));
    }
    for last in [
        // A change after the first was forgotten.
        begin.clone(),
        format!("{start}-1026"),
        format!("{start}-99999999999999999999999"),
        format!("{start}--1"),
        format!("{start}-"),
        "0123456789abcdef-1025".to_owned(),
        "1025".to_owned(),
        "-".to_owned(),
    ] {
        let mut stream = listen(&web, Some(&last));
        let (id, name, _) = next(&mut stream);
        assert_eq!((id, &*name), (format!("{start}-1025"), "reset"), "{last}");
    }
    let mut stream = listen(&web, Some(&format!("{start}-1")));
    assert_eq!(next(&mut stream).0, format!("{start}-2"), "1,024 are kept");
}

#[test]
fn changes_of_one_session_are_one_event_to_a_reader_that_is_late() {
    let web = reading();
    let mut stream = listen(&web, None);
    let (begin, _, _) = next(&mut stream);
    for n in [1, 1, 2, 1, 2] {
        web.fake.report(&session(n));
    }
    let mut stream = listen(&web, Some(&begin));
    let both = [next(&mut stream), next(&mut stream)].map(|(_, _, data)| data);
    assert_eq!(both, [r#"{"session":"s1"}"#, r#"{"session":"s2"}"#]);
}

#[test]
fn hostile_names_cannot_make_an_event() {
    let web = reading();
    let mut stream = listen(&web, None);
    next(&mut stream);
    web.fake
        .report(&Change::Session("x\n\nevent: bye\ndata: {}\n\n".to_owned()));
    web.fake.report(&Change::Sessions);
    let data = text_after(&mut stream, "data: ");
    assert_eq!(data, r#"{"session":"x\n\nevent: bye\ndata: {}\n\n"}"#);
    assert_eq!(next(&mut stream).1, "sessions");
}

#[test]
fn a_server_that_stops_says_so() {
    let web = reading();
    let mut streams = [(); 3].map(|()| listen(&web, None));
    web.fake.report(&session(1));
    let server = web.server;
    let stopping = thread::spawn(move || server.stop());
    for stream in &mut streams {
        stream.read_to(r#"{"session":"s1"}"#);
        assert!(stream.read_to_end().contains("event: bye\n"));
    }
    stopping.join().unwrap();
}

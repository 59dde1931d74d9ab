//! `show --follow` prints each record soon after it is written.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::kit::{Cli, Recording};

#[test]
fn a_follower_sees_new_messages_also_across_a_rotation() {
    let cli = Cli::new();
    let session = cli.new_session("first");
    std::fs::write(cli.store().join("config.toml"), "rotation = \"1 KiB\"").unwrap();
    let mut follower = cli
        .command(&["show", &session, "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> String {
        let shown: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        shown["blocks"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(), "first");
    let mut recording = Recording::start(cli.command(&["record", "--session", &session]));
    for n in 0..30 {
        let text = format!("message {n} {}", "x".repeat(100));
        recording.say(&text);
        assert_eq!(next(), text);
    }
    assert!(cli.trail(&session, 3).exists(), "it was rotated meanwhile");
    assert_eq!(recording.end(), 0);
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn a_follower_of_a_quiet_session_ends_when_nobody_reads_it() {
    let cli = Cli::new();
    let session = cli.new_session("first");
    let mut follower = cli
        .command(&["show", &session, "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(follower.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(first.contains("first"));
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn a_follower_prints_moves_and_compactions_as_json_too() {
    let cli = Cli::new();
    let session = cli.new_session("first");
    let mut follower = cli
        .command(&["show", &session, "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["seq"], 1);
    let say = |text: &str| cli.run(&["record", "--session", &session, "--text", text]);
    say("second");
    assert_eq!(next()["seq"], 2);
    let compaction = r#"{"type":"compaction","summary":"They talked.","keep":1}"#;
    cli.run_with(&["record", "--session", &session], compaction.as_bytes());
    assert_eq!(next()["compaction"]["summary"], "They talked.");
    cli.run(&["rewind", &format!("{session}:1"), "--chat"]);
    say("another way");
    let moved = serde_json::json!({"moved": {"reason": "rewind", "to": 1}});
    assert_eq!(next(), moved);
    assert_eq!(next()["blocks"][0]["text"], "another way");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

//! `record` answers every line, in order, once it is durable.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::{Cli, Recording, line};

#[test]
fn each_line_is_answered_before_more_input_comes() {
    for mode in ["record", "batch", "os"] {
        let cli = Cli::new();
        let mut recording = Recording::start(cli.command(&["record", "--durability", mode]));
        for n in 1..=5 {
            // The pipe stays open: the answer may not wait for the next line.
            let answer = recording.say(&format!("message {n}"));
            assert_eq!(answer["ok"], true);
            assert_eq!(answer["line"], n);
            assert_eq!(answer["seq"], n);
            let session = answer["session"].as_str().unwrap().to_owned();
            // And what is answered can be read, while the writer is still there.
            assert_eq!(cli.texts(&session).len() as u64, n);
        }
        assert_eq!(recording.end(), 0);
    }
}

#[test]
fn a14_a_bad_line_is_answered_with_its_reason_and_the_rest_continues() {
    let cases = [
        ("not json", "not JSON"),
        ("", "empty"),
        ("[1]", "not a JSON object"),
        (r#"{"role":"user"}"#, "`text` is missing"),
        (r#"{"text":"x"}"#, "`role` is missing"),
        (r#"{"role":"user","text":7}"#, "`text` must be a string"),
        (
            r#"{"role":"user","text":"x","txet":"y"}"#,
            "unexpected field \"txet\"",
        ),
        (
            r#"{"role":"user","text":"x","text":"y"}"#,
            "the field \"text\" occurs twice",
        ),
        (r#"{"type":"poem"}"#, "unsupported type \"poem\""),
        (
            r#"{"message":{"role":"user","blocks":[]}}"#,
            "`type` is missing",
        ),
        (r#"{"type":"message"}"#, "`message` is missing"),
        (
            r#"{"type":"message","message":{"blocks":[]}}"#,
            "`role` is missing",
        ),
        (
            r#"{"type":"message","message":{"role":"user"}}"#,
            "`blocks` is missing",
        ),
        (
            r#"{"type":"message","message":{"role":"user","blocks":[{}]}}"#,
            "`type` is missing",
        ),
        (
            r#"{"type":"message","message":{"role":"user","blocks":[]},"seq":4}"#,
            "unexpected field \"seq\"",
        ),
        (
            r#"{"role":"user","text":"x","at":"yesterday"}"#,
            "`at` must be a time",
        ),
        (
            r#"{"role":"user","text":"x","expect":-1}"#,
            "`expect` must be",
        ),
        (
            r#"{"role":"user","text":"x","expect":99999999999999999999}"#,
            "`expect` is out of range",
        ),
        (
            r#"{"role":"user","text":"x","cost_usd":-1}"#,
            "`cost_usd` is out of range",
        ),
        (r#"{"role":"user","text":"x","id":""}"#, "`id` must be"),
    ];
    let mut input = Vec::new();
    for (bad, _) in cases {
        input.extend_from_slice(bad.as_bytes());
        input.extend_from_slice(format!("\n{}", line("good")).as_bytes());
    }
    input.extend_from_slice(b"{\"role\":\"user\",\"text\":\"\xff\"}\n");
    let cli = Cli::new();
    let ran = cli.run_with(&["record", "--durability", "os"], &input);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let answers = ran.json_lines();
    assert_eq!(answers.len(), cases.len() * 2 + 1);
    for (n, (bad, reason)) in cases.iter().enumerate() {
        let (refused, taken) = (&answers[n * 2], &answers[n * 2 + 1]);
        assert_eq!(refused["ok"], false, "{bad}");
        assert_eq!(refused["line"], n * 2 + 1);
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains(reason), "{bad}: {error}");
        assert_eq!(taken["ok"], true);
        assert_eq!(taken["seq"], n + 1);
    }
    let last = answers.last().unwrap();
    assert!(
        last["error"]
            .as_str()
            .unwrap()
            .contains("not UTF-8 at byte 23"),
        "{last}"
    );
    let session = answers[1]["session"].as_str().unwrap();
    assert_eq!(cli.texts(session), vec!["good"; cases.len()]);
}

#[test]
fn messages_are_stored_byte_for_byte() {
    let cli = Cli::new();
    let message = concat!(
        r#"{"role":"assistant","blocks":[{"type":"thinking","thinking":"","signature":"Eq+/oB=="},"#,
        r#"{"input":{"b":1.0,"a":1e400,"b":2,"s":"\ud83d lone \u00e9 \/"},"type":"tool_use","id":"t1","name":"bash"},"#,
        r#"{"type":"hologram","beam":[[[[]]]]}],"usage":{"input_tokens":18446744073709551616,"new":null},"mood":"calm"}"#
    );
    let line = format!(
        r#"{{"type":"message","message":{message},"model":"m-1","response_id":"r1","duration_ms":7,"cost_usd":0.25,"at":"2026-01-02T03:04:05Z","id":"mine","later":[1,2]}}"#
    );
    let ran = cli.run_with(&["record"], format!("{line}\n").as_bytes());
    let session = ran.json()["session"].as_str().unwrap().to_owned();
    let trail = std::fs::read_to_string(cli.trail(&session, 0)).unwrap();
    assert!(
        trail.contains(&format!("\"message\":{message},\"prev\"")),
        "{trail}"
    );
    assert!(trail.contains("\"later\":[1,2]"));
    let shown = cli.run(&["show", &session, "--json"]);
    assert!(
        shown
            .stdout
            .contains(r#"{"b":1.0,"a":1e400,"b":2,"s":"\ud83d lone \u00e9 \/"}"#)
    );
    assert!(
        shown
            .stdout
            .contains(r#""id":"mine","at":"2026-01-02T03:04:05.000Z""#)
    );
    assert!(
        shown
            .stdout
            .contains(r#""model":"m-1","response_id":"r1","duration_ms":7,"cost_usd":0.25"#)
    );
}

#[test]
fn a_retry_with_expect_never_records_twice() {
    let cli = Cli::new();
    let input = [
        json!({"role": "user", "text": "one", "expect": 0}),
        json!({"role": "user", "text": "two", "expect": 1}),
        json!({"role": "user", "text": "two", "expect": 1}),
        json!({"role": "user", "text": "three", "expect": 9}),
    ];
    let input: String = input.iter().map(|line| format!("{line}\n")).collect();
    for mode in ["record", "batch"] {
        let ran = cli.run_with(&["record", "--durability", mode], input.as_bytes());
        assert_eq!(ran.code, 1);
        let answers = ran.json_lines();
        let ok: Vec<&Value> = answers.iter().map(|answer| &answer["ok"]).collect();
        assert_eq!(ok, [true, true, false, false]);
        assert_eq!(answers[2]["kind"], "conflict");
        assert_eq!(answers[2]["head"], 2);
        assert_eq!(
            cli.texts(answers[0]["session"].as_str().unwrap()),
            ["one", "two"]
        );
    }
}

/// The beginning of a line, before its text.
const TEXT: &str = r#"{"role":"user","text":"#;

/// Sends a line that ends in one long string, a piece at a time.
fn send_long(recording: &mut Recording, head: &str, bytes: usize) -> Value {
    let mut stdin = recording.stdin.as_ref().unwrap();
    let piece = vec![b'x'; 64 << 10];
    write!(stdin, "{head}\"").unwrap();
    for _ in 0..bytes / piece.len() {
        stdin.write_all(&piece).unwrap();
    }
    stdin.write_all(b"\"}\n").unwrap();
    recording.answer().unwrap()
}

/// A large text is stored outside the trail, so a line may be longer than a trail's limit.
#[test]
fn a_line_of_many_mib_is_accepted_and_the_trail_stays_small() {
    let cli = Cli::new();
    let mut recording = Recording::start(cli.command(&["record"]));
    recording.say("before");
    let answer = send_long(&mut recording, TEXT, 17 << 20);
    assert_eq!(
        (&answer["ok"], &answer["seq"]),
        (&json!(true), &json!(2)),
        "{answer}"
    );
    let id = answer["session"].as_str().unwrap().to_owned();
    assert_eq!(recording.say("after")["seq"], 3);
    assert_eq!(recording.end(), 0);
    assert!(std::fs::metadata(cli.trail(&id, 0)).unwrap().len() < 16 << 10);
    let texts = cli.texts(&id);
    assert_eq!(
        texts.iter().map(String::len).collect::<Vec<_>>(),
        [6, 17 << 20, 5]
    );
    assert!(texts[1].bytes().all(|byte| byte == b'x'));
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_rest_continues() {
    let cli = Cli::new();
    let mut recording = Recording::start(cli.command(&["record"]));
    recording.say("before");
    let answer = send_long(&mut recording, TEXT, 65 << 20);
    assert_eq!(answer["kind"], "invalid");
    assert_eq!(answer["error"], "the line has 65 MiB; the limit is 64 MiB");
    assert_eq!(recording.say("after")["line"], 3);
    assert_eq!(recording.end(), 1);
    assert_eq!(cli.texts("latest"), ["before", "after"]);
}

/// Fields beside the message are stored in the record only.
#[test]
fn a_record_that_is_too_long_is_refused_and_the_rest_continues() {
    let cli = Cli::new();
    let mut recording = Recording::start(cli.command(&["record"]));
    recording.say("before");
    let head = r#"{"type":"message","message":{"role":"user","blocks":[]},"beside":"#;
    let answer = send_long(&mut recording, head, 16 << 20);
    assert_eq!(answer["kind"], "invalid");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("over the limit of 16777216"), "{error}");
    assert_eq!(recording.say("after")["seq"], 2);
    assert_eq!(recording.end(), 1);
    assert_eq!(cli.texts("latest"), ["before", "after"]);
}

#[test]
fn f1_an_unfinished_line_of_a_dead_writer_is_set_aside_and_reported() {
    let cli = Cli::new();
    let session = cli.new_session("first");
    let trail = cli.trail(&session, 0);
    let mut bytes = std::fs::read(&trail).unwrap();
    bytes.extend_from_slice(b"{\"type\":\"message\",\"seq\":2,\"at\":\"20");
    std::fs::write(&trail, &bytes).unwrap();
    let shown = cli.run(&["show", &session]);
    assert!(
        shown
            .stderr
            .contains("the last line is unfinished (34 bytes"),
        "{}",
        shown.stderr
    );
    assert_eq!(cli.run(&["verify"]).code, 0);
    let ran = cli.run(&["record", "--session", &session, "--text", "second"]);
    assert!(
        ran.stderr
            .contains("(never acknowledged, 34 bytes) was set aside in"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.json()["seq"], 2);
    assert_eq!(cli.texts(&session), ["first", "second"]);
    let report = cli.run(&["verify", "--json"]).json();
    assert_eq!(report["ok"], true);
    assert_eq!(report["set_aside"][0]["bytes"], 34);
}

#[test]
fn recording_continues_when_nobody_reads_the_answers() {
    let cli = Cli::new();
    let mut child = cli
        .command(&["record", "--title", "unread", "--durability", "os"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    for n in 0..2000 {
        stdin
            .write_all(line(&format!("message {n}")).as_bytes())
            .unwrap();
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(cli.texts("latest").len(), 2000);
}

#[test]
#[cfg(target_os = "linux")]
fn recording_continues_when_the_answers_find_no_space() {
    let cli = Cli::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut child = cli
        .command(&["record", "--durability", "os"])
        .stdin(Stdio::piped())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for n in 0..20 {
        stdin
            .write_all(line(&format!("message {n}")).as_bytes())
            .unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot write the answers"), "{said}");
    assert_eq!(cli.texts("latest").len(), 20);
}

#[test]
fn empty_input_creates_no_session() {
    let cli = Cli::new();
    let ran = cli.run(&["record"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(ran.stderr, "nothing recorded; no session created\n");
    assert_eq!(cli.run(&["list", "--json"]).stdout, "[]\n");
}

#[test]
fn an_invalid_title_is_one_error_and_not_one_per_line() {
    let cli = Cli::new();
    let title = "t".repeat(5000);
    let ran = cli.run_with(&["record", "--title", &title], line("hello").as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr.contains("is 5000 bytes long; the limit is 4096"),
        "{}",
        ran.stderr
    );
    assert_eq!(cli.run(&["list", "--json"]).stdout, "[]\n");
}

/// A field that is not used and a role that is not known are kept, and the answer names them.
#[test]
fn a2_what_is_not_known_is_kept_and_named_in_the_answer() {
    let said = |more: Value| {
        let mut line = json!({"type": "message", "message": {"role": "assistant",
            "blocks": [{"type": "text", "text": "hello"}]}});
        for (path, value) in more.as_object().unwrap() {
            line.pointer_mut(path.rsplit_once('/').unwrap().0).unwrap()
                [path.rsplit_once('/').unwrap().1] = value.clone();
        }
        line
    };
    let usage = json!({"input_tokens": 10, "output_tokens": 4});
    let cases = [
        (json!({"role": "user", "text": "go"}), json!([]), None),
        (said(json!({})), json!([]), None),
        (
            said(
                json!({"/model": "m", "/cost_usd": 1.0, "/message/usage": usage, "/message/meta": true}),
            ),
            json!([]),
            None,
        ),
        (said(json!({"/usage": usage})), json!(["usage"]), None),
        (said(json!({"/usage": null})), json!(["usage"]), None),
        (
            said(json!({"/usage": usage, "/mood": 1, "/message/size": 2, "/a\"\u{1b}[31m": 3})),
            json!(["a\"\u{1b}[31m", "mood", "usage", "message.size"]),
            None,
        ),
        (
            said(json!({"/message/usage": {"prompt_tokens": 10, "input_tokens": "ten"}})),
            json!(["message.usage.input_tokens", "message.usage.prompt_tokens"]),
            None,
        ),
        (
            said(json!({"/message/blocks": [{"type": "text", "text": "a"},
                {"type": "text", "text": "b", "colour": "red"}, {"type": "hologram", "beam": 1}]})),
            json!(["message.blocks[1].colour", "message.blocks[2]"]),
            None,
        ),
        (
            json!({"role": "asistant", "text": "hi"}),
            json!([]),
            Some("asistant"),
        ),
        (
            said(json!({"/message/role": "User", "/usage": usage})),
            json!(["usage"]),
            Some("User"),
        ),
        (said(json!({"/message/role": "system"})), json!([]), None),
        (said(json!({"/message/role": "tool"})), json!([]), None),
    ];
    for mode in ["record", "batch"] {
        let cli = Cli::new();
        let input: String = cases.iter().map(|(line, ..)| format!("{line}\n")).collect();
        let ran = cli.run_with(&["record", "--durability", mode], input.as_bytes());
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(!ran.stdout.contains('\u{1b}'), "{ran:#?}");
        let answers = ran.json_lines();
        assert_eq!(answers.len(), cases.len());
        for (answer, (line, unknown, role)) in answers.iter().zip(&cases) {
            assert_eq!(answer["ok"], true, "{line}");
            let mut named = answer.get("unknown").cloned().unwrap_or(json!([]));
            let mut expected = unknown.clone();
            for names in [&mut named, &mut expected] {
                names
                    .as_array_mut()
                    .unwrap()
                    .sort_by_key(ToString::to_string);
            }
            assert_eq!(named, expected, "{line}");
            assert_eq!(
                answer.get("unknown").is_some(),
                unknown != &json!([]),
                "{line}"
            );
            assert_eq!(
                answer
                    .get("unknown_role")
                    .map(|role| role.as_str().unwrap()),
                *role,
                "{line}"
            );
        }
        // What was not used is still there.
        let id = answers[0]["session"].as_str().unwrap();
        let raw = cli.run(&["show", id, "--raw"]).stdout;
        for kept in [
            r#""mood":1"#,
            r#""prompt_tokens":10"#,
            r#""beam":1"#,
            r#""role":"asistant""#,
        ] {
            assert!(raw.contains(kept), "{kept}");
        }
    }
}

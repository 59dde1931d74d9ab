//! `import` and `export`: sessions of version 1 in, and out again (A8-A10).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, screen};

/// A session of version 1 with all that such files hold.
const LINES: &str = r#"{"created_at_ms":1794726326111,"fork":{"branch_name":"try-2","parent_session_id":"session-1794726326110-0"},"model":"m","session_id":"session-1794726326112-1","type":"session_meta","updated_at_ms":1794726326113,"version":1,"workspace_root":"/home/u/proj"}
{"count":1,"removed_message_count":12,"summary":"They talked.","type":"compaction"}
{"text":"fix the bug","timestamp_ms":1794726326114,"type":"prompt_history"}

{"message":{"blocks":[{"text":"fix the bug","type":"text"}],"role":"user"},"type":"message"}
{"message":{"blocks":[{"signature":"EqoB","thinking":"Let me look.","type":"thinking"},{"id":"toolu_01","input":"echo hi","name":"bash","type":"tool_use"}],"role":"assistant","usage":{"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"input_tokens":10,"output_tokens":4}},"type":"message"}
{"message":{"blocks":[{"is_error":false,"output":"hi\n","tool_name":"bash","tool_use_id":"toolu_01","type":"tool_result"}],"role":"tool"},"type":"message"}
"#;
const ID: &str = "session-1794726326112-1";
const OBJECT: &str =
    r#"{"messages":[{"blocks":[{"text":"hello","type":"text"}],"role":"user"}],"version":1}"#;

fn write(cli: &Cli, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(cli.work().join(name), text).unwrap();
}

fn seen(ran: &Ran, cli: &Cli) -> String {
    screen(ran, cli, &[])
}

// A8, A9
#[test]
fn a8_a9_both_forms_are_taken_in_byte_for_byte() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    write(&cli, "old.json", OBJECT);
    let ran = cli.run(&["import", "lines.jsonl", "old.json"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: new        <work>/lines.jsonl: 3 messages, session session-1794726326112-1
out: new        <work>/old.json: 1 message, session old
"
    );
    assert_eq!(std::fs::read_to_string(cli.trail(ID, 0)).unwrap(), LINES);
    assert_eq!(
        std::fs::read_to_string(cli.trail("old", 0)).unwrap(),
        OBJECT
    );
    let shown = cli.run(&["show", ID, "--json"]).json();
    assert_eq!(shown["created_at"], "2026-11-15T07:05:26.111Z");
    assert_eq!(shown["model"], "m");
    assert_eq!(shown["workspace"], "/home/u/proj");
    let origin = &shown["forked_from"];
    assert_eq!(origin["parent_session_id"], "session-1794726326110-0");
    assert_eq!(origin["branch_name"], "try-2");
    let call = &shown["messages"][1];
    assert_eq!(call["blocks"][1]["input"], "echo hi", "kept as that string");
    assert_eq!(call["usage"]["cache_read_input_tokens"], 2);
    assert_eq!(shown["compactions"][0]["removed_message_count"], 12);
    // What the summary stands for is not in the file; all that is there is sent.
    let context = cli.run(&["context", ID, "--format", "openai-chat"]).json();
    let sent = context["messages"].as_array().unwrap();
    assert_eq!(sent.len(), 4);
    assert!(
        sent[0]["content"]
            .as_str()
            .unwrap()
            .ends_with("They talked.")
    );
    assert_eq!(cli.run(&["verify"]).code, 0);
}

// F2
#[test]
fn f2_an_imported_session_is_gone_on_with_and_its_file_stays_as_it_was() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    write(&cli, "old.json", OBJECT);
    cli.run(&["import", "lines.jsonl", "old.json"]);
    for (id, file, text) in [(ID, "lines.jsonl", LINES), ("old", "old.json", OBJECT)] {
        let before = cli.conversation(id);
        let ran = cli.run(&["record", "--session", id, "--text", "and on"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let messages = cli.run(&["show", id, "--json"]).json()["messages"].clone();
        let last = messages.as_array().unwrap().last().unwrap();
        assert_eq!(last["blocks"][0]["text"], "and on");
        let seq = last["seq"].as_u64().unwrap();
        let ran = cli.run(&["rewind", &format!("{id}:{}", seq - 1), "--chat"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(cli.conversation(id), before);
        assert_eq!(
            std::fs::read_to_string(cli.work().join(file)).unwrap(),
            text
        );
        assert_eq!(std::fs::read_to_string(cli.trail(id, 0)).unwrap(), text);
    }
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn taken_in_again_the_same_content_changes_nothing() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    cli.run(&["import", "lines.jsonl"]);
    cli.run(&["title", ID, "mine"]);
    let before = cli.run(&["show", ID, "--json"]).stdout;
    let ran = cli.run(&["import", "lines.jsonl", "./lines.jsonl"]);
    let line = "out: unchanged  <work>/lines.jsonl: 3 messages, session session-1794726326112-1\n";
    assert_eq!(seen(&ran, &cli), format!("exit 0\n{line}{line}"));
    assert_eq!(cli.run(&["show", ID, "--json"]).stdout, before);
    assert_eq!(
        cli.run(&["list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a8_two_files_with_one_id_and_other_content_are_two_sessions() {
    let cli = Cli::new();
    write(&cli, "a.jsonl", LINES);
    write(
        &cli,
        "b.jsonl",
        LINES.replace("fix the bug", "fix the other bug"),
    );
    let ran = cli.run(&["import", "a.jsonl", "b.jsonl", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let rows = ran.json();
    let other = rows[1]["session"].as_str().unwrap();
    let file = |name: &str| cli.work().canonicalize().unwrap().join(name);
    assert_eq!(
        rows,
        json!([
            {"file": file("a.jsonl"), "session": ID, "outcome": "new", "messages": 3,
                "damaged": 0, "original_id": null},
            {"file": file("b.jsonl"), "session": other, "outcome": "new", "messages": 3,
                "damaged": 0, "original_id": ID},
        ])
    );
    let shown = cli.run(&["show", other, "--json"]).json();
    assert_eq!(shown["original_id"], ID);
    // Once more it is found by its content.
    let again = cli.run(&["import", "b.jsonl", "--json"]).json();
    assert_eq!(again[0]["session"], other);
    assert_eq!(again[0]["outcome"], "unchanged");
    let text = cli.run(&["import", "b.jsonl"]);
    assert_eq!(
        text.stderr,
        format!("  its own id {ID} is taken or no id; it is kept as original_id\n")
    );
}

// A14
#[test]
fn a14_a_file_that_is_no_session_is_named_and_the_others_are_taken_in() {
    let cli = Cli::new();
    write(&cli, "good.jsonl", LINES);
    write(&cli, "bad.jsonl", "{\"type\":\"message\"}\n");
    write(&cli, "picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let files = [
        "bad.jsonl",
        "missing.jsonl",
        "picture.png",
        ".",
        "good.jsonl",
    ];
    let ran = cli.run(&[&["import"], &files[..]].concat());
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 1), "{ran:#?}");
    assert!(ran.stdout.starts_with("new        "), "{}", ran.stdout);
    for file in &files[..4] {
        let error = format!("error: {file} was not taken in\n  caused by: ");
        assert!(ran.stderr.contains(&error), "{file}: {}", ran.stderr);
    }
    for reason in [
        "the field `message` is missing",
        "there is no such session file, nor an older copy beside it",
        "not a regular file",
    ] {
        assert!(ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
    }
    assert!(
        ran.stderr.ends_with("1 of 5 files taken in\n"),
        "{}",
        ran.stderr
    );
    let ran = cli.run(&["import", "missing.jsonl", "good.jsonl", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let rows = ran.json();
    assert_eq!(rows[0]["file"], "missing.jsonl");
    assert_eq!(rows[0]["kind"], "not_found");
    assert!(
        rows[0]["error"]
            .as_str()
            .unwrap()
            .contains("no such session file")
    );
    assert_eq!(rows[1]["outcome"], "unchanged");
    assert_eq!(
        cli.run(&["list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

// F8
#[test]
fn f8_lines_that_cannot_be_read_cost_just_those_lines_and_are_told() {
    let cli = Cli::new();
    let mut bytes = LINES.as_bytes().to_vec();
    bytes.extend_from_slice(b"not json\n{\"type\":\"message\",\"message\":{\"role\":\"us");
    write(&cli, "torn.jsonl", &bytes);
    let ran = cli.run(&["import", "torn.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains(": 3 messages"), "{}", ran.stdout);
    assert!(
        ran.stderr.starts_with("warning: 2 places of ") && ran.stderr.contains(", line 8"),
        "{}",
        ran.stderr
    );
    let ran = cli.run(&["import", "torn.jsonl", "--json"]);
    assert_eq!(ran.json()[0]["damaged"], 2);
    assert_eq!(std::fs::read(cli.trail(ID, 0)).unwrap(), bytes);
}

// A8
#[test]
fn a8_leftovers_of_other_programs_are_no_sessions_but_stand_in_for_a_lost_file() {
    let cli = Cli::new();
    write(&cli, "s.jsonl", LINES);
    write(&cli, "s.rot-1794726326200.jsonl", LINES);
    write(&cli, "s.jsonl.tmp-1", LINES);
    let ran = cli.run(&["import", "s.rot-1794726326200.jsonl", "s.jsonl.tmp-1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.contains("this is an older copy of"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("temporary file"), "{}", ran.stderr);
    std::fs::remove_file(cli.work().join("s.jsonl")).unwrap();
    let ran = cli.run(&["import", "s.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("s.rot-1794726326200.jsonl: 3 messages"),
        "{}",
        ran.stdout
    );
}

// A10
#[test]
fn a10_an_import_comes_out_as_version_1_again_and_what_it_lost_is_listed() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    cli.run(&["import", "lines.jsonl"]);
    let ran = cli.run(&["export", ID, "--to", "v1"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            0,
            "note: the history of prompts was left out in 1 place (3)\n\
             note: thinking was left out in 1 message (6)\n"
        )
    );
    let is_kept = |line: &&str| !line.is_empty() && !line.contains("prompt_history");
    let thinking = r#"{"signature":"EqoB","thinking":"Let me look.","type":"thinking"},"#;
    let mut expected: String = LINES.lines().filter(is_kept).collect::<Vec<_>>().join("\n");
    expected = expected.replace(thinking, "") + "\n";
    assert_eq!(ran.stdout, expected);
    // And in again, it is the same conversation without the thinking.
    write(&cli, "out.jsonl", &ran.stdout);
    let other = cli.run(&["import", "out.jsonl", "--json"]).json();
    assert_eq!(other[0]["original_id"], ID);
    let other = other[0]["session"].as_str().unwrap();
    let context = |id: &str| cli.run(&["context", id, "--format", "openai-chat"]).stdout;
    assert_eq!(context(other), context(ID));
}

/// What version 1 has no place for in `Cli::talk`.
const LOST: &str = "note: title, tags or agent were left out\n\
                    note: model, response id, duration or cost were left out in 2 messages (3, 4)\n";

// A10
#[test]
fn a10_a_native_session_comes_out_as_version_1_and_is_read_back() {
    let cli = Cli::new();
    let id = cli.talk();
    let ran = cli.run(&["export", &id, "--to", "v1"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, LOST));
    let lines: Vec<Value> = ran.json_lines();
    assert_eq!(lines[0]["type"], "session_meta");
    assert_eq!(lines[0]["session_id"], id);
    assert_eq!(lines[0]["version"], 1);
    assert!(lines[0]["created_at_ms"].is_u64() && lines[0]["updated_at_ms"].is_u64());
    assert_eq!(lines.len(), 6);
    let call = &lines[3]["message"];
    assert_eq!(
        call["blocks"][1]["input"], r#"{"command":"ls"}"#,
        "version 1 has text there"
    );
    assert_eq!(
        call["usage"],
        json!({"cache_creation_input_tokens": 0, "cache_read_input_tokens": 500,
            "input_tokens": 1000, "output_tokens": 40})
    );
    let elsewhere = Cli::new();
    write(&elsewhere, "s.jsonl", &ran.stdout);
    assert_eq!(elsewhere.run(&["import", "s.jsonl"]).code, 0);
    let context = |cli: &Cli| cli.run(&["context", &id, "--format", "anthropic"]).stdout;
    assert_eq!(context(&elsewhere), context(&cli));
    // Once more, and nothing changes any more.
    let again = elsewhere.run(&["export", &id, "--to", "v1"]);
    assert_eq!(again.stdout, ran.stdout);
}

#[test]
fn a10_what_a_summary_stands_for_is_left_out_of_version_1_and_told() {
    let cli = Cli::new();
    let id = cli.talk();
    write(&cli, "summary", "They looked.");
    cli.run(&["compact", &id, "--summary-file", "summary", "--keep", "1"]);
    let ran = cli.run(&["export", &id, "--to", "v1"]);
    assert_eq!(
        ran.stderr,
        "note: title, tags or agent were left out\n\
         note: 3 messages that the summary stands for left out (2, 3, 4)\n"
    );
    let lines = ran.json_lines();
    let compaction = json!({"count": 1, "removed_message_count": 3, "summary": "They looked.",
        "type": "compaction"});
    assert_eq!(lines[1], compaction);
    assert_eq!(lines.len(), 4, "the instructions and the last message stay");
}

#[test]
fn json_is_one_object_with_all_messages_and_what_is_known_of_each() {
    let cli = Cli::new();
    let id = cli.talk();
    cli.run(&["tag", &id, "bug"]);
    let ran = cli.run(&["export", &id, "--to", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let exported = ran.json();
    assert_eq!(exported["session_id"], id);
    assert_eq!(exported["title"], "a talk");
    assert_eq!(exported["tags"], json!(["bug"]));
    let shown = cli.run(&["show", &id, "--json"]).json();
    let messages = exported["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 5);
    for (n, message) in messages.iter().enumerate() {
        let of_show = &shown["messages"][n];
        assert_eq!(message["blocks"], of_show["blocks"]);
        let record = &exported["records"][n];
        for field in [
            "seq",
            "id",
            "at",
            "model",
            "response_id",
            "duration_ms",
            "cost_usd",
        ] {
            assert_eq!(record[field], of_show[field], "{field} of {n}");
        }
    }
    // It is the older form of a session file, and taken in as one.
    let elsewhere = Cli::new();
    write(&elsewhere, "s.json", &ran.stdout);
    let ran = elsewhere.run(&["import", "s.json", "--json"]);
    assert_eq!(ran.json()[0]["session"], id, "{ran:#?}");
    let context = |cli: &Cli| cli.run(&["context", &id, "--format", "anthropic"]).stdout;
    assert_eq!(context(&elsewhere), context(&cli));
}

#[test]
fn markdown_reads_well() {
    let cli = Cli::new();
    let id = cli.talk();
    write(&cli, "summary", "They looked.");
    cli.run(&["compact", &id, "--summary-file", "summary"]);
    let ran = cli.run(&["export", &id, "--to", "markdown"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        crate::kit::normal(&ran.stdout, &cli, &[&id]),
        "\
# a talk

`<session>` · <day> <time> · `<work>`

1 turn · 1 tool call · 1,540 tokens · $0.01

## 1 · system · <day> <time>

Be short.

## 2 · user · <day> <time>

what is here?

## 3 · assistant · <day> <time>

Let me look.

**bash**

```json
{\"command\":\"ls\"}
```

## 4 · tool · <day> <time>

**bash**

```text
src
```

## 5 · assistant · <day> <time>

One folder: src.

## 6 · compaction

*in place of 4 messages, the model is told:*

They looked.
"
    );
}

#[test]
fn markdown_keeps_fences_in_tool_output_inside_their_own() {
    let cli = Cli::new();
    let input = r#"{"type":"message","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t1","tool_name":"cat","output":"````\nx\n````\n"}]}}"#;
    let ran = cli.run_with(&["record"], format!("{input}\n").as_bytes());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ran = cli.run(&["export", "latest", "--to", "markdown"]);
    assert!(
        ran.stdout.contains("`````text\n````\nx\n````\n`````\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_export_goes_to_a_new_file_that_is_never_replaced() {
    let cli = Cli::new();
    let id = cli.talk();
    for (format, name) in [
        ("v1", "a file.jsonl"),
        ("json", "-s.json"),
        ("markdown", "s.md"),
    ] {
        let to_stdout = cli.run(&["export", &id, "--to", format]).stdout;
        let lost = if format == "v1" { LOST } else { "" };
        let losses: Vec<&str> = lost
            .lines()
            .filter_map(|line| line.strip_prefix("note: "))
            .collect();
        let output = format!("--output={name}");
        let ran = cli.run(&["export", &id, "--to", format, &output]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let path = cli.work().join(name);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), to_stdout);
        let again = cli.run(&["export", &id, "--to", format, &output]);
        assert_eq!(
            seen(&again, &cli),
            format!(
                "\
exit 2
err: error: this file exists; it is not replaced
err:   in: {name}
err:
err: hint: name another file, or remove this one first
"
            )
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), to_stdout);
        cli.take_back(&ran);
        assert!(!path.exists());
        let ran = cli.run(&["export", &id, "--to", format, &output, "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert_eq!(
            ran.json(),
            json!({"session": id, "to": format, "file": name, "bytes": to_stdout.len(), "losses": losses})
        );
    }
    let ran = cli.run(&["export", &id, "--to", "v1", "-o", "x.jsonl"]);
    let size = std::fs::metadata(cli.work().join("x.jsonl")).unwrap().len();
    assert!(size < 1024, "else it is told in KiB");
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        format!(
            "\
exit 0
out: <id> written to x.jsonl ({size} bytes)
err: note: title, tags or agent were left out
err: note: model, response id, duration or cost were left out in 2 messages (3, 4)
err: take this back: rm x.jsonl
"
        )
    );
}

#[test]
fn an_export_that_cannot_be_written_says_why_and_leaves_nothing() {
    let cli = Cli::new();
    let id = cli.talk();
    let ran = cli.run(&["export", &id, "--to", "v1", "-o", "no/such/dir.jsonl"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 2
err: error: cannot write the export
err:   caused by: No such file or directory (os error 2)
err:   in: no/such/dir.jsonl
"
    );
    for args in [&["export", &id][..], &["export", &id, "--to", "yaml"]] {
        let ran = cli.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    }
    assert_eq!(std::fs::read_dir(cli.work()).unwrap().count(), 0);
}

fn samples() -> Option<Vec<PathBuf>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/claw-code");
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!("SKIPPED: there are no samples in {}", dir.display());
        return None;
    };
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.is_file());
    all.sort();
    Some(all)
}

/// Real files of another program: all are taken in, can be gone on with, and
/// come out again as they were said.
#[test]
fn a8_a9_real_files_are_taken_in_and_come_out_again() {
    let Some(samples) = samples() else {
        return;
    };
    assert!(samples.len() >= 10);
    let cli = Cli::new();
    let files: Vec<&str> = samples.iter().map(|path| path.to_str().unwrap()).collect();
    let ran = cli.run(&[&["import", "--json"], &files[..]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let rows = ran.json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), files.len());
    let mut messages = 0;
    for (row, file) in rows.iter().zip(&samples) {
        let id = row["session"].as_str().unwrap();
        assert_eq!(row["damaged"], 0, "{row}");
        messages += row["messages"].as_u64().unwrap();
        let shown = cli.run(&["show", id, "--json"]).json();
        assert_eq!(
            shown["messages"].as_array().unwrap().len() as u64,
            row["messages"]
        );
        assert_eq!(
            std::fs::read(cli.trail(id, 0)).unwrap(),
            std::fs::read(file).unwrap()
        );
        let elsewhere = Cli::new();
        let exported = cli.run(&["export", id, "--to", "v1"]);
        write(&elsewhere, "s.jsonl", &exported.stdout);
        assert_eq!(elsewhere.run(&["import", "s.jsonl"]).code, 0);
        let context = |cli: &Cli| cli.run(&["context", id, "--format", "openai-chat"]).stdout;
        assert_eq!(context(&elsewhere), context(&cli), "{}", file.display());
        assert_eq!(
            cli.run(&["record", "--session", id, "--text", "on"]).code,
            0
        );
    }
    assert!(messages > 20, "{messages}");
    let again = cli
        .run(&[&["import", "--json"], &files[..]].concat())
        .json();
    assert!(
        again
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["outcome"] == "unchanged")
    );
    assert_eq!(cli.run(&["verify"]).code, 0);
}

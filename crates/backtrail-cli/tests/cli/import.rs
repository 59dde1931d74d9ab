//! `import` and `export`: sessions of version 1 in, and out again (A8-A10).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, screen, short};

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

/// Another session of version 1, with the id that is put in.
const OTHER: &str = r#"{"created_at_ms":1794726326115,"session_id":"<id>","type":"session_meta","updated_at_ms":1794726326116,"version":1}
{"message":{"blocks":[{"text":"what else?","type":"text"}],"role":"user"},"type":"message"}
"#;

fn write(cli: &Cli, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(cli.work().join(name), text).unwrap();
}

fn seen(ran: &Ran, cli: &Cli) -> String {
    screen(ran, cli, &[])
}

/// Takes files in without a word, and returns what came of claw-code's.
fn import(cli: &Cli, files: &[&str]) -> Value {
    let ran = cli.run(&[&["import", "--json"], files].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    ran.json()["agents"]["claw-code"].clone()
}

/// Returns all sessions, as `list` tells them.
fn listed(cli: &Cli) -> Vec<Value> {
    let ran = cli.run(&["list", "--all", "--json"]);
    ran.json().as_array().unwrap().clone()
}

/// Returns the session that begins with these words.
fn beginning(cli: &Cli, words: &str) -> Value {
    let mut all = listed(cli);
    all.retain(|session| session["begins"] == words);
    assert_eq!(all.len(), 1, "{words}: {all:#?}");
    all.remove(0)
}

fn id_of(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

/// Returns the file that a session was imported from.
fn file_of(cli: &Cli, id: &str) -> Vec<u8> {
    let out = cli.work().join("file of a session");
    let ran = cli.run(&[
        "export",
        id,
        "--to",
        "claw-code",
        "-o",
        out.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let bytes = std::fs::read(&out).unwrap();
    std::fs::remove_file(out).unwrap();
    bytes
}

// A8, A9
#[test]
fn a8_a9_both_forms_are_imported_and_their_bytes_are_kept() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    write(&cli, "old.json", OBJECT);
    let ran = cli.run(&["import", "lines.jsonl", "old.json"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: AGENT      FOUND  NEW  UPDATED  UNCHANGED  DAMAGED LINES  UNKNOWN RECORDS
out: claw-code      2    2        0          0              0                0
"
    );
    let old = beginning(&cli, "hello");
    assert_eq!(file_of(&cli, ID), LINES.as_bytes());
    assert_eq!(file_of(&cli, id_of(&old)), OBJECT.as_bytes());
    let shown = cli.run(&["show", ID, "--json"]).json();
    assert_eq!(shown["agent"], "claw-code");
    assert_eq!(shown["created_at"], "2026-11-15T07:05:26.111Z");
    // The file says .113, and that somebody entered a prompt after that.
    assert_eq!(shown["updated_at"], "2026-11-15T07:05:26.114Z");
    assert_eq!(shown["model"], "m");
    assert_eq!(shown["workspace"], "/home/u/proj");
    assert_eq!(shown["original_id"], Value::Null);
    let origin = &shown["forked_from"];
    assert_eq!(origin["parent_session_id"], "session-1794726326110-0");
    assert_eq!(origin["branch_name"], "try-2");
    assert_eq!(shown["messages"].as_array().unwrap().len(), 3);
    let call = &shown["messages"][1];
    assert_eq!(call["blocks"][0]["signature"], "EqoB");
    assert_eq!(call["blocks"][1]["input"], "echo hi", "kept as that string");
    assert_eq!(call["usage"]["cache_read_input_tokens"], 2);
    assert_eq!(shown["compactions"][0]["removed_message_count"], 12);
    // What the summary stands for is not in the file; all that is there is sent.
    let context = cli.run(&["context", ID, "--format", "openai-chat"]).json();
    let sent = context["messages"].as_array().unwrap();
    assert_eq!(sent.len(), 4);
    let summary = sent[0]["content"].as_str().unwrap();
    assert!(summary.ends_with("They talked."), "{summary}");
    assert_eq!(cli.run(&["verify"]).code, 0);
}

// A8, A9
#[test]
fn a8_a9_missing_facts_are_filled_in_the_same_way_every_time() {
    let message = LINES
        .lines()
        .find(|line| line.contains("fix the bug") && line.contains("blocks"));
    let no_meta = format!("\n{}\n\n", message.unwrap());
    let told = [0, 1].map(|_| {
        let cli = Cli::new();
        write(&cli, "old.json", OBJECT);
        write(&cli, "no meta.jsonl", &no_meta);
        for name in ["old.json", "no meta.jsonl"] {
            let file = std::fs::File::options()
                .append(true)
                .open(cli.work().join(name));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
            file.unwrap().set_modified(time).unwrap();
        }
        assert_eq!(import(&cli, &["old.json", "no meta.jsonl"])["new"], 2);
        ["hello", "fix the bug"].map(|words| {
            let session = beginning(&cli, words);
            let shown = cli.run(&["show", id_of(&session), "--json"]).json();
            // When the file was written is the nearest that is known.
            for at in [
                &shown["created_at"],
                &shown["updated_at"],
                &shown["messages"][0]["at"],
            ] {
                assert_eq!(at, "2023-11-14T22:13:20.000Z", "{shown:#}");
            }
            (session["id"].clone(), session["original_id"].clone())
        })
    });
    assert_eq!(told[0], told[1]);
    assert_eq!(
        told[0].each_ref().map(|(_, name)| name.as_str().unwrap()),
        ["old", "no meta"]
    );
}

// A8
#[test]
fn a8_the_meta_may_be_anywhere_and_the_last_one_counts() {
    let cli = Cli::new();
    let mut lines: Vec<&str> = LINES.lines().collect();
    let meta = lines.remove(0);
    let early = meta.replace("\"model\":\"m\"", "\"model\":\"early\"");
    lines.insert(2, &early);
    lines.push(meta);
    lines.push(r#"{"count":2,"removed_message_count":3,"summary":"More.","type":"compaction"}"#);
    write(&cli, "s.jsonl", lines.join("\n") + "\n");
    assert_eq!(import(&cli, &["s.jsonl"])["new"], 1);
    let shown = cli.run(&["show", ID, "--json"]).json();
    assert_eq!(shown["model"], "m");
    let context = cli.run(&["context", ID, "--format", "openai-chat"]).json();
    let first = context["messages"][0]["content"].as_str().unwrap();
    assert!(first.ends_with("More."), "{context}");
    assert_eq!(context["messages"].as_array().unwrap().len(), 4);
}

// F2
#[test]
fn f2_an_imported_session_continues_in_a_fork_and_its_file_stays_as_it_was() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    write(&cli, "old.json", OBJECT);
    import(&cli, &["lines.jsonl", "old.json"]);
    let old = beginning(&cli, "hello");
    for (id, file, text) in [
        (ID, "lines.jsonl", LINES),
        (id_of(&old), "old.json", OBJECT),
    ] {
        let before = cli.conversation(id);
        let ran = cli.run(&["record", "--session", id, "--text", "and on"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let fork = ran.json()["session"].as_str().unwrap().to_owned();
        let says = format!(
            "session {} belongs to claw-code; continuing in a fork: {fork}\n",
            short(id)
        );
        assert_eq!(ran.stderr, says);
        let shown = cli.run(&["show", &fork, "--json"]).json();
        assert_eq!(shown["forked_from"]["parent_session_id"], id);
        let last = shown["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["blocks"][0]["text"], "and on");
        let seq = last["seq"].as_u64().unwrap();
        let ran = cli.run(&["rewind", &format!("{fork}:{}", seq - 1), "--chat"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(cli.conversation(&fork), before);
        assert_eq!(cli.conversation(id), before);
        let bytes = std::fs::read_to_string(cli.work().join(file)).unwrap();
        assert_eq!(bytes, text);
        assert_eq!(file_of(&cli, id), text.as_bytes());
    }
    assert_eq!(import(&cli, &["lines.jsonl", "old.json"])["unchanged"], 2);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

// F2
#[test]
fn f2_an_object_to_which_lines_were_appended_is_read_all_the_same() {
    let cli = Cli::new();
    write(&cli, "old.json", OBJECT);
    import(&cli, &["old.json"]);
    let old = beginning(&cli, "hello");
    let line = r#"{"message":{"blocks":[{"text":"and on","type":"text"}],"role":"user"},"type":"message"}"#;
    write(&cli, "old.json", format!("{OBJECT}\n{line}\n"));
    assert_eq!(import(&cli, &["old.json"])["updated"], 1);
    assert_eq!(cli.texts(id_of(&old)), ["hello", "and on"]);
    assert_eq!(listed(&cli).len(), 1);
}

#[test]
fn importing_the_same_content_again_changes_nothing() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    import(&cli, &["lines.jsonl"]);
    cli.run(&["title", ID, "mine"]);
    let before = cli.run(&["show", ID, "--json"]).stdout;
    let again = import(&cli, &["lines.jsonl", "./lines.jsonl"]);
    assert_eq!(
        (&again["found"], &again["unchanged"]),
        (&json!(1), &json!(1))
    );
    // Nor does a copy of it.
    write(&cli, "copy.jsonl", LINES);
    let copy = import(&cli, &["copy.jsonl"]);
    assert_eq!((&copy["new"], &copy["messages"]), (&json!(0), &json!(0)));
    let told = |text: &str| serde_json::from_str::<Value>(text).unwrap()["messages"].clone();
    let after = cli.run(&["show", ID, "--json"]).stdout;
    assert_eq!(told(&after), told(&before));
    assert_eq!(
        serde_json::from_str::<Value>(&after).unwrap()["title"],
        "mine"
    );
    assert_eq!(listed(&cli).len(), 1);
}

#[test]
fn a8_two_files_with_one_id_and_other_content_are_two_sessions() {
    let cli = Cli::new();
    let other_lines = LINES.replace("fix the bug", "fix the other bug");
    let stranger_lines = OTHER.replace("<id>", ID);
    write(&cli, "a.jsonl", LINES);
    write(&cli, "b.jsonl", &other_lines);
    write(&cli, "c.jsonl", &stranger_lines);
    // The first keeps the id; of files that are imported together any may be the first.
    assert_eq!(import(&cli, &["a.jsonl"])["new"], 1);
    assert_eq!(import(&cli, &["b.jsonl", "c.jsonl"])["new"], 2);
    assert_eq!(beginning(&cli, "fix the bug")["id"], ID);
    for (words, text) in [
        ("fix the other bug", &other_lines),
        ("what else?", &stranger_lines),
    ] {
        let other = beginning(&cli, words);
        assert_ne!(other["id"], ID);
        assert_eq!(other["original_id"], ID);
        let shown = cli.run(&["show", id_of(&other), "--json"]).json();
        assert_eq!(shown["original_id"], ID);
        assert_eq!(file_of(&cli, id_of(&other)), text.as_bytes());
    }
    assert_eq!(
        cli.run(&["show", ID, "--json"]).json()["messages"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    // Once more each is found again.
    let before = listed(&cli);
    for file in ["b.jsonl", "c.jsonl", "a.jsonl"] {
        assert_eq!(import(&cli, &[file])["unchanged"], 1);
    }
    assert_eq!(listed(&cli), before);
}

// A14
#[test]
fn a14_a_file_that_is_not_a_session_is_named_and_the_others_are_imported() {
    let cli = Cli::new();
    write(&cli, "good.jsonl", LINES);
    write(&cli, "bad.jsonl", "{\"type\":\"message\"}\n");
    write(&cli, "picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let files = ["bad.jsonl", "missing.jsonl", "picture.png", "good.jsonl"];
    let ran = cli.run(&[&["import"], &files[..]].concat());
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stdout.contains("claw-code      1    1  "),
        "{}",
        ran.stdout
    );
    for file in &files[..3] {
        let error = format!("error: {file} was not imported\n  caused by: ");
        assert!(ran.stderr.contains(&error), "{file}: {}", ran.stderr);
    }
    for reason in [
        "the field `message` is missing",
        "No such file or directory",
        "not UTF-8 at byte 0",
    ] {
        assert!(ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
    }
    let ran = cli.run(&[
        "import",
        "missing.jsonl",
        "bad.jsonl",
        "good.jsonl",
        "--json",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let told = ran.json();
    let errors = told["errors"].as_array().unwrap();
    let errors: Vec<_> = errors
        .iter()
        .map(|error| (&error["file"], &error["kind"]))
        .collect();
    assert_eq!(
        errors,
        [
            (&json!("missing.jsonl"), &json!("not_found")),
            (&json!("bad.jsonl"), &json!("invalid")),
        ]
    );
    assert_eq!(told["agents"]["claw-code"]["unchanged"], 1);
    assert_eq!(listed(&cli).len(), 1);
}

// F8
#[test]
fn f8_lines_that_cannot_be_read_cost_only_those_lines_and_are_reported() {
    let cli = Cli::new();
    let mut bytes = LINES.as_bytes().to_vec();
    let said = |blocks: &str| {
        format!(
            "{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"blocks\":[{blocks}]}}}}\n"
        )
    };
    bytes.extend_from_slice(b"not json\n\0\0\0\0\n{\"type\":\"hologram\"}\n");
    // Each of these stopped a reader once.
    for line in [
        r#"{"type":"message","message":{"role":"assistant","blocks":[],"usage":null}}"#.to_owned()
            + "\n",
        said(r#"{"type":"hologram","n":18446744073709551616}"#),
        said(r#"{"type":"text","text":"\ud83d\ude00"}"#),
        said(&format!(
            r#"{{"type":"x","deep":{}{}}}"#,
            "[".repeat(50_000),
            "]".repeat(50_000)
        )),
        said(r#"{"type":"text","text":"the end"}"#),
    ] {
        bytes.extend_from_slice(line.as_bytes());
    }
    let at = bytes.len() - b"\"}]}}\n".len();
    bytes.insert(at, b'\xff');
    bytes.extend_from_slice(b"{\"type\":\"message\",\"message\":{\"role\":\"us");
    write(&cli, "torn.jsonl", &bytes);
    let ran = cli.run(&["import", "torn.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let begin = "warning: claw-code: 2 damaged lines skipped; the first is line 8 of ";
    assert!(ran.stderr.starts_with(begin), "{}", ran.stderr);
    assert!(ran.stderr.contains("hologram (1)"), "{}", ran.stderr);
    let again = import(&cli, &["torn.jsonl"]);
    assert_eq!(
        (&again["damaged_lines"], &again["unknown_records"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(beginning(&cli, "fix the bug")["messages"], 8);
    let shown = cli.run(&["show", ID]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(shown.stdout.contains("\u{1f600}"), "{}", shown.stdout);
    assert!(shown.stdout.contains("the end\u{fffd}"), "{}", shown.stdout);
    assert!(file_of(&cli, ID) == bytes);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

// A8
#[test]
fn a8_leftovers_of_other_programs_are_not_sessions_but_replace_a_lost_file() {
    let cli = Cli::new();
    write(&cli, "s.jsonl", LINES);
    write(&cli, "s.rot-1794726326200.jsonl", LINES);
    write(&cli, "s.rot-1794726326100.jsonl", OTHER.replace("<id>", ID));
    write(&cli, "s.jsonl.tmp-1", LINES);
    let ran = cli.run(&["import", "s.rot-1794726326200.jsonl", "s.jsonl.tmp-1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    for words in [
        "an older copy of s.jsonl; import that one",
        "temporary file",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    // In a directory they are skipped.
    let told = cli.run(&["import", ".", "--dry-run", "--json"]).json();
    assert_eq!(told["agents"]["claw-code"]["found"], 1);
    assert_eq!(told["other_files"], 3);
    std::fs::remove_file(cli.work().join("s.jsonl")).unwrap();
    let told = import(&cli, &["s.jsonl"]);
    assert_eq!((&told["new"], &told["messages"]), (&json!(1), &json!(3)));
    assert_eq!(file_of(&cli, ID), LINES.as_bytes(), "the newest copy");
}

// A10
#[test]
fn a10_an_import_comes_out_as_version_1_again_and_what_it_lost_is_listed() {
    let cli = Cli::new();
    write(&cli, "lines.jsonl", LINES);
    import(&cli, &["lines.jsonl"]);
    let ran = cli.run(&["export", ID, "--to", "v1"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            0,
            "note: the title, tags or agent was dropped\n\
             note: the model, response id, duration or cost was dropped in 1 message (3)\n\
             note: thinking was dropped in 1 message (3)\n"
        )
    );
    let is_kept = |line: &&str| !line.is_empty() && !line.contains("prompt_history");
    let thinking = r#"{"signature":"EqoB","thinking":"Let me look.","type":"thinking"},"#;
    let mut expected: String = LINES.lines().filter(is_kept).collect::<Vec<_>>().join("\n");
    expected = expected.replace(thinking, "") + "\n";
    // The prompt's time is later than that of the file's last change.
    expected = expected.replace(":1794726326113,", ":1794726326114,");
    assert_eq!(ran.stdout, expected);
    // And in again, it is the same conversation without the thinking.
    write(&cli, "out.jsonl", &ran.stdout);
    assert_eq!(import(&cli, &["out.jsonl"])["new"], 1);
    let all = listed(&cli);
    let other = all
        .iter()
        .find(|session| session["original_id"] == ID)
        .unwrap();
    let context = |id: &str| cli.run(&["context", id, "--format", "openai-chat"]).stdout;
    assert_eq!(context(id_of(other)), context(ID));
}

/// What version 1 has no place for in `Cli::talk`.
const LOST: &str = "note: the title, tags or agent was dropped\n\
                    note: the model, response id, duration or cost was dropped in 2 messages (3, 4)\n";

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
fn a10_what_a_summary_replaces_is_omitted_from_version_1_and_reported() {
    let cli = Cli::new();
    let id = cli.talk();
    write(&cli, "summary", "They looked.");
    cli.run(&["compact", &id, "--summary-file", "summary", "--keep", "1"]);
    let ran = cli.run(&["export", &id, "--to", "v1"]);
    assert_eq!(
        ran.stderr,
        "note: the title, tags or agent was dropped\n\
         note: 3 messages replaced by the summary (2, 3, 4)\n"
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
    // It is a file of our own, and is imported as one: it belongs to no other agent.
    let elsewhere = Cli::new();
    write(&elsewhere, "s.json", &ran.stdout);
    let would = elsewhere.run(&["import", "s.json", "--dry-run", "--json"]);
    let row = json!({"file": "s.json", "session": null, "outcome": "not_tried"});
    assert_eq!((would.code, &would.json()["own"][0]), (0, &row));
    assert!(!elsewhere.store().exists());
    let ran = elsewhere.run(&["import", "s.json", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let file = elsewhere.work().canonicalize().unwrap().join("s.json");
    let row = json!({"file": file, "session": id, "outcome": "new", "messages": 5,
        "damaged": 0});
    assert_eq!(ran.json()["own"], json!([row]));
    let there = listed(&elsewhere).remove(0);
    let known = (
        &there["agent"],
        &there["belongs_to"],
        &there["title"],
        &there["tags"],
    );
    assert_eq!(
        known,
        (
            &Value::Null,
            &Value::Null,
            &json!("a talk"),
            &json!(["bug"])
        )
    );
    let ran = elsewhere.run(&["import", "s.json"]);
    let line = format!("out: unchanged  <work>/s.json: 5 messages, session {id}\n");
    assert_eq!(seen(&ran, &elsewhere), format!("exit 0\n{line}"));
    // So it is continued as it is.
    let ran = elsewhere.run(&["record", "--session", &id, "--text", "and on"]);
    assert_eq!(
        (ran.json()["session"].as_str(), ran.stderr.as_str()),
        (Some(&*id), "")
    );
    elsewhere.run(&["rewind", &format!("{id}:5"), "--chat"]);
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
        crate::kit::normal(&ran.stdout.replace("\n*2", "\n* 2"), &cli, &[&id]),
        "\
# a talk

`<session>` · <day> <time> · `<work>`

1 turn · 1 tool call · 1.5 k tokens · $0.01+

+ marks a lower bound: 1 call reports no tokens

<details><summary>instructions (9 bytes)</summary>

```text
Be short.
```

</details>

## 1. what is here?

* <day> <time> · record 2*

Let me look.

<details><summary><b>bash</b> <code>ls</code> · src</summary>

```sh
ls
```

```text
src
```

</details>

One folder: src.

*1.5 k tokens · $0.01+*

---

* <day> <time> · record 6*

<details><summary>a summary (12 bytes) replaces 4 messages in the model&#39;s context</summary>

They looked.

</details>
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

/// Returns the kind, the count and the text of each loss in a report; they have no more.
fn losses(report: &Value) -> Vec<(String, u64, String)> {
    let losses = report["losses"].as_array().unwrap().iter();
    let fields = losses.map(|loss| {
        assert_eq!(loss.as_object().unwrap().len(), 3, "{loss:#}");
        let text = |name: &str| loss[name].as_str().unwrap().to_owned();
        (text("kind"), loss["count"].as_u64().unwrap(), text("text"))
    });
    fields.collect()
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
        let lost: Vec<&str> = lost
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
err: error: the file already exists
err:   in: {name}
err:
err: hint: to replace it: --force
"
            )
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), to_stdout);
        cli.reverse(&ran);
        assert!(!path.exists());
        let ran = cli.run(&["export", &id, "--to", format, &output, "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let (report, losses) = (ran.json(), losses(&ran.json()));
        let texts: Vec<&str> = losses.iter().map(|(_, _, text)| text.as_str()).collect();
        assert_eq!(texts, lost);
        assert_eq!(
            report,
            json!({"session": id, "to": format, "file": name, "bytes": to_stdout.len(), "replaced": false, "losses": report["losses"]})
        );
        // To stdout, the same is a line on stderr, if there is something.
        let ran = cli.run(&["export", &id, "--to", format, "--json"]);
        assert_eq!((ran.code, &ran.stdout), (0, &to_stdout));
        match losses.is_empty() {
            true => assert_eq!(ran.stderr, ""),
            false => {
                let line: Value = serde_json::from_str(&ran.stderr).unwrap();
                assert_eq!(line, json!({"losses": report["losses"]}));
            }
        }
    }
    let ran = cli.run(&["export", &id, "--to", "v1", "-o", "x.jsonl"]);
    let size = std::fs::metadata(cli.work().join("x.jsonl")).unwrap().len();
    assert!(size < 1024, "else it is told in KiB");
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        format!(
            "\
exit 0
out: exported <id> to x.jsonl ({size} bytes)
err: note: the title, tags or agent was dropped
err: note: the model, response id, duration or cost was dropped in 2 messages (3, 4)
err: to reverse: rm x.jsonl
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

#[test]
fn force_replaces_a_file_whole_or_not_at_all() {
    use std::os::unix::fs::PermissionsExt;
    let cli = Cli::new();
    let id = cli.talk();
    let (file, link) = (cli.work().join("s.md"), cli.work().join("link.md"));
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("s.md", &link).unwrap();
    let to = |format: &str, output: &str| {
        cli.run(&["export", &id, "--to", format, "-o", output, "--force"])
    };
    let ran = to("markdown", "link.md");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        !ran.stderr.contains("rm "),
        "the old file is gone: {ran:#?}"
    );
    let whole = cli.run(&["export", &id, "--to", "markdown"]).stdout;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    assert!(link.is_symlink(), "a link still leads to the file");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // It also makes a new file.
    assert_eq!(to("markdown", "new.md").code, 0);
    // What cannot be written changes nothing: the session is not Droid's.
    let ran = to("droid", "s.md");
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    std::fs::create_dir(cli.work().join("dir")).unwrap();
    let ran = to("markdown", "dir");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("not a regular file"), "{ran:#?}");
    let ran = cli.run(&["export", &id, "--to", "markdown", "--force"]);
    assert_eq!(ran.code, 2, "without -o there is nothing to replace");
    let left = std::fs::read_dir(cli.work()).unwrap().count();
    assert_eq!(left, 4, "no temporary file stays");
}

fn samples() -> Option<Vec<PathBuf>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/claw-code");
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!(
            "SKIPPED: needs the samples; there are none in {}",
            dir.display()
        );
        return None;
    };
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.is_file());
    all.sort();
    Some(all)
}

/// Real files of another program: all are imported, can be continued, and
/// come out again as they were said.
#[test]
fn a8_a9_real_files_are_imported_and_exported_again() {
    let Some(mut samples) = samples() else {
        return;
    };
    // One in which nothing was said is not a session.
    samples.retain(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        value["messages"] != json!([])
    });
    assert!(samples.len() >= 10);
    let cli = Cli::new();
    let files: Vec<&str> = samples.iter().map(|path| path.to_str().unwrap()).collect();
    let told = import(&cli, &files);
    let n = json!(files.len());
    assert_eq!(
        (&told["found"], &told["new"], &told["damaged_lines"]),
        (&n, &n, &json!(0))
    );
    let all = listed(&cli);
    assert_eq!(all.len(), files.len());
    let mut taken = Vec::new();
    let mut messages = 0;
    for session in &all {
        let id = id_of(session);
        assert_eq!(session["damaged"], 0, "{session}");
        messages += session["messages"].as_u64().unwrap();
        taken.push(file_of(&cli, id));
        let elsewhere = Cli::new();
        let exported = cli.run(&["export", id, "--to", "v1"]);
        write(&elsewhere, "s.jsonl", &exported.stdout);
        assert_eq!(elsewhere.run(&["import", "s.jsonl"]).code, 0);
        let there = listed(&elsewhere).remove(0);
        let context =
            |cli: &Cli, id: &str| cli.run(&["context", id, "--format", "openai-chat"]).stdout;
        assert_eq!(
            context(&elsewhere, id_of(&there)),
            context(&cli, id),
            "{session}"
        );
        let ran = cli.run(&["record", "--session", id, "--text", "on"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    let mut expected: Vec<_> = samples
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    taken.sort();
    expected.sort();
    assert!(taken == expected, "every file comes out as it was");
    assert!(messages > 20, "{messages}");
    assert_eq!(import(&cli, &files)["unchanged"], n);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

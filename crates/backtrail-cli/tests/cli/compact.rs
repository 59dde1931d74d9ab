//! `compact`, `context`, and compactions on the lines of `record`.

use serde_json::{Value, json};

use crate::kit::{Cli, line, screen, short};

/// Writes a summary where `compact` can find it.
fn summary(cli: &Cli, text: &str) {
    std::fs::write(cli.work().join("summary"), text).unwrap();
}

// A11
#[test]
fn a11_compact_reports_what_the_summary_replaces_and_undo_reverses_it() {
    let cli = Cli::new();
    let id = cli.talk();
    let before = cli.conversation(&id);
    summary(&cli, "They looked.");
    let ran = cli.run(&["compact", &id, "--summary-file", "summary", "--keep", "1"]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
out: the summary replaces 3 messages of <id> (record 6); 1 message kept after it
err: to reverse: backtrail undo <id>
"
    );
    // The history keeps everything, and says what the compaction was.
    let shown = cli.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 5);
    let compaction = &shown["compactions"][0];
    assert_eq!(compaction["seq"], 6);
    assert_eq!(compaction["count"], 1);
    assert_eq!(compaction["removed_message_count"], 3);
    assert_eq!(compaction["keeps_from"], 5);
    assert_eq!(compaction["summary"], "They looked.");
    let text = cli.run(&["show", &id]).stdout;
    assert!(text.contains("── compaction · "), "{text}");
    let folded = "  a summary (12 bytes) replaces 3 messages in the model's context\n";
    assert!(
        text.contains(folded) && !text.contains("They looked."),
        "{text}"
    );
    let text = cli.run(&["show", &id, "--full"]).stdout;
    assert!(text.contains("\n  They looked.\n"), "{text}");
    let back = cli.reverse(&ran);
    assert_eq!(
        screen(&back, &cli, &[&id]),
        "\
exit 0
out: Undid the compaction of 3 messages at record 6 (<when>)
out: <id> now ends at record 5
err: to reverse: backtrail redo <id>
"
    );
    assert_eq!(cli.conversation(&id), before);
    cli.reverse(&back);
    assert_ne!(cli.conversation(&id), before);
}

#[test]
fn a_compaction_as_json_counts_up() {
    let cli = Cli::new();
    let id = cli.talk();
    summary(&cli, "They looked.");
    let compact = |keep: &str| {
        let args = [
            "compact",
            &id,
            "--summary-file",
            "summary",
            "--keep",
            keep,
            "--json",
        ];
        let ran = cli.run(&args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        ran.json()
    };
    // The tool's result stays with its call: two were asked for, three stay.
    assert_eq!(
        compact("2"),
        json!({"session": id, "seq": 6, "count": 1, "removed_message_count": 1, "kept": 3, "keeps_from": 3})
    );
    assert_eq!(
        compact("0"),
        json!({"session": id, "seq": 7, "count": 2, "removed_message_count": 3, "kept": 0, "keeps_from": 7})
    );
}

#[test]
fn the_summary_can_come_from_stdin() {
    let cli = Cli::new();
    let id = cli.talk();
    let ran = cli.run_with(&["compact", &id, "--summary-file", "-"], b"By hand.");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let shown = cli.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["compactions"][0]["summary"], "By hand.");
}

#[test]
fn a_summary_that_cannot_be_used_is_refused_and_nothing_is_written() {
    let cli = Cli::new();
    let id = cli.talk();
    let before = cli.conversation(&id);
    std::fs::write(cli.work().join("binary"), b"ab\xff").unwrap();
    std::fs::write(cli.work().join("blank"), " \n").unwrap();
    let cases = [
        (
            "missing",
            "exit 2\nerr: error: cannot read the summary\nerr:   caused by: No such file or directory (os error 2)\nerr:   in: missing\n",
        ),
        (
            "binary",
            "exit 2\nerr: error: the summary is not UTF-8 at byte 2\nerr:   in: binary\n",
        ),
        (
            "blank",
            "exit 2\nerr: error: this compaction cannot be recorded: the field `summary` must be a text that is not blank\n",
        ),
    ];
    for (file, expected) in cases {
        let ran = cli.run(&["compact", &id, "--summary-file", file]);
        assert_eq!(screen(&ran, &cli, &[&id]), expected);
    }
    let too_long = vec![b'x'; (16 << 20) + 1];
    std::fs::write(cli.work().join("huge.txt"), too_long).unwrap();
    let ran = cli.run(&["compact", &id, "--summary-file", "huge.txt"]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "exit 2\nerr: error: the summary is longer than 16 MiB\nerr:   in: huge.txt\n"
    );
    for wrong in ["-1", "many"] {
        let keep = format!("--keep={wrong}");
        let ran = cli.run(&["compact", &id, "--summary-file", "blank", &keep]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        assert!(ran.stderr.contains("--keep <N>"), "{}", ran.stderr);
    }
    assert_eq!(cli.conversation(&id), before);
}

#[test]
fn the_context_comes_in_four_shapes() {
    let cli = Cli::new();
    let id = cli.talk();
    summary(&cli, "They looked.");
    cli.run(&["compact", &id, "--summary-file", "summary", "--keep", "2"]);
    let words = "This is a summary of the conversation up to this point:\\n\\nThey looked.";
    let call = r#"{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}}"#;
    let expected = [
        (
            "neutral",
            [
                r#"{"messages":[{"role":"system","blocks":[{"type":"text","text":"Be short."}]},"#,
                &format!(r#"{{"role":"user","blocks":[{{"type":"text","text":"{words}"}}]}},"#),
                &format!(r#"{{"role":"assistant","blocks":[{{"type":"text","text":"Let me look."}},{call}]}},"#),
                r#"{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t1","tool_name":"bash","output":"src","is_error":false}]},"#,
                r#"{"role":"assistant","blocks":[{"type":"text","text":"One folder: src."}]}]}"#,
            ]
            .concat(),
        ),
        (
            "anthropic",
            [
                r#"{"system":[{"type":"text","text":"Be short."}],"#,
                &format!(r#""messages":[{{"role":"user","content":[{{"type":"text","text":"{words}"}}]}},"#),
                &format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"Let me look."}},{call}]}},"#),
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"src"}]},"#,
                r#"{"role":"assistant","content":[{"type":"text","text":"One folder: src."}]}]}"#,
            ]
            .concat(),
        ),
        (
            "openai",
            [
                r#"{"instructions":"Be short.","#,
                &format!(r#""input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{words}"}}]}},"#),
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me look."}]},"#,
                r#"{"type":"function_call","call_id":"t1","name":"bash","arguments":"{\"command\":\"ls\"}"},"#,
                r#"{"type":"function_call_output","call_id":"t1","output":"src"},"#,
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One folder: src."}]}]}"#,
            ]
            .concat(),
        ),
        (
            "openai-chat",
            [
                r#"{"messages":[{"role":"system","content":"Be short."},"#,
                &format!(r#"{{"role":"user","content":"{words}"}},"#),
                r#"{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"t1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},"#,
                r#"{"role":"tool","tool_call_id":"t1","content":"src"},"#,
                r#"{"role":"assistant","content":"One folder: src."}]}"#,
            ]
            .concat(),
        ),
    ];
    for (shape, json) in expected {
        let ran = cli.run(&["context", &id, "--format", shape]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shape}");
        assert_eq!(ran.stdout, format!("{json}\n"), "{shape}");
    }
    let neutral = cli.run(&["context", &id, "--format", "neutral"]).stdout;
    assert_eq!(cli.run(&["context", &id]).stdout, neutral);
    assert_eq!(cli.run(&["context", &id, "--json"]).stdout, neutral);
    let ran = cli.run(&["context", &id, "--format", "xml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    let shapes = "[possible values: neutral, anthropic, openai, openai-chat]";
    assert!(ran.stderr.contains(shapes), "{}", ran.stderr);
}

// F25
#[test]
fn f25_a_call_that_was_cut_short_is_answered_in_the_context_and_only_there() {
    let cli = Cli::new();
    let call = r#"{"type":"message","message":{"role":"assistant","blocks":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]}}"#;
    let input = format!("{}{call}\n", line("go"));
    let ran = cli.run_with(&["record"], input.as_bytes());
    let id = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let trail = std::fs::read(cli.trail(&id, 0)).unwrap();
    let context = cli.run(&["context", &id, "--format", "anthropic"]);
    assert_eq!(context.code, 0);
    let result = &context.json()["messages"][2]["content"][0];
    assert_eq!(result["tool_use_id"], "t1");
    assert_eq!(result["is_error"], true);
    assert!(result.to_string().contains("was interrupted"), "{result}");
    assert_eq!(std::fs::read(cli.trail(&id, 0)).unwrap(), trail);
}

#[test]
fn a_context_with_damage_warns() {
    let cli = Cli::new();
    let id = cli.talk();
    let trail = cli.trail(&id, 0);
    let text = std::fs::read_to_string(&trail).unwrap();
    std::fs::write(&trail, text.replace("what is here?", "what is hare?")).unwrap();
    let ran = cli.run(&["context", &id]);
    assert_eq!(ran.code, 0);
    assert!(!ran.stdout.contains("hare"), "{}", ran.stdout);
    let err = ran.stderr.replace(&short(&id), "<id>");
    assert_eq!(
        err,
        "\
warning: 1 place in the history cannot be read; messages may be missing
hint: backtrail verify <id>
"
    );
}

/// A compaction covers what was recorded before it and nothing after it, even if all the
/// lines share one sync.
#[test]
fn record_keeps_the_order_of_compactions_and_messages() {
    for mode in ["record", "batch", "os"] {
        let cli = Cli::new();
        let input = [
            line("one"),
            line("two"),
            "{\"type\":\"compaction\",\"summary\":\"S1\",\"keep\":1,\"model\":\"m\",\"usage\":{\"input_tokens\":7,\"output_tokens\":2}}\n".to_owned(),
            line("three"),
            "{\"type\":\"compaction\",\"summary\":\"S2\",\"expect\":4}\n".to_owned(),
            line("four"),
        ]
        .concat();
        let ran = cli.run_with(&["record", "--durability", mode], input.as_bytes());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{mode}");
        let answers = ran.json_lines();
        let seqs: Vec<_> = answers
            .iter()
            .map(|answer| answer["seq"].as_u64())
            .collect();
        assert_eq!(seqs, (1..=6).map(Some).collect::<Vec<_>>());
        let lines: Vec<_> = answers
            .iter()
            .map(|answer| answer["line"].as_u64())
            .collect();
        assert_eq!(lines, seqs);
        let id = answers[0]["session"].as_str().unwrap();
        let shown = cli.run(&["show", id, "--json"]).json();
        let compactions = &shown["compactions"];
        assert_eq!(compactions[0]["removed_message_count"], 1);
        assert_eq!(compactions[0]["keeps_from"], 2);
        assert_eq!(compactions[1]["count"], 2);
        assert_eq!(compactions[1]["removed_message_count"], 2);
        let context = cli.run(&["context", id, "--format", "openai-chat"]).json();
        let said: Vec<&str> = context["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].as_str().unwrap())
            .collect();
        assert_eq!(said.len(), 2, "{mode}: {said:?}");
        assert!(said[0].ends_with("\n\nS2"), "{said:?}");
        assert_eq!(said[1], "four");
    }
}

#[test]
fn a14_a_bad_compaction_is_answered_with_its_reason_and_the_rest_continues() {
    let cases = [
        (r#"{"type":"compaction"}"#, "`summary` is missing"),
        (
            r#"{"type":"compaction","summary":7}"#,
            "`summary` must be a string",
        ),
        (
            r#"{"type":"compaction","summary":" "}"#,
            "`summary` must be a text that is not blank",
        ),
        (
            r#"{"type":"compaction","summary":"x","keep":-1}"#,
            "`keep` must be",
        ),
        (
            r#"{"type":"compaction","summary":"x","kepe":1}"#,
            "unexpected field \"kepe\"",
        ),
        (
            r#"{"type":"compaction","summary":"x","summary":"y"}"#,
            "the field \"summary\" occurs twice",
        ),
        (
            r#"{"type":"compaction","summary":"x","usage":7}"#,
            "`usage` must be",
        ),
        (
            r#"{"type":"compaction","summary":"x","cost_usd":-1}"#,
            "`cost_usd` is out of range",
        ),
        (
            r#"{"type":"compaction","summary":"x","expect":99}"#,
            "ends at record 9, not 99",
        ),
    ];
    for mode in ["record", "batch"] {
        let cli = Cli::new();
        let mut input = String::new();
        for (bad, _) in cases {
            input += &format!("{}{bad}\n", line("good"));
        }
        let ran = cli.run_with(&["record", "--durability", mode], input.as_bytes());
        assert_eq!(ran.code, 1);
        assert_eq!(
            ran.stderr,
            format!(
                "{} lines refused; see the answers for the reasons\n",
                cases.len()
            )
        );
        let answers = ran.json_lines();
        assert_eq!(answers.len(), cases.len() * 2);
        for (n, (bad, reason)) in cases.iter().enumerate() {
            let (taken, refused) = (&answers[n * 2], &answers[n * 2 + 1]);
            assert_eq!(taken["seq"], n + 1, "{bad}");
            assert_eq!(refused["ok"], false, "{bad}");
            let error = refused["error"].as_str().unwrap();
            assert!(error.contains(reason), "{bad}: {error}");
        }
        let conflict = answers.last().unwrap();
        assert_eq!(conflict["kind"], "conflict");
        assert_eq!(conflict["head"], cases.len());
        let shown = cli.run(&["show", "latest", "--json"]).json();
        assert_eq!(shown["compactions"], Value::Array(Vec::new()));
    }
}

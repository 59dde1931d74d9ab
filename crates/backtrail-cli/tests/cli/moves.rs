//! `fork`, `rewind`, `undo`, `redo` and `log --steps`: what they print, and that the command
//! they print reverses them.

use serde_json::{Value, json};

use crate::kit::{Cli, screen};

/// Takes the times out of steps, after a look at them.
fn without_times(mut value: Value) -> Value {
    match &mut value {
        Value::Array(all) => all
            .iter_mut()
            .for_each(|one| *one = without_times(one.take())),
        Value::Object(fields) => {
            if let Some(at) = fields.remove("at") {
                assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
            }
            for field in fields.values_mut() {
                *field = without_times(field.take());
            }
        }
        _ => {}
    }
    value
}

/// Returns the outcome of a move that did nothing but what `done` says.
fn outcome(verb: &str, session: Option<&str>, done: Value) -> Value {
    let mut outcome = json!({
        "verb": verb, "stage": "done", "step": null, "session": session, "from": null, "to": null,
        "now": null, "changes": [], "kept": [], "not_restored": [], "conflicts": [],
        "on_conflict": "stop", "can_merge": false, "unchanged": 0, "skipped": {"count": 0, "first": []},
        "tool_calls": [], "other_sessions": [], "chat": null, "belongs_to": null,
        "chat_in_use": null, "active": [], "complete": true,
    });
    for (name, value) in done.as_object().unwrap() {
        outcome[name] = value.clone();
    }
    outcome
}

fn length(cli: &Cli, id: &str) -> usize {
    let shown = cli.run(&["show", id, "--json"]).json();
    shown["messages"].as_array().unwrap().len()
}

// A12
#[test]
fn a12_a_fork_has_a_new_id_its_parent_the_same_messages_and_the_place() {
    let cli = Cli::new();
    let parent = cli.talk();
    let before = cli.conversation(&parent);
    let ran = cli.run(&["fork", &format!("{}:3", &parent[..8]), "--name", "  try 2 "]);
    let listed = cli.run(&["list", "--json"]).json();
    let mut rows = listed.as_array().unwrap().iter();
    let fork = rows.find(|row| row["id"] != parent).unwrap();
    let id = fork["id"].as_str().unwrap();
    assert_eq!(
        screen(&ran, &cli, &[&parent, id]),
        "\
exit 0
out: created session <id2> \"try 2\" (from record 3 of <id>)
err: to continue: backtrail record --session <id2>
"
    );
    assert_eq!(
        fork["forked_from"],
        json!({"parent_session_id": parent, "branch_name": "try 2", "seq": 3})
    );
    assert_eq!(fork["title"], "a talk");
    let messages = |id: &str| cli.run(&["show", id, "--json"]).json()["messages"].clone();
    let all = messages(&parent);
    assert_eq!(
        messages(id).as_array().unwrap()[..],
        all.as_array().unwrap()[..3]
    );

    // Each goes its own way.
    cli.run(&["record", "--session", id, "--text", "in the fork"]);
    assert_eq!(messages(id)[3]["seq"], 4);
    assert_eq!(cli.conversation(&parent), before);
    let shown = cli.run(&["show", id]);
    assert!(
        shown
            .stdout
            .contains(&format!("forked from {parent} at record 3 as try 2; ")),
        "{}",
        shown.stdout
    );
    assert!(cli.run(&["list"]).stdout.contains("[fork try 2] a talk"));
}

#[test]
fn a_fork_is_printed_as_json_and_a_blank_name_does_not_count() {
    let cli = Cli::new();
    let parent = cli.talk();
    let ran = cli.run(&["fork", &parent, "--name", "  ", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let fork = ran.json();
    let id = fork["session"].as_str().unwrap();
    assert_eq!(
        fork,
        json!({"session": id, "parent": parent, "seq": 5, "branch_name": null})
    );
    assert_eq!(cli.conversation(id), cli.conversation(&parent));
    // At the very beginning nothing is shared.
    let ran = cli.run(&["fork", &format!("{parent}:0"), "--json"]);
    let fork = ran.json();
    assert_eq!(fork["seq"], 0);
    let shown = cli.run(&["show", fork["session"].as_str().unwrap(), "--json"]);
    assert_eq!(shown.json()["messages"], json!([]));
}

#[test]
fn a_rewind_reports_where_the_conversation_ends_and_undo_reverses_it() {
    let cli = Cli::new();
    let id = cli.talk();
    let before = cli.conversation(&id);
    let ran = cli.run(&["rewind", &format!("{id}:2"), "--chat"]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
out: <id> now ends at record 2
err: to reverse: backtrail undo <id>
"
    );
    assert_eq!(cli.texts(&id), ["Be short.", "what is here?"]);
    let rewound = cli.conversation(&id);
    let back = cli.reverse(&ran);
    assert_eq!(
        screen(&back, &cli, &[&id]),
        "\
exit 0
out: Undid the rewind from record 5 to record 2 (<when>)
out: <id> now ends at record 5
err: to reverse: backtrail redo <id>
"
    );
    assert_eq!(cli.conversation(&id), before);
    let again = cli.reverse(&back);
    assert_eq!(
        screen(&again, &cli, &[&id]),
        "\
exit 0
out: Redid the rewind from record 5 to record 2 (<when>)
out: <id> now ends at record 2
err: to reverse: backtrail undo <id>
"
    );
    assert_eq!(cli.conversation(&id), rewound);
    cli.reverse(&again);
    assert_eq!(cli.conversation(&id), before);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn the_command_to_reverse_names_the_same_store() {
    let cli = Cli::new();
    cli.new_session("in the store that would be meant otherwise");
    let store = cli.work().join("another store");
    let store = store.to_str().unwrap();
    let ran = cli.run(&["--store", store, "record", "--text", "hello"]);
    let id = ran.json()["session"].as_str().unwrap().to_owned();
    let ran = cli.run(&["rewind", &format!("{id}:0"), "--chat", "--store", store]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
out: The conversation now ends before: \"hello\"
err: to reverse: backtrail --store '<work>/another store' undo <id>
"
    );
    cli.reverse(&ran);
    let shown = cli.run(&["--store", store, "show", &id, "--json"]);
    assert_eq!(crate::kit::texts(&shown.json()), ["hello"]);
}

/// What is said in a new place ends the redo, and can be gone back from too.
#[test]
fn messages_after_an_undo_are_kept_and_end_redo() {
    let cli = Cli::new();
    let id = cli.talk();
    cli.run(&["rewind", &format!("{id}:2"), "--chat"]);
    cli.run(&["record", "--session", &id, "--text", "another way"]);
    let other_way = cli.conversation(&id);
    let ran = cli.run(&["undo", &id]);
    assert_eq!(length(&cli, &id), 5);
    cli.reverse(&ran);
    assert_eq!(
        cli.conversation(&id),
        other_way,
        "nothing said is ever lost"
    );
    cli.run(&["undo", &id]);
    cli.run(&["record", "--session", &id, "--text", "and on"]);
    let ran = cli.run(&["redo", &id]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 1
err: nothing to redo in <id>
"
    );
}

// B2
#[test]
fn b2_history_is_cleared_by_a_rewind_to_the_start_and_restored() {
    let cli = Cli::new();
    let id = cli.talk();
    let before = cli.conversation(&id);
    let ran = cli.run(&["rewind", &format!("{id}:0"), "--chat"]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
out: The conversation now ends before: \"what is here?\"
err: to reverse: backtrail undo <id>
"
    );
    assert_eq!(cli.run(&["context", &id]).stdout, "{\"messages\":[]}\n");
    let ran = cli.run(&["rewind", &format!("{id}:0"), "--chat"]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
err: <id> already ends there
"
    );
    let shown = cli.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["title"], "a talk", "the title is not taken back");
    let ran = cli.run(&["undo", &id]);
    assert!(
        ran.stdout
            .starts_with("Undid the rewind from record 5 to the beginning (")
    );
    assert_eq!(cli.conversation(&id), before);
}

#[test]
fn a_rewind_to_the_present_is_fine_and_nothing_to_undo_is_a_no() {
    let cli = Cli::new();
    let id = cli.talk();
    let trails = || cli.run(&["show", &id, "--json"]).json()["trails"].clone();
    let before = trails();
    let ran = cli.run(&["rewind", &format!("{id}:5"), "--chat"]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "exit 0\nerr: <id> already ends there\n"
    );
    for verb in ["undo", "redo"] {
        let ran = cli.run(&[verb, &id]);
        assert_eq!(
            screen(&ran, &cli, &[&id]),
            format!("exit 1\nerr: nothing to {verb} in <id>\n")
        );
        let ran = cli.run(&[verb, &id, "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
        assert_eq!(ran.json(), outcome(verb, Some(&id), json!({})));
    }
    assert_eq!(trails(), before, "nothing was written for it");
}

#[test]
fn moves_and_steps_are_printed_as_json() {
    let cli = Cli::new();
    let id = cli.talk();
    let step = json!({
        "kind": "rewind",
        "text": "the rewind from record 5 to record 1",
        "from": 5,
        "to": 1,
    });
    let moved = |verb: &str, chat: [u64; 3], prompt: Option<&str>| {
        let [from, to, trail] = chat;
        let chat = json!({
            "session": id, "from": from, "to": to, "trail": trail, "prompt": prompt,
        });
        let step = if verb == "rewind" {
            &Value::Null
        } else {
            &step
        };
        outcome(verb, Some(&id), json!({"chat": chat, "step": step}))
    };
    let run = |args: &[&str]| {
        let ran = cli.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        without_times(ran.json())
    };
    assert_eq!(
        run(&["rewind", &format!("{id}:1"), "--chat", "--json"]),
        moved("rewind", [5, 1, 1], Some("what is here?"))
    );
    let steps = |undo: &[&Value], redo: &[&Value]| json!({"session": id, "workspace": null, "undo": undo, "redo": redo});
    assert_eq!(
        run(&["log", "--steps", &id, "--json"]),
        steps(&[&step], &[])
    );
    assert_eq!(
        run(&["undo", &id, "--json"]),
        moved("undo", [1, 5, 2], None)
    );
    assert_eq!(
        run(&["log", "--steps", &id, "--json"]),
        steps(&[], &[&step])
    );
    assert_eq!(
        run(&["redo", &id, "--json"]),
        moved("redo", [5, 1, 3], None)
    );
}

#[test]
fn log_steps_lists_what_undo_and_redo_would_take_and_changes_nothing() {
    let cli = Cli::new();
    let id = cli.talk();
    let ran = cli.run(&["log", "--steps", &id]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "exit 0\nerr: nothing to undo in <id>\n"
    );
    let summary = cli.work().join("summary");
    std::fs::write(&summary, "They looked.").unwrap();
    cli.run(&["compact", &id, "--summary-file", "summary"]);
    cli.run(&["rewind", &format!("{id}:4"), "--chat"]);
    cli.run(&["rewind", &format!("{id}:2"), "--chat"]);
    cli.run(&["undo", &id]);
    let ran = cli.run(&["log", "--steps", &id]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
out: → redo  <when>       the rewind from record 4 to record 2
out: → undo  <when>       the rewind from record 6 to record 4
out:   undo  <when>       the compaction of 4 messages at record 6
"
    );
    // Without a reference it is the latest, as with undo and redo.
    assert_eq!(cli.run(&["log", "--steps"]).stdout, ran.stdout);
    let undone = ["undo", "undo"].map(|verb| cli.run(&[verb]).code);
    assert_eq!(undone, [0, 0]);
    assert_eq!(length(&cli, &id), 5);
    assert_eq!(cli.run(&["undo"]).code, 1);
    let redone = ["redo", "redo", "redo"].map(|verb| cli.run(&[verb]).code);
    assert_eq!(redone, [0, 0, 0]);
    assert_eq!(length(&cli, &id), 2);
}

#[test]
fn a_rewind_needs_a_record_and_says_how_to_name_one() {
    let cli = Cli::new();
    let id = cli.talk();
    let before = cli.conversation(&id);
    for (point, chat, expected) in [
        (
            id.clone(),
            "--chat",
            "\
exit 2
err: error: pass the last record to keep
err:
err: hint: backtrail rewind <id>:SEQ --chat
err: hint: see the records: backtrail show <id>
",
        ),
        (
            format!("{id}:99"),
            "--chat",
            "\
exit 2
err: error: session <session> has no record 99; its last is 5
err:
err: hint: see the records: backtrail show <id>
",
        ),
        (
            format!("{id}:2"),
            "--color=auto",
            "\
exit 2
err: error: session <id> has no file checkpoints
err:
err: hint: conversation only: --chat
err: hint: make checkpoints with: backtrail checkpoint, or backtrail run -- COMMAND
",
        ),
    ] {
        let ran = cli.run(&["rewind", &point, chat]);
        assert_eq!(screen(&ran, &cli, &[&id]), expected);
    }
    for wrong in [":x", ":", ":-1", ":18446744073709551616"] {
        let ran = cli.run(&["rewind", &format!("{id}{wrong}"), "--chat"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{wrong}");
        let way = "write REF:SEQ, where SEQ is the number of a record";
        assert!(ran.stderr.contains(way), "{wrong}: {}", ran.stderr);
    }
    assert_eq!(cli.conversation(&id), before);
}

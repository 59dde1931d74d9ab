//! `title`, `tag` and `pin`.

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, Recording, screen, short};

/// Returns the notes of a session, from `list` and `show`.
fn noted(cli: &Cli, id: &str) -> Value {
    let shown = cli.run(&["show", id, "--json"]).json();
    let listed = cli.run(&["list", "--json"]).json();
    let rows = listed.as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == id).unwrap();
    let of = |value: &Value| json!([value["title"], value["tags"], value["pinned"]]);
    assert_eq!(of(&shown), of(row));
    of(row)
}

fn seen(ran: &Ran, cli: &Cli, id: &str) -> String {
    screen(ran, cli, &[id])
}

/// A note on an old session moves it nowhere: not in the list, not into `--since`, and
/// `latest` stays what it was, for every verb that takes it.
#[test]
fn a_note_does_not_make_a_session_active() {
    let cli = Cli::new();
    let said = r#"{"role":"user","text":"old","at":"2020-01-01T00:00:00Z"}"#;
    let ran = cli.run_with(&["record"], format!("{said}\n").as_bytes());
    let old = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let new = cli.new_session("new");
    let ids = |args: &[&str]| {
        let listed = cli.run(args).json();
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for note in [
        &["title", &old, "newer"][..],
        &["tag", &old, "newer"],
        &["pin", &old],
        &["pin", &old, "--off"],
    ] {
        let ran = cli.run(note);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(
            ids(&["list", "--since", "1d", "--json"]),
            [&*new],
            "{note:?}"
        );
        assert_eq!(cli.texts("latest"), ["new"], "{note:?}");
    }
    assert_eq!(ids(&["list", "--json"]), [&*new, &*old]);
    let ran = cli.run(&["delete", "latest", "--dry-run"]);
    assert!(
        ran.stdout.contains(&short(&new)) && !ran.stdout.contains(&short(&old)),
        "{ran:#?}"
    );
    let recorded = cli.run(&["record", "--session", "latest", "--text", "more"]);
    assert_eq!(recorded.json_lines()[0]["session"], *new);
}

#[test]
fn a_title_is_shown_set_removed_and_restored() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let untitled = noted(&cli, &id);
    let ran = cli.run(&["title", &id]);
    // The title that every list shows: what the first prompt says.
    assert_eq!(seen(&ran, &cli, &id), "exit 0\nout: hello\n");
    let first = cli.run(&["title", &id, "it's a title"]);
    assert_eq!(
        seen(&first, &cli, &id),
        "\
exit 0
out: title of <id> set: 'it'\\''s a title'
err: to reverse: backtrail title <id> --clear
"
    );
    let ran = cli.run(&["title", &id]);
    assert_eq!(seen(&ran, &cli, &id), "exit 0\nout: it's a title\n");
    assert!(cli.run(&["list"]).stdout.contains("it's a title"));
    assert!(cli.run(&["show", &id]).stdout.starts_with("it's a title\n"));
    let titled = noted(&cli, &id);
    let second = cli.run(&["title", &id, "other"]);
    assert_eq!(
        seen(&second, &cli, &id),
        "\
exit 0
out: title of <id> set: other
err: to reverse: backtrail title <id> 'it'\\''s a title'
"
    );
    cli.reverse(&second);
    assert_eq!(noted(&cli, &id), titled);
    let cleared = cli.run(&["title", &id, "--clear"]);
    assert_eq!(
        seen(&cleared, &cli, &id),
        "\
exit 0
out: title of <id> removed
err: to reverse: backtrail title <id> 'it'\\''s a title'
"
    );
    assert_eq!(noted(&cli, &id), untitled);
    cli.reverse(&cleared);
    assert_eq!(noted(&cli, &id), titled);
    cli.reverse(&first);
    assert_eq!(noted(&cli, &id), untitled);
}

/// The printed command restores every byte, whatever a shell, a terminal or our own options
/// would make of it.
#[test]
fn the_oddest_title_is_restored_byte_for_byte() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let odd = [
        "-x",
        "--clear",
        "$(touch gone) `x` \"y\" \\ !!",
        "\u{1b}]0;owned\u{7}\u{1b}[31m red",
        "two\nlines\tand 'quotes'\n",
        "\u{202e}backwards\u{9b}31m",
        " blanks around ",
    ];
    for title in odd {
        cli.run(&["title", &id, "--", title]);
        let before = noted(&cli, &id);
        assert_eq!(before[0], title);
        let ran = cli.run(&["title", &id, "other"]);
        cli.reverse(&ran);
        assert_eq!(noted(&cli, &id), before);
        let ran = cli.run(&["tag", &id, "--", title]);
        assert_eq!(noted(&cli, &id)[1], json!([title]));
        let removed = cli.run(&["tag", &id, "--remove", "--", title]);
        cli.reverse(&removed);
        assert_eq!(noted(&cli, &id)[1], json!([title]));
        cli.reverse(&ran);
        assert_eq!(noted(&cli, &id), before);
    }
    assert!(!cli.work().join("gone").exists());
}

#[test]
fn tags_are_shown_added_removed_and_restored() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let untagged = noted(&cli, &id);
    let ran = cli.run(&["tag", &id]);
    assert_eq!(seen(&ran, &cli, &id), "exit 0\nerr: <id> has no tags\n");
    let added = cli.run(&["tag", &id, "bug", "to do", "bug"]);
    assert_eq!(
        seen(&added, &cli, &id),
        "\
exit 0
out: tags of <id>: bug, 'to do'
err: to reverse: backtrail tag <id> --remove bug 'to do' bug
"
    );
    let ran = cli.run(&["tag", &id]);
    assert_eq!(seen(&ran, &cli, &id), "exit 0\nout: bug\nout: to do\n");
    let tagged = noted(&cli, &id);
    assert_eq!(tagged[1], json!(["bug", "to do"]));
    // What is there already is not added, and so not taken back.
    let more = cli.run(&["tag", &id, "bug", "new"]);
    assert_eq!(
        seen(&more, &cli, &id),
        "\
exit 0
out: tags of <id>: bug, 'to do', new
err: to reverse: backtrail tag <id> --remove new
"
    );
    cli.reverse(&more);
    assert_eq!(noted(&cli, &id), tagged);
    let removed = cli.run(&["tag", &id, "--remove", "to do", "never there"]);
    assert_eq!(
        seen(&removed, &cli, &id),
        "\
exit 0
out: tags of <id>: bug
err: to reverse: backtrail tag <id> 'to do'
"
    );
    cli.reverse(&removed);
    assert_eq!(noted(&cli, &id), tagged);
    cli.reverse(&added);
    assert_eq!(noted(&cli, &id), untagged);
}

#[test]
fn an_existing_tag_writes_nothing() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    cli.run(&["tag", &id, "bug"]);
    let trail = std::fs::read(cli.trail(&id, 0)).unwrap();
    for args in [["tag", &id, "bug"], ["pin", &id, "--off"]] {
        let ran = cli.run(&args);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(ran.stderr, "", "there is nothing to take back");
    }
    assert_eq!(std::fs::read(cli.trail(&id, 0)).unwrap(), trail);
    for blank in ["", "  "] {
        let ran = cli.run(&["tag", &id, "ok", blank]);
        assert_eq!(
            seen(&ran, &cli, &id),
            "exit 2\nerr: error: a tag cannot be blank\n"
        );
    }
    assert_eq!(std::fs::read(cli.trail(&id, 0)).unwrap(), trail);
}

#[test]
fn a_pinned_session_is_listed_first_until_it_is_unpinned() {
    let cli = Cli::new();
    let old = cli.new_session("old");
    let new = cli.new_session("new");
    let order = || {
        let listed = cli.run(&["list", "--json"]).json();
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(order(), [new.clone(), old.clone()]);
    let pinned = cli.run(&["pin", &old]);
    assert_eq!(
        seen(&pinned, &cli, &old),
        "\
exit 0
out: pinned <id>
err: to reverse: backtrail pin <id> --off
"
    );
    cli.run(&["record", "--session", &new, "--text", "newer still"]);
    assert_eq!(order(), [old.clone(), new.clone()]);
    assert!(cli.run(&["list"]).stdout.contains("  * old  "));
    let ran = cli.run(&["pin", &old]);
    assert_eq!(
        seen(&ran, &cli, &old),
        "exit 0\nout: <id> is already pinned\n"
    );
    let off = cli.reverse(&pinned);
    assert_eq!(
        seen(&off, &cli, &old),
        "\
exit 0
out: unpinned <id>
err: to reverse: backtrail pin <id>
"
    );
    assert_eq!(noted(&cli, &old)[2], false);
    cli.reverse(&off);
    assert_eq!(noted(&cli, &old)[2], true);
    // A fork begins without the pin.
    let fork = cli.run(&["fork", &old, "--json"]).json();
    assert_eq!(noted(&cli, fork["session"].as_str().unwrap())[2], false);
}

#[test]
fn notes_as_json() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let cases: [(&[&str], Value); 8] = [
        (&["title", &id], json!({"session": id, "title": "hello"})),
        (
            &["title", &id, "T"],
            json!({"session": id, "title": "T", "before": null}),
        ),
        (
            &["title", &id, "--clear"],
            json!({"session": id, "title": null, "before": "T"}),
        ),
        (
            &["tag", &id, "a", "b"],
            json!({"session": id, "tags": ["a", "b"], "before": []}),
        ),
        (
            &["tag", &id, "--remove", "a"],
            json!({"session": id, "tags": ["b"], "before": ["a", "b"]}),
        ),
        (
            &["tag", &id],
            json!({"session": id, "tags": ["b"], "before": ["b"]}),
        ),
        (
            &["pin", &id],
            json!({"session": id, "pinned": true, "before": false}),
        ),
        (
            &["pin", &id, "--off"],
            json!({"session": id, "pinned": false, "before": true}),
        ),
    ];
    for (args, expected) in cases {
        let ran = cli.run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        assert_eq!(ran.json(), expected, "{args:?}");
    }
}

/// Titles, tags and pins may come from any process, and so may a fork.
#[test]
fn notes_and_forks_do_not_wait_for_the_writer() {
    let cli = Cli::new();
    let mut speaker = Recording::start(cli.command(&["record"]));
    let id = speaker.say("one")["session"].as_str().unwrap().to_owned();
    let cases: [&[&str]; 4] = [
        &["title", &id, "meanwhile"],
        &["tag", &id, "seen"],
        &["pin", &id],
        &["fork", &id],
    ];
    for args in cases {
        let ran = cli.run(args);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    assert_eq!(speaker.say("two")["ok"], true);
    assert_eq!(speaker.end(), 0);
    assert_eq!(noted(&cli, &id), json!(["meanwhile", ["seen"], true]));
    assert_eq!(cli.texts(&id), ["one", "two"]);
}

#[test]
fn a_note_that_is_too_long_is_refused() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let before = noted(&cli, &id);
    let long = "t".repeat(5000);
    for args in [["title", &id, &long], ["tag", &id, &long]] {
        let ran = cli.run(&args);
        assert_eq!(
            seen(&ran, &cli, &id),
            "exit 2\nerr: error: a title, tag or name is 5000 bytes long; the limit is 4096\n"
        );
    }
    assert_eq!(noted(&cli, &id), before);
}

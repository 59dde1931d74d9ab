//! No escape of a transcript reaches a terminal, and colours are used only where they are
//! wanted.

use serde_json::json;

use crate::kit::{Cli, Ran};
use crate::{agents, pty};

/// Sets the title of a terminal, turns text red, goes to another line, and
/// writes from right to left.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[31mred\r\u{8}\u{7f}\u{9b}2J\u{202e}txt";

fn assert_clean(ran: &Ran, what: &str) {
    let is_unsafe = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
    };
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains(is_unsafe), "{what}: {text:?}");
    }
}

/// A session in which every text is hostile.
fn hostile_session(cli: &Cli) -> String {
    let blocks = json!([
        {"type": "thinking", "thinking": HOSTILE, "signature": HOSTILE},
        {"type": "text", "text": HOSTILE},
        {"type": "tool_use", "id": "t1", "name": HOSTILE, "input": {"a": HOSTILE}},
    ]);
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "tool_name": HOSTILE, "output": HOSTILE});
    let lines = [
        json!({"role": "user", "text": HOSTILE}),
        json!({"type": "message", "message": {"role": "assistant", "blocks": blocks}}),
        json!({"type": "message", "message": {"role": "tool", "blocks": [result]}}),
        json!({"type": "message", "message": {"role": HOSTILE, "blocks": [{"type": HOSTILE, "x": HOSTILE}]}}),
        json!({"type": "message", "message": {"role": "user", "blocks": [
            {"type": "image", "media_type": HOSTILE, "data": "AAAA"}]}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = cli.run_with(&["record", "--title", HOSTILE], input.as_bytes());
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json_lines()[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn no_verb_prints_an_escape_of_a_transcript() {
    let cli = Cli::new();
    let id = hostile_session(&cli);
    std::fs::write(cli.work().join("summary"), HOSTILE).unwrap();
    let back = format!("{id}:2");
    let cases: [&[&str]; 22] = [
        &["show", &id],
        &["list"],
        &["title", &id],
        &["title", &id, HOSTILE],
        &["title", &id, "--clear"],
        &["title", &id, HOSTILE],
        &["tag", &id, HOSTILE],
        &["tag", &id],
        &["tag", &id, "--remove", HOSTILE],
        &["pin", &id],
        &["stats", &id],
        &["compact", &id, "--summary-file", "summary"],
        &["show", &id],
        &["log", "--steps", &id],
        &["rewind", &back, "--chat"],
        &["undo", &id],
        &["redo", &id],
        &["fork", &id, "--name", HOSTILE],
        &["list"],
        &["show", "latest"],
        // A wrong reference, and one that is near, which brings up the title.
        &["show", HOSTILE],
        &["show", &format!("{}zz", &id[..6])],
    ];
    for args in cases {
        let ran = cli.run(args);
        assert_clean(&ran, &format!("{args:?}"));
        // Such a name could not be a reference.
        let is_refused = args[0] == "fork" || args.get(1).is_some_and(|reference| *reference != id);
        assert!(ran.code == 0 || is_refused, "{ran:#?}");
        // With colours on, ours are there and theirs are not.
        let coloured = cli.run(&[args, &["--color=always"]].concat());
        for text in [&coloured.stdout, &coloured.stderr] {
            assert!(!text.contains("\u{1b}[31mred"), "{args:?}: {text:?}");
            assert!(!text.contains("\u{1b}]0;"), "{args:?}: {text:?}");
        }
    }
}

/// JSON may contain such characters as they are; what is printed does not, and means the same.
#[test]
fn json_has_no_character_that_a_terminal_obeys() {
    let cli = Cli::new();
    let id = hostile_session(&cli);
    std::fs::write(cli.work().join("\u{9b}file"), "a").unwrap();
    let cases: [&[&str]; 24] = [
        &["show", &id],
        &["context", &id],
        &["context", &id, "--format", "anthropic"],
        &["context", &id, "--format", "openai"],
        &["context", &id, "--format", "openai-chat"],
        &["export", &id, "--to", "json"],
        &["export", &id, "--to", "v1"],
        &["export", &id, "--to", "json", "-o", "\u{9b}out"],
        &["list"],
        &["search", "owned"],
        &["stats"],
        &["stats", &id],
        &["title", &id, HOSTILE],
        &["tag", &id, HOSTILE],
        &["checkpoint", "--label", "\u{9b}label"],
        &["run", "--", "true", HOSTILE],
        &["log"],
        &["log", "--steps", &id],
        &["status"],
        &["config"],
        &["doctor"],
        &["verify"],
        &["show", HOSTILE],
        &["cat", "last", HOSTILE],
    ];
    let is_bad = |c: char| {
        (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{7f}'
    };
    for args in cases {
        let args = [args, &["--json"]].concat();
        let ran = cli.run(&args);
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(is_bad), "{args:?}: {text:?}");
        }
        if ran.code == 0 && args[0] != "run" {
            assert!(!ran.json_lines().is_empty(), "{args:?}: {ran:#?}");
        }
    }
    let shown = cli.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["messages"][0]["blocks"][0]["text"], HOSTILE);
    let answer = cli.run_with(
        &["record", "--json"],
        format!("{{\"{HOSTILE}\": 1}}\n").as_bytes(),
    );
    assert!(!answer.stdout.contains(is_bad), "{:?}", answer.stdout);
    assert!(!answer.stderr.contains(is_bad), "{:?}", answer.stderr);
}

#[test]
fn the_names_of_directories_are_shown_without_their_escapes() {
    let cli = Cli::new();
    let store = cli.work().join(format!("s{}", HOSTILE.replace('/', "")));
    let work = cli.work().join(format!("w{HOSTILE}"));
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join(HOSTILE), "a").unwrap();
    let store_name = store.to_str().unwrap().to_owned();
    let cases: [&[&str]; 25] = [
        &["config"],
        &["list"],
        &["record", "--text", "hello"],
        &["list"],
        &["show", "latest"],
        &["status"],
        &["checkpoint", "--label", "one"],
        &["run", "--", "sh", "-c", "echo b > b"],
        &["log"],
        &["diff", "one"],
        &["undo"],
        &["redo"],
        &["rewind", "one", "--dry-run"],
        &["restore", "one", "--", HOSTILE],
        &["cat", "one", "nothing"],
        &["doctor"],
        &["verify"],
        &["stats"],
        &["search", "hello"],
        &["gc"],
        &["trash"],
        &["rebuild"],
        &["repair", "latest"],
        &["relink", "/no/such", "/nowhere"],
        &[],
    ];
    for args in cases {
        let named = [&["--store", &store_name][..], args].concat();
        let by_option =
            crate::kit::finish(&mut crate::kit::command(&cli.store(), &work, &named), b"");
        assert_clean(&by_option, &format!("{args:?}"));
        let mut command = crate::kit::command(&store, &work, args);
        assert_clean(&crate::kit::finish(&mut command, b""), &format!("{args:?}"));
        // With colours on, ours are there and theirs are not; on a terminal there is more to see.
        let coloured = [args, &["--color=always"]].concat();
        let mut command = crate::kit::command(&store, &work, &coloured);
        let ran = crate::kit::finish(&mut command, b"");
        assert_not_theirs(&(ran.stdout + &ran.stderr), args);
        if pty::is_there() {
            let mut command = crate::kit::command(&store, &work, &coloured);
            command.env("PAGER", "cat").env("TERM", "xterm-256color");
            assert_not_theirs(&pty::Terminal::start(&command).end().1, args);
        }
    }
}

/// Asserts that no escape of [`HOSTILE`] is in what was printed.
fn assert_not_theirs(text: &str, args: &[&str]) {
    let signs = ["\u{1b}]0;", "\u{1b}[31mred", "\u{8}", "\u{9b}", "\u{202e}"];
    for sign in signs {
        assert!(!text.contains(sign), "{args:?}: {sign:?} in {text:?}");
    }
}

#[test]
fn the_file_of_another_agent_is_exact_in_a_pipe_and_visible_on_a_terminal() {
    let cli = Cli::new();
    let said = agents::lines(&[agents::claude_user("u1", None, "a\u{9b}2Jb\u{7f}\u{202e}c")]);
    let file = said + "{\"damaged \u{1b}]0;owned\u{7} \u{1b}[31mred\n";
    agents::write(&agents::claude_file(&cli), &file);
    agents::import(&cli, "claude-code");
    let args = ["export", agents::CLAUDE, "--to", "claude-code"];
    let ran = agents::run(&cli, &args);
    assert_eq!((ran.stdout, ran.stderr.as_str()), (file, ""));
    if !pty::is_there() {
        return;
    }
    let (code, screen) = pty::Terminal::start(&agents::at_home(&cli, &args)).end();
    assert_eq!(code, 0, "{screen}");
    assert!(
        screen.contains("damaged ^[]0;owned^G ^[[31mred"),
        "{screen:?}"
    );
    assert!(screen.contains("-o FILE"), "{screen:?}");
    let is_bad = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\u{1b}');
    assert!(
        !screen.contains(is_bad) && !screen.contains("\u{1b}]0;"),
        "{screen:?}"
    );
}

#[test]
fn an_export_is_data_and_messages_about_it_are_clean() {
    let cli = Cli::new();
    let id = hostile_session(&cli);
    for format in ["v1", "json"] {
        let ran = cli.run(&["export", &id, "--to", format]);
        assert!(!ran.stdout.contains(['\u{1b}', '\u{7}', '\r']), "{format}");
        assert!(
            ran.stdout.contains("owned"),
            "but as JSON writes it: {}",
            ran.stdout
        );
    }
    for format in ["markdown", "html"] {
        let ran = cli.run(&["export", &id, "--to", format]);
        assert_clean(&ran, "it is to be read");
        assert!(ran.stdout.contains("owned"), "what it says is there");
        assert_eq!(ran.stderr, "");
    }
    let name = "\u{1b}[31mred.md";
    let ran = cli.run(&["export", &id, "--to", "markdown", "-o", name]);
    assert_eq!(ran.code, 0);
    assert_clean(&ran, "the name of a file");
    cli.reverse(&ran);
    assert!(!cli.work().join(name).exists());
}

#[test]
fn hostile_files_are_imported_or_refused_with_clean_messages() {
    let cli = Cli::new();
    let message = json!({"role": "user", "blocks": [{"type": "text", "text": HOSTILE}]});
    let good = [
        json!({"type": "session_meta", "version": 1, "session_id": HOSTILE, "created_at_ms": 1,
            "updated_at_ms": 1, "fork": {"parent_session_id": HOSTILE, "branch_name": HOSTILE},
            "model": HOSTILE, "workspace_root": HOSTILE}),
        json!({"type": "message", "message": message}),
        json!({"type": HOSTILE}),
    ];
    let good: String = good.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(cli.work().join("\u{1b}[31mred.jsonl"), good).unwrap();
    std::fs::write(cli.work().join("\u{1b}[31mbad.jsonl"), HOSTILE).unwrap();
    let ran = cli.run(&["import", "\u{1b}[31mred.jsonl", "\u{1b}[31mbad.jsonl"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 2), "{ran:#?}");
    assert!(
        ran.stdout.contains("claw-code      1    1 "),
        "{}",
        ran.stdout
    );
    assert_clean(&ran, "import");
    let from = cli.run(&["export", "latest", "--to", "codex"]);
    assert_clean(&from, "export of another agent's");
    for args in [
        &["show", "latest"][..],
        &["stats", "latest"],
        &["log", "--steps", "latest"],
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_clean(&ran, args[0]);
    }
    assert_clean(&cli.run(&["list"]), "list");
}

#[test]
fn colours_follow_the_flag_and_the_environment() {
    let cli = Cli::new();
    let id = cli.talk();
    let coloured = |args: &[&str], no_color: bool| {
        let mut command = cli.command(args);
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let ran = crate::kit::finish(&mut command, b"");
        (ran.stdout + &ran.stderr).contains('\u{1b}')
    };
    for args in [
        &["show", &id][..],
        &["stats", &id],
        &["list"],
        &["show", "gggg"],
        &["rewind", &id, "--chat"],
    ] {
        let with = |flag: &'static str| [args, &["--color", flag][..]].concat();
        assert!(!coloured(args, false), "{args:?}: a pipe is no terminal");
        assert!(!coloured(&with("never"), false), "{args:?}");
        assert!(!coloured(&with("auto"), true), "{args:?}");
        assert!(coloured(&with("always"), false), "{args:?}");
        assert!(
            coloured(&with("always"), true),
            "{args:?}: the flag is nearer"
        );
    }
    // JSON has no colours, whatever is asked for.
    for args in [
        &["show", &id, "--json", "--color", "always"][..],
        &["show", "gggg", "--json", "--color", "always"],
    ] {
        assert!(!coloured(args, false), "{args:?}");
    }
}

/// NO_COLOR counts on a terminal; `script` provides one.
#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_there_are_colours_unless_no_color_is_set() {
    let cli = Cli::new();
    cli.new_session("hello");
    let on_a_terminal = |no_color: bool| {
        let mut script = std::process::Command::new("script");
        script
            .args([
                "-qec",
                concat!(env!("CARGO_BIN_EXE_backtrail"), " list"),
                "/dev/null",
            ])
            .current_dir(cli.work())
            .env("BACKTRAIL_HOME", cli.store())
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR");
        if no_color {
            script.env("NO_COLOR", "1");
        }
        script.stdin(std::process::Stdio::null()).output()
    };
    let Ok(coloured) = on_a_terminal(false) else {
        eprintln!("SKIPPED: needs script; without it there is no terminal");
        return;
    };
    let text = String::from_utf8(coloured.stdout).unwrap();
    assert!(
        text.contains("hello") && text.contains('\u{1b}'),
        "{text:?}"
    );
    let plain = String::from_utf8(on_a_terminal(true).unwrap().stdout).unwrap();
    assert!(
        plain.contains("hello") && !plain.contains('\u{1b}'),
        "{plain:?}"
    );
}

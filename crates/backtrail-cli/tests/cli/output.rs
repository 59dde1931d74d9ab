//! Output for people and programs: text, JSON and exit codes.

use serde_json::Value;

use crate::kit::{self, Cli, command, finish, normal};

#[test]
fn show_reads_well() {
    let cli = Cli::new();
    let input = r#"{"role":"user","text":"fix the bug\u001b[31m"}
{"type":"message","message":{"role":"assistant","blocks":[{"type":"thinking","thinking":"","signature":"x"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}}]}}
{"type":"message","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t1","tool_name":"bash","output":"a\nb\n","is_error":true}]}}
{"type":"message","message":{"role":"oracle","blocks":[{"type":"hologram","beam":1}]}}
"#;
    let ran = cli.run_with(&["record", "--title", "a \u{202e}title"], input.as_bytes());
    let session = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let shown = cli.run(&["show", &session]);
    assert_eq!(shown.stderr, "");
    let expected = "\
a \u{fffd}title
<id> · <session> · <work>
<day> <when> · 1 turn · 1 tool call · ~11 tokens · unpriced

── turn 1 · <day> <when> ─────────────────────────────────────── record 1 ──
› fix the bug

  thinking, hidden by the provider

  Let me look.

  ⚙ bash  ls   ✗ a
  oracle:
  [hologram]
";
    assert_eq!(normal(&shown.stdout, &cli, &[&session]), expected);
}

#[test]
fn colours_only_where_they_are_wanted() {
    let cli = Cli::new();
    cli.new_session("hello");
    let escape = '\u{1b}';
    assert!(
        !cli.run(&["list"]).stdout.contains(escape),
        "a pipe is no terminal"
    );
    assert!(
        cli.run(&["list", "--color", "always"])
            .stdout
            .contains(escape)
    );
    assert!(
        !cli.run(&["show", "nope", "--color", "never"])
            .stderr
            .contains(escape)
    );
}

#[test]
fn a15_references_are_ids_prefixes_and_latest_and_never_paths() {
    let cli = Cli::new();
    let first = cli.new_session("first");
    let second = cli.new_session("second");
    for reference in [&first[..], &first[..8], &first[..20]] {
        assert_eq!(cli.texts(reference), ["first"]);
    }
    assert_eq!(cli.texts("latest"), ["second"]);
    // In another workspace `latest` means the latest there, else overall.
    let other = cli.work().join("other");
    std::fs::create_dir(&other).unwrap();
    let run = |args: &[&str]| finish(&mut command(&cli.store(), &other, args), b"");
    assert_eq!(run(&["show", "latest", "--json"]).json()["id"], second);
    run(&["record", "--text", "third"]);
    assert_eq!(cli.texts("latest"), ["second"]);
    assert_eq!(run(&["show", "latest", "--json"]).json()["title"], "third");

    std::fs::write(cli.work().join("file"), "secret").unwrap();
    for hostile in [
        "../x",
        "/etc/passwd",
        "./file",
        "",
        "a/b",
        "a\nb",
        "..",
        &"x".repeat(10_000),
    ] {
        let ran = cli.run(&["show", hostile]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.starts_with("error: \""), "{}", ran.stderr);
        assert!(ran.stderr.contains("is not a session"), "{}", ran.stderr);
        assert!(ran.stderr.len() < 400, "long input is not thrown back");
        assert_eq!(ran.stdout, "");
    }
    let short = cli.run(&["show", &first[..3]]);
    assert!(short.stderr.contains("too short"), "{}", short.stderr);
    // No id has these letters.
    let unknown = cli.run(&["show", "gggg"]);
    assert!(unknown.stderr.contains("no session begins with \"gggg\""));
    assert!(
        unknown
            .stderr
            .contains("hint: see all sessions: backtrail list --all")
    );
    let near = cli.run(&["show", &format!("{}gggg", &first[..6])]);
    assert!(
        near.stderr
            .contains(&format!("hint: did you mean {}", kit::short(&first))),
        "{}",
        near.stderr
    );
}

#[test]
fn failures_are_json_on_stderr_with_json_and_nothing_is_on_stdout() {
    let cli = Cli::new();
    cli.new_session("hello");
    let cases: [(&[&str], &str); 5] = [
        (&["show", "gggg", "--json"], "not_found"),
        (&["show", "../x", "--json"], "invalid"),
        (&["shwo", "--json"], "usage"),
        (&["record", "--durability", "sometimes", "--json"], "usage"),
        (&["repair", "gggg", "--json"], "not_found"),
    ];
    for (args, kind) in cases {
        let ran = cli.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        let error: Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!(error["error"]["kind"], kind, "{args:?}");
        assert!(error["error"]["message"].is_string());
        assert!(error["error"]["hints"].is_array());
        assert!(error["error"].get("path").is_some());
    }
}

#[test]
fn verify_names_file_line_byte_and_reason_and_repair_fixes_it() {
    let cli = Cli::new();
    let input: String = (1..=4)
        .map(|n| kit::line(&format!("message {n}")))
        .collect();
    let ran = cli.run_with(&["record"], input.as_bytes());
    let session = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let trail = cli.trail(&session, 0);
    let good = std::fs::read_to_string(&trail).unwrap();
    let damaged = good.replace("message 2", "massage 2");
    std::fs::write(&trail, &damaged).unwrap();

    let report = cli.run(&["verify", "--json"]);
    assert_eq!(report.code, 1);
    let report = report.json();
    assert_eq!(report["ok"], false);
    assert_eq!(report["records"], 4);
    let place = &report["damaged"][0];
    assert_eq!(place["file"], format!("sessions/{session}/0000.jsonl"));
    assert_eq!(place["line"], 3);
    let byte = damaged.find("massage 2").unwrap();
    let line_start = damaged[..byte].rfind('\n').unwrap() + 1;
    assert_eq!(place["byte"], line_start);
    assert_eq!(place["reason"], "checksum mismatch");

    // Reading goes on around it, and says so.
    let shown = cli.run(&["show", &session, "--json"]);
    assert_eq!(shown.code, 0);
    assert_eq!(shown.json()["damaged"], 1);
    let warning: Value = serde_json::from_str(&shown.stderr).unwrap();
    assert!(
        warning["warning"]["message"]
            .as_str()
            .unwrap()
            .contains("skipped 1 damaged place")
    );

    let plan = cli.run(&["repair", &session, "--dry-run", "--json"]).json();
    assert_eq!(plan["copied"], 2);
    assert_eq!(plan["missing"], serde_json::json!([[2, 2]]));
    assert!(!cli.trail(&session, 1).exists(), "a dry run does nothing");
    let done = cli.run(&["repair", &session]);
    assert_eq!(done.code, 0);
    assert!(done.stdout.contains("missing  record 2"), "{}", done.stdout);
    assert_eq!(
        std::fs::read_to_string(&trail).unwrap(),
        damaged,
        "the old file stays"
    );
    assert_eq!(cli.texts(&session), ["message 1", "message 3", "message 4"]);
    let report = cli.run(&["verify", "--json"]);
    assert_eq!((report.code, &report.json()["ok"]), (0, &Value::Bool(true)));
    assert_eq!(report.json()["repaired"].as_array().unwrap().len(), 1);
    assert_eq!(cli.run(&["repair", &session]).stdout, "nothing to repair\n");
}

#[test]
fn settings_come_from_the_store_and_a_wrong_name_brings_up_the_nearest() {
    let cli = Cli::new();
    let settings = |text: &str| {
        std::fs::create_dir_all(cli.store()).unwrap();
        std::fs::write(cli.store().join("config.toml"), text).unwrap();
    };
    let rows = cli.run(&["config", "--json"]).json();
    assert_eq!(rows[1]["value"], "record");
    assert_eq!(rows[1]["source"], "default");
    assert_eq!(rows[2]["value"], 64 << 20);
    settings("rotation = \"2 KiB\"\ndurability = \"os\"");
    let rows = cli.run(&["config", "--json"]).json();
    assert_eq!(rows[1]["value"], "os");
    assert_eq!(rows[2]["value"], 2048);
    assert_eq!(
        rows[2]["source"],
        cli.store().join("config.toml").to_str().unwrap()
    );
    // A workspace has no say.
    std::fs::write(cli.work().join("config.toml"), "nonsense").unwrap();
    let session = cli.new_session("hello");
    for (text, message, hint) in [
        (
            "durabilty = \"os\"",
            "unknown setting \"durabilty\"",
            "did you mean durability?",
        ),
        (
            "xyz = 1",
            "unknown setting \"xyz\"",
            "known settings: durability, rotation, keep_trails, snapshot_cap",
        ),
        ("durability = \"maybe\"", "durability must be", ""),
        ("rotation = 5", "rotation must be a size", ""),
        ("rotation = [", "the settings are not valid TOML", ""),
    ] {
        settings(text);
        let ran = cli.run(&["show", &session]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(message), "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains("config.toml"), "{text}: {}", ran.stderr);
    }
}

#[test]
fn a_directory_with_other_files_never_becomes_a_store() {
    let cli = Cli::new();
    std::fs::create_dir(cli.store()).unwrap();
    std::fs::write(cli.store().join("thesis.doc"), "mine").unwrap();
    let ran = cli.run(&["record", "--text", "hello"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("is neither empty nor a Backtrail store"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_dir(cli.store()).unwrap().count(), 1);
}

#[test]
#[cfg(unix)]
fn a_workspace_with_a_name_that_is_not_utf_8_is_stored_exactly() {
    use std::os::unix::ffi::OsStrExt;
    let cli = Cli::new();
    let odd = cli.work().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&odd).unwrap();
    let run = |args: &[&str]| finish(&mut command(&cli.store(), &odd, args), b"");
    assert_eq!(run(&["record", "--text", "here"]).code, 0);
    cli.new_session("elsewhere");
    let shown = run(&["show", "latest", "--json"]).json();
    assert_eq!(
        kit::texts(&shown),
        ["here"],
        "latest knows the workspace by its bytes"
    );
    let workspace = &shown["workspace"];
    assert!(workspace["path"].as_str().unwrap().ends_with("caf\u{fffd}"));
    let base64 = workspace["path_base64"].as_str().unwrap();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, base64);
    assert!(bytes.unwrap().ends_with(b"caf\xe9"), "{workspace}");
}

#[test]
#[cfg(unix)]
fn only_the_owner_can_read_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let cli = Cli::new();
    let session = cli.new_session("hello");
    let mode =
        |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(cli.store()), 0o700);
    assert_eq!(mode(cli.store().join("sessions").join(&session)), 0o700);
    assert_eq!(mode(cli.trail(&session, 0)), 0o600);
    assert_eq!(mode(cli.store().join("format")), 0o600);
}

#[test]
fn a_directory_that_is_not_a_store_is_an_error() {
    let cli = Cli::new();
    cli.new_session("hello");
    std::fs::remove_file(cli.store().join("format")).unwrap();
    for verb in ["list", "verify"] {
        let ran = cli.run(&[verb]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains("format file is gone"), "{}", ran.stderr);
    }
    let file = cli.work().join("file");
    std::fs::write(&file, "x").unwrap();
    let run = |args: &[&str]| finish(&mut command(&file, &cli.work(), args), b"");
    let ran = run(&["list"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is not a directory"), "{}", ran.stderr);
    // Where there is nothing, there is nothing to complain about.
    let nothing = cli.work().join("nothing");
    let ran = finish(&mut command(&nothing, &cli.work(), &["verify"]), b"");
    assert_eq!(ran.stdout, "ok: 0 records in 0 sessions\n");
    assert!(!nothing.exists());
}

#[test]
#[cfg(unix)]
fn a_session_may_have_more_trails_than_files_can_be_open() {
    let cli = Cli::new();
    std::fs::create_dir(cli.store()).unwrap();
    std::fs::write(cli.store().join("config.toml"), "rotation = 1024").unwrap();
    let input: String = (0..150)
        .map(|n| kit::line(&format!("{n} {}", "x".repeat(1000))))
        .collect();
    // One at a time: a group of lines goes into one trail.
    let ran = cli.run_with(&["record", "--durability", "record"], input.as_bytes());
    assert_eq!(ran.code, 0);
    let session = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    assert!(cli.trail(&session, 100).exists());
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "ulimit -n 32; \"$0\" verify && \"$0\" show latest"])
        .arg(env!("CARGO_BIN_EXE_backtrail"))
        .current_dir(cli.work())
        .env("BACKTRAIL_HOME", cli.store());
    let ran = finish(&mut shell, b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("149 xxx"));
}

#[test]
#[cfg(unix)]
fn a_link_or_a_pipe_in_a_session_is_never_followed() {
    let cli = Cli::new();
    let session = cli.new_session("hello");
    let victim = cli.work().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, cli.trail(&session, 1)).unwrap();
    let ran = cli.run(&["record", "--session", &session, "--text", "x"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    std::fs::remove_file(cli.trail(&session, 1)).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(cli.trail(&session, 1))
        .status();
    assert!(pipe.unwrap().success());
    assert_eq!(cli.run(&["show", &session]).code, 2);
    let listed = cli.run(&["list", "--json"]).json();
    assert!(
        listed[0]["error"]
            .as_str()
            .unwrap()
            .contains("not a regular file"),
        "{listed}"
    );
}

#[test]
fn verify_keeps_its_exit_code_when_nobody_reads_it() {
    let cli = Cli::new();
    let session = cli.new_session("hello");
    let trail = cli.trail(&session, 0);
    let text = std::fs::read_to_string(&trail).unwrap();
    std::fs::write(&trail, text.replace("hello", "hallo")).unwrap();
    let mut child = cli
        .command(&["verify"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

//! `doctor`: every problem has a command that fixes it, nothing is changed, and no store is
//! too broken to check.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::kit::Cli;

fn doctor(cli: &Cli) -> Value {
    let ran = cli.run(&["doctor", "--json"]);
    let report = ran.json();
    let ok = report["ok"].as_bool().unwrap();
    assert_eq!(ran.code, i32::from(!ok), "{ran:#?}");
    for check in report["checks"].as_array().unwrap() {
        let hint = check["hint"].as_str();
        let is_told = check["ok"] == false || check["warning"] == true;
        assert_eq!(is_told, hint.is_some(), "{check}");
    }
    // The same in words.
    let words = cli.run(&["doctor"]);
    assert_eq!(words.code, ran.code, "{words:#?}");
    report
}

/// Returns the only problem, which has a given name.
fn finding<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    let found: Vec<&Value> = checks.iter().filter(|check| check["ok"] == false).collect();
    assert_eq!(found.len(), 1, "{report:#}");
    assert_eq!(found[0]["name"], name, "{report:#}");
    found[0]
}

fn contents(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => contents(&path, found),
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
}

fn used() -> Cli {
    let cli = Cli::new();
    cli.talk();
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    cli
}

#[test]
fn a_healthy_store_is_reported_and_not_changed() {
    let cli = Cli::new();
    assert_eq!(doctor(&cli)["ok"], true);
    assert!(!cli.store().exists(), "looking makes nothing");
    let cli = used();
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    contents(&cli.store(), &mut before);
    let report = doctor(&cli);
    assert_eq!(report["ok"], true, "{report:#}");
    contents(&cli.store(), &mut after);
    assert!(before == after, "something was changed");
    let names = report["checks"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "settings",
            "store",
            "permissions",
            "links",
            "locks",
            "derived",
            "leftovers",
            "disk",
            "sessions",
            "workspaces"
        ]
    );
}

#[test]
fn every_problem_names_the_command_that_fixes_it() {
    let hint = |report: &Value, name: &str| finding(report, name)["hint"].to_string();
    let cli = used();
    let format = cli.store().join("format");
    std::fs::set_permissions(&format, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(hint(&doctor(&cli), "permissions").contains("chmod -R go="));

    let cli = used();
    std::fs::write(cli.store().join("config.toml"), "rotation = 5").unwrap();
    assert!(hint(&doctor(&cli), "settings").contains("config.toml"));

    let cli = used();
    let session = cli.new_session("x");
    let trail = cli.trail(&session, 0);
    std::fs::write(&trail, "nonsense\n").unwrap();
    assert!(hint(&doctor(&cli), "sessions").contains("verify"));
    std::fs::remove_file(&trail).unwrap();
    std::fs::create_dir(&trail).unwrap();
    std::fs::set_permissions(&trail, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(hint(&doctor(&cli), "sessions").contains("verify"));

    let cli = used();
    let work = cli.work();
    std::fs::rename(&work, work.with_file_name("away")).unwrap();
    let away = work.with_file_name("away");
    let mut command = crate::kit::command(&cli.store(), &away, &["doctor", "--json"]);
    let ran = crate::kit::finish(&mut command, b"");
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(hint(&ran.json(), "workspaces").contains("relink"));

    let cli = used();
    let session = cli.new_session("x");
    let left = cli.trail(&session, 0).with_file_name("new-trail");
    std::fs::write(&left, "").unwrap();
    std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(
        finding(&doctor(&cli), "leftovers")["message"]
            .as_str()
            .unwrap()
            .contains("new-trail")
    );
    assert!(left.exists(), "it only looks");

    let cli = used();
    let database = cli.store().join("derived/catalogue.sqlite");
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    std::fs::write(&database, "noise that is no database").unwrap();
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(hint(&doctor(&cli), "derived").contains("rebuild"));
}

#[test]
fn no_store_is_too_broken_to_check() {
    for format in ["", "999999\n", "noise\u{0}\u{1b}[31m"] {
        let cli = used();
        std::fs::write(cli.store().join("format"), format).unwrap();
        let report = doctor(&cli);
        finding(&report, "store");
        assert!(!cli.run(&["doctor"]).stdout.contains('\u{1b}'));
    }
    let cli = used();
    std::fs::remove_dir_all(cli.store().join("sessions")).unwrap();
    std::fs::write(cli.store().join("sessions"), "a file").unwrap();
    assert_eq!(doctor(&cli)["ok"], false);
    let cli = Cli::new();
    std::fs::write(cli.store(), "a file").unwrap();
    doctor(&cli);
}

#[test]
fn a_file_that_cannot_be_written_is_found() {
    let cli = used();
    let trail = cli.trail(&cli.new_session("hello"), 0);
    let mut permissions = trail.metadata().unwrap().permissions();
    permissions.set_mode(0o400);
    std::fs::set_permissions(&trail, permissions).unwrap();
    if std::fs::File::options().append(true).open(&trail).is_ok() {
        eprintln!("SKIPPED: needs a user other than root; root can write everywhere");
        return;
    }
    let report = doctor(&cli);
    let check = finding(&report, "permissions");
    let message = check["message"].as_str().unwrap();
    assert!(
        message.starts_with("cannot be written: sessions/"),
        "{message}"
    );
    assert!(
        check["hint"]
            .as_str()
            .unwrap()
            .starts_with("chmod -R u+rwX")
    );
}

#[test]
fn what_an_agent_deletes_is_no_warning_once_everything_is_imported() {
    let cli = Cli::new();
    crate::agents::fill(&cli);
    let run = |args: &[&str]| crate::agents::run(&cli, args);
    let agents = || {
        let report = run(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().unwrap().clone();
        let checks = checks.into_iter().filter(|check| check["name"] == "agents");
        let check = |check: Value| {
            let message = check["message"].as_str().unwrap().to_owned();
            (check["warning"].as_bool().unwrap(), message)
        };
        checks.map(check).collect::<Vec<_>>()
    };
    let warned = |checks: &[(bool, String)]| checks.iter().map(|check| check.0).collect::<Vec<_>>();
    assert_eq!(warned(&agents()), [true, true], "nothing is imported");
    assert_eq!(run(&["import", "--from", "claude-code"]).code, 0);
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    contents(&cli.store(), &mut before);
    let checks = agents();
    assert_eq!(warned(&checks), [false, true], "{checks:?}");
    assert_eq!(
        checks[0].1,
        "Claude Code deletes sessions after 30 days (its default); all are imported"
    );
    contents(&cli.store(), &mut after);
    assert!(before == after, "something was changed");
    let text = run(&["doctor"]).stdout;
    assert!(
        text.contains("ok    agents       Claude Code deletes"),
        "{text}"
    );
    assert_eq!(run(&["import"]).code, 0);
    assert_eq!(warned(&agents()), [false, false]);
    assert_eq!(run(&["doctor"]).stderr, "no problems\n");
    // A file that grew since, and one that is new, would be lost.
    let grown = crate::agents::claude_user("u9", Some("a4"), "one more thing");
    let path = crate::agents::claude_file(&cli);
    let text = std::fs::read_to_string(&path).unwrap() + &format!("{grown}\n");
    std::fs::write(&path, text).unwrap();
    let checks = agents();
    assert_eq!(warned(&checks), [true, false], "{checks:?}");
    assert!(
        checks[0].1.ends_with("; 1 of 2 files is not imported"),
        "{checks:?}"
    );
    assert_eq!(run(&["import"]).code, 0);
    let other = crate::agents::claude_lines().replace(crate::agents::CLAUDE, "another");
    crate::agents::write(&path.with_file_name("another.jsonl"), other);
    let checks = agents();
    assert!(
        checks[0].1.ends_with("; 1 of 3 files is not imported"),
        "{checks:?}"
    );
    // Without what was derived from the store, the answer is the same.
    assert_eq!(run(&["import"]).code, 0);
    std::fs::remove_dir_all(cli.store().join("derived")).unwrap();
    assert_eq!(warned(&agents()), [false, false]);
}

#[test]
fn agents_that_delete_their_history_get_a_warning() {
    let cli = used();
    let home = cli.work();
    let run = |args: &[&str]| crate::kit::finish(cli.command(args).env("HOME", &home), b"");
    let projects = home.join(".claude/projects/-a");
    std::fs::create_dir_all(&projects).unwrap();
    std::fs::write(projects.join("1.jsonl"), "{}").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(29 * 86_400 + 60);
    let file = std::fs::File::options()
        .write(true)
        .open(projects.join("1.jsonl"))
        .unwrap();
    file.set_modified(old).unwrap();
    std::fs::write(projects.join("2.jsonl"), "{}").unwrap();

    let ran = run(&["doctor"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let line = "warn  agents       Claude Code deletes sessions after 30 days (its default); the oldest of 2 is 29 days old";
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
    assert!(ran.stdout.contains("backtrail import"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "no problems, 1 warning\n");
    let report = run(&["doctor", "--json"]).json();
    let last = report["checks"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["name"], &last["ok"], &last["warning"]),
        (&"agents".into(), &true.into(), &true.into())
    );

    let settings = home.join(".claude/settings.json");
    for (text, words) in [
        (
            r#"{"cleanupPeriodDays":7}"#,
            "deletes sessions after 7 days (~/.claude/settings.json)",
        ),
        (r#"{"cleanupPeriodDays":0}"#, "saves no sessions"),
        (
            "{\u{1b}",
            "cannot tell whether Claude Code deletes sessions: ~/.claude/settings.json: ",
        ),
        (
            r#"{"cleanupPeriodDays":99999}"#,
            "Claude Code keeps its sessions",
        ),
    ] {
        std::fs::write(&settings, text).unwrap();
        let ran = run(&["doctor"]);
        assert!(ran.stdout.contains(words), "{text}: {}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'));
    }
}

#[test]
fn a_session_that_gemini_cli_deletes_at_its_next_start_gets_a_warning() {
    let cli = used();
    let home = cli.work();
    let run = |args: &[&str]| crate::kit::finish(cli.command(args).env("HOME", &home), b"");
    let chats = home.join(".gemini/tmp/shop/chats");
    std::fs::create_dir_all(&chats).unwrap();
    let stub = concat!(
        r#"{"sessionId":"0123abcd-1","projectHash":"ff"}"#,
        "\n",
        r#"{"id":"a","type":"user","content":"<session_context>here"}"#,
        "\n",
    );
    let full = format!("{stub}{}\n", r#"{"id":"b","type":"user","content":"go"}"#);
    let write = |minute: &str, text: &str| {
        let name = format!("session-2026-02-03T04-{minute}-0123abcd.jsonl");
        std::fs::write(chats.join(name), text).unwrap();
    };
    write("05", &full);
    write("06", stub);
    let text = run(&["doctor"]).stdout;
    let warning = "Gemini CLI will delete 1 session at its next start, as a resume left a second file: ~/.gemini/tmp/shop/chats/session-2026-02-03T04-05-0123abcd.jsonl";
    assert!(text.contains(warning), "{text}");
    assert!(text.contains("general.sessionRetention.enabled"), "{text}");
    // The second file is not a session, and the import says that it was skipped.
    let imported = run(&["import", "--from", "gemini-cli"]);
    assert_eq!(imported.code, 0, "{imported:#?}");
    let skipped = "Gemini CLI: skipped 1 file without a conversation";
    assert!(imported.stderr.contains(skipped), "{imported:#?}");
    std::fs::write(
        home.join(".gemini/settings.json"),
        r#"{"general":{"sessionRetention":{"enabled":false}}}"#,
    )
    .unwrap();
    assert!(!run(&["doctor"]).stdout.contains("will delete"));
}

//! `delete` and `trash`.

use std::process::Stdio;

use crate::kit::{Cli, Ran, Recording, short};
use crate::pty::{self, Terminal};

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran
}

#[test]
fn a_session_is_deleted_listed_in_the_trash_and_restored() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let dry = ok(cli.run(&["delete", &id, "--dry-run"]));
    assert_eq!(
        dry.stdout,
        format!("would move session {} to the trash\n", short(&id))
    );
    assert_eq!(cli.texts(&id), ["hello"]);

    let ran = ok(cli.run(&["delete", &id]));
    assert_eq!(
        ran.stdout,
        format!("moved session {} to the trash\n", short(&id))
    );
    assert_eq!(
        ran.stderr,
        format!("to reverse: backtrail trash restore {}\n", short(&id))
    );
    assert_eq!(cli.run(&["list", "--json"]).json(), serde_json::json!([]));
    for verb in ["show", "context", "stats", "fork", "verify", "delete"] {
        let ran = cli.run(&[verb, &id[..6]]);
        assert_eq!(ran.code, 2, "{verb}: {ran:#?}");
        assert!(
            ran.stderr.contains("is in the trash (deleted at "),
            "{verb}: {ran:#?}"
        );
        let hint = format!("hint: restore it: backtrail trash restore {}", short(&id));
        assert!(ran.stderr.contains(&hint), "{verb}: {ran:#?}");
    }
    let list = ok(cli.run(&["trash"]));
    assert!(
        list.stdout.contains(&short(&id)) && list.stdout.contains("hello"),
        "{list:#?}"
    );
    let list = cli.run(&["trash", "--json"]).json();
    assert_eq!(list[0]["session"], id.as_str());
    assert_eq!(list[0]["what"], "session");
    assert_eq!(list[0]["title"], "hello");
    assert_eq!(list[0]["deleted_by"], "backtrail");
    let back = cli.reverse(&ran);
    assert_eq!(back.code, 0, "{back:#?}");
    assert_eq!(cli.texts(&id), ["hello"]);
    assert_eq!(ok(cli.run(&["trash"])).stderr, "the trash is empty\n");
}

#[test]
fn emptying_asks_and_keeps_what_forks_read() {
    let cli = Cli::new();
    let (id, other) = (cli.new_session("one"), cli.new_session("other"));
    let fork = cli.run(&["fork", &id, "--json"]).json();
    let fork = fork["session"].as_str().unwrap().to_owned();
    let ran = ok(cli.run(&["delete", &id, &other]));
    let reads = format!("{} is a fork of it and still reads it there", short(&fork));
    assert!(ran.stderr.contains(&reads), "{ran:#?}");
    // There is no terminal to ask on.
    let ran = cli.run(&["trash", "empty"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("pass --yes to confirm"), "{ran:#?}");
    let dry = ok(cli.run(&["trash", "empty", "--dry-run"]));
    assert!(
        dry.stdout
            .contains(&format!("would remove session {}", short(&other))),
        "{dry:#?}"
    );
    let kept = format!("kept session {}: continued by {}", short(&id), short(&fork));
    assert!(dry.stderr.contains(&kept), "{dry:#?}");
    let old = ok(cli.run(&["trash", "empty", "--older-than", "30d", "--yes"]));
    assert_eq!(
        (old.stdout.as_str(), old.stderr.as_str()),
        ("", "nothing removed\n")
    );
    let ran = ok(cli.run(&["trash", "empty", "--yes"]));
    assert_eq!(ran.stdout, format!("removed session {}\n", short(&other)));
    assert!(
        ran.stderr.contains(&kept) && ran.stderr.contains("freed "),
        "{ran:#?}"
    );
    assert_eq!(cli.texts(&fork), ["one"]);
    let wrong = cli.run(&["trash", "restore", &other]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("nothing in the trash matches"),
        "{wrong:#?}"
    );
    let wrong = cli.run(&["trash", "empty", "--older-than", "soon"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("30d"), "{wrong:#?}");
}

#[test]
fn the_user_confirms_on_a_terminal() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let id = cli.new_session("one");
    ok(cli.run(&["delete", &id]));
    for (verb, question) in [
        (vec!["trash", "empty"], "? this cannot be undone [y/N]"),
        (
            vec!["delete", "--purge", &id],
            "? this cannot be undone [y/N]",
        ),
    ] {
        let mut terminal = Terminal::start(&cli.command(&verb));
        terminal.wait_for("[y/N]");
        terminal.type_keys("n\n");
        let (code, screen) = terminal.end();
        assert_eq!(code, 1, "{screen}");
        assert!(screen.contains(question), "{screen}");
        assert!(screen.contains("nothing "), "{screen}");
    }
    let mut terminal = Terminal::start(&cli.command(&["trash", "empty"]));
    terminal.wait_for("[y/N]");
    terminal.type_keys("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("removed session"), "{screen}");
}

#[test]
fn a_purge_reports_what_it_leaves_and_forks_report_what_is_gone() {
    let cli = Cli::new();
    let ran = cli.run(&[
        "run",
        "--title",
        "a-leaked-key",
        "--",
        "sh",
        "-c",
        "echo a-leaked-key > key",
    ]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let id = cli.run(&["list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let fork = cli.run(&["fork", &id, "--json"]).json();
    let fork = fork["session"].as_str().unwrap().to_owned();
    ok(cli.run(&["checkpoint"]));
    let unasked = cli.run(&["delete", "--purge", &id]);
    assert_eq!(unasked.code, 2);
    assert!(
        unasked.stderr.contains("pass --yes to confirm"),
        "{unasked:#?}"
    );
    let ran = ok(cli.run(&["delete", "--purge", "--yes", &id]));
    assert_eq!(ran.stdout, format!("purged session {}\n", short(&id)));
    for said in [
        "its forks stay, without the part before the fork",
        "its files remain in the store: checkpoint",
        "of yours",
        "has key",
        "run backtrail gc to free the space",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
    let gone = format!(
        "history starts at record 2; 1 record before it was purged with session {}\n",
        short(&id)
    );
    for verb in ["show", "context", "stats"] {
        let ran = ok(cli.run(&[verb, &fork]));
        assert!(ran.stderr.contains(&gone), "{verb}: {ran:#?}");
        assert!(!ran.stdout.contains("a-leaked-key"), "{verb}: {ran:#?}");
    }
    let verified = ok(cli.run(&["verify"]));
    assert!(
        verified.stdout.contains("was purged with session"),
        "{verified:#?}"
    );
    let shown = cli.run(&["show", &fork, "--json"]).json();
    assert_eq!(shown["gaps"][0]["reason"], "purged");
    let again = cli.run(&["show", &id]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("was purged at"), "{again:#?}");
    for args in [&["log"][..], &["status"], &["log", "--steps"]] {
        let ran = ok(cli.run(args));
        assert!(!ran.stdout.contains("sh -c"), "{args:?}: {ran:#?}");
    }
    ok(cli.run(&["checkpoint"]));
}

#[test]
fn work_of_a_deleted_session_is_marked_and_can_be_undone() {
    let cli = Cli::new();
    let ran = cli.run(&["run", "--", "sh", "-c", "echo x > made"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let id = cli.run(&["list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    ok(cli.run(&["delete", &id]));
    let log = ok(cli.run(&["log"]));
    assert!(log.stdout.contains("(session deleted)"), "{log:#?}");
    for args in [&["status"][..], &["log", "--steps"], &["diff"]] {
        ok(cli.run(args));
    }
    ok(cli.run(&["undo"]));
    assert!(!cli.work().join("made").exists());
    ok(cli.run(&["redo"]));
    assert!(cli.work().join("made").exists());
    ok(cli.run(&["rewind", "last~1"]));
    assert!(!cli.work().join("made").exists());
}

#[test]
fn several_processes_delete_name_and_fork_one_session() {
    for _ in 0..5 {
        let cli = Cli::new();
        let id = cli.new_session("one");
        let start = |args: &[&str]| {
            let mut command = cli.command(args);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let children = [
            start(&["delete", &id]),
            start(&["delete", &id]),
            start(&["title", &id, "named"]),
            start(&["fork", &id]),
            start(&["delete", &id]),
        ];
        let ended = children.map(|child| child.wait_with_output().unwrap());
        let won = [0, 1, 4]
            .iter()
            .filter(|n| ended[**n].status.success())
            .count();
        assert_eq!(won, 1, "{ended:#?}");
        for output in &ended {
            let said = String::from_utf8_lossy(&output.stderr);
            let typed = said.contains("in the trash") || said.contains("is open for writing");
            assert!(output.status.success() || typed, "{output:#?}");
        }
        for session in cli.run(&["list", "--json"]).json().as_array().unwrap() {
            let fork = session["id"].as_str().unwrap();
            assert_eq!(cli.texts(fork), ["one"]);
        }
        ok(cli.run(&["trash", "restore", &id]));
        assert_eq!(cli.texts(&id), ["one"]);
        if ended[2].status.success() {
            let shown = cli.run(&["show", &id, "--json"]).json();
            assert_eq!(shown["title"], "named");
        }
        assert_eq!(cli.run(&["verify"]).code, 0);
    }
}

#[test]
fn keep_trails_is_a_setting() {
    let cli = Cli::new();
    cli.new_session("one");
    let config = cli.store().join("config.toml");
    std::fs::write(&config, "keep_trails = 3\n").unwrap();
    let rows = cli.run(&["config", "--json"]).json();
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "keep_trails");
    assert_eq!(row.unwrap()["value"], 3);
    for wrong in [
        "keep_trails = 0\n",
        "keep_trails = \"some\"\n",
        "keep_trails = -1\n",
    ] {
        std::fs::write(&config, wrong).unwrap();
        let ran = cli.run(&["config"]);
        assert_eq!(ran.code, 2);
        assert!(
            ran.stderr.contains("keep_trails must be a whole number"),
            "{ran:#?}"
        );
    }
}

#[test]
fn a_purge_can_be_repeated_once_nobody_writes_to_the_fork() {
    let cli = Cli::new();
    let id = cli.new_session("one");
    ok(cli.run(&["title", &id, "LEAKED-TITLE"]));
    let fork = cli.run(&["fork", &id, "--json"]).json();
    let fork = fork["session"].as_str().unwrap().to_owned();
    let mut speaker = Recording::start(cli.command(&["record", "--session", &fork]));
    speaker.say("two");
    let ran = ok(cli.run(&["delete", "--purge", "--yes", &id]));
    assert!(ran.stderr.contains("and retry"), "{ran:#?}");
    assert_eq!(speaker.end(), 0);
    // There is nothing to ask: the session is gone already.
    let ran = ok(cli.run(&["delete", "--purge", &id[..8]]));
    assert!(
        ran.stderr.contains("also removed the title and tags"),
        "{ran:#?}"
    );
    let shown = cli.run(&["show", &fork, "--json"]).json();
    assert_eq!(shown["title"], "two", "what is left says what it is about");
    let again = cli
        .run(&["delete", "--purge", "--json", &id, "--dry-run"])
        .json();
    assert_eq!(again["again"][0], id.as_str());
    assert_eq!(again["deletions"], serde_json::json!([]));
}

#[test]
fn the_session_of_a_running_command_is_not_deleted() {
    let cli = Cli::new();
    let id = cli.new_session("one");
    let elsewhere = cli.work().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir(elsewhere.join(".git")).unwrap();
    // It runs until its input ends.
    let mut command = cli.command(&["run", "--session", &id, "--", "sh", "-c", "echo on; cat"]);
    command.current_dir(&elsewhere);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = [0; 2];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
    for args in [&["delete"][..], &["delete", "--purge", "--yes"]] {
        let ran = cli.run(&[args, &[id.as_str()]].concat());
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("nothing was deleted"), "{ran:#?}");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    ok(cli.run(&["delete", &id]));
}

#[test]
fn trash_and_gc_accept_the_same_ages() {
    let cli = Cli::new();
    for age in ["0s", "2 w", "1y", "90m"] {
        cli.new_session("one");
        ok(cli.run(&["trash", "empty", "--older-than", age, "--yes"]));
        ok(cli.run(&["gc", "--older-than", age]));
    }
    let id = cli.new_session("two");
    ok(cli.run(&["delete", &id]));
    let ran = ok(cli.run(&["trash", "empty", "--older-than", "0s", "--yes"]));
    assert!(ran.stdout.contains(&short(&id)), "{ran:#?}");
}

#[test]
fn a_read_only_store_is_reported_with_what_was_attempted() {
    use std::os::unix::fs::PermissionsExt;
    let cli = Cli::new();
    let id = cli.new_session("one");
    let store = cli.store();
    let mode = |mode| std::fs::set_permissions(&store, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o555);
    let may = std::fs::write(store.join("probe"), "").is_ok();
    let ran = cli.run(&["delete", &id]);
    mode(0o755);
    if may {
        eprintln!("SKIPPED: needs a user other than root; root can write everywhere");
        return;
    }
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot create the trash"), "{ran:#?}");
}

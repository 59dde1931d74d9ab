//! Remotes in the settings: they come and go without another byte changing, what is wrong is
//! refused with the way out, and no password is ever shown. Nothing is connected.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::kit::{Cli, Ran};

const URL: &str = "postgresql://anna:hush@db.example/shop";
const RECIPIENT: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";

fn config(cli: &Cli) -> String {
    fs::read_to_string(cli.store().join("config.toml")).unwrap_or_default()
}

fn ok(cli: &Cli, args: &[&str]) -> Ran {
    let ran = cli.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
    assert_silent(&ran);
    ran
}

/// Asserts that a password is not shown.
fn assert_silent(ran: &Ran) {
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!shown.contains("hush"), "{ran:#?}");
}

#[test]
fn a_remote_comes_and_goes_and_the_rest_of_the_settings_stays() {
    let cli = Cli::new();
    ok(&cli, &["remote", "add", "work", URL, "--plaintext"]);
    assert_eq!(
        config(&cli),
        format!("[remotes.work]\nurl = \"{URL}\"\nplaintext = true\n")
    );
    let mode = fs::metadata(cli.store().join("config.toml")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    ok(&cli, &["remote", "remove", "work"]);
    let text = "# mine\nrotation   = \"1 MiB\"   # small\n\n[prices.x]\ninput = 1\noutput=2\n";
    fs::write(cli.store().join("config.toml"), text).unwrap();
    let add = [
        "remote",
        "add",
        "far",
        "postgresql://h/d",
        "--encrypt",
        RECIPIENT,
        "--blobs",
        "s3://b/p?region=x",
        "--identity",
        "~/key",
        "--password-command",
        "echo \"a\\b\"",
    ];
    ok(&cli, &add);
    let with = config(&cli);
    assert!(with.starts_with(text), "{with}");
    let row = ok(&cli, &["remote", "--json"]).json()[0].clone();
    assert_eq!(row["name"], "far");
    assert_eq!(row["encrypt"][0], RECIPIENT);
    assert_eq!(row["password_command"], "echo \"a\\b\"");
    assert_eq!(row["identity"], "~/key");
    ok(&cli, &["config", "set", "rotation", "2 MiB"]);
    ok(&cli, &["remote", "remove", "far"]);
    assert_eq!(config(&cli), text.replace("1 MiB", "2 MiB"));
    assert_eq!(ok(&cli, &["remote", "list", "--json"]).stdout, "[]\n");
}

#[test]
fn no_password_is_shown() {
    let cli = Cli::new();
    let blobs = "s3://b/p?aws_secret_access_key=hush";
    let added = ok(
        &cli,
        &[
            "remote",
            "add",
            "work",
            URL,
            "--plaintext",
            "--blobs",
            blobs,
        ],
    );
    assert!(
        added
            .stderr
            .contains("postgresql://anna:***@db.example/shop"),
        "{added:#?}"
    );
    assert!(
        added.stderr.contains("which only you can read"),
        "{added:#?}"
    );
    for args in [
        &["remote"][..],
        &["remote", "--json"],
        &["remote", "list"],
        &["config"],
        &["config", "--json"],
        &["doctor"],
    ] {
        let ran = cli.run(args);
        assert_silent(&ran);
        let lists = ran.stdout.contains("anna:***@") || !args.contains(&"remote");
        assert!(lists, "{ran:#?}");
    }
    assert_silent(&cli.run(&["__complete", "--", "push", ""]));
    // Whatever is wrong with a command line, and wherever the URL is in it.
    let socket = "postgresql://anna:hu sh'hush@127.0.0.1:1/shop";
    for args in [
        &["remote", "add", URL][..],
        &["remote", "add", URL, "--plaintext"],
        &["remote", "add", URL, "work", "--plaintext"],
        &["remote", "add", "x", "y", URL, "--plaintext"],
        &["remote", "add", "x", URL],
        &[
            "remote",
            "add",
            "x",
            URL,
            "--plaintext",
            "--encrypt",
            RECIPIENT,
        ],
        &["remote", "add", "x", socket, "--plaintxt"],
        &[
            "remote",
            "add",
            "x",
            "postgresql://anna:hush@h:port/d",
            "--plaintext",
        ],
        &["remote", "add", "x", "mysql://anna:hush@h/d", "--plaintext"],
        &[
            "remote",
            "add",
            "x",
            "postgresql://h/d",
            "--plaintext",
            "--blobs",
            "ftp://a:hush@b",
        ],
        &[
            "remote",
            "add",
            "x",
            "postgresql://h/d",
            "--plaintext",
            "--blobs",
            "s3://a:hush@b/c",
        ],
        &["remote", "list", URL],
        &["remote", "nonsense", URL],
        &["remote", "init", "work", "--as", URL, "more"],
        &["push", URL, "--all"],
        &["pull", "--all", URL],
        &["pull", "work", "--all", URL],
        &["verify", "--remote", URL],
    ] {
        for json in [&[] as &[&str], &["--json"]] {
            let ran = cli.run(&[args, json].concat());
            assert_eq!((ran.code, &*ran.stdout), (2, ""), "{args:?}: {ran:#?}");
            assert_silent(&ran);
        }
    }
}

#[test]
fn what_is_wrong_is_refused_with_the_way_out() {
    let cli = Cli::new();
    let plain = "postgresql://h/d";
    for (args, message, hint) in [
        (
            &["add", "Work", plain, "--plaintext"][..],
            "the name of a remote has",
            "comes first",
        ),
        (
            &["add", "w", "mysql://h/d", "--plaintext"],
            "begins with postgresql://",
            "",
        ),
        (
            &["add", "w", plain, "--encrypt", "anna"],
            "is not a recipient",
            "age-keygen",
        ),
        (
            &["add", "w", plain, "--encrypt", "AGE-SECRET-KEY-1QQQ"],
            "this is an identity, which is secret",
            "age-keygen -y",
        ),
        (&["add", "w", plain], "--encrypt", ""),
        (
            &["add", "w", plain, "--plaintext", "--schema", "a b"],
            "name of a schema",
            "",
        ),
        (
            &["add", "w", plain, "--plaintext", "--blobs", "bucket"],
            "URL of the blobs",
            "s3://",
        ),
        (&["check", "w"], "no remote \"w\"", "remote add"),
        (&["remove", "w"], "no remote \"w\"", "remote add"),
    ] {
        let ran = cli.run(&[&["remote"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        assert!(ran.stderr.contains(message), "{args:?}: {ran:#?}");
        assert!(ran.stderr.contains(hint), "{args:?}: {ran:#?}");
        assert_eq!(config(&cli), "", "{args:?}");
    }
    ok(&cli, &["remote", "add", "work", plain, "--plaintext"]);
    let again = cli.run(&["remote", "add", "work", plain, "--plaintext"]);
    assert!(
        again.stderr.contains("there is a remote work already"),
        "{again:#?}"
    );
    let unknown = cli.run(&["remote", "check", "wrok"]);
    assert!(
        unknown.stderr.contains("known remotes: work"),
        "{unknown:#?}"
    );
    let set = cli.run(&["config", "set", "remotes", "x"]);
    assert!(set.stderr.contains("backtrail remote add"), "{set:#?}");
    for args in [&["push", "work"][..], &["pull", "work"]] {
        assert_eq!(cli.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn settings_that_were_edited_wrongly_name_the_remote() {
    let cli = Cli::new();
    cli.new_session("hello");
    let file = cli.store().join("config.toml");
    for (text, expected) in [
        (
            "[remotes.a]\nurl = \"postgresql://u:hush@h\"\n",
            "remotes.a needs either encrypt",
        ),
        (
            "[remotes.a]\nlur = \"postgresql://u:hush@h\"\n",
            "unknown name \"lur\"",
        ),
        (
            "[remotes.a]\nurl = \"postgresql://u:hush@h\nplaintext = true\n",
            "not valid TOML",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let ran = cli.run(&["list"]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(expected), "{ran:#?}");
        assert_silent(&ran);
    }
}

#[test]
fn a_remote_that_is_away_says_so_and_nothing_is_lost() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    // Nobody listens on port 1.
    let url = "postgresql://anna:hush@127.0.0.1:1/shop";
    ok(&cli, &["remote", "add", "work", url, "--plaintext"]);
    for args in [
        &["push", "work", &id][..],
        &["pull", "work", "--all"],
        &["remote", "list", "work"],
        &["remote", "log", "work"],
        &["remote", "init", "work"],
        &["remote", "purge", "work", &id, "--yes"],
        &["verify", "--remote", "work"],
    ] {
        let ran = cli.run(args);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{args:?}: {ran:#?}");
        assert!(
            ran.stderr.contains("127.0.0.1:1/shop"),
            "{args:?}: {ran:#?}"
        );
        assert_silent(&ran);
        let json = cli.run(&[args, &["--json"]].concat());
        assert!(
            json.stderr.contains("\"kind\":\"away\""),
            "{args:?}: {json:#?}"
        );
        assert_silent(&json);
    }
    let check = cli.run(&["remote", "check", "work"]);
    assert_eq!(check.code, 1, "{check:#?}");
    assert!(check.stdout.contains("FAIL  database"), "{check:#?}");
    assert_silent(&check);
    assert_eq!(cli.texts(&id), ["hello"]);
}

//! Remotes on a real PostgreSQL: what is pushed from one home is pulled into another, and is a
//! session like others there. Encrypted, no word of it is in the database.

#[path = "../../../backtrail-remote/tests/remote/servers/mod.rs"]
#[allow(
    clippy::zombie_processes,
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the servers of another crate's tests, of which one is used here"
)]
mod servers;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use backtrail_remote::Identities;
use serde_json::Value;

use self::servers::Postgres;
use crate::kit::{Cli, Ran, finish};

/// Test keys of age.
const KEY: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
const OTHER_KEY: &str =
    "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0";

/// A database that is a remote.
struct Remote {
    cluster: &'static Postgres,
    database: String,
}

impl Remote {
    /// Returns a new one; `None` if PostgreSQL cannot be had here, which is reported.
    fn new() -> Option<Self> {
        let cluster = Postgres::shared()?;
        Some(Self {
            cluster,
            database: cluster.database(),
        })
    }

    fn url(&self, user: &str) -> String {
        format!(
            "postgresql://{user}@127.0.0.1:{}/{}",
            self.cluster.port, self.database
        )
    }

    /// Returns a home that knows it as `work`.
    fn home(&self) -> Cli {
        self.home_with("agent", &["--plaintext"])
    }

    fn home_with(&self, user: &str, more: &[&str]) -> Cli {
        let cli = Cli::new();
        let url = self.url(user);
        ok(&cli, &[&["remote", "add", "work", &url], more].concat());
        cli
    }

    /// Returns whether a text is anywhere in the database.
    fn has(&self, text: &str) -> bool {
        let dump = self.cluster.dump(&self.database);
        let dump = String::from_utf8_lossy(&dump);
        // Lines and payloads are dumped as hexadecimal digits.
        let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        dump.contains(text) || dump.contains(&digits)
    }
}

fn ok(cli: &Cli, args: &[&str]) -> Ran {
    let ran = cli.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
    ran
}

fn json(cli: &Cli, args: &[&str]) -> Value {
    ok(cli, &[args, &["--json"]].concat()).json()
}

fn say(cli: &Cli, session: &str, text: &str) {
    ok(cli, &["record", "--session", session, "--text", text]);
}

/// Returns the files of a session, but for what belongs to this machine.
fn trails(cli: &Cli, session: &str) -> Vec<(String, Vec<u8>)> {
    let dir = cli.store().join("sessions").join(session);
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

fn key_file(cli: &Cli, name: &str, key: &str) -> PathBuf {
    let path = cli.work().join(name);
    fs::write(&path, format!("# a key\n{key}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn recipient(key: &str) -> String {
    let mut identities = Identities::none();
    identities.add_file("key", key).unwrap();
    identities.recipients()[0].to_string()
}

#[test]
fn what_is_pushed_from_one_home_is_a_session_like_others_in_another() {
    let Some(remote) = Remote::new() else { return };
    let (here, there) = (remote.home(), remote.home());
    let id = here.talk();
    let pushed = json(&here, &["push", "work", "latest"]);
    assert_eq!(pushed["pushed"][0]["session"], *id, "{pushed}");
    assert_eq!(pushed["pushed"][0]["is_new"], true);
    let again = json(&here, &["push", "work", &id]);
    assert_eq!(again["unchanged"][0], *id, "{again}");

    let listed = json(&there, &["remote", "list", "work"]);
    assert_eq!(listed[0]["id"], *id, "{listed}");
    let pulled = json(&there, &["pull", "work", &id[..8]]);
    assert_eq!(pulled["pulled"][0]["session"], *id, "{pulled}");
    assert_eq!(trails(&here, &id), trails(&there, &id));
    assert_eq!(here.conversation(&id), there.conversation(&id));
    assert!(
        ok(&there, &["search", "folder"])
            .stdout
            .contains("One folder")
    );
    assert_eq!(there.run(&["list", "--all", "--json"]).json()[0]["id"], *id);
    ok(&there, &["verify"]);

    // It continues there, and comes back.
    say(&there, &id, "and then?");
    let fork = json(&there, &["fork", &id])["session"]
        .as_str()
        .unwrap()
        .to_owned();
    say(&there, &fork, "another way");
    let back = json(&there, &["push", "work", &fork]);
    assert_eq!(
        back["pushed"].as_array().unwrap().len(),
        2,
        "an ancestor: {back}"
    );
    let ran = ok(&here, &["pull", "work", "--all"]);
    assert!(ran.stdout.contains("pulled "), "{ran:#?}");
    assert!(here.conversation(&id).0.contains("and then?"));
    assert!(here.conversation(&fork).0.contains("another way"));
    assert_eq!(trails(&here, &fork), trails(&there, &fork));
    let nothing = ok(&here, &["pull", "work", "--all"]);
    assert!(
        nothing.stderr.contains("2 sessions: nothing new"),
        "{nothing:#?}"
    );

    let checked = json(&here, &["verify", "--remote", "work"]);
    assert_eq!(
        (&checked["ok"], &checked["sessions"]),
        (&true.into(), &2.into()),
        "{checked}"
    );
    let deep = json(&here, &["verify", "--remote", "work", "--deep"]);
    assert_eq!(
        (&deep["ok"], &deep["sessions"]),
        (&true.into(), &2.into()),
        "{deep}"
    );
    let log = json(&here, &["remote", "log", "work"]);
    let by = log[0]["by"].as_str().unwrap();
    assert!(by.contains("process ") && !by.contains('#'), "{log}");
    assert!(
        log.as_array()
            .unwrap()
            .iter()
            .any(|it| it["session"] == *id),
        "{log}"
    );
}

#[test]
fn what_diverged_is_refused_and_pushed_as_a_fork() {
    let Some(remote) = Remote::new() else { return };
    let (here, there) = (remote.home(), remote.home());
    let id = here.new_session("first");
    ok(&here, &["push", "work", "--all"]);
    ok(&there, &["pull", "work", "--all"]);
    say(&there, &id, "from there");
    ok(&there, &["push", "work", "--all"]);
    say(&here, &id, "from here");
    let before = trails(&here, &id);
    for verb in ["push", "pull"] {
        let refused = here.run(&[verb, "work", &id]);
        assert_eq!((refused.code, &*refused.stdout), (1, ""), "{refused:#?}");
        assert!(
            refused.stderr.contains("continued both here and there"),
            "{refused:#?}"
        );
        assert!(refused.stderr.contains("--as-fork"), "{refused:#?}");
        let refused = here.run(&[verb, "work", &id, "--json"]);
        assert_eq!(
            refused.json()["refused"][0]["reason"],
            "diverged",
            "{refused:#?}"
        );
    }
    let forked = json(&here, &["push", "work", &id, "--as-fork"]);
    let fork = forked["forks"][0]["fork"].as_str().unwrap().to_owned();
    assert_eq!(forked["forks"][0]["session"], *id);
    assert_eq!(forked["refused"].as_array().unwrap().len(), 0, "{forked}");
    assert_eq!(here.texts(&fork), ["first", "from here"]);
    assert_eq!(trails(&here, &id), before);
    ok(&there, &["pull", "work", "--all"]);
    assert_eq!(there.texts(&fork), ["first", "from here"]);
    assert_eq!(there.texts(&id), ["first", "from there"]);
    // What is behind is told to pull, and can.
    say(&there, &fork, "more");
    ok(&there, &["push", "work", &fork]);
    let ahead = here.run(&["push", "work", &fork, "--json"]);
    assert_eq!(ahead.code, 1, "{ahead:#?}");
    assert_eq!(ahead.json()["refused"][0]["reason"], "ahead", "{ahead:#?}");
    ok(&here, &["pull", "work", &fork]);
    assert_eq!(here.texts(&fork).last().unwrap(), "more");
}

#[test]
fn a_redacted_copy_is_pushed_under_its_own_id() {
    let Some(remote) = Remote::new() else { return };
    let (here, there) = (remote.home(), remote.home());
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let id = here.new_session(&format!("use the token {secret}"));
    let ran = ok(&here, &["push", "work", &id, "--redact", "--json"]);
    let copy = ran.json()["pushed"][0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_ne!(copy, id);
    assert!(ran.stderr.contains("\"removed\":"), "{ran:#?}");
    assert!(remote.has("use the token") && !remote.has(secret));
    assert!(
        here.run(&["show", &copy]).code == 2,
        "the copy is only there"
    );
    ok(&there, &["pull", "work", &copy]);
    let texts = there.texts(&copy);
    assert!(
        texts[0].starts_with("use the token") && !texts[0].contains(secret),
        "{texts:?}"
    );
}

#[test]
fn encrypted_no_word_is_in_the_database_and_a_wrong_key_changes_nothing() {
    let Some(remote) = Remote::new() else { return };
    let recipient = recipient(KEY);
    let encrypted = ["--encrypt", &recipient];
    let (here, there) = (
        remote.home_with("agent", &encrypted),
        remote.home_with("agent", &encrypted),
    );
    let key = key_file(&here, "key", KEY);
    let key = key.to_str().unwrap();
    let word = "heffalump";
    // Large enough to be a payload.
    let large = format!("{word} ").repeat(150_000);
    let ran = here.run_with(
        &["record", "--title", "a heffalump"],
        format!("{{\"role\":\"user\",\"text\":\"{large}\"}}\n").as_bytes(),
    );
    assert_eq!(ran.code, 0);
    let id = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    say(&here, &id, "where is the heffalump?");
    let without = here.run(&["push", "work", &id]);
    assert_eq!(without.code, 2, "{without:#?}");
    assert!(without.stderr.contains("--identity FILE"), "{without:#?}");
    ok(&here, &["push", "work", &id, "--identity", key]);
    assert!(
        remote.has(&id) && !remote.has(word),
        "ids are seen, words are not"
    );

    let mut pull = there.command(&["pull", "work", "--all"]);
    let pulled = finish(pull.env("BACKTRAIL_IDENTITY", key), b"");
    assert_eq!(pulled.code, 0, "{pulled:#?}");
    assert_eq!(trails(&here, &id), trails(&there, &id));
    assert_eq!(there.texts(&id).len(), 2);
    let check = ok(&here, &["remote", "check", "work", "--identity", key]);
    assert!(
        check.stdout.contains("opens the newest session"),
        "{check:#?}"
    );
    let deep = ok(
        &here,
        &["verify", "--remote", "work", "--deep", "--identity", key],
    );
    assert!(deep.stdout.starts_with("ok: "), "{deep:#?}");

    // Another key sees ids, and writes nothing, here or there.
    let other = key_file(&there, "other", OTHER_KEY);
    let other = other.to_str().unwrap();
    say(&there, &id, "more");
    let lines = "select count(*) from backtrail.record";
    let count = remote.cluster.sql(&remote.database, lines);
    let wrong = there.run(&["push", "work", &id, "--identity", other, "--json"]);
    assert_eq!(wrong.code, 2, "{wrong:#?}");
    assert!(wrong.stderr.contains("\"kind\":\"denied\""), "{wrong:#?}");
    assert_eq!(remote.cluster.sql(&remote.database, lines), count);
    let empty = remote.home_with("agent", &encrypted);
    let wrong = empty.run(&["pull", "work", "--all", "--identity", other]);
    assert_eq!(wrong.code, 2, "{wrong:#?}");
    assert!(
        wrong.stderr.contains("encrypted for other recipients"),
        "{wrong:#?}"
    );
    assert_eq!(
        empty.run(&["list", "--all", "--json"]).json(),
        Value::Array(vec![])
    );
    let check = empty.run(&["remote", "check", "work", "--identity", other]);
    assert_eq!(check.code, 1, "{check:#?}");
    assert!(check.stdout.contains("FAIL  key"), "{check:#?}");

    // A home that thinks it is plaintext is told.
    let plain = remote.home();
    let wrong = plain.run(&["pull", "work", "--all"]);
    assert_eq!(wrong.code, 2, "{wrong:#?}");
    assert!(
        wrong.stderr.contains("is encrypted at this remote"),
        "{wrong:#?}"
    );
}

#[test]
fn the_trash_and_a_purge_at_a_remote() {
    let Some(remote) = Remote::new() else { return };
    let here = remote.home_with("admin", &["--plaintext"]);
    let id = here.new_session("a woozle");
    let other = here.new_session("stays");
    ok(&here, &["push", "work", "--all"]);
    let deleted = ok(&here, &["remote", "delete", "work", &id]);
    let back = format!("remote restore work {}", crate::kit::short(&id));
    assert!(deleted.stderr.contains(&back), "{deleted:#?}");
    let pull = here.run(&["pull", "work", &id]);
    assert_eq!(pull.code, 1, "{pull:#?}");
    assert!(pull.stderr.contains("in the trash there"), "{pull:#?}");
    here.reverse(&deleted);
    ok(&here, &["pull", "work", &id]);

    let unconfirmed = here.run(&["remote", "purge", "work", &id]);
    assert_eq!(unconfirmed.code, 2, "{unconfirmed:#?}");
    assert!(unconfirmed.stderr.contains("--yes"), "{unconfirmed:#?}");
    assert!(remote.has("woozle"));
    ok(&here, &["remote", "purge", "work", &id, "--yes"]);
    assert!(!remote.has("woozle"));
    assert_eq!(here.texts(&id), ["a woozle"], "what is here stays");
    let refused = here.run(&["push", "work", "--all", "--json"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert_eq!(
        refused.json()["refused"][0]["reason"],
        "purged",
        "{refused:#?}"
    );
    assert_eq!(refused.json()["unchanged"][0], *other, "{refused:#?}");
    assert!(!remote.has("woozle"));

    // A purge here says what it does not reach, and what was purged here can be purged there.
    let purged = ok(&here, &["delete", "--purge", "--yes", &other]);
    assert!(
        purged
            .stderr
            .contains(&format!("remote purge work {other}")),
        "{purged:#?}"
    );
    let refused = here.run(&["pull", "work", &other]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    ok(&here, &["pull", "work", &other, "--even-purged"]);
    assert_eq!(here.texts(&other), ["stays"]);
}

#[test]
fn rights_and_setup_read_well() {
    let Some(remote) = Remote::new() else { return };
    let reader = remote.home_with("reader", &["--plaintext"]);
    let id = reader.new_session("mine");
    let check = ok(&reader, &["remote", "check", "work"]);
    assert!(check.stdout.contains("you may pull\n"), "{check:#?}");
    let denied = reader.run(&["push", "work", &id, "--json"]);
    assert_eq!((denied.code, &*denied.stdout), (2, ""), "{denied:#?}");
    assert!(denied.stderr.contains("\"kind\":\"denied\""), "{denied:#?}");
    assert!(denied.stderr.contains("remote check work"), "{denied:#?}");
    let agent = remote.home();
    let id = agent.new_session("theirs");
    ok(&agent, &["push", "work", &id]);
    let denied = agent.run(&["remote", "purge", "work", &id, "--yes"]);
    assert_eq!(denied.code, 2, "{denied:#?}");
    ok(&reader, &["pull", "work", &id]);
    let stranger = remote.home_with("stranger", &["--plaintext"]);
    let denied = stranger.run(&["remote", "list", "work"]);
    assert_eq!(denied.code, 2, "{denied:#?}");

    let cluster = remote.cluster;
    let empty = cluster.empty_database();
    let empty = Remote {
        cluster,
        database: empty,
    };
    let cli = empty.home();
    let unfit = cli.run(&["remote", "list", "work"]);
    assert!(unfit.stderr.contains("backtrail remote init"), "{unfit:#?}");
    let done = ok(
        &cli,
        &["remote", "init", "work", "--as", &empty.url("postgres")],
    );
    assert!(done.stdout.contains("version"), "{done:#?}");
    assert!(
        done.stderr.contains("GRANT backtrail_agent TO"),
        "{done:#?}"
    );
    let again = json(
        &cli,
        &["remote", "init", "work", "--as", &empty.url("postgres")],
    );
    assert_eq!(again["done"][0], "nothing to do");
    let none = ok(&cli, &["remote", "list", "work"]);
    assert!(none.stderr.contains("has no sessions"), "{none:#?}");
}

#[test]
fn a_password_comes_from_outside_the_settings_and_is_never_shown() {
    let Some(remote) = Remote::new() else { return };
    remote
        .cluster
        .sql("postgres", "grant backtrail_agent to locked");
    let cli = remote.home_with("locked", &["--plaintext"]);
    let list = ["remote", "list", "work"];
    let denied = cli.run(&[&list[..], &["--json"]].concat());
    assert_eq!(denied.code, 2, "{denied:#?}");
    assert!(denied.stderr.contains("\"kind\":\"denied\""), "{denied:#?}");
    let with = |name: &str, value: &str| {
        let mut command = cli.command(&list);
        let ran = finish(command.env(name, value), b"");
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!shown.contains("sesame"), "{ran:#?}");
        ran
    };
    assert_eq!(with("PGPASSWORD", "open sesame").code, 0);
    assert_eq!(with("PGPASSWORD", "close sesame").code, 2);
    let file = cli.work().join("pgpass");
    fs::write(&file, "127.0.0.1:*:*:locked:open sesame\n").unwrap();
    let open = with("PGPASSFILE", file.to_str().unwrap());
    assert_eq!(open.code, 2, "{open:#?}");
    assert!(
        open.stderr.contains("can be read by others; ignored"),
        "{open:#?}"
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(with("PGPASSFILE", file.to_str().unwrap()).code, 0);
    let command = ["--plaintext", "--password-command", "echo open sesame"];
    let cli = remote.home_with("locked", &command);
    ok(&cli, &list);
    let command = [
        "--plaintext",
        "--password-command",
        "echo sesame >&2; false",
    ];
    let failed = remote.home_with("locked", &command).run(&list);
    assert_eq!(failed.code, 2, "{failed:#?}");
    assert!(
        failed
            .stderr
            .contains("password command of the remote work failed"),
        "{failed:#?}"
    );
    // In the URL, encoded.
    let url = remote
        .url("locked")
        .replace("locked@", "locked:open%20sesame@");
    let cli = Cli::new();
    ok(&cli, &["remote", "add", "work", &url, "--plaintext"]);
    let checked = ok(&cli, &["remote", "check", "work"]);
    assert!(checked.stdout.contains("locked:***@"), "{checked:#?}");
    assert!(!checked.stdout.contains("sesame"), "{checked:#?}");
}

#[test]
fn blobs_are_kept_in_a_directory() {
    let Some(remote) = Remote::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let blobs = format!("file://{}", dir.path().join("blobs").display());
    let options = ["--plaintext", "--blobs", &blobs];
    let (here, there) = (
        remote.home_with("agent", &options),
        remote.home_with("agent", &options),
    );
    let large = "a tigger ".repeat(150_000);
    let ran = here.run_with(
        &["record"],
        format!("{{\"role\":\"user\",\"text\":\"{large}\"}}\n").as_bytes(),
    );
    let id = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let pushed = json(&here, &["push", "work", &id]);
    assert_eq!(pushed["pushed"][0]["payloads"], 1, "{pushed}");
    assert!(remote.has(&id) && !remote.has(&large));
    ok(&there, &["pull", "work", &id]);
    assert!(there.texts(&id) == [large]);
    let check = ok(&here, &["remote", "check", "work"]);
    assert!(check.stdout.contains(&blobs), "{check:#?}");
    // One that is lost is named, and the rest is pulled.
    fs::remove_dir_all(dir.path().join("blobs")).unwrap();
    let deep = here.run(&["verify", "--remote", "work", "--deep", "--json"]);
    assert_eq!(deep.code, 1, "{deep:#?}");
    assert_eq!(deep.json()["damaged"][0]["session"], *id, "{deep:#?}");
    let third = remote.home_with("agent", &options);
    let pulled = third.run(&["pull", "work", &id]);
    assert_eq!(pulled.code, 1, "{pulled:#?}");
    assert!(pulled.stderr.contains("1 payload of"), "{pulled:#?}");
}

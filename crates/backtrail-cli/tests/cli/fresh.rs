//! What is new is imported before `list`, `search`, `stats`, `show` and the overview, and nothing
//! that goes wrong there disturbs them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::agents::{
    CLAUDE, CODEX, at_home, claude_says, claude_user, codex_file, codex_lines, home, import, lines,
    run, text, write,
};
use crate::kit::{Cli, Ran, finish};

/// The session of Claude Code's that is imported first.
const FIRST: &str = "0b1c2d3e-1111-4000-8000-000000000000";

/// A session of Claude Code's, with a word of its own, in a directory.
fn claude_session(n: u32, word: &str, directory: &str) -> (String, String) {
    let id = format!("0b1c2d3e-1111-4000-8000-{n:012}");
    let [user, answer, response] = ["u", "a", "r"].map(|it| format!("{it}-{n}"));
    let text = lines(&[
        claude_user(&user, None, word),
        claude_says(&answer, &user, &response, text("Mended."), 9),
    ]);
    (
        id.clone(),
        text.replace(CLAUDE, &id).replace("/w/shop", directory),
    )
}

fn path_of(cli: &Cli, id: &str) -> PathBuf {
    home(cli).join(format!(".claude/projects/-w-shop/{id}.jsonl"))
}

fn add(cli: &Cli, n: u32, word: &str) -> String {
    let (id, text) = claude_session(n, word, "/w/shop");
    write(&path_of(cli, &id), text);
    id
}

/// Makes a store into which the history of Claude Code was imported.
fn imported() -> Cli {
    let cli = Cli::new();
    add(&cli, 0, "why is the refund wrong?");
    import(&cli, "claude-code");
    cli
}

fn ids(ran: &Ran) -> Vec<String> {
    assert_eq!(ran.code, 0, "{ran:#?}");
    let rows = ran.json();
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = rows.as_array().unwrap().iter().map(id).collect();
    ids.sort();
    ids
}

fn listed(cli: &Cli) -> Vec<String> {
    ids(&run(cli, &["list", "--json", "--all"]))
}

#[test]
fn every_screen_of_sessions_has_what_was_just_written() {
    let cli = imported();
    let first = add(&cli, 1, "zebra crossing");
    assert!(listed(&cli).contains(&first));
    let second = add(&cli, 2, "walrus tusk");
    let found = run(&cli, &["search", "walrus", "--json"]);
    assert_eq!(found.code, 0, "{found:#?}");
    assert!(found.stdout.contains(&second), "{found:#?}");
    let spent = || run(&cli, &["stats", "--json"]).json();
    let before = spent();
    assert_eq!(spent(), before);
    add(&cli, 3, "emu");
    assert_ne!(spent(), before);
    let fourth = add(&cli, 4, "gnu herd");
    let shown = run(&cli, &["show", &fourth]);
    assert!(shown.stdout.contains("gnu herd"), "{shown:#?}");
    let fifth = add(&cli, 5, "newt");
    let overview = run(&cli, &["--json"]);
    assert_eq!(overview.code, 0, "{overview:#?}");
    assert!(cli.store().join("sessions").join(fifth).is_dir());
    // One that has grown, too.
    let fifth = add(&cli, 5, "newt");
    let more = lines(&[claude_user("u-more", Some("a-5"), "one more axolotl")]);
    let (_, text) = claude_session(5, "newt", "/w/shop");
    write(&path_of(&cli, &fifth), text + &more.replace(CLAUDE, &fifth));
    let found = run(&cli, &["search", "axolotl", "--json"]);
    assert!(found.stdout.contains(&fifth), "{found:#?}");
}

#[test]
fn agents_that_were_never_imported_are_not_looked_at() {
    let cli = Cli::new();
    add(&cli, 0, "zebra");
    let id = cli.new_session("ours");
    assert_eq!(listed(&cli), std::slice::from_ref(&id));
    let ran = run(&cli, &["import", "--from", "claude-code"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let codex = home(&cli).join(".codex");
    write(&codex_file(&codex, CODEX), codex_lines());
    assert_eq!(listed(&cli).len(), 2);
    assert!(!listed(&cli).contains(&CODEX.to_owned()));
    let ran = run(&cli, &["import", "--from", "codex"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(listed(&cli).contains(&CODEX.to_owned()));
}

#[test]
fn the_setting_turns_it_off() {
    let cli = imported();
    let ran = run(&cli, &["config", "set", "auto_import", "off"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let id = add(&cli, 1, "zebra");
    assert!(!listed(&cli).contains(&id));
    run(&cli, &["config", "unset", "auto_import"]);
    assert!(listed(&cli).contains(&id));
}

#[test]
fn a_removed_session_stays_away() {
    for removal in [
        &[&["delete", FIRST][..]][..],
        &[&["delete", FIRST], &["trash", "empty", "--yes"]],
        &[&["delete", FIRST, "--purge", "--yes"]],
    ] {
        let cli = imported();
        add(&cli, 1, "zebra");
        assert_eq!(listed(&cli).len(), 2);
        for verb in removal {
            let ran = run(&cli, verb);
            assert_eq!(ran.code, 0, "{ran:#?}");
        }
        assert_eq!(listed(&cli).len(), 1, "{removal:?}");
        let (_, text) = claude_session(0, "zebra", "/w/shop");
        let more = lines(&[claude_user("u-more", Some("a-0"), "one more")]);
        write(&path_of(&cli, FIRST), text + &more.replace(CLAUDE, FIRST));
        let ran = run(&cli, &["list", "--json"]);
        assert_eq!(
            (ran.stderr.as_str(), ids(&ran).len()),
            ("", 1),
            "{removal:?}"
        );
        let ran = run(&cli, &["import"]);
        assert!(ran.stderr.contains("not imported again"), "{ran:#?}");
        assert_eq!(listed(&cli).len(), 1, "{removal:?}");
    }
}

#[test]
fn a_file_that_cannot_be_imported_is_one_line_once_and_costs_nothing_else() {
    let cli = imported();
    let database = home(&cli).join(".local/share/opencode/opencode.db");
    write(&database, "SQLite format 3\0 and nothing that it means");
    let ran = run(&cli, &["import"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    // The import has reported it.
    let ran = run(&cli, &["list"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    let id = add(&cli, 1, "zebra");
    write(
        &database,
        "SQLite format 3\0 and nothing that it means, again",
    );
    let ran = run(&cli, &["list", "--all", "--json"]);
    assert!(ids(&ran).contains(&id));
    let warnings: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(warnings.len(), 1, "{ran:#?}");
    assert!(warnings[0].contains("not imported"), "{ran:#?}");
    assert!(warnings[0].contains("opencode.db"), "{ran:#?}");
    let ran = run(&cli, &["list", "--all"]);
    assert_eq!(ran.stderr, "", "it is not said again");
}

#[test]
fn half_a_line_of_an_agent_that_is_writing_waits() {
    let cli = imported();
    let (id, text) = claude_session(1, "zebra", "/w/shop");
    let path = path_of(&cli, &id);
    for end in [10, text.len() / 2, text.len() - 30, text.len()] {
        write(&path, &text[..end]);
        let ran = run(&cli, &["list", "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{end}: {ran:#?}");
    }
    let ran = run(&cli, &["show", &id, "--json"]);
    assert!(ran.stdout.contains("Mended."), "{ran:#?}");
    let verified = run(&cli, &["verify", "--json"]);
    assert_eq!(verified.json()["ok"], true, "{verified:#?}");
}

#[test]
fn what_does_not_fit_into_the_time_is_reported_and_comes_with_the_next_command() {
    let cli = imported();
    let ids = [1, 2, 3].map(|n| add(&cli, n, "zebra"));
    let mut late = at_home(&cli, &["list", "--all"]);
    let ran = finish(late.env("BACKTRAIL_IMPORT_MS", "0"), b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let expected = "3 sessions are not imported yet; run backtrail import\n";
    assert_eq!(ran.stderr, expected);
    let mut late = at_home(&cli, &["list", "--json", "--all"]);
    let ran = finish(late.env("BACKTRAIL_IMPORT_MS", "0"), b"");
    assert_eq!(ran.stderr, "");
    assert_eq!(self::ids(&ran), [FIRST]);
    let now = listed(&cli);
    assert!(ids.iter().all(|id| now.contains(id)), "{now:?}");
}

#[test]
fn another_import_is_not_waited_for() {
    let cli = imported();
    let id = add(&cli, 1, "zebra");
    let lock = cli.store().join("derived/import.lock");
    let lock = File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    // They end although nobody lets go.
    for verb in [
        &["list", "--json", "--all"][..],
        &["search", "refund", "--json"],
        &["stats", "--json"],
        &["show", FIRST, "--json"],
        &["--json"],
    ] {
        let ran = run(&cli, verb);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{verb:?}");
        assert!(!ran.stdout.contains(&id), "{verb:?}");
    }
    drop(lock);
    assert!(listed(&cli).contains(&id));
}

#[test]
fn processes_at_the_same_time_import_each_session_once() {
    let cli = imported();
    let ids = [1, 2, 3, 4, 5].map(|n| add(&cli, n, "zebra"));
    let start = |args: &[&str]| {
        let mut command = at_home(&cli, args);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = (0..4)
        .flat_map(|_| [start(&["list", "--json"]), start(&["search", "refund"])])
        .collect();
    for process in running {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // What `search` says besides is about its matches.
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.is_empty() || errors.starts_with("to read one:"),
            "{errors}"
        );
    }
    let now = listed(&cli);
    assert_eq!(now.len(), ids.len() + 1);
    for id in ids {
        let texts = cli.texts(&id);
        let whole = cli.texts(FIRST);
        assert_eq!(texts.len(), whole.len(), "{id}");
    }
}

#[test]
fn a_store_that_cannot_be_written_is_read_as_it_is() {
    if !rustix::process::geteuid().is_root() || !is_there("setpriv") {
        eprintln!("SKIPPED: needs root and setpriv; no store was read-only");
        return;
    }
    let cli = imported();
    add(&cli, 1, "zebra");
    readable_for_all(&home(&cli));
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    let program = at_home(&cli, &["list", "--json", "--all"]);
    nobody.arg(program.get_program()).args(program.get_args());
    nobody.current_dir("/").env_clear().env("HOME", home(&cli));
    nobody.env("BACKTRAIL_HOME", cli.store());
    if !can_run(&mut nobody) {
        eprintln!("SKIPPED: needs a program that others can run; no store was read-only");
        return;
    }
    let ran = finish(&mut nobody, b"");
    assert_eq!(ran.stderr, "");
    assert_eq!(ids(&ran), [FIRST]);
}

/// Returns whether another user may start the program at all.
fn can_run(command: &mut Command) -> bool {
    let ran = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output();
    ran.is_ok_and(|ran| !String::from_utf8_lossy(&ran.stderr).contains("failed to execute"))
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

fn readable_for_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::symlink_metadata(path).unwrap();
    if metadata.is_symlink() {
        return;
    }
    let mode = if metadata.is_dir() { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            readable_for_all(&entry.unwrap().path());
        }
    }
}

#[test]
fn a_thousand_known_files_are_not_opened() {
    if !is_there("strace") {
        eprintln!("SKIPPED: needs strace; opened files were not counted");
        return;
    }
    let cli = imported();
    for n in 0..999 {
        add(&cli, n, "zebra");
    }
    let ran = run(&cli, &["import"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let opened = || {
        let trace = home(&cli).join("trace");
        let program = at_home(&cli, &["list", "-n", "1"]);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=open,openat,openat2", "-o"]);
        strace.arg(&trace).arg(program.get_program());
        strace.args(program.get_args()).current_dir(cli.work());
        strace
            .env("HOME", home(&cli))
            .env("BACKTRAIL_HOME", cli.store());
        let ran = finish(&mut strace, b"");
        assert_eq!(ran.code, 0, "{ran:#?}");
        let trace = fs::read_to_string(trace).unwrap();
        assert!(
            trace.contains(".claude/projects"),
            "the directory was listed"
        );
        let is_session = |line: &&str| line.contains(".claude/projects") && line.contains(".jsonl");
        trace.lines().filter(is_session).count()
    };
    assert_eq!(opened(), 0);
    add(&cli, 1, "walrus tusk");
    assert_ne!(opened(), 0, "one that changed is");
}

#[test]
fn what_is_excluded_is_never_imported() {
    let cli = imported();
    let (kept, text) = claude_session(1, "zebra", "/w/shop");
    write(&path_of(&cli, &kept), text);
    let (private, text) = claude_session(2, "walrus", "/w/private/deep");
    write(&path_of(&cli, &private), text);
    let exclude = |patterns: &[&str]| {
        let ran = run(
            &cli,
            &[&["config", "set", "import.exclude"], patterns].concat(),
        );
        assert_eq!(ran.code, 0, "{ran:#?}");
    };
    exclude(&["/w/private"]);
    assert_eq!(listed(&cli), [FIRST, &kept]);
    let ran = run(&cli, &["import"]);
    assert!(
        ran.stderr.contains("skipped 1 file (import.exclude)"),
        "{ran:#?}"
    );
    let file = path_of(&cli, &private);
    let ran = run(&cli, &["import", file.to_str().unwrap()]);
    assert!(ran.stderr.contains("(import.exclude)"), "{ran:#?}");
    assert_eq!(listed(&cli), [FIRST, &kept]);
    // A session that was imported before stops growing.
    exclude(&["claude-code"]);
    let (_, text) = claude_session(1, "zebra", "/w/shop");
    write(
        &path_of(&cli, &kept),
        text.replace("Mended.", "Mended well."),
    );
    run(&cli, &["import"]);
    assert!(
        !run(&cli, &["show", &kept, "--json"])
            .stdout
            .contains("Mended well.")
    );
    let ran = run(&cli, &["config", "unset", "import.exclude"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(listed(&cli), [FIRST, &kept, &private]);
    for wrong in ["!a", "/a/[z-a]", "~me/x"] {
        let ran = run(&cli, &["config", "set", "import.exclude", wrong]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(
            ran.stderr.contains("import.exclude: the pattern"),
            "{ran:#?}"
        );
    }
}

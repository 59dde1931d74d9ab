//! `import`: sessions of other agents are found and imported (F24).

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};

use crate::agents::{self, CLAUDE, CODEX, CODEX_FORK, GEMINI, PI, counts, home, import, run};
use crate::kit::{Cli, finish, normal, screen, snapshot};

/// Appends to a file.
fn append(path: &Path, text: &str) {
    let before = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, before + text).unwrap();
}

/// Returns the sessions of an agent, by what they are called or begin with.
fn sessions(cli: &Cli, agent: &str) -> Vec<Value> {
    let listed = run(cli, &["list", "--all", "--agent", agent, "--json"]).json();
    listed.as_array().unwrap().clone()
}

/// Returns the id of the one session that says this.
fn said(cli: &Cli, words: &str) -> String {
    let found = run(cli, &["search", "--all", "--phrase", words, "--json"]);
    assert_eq!(found.code, 0, "{words}: {found:#?}");
    let found = found.json();
    let hits = found["hits"].as_array().or(found.as_array()).unwrap();
    assert_eq!(hits.len(), 1, "{words}: {found}");
    hits[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn the_sessions_of_all_agents_are_found_where_they_keep_them() {
    let cli = Cli::new();
    agents::fill(&cli);
    let ran = run(&cli, &["import"]);
    assert_eq!(
        screen(&ran, &cli, &[]),
        "\
exit 0
out: AGENT        FOUND  NEW  UPDATED  UNCHANGED  DAMAGED LINES  UNKNOWN RECORDS
out: Claude Code      2    2        0          0              0                0
out: Codex            2    2        0          0              0                0
out: Gemini CLI       1    1        0          0              0                0
out: pi               1    1        0          0              0                0
"
    );
    for (agent, n) in [
        ("claude-code", 3),
        ("codex", 2),
        ("gemini-cli", 1),
        ("pi", 1),
    ] {
        let found = sessions(&cli, agent);
        assert_eq!(found.len(), n, "{agent}: {found:#?}");
        assert!(found.iter().all(|session| session["agent"] == agent));
    }
    assert_eq!(run(&cli, &["verify"]).code, 0);
    let again = run(&cli, &["import", "--json"]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
    let again = again.json();
    for (agent, n) in [
        ("claude-code", 2),
        ("codex", 2),
        ("gemini-cli", 1),
        ("pi", 1),
    ] {
        assert_eq!(counts(&again["agents"][agent]), [n, 0, 0, n], "{agent}");
    }
}

#[test]
fn variables_set_where_agents_keep_their_sessions() {
    let cli = Cli::new();
    let elsewhere = home(&cli).join("elsewhere");
    let at = |name: &str| elsewhere.join(name);
    // What is in the usual place is not looked at then.
    agents::write(&agents::claude_file(&cli), agents::claude_lines());
    let claude = at("claude").join(format!("projects/-w/{CLAUDE}.jsonl"));
    agents::write(&claude, agents::claude_lines());
    agents::write(
        &agents::codex_file(&at("codex"), CODEX),
        agents::codex_lines(),
    );
    let gemini =
        at("gemini").join(".gemini/tmp/shop/chats/session-2026-01-02T03-04-4e5f6071.jsonl");
    agents::write(&gemini, agents::gemini_lines());
    agents::write(&at("pi").join("sessions/--w--/x.jsonl"), agents::pi_lines());
    let mut command = agents::at_home(&cli, &["import", "--json"]);
    command
        .env("CLAUDE_CONFIG_DIR", at("claude"))
        .env("CODEX_HOME", at("codex"))
        .env("GEMINI_CLI_HOME", at("gemini"))
        .env("PI_CODING_AGENT_DIR", at("pi"));
    let ran = finish(&mut command, b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    for agent in ["claude-code", "codex", "gemini-cli", "pi"] {
        assert_eq!(
            counts(&ran.json()["agents"][agent]),
            [1, 1, 0, 0],
            "{agent}"
        );
    }
    let shown = run(&cli, &["export", CLAUDE, "--to", "claude-code"]);
    assert_eq!(shown.stdout, agents::claude_lines());
}

#[test]
fn json_has_all_counts_of_every_agent_that_was_asked_for() {
    let cli = Cli::new();
    agents::fill(&cli);
    let text = agents::claude_lines()
        + "{\"type\":\"hologram\",\"uuid\":\"h\"}\n"
        + "{\"type\":\"user\",\"mess\n";
    agents::write(&agents::claude_file(&cli), &text);
    let ran = run(
        &cli,
        &["import", "--from", "claude-code", "--from", "pi", "--json"],
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let told = ran.json();
    let agents: Vec<_> = told["agents"].as_object().unwrap().keys().collect();
    assert_eq!(agents, ["claude-code", "pi"]);
    let claude = &told["agents"]["claude-code"];
    let begins = text.find("{\"type\":\"user\",\"mess").unwrap();
    assert_eq!(
        (
            &claude["found"],
            &claude["new"],
            &claude["updated"],
            &claude["unchanged"]
        ),
        (&json!(2), &json!(2), &json!(0), &json!(0))
    );
    assert_eq!(claude["damaged_lines"], 1);
    assert_eq!(claude["unknown_records"], 1);
    assert_eq!(claude["unknown_types"], json!({"hologram": 1}));
    assert_eq!(claude["errors"], json!([]));
    // 5 in the session, 2 of its own in the branch, 2 of the sub-agent.
    let damaged = &claude["first_damaged"][0];
    assert_eq!(damaged["file"], json!(agents::claude_file(&cli)));
    assert_eq!(
        (&damaged["line"], &damaged["byte"]),
        (&json!(11), &json!(begins))
    );
    assert_eq!(
        (&told["dry_run"], &told["errors"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(sessions(&cli, "codex").len(), 0);
}

#[test]
fn a_dry_run_makes_nothing_not_even_a_store() {
    let cli = Cli::new();
    agents::fill(&cli);
    let ran = run(&cli, &["import", "--dry-run", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let told = ran.json();
    assert_eq!(told["dry_run"], true);
    assert_eq!(counts(&told["agents"]["claude-code"]), [2, 2, 0, 0]);
    assert!(!cli.store().exists());
    // What is there stays as it is, too.
    run(&cli, &["import", "--from", "pi"]);
    append(&agents::pi_file(&cli), "{\"type\":\"hologram\"}\n");
    let before = tree(&cli.store());
    let ran = run(&cli, &["import", "--dry-run", "--json"]);
    let told = ran.json();
    assert_eq!(counts(&told["agents"]["pi"]), [1, 0, 1, 0]);
    assert_eq!(counts(&told["agents"]["codex"]), [2, 2, 0, 0]);
    assert_eq!(tree(&cli.store()), before);
}

/// Returns all files below a directory, with what is in them.
fn tree(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(tree(&path)),
            false => all.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn the_table_fits_the_terminal() {
    let cli = Cli::new();
    agents::fill(&cli);
    let file = agents::claude_file(&cli);
    append(&file, "{\"type\":\"hologram\",\"uuid\":\"h\"}\nnot json\n");
    append(&agents::pi_file(&cli), "\0\0\0\0\n");
    snapshot("import-dry-run", &cli, &["import", "--dry-run"], &[]);
    run(&cli, &["import"]);
    snapshot("import-unchanged", &cli, &["import"], &[]);
}

#[test]
fn nothing_to_import_is_reported() {
    let cli = Cli::new();
    let ran = run(&cli, &["import", "--from", "codex", "--from", "pi"]);
    assert_eq!(
        screen(&ran, &cli, &[]),
        "exit 0\nerr: found no sessions from Codex, pi\nerr: to import from elsewhere: backtrail import PATH\n"
    );
}

#[test]
fn a_file_that_grew_is_continued() {
    let cli = Cli::new();
    agents::fill(&cli);
    run(&cli, &["import"]);
    let more = [
        agents::claude_user("u4", Some("a4"), "and the receipts"),
        agents::claude_says("a5", "u4", "r4", agents::text("Those too."), 50),
    ];
    append(&agents::claude_file(&cli), &agents::lines(&more));
    let claude = import(&cli, "claude-code");
    assert_eq!(counts(&claude), [2, 0, 1, 1]);
    assert_eq!(claude["messages"], 2);
    assert_eq!(said(&cli, "and the receipts"), CLAUDE);
    assert_eq!(said(&cli, "why is the refund wrong"), CLAUDE);
    // Half a line is not damaged: its agent is still writing.
    append(&agents::claude_file(&cli), "{\"type\":\"user\",\"me");
    let claude = import(&cli, "claude-code");
    assert_eq!(
        (&claude["damaged_lines"], &claude["unfinished_files"]),
        (&json!(0), &json!(1))
    );
    let ran = run(&cli, &["export", CLAUDE, "--to", "claude-code"]);
    let file = std::fs::read_to_string(agents::claude_file(&cli)).unwrap();
    assert_eq!((ran.code, ran.stdout), (0, file));
}

#[test]
fn damaged_lines_and_unknown_types_are_reported_and_cost_nothing_else() {
    let cli = Cli::new();
    let file = agents::claude_file(&cli);
    agents::write(&file, agents::claude_lines());
    append(&file, "{\"type\":\"hologram\",\"uuid\":\"h\"}\n");
    append(&file, &"\0\0\0\0\n".repeat(30));
    append(
        &file,
        &format!("{}\n", agents::claude_user("u9", Some("a4"), "still here")),
    );
    let ran = run(&cli, &["import"]);
    assert_eq!(
        normal_home(&ran, &cli),
        format!(
            "\
exit 0
out: AGENT        FOUND  NEW  UPDATED  UNCHANGED  DAMAGED LINES  UNKNOWN RECORDS
out: Claude Code      1    1        0          0             30                1
err: warning: Claude Code: 30 damaged lines skipped; the first is line 11 of <home>/.claude/projects/-w-shop/{CLAUDE}.jsonl: only NUL bytes
err: Claude Code: unknown record types, kept unchanged: hologram (1)
"
        )
    );
    assert_eq!(said(&cli, "still here"), CLAUDE);
    // They are counted every time, and named when they are new.
    let again = run(&cli, &["import"]);
    assert!(again.stdout.contains("  30  "), "{}", again.stdout);
    assert!(!again.stderr.contains("warning"), "{}", again.stderr);
}

/// Like `screen`, with a word for the home directory.
fn normal_home(ran: &crate::kit::Ran, cli: &Cli) -> String {
    screen(ran, cli, &[]).replace(home(cli).to_str().unwrap(), "<home>")
}

#[test]
fn unreadable_files_are_named_and_the_rest_is_imported() {
    let cli = Cli::new();
    agents::fill(&cli);
    // Directories nested deeper than any agent nests them are not searched, not even for root.
    let sessions = home(&cli).join(".codex/sessions");
    std::fs::create_dir_all(sessions.join("d/".repeat(40))).unwrap();
    let barred = agents::codex_file(&home(&cli).join(".codex"), GEMINI);
    agents::write(&barred, agents::codex_lines());
    std::fs::set_permissions(&barred, std::fs::Permissions::from_mode(0o000)).unwrap();
    let is_barred = std::fs::File::open(&barred).is_err();
    if !is_barred {
        eprintln!("SKIPPED: needs a user other than root; root can read every file");
        std::fs::remove_file(&barred).unwrap();
    }
    let ran = run(&cli, &["import"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let found = 2 + u64::from(is_barred);
    let row = format!("Codex            {found}    2  ");
    assert!(ran.stdout.contains(&row), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("pi               1    1  "),
        "{}",
        ran.stdout
    );
    let seen = normal_home(&ran, &cli);
    let error = "/d was not imported\nerr:   caused by: the directory is nested too deep ";
    assert!(seen.contains(error), "{seen}");
    if is_barred {
        let file = barred.to_str().unwrap();
        let error = format!("error: {file} was not imported\n  caused by: cannot read");
        assert!(ran.stderr.contains(&error), "{}", ran.stderr);
    }
    let ran = run(&cli, &["import", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let told = ran.json();
    let codex = &told["agents"]["codex"];
    assert_eq!(counts(codex), [found, 0, 0, 2]);
    let errors = codex["errors"].as_array().unwrap();
    assert_eq!(errors.len() as u64, 1 + u64::from(is_barred));
    let is_deep = |error: &Value| error["error"].as_str().unwrap().contains("too deep");
    let deep = errors.iter().find(|error| is_deep(error)).unwrap();
    assert!(deep["file"].as_str().unwrap().contains("/d/d/d/"), "{deep}");
    assert_eq!(deep["kind"], "invalid");
    // What can be opened and not be read, whoever tries.
    #[cfg(target_os = "linux")]
    {
        let link = cli.work().join("link.jsonl");
        std::os::unix::fs::symlink("/proc/self/mem", &link).unwrap();
        let pi = agents::pi_file(&cli);
        let ran = run(&cli, &["import", "link.jsonl", pi.to_str().unwrap()]);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert!(
            ran.stdout.contains("pi         1    0        0          1"),
            "{}",
            ran.stdout
        );
        let error = "error: link.jsonl was not imported\n  caused by: ";
        assert!(ran.stderr.starts_with(error), "{}", ran.stderr);
    }
}

#[test]
fn other_files_in_a_directory_are_skipped_and_reported() {
    let cli = Cli::new();
    let dir = cli.work().join("deep/down");
    std::fs::create_dir_all(&dir).unwrap();
    agents::write(&dir.join("renamed.txt"), agents::pi_lines());
    agents::write(&dir.join("also.jsonl"), agents::claude_lines());
    agents::write(&dir.join("shopping list.txt"), "eggs\n");
    agents::write(&dir.join("picture.png"), b"\x89PNG\r\n\x1a\n");
    agents::write(&dir.join("empty.jsonl"), "");
    std::os::unix::fs::symlink("..", dir.join("loop")).unwrap();
    let ran = run(&cli, &["import", "deep", "nowhere.jsonl"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stdout.contains("Claude Code      1    1  "),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("pi               1    1  "),
        "{}",
        ran.stdout
    );
    for words in [
        "error: nowhere.jsonl was not imported\n  caused by: cannot read: No such file",
        "skipped 3 files that belong to no known agent: ",
        "picture.png",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let ran = run(&cli, &["import", "deep", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.json()["other_files"], 3);
    // A file that was given itself is an error.
    for args in [
        &["import", "--from", "pi", "deep/down/picture.png"][..],
        &["import", "deep/down/picture.png"],
    ] {
        let ran = run(&cli, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
        let error = "error: deep/down/picture.png was not imported\n  caused by: ";
        assert!(ran.stderr.starts_with(error), "{}", ran.stderr);
        assert!(ran.stderr.contains("not a session file"), "{}", ran.stderr);
    }
}

#[test]
fn imported_sessions_list_show_and_search_like_our_own() {
    let cli = Cli::new();
    agents::fill(&cli);
    run(&cli, &["import"]);
    let texts = |id: &str| {
        let shown = run(&cli, &["show", id, "--json"]).json();
        let messages = shown["messages"].as_array().unwrap().clone();
        let text = |message: &Value| message["blocks"][0]["text"].as_str().map(str::to_owned);
        messages.iter().filter_map(text).collect::<Vec<_>>()
    };
    assert_eq!(
        texts(CLAUDE),
        [
            "why is the refund wrong?",
            "I look at the cart.",
            "It is the rounding.",
            "then mend it",
            "Mended.",
        ]
    );
    assert_eq!(
        texts(CODEX_FORK),
        [
            "which shelf is empty?",
            "The third one.",
            "and the fourth?",
            "Half full."
        ]
    );
    assert_eq!(texts(GEMINI), ["weigh the parcel", "Two pounds."]);
    assert_eq!(texts(PI), ["paint the door", "Blue?"]);
    let shown = run(&cli, &["show", CLAUDE, "--json"]).json();
    assert_eq!(shown["title"], "Refunds");
    assert_eq!(shown["model"], "claude-x");
    assert_eq!(shown["workspace"], "/w/shop");
    assert_eq!(shown["created_at"], "2026-01-02T03:04:05.000Z");
    for (words, id) in [("weigh the parcel", GEMINI), ("paint the door", PI)] {
        assert_eq!(said(&cli, words), id);
    }
    let branch = said(&cli, "a road not taken");
    let of = |id: &str| run(&cli, &["show", id, "--json"]).json();
    assert_eq!(of(&branch)["forked_from"]["parent_session_id"], CLAUDE);
    let agent = of(&said(&cli, "count the zebras"));
    assert_eq!(agent["spawned_by"]["session_id"], CLAUDE, "{agent:#}");
    for id in [CLAUDE, CODEX, GEMINI, PI, &branch] {
        let ran = run(&cli, &["show", id]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        // Where it came from is no part of what was said.
        assert!(!ran.stdout.contains("of another kind"), "{}", ran.stdout);
    }
}

/// Returns calls and tokens: in, out, to the cache, from the cache.
fn totals(totals: &Value) -> [u64; 5] {
    [
        "calls",
        "input_tokens",
        "output_tokens",
        "cache_write_tokens",
        "cache_read_tokens",
    ]
    .map(|name| totals[name].as_u64().unwrap())
}

// F24
#[test]
fn f24_every_call_counts_once_and_what_a_fork_copied_does_not() {
    let cli = Cli::new();
    agents::fill(&cli);
    run(&cli, &["import"]);
    let by_agent = run(&cli, &["stats", "--by", "agent", "--json"]).json();
    let of = |agent: &str| {
        let parts = by_agent["by"].as_array().unwrap();
        let part = parts.iter().find(|part| part["key"] == agent);
        totals(part.unwrap_or_else(|| panic!("{agent}: {by_agent}")))
    };
    // Three responses of the session, the first on two lines of which the last counts, and
    // one of the sub-agent.
    assert_eq!(of("claude-code"), [4, 12, 9 + 20 + 30 + 40, 28, 44]);
    // One call, and one of the fork.
    assert_eq!(of("codex"), [2, 40 + 150, 15, 0, 60 + 50]);
    assert_eq!(of("gemini-cli"), [1, 40, 10, 0, 60]);
    assert_eq!(of("pi"), [1, 10, 5, 7, 100]);
    // A copy of the file under another name says nothing new of that.
    let copy =
        agents::claude_file(&cli).with_file_name("0b1c2d3e-0000-4000-8000-000000000002.jsonl");
    agents::write(&copy, agents::claude_lines());
    run(&cli, &["import"]);
    let again = run(&cli, &["stats", "--by", "agent", "--json"]).json();
    assert_eq!(totals(&again["totals"]), totals(&by_agent["totals"]));
}

#[test]
fn continuing_one_creates_a_fork_and_reports_it() {
    let cli = Cli::new();
    agents::fill(&cli);
    run(&cli, &["import"]);
    let before = run(&cli, &["show", CLAUDE, "--json"]).stdout;
    let all = |cli: &Cli| {
        run(cli, &["list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len()
    };
    let sessions = all(&cli);
    // Nothing to say: nothing is made.
    let refused = cli.run_with(&["record", "--session", CLAUDE], b"{\"bad\":1}\n");
    assert_eq!(
        (refused.code, refused.json()["ok"].clone()),
        (1, false.into())
    );
    assert_eq!(run(&cli, &["show", CLAUDE, "--json"]).stdout, before);
    let ran = run(
        &cli,
        &["record", "--session", CLAUDE, "--text", "I go on here"],
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    let fork = ran.json()["session"].as_str().unwrap().to_owned();
    assert_ne!(fork, CLAUDE);
    assert_eq!(all(&cli), sessions + 1);
    assert_eq!(
        normal(&ran.stderr, &cli, &[&fork]),
        "session xzkw belongs to Claude Code; continuing in a fork: <session>\n"
    );
    assert_eq!(run(&cli, &["show", CLAUDE, "--json"]).stdout, before);
    let shown = run(&cli, &["show", &fork, "--json"]).json();
    assert_eq!(shown["forked_from"]["parent_session_id"], CLAUDE);
    let last = shown["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["blocks"][0]["text"], "I go on here");
    // The fork is our own: it goes on as it is.
    let ran = run(&cli, &["record", "--session", &fork, "--text", "and on"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.json()["session"], fork.as_str());
    // And the other one is not in the way of what its agent writes next.
    let more = agents::claude_user("u4", Some("a4"), "meanwhile there");
    append(&agents::claude_file(&cli), &format!("{more}\n"));
    assert_eq!(counts(&import(&cli, "claude-code")), [2, 0, 1, 1]);
    assert_eq!(said(&cli, "meanwhile there"), CLAUDE);
}

#[test]
fn a_deleted_session_stays_deleted_and_is_reported() {
    let cli = Cli::new();
    agents::fill(&cli);
    run(&cli, &["import"]);
    let ran = run(&cli, &["delete", PI]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    append(&agents::pi_file(&cli), "{\"type\":\"hologram\"}\n");
    for _ in 0..2 {
        let ran = run(&cli, &["import", "--from", "pi"]);
        assert_eq!(
            screen(&ran, &cli, &[]),
            "\
exit 0
out: AGENT  FOUND  NEW  UPDATED  UNCHANGED  DAMAGED LINES  UNKNOWN RECORDS
out: pi         1    0        0          1              0                0
err: pi: 1 file of deleted sessions was not imported again
"
        );
    }
    assert_eq!(import(&cli, "pi")["deleted_here"], 1);
    assert_eq!(sessions(&cli, "pi").len(), 0);
    // Brought back, it goes on where it was.
    let ran = run(&cli, &["trash", "restore", PI]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(counts(&import(&cli, "pi")), [1, 0, 1, 0]);
    assert_eq!(import(&cli, "pi")["unknown_records"], 1);
}

#[test]
fn an_export_to_the_same_agent_is_the_file_byte_for_byte() {
    let cli = Cli::new();
    let files = agents::fill(&cli);
    // Whatever is in it: bytes that are no text, no end of the last line.
    let mut bytes = std::fs::read(&files[0]).unwrap();
    bytes.extend_from_slice(b"\xff\xfe\0\0\r\n\n{\"type\":\"hologram\"} \n{\"half");
    std::fs::write(&files[0], &bytes).unwrap();
    run(&cli, &["import"]);
    for (id, agent, file) in [
        (CLAUDE, "claude-code", &files[0]),
        (CODEX, "codex", &files[2]),
        (CODEX_FORK, "codex", &files[3]),
        (GEMINI, "gemini-cli", &files[4]),
        (PI, "pi", &files[5]),
    ] {
        let out = home(&cli).join(format!("{id}.out"));
        let ran = run(
            &cli,
            &["export", id, "--to", agent, "-o", out.to_str().unwrap()],
        );
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(
            std::fs::read(&out).unwrap() == std::fs::read(file).unwrap(),
            "{id}"
        );
    }
    // A sub-agent has a file of its own, a branch is in that of its session.
    let agent = said(&cli, "count the zebras");
    let ran = run(&cli, &["export", &agent, "--to", "claude-code"]);
    assert_eq!(
        (ran.stderr.as_str(), ran.stdout),
        ("", agents::claude_agent_lines())
    );
    let branch = said(&cli, "a road not taken");
    let out = home(&cli).join("branch.out");
    let ran = run(
        &cli,
        &[
            "export",
            &branch,
            "--to",
            "claude-code",
            "-o",
            out.to_str().unwrap(),
        ],
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(std::fs::read(&out).unwrap() == bytes);
    let note = "note: session <id> is part of this file, which belongs to session xzkw\n";
    assert!(
        normal(&ran.stderr, &cli, &[&branch]).starts_with(note),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_export_to_an_agent_that_a_session_is_not_of_says_what_to_do() {
    let cli = Cli::new();
    agents::fill(&cli);
    run(&cli, &["import"]);
    let ran = run(&cli, &["export", CLAUDE, "--to", "droid"]);
    assert_eq!(
        screen(&ran, &cli, &[]),
        "\
exit 2
err: error: session xzkw was not imported from Droid, and none can be written for it
err:
err: hint: it was imported from Claude Code: use --to claude-code
"
    );
    let own = cli.new_session("ours");
    let out = home(&cli).join("own.out");
    let ran = run(
        &cli,
        &["export", &own, "--to", "droid", "-o", out.to_str().unwrap()],
    );
    assert_eq!(
        screen(&ran, &cli, &[&own]),
        "\
exit 2
err: error: session <id> was not imported from Droid, and none can be written for it
err:
err: hint: export it as html, markdown or json
"
    );
    assert!(!out.exists());
}

#[test]
fn the_files_of_agents_are_only_read() {
    let cli = Cli::new();
    let mut files = agents::fill(&cli);
    let damaged = agents::claude_file(&cli).with_file_name("torn.jsonl");
    agents::write(&damaged, "\0\0\0\n{\"half");
    files.push(damaged);
    let seen = || {
        let see = |path: &std::path::PathBuf| {
            let metadata = std::fs::metadata(path).unwrap();
            let times = (
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime_nsec(),
            );
            (std::fs::read(path).unwrap(), times, metadata.ino())
        };
        files.iter().map(see).collect::<Vec<_>>()
    };
    let names = || {
        tree(&home(&cli).join(".claude"))
            .into_iter()
            .map(|(path, _)| path)
    };
    let (before, before_names) = (seen(), names().collect::<Vec<_>>());
    for args in [
        &["import"][..],
        &["import"],
        &["import", "--dry-run"],
        &["delete", PI],
        &["import"],
    ] {
        assert_eq!(run(&cli, args).code, 0, "{args:?}");
    }
    assert!(seen() == before);
    assert_eq!(names().collect::<Vec<_>>(), before_names);
}

#[test]
fn a_file_that_ends_in_an_incomplete_line_is_reported() {
    let cli = Cli::new();
    let half = r#"{"version":1,"messages":[{"role":"user","bl"#;
    std::fs::write(cli.work().join("half.json"), half).unwrap();
    let ran = run(&cli, &["import", "half.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let words = "claw-code: 1 file ends in an incomplete line";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

#[test]
fn garbage_in_an_agents_place_is_skipped_and_named() {
    let cli = Cli::new();
    agents::write(&agents::claude_file(&cli), agents::claude_lines());
    let notes = agents::claude_file(&cli).with_file_name("notes.jsonl");
    agents::write(&notes, "eggs\nmilk\n");
    let ran = run(&cli, &["import"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let words = format!(
        "Claude Code: skipped 1 file: {} (not a session file of Claude Code: line 1: ",
        notes.display()
    );
    assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    let skipped = &import(&cli, "claude-code")["skipped"];
    assert_eq!(skipped[0]["file"], json!(notes));
    assert_eq!(sessions(&cli, "claude-code").len(), 2);
}

#[test]
fn garbage_with_the_name_of_a_database_is_called_damaged() {
    let cli = Cli::new();
    for (name, title) in [
        ("opencode.db", "opencode"),
        ("sessions.db", "goose"),
        ("crush.db", "Crush"),
    ] {
        std::fs::write(cli.work().join(name), "eggs, milk").unwrap();
        let ran = run(&cli, &["import", name]);
        assert_eq!(
            screen(&ran, &cli, &[]),
            format!(
                "exit 1\n\
                 err: error: {name} was not imported\n\
                 err:   caused by: not an SQLite database, though {title} names its database like this; it may be damaged: restore it from a backup\n"
            )
        );
    }
}

//! `resume --agent`: a session continues in another agent. What the real agents make of it is
//! tested in `agents/`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::kit::{Ran, short};
use crate::resume::{AGENTS, Home, write};

/// The agents that find a file.
const TARGETS: [&str; 7] = [
    "claude-code",
    "codex",
    "gemini-cli",
    "copilot-cli",
    "pi",
    "qwen-code",
    "cline",
];

fn totals(home: &Home) -> Value {
    let stats = home.run(&["stats", "--all", "--json"]);
    assert_eq!(stats.code, 0, "{stats:#?}");
    stats.json()["totals"].clone()
}

fn texts(ran: &Ran) -> String {
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()["messages"].to_string()
}

// F24
#[test]
fn a_session_of_any_agent_is_written_for_any_other() {
    for (from, agent) in AGENTS.into_iter().enumerate() {
        let home = Home::new();
        let sample = home.sample(agent);
        home.import();
        let before = totals(&home);
        // Not all pairs here, but each agent as both; `backtrail-formats` tries all of them.
        for target in TARGETS.into_iter().skip(from % 2).step_by(2) {
            let files = home.files();
            let ran = home.run(&["resume", sample.id, "--agent", target, "--print", "--json"]);
            if target == agent {
                continue;
            }
            assert_eq!(ran.code, 0, "{agent} to {target}: {ran:#?}");
            let made = ran.json();
            assert_eq!(made["agent"], target);
            let id = made["new_id"].as_str().unwrap();
            assert!(made["command"].to_string().contains(id), "{made:#}");
            assert_eq!(made["directory"], json!(home.project()));
            let file = PathBuf::from(made["file"].as_str().unwrap());
            let written = home.files();
            assert!(written.contains_key(&file), "{made:#}");
            // Some agents find it by a file beside it.
            let beside = match target {
                "copilot-cli" => Some("workspace.yaml".to_owned()),
                "cline" => Some(format!("{id}.json")),
                _ => None,
            };
            if let Some(name) = beside {
                let content = written.get(&file.with_file_name(name)).expect(target);
                assert!(String::from_utf8_lossy(content).contains(id), "{made:#}");
            }
            for (path, bytes) in &files {
                assert_eq!(written.get(path), Some(bytes), "{path:?} is as it was");
            }
            // It is in the store at once, and an import adds nothing.
            let session = made["session"].as_str().unwrap();
            let shown = home.run(&["show", session, "--json"]);
            assert!(texts(&shown).contains("It has 2 MB."), "{shown:#?}");
            let row = shown.json();
            assert_eq!(row["forked_from"]["parent_session_id"], sample.id);
            assert_eq!(row["belongs_to"], target);
            let again = home.run(&["import", "--json"]).json();
            assert_eq!(again["agents"][target]["messages"], 0, "{again:#}");
            assert_eq!(
                texts(&home.run(&["show", session, "--json"])),
                texts(&shown)
            );
        }
        assert_eq!(totals(&home), before, "{agent}: nothing counts twice");
    }
}

#[test]
fn a_session_that_was_recorded_continues_in_an_agent_up_to_a_record() {
    let home = Home::new();
    home.install("codex");
    let lines = "{\"role\":\"user\",\"text\":\"fix the cart\"}\n\
                 {\"role\":\"assistant\",\"text\":\"Done.\"}\n\
                 {\"role\":\"user\",\"text\":\"and the rest\"}\n";
    let mut record = home.cli.command(&["record"]);
    let ran = crate::kit::finish(&mut record, lines.as_bytes());
    let id = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let ran = home.run(&["resume", &format!("{id}:2"), "--agent", "codex"]);
    assert_eq!(ran.code, 7, "the agent's exit code: {ran:#?}");
    let said = format!("wrote session {} up to record 2 for Codex as ", short(&id));
    assert!(ran.stderr.contains(&said), "{ran:#?}");
    let called = home.called();
    assert_eq!(called[..2], [home.project(), "resume".to_owned()]);
    let new = texts(&home.run(&["show", &called[2], "--json"]));
    assert!(
        new.contains("fix the cart") && !new.contains("and the rest"),
        "{new}"
    );
    // Without a name it is the session's own agent, of which this one has none.
    let ran = home.run(&["resume", &id, "--print"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("is not an agent's own"), "{ran:#?}");
    assert!(ran.stderr.contains(" --agent NAME"), "{ran:#?}");
    let ran = home.run(&["resume", &id, "--agent", "codec", "--print"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("codex"), "{ran:#?}");
}

#[test]
fn what_has_no_place_is_listed() {
    let home = Home::new();
    let sample = home.sample("claude-code");
    home.import();
    let ran = home.run(&["resume", sample.id, "--agent", "pi", "--print"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let made = home.run(&["resume", sample.id, "--agent", "pi", "--print", "--json"]);
    let losses = made.json()["losses"].clone();
    assert!(!losses.as_array().unwrap().is_empty(), "{losses:#}");
    for loss in losses.as_array().unwrap() {
        let text = loss["text"].as_str().unwrap();
        assert!(ran.stderr.contains(&format!("note: {text}\n")), "{ran:#?}");
        assert!(loss["count"].as_u64().unwrap() > 0, "{loss:#}");
    }
    // An export reports the same, in the same shape.
    let exported = home.run(&["export", sample.id, "--to", "pi", "--json"]);
    assert_eq!(exported.code, 0, "{exported:#?}");
    let reported: Value = serde_json::from_str(&exported.stderr).unwrap();
    assert_eq!(reported, json!({"losses": losses}));
    for line in exported.stdout.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

/// Records lines as a session without an agent.
pub(crate) fn recorded(home: &Home, lines: &[Value]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = crate::kit::finish(&mut home.cli.command(&["record"]), lines.as_bytes());
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json_lines()[0]["session"].as_str().unwrap().to_owned()
}

/// Hands a session over, and returns what is printed about it.
fn handed_over(home: &Home, id: &str, agent: &str) -> Value {
    let ran = home.run(&["resume", id, "--agent", agent, "--print", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()
}

/// Adds a turn to a file of pi, as the agent does.
fn add_turn(made: &Value, text: &str) {
    let file = PathBuf::from(made["file"].as_str().unwrap());
    let mut lines = std::fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    let id = format!("{text:0>8}");
    let usage = json!({"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
        "cost": {"total": 0.01}});
    for line in [
        json!({"type": "message", "id": id, "parentId": last["id"], "timestamp": "2026-11-18T10:00:00.000Z",
            "message": {"role": "user", "content": [{"type": "text", "text": text}]}}),
        json!({"type": "message", "id": format!("{id}a"), "parentId": id, "timestamp": "2026-11-18T10:00:01.000Z",
            "message": {"role": "assistant", "content": [{"type": "text", "text": format!("done {text}")}],
                "api": "x", "provider": "x", "model": "m", "usage": usage, "stopReason": "stop",
                "responseId": format!("resp-{text}"), "timestamp": 1_794_996_001_000_u64}}),
    ] {
        lines += &format!("{line}\n");
    }
    std::fs::write(&file, lines).unwrap();
}

#[test]
fn a_session_that_ends_in_a_summary_keeps_it_from_agent_to_agent() {
    let home = Home::new();
    let id = recorded(
        &home,
        &[
            json!({"role": "user", "text": "P1"}),
            json!({"role": "assistant", "text": "A1"}),
            json!({"type": "compaction", "summary": "THE-SUMMARY", "keep": 0}),
        ],
    );
    let made = handed_over(&home, &id, "pi");
    let session = made["session"].as_str().unwrap();
    let shown = home.run(&["show", session, "--json"]).json();
    assert_eq!(shown["forked_from"]["seq"], 3, "{shown:#}");
    add_turn(&made, "P2");
    home.import();
    let on = handed_over(&home, session, "codex");
    let file = std::fs::read_to_string(on["file"].as_str().unwrap()).unwrap();
    assert!(
        file.contains("THE-SUMMARY") && file.contains("done P2"),
        "{file}"
    );
    assert!(!file.contains("A1"), "{file}");
}

// F24
#[test]
fn a_handed_over_session_that_went_on_counts_once_wherever_it_goes() {
    let home = Home::new();
    let sample = home.sample("claude-code");
    home.import();
    let made = handed_over(&home, sample.id, "pi");
    add_turn(&made, "more");
    home.import();
    let before = totals(&home);
    let session = made["session"].as_str().unwrap();
    // In the same agent, and back, and in a copy that the agent makes itself.
    handed_over(&home, session, "pi");
    handed_over(&home, session, "claude-code");
    let file = PathBuf::from(made["file"].as_str().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(header).unwrap();
    let copy = "01a1f000-0000-7000-8000-00000000000a";
    header["id"] = json!(copy);
    header["parentSession"] = json!(file);
    let name = file.with_file_name(format!("2026-11-18T11-00-00-000Z_{copy}.jsonl"));
    write(&name, format!("{header}\n{rest}").as_bytes());
    home.import();
    let shown = home.run(&["show", copy, "--json"]);
    assert!(texts(&shown).contains("done more"), "{shown:#?}");
    assert_eq!(totals(&home), before);
    let titles = home.run(&["list", "--all", "--json", "--forks"]).json();
    assert!(!titles.to_string().contains(") (from "), "{titles:#}");
}

#[test]
fn what_a_person_wrote_is_handed_over_however_it_begins() {
    let home = Home::new();
    let id = recorded(
        &home,
        &[
            json!({"role": "user", "text": "# AGENTS.md instructions are wrong, fix them"}),
            json!({"role": "assistant", "text": "API Error is what I explain."}),
        ],
    );
    let made = handed_over(&home, &id, "codex");
    let file = std::fs::read_to_string(made["file"].as_str().unwrap()).unwrap();
    assert!(
        file.contains("instructions are wrong") && file.contains("what I explain"),
        "{file}"
    );
    assert_eq!(made["losses"], json!([]), "{made:#}");
}

#[test]
fn in_another_directory_paths_follow_and_contents_do_not() {
    let home = Home::new();
    let work = home.project();
    let (a, text) = (format!("{work}/a.sh"), format!("cd {work} && ls"));
    let call = json!({"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": a, "content": text}});
    let id = recorded(
        &home,
        &[
            json!({"role": "user", "text": "write it"}),
            json!({"type": "checkpoint", "label": "c1"}),
            json!({"type": "message", "message": {"role": "assistant", "blocks": [call]}}),
        ],
    );
    // Also if the directory is gone by now.
    let moved = home.dir().join("gone");
    std::fs::create_dir_all(home.dir()).unwrap();
    std::fs::rename(home.cli.work(), &moved).unwrap();
    let into = home.dir().join("try");
    let words = [
        "resume",
        &id,
        "--agent",
        "claude",
        "--into",
        into.to_str().unwrap(),
    ];
    let mut command = home
        .cli
        .command(&[&words[..], &["--print", "--json"]].concat());
    command.env("HOME", home.dir()).current_dir(&moved);
    let ran = crate::kit::finish(&mut command, b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let made = ran.json();
    let file = std::fs::read_to_string(made["file"].as_str().unwrap()).unwrap();
    let into = into.canonicalize().unwrap();
    assert!(file.contains(&format!("{}/a.sh", into.display())), "{file}");
    assert!(file.contains(&text), "{file}");
}

/// The files of a session: three states of `a`, each with a prompt.
pub(crate) fn session_with_files(home: &Home) -> (String, Vec<u64>) {
    let mut session: Option<String> = None;
    let mut seqs = Vec::new();
    for n in 1..=3 {
        let text = format!("make it {n}");
        let mut words = vec!["record", "--text", &text];
        words.extend(session.iter().flat_map(|id| ["--session", id]));
        let ran = home.run(&words).json_lines()[0].clone();
        session = Some(ran["session"].as_str().unwrap().to_owned());
        let id = session.as_deref().unwrap();
        let script = format!("echo {n} > a");
        let ran = home.run(&["run", "--session", id, "--", "sh", "-c", &script]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let shown = home.run(&["show", id, "--json"]).json();
        seqs.push(shown["last_seq"].as_u64().unwrap());
    }
    (session.unwrap(), seqs)
}

#[test]
fn the_files_go_back_with_the_conversation_if_that_is_wanted() {
    let home = Home::new();
    let (id, seqs) = session_with_files(&home);
    let read = || std::fs::read_to_string(home.cli.work().join("a")).unwrap();
    let place = format!("{id}:{}", seqs[0]);
    let resume = |more: &[&str]| {
        let words = ["resume", &place, "--agent", "codex", "--print"];
        home.run(&[&words[..], more].concat())
    };
    assert_eq!(resume(&[]).code, 0);
    assert_eq!(read(), "3\n", "the files stay");
    // What you changed since is not overwritten, and no session is made.
    std::fs::write(home.cli.work().join("a"), "mine\n").unwrap();
    let files = home.files();
    let ran = resume(&["--with-files"]);
    assert_eq!((ran.code, read().as_str()), (2, "mine\n"), "{ran:#?}");
    assert!(
        ran.stderr
            .contains("1 file changed since then; nothing was touched"),
        "{ran:#?}"
    );
    let way = format!("backtrail rewind {}:{} --files", short(&id), seqs[0]);
    assert!(ran.stderr.contains(&way), "{ran:#?}");
    assert_eq!(home.files(), files);
    std::fs::write(home.cli.work().join("a"), "3\n").unwrap();
    let ran = resume(&["--with-files"]);
    assert_eq!((ran.code, read().as_str()), (0, "1\n"), "{ran:#?}");
    let undone = home.run(&["undo"]);
    assert_eq!((undone.code, read().as_str()), (0, "3\n"), "{undone:#?}");
}

#[test]
fn a_directory_of_its_own_has_the_files_as_they_were() {
    let home = Home::new();
    let (id, seqs) = session_with_files(&home);
    let place = format!("{id}:{}", seqs[1]);
    let into = home.dir().join("try");
    let dir = into.to_str().unwrap();
    let words = [
        "resume", &place, "--agent", "claude", "--into", dir, "--print", "--json",
    ];
    let ran = home.run(&words);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let made = ran.json();
    assert_eq!(made["directory"], json!(into.canonicalize().unwrap()));
    assert_eq!(std::fs::read_to_string(into.join("a")).unwrap(), "2\n");
    let here = std::fs::read_to_string(home.cli.work().join("a")).unwrap();
    assert_eq!(here, "3\n");
    let session = made["session"].as_str().unwrap();
    let shown = home.run(&["show", session, "--json"]).json();
    assert_eq!(shown["workspace"], made["directory"]);
    // It continues the fork that is in the directory, not the original.
    let parent = shown["forked_from"]["parent_session_id"].as_str().unwrap();
    let parent = home.run(&["show", parent, "--json"]).json();
    assert_eq!(parent["forked_from"]["parent_session_id"], json!(id));
    assert_eq!(parent["workspace"], made["directory"]);
    // A directory that has something in it is not used.
    let ran = home.run(&words);
    assert_eq!(ran.code, 2, "{ran:#?}");
}

#[test]
fn an_agent_that_is_missing_or_refuses_leaves_nothing() {
    let home = Home::new();
    let sample = home.sample("codex");
    home.import();
    let sessions = |home: &Home| home.run(&["list", "--all", "--json"]).json();
    let before = sessions(&home);
    // opencode imports the session itself.
    let ran = home.run(&["resume", sample.id, "--agent", "opencode", "--print"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("opencode is not in PATH"), "{ran:#?}");
    let ran = home.run(&["resume", sample.id, "--agent", "pi"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("--agent pi --print"), "{ran:#?}");
    home.install("goose");
    let ran = home.run(&["resume", sample.id, "--agent", "goose", "--print"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains("goose could not import the session"),
        "{ran:#?}"
    );
    // Where the agent's directory should be is something else.
    write(&home.dir().join(".claude"), b"not a directory");
    let ran = home.run(&["resume", sample.id, "--agent", "claude", "--print"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot write the session"), "{ran:#?}");
    assert_eq!(sessions(&home), before);
}

/// Returns the command of a hint, as words.
fn hinted(ran: &Ran, before: &str) -> Vec<String> {
    let mut lines = ran.stderr.lines();
    let hint = lines.find_map(|line| line.strip_prefix(&format!("hint: {before}: ")));
    let hint = hint.unwrap_or_else(|| panic!("{before}: {ran:#?}"));
    hint.split(' ').map(str::to_owned).collect()
}

/// Returns the files in a directory, and below it, that contain a text.
fn files_with(dir: &std::path::Path, text: &str) -> BTreeSet<PathBuf> {
    let found = std::process::Command::new("grep")
        .args(["-rl", text])
        .arg(dir)
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    found.lines().map(PathBuf::from).collect()
}

#[test]
fn a_purge_names_what_other_agents_keep_and_the_commands_that_remove_it() {
    let home = Home::new();
    let sample = home.sample("claude-code");
    home.import();
    let text = "It has 2 MB.";
    let made = handed_over(&home, sample.id, "pi");
    add_turn(&made, "more");
    home.import();
    let first = made["session"].as_str().unwrap();
    let second = handed_over(&home, first, "codex");
    let second = second["session"].as_str().unwrap();
    let purge = ["delete", sample.id, "--purge", "--dry-run"];
    let ran = home.run(&purge);
    for (id, agent) in [(first, "pi"), (second, "Codex")] {
        let named = format!("{} ({agent})", short(id));
        assert!(ran.stderr.contains(&named), "{ran:#?}");
    }
    let there = files_with(&home.dir(), text);
    assert_eq!(there.len(), 3, "{there:?}");
    let planned = home.run(&[&purge[..], &["--json"]].concat()).json();
    let named = planned["agents_files"].as_array().unwrap().iter();
    let named = named.map(|path| PathBuf::from(path.as_str().unwrap()));
    assert_eq!(named.collect::<BTreeSet<_>>(), there);
    let agents = planned["copies"].as_array().unwrap().iter();
    let agents: BTreeSet<_> = agents.map(|it| it["agent"].as_str().unwrap()).collect();
    assert_eq!(agents, BTreeSet::from(["codex", "pi"]));

    let remove = hinted(&ran, "to remove the text there");
    assert_eq!(remove[0], "rm");
    let removed: BTreeSet<_> = remove[1..].iter().map(PathBuf::from).collect();
    assert_eq!(removed, there);
    let purge = hinted(&ran, "to purge them too");
    let purge: Vec<&str> = purge[1..].iter().map(String::as_str).collect();
    let ran = home.run(&[&purge[..], &["--yes"]].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    for id in [sample.id, first, second] {
        assert_ne!(home.run(&["show", id]).code, 0, "{id} is purged");
    }
    home.run(&["rebuild"]);
    assert_eq!(files_with(&home.cli.store(), text), BTreeSet::new());
    // The files stay until the user removes them, and are not imported again.
    assert_eq!(files_with(&home.dir(), text), there);
    home.import();
    assert_eq!(files_with(&home.cli.store(), text), BTreeSet::new());
}

//! `import`: times come from an agent's lines or ids; a file's own time is the last resort,
//! and marked.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::agents::{self, CLAUDE, CODEX, GEMINI, home, lines, run, write};
use crate::kit::Cli;

/// When the files were last modified.
const MODIFIED: (u64, &str) = (1_700_000_000, "2023-11-14T22:13:20.000Z");
/// An id that contains a time: 0x01a1de066f60 milliseconds.
const TIMED: &str = "01a1de06-6f60-7000-8000-0000000000e1";
const IN_ID: &str = "2026-11-15T07:05:26.112Z";
/// An id that contains none.
const RANDOM: &str = "01a1de06-6f60-4000-8000-0000000000e1";

/// Removes every time from a value.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !["timestamp", "startTime", "lastUpdated"].contains(&name.as_str())
            });
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

fn timeless(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        without_times(&mut value);
        value.to_string() + "\n"
    });
    lines.collect()
}

/// A session of claw-code, with neither times nor, unless it is given, an id.
fn claw_lines(id: Option<&str>) -> String {
    let mut meta = json!({"type": "session_meta", "version": 1});
    if let Some(id) = id {
        meta["session_id"] = id.into();
    }
    let said = |role: &str, text: &str| {
        json!({"type": "message", "message": {"role": role,
            "blocks": [{"type": "text", "text": text}]}})
    };
    lines(&[
        meta,
        said("user", "fold the map"),
        said("assistant", "Folded."),
    ])
}

/// Writes a file that was last modified long ago, and imports it.
fn import_file(cli: &Cli, path: &Path, text: &str) {
    write(path, text);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(MODIFIED.0);
    file.set_modified(time).unwrap();
    let ran = run(cli, &["import", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}

/// Returns the sessions as `list` has them.
fn sessions(cli: &Cli) -> Vec<Value> {
    let listed = run(cli, &["list", "--all", "--json"]).json();
    listed.as_array().unwrap().clone()
}

/// Returns the id of the only session.
fn only(cli: &Cli) -> String {
    let sessions = sessions(cli);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions[0]["id"].as_str().unwrap().to_owned()
}

/// Returns the times of a session's messages.
fn times(cli: &Cli, id: &str) -> Vec<String> {
    let shown = run(cli, &["show", id, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap();
    let times = messages.iter().map(|message| message["at"].as_str());
    times.map(|at| at.unwrap().to_owned()).collect()
}

/// The files of all agents, with another id and without times. Those of pi always have one:
/// they are recognised by it.
fn files(cli: &Cli, id: &str) -> Vec<(&'static str, PathBuf, String)> {
    let dir = home(cli).join("files");
    let file = |name: String| dir.join(name);
    let of = |text: String, old: &str| timeless(&text.replace(old, id));
    let claw = format!("session-{id}");
    let codex = file(format!("rollout-2026-01-02T03-04-05-{id}.jsonl"));
    vec![
        (
            "claude-code",
            file(format!("claude/{id}.jsonl")),
            of(agents::claude_lines(), CLAUDE),
        ),
        ("codex", codex, of(agents::codex_lines(), CODEX)),
        (
            "gemini-cli",
            file("session-a.jsonl".to_owned()),
            of(agents::gemini_lines(), GEMINI),
        ),
        (
            "claw-code",
            file("claw.jsonl".to_owned()),
            claw_lines(Some(&claw)),
        ),
    ]
}

#[test]
fn a_session_without_times_has_that_of_its_id() {
    for n in 0..4 {
        let cli = Cli::new();
        let (agent, path, text) = files(&cli, TIMED).remove(n);
        import_file(&cli, &path, &text);
        let sessions = sessions(&cli);
        assert!(!sessions.is_empty(), "{agent}");
        for session in &sessions {
            assert_eq!(session["agent"], agent);
            assert_eq!(session["times_from_file"], false, "{session:#}");
            assert_eq!(session["created_at"], IN_ID, "{session:#}");
            assert_eq!(session["updated_at"], IN_ID, "{session:#}");
            let id = session["id"].as_str().unwrap();
            let times = times(&cli, id);
            assert!(
                !times.is_empty() && times.iter().all(|at| at == IN_ID),
                "{agent} {times:?}"
            );
        }
        let list = run(&cli, &["list", "--all"]);
        assert!(
            !list.stdout.contains("~20") && !list.stderr.contains('~'),
            "{list:#?}"
        );
    }
}

#[test]
fn a_session_without_any_time_has_that_of_its_file_and_is_marked() {
    for n in 0..4 {
        let cli = Cli::new();
        let (agent, path, text) = files(&cli, RANDOM).remove(n);
        import_file(&cli, &path, &text);
        for session in sessions(&cli) {
            assert_eq!(session["times_from_file"], true, "{session:#}");
            assert_eq!(session["created_at"], MODIFIED.1, "{session:#}");
            let id = session["id"].as_str().unwrap();
            let shown = run(&cli, &["show", id, "--json"]).json();
            assert_eq!(shown["times_from_file"], true);
            assert!(times(&cli, id).iter().all(|at| at == MODIFIED.1), "{agent}");
            let shown = run(&cli, &["show", id]).stdout;
            let words = "~2023-11-14 22:13 · the time of the imported file";
            assert!(shown.lines().nth(2).unwrap().starts_with(words), "{shown}");
        }
        let list = run(&cli, &["list", "--all"]);
        let marked = list
            .stdout
            .lines()
            .skip(1)
            .all(|line| line.contains("~2023-11-14"));
        assert!(marked, "{list:#?}");
        let note = "~ before a time: the time of the imported file";
        assert_eq!(list.stderr.matches(note).count(), 1, "{list:#?}");
    }
}

#[test]
fn times_in_lines_come_first_and_nothing_is_marked() {
    let cli = Cli::new();
    agents::fill(&cli);
    run(&cli, &["import"]);
    for session in sessions(&cli) {
        assert_eq!(session["times_from_file"], false, "{session:#}");
        let at = session["created_at"].as_str().unwrap();
        assert!(at.starts_with("2026-01-02T03:"), "{session:#}");
    }
}

/// A8: ids of claw-code hold milliseconds, in the file or in its name.
#[test]
fn a8_the_milliseconds_of_claw_code_count_wherever_they_are() {
    let by_meta = claw_lines(Some("session-1794726326112-1"));
    let by_name = claw_lines(None);
    let object = json!({"version": 1, "messages": [
        {"role": "user", "blocks": [{"type": "text", "text": "hello"}]}]});
    let created = r#""type":"session_meta","created_at_ms":1794726326112"#;
    let created = claw_lines(Some("s-2")).replace(r#""type":"session_meta""#, created);
    for (name, text) in [
        ("a.jsonl", by_meta),
        ("session-1794726326112-0.jsonl", by_name),
        ("session-1794726326112.json", object.to_string()),
        ("b.jsonl", created),
    ] {
        let cli = Cli::new();
        import_file(&cli, &home(&cli).join(name), &text);
        let sessions = sessions(&cli);
        assert_eq!(sessions.len(), 1, "{name}");
        assert_eq!(sessions[0]["created_at"], IN_ID, "{name}");
        assert_eq!(sessions[0]["times_from_file"], false, "{name}");
        let id = sessions[0]["id"].as_str().unwrap();
        assert!(times(&cli, id).iter().all(|at| at == IN_ID), "{name}");
    }
}

/// A8: `prompt_history` has the times that messages do not have.
#[test]
fn a8_prompts_have_the_times_of_their_history_whether_the_file_grew_or_not() {
    let said = |role: &str, text: &str| {
        json!({"type": "message", "message": {"role": role,
            "blocks": [{"type": "text", "text": text}]}})
    };
    let prompt =
        |ms: u64, text: &str| json!({"type": "prompt_history", "timestamp_ms": ms, "text": text});
    let meta = json!({"type": "session_meta", "version": 1, "session_id": "sess-1",
        "created_at_ms": 1_794_726_326_112_u64});
    let first = [
        meta,
        said("user", "before any history"),
        prompt(1_794_729_600_000, "go"),
        said("user", "go"),
        said("assistant", "Gone."),
    ];
    let more = [
        prompt(1_794_729_601_000, "go"),
        said("user", "go"),
        said("assistant", "Again."),
        said("user", "not in the history"),
    ];
    let expected = [
        IN_ID,
        "2026-11-15T08:00:00.000Z",
        "2026-11-15T08:00:00.000Z",
        "2026-11-15T08:00:01.000Z",
        "2026-11-15T08:00:01.000Z",
        "2026-11-15T08:00:01.000Z",
    ];
    let (first, more) = (lines(&first), lines(&more));
    let whole = Cli::new();
    import_file(
        &whole,
        &home(&whole).join("a.jsonl"),
        &(first.clone() + &more),
    );
    assert_eq!(times(&whole, &only(&whole)), expected);
    let grown = Cli::new();
    let path = home(&grown).join("a.jsonl");
    import_file(&grown, &path, &first);
    assert_eq!(times(&grown, &only(&grown)), expected[..3]);
    import_file(&grown, &path, &(first + &more));
    assert_eq!(times(&grown, &only(&grown)), expected);
}

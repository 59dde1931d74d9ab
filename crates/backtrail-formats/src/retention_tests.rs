//! Whatever an agent's settings are, what they come to is said.

use std::path::Path;
use std::time::Duration;

use super::*;

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn days(n: u64) -> Limit {
    Limit::Deleted {
        days: Some(n),
        count: None,
    }
}

#[test]
fn an_agent_without_sessions_is_not_listed() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        ".claude/settings.json",
        r#"{"cleanupPeriodDays":3}"#,
    );
    assert_eq!(retention(&Environment::new(home.path())), []);
    assert_eq!(retention(&Environment::default()), []);
}

#[test]
fn claude_code_deletes_after_a_month_by_default() {
    let home = tempfile::tempdir().unwrap();
    let found = || {
        let mut all = retention(&Environment::new(home.path()));
        assert_eq!(all.len(), 1);
        all.remove(0)
    };
    write(home.path(), ".claude/projects/-a/1.jsonl", "{}");
    write(home.path(), ".claude/projects/-a/agent-2.jsonl", "{}");
    write(
        home.path(),
        ".claude/projects/-a/1/tool-results/3.txt",
        "{}",
    );
    let first = found();
    assert_eq!(
        (first.limit, first.default, first.sessions),
        (days(30), true, 1)
    );
    assert!(first.setting.ends_with(".claude/settings.json"));

    write(
        home.path(),
        ".claude/settings.json",
        "{ // mine\n\"x\":\"//\",\"cleanupPeriodDays\":365}",
    );
    let set = found();
    assert_eq!((set.limit, set.default), (days(365), false));

    write(
        home.path(),
        ".claude/settings.local.json",
        r#"{"cleanupPeriodDays":7}"#,
    );
    let local = found();
    assert_eq!(local.limit, days(7));
    assert!(local.setting.ends_with("settings.local.json"));

    write(
        home.path(),
        ".claude/settings.local.json",
        r#"{"cleanupPeriodDays":0}"#,
    );
    assert_eq!(found().limit, Limit::Never);
    for broken in [r#"{"cleanupPeriodDays":"soon"}"#, "{", "[]", "\u{feff}no"] {
        write(home.path(), ".claude/settings.local.json", broken);
        assert!(matches!(found().limit, Limit::Unknown(_)), "{broken}");
    }
}

#[test]
fn the_directory_that_the_environment_names_counts() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "c/projects/-a/1.jsonl", "{}");
    write(home.path(), "c/settings.json", r#"{"cleanupPeriodDays":9}"#);
    let environment =
        Environment::new(home.path()).with("CLAUDE_CONFIG_DIR", home.path().join("c"));
    assert_eq!(retention(&environment)[0].limit, days(9));
}

#[test]
fn gemini_cli_deletes_what_its_settings_say() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), ".gemini/tmp/abc/chats/session-1.json", "{}");
    write(home.path(), ".gemini/tmp/abc/logs.json", "{}");
    let limit = |settings: &str| {
        write(home.path(), ".gemini/settings.json", settings);
        let all = retention(&Environment::new(home.path()));
        assert_eq!((all.len(), all[0].sessions), (1, 1));
        (all[0].limit.clone(), all[0].default)
    };
    let set = |inner: &str| limit(&format!(r#"{{"general":{{"sessionRetention":{inner}}}}}"#));
    assert_eq!(limit("{}"), (days(30), true));
    assert_eq!(set(r#"{"enabled":false}"#), (Limit::Kept, false));
    assert_eq!(set(r#"{"enabled":true,"maxAge":"2w"}"#), (days(14), false));
    let both = Limit::Deleted {
        days: Some(60),
        count: Some(50),
    };
    assert_eq!(
        set(r#"{"enabled":true,"maxAge":"2m","maxCount":50}"#).0,
        both
    );
    assert!(matches!(
        set(r#"{"enabled":true,"maxAge":"é"}"#).0,
        Limit::Unknown(_)
    ));
}

#[test]
fn gemini_cli_deletes_a_session_that_was_resumed_unless_it_deletes_none() {
    let home = tempfile::tempdir().unwrap();
    let chats = ".gemini/tmp/abc/chats";
    let header = r#"{"sessionId":"12ab","projectHash":"x"}"#;
    let context = r#"{"id":"a","type":"user","content":"<session_context>here</session_context>"}"#;
    let prompt = r#"{"id":"b","type":"user","content":"go"}"#;
    let full = format!("{chats}/session-2026-01-01T10-00-12ab.jsonl");
    let text = format!("{header}\n{context}\n{prompt}\n");
    write(home.path(), &full, &text);
    let other = format!("{chats}/session-2026-01-01T10-02-34cd.jsonl");
    write(home.path(), &other, &text);
    let next = || {
        retention(&Environment::new(home.path()))[0]
            .deleted_next
            .clone()
    };
    assert!(next().is_empty());
    let stub = format!("{chats}/session-2026-01-01T10-01-12ab.jsonl");
    write(home.path(), &stub, &format!("{header}\n{context}\n"));
    assert_eq!(next(), [home.path().join(full)]);
    let kept = r#"{"general":{"sessionRetention":{"enabled":false}}}"#;
    write(home.path(), ".gemini/settings.json", kept);
    assert!(next().is_empty());
}

#[test]
fn the_oldest_session_is_found() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), ".claude/projects/-a/1.jsonl", "{}");
    write(home.path(), ".claude/projects/-b/2.jsonl", "{}");
    let now = SystemTime::now();
    let before = now - Duration::from_secs(29 * DAY + 60);
    let path = home.path().join(".claude/projects/-b/2.jsonl");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(before).unwrap();
    let found = retention(&Environment::new(home.path())).remove(0);
    assert_eq!((found.sessions, found.oldest_days(now)), (2, Some(29)));
}

use super::*;
use crate::collector::EventCollector;
use crate::event::{Event, Origin};
use crate::testing::{check, read};

const PATH: &str = "/s/-home-me/0190.jsonl";

const START: &str = r#"{"type":"session_start","id":"0190","title":"look","sessionTitle":"Looking","cwd":"/home/me","version":2}"#;

fn message(id: &str, role: &str, content: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","timestamp":"2026-01-02T03:04:05Z","message":{{"role":"{role}","content":{content}}}}}"#
    )
}

fn text(text: &str) -> String {
    format!(r#"[{{"type":"text","text":"{text}"}}]"#)
}

fn file(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn collected(text: &str) -> EventCollector {
    read(&Droid, PATH, text.as_bytes()).unwrap().1
}

#[test]
fn a_session_is_read_with_its_title_and_directory() {
    let failed = r#"[{"type":"tool_result","tool_use_id":"c1","content":"Error: Command failed (exit code: 1)\nno"}]"#;
    let all = file(&[
        START,
        &message(
            "m1",
            "user",
            &text("<system-reminder>brief</system-reminder>\\n\\nlook"),
        ),
        &message(
            "m2",
            "assistant",
            r#"[{"type":"tool_use","id":"c1","name":"Execute","input":{}}]"#,
        ),
        &message("m3", "user", failed),
        r#"{"type":"todo_state","todos":[]}"#,
        r#"{"type":"weather"}"#,
    ]);
    let (report, collected) = read(&Droid, PATH, all.as_bytes()).unwrap();
    assert_eq!(collected.session, "0190");
    assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["weather"]);
    let main = collected.main().unwrap();
    assert_eq!(main.details.title.as_deref(), Some("Looking"));
    assert_eq!(main.details.directory.as_deref(), Some("/home/me".as_ref()));
    let said: Vec<_> = collected.messages().map(|event| &event.message).collect();
    assert!(said[0].is_meta() && said[1].is_prompt());
    assert_eq!(said[1].text(), "look");
    assert!(matches!(&said[3].blocks[0], Block::ToolResult(result) if result.is_error));
    assert!(collected.messages().all(|event| event.at.is_some()));
    for cut in 0..=all.len() {
        check(&Droid, PATH, all.as_bytes(), cut);
    }
}

#[test]
fn a_summary_keeps_the_messages_after_its_anchor() {
    let all = file(&[
        START,
        &message("m1", "user", &text("one")),
        &message("m2", "assistant", &text("two")),
        &message("m3", "user", &text("three")),
        r#"{"type":"compaction_state","summaryText":"so far","anchorMessage":{"id":"m1","index":0}}"#,
        r#"{"type":"compaction_state","summaryText":"again","anchorMessage":{"id":"gone"}}"#,
    ]);
    let collected = collected(&all);
    let summaries = collected.main().unwrap().events.iter();
    let summaries: Vec<_> = summaries
        .filter_map(|event| match event {
            Event::Summary(summary) => Some((summary.summary.as_str(), summary.keep)),
            _ => None,
        })
        .collect();
    assert_eq!(summaries, [("so far", 2), ("again", 0)]);
}

#[test]
fn a_sub_agent_names_the_call_that_started_it() {
    let start =
        r#"{"type":"session_start","id":"0191","callingSessionId":"0190","callingToolUseId":"c1"}"#;
    let collected = collected(start);
    let origin = &collected.main().unwrap().thread.origin;
    let spawned = Origin::Spawned {
        session: Some("0190".to_owned()),
        tool_use_id: Some("c1".to_owned()),
    };
    assert_eq!(*origin, spawned);
}

#[test]
fn the_output_of_a_run_is_read_and_its_end_repeats_nothing() {
    let line = |rest: &str| format!(r#"{{"session_id":"0192","timestamp":1767323045000,{rest}}}"#);
    let all = file(&[
        &line(r#""type":"system","model":"acme-1","cwd":"/home/me""#),
        &line(r#""type":"message","role":"user","text":"look""#),
        &line(
            r#""type":"tool_call","id":"t1","toolCallId":"c1","toolName":"Execute","parameters":{"a":1}"#,
        ),
        &line(
            r#""type":"tool_result","id":"t2","toolCallId":"c1","value":{"stdout":"x","exitCode":3}"#,
        ),
        &line(
            r#""type":"tool_result","id":"t3","toolCallId":"c1","value":{"stdout":"x","stderr":"","exitCode":0}"#,
        ),
        &line(r#""type":"message","role":"assistant","text":"done""#),
        &line(
            r#""type":"completion","finalText":"done","durationMs":7,"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}"#,
        ),
        &line(r#""type":"error","message":"gone""#),
    ]);
    let (report, collected) = read(&Droid, PATH, all.as_bytes()).unwrap();
    assert_eq!((report.damage.count, report.unknown.len()), (0, 0));
    assert_eq!(collected.session, "0192");
    let said: Vec<_> = collected.messages().collect();
    assert_eq!(said.len(), 6);
    let result = |n: usize| match &said[n].message.blocks[0] {
        Block::ToolResult(result) => (result.is_error, result.output.as_str().to_owned()),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        result(2),
        (true, r#"{"stdout":"x","exitCode":3}"#.to_owned())
    );
    assert_eq!(result(3), (false, "\"x\"".to_owned()));
    assert!(matches!(&said[1].message.blocks[0], Block::ToolUse(call) if call.id.as_str() == "c1"));
    assert_eq!(said[4].model.as_deref(), Some("acme-1"));
    let events = &collected.main().unwrap().events;
    let used: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Usage(used) => Some((used.usage.total(), used.duration_ms)),
            _ => None,
        })
        .collect();
    assert_eq!(used, [(10, Some(7))]);
    for cut in 0..=all.len() {
        check(&Droid, PATH, all.as_bytes(), cut);
    }
}

#[test]
fn a_file_is_named_by_the_first_line_that_has_a_name() {
    let unnamed = file(&[r#"{"type":"message","role":"user","text":"x"}"#]);
    let (report, collected) = read(&Droid, PATH, unnamed.as_bytes()).unwrap();
    assert_eq!(collected.session, "0190");
    assert!(report.state.is_none());
    let later = unnamed + r#"{"type":"completion","session_id":"0199","finalText":"y"}"#;
    assert_eq!(self::collected(&later).session, "0199");
}

#[test]
fn lines_of_other_agents_are_not_recognised() {
    let recognises =
        |text: &str| Droid.recognises(&Source::from_bytes(PATH, text.as_bytes().to_vec()));
    assert!(recognises(START));
    assert!(recognises(
        r#"{"type":"message","sessionId":"s","role":"user","text":"x"}"#
    ));
    for other in [
        r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/x","tools":[],"uuid":"u"}"#,
        r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/x","tools":[]}"#,
        r#"{"type":"message","id":"a","message":{"role":"user","content":"x"}}"#,
        r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"x"}}"#,
        r#"{"type":"session_start"}"#,
    ] {
        assert!(!recognises(other), "{other}");
    }
}

#[test]
fn the_sum_beside_a_session_is_one_usage_and_the_last_one_counts() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("0190.jsonl");
    let settle = |input: u64| {
        let counts = format!(
            r#"{{"inputTokens":{input},"outputTokens":2,"thinkingTokens":3,"cacheCreationTokens":4,"cacheReadTokens":5}}"#
        );
        let settings = format!(r#"{{"model":"acme-1","tokenUsage":{counts}}}"#);
        std::fs::write(root.path().join("0190.settings.json"), settings).unwrap();
    };
    let mut found = EventCollector::default();
    let mut report = crate::event::ReadReport::default();
    let mut text = file(&[START, &message("m1", "user", &text("one"))]);
    for (n, input) in [1, 1, 7].into_iter().enumerate() {
        settle(input);
        text += &file(&[&message(&format!("n{n}"), "assistant", &self::text("two"))]);
        std::fs::write(&path, &text).unwrap();
        let source = Source::open(&path).unwrap();
        let resumed = crate::testing::resume(&Droid, &source, &report, &mut found).unwrap();
        report = match resumed {
            Some(report) => report,
            None => found.read(Droid.open(&source).unwrap()).unwrap(),
        };
    }
    let events = &found.main().unwrap().events;
    let used: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Usage(used) => Some((
                used.response_id.as_str(),
                used.usage.input_tokens,
                used.usage.output_tokens,
                used.usage.total(),
            )),
            _ => None,
        })
        .collect();
    assert_eq!(used, [("droid-0190", 1, 5, 15), ("droid-0190", 7, 5, 21)]);
}

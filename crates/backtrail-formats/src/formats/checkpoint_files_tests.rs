use super::*;
use crate::collector::EventCollector;
use crate::testing::{check, read};

const PATH: &str = "/checkpoints/7.json";

fn checkpoint(id: &str, prompts: &str, answers: &str, rest: &str) -> String {
    format!(
        r#"{{
  "id": "{id}",
  "timestamp": {{"secs_since_epoch": 1794726400, "nanos_since_epoch": 250000000}},
  "stats": {{"start_time": {{"secs_since_epoch": 1794726326, "nanos_since_epoch": 0}}, "total_messages": 4, "total_tool_calls": 2, "total_duration": {{"secs": 74, "nanos": 0}}, "estimated_tokens": 99}},
  "user_prompts": [{prompts}],
  "assistant_responses": [{answers}],
  {rest}
}}"#
    )
}

const REST: &str = r#""tool_calls": [
    {"tool_name": "write_file", "arguments": {"path": "a.txt", "n": 1.50}, "result": "written", "success": true},
    {"tool_name": "bash", "arguments": "{\"command\":\"ls\"}", "result": "no such file", "success": false},
    {"tool_name": "bash", "arguments": "sleep 9", "result": null, "success": null}],
  "file_diffs": [{"path": "a.txt", "before": null, "after": "hi\n", "timestamp": {"secs_since_epoch": 1794726327, "nanos_since_epoch": 0}}]"#;

fn collected(text: &str) -> EventCollector {
    assert!(CheckpointFiles.recognises(&Source::from_bytes(PATH, text)));
    read(&CheckpointFiles, PATH, text.as_bytes()).unwrap().1
}

#[test]
fn b7_a_checkpoint_file_is_read_with_its_calls_and_changes() {
    let collected = collected(&checkpoint(
        "7",
        r#""one", "two""#,
        r#""first", "second""#,
        REST,
    ));
    let main = collected.main().unwrap();
    assert_eq!(main.details.tags.as_deref(), Some(&["7".to_owned()][..]));
    assert_eq!(
        main.details.started_at.unwrap().as_millis(),
        1_794_726_326_000
    );
    let said: Vec<_> = collected.messages().map(|said| &said.message).collect();
    let roles: Vec<_> = said.iter().map(|message| message.role.as_str()).collect();
    let expected = "user assistant user assistant tool assistant tool assistant assistant user";
    assert_eq!(roles.join(" "), expected);
    assert_eq!(
        (said[0].text(), said[1].text()),
        ("one".into(), "first".into())
    );
    assert_eq!(
        (said[2].text(), said[8].text()),
        ("two".into(), "second".into())
    );
    let Block::ToolUse(call) = &said[3].blocks[0] else {
        panic!("{:?}", said[3]);
    };
    assert_eq!(call.input.as_str(), r#"{"path": "a.txt", "n": 1.50}"#);
    assert!(
        matches!(&said[5].blocks[0], Block::ToolUse(c) if c.input.as_str() == r#"{"command":"ls"}"#)
    );
    assert!(matches!(&said[7].blocks[0], Block::ToolUse(c) if c.input.as_str() == "\"sleep 9\""));
    let Block::ToolResult(failed) = &said[6].blocks[0] else {
        panic!("{:?}", said[6]);
    };
    assert!(failed.is_error && failed.output.as_str() == "\"no such file\"");
    assert!(said[9].is_meta());
    let change = r#"{"type":"file_change","path":"a.txt","before":null,"after":"hi\n","at":"2026-11-15T07:05:27.000Z"}"#;
    assert!(matches!(&said[9].blocks[0], Block::Other(json) if json.as_str() == change));
    assert_eq!(
        main.events.last().map(Event::key).unwrap().len(),
        "files-".len() + 16
    );
}

#[test]
fn b7_checkpoints_of_one_session_are_one_session_that_grew() {
    let none = r#""tool_calls": [], "file_diffs": []"#;
    let first = checkpoint("1", r#""one""#, r#""first""#, none);
    let second = checkpoint("2", r#""one", "two""#, r#""first", "second""#, none);
    let other = checkpoint("1", r#""else""#, r#""first""#, none);
    assert_eq!(collected(&first).session, collected(&second).session);
    assert_ne!(collected(&first).session, collected(&other).session);
    let keys = |text: &str| -> Vec<String> {
        collected(text)
            .messages()
            .map(|said| said.key.clone())
            .collect()
    };
    assert_eq!(keys(&second)[..2], keys(&first)[..]);
}

#[test]
fn an_unanswered_prompt_and_an_incomplete_file_end_in_a_result() {
    let text = checkpoint("1", r#""one", "two""#, r#""first""#, REST);
    let texts: Vec<_> = collected(&text)
        .messages()
        .map(|said| said.message.text().into_owned())
        .collect();
    assert_eq!(texts[0], "one");
    assert_eq!(texts[6..8], ["first", "two"]);
    let empty = collected(&checkpoint("1", "", "", REST));
    assert_eq!(empty.messages().count(), 6);
    for cut in 0..text.len() {
        check(&CheckpointFiles, PATH, text.as_bytes(), cut);
    }
    let (report, nothing) = read(&CheckpointFiles, PATH, &text.as_bytes()[..200]).unwrap();
    assert!(report.unfinished && report.damage.count == 1 && nothing.messages().count() == 0);
}

#[test]
fn wrong_types_in_every_field_end_in_a_result() {
    for wrong in [
        "null",
        "7",
        "\"x\"",
        "[]",
        "[null,7,{}]",
        "{}",
        "1e999",
        "\"\\ud800\"",
    ] {
        let fields = FIELDS.map(|name| format!("\"{name}\":{wrong}"));
        let text = format!(
            "{{\"id\":{wrong},\"timestamp\":{wrong},{}}}",
            fields.join(",")
        );
        collected(&text);
    }
}

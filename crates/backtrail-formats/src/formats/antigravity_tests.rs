use super::*;
use crate::collector::EventCollector;
use crate::event::{Event, ReadReport};
use crate::testing::{check, read};

const PATH: &str = "/b/0190/.system_generated/logs/transcript.jsonl";

fn step(source: &str, kind: &str, rest: &str) -> String {
    format!(
        r#"{{"step_index":0,"source":"{source}","type":"{kind}","status":"DONE","created_at":"2026-01-02T03:04:05Z"{rest}}}"#
    )
}

fn collected(steps: &[String]) -> (ReadReport, EventCollector) {
    read(&Antigravity, PATH, steps.join("\n").as_bytes()).unwrap()
}

fn results(collected: &EventCollector) -> Vec<(String, String, bool)> {
    let blocks = collected.messages().flat_map(|event| &event.message.blocks);
    let result = |block: &Block| match block {
        Block::ToolResult(result) => {
            let name = result.tool_name.clone().unwrap_or_default();
            let id = result.tool_use_id.as_str().to_owned();
            Some((id, name.as_str().to_owned(), result.is_error))
        }
        _ => None,
    };
    blocks.filter_map(result).collect()
}

#[test]
fn steps_are_read_and_results_follow_their_calls() {
    let all = [
        step(
            "USER_EXPLICIT",
            "USER_INPUT",
            r#","content":"<USER_REQUEST>\nlook\n</USER_REQUEST>\n<USER_SETTINGS_CHANGE>\n`Model Selection` from A to Acme 1.5.\n</USER_SETTINGS_CHANGE>""#,
        ),
        step("SYSTEM", "CONVERSATION_HISTORY", ""),
        step(
            "MODEL",
            "PLANNER_RESPONSE",
            r#","thinking":"hm","content":"so","tool_calls":[{"name":"run_command","args":{}},{"name":"view_file","args":{}}]"#,
        ),
        step(
            "MODEL",
            "RUN_COMMAND",
            r#","content":"Created At: x\nThe command failed with exit code: 2\n""#,
        ),
        step("MODEL", "VIEW_FILE", r#","content":"a""#),
        step("MODEL", "GREP_SEARCH", r#","content":"b""#),
        step("MODEL", "SORT_SHELF", r#","content":"c""#),
        step("SYSTEM", "CHECKPOINT", r#","content":"so far""#),
        step("SYSTEM", "SYSTEM_MESSAGE", r#","content":"mind the gap""#),
        step("SYSTEM", "WEATHER", r#","content":"fine""#),
    ];
    let (report, collected) = collected(&all);
    assert_eq!(collected.session, "0190");
    assert_eq!(
        report.unknown.keys().collect::<Vec<_>>(),
        ["SORT_SHELF", "WEATHER"]
    );
    let main = collected.main().unwrap();
    assert_eq!(main.details.model.as_deref(), Some("Acme 1.5"));
    let said: Vec<_> = collected.messages().map(|event| &event.message).collect();
    assert!(said[0].is_meta() && said[1].is_prompt());
    assert_eq!(said[1].text(), "look");
    assert!(said.last().unwrap().is_meta());
    let name = |id: &str, name: &str, failed| (id.to_owned(), name.to_owned(), failed);
    assert_eq!(
        results(&collected),
        [
            name("r1.0", "run_command", true),
            name("r1.1", "view_file", false),
            name("", "grep_search", false),
            name("", "sort_shelf", false),
        ]
    );
    let is_summary =
        |event: &&Event| matches!(event, Event::Summary(event) if event.summary == "so far");
    assert_eq!(main.events.iter().filter(is_summary).count(), 1);
    let all = all.join("\n");
    for cut in 0..=all.len() {
        check(&Antigravity, PATH, all.as_bytes(), cut);
    }
}

#[test]
fn a_result_never_belongs_to_an_earlier_response() {
    let call = |name: &str| {
        let calls = format!(r#","tool_calls":[{{"name":"{name}","args":{{}}}}]"#);
        step("MODEL", "PLANNER_RESPONSE", &calls)
    };
    let all = [
        call("one"),
        call("two"),
        step("MODEL", "GENERIC", r#","content":"a","status":"ERROR""#),
    ];
    let (_, collected) = collected(&all);
    assert_eq!(results(&collected)[0].0, "r2.0");
}

#[test]
fn a_step_that_failed_is_a_failed_call() {
    let failed =
        r#"{"step_index":0,"source":"MODEL","type":"MCP_TOOL","status":"ERROR","content":"no"}"#;
    let (_, collected) = collected(&[failed.to_owned()]);
    assert!(results(&collected)[0].2);
}

#[test]
fn only_steps_are_recognised() {
    let recognises =
        |text: &str| Antigravity.recognises(&Source::from_bytes(PATH, text.as_bytes()));
    assert!(recognises(&step("USER_EXPLICIT", "USER_INPUT", "")));
    assert!(!recognises(r#"{"step_index":0,"type":"USER_INPUT"}"#));
    assert!(!recognises("# A plan\n"));
    assert!(Antigravity.is_session_file(PATH.as_ref()));
    assert!(!Antigravity.is_session_file("/b/0190/plan.md".as_ref()));
}

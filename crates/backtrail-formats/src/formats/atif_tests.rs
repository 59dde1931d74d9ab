use backtrail::{Block, Role};

use super::*;
use crate::collector::EventCollector;
use crate::testing::read as read_bytes;

fn collected(text: &str) -> (ReadReport, EventCollector) {
    read_bytes(&Atif, "/runs/trajectory.json", text.as_bytes()).unwrap()
}

fn run(steps: &str, rest: &str) -> String {
    format!(
        r#"{{"schema_version":"ATIF-v1.8","session_id":"s1","agent":{{"name":"runner","version":"1","model_name":"big"}},"steps":[{steps}]{rest}}}"#
    )
}

const USER: &str =
    r#"{"step_id":1,"timestamp":"2026-02-03T04:05:06Z","source":"user","message":"list it"}"#;
const AGENT: &str = r#"{"step_id":2,"timestamp":"2026-02-03T04:05:07.5","source":"agent","model_name":"bigger","message":[{"type":"text","text":"Listing."},{"type":"image","source":{"media_type":"image/png","path":"a.png"}}],"reasoning_content":"hm","tool_calls":[{"tool_call_id":"c1","function_name":"bash","arguments":{"cmd":"ls"}},{"tool_call_id":"c2","function_name":"task","arguments":{}}],"observation":{"results":[{"source_call_id":"c1","content":"no","extra":{"exit_code":2}},{"source_call_id":"c2","subagent_trajectory_ref":[{"trajectory_id":"t9"}]},{"content":"by the way"}]},"metrics":{"prompt_tokens":100,"completion_tokens":7,"cached_tokens":60,"cost_usd":0.5,"extra":{"reasoning_tokens":3,"cache_creation_input_tokens":10}}}"#;

#[test]
fn a_step_is_a_message_and_its_results() {
    let text = run(&[USER, AGENT].join(","), "");
    let (report, events) = collected(&text);
    assert_eq!(events.session, "s1");
    assert_eq!((report.damage.count, report.unknown.len()), (0, 0));
    let roles: Vec<_> = events
        .messages()
        .map(|event| event.message.role.clone())
        .collect();
    let expected = [
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Tool,
        Role::User,
    ];
    assert_eq!(roles, expected);
    let all: Vec<_> = events.messages().collect();
    assert!(all[4].message.is_meta());
    let usage = all[1].message.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (30, 7));
    assert_eq!(usage.cache_read_input_tokens, 60);
    assert_eq!(usage.cache_creation_input_tokens, 10);
    assert_eq!(usage.reasoning_output_tokens, Some(3));
    assert_eq!(all[1].cost_usd, Some(0.5));
    assert_eq!(all[1].model.as_deref(), Some("bigger"));
    assert_eq!(all[1].at.unwrap().as_millis(), 1_770_091_507_500);
    assert!(matches!(&all[1].message.blocks[0], Block::Thinking(_)));
    assert!(matches!(&all[1].message.blocks[2], Block::Other(_)));
    let failed = |at: usize| match &all[at].message.blocks[0] {
        Block::ToolResult(result) => result.is_error,
        _ => panic!("a result"),
    };
    assert!(failed(2) && !failed(3));
    let details = &events.main().unwrap().details;
    assert_eq!(details.model.as_deref(), Some("bigger"));
}

#[test]
fn a_step_that_gets_its_results_later_keeps_its_key() {
    let (first, _) = AGENT.split_once(",\"observation\"").unwrap();
    let before = run(&[USER, &format!("{first}}}")].join(","), "");
    let after = run(&[USER, AGENT].join(","), "");
    let keys = |text: &str| -> Vec<String> {
        let (_, events) = collected(text);
        events.messages().map(|event| event.key.clone()).collect()
    };
    assert!(keys(&after).starts_with(&keys(&before)));
}

#[test]
fn a_copied_step_is_not_counted_again() {
    let copied = AGENT.replacen('{', "{\"is_copied_context\":true,", 1);
    let totals = r#","final_metrics":{"total_prompt_tokens":5}"#;
    let (_, events) = collected(&run(&copied, totals));
    let used = events.messages().any(|event| event.message.usage.is_some());
    assert!(!used);
    assert_eq!(events.main().unwrap().events.len(), 4);
}

#[test]
fn totals_count_if_no_step_tells_what_it_used() {
    let totals = r#","final_metrics":{"total_prompt_tokens":100,"total_completion_tokens":9,"total_cached_tokens":40,"total_cost_usd":0.25}"#;
    let (_, events) = collected(&run(USER, totals));
    let Some(Event::Usage(used)) = events.main().unwrap().events.last() else {
        panic!("usage");
    };
    assert_eq!((used.usage.input_tokens, used.usage.total()), (60, 109));
    assert_eq!(used.cost_usd, Some(0.25));
    let (_, events) = collected(&run(AGENT, totals));
    let is_usage = |event: &Event| matches!(event, Event::Usage(_));
    assert!(!events.main().unwrap().events.iter().any(is_usage));
}

#[test]
fn sub_agents_in_the_file_are_threads() {
    let inner = run(USER, "").replace("\"s1\"", "\"s1\",\"trajectory_id\":\"t10\"");
    let outer = run(USER, &format!(r#","subagent_trajectories":[{inner},5]"#));
    let outer = outer.replacen("\"s1\"", "\"s1\",\"trajectory_id\":\"t9\"", 1);
    let text = run(
        &[USER, AGENT].join(","),
        &format!(r#","subagent_trajectories":[{outer},{outer}]"#),
    );
    let (report, events) = collected(&text);
    let ids: Vec<_> = events
        .threads
        .iter()
        .map(|thread| thread.thread.id.clone())
        .collect();
    let agent = |id: &str| ThreadId::SubAgent(id.to_owned());
    let expected = [
        ThreadId::Main,
        agent("t9"),
        agent("t9~2"),
        agent("t10"),
        agent("t10~2"),
    ];
    assert_eq!(ids, expected);
    let spawned = Origin::Spawned {
        session: None,
        tool_use_id: Some("c2".to_owned()),
    };
    assert_eq!(events.threads[1].thread.origin, spawned);
    assert_eq!(report.unknown.values().sum::<u64>(), 2);
}

#[test]
fn a_continuation_is_a_copy_of_what_it_continues() {
    let dir = tempfile::tempdir().unwrap();
    let first = run(USER, r#","continued_trajectory_ref":"run.cont-1.json""#);
    std::fs::write(dir.path().join("run.json"), first).unwrap();
    let next = dir.path().join("run.cont-1.json");
    std::fs::write(&next, run(USER, "").replace("\"s1\"", "\"s2\"")).unwrap();
    let source = Source::open(&next).unwrap();
    let copy = Origin::Copy {
        session: "s1".to_owned(),
    };
    assert_eq!(*Atif.open(&source).unwrap().origin(), copy);
}

#[test]
fn what_is_not_a_step_is_counted() {
    let text = run(r#"7,{"step_id":1,"source":"robot","message":"x"}"#, "");
    let (report, events) = collected(&text);
    assert_eq!(report.damage.count, 1);
    assert_eq!(report.unknown.get("step: robot"), Some(&1));
    assert_eq!(events.messages().count(), 0);
    let deep = r#"{"agent":{},"steps":[],"subagent_trajectories":["#.repeat(40);
    let deep = format!("{deep}{}", "]}".repeat(40));
    let (report, events) = collected(&deep);
    assert_eq!((events.threads.len(), report.unknown.len()), (17, 1));
}

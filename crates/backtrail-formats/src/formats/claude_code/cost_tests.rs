//! The agent's own cost reaches the calls that it is for, once.

use backtrail::Usage;
use serde_json::{Value, json};

use super::ClaudeCode;
use super::tests::user;
use crate::collector::EventCollector;
use crate::event::{Event, ReadReport, ThreadId, UsageEvent};
use crate::format::Format;
use crate::source::Source;
use crate::testing::resume;

const FILE: &str = "/p/0b1c2d3e-0000-4000-8000-000000000001.jsonl";

/// A call that costs 1,000 input tokens.
fn call(uuid: &str, parent: &str, block: Value) -> String {
    let line = json!({
        "parentUuid": parent, "isSidechain": false, "sessionId": "s", "type": "assistant",
        "uuid": uuid, "timestamp": "2026-01-02T03:04:06.000Z",
        "message": {
            "id": format!("r-{uuid}"), "role": "assistant", "model": "claude-x", "content": [block],
            "usage": {"input_tokens": 500, "output_tokens": 50, "cache_read_input_tokens": 2500},
        },
    });
    format!("{line}\n")
}

fn text() -> Value {
    json!({"type": "text", "text": "hello"})
}

/// The cost after so many calls, at so much each.
fn cost(calls: u64, each: f64) -> String {
    let total = calls as f64 * each;
    let line = json!({
        "type": "cost-state", "sessionId": "s", "totalCostUSD": total,
        "modelUsage": {"claude-x": {
            "inputTokens": 500 * calls, "outputTokens": 50 * calls,
            "cacheReadInputTokens": 2500 * calls, "cacheCreationInputTokens": 0, "costUSD": total,
        }},
        "hasUnknownModelCost": false,
    });
    format!("{line}\n")
}

fn read(text: &str) -> (EventCollector, ReadReport) {
    let source = Source::from_bytes(FILE, text);
    let mut collected = EventCollector::default();
    let report = collected.read(ClaudeCode.open(&source).unwrap()).unwrap();
    (collected, report)
}

/// Returns the costs, each with its response.
fn costs(collected: &EventCollector) -> Vec<(&str, f64)> {
    let main = &collected.main().unwrap().events;
    let of = |event: &UsageEvent| (event.cost_usd.unwrap() * 1e6).round() / 1e6;
    let costs = main.iter().filter_map(|event| match event {
        Event::Usage(usage) => Some((usage.response_id.as_str(), of(usage))),
        _ => None,
    });
    costs.collect()
}

/// Reads a file in two parts, with each line as the first of the second part.
fn assert_resumes(lines: &[String]) {
    let (whole, _) = read(&lines.concat());
    for cut in 1..lines.len() {
        let (mut collected, report) = read(&lines[..cut].concat());
        let source = Source::from_bytes(FILE, lines.concat());
        let resumed = resume(&ClaudeCode, &source, &report, &mut collected).unwrap();
        if resumed.is_some() {
            assert!(collected.threads == whole.threads, "cut {cut}");
        }
    }
}

#[test]
fn the_cost_of_each_run_is_shared_out_among_its_calls() {
    let lines = [
        user("u1", None, "go"),
        call("a1", "u1", text()),
        call("a2", "a1", text()),
        cost(2, 0.5),
        user("u2", Some("a2"), "more"),
        call("a3", "u2", text()),
        cost(3, 0.5),
    ];
    let (collected, report) = read(&lines.concat());
    assert_eq!(
        costs(&collected),
        [("r-a1", 0.5), ("r-a2", 0.5), ("r-a3", 0.5)]
    );
    assert!(report.unknown.is_empty());
    let Some(Event::Usage(last)) = collected.main().unwrap().events.last() else {
        panic!();
    };
    assert_eq!(last.usage, Usage::new(500, 50).cache_read(2500));
    assert_resumes(&lines);
}

#[test]
fn figures_that_are_smaller_than_before_started_again() {
    let lines = [
        user("u1", None, "go"),
        call("a1", "u1", text()),
        call("a2", "a1", text()),
        cost(2, 0.5),
        user("u2", Some("a2"), "more"),
        call("a3", "u2", text()),
        cost(1, 0.25),
    ];
    let (collected, _) = read(&lines.concat());
    assert_eq!(
        costs(&collected),
        [("r-a1", 0.5), ("r-a2", 0.5), ("r-a3", 0.25)]
    );
    assert_resumes(&lines);
}

#[test]
fn calls_of_a_run_that_wrote_no_cost_get_none() {
    let lines = [
        user("u1", None, "go"),
        call("a1", "u1", text()),
        user("u2", Some("a1"), "more"),
        call("a2", "u2", text()),
        cost(1, 0.5),
    ];
    let (collected, _) = read(&lines.concat());
    assert_eq!(costs(&collected), [("r-a2", 0.5)]);
    assert_resumes(&lines);
}

#[test]
fn what_the_agent_does_not_write_down_is_part_of_the_cost() {
    // A third call, for a title perhaps, is nowhere in the file.
    let lines = [
        user("u1", None, "go"),
        call("a1", "u1", text()),
        call("a2", "a1", text()),
        cost(3, 0.5),
    ];
    let (collected, _) = read(&lines.concat());
    assert_eq!(costs(&collected), [("r-a1", 0.75), ("r-a2", 0.75)]);
}

#[test]
fn sub_agents_pay_for_themselves() {
    let agent = json!({"type": "tool_use", "id": "t1", "name": "Agent", "input": {"prompt": "p"}});
    // A third call is in the file of the sub-agent.
    let lines = [
        user("u1", None, "go"),
        call("a1", "u1", agent),
        call("a2", "a1", text()),
        cost(3, 0.5),
    ];
    let (collected, _) = read(&lines.concat());
    assert_eq!(costs(&collected), [("r-a1", 0.5), ("r-a2", 0.5)]);
    assert_resumes(&lines);
}

#[test]
fn branches_pay_for_themselves() {
    let lines = [
        user("u1", None, "go"),
        call("a1", "u1", text()),
        user("u2", Some("a1"), "left"),
        call("a2", "u2", text()),
        user("u3", Some("a1"), "taken"),
        call("a3", "u3", text()),
        cost(3, 0.5),
    ];
    let (collected, _) = read(&lines.concat());
    assert_eq!(costs(&collected), [("r-a1", 0.5), ("r-a3", 0.5)]);
    let is_branch = |id: &ThreadId| matches!(id, ThreadId::Branch(_));
    let branches = collected
        .threads
        .iter()
        .filter(|thread| is_branch(&thread.thread.id));
    let mut events = branches.flat_map(|branch| &branch.events);
    assert!(events.all(|event| matches!(event, Event::Message(_))));
    assert_resumes(&lines);
}

#[test]
fn a_cost_that_is_not_known_is_not_shared_out() {
    let start = [user("u1", None, "go"), call("a1", "u1", text())].concat();
    let odd = [
        cost(1, 0.5).replace("Cost\":false", "Cost\":true"),
        cost(0, 0.5),
        cost(1, -0.5),
        "{\"type\":\"cost-state\"}\n".to_owned(),
        "{\"type\":\"cost-state\",\"totalCostUSD\":\"much\",\"modelUsage\":7}\n".to_owned(),
    ];
    for cost in odd {
        let (collected, report) = read(&format!("{start}{cost}"));
        assert_eq!(costs(&collected), [], "{cost}");
        assert!(report.unknown.is_empty());
    }
    let huge = "{\"type\":\"cost-state\",\"totalCostUSD\":1e308,\"modelUsage\":{\"claude-x\":{\"inputTokens\":18446744073709551615,\"costUSD\":1e308}}}\n";
    let (collected, _) = read(&format!("{start}{huge}{huge}"));
    let events = &collected.main().unwrap().events;
    let is_finite = |event: &Event| match event {
        Event::Usage(usage) => usage.cost_usd.is_some_and(f64::is_finite),
        _ => true,
    };
    assert!(events.len() == 3 && events.iter().all(is_finite));
}

#[test]
fn the_calls_of_an_endless_run_take_bounded_memory() {
    let mut lines = vec![user("u", None, "go")];
    let mut parent = "u".to_owned();
    for n in 0..1_200 {
        let uuid = format!("a{n}");
        lines.push(call(&uuid, &parent, text()));
        parent = uuid;
    }
    lines.push(cost(1_200, 0.5));
    let (collected, _) = read(&lines.concat());
    let costs = costs(&collected);
    assert_eq!(costs.len(), 1_000);
    // Those that get none keep theirs.
    assert_eq!(costs[0], ("r-a200", 0.5));
}

#[test]
fn the_keys_of_costs_are_the_same_in_every_file_of_a_session() {
    let lines = [
        user("u1", None, "go"),
        call("a1", "u1", text()),
        call("a2", "a1", text()),
        cost(2, 0.5),
    ];
    let keys = |text: &str| {
        let (collected, _) = read(text);
        let main = &collected.main().unwrap().events;
        let usage = main.iter().filter(|event| matches!(event, Event::Usage(_)));
        usage
            .map(|event| event.key().to_owned())
            .collect::<Vec<_>>()
    };
    let known = keys(&lines.concat());
    assert_eq!(known.len(), 2);
    assert_ne!(known[0], known[1]);
    let later = "{\"type\":\"summary\",\"summary\":\"s\",\"leafUuid\":\"x\"}\n".to_owned();
    assert_eq!(keys(&(later + &lines.concat())), known);
    // The last line of the other file is not ended.
    assert_eq!(keys(lines.concat().trim_end()), known);
}

//! `backtrail resume --agent`: an agent continues sessions of others, with their calls as calls, and
//! what it adds comes back.

use std::collections::BTreeSet;

use backtrail_agent_tests::{Conversation, Exchange, Kind, Script, Step, Turn, Usage};
use serde_json::{Value, json};

use crate::agent::{Agent, Start};
use crate::scenario::{Scenario, Under};
use crate::turns::{self, MARKERS};

/// The prompts of sessions that were made by hand.
const MADE: &str = "MADE-BY-HAND";
/// The prompt that the agent gets after the hand-over, and the one after it was handed back.
const LATER: &str = "TURN-4";
const BACK: &str = "TURN-5";

/// Sessions of Claude Code, opencode and no agent at all reach the agent's model whole, and so does a
/// real one of another agent, which then gets it back.
pub(crate) fn sessions_of_other_agents(agent: &Agent) -> Option<String> {
    if !agent.can_continue() {
        return Some("it continues a session only on a terminal".to_owned());
    }
    let first = Agent::named(if agent.name == "codex" { "pi" } else { "codex" });
    let mut scenario = Scenario::new(agent, script);
    scenario.add_agent(&first);
    turns::fill(&scenario.place.project);
    let mut made = vec![opencode(&scenario), hard(&scenario)];
    // Its own session would be copied.
    if agent.name != "claude-code" {
        made.push(claude_code(&scenario));
    }
    for session in made {
        continues(&mut scenario, &session);
    }
    there_and_back(&mut scenario, &first);
    nothing_counts_twice(&scenario);
    None
}

/// All sessions together used what the model says, though each is in several files.
fn nothing_counts_twice(scenario: &Scenario<'_>) {
    let log = scenario.server.exchanges();
    let turns = log
        .iter()
        .filter(|exchange| matches!(exchange.kind, Kind::Turn { .. }));
    let answers = turns.filter_map(|exchange| exchange.answer.as_ref());
    let used: Usage = answers.map(|answer| answer.usage).sum();
    let stats = scenario
        .backtrail(&["stats", "--all", "--json"])
        .succeeded()
        .json();
    let totals = &stats["totals"];
    let number = |field: &str| totals[field].as_u64().unwrap_or_default();
    let read = number("input_tokens") + number("cache_read_tokens");
    // goose knows only how much was read.
    assert_eq!(read, used.input + used.cache_read, "{totals:#}");
    assert_eq!(number("output_tokens"), used.output, "{totals:#}");
}

fn script(project: &std::path::Path) -> Script {
    let mut script = turns::script(project);
    let later = [LATER, BACK].map(|marker| {
        let call = backtrail_agent_tests::Action::shell(&format!("echo {marker} >> later.txt"));
        let calls = Step::call(&format!("{marker} first"), [call]);
        Turn::new(marker, [calls, Step::say(&format!("{marker} done"))])
    });
    script.turns.extend(later);
    script
}

/// Another agent's real session: it is continued, comes back by import, and goes back.
fn there_and_back(scenario: &mut Scenario<'_>, first: &Agent) {
    let agent = scenario.agent;
    let prompt = format!("{} please change the files", MARKERS[0]);
    scenario.prompt_as(first, Under::Run, &Start::New, &prompt);
    let session = newest(scenario, first.name);
    let there = continues(scenario, &session);
    // Back again: what the other agent added is there too.
    let made = hand_over(scenario, &there, first.name);
    let id = text(&made["new_id"]);
    let asked = scenario.server.exchanges().len();
    scenario.prompt_as(
        first,
        Under::Run,
        &Start::Resume(id),
        &format!("{BACK} go on"),
    );
    let log = scenario.server.exchanges();
    let sent = request_of(&log[asked..], BACK);
    let prompts = sent.prompts(&[MARKERS[0], LATER, BACK]);
    assert_eq!(prompts.len(), 3, "{prompts:?}");
    for (prompt, marker) in prompts.iter().zip([MARKERS[0], LATER, BACK]) {
        assert!(prompt.contains(marker), "{prompts:?}");
    }
    same_conversation(sent, &shown(scenario, &there), agent.name);
    comes_back(scenario, &text(&made["session"]), BACK);
}

/// Hands a session over to the agent, which continues it. Returns the session that continues it.
fn continues(scenario: &mut Scenario<'_>, session: &str) -> String {
    let agent = scenario.agent;
    let original = shown(scenario, session);
    let made = hand_over(scenario, session, agent.name);
    let asked = scenario.server.exchanges().len();
    let start = Start::Resume(text(&made["new_id"]));
    scenario.prompt(Under::Run, &start, &format!("{LATER} go on"));
    let log = scenario.server.exchanges();
    same_conversation(request_of(&log[asked..], LATER), &original, agent.name);
    let new = text(&made["session"]);
    comes_back(scenario, &new, LATER);
    assert_eq!(
        shown(scenario, session),
        original,
        "the original is as it was"
    );
    new
}

fn hand_over(scenario: &Scenario<'_>, session: &str, agent: &str) -> Value {
    let words = ["resume", session, "--agent", agent, "--print", "--json"];
    let made = scenario.backtrail(&words).succeeded().json();
    assert_eq!(made["agent"], agent, "{made:#}");
    let again = scenario.backtrail(&["import", "--json"]).succeeded().json();
    assert_eq!(again["agents"][agent]["new"], 0, "{again:#}");
    made
}

/// The new session continues the original, and has the one turn that the agent added, once.
fn comes_back(scenario: &Scenario<'_>, session: &str, marker: &str) {
    scenario.backtrail(&["import"]).succeeded();
    let shown = shown(scenario, session);
    let count = |what: &str| shown["messages"].to_string().matches(what).count();
    assert_eq!(count(&format!("{marker} go on")), 1, "{shown:#}");
    assert_eq!(count(&format!("{marker} done")), 1, "{shown:#}");
    let words = ["list", "--all", "--json"];
    let listed = scenario.backtrail(&words).succeeded().json();
    let mut rows = listed.as_array().expect("list prints a list").iter();
    let row = rows.find(|row| row["id"] == session);
    let row = row.unwrap_or_else(|| panic!("{session} is not listed: {listed:#}"));
    assert!(row["forked_from"].is_object(), "{row:#}");
    let again = scenario.backtrail(&["import", "--json"]).succeeded().json();
    let agents = again["agents"].as_object().expect("import lists agents");
    for (agent, report) in agents {
        assert_eq!(report["messages"], 0, "{agent}: {report:#}");
    }
}

/// Returns the first request of a turn.
fn request_of<'e>(log: &'e [Exchange], marker: &str) -> &'e Conversation {
    let asked = log.iter().find(|exchange| exchange.is_of(marker));
    &asked.expect("the agent asked the model").request
}

/// A request begins with the conversation of a session: each prompt, answer, call, argument and
/// result, in order.
fn same_conversation(sent: &Conversation, session: &Value, agent: &str) {
    let original = Told::of(session);
    let answers = sent.answers().join("\n");
    let mut rest = answers.as_str();
    for answer in &original.answers {
        let at = rest.find(answer.as_str());
        let at = at.unwrap_or_else(|| panic!("{agent}: {answer:?} is not in {rest:?}"));
        rest = &rest[at + answer.len()..];
    }
    let prompts = sent.prompts(&[MADE, MARKERS[0], LATER]);
    for (prompt, sent) in original.prompts.iter().zip(&prompts) {
        assert!(
            sent.contains(prompt.as_str()),
            "{agent}: {prompt:?}, {sent:?}"
        );
    }
    let calls = sent.calls();
    assert!(calls.len() >= original.calls.len(), "{agent}: {calls:#?}");
    for (call, sent) in original.calls.iter().zip(&calls) {
        assert_eq!(*call, values(&sent.arguments), "{agent}: {}", sent.name);
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        assert!(
            sent.name.len() <= 64 && sent.name.bytes().all(is_legal),
            "{agent}: {}",
            sent.name
        );
    }
    let results = sent.results();
    for result in &original.results {
        let has = results
            .iter()
            .any(|(_, text)| text.contains(result.as_str()));
        assert!(has, "{agent}: {:?} is not in {results:#?}", short(result));
    }
    // Every call is answered.
    let answered: BTreeSet<_> = results.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        answered.len(),
        calls.len(),
        "{agent}: {calls:#?} {results:#?}"
    );
}

/// What was said in a session.
#[derive(Debug, Default)]
struct Told {
    prompts: Vec<String>,
    answers: Vec<String>,
    /// The texts in the arguments of each call, whatever their names.
    calls: Vec<BTreeSet<String>>,
    results: Vec<String>,
}

impl Told {
    fn of(shown: &Value) -> Self {
        let mut told = Self::default();
        for message in shown["messages"].as_array().expect("show prints messages") {
            for block in message["blocks"].as_array().expect("a message has blocks") {
                match block["type"].as_str().unwrap_or_default() {
                    "text" if message["role"] == "assistant" => {
                        told.answers.push(text(&block["text"]));
                    }
                    "text" => {
                        let words = text(&block["text"]);
                        let is_prompt = [MADE, MARKERS[0], LATER]
                            .iter()
                            .any(|it| words.contains(it));
                        told.prompts.extend(is_prompt.then_some(words));
                    }
                    "tool_use" => told.calls.push(values(&block["input"])),
                    "tool_result" => told.results.extend(result_texts(&block["output"])),
                    _ => {}
                }
            }
        }
        told
    }
}

/// Returns the texts of a result.
fn result_texts(output: &Value) -> Vec<String> {
    match output {
        Value::String(text) => vec![text.trim().to_owned()],
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns the texts and numbers in arguments.
fn values(arguments: &Value) -> BTreeSet<String> {
    match arguments {
        Value::Object(fields) => fields.values().flat_map(values).collect(),
        Value::Array(list) => list.iter().flat_map(values).collect(),
        Value::String(text) => [text.clone()].into(),
        Value::Null => BTreeSet::new(),
        other => [other.to_string()].into(),
    }
}

fn shown(scenario: &Scenario<'_>, session: &str) -> Value {
    let ran = scenario.backtrail(&["show", session, "--json"]).succeeded();
    // Half a character is kept as it is, and sent as U+FFFD.
    let json = ran.stdout.replace("\\ud83d\"", "\\ufffd\"");
    serde_json::from_str(&json).expect("show prints JSON")
}

fn newest(scenario: &Scenario<'_>, agent: &str) -> String {
    let words = ["list", "--all", "--json", "--agent", agent];
    let listed = scenario.backtrail(&words).succeeded().json();
    text(&listed[0]["id"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Makes a session of Claude Code, with a prompt, two calls at once and an answer.
fn claude_code(scenario: &Scenario<'_>) -> String {
    let id = "5a1e7f3c-2b4d-4e6f-8a90-1c2d3e4f5a6b";
    let cwd = scenario.place.project.to_string_lossy().into_owned();
    let mut last: Option<String> = None;
    let mut lines = String::new();
    let mut add = |kind: &str, message: Value| {
        let uuid = format!("00000000-0000-4000-8000-{:012}", lines.lines().count());
        let line = json!({
            "parentUuid": last, "isSidechain": false, "userType": "external", "cwd": cwd,
            "sessionId": id, "version": "2.1.325", "type": kind, "message": message,
            "uuid": uuid, "timestamp": "2026-11-17T10:00:00.000Z",
        });
        lines += &format!("{line}\n");
        last = Some(uuid);
    };
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, output: &str| json!({"type": "tool_result", "tool_use_id": id, "content": output});
    let reply = |id: &str, content: Value| json!({"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content});
    add(
        "user",
        json!({"role": "user", "content": format!("{MADE} look at the cart")}),
    );
    add(
        "assistant",
        reply(
            "msg_1",
            json!([
                {"type": "thinking", "thinking": "Two things.", "signature": "c2ln"},
                {"type": "text", "text": "I look at both."},
                call("toolu_1", "Read", json!({"file_path": format!("{cwd}/keep.txt")})),
                call("toolu_2", "Bash", json!({"command": "ls -l", "description": "list"})),
            ]),
        ),
    );
    add(
        "user",
        json!({"role": "user", "content": [result("toolu_1", "omega"), result("toolu_2", "total 0")]}),
    );
    add(
        "assistant",
        reply(
            "msg_2",
            json!([{"type": "text", "text": "The cart is empty."}]),
        ),
    );
    let folder: String = cwd
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let path = scenario.place.home.join(".claude/projects").join(folder);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join(format!("{id}.jsonl")), lines).unwrap();
    scenario.backtrail(&["import"]).succeeded();
    id.to_owned()
}

/// Makes a session of opencode, as its own export has it.
fn opencode(scenario: &Scenario<'_>) -> String {
    let cwd = scenario.place.project.to_string_lossy().into_owned();
    let id = "ses_5f00000000ffeAAAAAAAAAAAAAA";
    let time = json!({"created": 1_794_900_000_000_u64, "updated": 1_794_900_001_000_u64});
    let part = |n: u32, message: &str, more: Value| {
        let mut part = json!({"id": format!("prt_a0ff{n:08}BBBBBBBBBBBBBB"), "sessionID": id, "messageID": message});
        part.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        part
    };
    let (asked, replied) = (
        "msg_a0ff00000001BBBBBBBBBBBBBB",
        "msg_a0ff00000002BBBBBBBBBBBBBB",
    );
    let export = json!({
        "info": {"id": id, "slug": "s", "projectID": "global", "directory": cwd, "title": "the rates", "version": "1.18.33", "time": time},
        "messages": [
            {"info": {"id": asked, "sessionID": id, "role": "user", "time": {"created": 1_794_900_000_000_u64}, "agent": "build", "model": {"providerID": "fake", "modelID": "fake-1"}},
             "parts": [part(1, asked, json!({"type": "text", "text": format!("{MADE} change the rates")}))]},
            {"info": {"id": replied, "sessionID": id, "role": "assistant", "time": {"created": 1_794_900_000_500_u64, "completed": 1_794_900_001_000_u64}, "parentID": asked, "modelID": "fake-1", "providerID": "fake", "mode": "build", "agent": "build", "path": {"cwd": cwd, "root": "/"}, "cost": 0, "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}},
             "parts": [
                part(2, replied, json!({"type": "text", "text": "I edit them."})),
                part(3, replied, json!({"type": "tool", "callID": "call_oc1", "tool": "edit", "state": {"status": "completed", "input": {"filePath": format!("{cwd}/keep.txt"), "oldString": "omega", "newString": "omega"}, "output": "edited the rates", "title": "keep.txt", "metadata": {}, "time": {"start": 1_794_900_000_600_u64, "end": 1_794_900_000_700_u64}}})),
                part(4, replied, json!({"type": "text", "text": "The rates are changed."})),
             ]},
        ],
    });
    let file = scenario.beside("opencode-export.json");
    std::fs::write(&file, export.to_string()).unwrap();
    scenario
        .backtrail(&["import", &file.to_string_lossy()])
        .succeeded();
    newest(scenario, "opencode")
}

/// Makes a session of no agent that is hard to hand over: two calls at once, a long id, an odd name,
/// an image, much output, half a character, and a last call without a result.
fn hard(scenario: &Scenario<'_>) -> String {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let long = format!("call:{}|x", "y".repeat(78));
    let message = |role: &str, blocks: Value| json!({"type": "message", "message": {"role": role, "blocks": blocks}});
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, name: &str, output: &str| json!({"type": "tool_result", "tool_use_id": id, "tool_name": name, "output": output, "is_error": false});
    let big = format!("{}THE-END", "0123456789abcdef\n".repeat(400));
    let lines = [
        message(
            "user",
            json!([
                {"type": "text", "text": format!("{MADE} the hard one")},
                {"type": "image", "media_type": "image/png", "data": PNG},
            ]),
        ),
        message(
            "assistant",
            json!([
                {"type": "text", "text": "Both at once."},
                call(&long, "mcp__srv.x/y", json!({"q": "one", "n": 7})),
                call("short", "bash", json!({"command": "cat big"})),
            ]),
        ),
        message(
            "tool",
            json!([
                result(&long, "mcp__srv.x/y", "odd"),
                result("short", "bash", &big)
            ]),
        ),
        message(
            "assistant",
            json!([
                {"type": "text", "text": "And one more."},
                call("open", "bash", json!({"command": "sleep 100"})),
            ]),
        ),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let lines = lines.replace("\"odd\"", "\"odd \\ud83d\"");
    let file = scenario.beside("hard.jsonl");
    std::fs::write(&file, lines).unwrap();
    let program = crate::program::variable("BACKTRAIL_PROGRAM");
    let line = format!("'{program}' record < '{}'", file.display());
    let recorded = scenario.start(&["sh", "-c", &line].map(std::ffi::OsString::from));
    let recorded = recorded.succeeded();
    let first = recorded.stdout.lines().next().unwrap_or_default();
    let first: Value = serde_json::from_str(first).expect("record answers in JSON");
    text(&first["session"])
}

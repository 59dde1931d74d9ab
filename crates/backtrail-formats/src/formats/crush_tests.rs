use backtrail::{Block, Role};
use serde_json::{Value, json};

use super::*;
use crate::collector::EventCollector;
use crate::testing::read;

const PATH: &str = "/work/shop/.crush/crush.db/s-1.jsonl";

/// A session that is put together for a test.
#[derive(Debug, Clone)]
struct Session {
    row: Value,
    messages: Vec<Value>,
}

impl Session {
    fn new() -> Self {
        let row = json!({"id": "s-1", "parent_session_id": null, "title": "Sell pears",
            "message_count": 4, "prompt_tokens": 90, "completion_tokens": 9, "cost": 0.75,
            "updated_at": 1_767_323_200, "created_at": 1_767_323_100, "summary_message_id": null});
        Self {
            row,
            messages: Vec::new(),
        }
    }

    fn message(mut self, id: &str, role: &str, parts: Value) -> Self {
        self.messages.push(
            json!({"id": id, "session_id": "s-1", "role": role, "parts": parts,
            "model": (role == "assistant").then_some("m-1"), "created_at": 1_767_323_101,
            "updated_at": 1_767_323_102, "finished_at": null, "provider": "test",
            "is_summary_message": 0}),
        );
        self
    }

    fn user(self, id: &str, text: &str) -> Self {
        let parts = json!([{"type": "text", "data": {"text": text}},
            {"type": "finish", "data": {"reason": "stop", "time": 0}}]);
        self.message(id, "user", parts)
    }

    fn answer(self, id: &str, text: &str, reason: &str) -> Self {
        let parts = json!([{"type": "text", "data": {"text": text}},
            {"type": "finish", "data": {"reason": reason, "time": 1_767_323_103}}]);
        self.message(id, "assistant", parts)
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        self.row[name] = value;
        self
    }

    fn rows(&self) -> String {
        let messages = self.messages.iter().map(|row| ("messages", row));
        let all = messages.chain([("sessions", &self.row)]);
        let line = |(table, row)| format!("{{\"table\":\"{table}\",\"row\":{row}}}\n");
        all.map(line).collect()
    }

    fn read(&self) -> EventCollector {
        read_text(&self.rows()).1
    }
}

fn read_text(text: &str) -> (ReadReport, EventCollector) {
    assert!(Crush.recognises(&Source::from_bytes(PATH, text)), "{text}");
    read(&Crush, PATH, text.as_bytes()).unwrap()
}

fn keys(events: &EventCollector) -> Vec<String> {
    let events = events.main().unwrap().events.iter();
    events.map(|event| event.key().to_owned()).collect()
}

fn result(call: &str, content: &str, is_error: bool) -> Value {
    json!([{"type": "tool_result", "data": {"tool_call_id": call, "name": "bash",
        "content": content, "data": "", "mime_type": "", "metadata": "", "is_error": is_error}}])
}

fn usual() -> Session {
    let call = json!([
        {"type": "reasoning", "data": {"thinking": "Hm", "signature": "sig", "started_at": 1}},
        {"type": "text", "data": {"text": "Let me look."}},
        {"type": "tool_call", "data": {"id": "c1", "name": "bash", "input": "{\"command\":\"ls\"}",
            "provider_executed": false, "finished": true}},
        {"type": "finish", "data": {"reason": "tool_use", "time": 1_767_323_102}}]);
    Session::new()
        .user("m1", "Sell me a pear")
        .message("m2", "assistant", call)
        .message("m3", "tool", result("c1", "no pears", true))
        .answer("m4", "None left.", "end_turn")
}

#[test]
fn messages_calls_results_and_the_cost_are_read() {
    let (report, events) = read_text(&usual().rows());
    assert_eq!(events.session, "s-1");
    let keys = keys(&events);
    assert_eq!(keys[..4], ["m1", "m2", "m3", "m4"]);
    assert!(keys[4].ends_with("~usage"));
    let all: Vec<_> = events.messages().collect();
    assert!(all[0].message.is_prompt());
    let Block::ToolUse(call) = &all[1].message.blocks[2] else {
        panic!("{:?}", all[1]);
    };
    assert_eq!(call.input.as_str(), "{\"command\":\"ls\"}");
    assert_eq!(all[2].message.role, Role::Tool);
    let failed = |block: &Block| matches!(block, Block::ToolResult(result) if result.is_error);
    assert!(all[2].message.blocks.iter().all(failed));
    assert_eq!(all[0].at.unwrap().as_millis(), 1_767_323_101_000);
    let Some(Event::Usage(usage)) = events.main().unwrap().events.last() else {
        panic!();
    };
    assert_eq!(usage.cost_usd, Some(0.75));
    assert_eq!(usage.usage, Usage::default());
    assert_eq!(all[1].response_id.as_ref(), Some(&usage.response_id));
    let details = &events.main().unwrap().details;
    assert_eq!(details.title.as_deref(), Some("Sell pears"));
    assert_eq!(details.model.as_deref(), Some("m-1"));
    assert_eq!(details.directory.as_deref(), Some(Path::new("/work/shop")));
    assert!(report.unknown.is_empty() && report.damage.count == 0 && !report.unfinished);
}

#[test]
fn an_answer_is_sent_when_it_is_finished_and_nothing_after_it_before() {
    let growing = json!([{"type": "text", "data": {"text": "Let"}},
        {"type": "tool_call", "data": {"id": "c1", "name": "bash", "input": "{}", "finished": true}}]);
    let open = Session::new()
        .user("m1", "Sell")
        .message("m2", "assistant", growing)
        .message("m3", "tool", result("c1", "pears", false));
    let (report, events) = read_text(&open.rows());
    assert_eq!(keys(&events)[..1], ["m1"]);
    assert_eq!(events.messages().count(), 1);
    assert!(report.unfinished);
    // The next turn shows that it was interrupted.
    let resumed = open.user("m4", "Go on");
    assert_eq!(resumed.read().messages().count(), 4);
}

#[test]
fn a_summary_replaces_what_came_before_it() {
    let mut session = usual()
        .answer("m5", "Pears are gone.", "end_turn")
        .user("m6", "Go on");
    session.messages[4]["is_summary_message"] = json!(1);
    let summaries = |session: &Session| {
        let summary = |event: &Event| match event {
            Event::Summary(summary) => Some((summary.key.clone(), summary.summary.clone())),
            _ => None,
        };
        let events = session.read();
        let events = events.main().unwrap().events.iter();
        events.filter_map(summary).collect::<Vec<_>>()
    };
    let expected = [("m5".to_owned(), "Pears are gone.".to_owned())];
    assert_eq!(summaries(&session), expected);
    // Older versions name it in the session only.
    session.messages[4]
        .as_object_mut()
        .unwrap()
        .remove("is_summary_message");
    assert!(summaries(&session).is_empty());
    assert_eq!(
        summaries(&session.set("summary_message_id", json!("m5"))),
        expected
    );
}

#[test]
fn a_sub_agent_names_the_call_and_its_cost_is_its_parents() {
    let child = usual()
        .set("id", json!("m2$$c1"))
        .set("parent_session_id", json!("s-0"))
        .set("title", json!("New Agent Session"));
    let events = child.read();
    let main = events.main().unwrap();
    let spawned = Origin::Spawned {
        session: Some("s-0".to_owned()),
        tool_use_id: Some("c1".to_owned()),
    };
    assert_eq!(main.thread.origin, spawned);
    assert_eq!(main.details.title, None);
    let Some(Event::Usage(usage)) = main.events.last() else {
        panic!();
    };
    assert_eq!(usage.cost_usd, Some(0.0));
    assert!(matches!(
        usual()
            .set("cost", json!(0.0))
            .read()
            .main()
            .unwrap()
            .events
            .last(),
        Some(Event::Message(_))
    ));
}

#[test]
fn attachments_commands_and_errors_are_read() {
    let parts = json!([{"type": "text", "data": {"text": "See"}},
        {"type": "binary", "data": {"Path": "a.png", "MIMEType": "image/png", "Data": "QUJD"}},
        {"type": "image_url", "data": {"url": "https://x.example/a.png"}}]);
    let command = json!([{"type": "shell_command", "data": {"command": "ls", "output": "pears\n",
        "exit_code": 1}}]);
    let hidden = json!([{"type": "text", "data": {"text": "continue", "hidden": true}}]);
    let failed = json!([{"type": "finish", "data": {"reason": "error", "message": "Overloaded",
        "details": "try later", "time": 1}}]);
    let picture = json!([{"type": "tool_result", "data": {"tool_call_id": "c", "content": "shot",
        "data": "QUJD", "mime_type": "image/png", "metadata": "{\"exit_code\":2}", "is_error": false}}]);
    let session = Session::new()
        .message("m1", "user", parts)
        .message("m2", "user", command)
        .message("m3", "user", hidden)
        .message("m4", "assistant", failed)
        .message("m5", "tool", picture);
    let events = session.read();
    let all: Vec<_> = events.messages().map(|event| &event.message).collect();
    assert!(matches!(&all[0].blocks[1], Block::Media(media) if media.kind == "image"));
    assert!(matches!(&all[0].blocks[2], Block::Other(_)));
    assert!(all[1].is_meta() && all[1].text().contains("(exit code 1)"));
    assert!(all[2].is_meta());
    assert_eq!(
        all[3].extra.get("error").unwrap().as_str(),
        "\"Overloaded: try later\""
    );
    assert!(matches!(&all[4].blocks[0], Block::ToolResult(result)
        if result.is_error && result.output.as_str().contains("image/png")));
}

#[test]
fn what_is_unknown_or_damaged_is_counted_and_costs_nothing_else() {
    let mut session = usual()
        .message(
            "m5",
            "assistant",
            json!([{"type": "hologram", "data": {}},
            {"type": "finish", "data": {}}]),
        )
        .message("m6", "robot", json!([]))
        .message("m7", "user", json!("text"))
        .user("m8", "Bytes");
    session.messages[7]["parts"] = json!({"$blob":
        "W3sidHlwZSI6InRleHQiLCJkYXRhIjp7InRleHQiOiJhcyBieXRlcyJ9fV0="});
    let text = session.rows()
        + "{\"table\":\"files\",\"row\":{}}\n{\"table\":\"messages\",\"rowid\":7,\"damaged\":\"x\"}\n";
    let (report, events) = read_text(&text);
    let unknown: Vec<_> = report.unknown.keys().map(String::as_str).collect();
    assert_eq!(
        unknown,
        ["message: robot", "part: hologram", "table: files"]
    );
    assert_eq!(report.damage.count, 2, "{:?}", report.damage);
    let last = events.messages().last().unwrap();
    assert_eq!(last.message.text(), "as bytes");
}

#[test]
fn databases_are_found_in_the_projects_that_crush_lists() {
    let home = tempfile::tempdir().unwrap();
    assert!(Crush.directories(&Environment::new(home.path())).is_empty());
    let data = home.path().join(".local/share/crush");
    std::fs::create_dir_all(&data).unwrap();
    let list = json!({"projects": [{"path": "/work/shop", "data_dir": "/work/shop/.crush"},
        {"path": "/work/farm", "data_dir": ".crush"}, {"data_dir": "relative"}, 7]});
    std::fs::write(data.join("projects.json"), list.to_string()).unwrap();
    let found = Crush.directories(&Environment::new(home.path()));
    assert_eq!(
        found,
        [
            Path::new("/work/shop/.crush"),
            Path::new("/work/farm/.crush")
        ]
    );
    assert!(Crush.is_session_file(Path::new("/work/shop/.crush/crush.db")));
}

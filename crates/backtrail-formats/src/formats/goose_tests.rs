use backtrail::{Block, Message, Role, Usage};
use serde_json::{Value, json};

use super::*;
use crate::collector::EventCollector;
use crate::event::{Origin, ReadReport};
use crate::testing::read;

const PATH: &str = "/home/u/.local/share/goose/sessions/sessions.db/20260102_1.jsonl";

/// A session that is put together for a test.
#[derive(Debug, Clone)]
struct Session {
    row: Value,
    messages: Vec<Value>,
    ledger: Vec<Value>,
}

impl Session {
    fn new() -> Self {
        let row = json!({"id": "20260102_1", "name": "Sell pears", "description": "",
            "session_type": "user", "working_dir": "/work/shop",
            "created_at": "2026-01-02 03:04:05", "extension_data": {},
            "accumulated_input_tokens": 100, "accumulated_output_tokens": 20,
            "accumulated_cost": null, "model_config_json": {"model_name": "m-1"}});
        Self {
            row,
            messages: Vec::new(),
            ledger: Vec::new(),
        }
    }

    fn message(mut self, id: &str, role: &str, content: Value) -> Self {
        self.messages
            .push(json!({"id": self.messages.len() + 1, "message_id": id,
            "session_id": "20260102_1", "role": role, "content_json": content,
            "created_timestamp": 1_767_323_100 + self.messages.len(),
            "metadata_json": {"userVisible": true, "agentVisible": true}}));
        self
    }

    /// Sets who sees the last message: the user, the model.
    fn seen(mut self, shown: bool, sent: bool) -> Self {
        let last = self.messages.last_mut().unwrap();
        last["metadata_json"] = json!({"userVisible": shown, "agentVisible": sent});
        self
    }

    fn user(self, id: &str, text: &str) -> Self {
        self.message(id, "user", json!([{"type": "text", "text": text}]))
    }

    fn answer(self, id: &str, text: &str) -> Self {
        self.message(id, "assistant", json!([{"type": "text", "text": text}]))
    }

    fn call(mut self, tokens: [u64; 4], cost: f64) -> Self {
        let [input, output, read, written] = tokens;
        self.ledger.push(
            json!({"id": self.ledger.len() + 1, "session_id": "20260102_1",
            "created_timestamp": 1_767_323_200_000_u64, "model": "m-2", "input_tokens": input,
            "output_tokens": output, "total_tokens": input + output, "cache_read_tokens": read,
            "cache_write_tokens": written, "cost": cost, "is_compaction": 0}),
        );
        self
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        self.row[name] = value;
        self
    }

    fn rows(&self) -> String {
        let messages = self.messages.iter().map(|row| ("messages", row));
        let ledger = self.ledger.iter().map(|row| ("usage_ledger", row));
        let all = messages.chain(ledger).chain([("sessions", &self.row)]);
        let line = |(table, row)| format!("{{\"table\":\"{table}\",\"row\":{row}}}\n");
        all.map(line).collect()
    }

    fn as_message(row: &Value) -> Value {
        json!({"id": row["message_id"], "role": row["role"], "created": row["created_timestamp"],
            "content": row["content_json"], "metadata": row["metadata_json"]})
    }

    fn export(&self) -> String {
        let mut value = self.row.clone();
        value["created_at"] = json!("2026-01-02T03:04:05Z");
        value["model_config"] = value["model_config_json"].take();
        let conversation = self.messages.iter().map(Self::as_message);
        value["conversation"] = conversation.collect();
        serde_json::to_string_pretty(&value).unwrap()
    }

    /// Returns the file of older versions.
    fn lines(&self) -> String {
        let header = json!({"working_dir": "/work/shop", "description": "Sell pears",
            "message_count": self.messages.len(), "total_tokens": 5,
            "accumulated_input_tokens": 100, "accumulated_output_tokens": 20});
        let messages = self.messages.iter().map(|row| {
            let mut message = Self::as_message(row);
            message.as_object_mut().unwrap().remove("id");
            message
        });
        let lines = [header].into_iter().chain(messages);
        lines.map(|line| format!("{line}\n")).collect()
    }

    fn read(&self) -> EventCollector {
        read_text(&self.rows()).1
    }
}

fn read_text(text: &str) -> (ReadReport, EventCollector) {
    assert!(Goose.recognises(&Source::from_bytes(PATH, text)), "{text}");
    read(&Goose, PATH, text.as_bytes()).unwrap()
}

fn keys(events: &EventCollector) -> Vec<String> {
    let events = events.main().unwrap().events.iter();
    events.map(|event| event.key().to_owned()).collect()
}

fn messages(events: &EventCollector) -> Vec<Message> {
    events
        .messages()
        .map(|event| event.message.clone())
        .collect()
}

fn usages(events: &EventCollector) -> Vec<UsageEvent> {
    let usage = |event: &Event| match event {
        Event::Usage(usage) => Some(usage.clone()),
        _ => None,
    };
    events
        .main()
        .unwrap()
        .events
        .iter()
        .filter_map(usage)
        .collect()
}

fn summaries(events: &EventCollector) -> Vec<(String, String)> {
    let summary = |event: &Event| match event {
        Event::Summary(summary) => Some((summary.key.clone(), summary.summary.clone())),
        _ => None,
    };
    events
        .main()
        .unwrap()
        .events
        .iter()
        .filter_map(summary)
        .collect()
}

fn response(id: &str, result: Value) -> Value {
    json!([{"type": "toolResponse", "id": id, "toolResult": result}])
}

fn usual() -> Session {
    let call = json!([{"type": "thinking", "thinking": "Hm", "signature": ""},
        {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success",
            "value": {"name": "shell", "arguments": {"command": "ls"}}}}]);
    let value = json!({"status": "success", "value": {"content": [{"type": "text", "text": "pears"}],
        "isError": false}});
    Session::new()
        .user("msg_20260102_1_0190aa", "Sell me a pear")
        .message("chatcmpl-1", "assistant", call)
        .message("msg_0190bb", "user", response("c1", value))
        .answer("chatcmpl-2", "Sold.")
}

#[test]
fn messages_calls_and_results_are_read_and_the_total_counts_once() {
    let (report, events) = read_text(&usual().rows());
    assert_eq!(events.session, "20260102_1");
    let keys = keys(&events);
    assert!(keys[0].starts_with("user-"), "{keys:?}");
    assert_eq!(keys[1..4], ["chatcmpl-1", "msg_0190bb", "chatcmpl-2"]);
    assert!(keys[4].ends_with("~usage"), "{keys:?}");
    let all = messages(&events);
    assert!(all[0].is_prompt());
    assert_eq!(all[2].role, Role::Tool);
    assert_eq!(
        events
            .messages()
            .filter(|event| event.message.is_prompt())
            .count(),
        1
    );
    let usage = &usages(&events)[0];
    assert_eq!(usage.usage, Usage::new(100, 20));
    assert_eq!(usage.cost_usd, None);
    let answers = events
        .messages()
        .filter(|event| event.response_id.is_some());
    let ids: Vec<_> = answers
        .filter_map(|event| event.response_id.clone())
        .collect();
    assert_eq!(ids, [usage.response_id.clone(), usage.response_id.clone()]);
    let details = &events.main().unwrap().details;
    assert_eq!(details.title.as_deref(), Some("Sell pears"));
    assert_eq!(details.model.as_deref(), Some("m-1"));
    assert_eq!(details.directory.as_deref(), Some(Path::new("/work/shop")));
    assert_eq!(
        details.started_at.unwrap().to_string(),
        "2026-01-02T03:04:05.000Z"
    );
    assert_eq!(
        events.messages().next().unwrap().at.unwrap().as_millis(),
        1_767_323_100_000
    );
    assert!(report.unknown.is_empty() && report.damage.count == 0);
}

#[test]
fn the_database_an_export_and_older_files_say_the_same() {
    let session = usual();
    let rows = session.read();
    assert_eq!(read_text(&session.export()).1, rows);
    let (_, old) = read(&Goose, "/s/20260102_1.jsonl", session.lines().as_bytes()).unwrap();
    assert_eq!(old.session, "20260102_1");
    assert_eq!(messages(&old), messages(&rows));
    assert_eq!(usages(&old)[0].usage, usages(&rows)[0].usage);
    // The first versions have no line about the session.
    let lines = session.lines();
    let (_, messages) = lines.split_once('\n').unwrap();
    assert_eq!(read_text(messages).1.messages().count(), 4);
}

#[test]
fn keys_stay_when_the_agent_stores_the_messages_again() {
    let before = keys(&usual().read());
    let mut again = usual();
    again.messages[0]["message_id"] = json!("msg_20260102_1_0190cc");
    again.messages[0]["content_json"] = json!([{"type": "text", "text": "Sell me a pear",
        "annotations": {}}]);
    for (at, message) in again.messages.iter_mut().enumerate() {
        message["id"] = json!(at + 50);
        message["metadata_json"] = json!({"userVisible": true, "agentVisible": false});
    }
    assert_eq!(keys(&again.read()), before);
    let twice = usual().user("msg_20260102_1_0190dd", "Sell me a pear");
    assert_eq!(keys(&twice.read())[4], format!("{}~2", before[0]));
}

#[test]
fn calls_fail_by_status_by_flag_and_by_exit_code() {
    let failed = |result: Value| {
        let session = Session::new().message("m1", "user", response("c1", result));
        let all = messages(&session.read());
        match &all[0].blocks[..] {
            [Block::ToolResult(result)] => (result.is_error, result.output.as_str().to_owned()),
            other => panic!("{other:?}"),
        }
    };
    let content = json!([{"type": "text", "text": "out"}]);
    let value = |more: Value| {
        let mut value = json!({"content": content, "isError": false});
        for (name, more) in more.as_object().unwrap() {
            value[name] = more.clone();
        }
        json!({"status": "success", "value": value})
    };
    assert_eq!(failed(value(json!({}))), (false, "\"out\"".to_owned()));
    assert!(failed(value(json!({"isError": true}))).0);
    assert!(failed(value(json!({"structuredContent": {"exit_code": 2}}))).0);
    assert!(!failed(value(json!({"structuredContent": {"exit_code": 0}}))).0);
    let error = failed(json!({"status": "error", "error": "refused"}));
    assert_eq!(error, (true, "\"refused\"".to_owned()));
    // Older versions have only the content.
    let old = failed(json!({"status": "success", "value": content}));
    assert_eq!(old, (false, "\"out\"".to_owned()));
}

#[test]
fn a_compaction_is_a_summary_and_its_copy_of_the_prompt_is_not_the_users() {
    let before = || usual().user("m5", "And plums");
    let note = "Your context was compacted.";
    let compacted = |sent: bool| {
        before()
            .seen(false, false)
            .user("m6", "Pears were sold.")
            .seen(false, sent)
            .answer("m7", note)
            .seen(false, sent)
            .user("m8", "And plums")
            .answer("m9", "No plums.")
    };
    let events = compacted(true).read();
    assert_eq!(
        summaries(&events),
        [("m6".to_owned(), "Pears were sold.".to_owned())]
    );
    let prompts: Vec<String> = messages(&events)
        .iter()
        .filter(|message| message.is_prompt())
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(prompts, ["Sell me a pear", "And plums"]);
    // What was there before stays as it was, also after the next compaction.
    let without_usage = |session: &Session| {
        let mut events = session.read().main().unwrap().events.clone();
        events.pop();
        events
    };
    let (first, second) = (without_usage(&before()), without_usage(&compacted(true)));
    assert!(second.starts_with(&first));
    assert_eq!(without_usage(&compacted(false)), second);
    // Something hidden without such a note is not a summary.
    let hidden = usual()
        .user("m5", "A hint")
        .seen(false, true)
        .answer("m6", "Fine");
    assert!(summaries(&hidden.read()).is_empty());
    assert!(messages(&hidden.read())[4].is_meta());
}

#[test]
fn calls_with_rows_of_their_own_are_counted_apart_and_the_rest_together() {
    let session = usual().call([60, 10, 30, 5], 0.25).call([20, 4, 0, 0], 0.5);
    let session = session.set("accumulated_cost", json!(1.0));
    let usages = usages(&session.read());
    assert_eq!(
        usages[0].usage,
        Usage::new(25, 10).cache_read(30).cache_creation(5)
    );
    assert_eq!(
        (usages[0].cost_usd, usages[0].model.as_deref()),
        (Some(0.25), Some("m-2"))
    );
    assert_eq!(usages[1].usage, Usage::new(20, 4));
    // 100 and 20 tokens, of which 80 and 14 have rows.
    assert_eq!(usages[2].usage.output_tokens, 6);
    assert_eq!(usages[2].cost_usd, Some(0.25));
    let ids: HashSet<_> = usages.iter().map(|usage| &usage.response_id).collect();
    assert_eq!(ids.len(), 3);
    // The total of a session that grew replaces the one before it.
    let grown = usual().set("accumulated_input_tokens", json!(150));
    let (before, after) = (
        &self::usages(&usual().read())[0],
        &self::usages(&grown.read())[0],
    );
    assert_eq!(before.response_id, after.response_id);
    assert_ne!(before.key, after.key);
}

#[test]
fn a_sub_agent_names_its_parent_and_empty_names_are_no_titles() {
    let child = usual()
        .set("session_type", json!("sub_agent"))
        .set("parent_session_id", json!("20260101_9"))
        .set("parent_delegation", json!({"tool_call_id": "c7"}))
        .set("name", json!("CLI Session"));
    let events = child.read();
    let main = events.main().unwrap();
    let spawned = Origin::Spawned {
        session: Some("20260101_9".to_owned()),
        tool_use_id: Some("c7".to_owned()),
    };
    assert_eq!(main.thread.origin, spawned);
    assert_eq!(main.details.tags, Some(vec!["sub_agent".to_owned()]));
    assert_eq!(main.details.title, None);
}

#[test]
fn what_is_unknown_or_damaged_is_counted_and_costs_nothing_else() {
    let content = json!([{"type": "hologram"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        {"type": "systemNotification", "msg": "x"}, {"type": "redactedThinking", "data": "x"}]);
    let session = usual()
        .message("m5", "assistant", content)
        .message("m6", "robot", json!([]))
        .message("m7", "user", json!("text"))
        .message(
            "m8",
            "assistant",
            json!([{"type": "toolRequest", "id": "c2",
            "toolCall": {"status": "error", "error": "not JSON"}}]),
        );
    let text = session.rows()
        + "{\"table\":\"threads\",\"row\":{}}\n{\"table\":\"messages\",\"rowid\":7,\"damaged\":\"x\"}\n";
    let (report, events) = read_text(&text);
    let unknown: Vec<_> = report.unknown.keys().map(String::as_str).collect();
    assert_eq!(unknown, ["content: hologram", "table: threads"]);
    assert_eq!(report.damage.count, 3, "{:?}", report.damage);
    let all = messages(&events);
    assert!(matches!(&all[4].blocks[1], Block::Media(media) if media.kind == "image"));
    assert!(matches!(&all[5].blocks[0], Block::ToolUse(call) if call.extra.get("error").is_some()));
}

#[test]
fn other_files_are_not_recognised() {
    for other in [
        "{\"table\":\"messages\",\"row\":{\"id\":1,\"session_id\":\"s\",\"role\":\"user\",\"parts\":[]}}",
        "{\"table\":\"sessions\",\"row\":{\"id\":1,\"message_count\":1}}",
        "{\"role\":\"user\",\"content\":[]}",
        "{\"role\":\"user\",\"created\":1,\"content\":[],\"api\":\"x\"}",
        "{\"id\":1,\"conversation\":[]}",
        "{\"type\":\"session\",\"working_dir\":\"/\",\"message_count\":1}",
    ] {
        assert!(
            !Goose.recognises(&Source::from_bytes(PATH, other)),
            "{other}"
        );
    }
}

#[test]
fn a_thousand_hidden_messages_are_read() {
    let mut session = Session::new();
    for at in 0..1_000 {
        session = session.user(&format!("m{at}"), "text").seen(false, true);
    }
    assert_eq!(session.read().messages().count(), 1_000);
}

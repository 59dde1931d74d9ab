use backtrail::{Block, Message, Usage};
use serde_json::{Value, json};

use super::*;
use crate::collector::EventCollector;
use crate::event::{Event, MessageEvent, Origin, SummaryEvent, UsageEvent};
use crate::testing::{self, read};

const PATH: &str = "/home/u/.local/share/opencode/opencode.db/ses_1.jsonl";

/// A session that is put together for a test: its messages with their parts.
#[derive(Debug, Clone)]
struct Session {
    info: Value,
    messages: Vec<(Value, Vec<Value>)>,
}

impl Session {
    fn new() -> Self {
        let info = json!({"id": "ses_1", "slug": "calm-fox", "projectID": "p1",
            "directory": "/work/shop", "title": "Sell pears", "version": "1.18.0",
            "model": {"id": "m-2", "providerID": "test"},
            "time": {"created": 1_760_000_000_000_u64, "updated": 1_760_000_900_000_u64}});
        Self {
            info,
            messages: Vec::new(),
        }
    }

    /// Adds a prompt.
    fn user(mut self, id: &str, at: u64, parts: &[Value]) -> Self {
        let info = json!({"id": id, "sessionID": "ses_1", "role": "user", "agent": "build",
            "time": {"created": time(at)}, "model": {"providerID": "test", "modelID": "m-1"}});
        self.messages.push((info, parts.to_vec()));
        self
    }

    /// Adds an answer. `more` replaces or adds fields.
    fn answer(mut self, id: &str, at: u64, more: Value, parts: &[Value]) -> Self {
        let mut info = json!({"id": id, "sessionID": "ses_1", "role": "assistant", "mode": "build",
            "parentID": "msg_a", "path": {"cwd": "/work/shop", "root": "/work"}, "modelID": "m-2",
            "providerID": "test", "cost": 0, "time": {"created": time(at)},
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}});
        for (name, value) in more.as_object().unwrap() {
            info[name] = value.clone();
        }
        self.messages.push((info, parts.to_vec()));
        self
    }

    /// Adds an answer that is complete.
    fn done(self, id: &str, at: u64, parts: &[Value]) -> Self {
        let more = json!({"time": {"created": time(at), "completed": time(at + 5)},
            "finish": "stop", "cost": 0.25,
            "tokens": {"input": 10, "output": 4, "reasoning": 3, "cache": {"read": 7, "write": 2}}});
        self.answer(id, at, more, parts)
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        self.info[name] = value;
        self
    }

    /// Returns the rows of the database.
    fn rows(&self) -> String {
        let mut lines = String::new();
        for (info, parts) in &self.messages {
            let mut data = info.clone();
            let id = take(&mut data, "id");
            take(&mut data, "sessionID");
            let row = json!({"id": id, "session_id": "ses_1", "time_created": 1,
                "time_updated": 2, "data": data});
            push(&mut lines, "message", row);
            for part in parts {
                let mut data = part.clone();
                let part = take(&mut data, "id");
                let row = json!({"id": part, "message_id": id, "session_id": "ses_1",
                    "time_created": 1_760_000_000_000_u64, "time_updated": 1_760_000_000_000_u64,
                    "data": data});
                push(&mut lines, "part", row);
            }
        }
        let info = &self.info;
        let row = json!({"id": info["id"], "project_id": "p1", "parent_id": info["parentID"],
            "slug": "calm-fox", "directory": info["directory"], "title": info["title"],
            "version": "1.18.0", "revert": info["revert"], "agent": info["agent"],
            "model": info["model"], "time_created": info["time"]["created"],
            "time_updated": info["time"]["updated"], "fork_session_id": info["forkSessionID"]});
        push(&mut lines, "session", row);
        lines
    }

    /// Returns the export.
    fn export(&self) -> String {
        let messages = self.messages.iter();
        let messages = messages.map(|(info, parts)| json!({"info": info, "parts": parts}));
        let messages: Vec<Value> = messages.collect();
        format!(
            "{{\n  \"info\": {},\n  \"messages\": {}\n}}",
            self.info,
            json!(messages)
        )
    }

    /// Returns the files of older versions.
    fn files(&self) -> String {
        let mut lines = String::new();
        let mut file = |path: String, value: &Value| {
            let text = serde_json::to_string_pretty(value).unwrap();
            lines += &format!("{{\"file\":{},\"text\":{}}}\n", json!(path), json!(text));
        };
        for (info, parts) in &self.messages {
            let id = info["id"].as_str().unwrap();
            file(format!("message/ses_1/{id}.json"), info);
            for part in parts {
                file(
                    format!("part/{id}/{}.json", part["id"].as_str().unwrap()),
                    part,
                );
            }
        }
        file("session/p1/ses_1.json".to_owned(), &self.info);
        lines
    }

    fn read(&self) -> EventCollector {
        read_text(&self.rows()).1
    }
}

fn time(second: u64) -> u64 {
    1_760_000_000_000 + second * 1_000
}

fn take(value: &mut Value, name: &str) -> Value {
    value
        .as_object_mut()
        .unwrap()
        .remove(name)
        .unwrap_or(Value::Null)
}

fn push(lines: &mut String, table: &str, row: Value) {
    *lines += &format!("{{\"table\":\"{table}\",\"row\":{row}}}\n");
}

fn read_text(text: &str) -> (ReadReport, EventCollector) {
    assert!(
        OpenCode.recognises(&Source::from_bytes(PATH, text)),
        "{text}"
    );
    read(&OpenCode, PATH, text.as_bytes()).unwrap()
}

fn text(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "text", "text": text, "time": {"start": time(1), "end": time(2)}})
}

fn tool(id: &str, call: &str, state: Value) -> Value {
    json!({"id": id, "type": "tool", "tool": "bash", "callID": call, "state": state})
}

fn ran(id: &str, call: &str, output: &str, exit: i64) -> Value {
    tool(
        id,
        call,
        json!({"status": "completed", "input": {"command": "ls"}, "output": output,
        "metadata": {"exit": exit}, "time": {"start": time(3), "end": time(4)}}),
    )
}

fn keys(events: &EventCollector) -> Vec<String> {
    let events = events.main().map_or(&[][..], |main| &main.events);
    events.iter().map(|event| event.key().to_owned()).collect()
}

fn messages(events: &EventCollector) -> Vec<Message> {
    events
        .messages()
        .map(|event| event.message.clone())
        .collect()
}

fn usages(events: &EventCollector) -> Vec<UsageEvent> {
    let events = events.main().unwrap().events.iter();
    let usage = |event: &Event| match event {
        Event::Usage(usage) => Some(usage.clone()),
        _ => None,
    };
    events.filter_map(usage).collect()
}

fn summaries(events: &EventCollector) -> Vec<SummaryEvent> {
    let events = events.main().unwrap().events.iter();
    let summary = |event: &Event| match event {
        Event::Summary(summary) => Some(summary.clone()),
        _ => None,
    };
    events.filter_map(summary).collect()
}

/// A session with everything that an answer usually has.
fn usual() -> Session {
    Session::new()
        .user("msg_a", 0, &[json!({"id": "prt_a1", "type": "text", "text": "Sell me a pear"})])
        .done("msg_b", 1, &[
            json!({"id": "prt_b1", "type": "step-start", "snapshot": "s"}),
            json!({"id": "prt_b2", "type": "reasoning", "text": "Which pear?",
                "metadata": {"anthropic": {"signature": "sig"}},
                "time": {"start": time(1), "end": time(2)}}),
            text("prt_b3", "Let me look."),
            ran("prt_b4", "c1", "pears\n", 0),
            ran("prt_b5", "c2", "no plums\n", 2),
            json!({"id": "prt_b6", "type": "step-finish", "reason": "tool-calls", "cost": 0.25,
                "tokens": {"input": 10, "output": 4, "reasoning": 3, "cache": {"read": 7, "write": 2}}}),
            json!({"id": "prt_b7", "type": "patch", "hash": "h", "files": []}),
        ])
}

#[test]
fn an_answer_becomes_its_parts_its_calls_their_results_and_one_usage() {
    let (report, events) = read_text(&usual().rows());
    assert_eq!(events.session, "ses_1");
    assert_eq!(
        keys(&events),
        [
            "msg_a",
            "prt_b2",
            "prt_b3",
            "prt_b4",
            "prt_b5",
            "prt_b4/result",
            "prt_b5/result",
            "msg_b/usage"
        ]
    );
    let all = messages(&events);
    assert!(all[0].is_prompt());
    let Block::Thinking(thought) = &all[1].blocks[0] else {
        panic!("{:?}", all[1]);
    };
    assert_eq!(thought.signature.as_deref(), Some("sig"));
    let failed: Vec<bool> = all
        .iter()
        .flat_map(|message| &message.blocks)
        .filter_map(|block| match block {
            Block::ToolResult(result) => Some(result.is_error),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [false, true]);
    let usage = &usages(&events)[0];
    let expected = Usage::new(10, 7)
        .cache_read(7)
        .cache_creation(2)
        .reasoning(3);
    assert_eq!(usage.usage, expected);
    assert_eq!(usage.cost_usd, Some(0.25));
    assert_eq!(usage.model.as_deref(), Some("m-2"));
    let answers = || events.messages().filter(|event| event.model.is_some());
    assert_eq!(answers().count(), 4);
    let of_usage = |event: &MessageEvent| event.response_id.as_deref() == Some(&*usage.response_id);
    assert!(answers().all(of_usage));
    let details = &events.main().unwrap().details;
    assert_eq!(details.title.as_deref(), Some("Sell pears"));
    assert_eq!(details.model.as_deref(), Some("m-2"));
    assert_eq!(details.directory.as_deref(), Some(Path::new("/work/shop")));
    assert_eq!(
        details.started_at.map(|at| at.as_millis()),
        Some(1_760_000_000_000)
    );
    assert!(report.unknown.is_empty() && report.damage.count == 0 && !report.unfinished);
}

#[test]
fn the_database_an_export_and_older_files_say_the_same() {
    let session = usual().user("msg_c", 9, &[text("prt_c1", "Thanks")]);
    let rows = session.read();
    assert_eq!(read_text(&session.export()).1, rows);
    assert_eq!(read_text(&session.files()).1, rows);
}

/// Checks that a session only ever grows as it is written.
fn assert_grows(states: &[Session]) {
    let mut before: Vec<Event> = Vec::new();
    for state in states {
        let events = state.read().main().unwrap().events.clone();
        assert!(
            events.starts_with(&before),
            "{before:#?}\n then {events:#?}"
        );
        before = events;
    }
}

#[test]
fn events_are_only_appended_while_an_answer_is_written() {
    let prompt = || Session::new().user("msg_a", 0, &[text("prt_a1", "Sell me a pear")]);
    let step = json!({"id": "prt_b1", "type": "step-start"});
    let finish =
        json!({"id": "prt_b9", "type": "step-finish", "tokens": {"input": 1, "output": 2}});
    let open = |parts: &[Value]| prompt().answer("msg_b", 1, json!({}), parts);
    let half = json!({"id": "prt_b2", "type": "text", "text": "Let", "time": {"start": time(1)}});
    let whole = text("prt_b2", "Let me look.");
    let pending = |id| {
        tool(
            id,
            id,
            json!({"status": "pending", "input": {}, "raw": "{\"com"}),
        )
    };
    let running = |id| {
        tool(
            id,
            id,
            json!({"status": "running", "input": {"command": "ls"},
        "time": {"start": time(3)}}),
        )
    };
    let ran = |id| ran(id, id, "pears", 0);
    let states = [
        prompt(),
        open(&[]),
        open(&[step.clone(), half.clone()]),
        open(&[step.clone(), whole.clone()]),
        open(&[step.clone(), whole.clone(), pending("prt_b3")]),
        open(&[step.clone(), whole.clone(), running("prt_b3")]),
        open(&[
            step.clone(),
            whole.clone(),
            running("prt_b3"),
            pending("prt_b4"),
        ]),
        open(&[
            step.clone(),
            whole.clone(),
            ran("prt_b3"),
            running("prt_b4"),
        ]),
        open(&[step.clone(), whole.clone(), ran("prt_b3"), ran("prt_b4")]),
        open(&[
            step.clone(),
            whole.clone(),
            ran("prt_b3"),
            ran("prt_b4"),
            finish.clone(),
        ]),
        prompt().done(
            "msg_b",
            1,
            &[step, whole, ran("prt_b3"), ran("prt_b4"), finish],
        ),
    ];
    assert_grows(&states);
    // What is final is there at once.
    let shown = |at: usize| keys(&states[at].read());
    assert_eq!(shown(0), ["msg_a"]);
    assert_eq!(shown(2), ["msg_a"]);
    assert_eq!(shown(5), ["msg_a", "prt_b2", "prt_b3"]);
    assert_eq!(shown(7), ["msg_a", "prt_b2", "prt_b3", "prt_b4"]);
    assert_eq!(shown(9).len(), 6);
    assert!(read_text(&states[5].rows()).0.unfinished);
}

#[test]
fn a_prompt_is_not_sent_before_all_of_it_is_written() {
    let session = Session::new().user("msg_a", 0, &[text("prt_a1", "See this")]);
    let early = json!({"created": 1, "updated": 1_759_999_999_999_u64});
    assert!(keys(&session.clone().set("time", early.clone()).read()).is_empty());
    assert_eq!(keys(&session.clone().read()), ["msg_a"]);
    // An answer shows that it is complete.
    let answered = session
        .set("time", early)
        .answer("msg_b", 1, json!({}), &[]);
    assert_eq!(keys(&answered.read()), ["msg_a"]);
}

#[test]
fn a_queued_prompt_waits_for_the_answer_before_it() {
    let running = tool("prt_b1", "c1", json!({"status": "running", "input": {}}));
    let session = Session::new()
        .user("msg_a", 0, &[text("prt_a1", "First")])
        .answer("msg_b", 1, json!({}), &[running])
        .user("msg_c", 2, &[text("prt_c1", "Second")]);
    assert_eq!(keys(&session.read()), ["msg_a", "prt_b1"]);
    // The next answer shows that the one before it was interrupted.
    let resumed = session.done("msg_d", 3, &[text("prt_d1", "Done")]);
    assert_eq!(keys(&resumed.read())[2..4], ["msg_c", "prt_d1"]);
}

#[test]
fn a_copy_of_an_unfinished_answer_is_sent_whole_under_other_keys() {
    let half =
        json!({"id": "prt_b1", "type": "text", "text": "Let me", "time": {"start": time(1)}});
    let session = Session::new()
        .user("msg_a", 0, &[text("prt_a1", "Sell")])
        .answer("msg_b", 1, json!({}), &[half]);
    assert_eq!(keys(&session.read()), ["msg_a"]);
    let copied = keys(&read_text(&session.files()).1);
    assert_eq!(copied.len(), 2);
    assert!(copied[1].starts_with("prt_b1~"), "{copied:?}");
}

#[test]
fn what_was_reverted_is_not_sent() {
    let session = usual()
        .user("msg_c", 9, &[text("prt_c1", "And plums")])
        .done(
            "msg_d",
            10,
            &[text("prt_d1", "No plums."), text("prt_d2", "Really.")],
        );
    let whole = keys(&session.read());
    let cut = |revert: Value| keys(&session.clone().set("revert", revert).read());
    assert_eq!(
        cut(json!({"messageID": "msg_c", "snapshot": "s"})),
        whole[..8]
    );
    assert_eq!(
        cut(json!({"messageID": "msg_d", "partID": "prt_d2"}))[..],
        {
            let mut kept = whole[..10].to_vec();
            kept.push("msg_d/usage".to_owned());
            kept
        }
    );
    assert_eq!(cut(json!({"messageID": "msg_gone"})), whole);
    assert_eq!(cut(Value::Null), whole);
}

#[test]
fn a_compaction_keeps_the_messages_from_its_tail_on() {
    let compaction = |tail: Value| {
        json!({"id": "prt_e1", "type": "compaction", "auto": true,
        "tail_start_id": tail})
    };
    let session = |tail: Value, more: Value| {
        let mut summary = json!({"summary": true, "mode": "compaction", "finish": "stop",
            "time": {"created": time(21), "completed": time(22)}, "cost": 0.5,
            "tokens": {"input": 5, "output": 6}});
        for (name, value) in more.as_object().unwrap() {
            summary[name] = value.clone();
        }
        usual()
            .user("msg_c", 9, &[text("prt_c1", "And plums")])
            .done("msg_d", 10, &[text("prt_d1", "No plums.")])
            .user("msg_e", 20, &[compaction(tail)])
            .answer(
                "msg_f",
                21,
                summary,
                &[
                    text("prt_f1", "Pears were sold."),
                    text("prt_f2", "No plums."),
                ],
            )
            .user(
                "msg_g",
                23,
                &[json!({"id": "prt_g1", "type": "text", "text": "Continue",
                "synthetic": true})],
            )
    };
    let events = session(json!("msg_c"), json!({})).read();
    let summary = &summaries(&events)[0];
    assert_eq!(summary.summary, "Pears were sold.\n\nNo plums.");
    assert_eq!(summary.keep, 2);
    assert_eq!(summary.key, "msg_f");
    assert_eq!(usages(&events)[2].usage.input_tokens, 5);
    assert!(messages(&events).last().unwrap().is_meta());
    assert_eq!(
        summaries(&session(Value::Null, json!({})).read())[0].keep,
        0
    );
    // One that failed, or is not written yet, replaces nothing.
    let failed = session(json!("msg_c"), json!({"error": {"name": "APIError"}})).read();
    assert!(summaries(&failed).is_empty());
    assert!(keys(&failed).contains(&"prt_f1".to_owned()));
    let mut open = session(json!("msg_c"), json!({"time": {"created": time(21)}}));
    open.messages.pop();
    assert!(summaries(&open.read()).is_empty());
    assert!(!keys(&open.read()).contains(&"prt_f1".to_owned()));
}

#[test]
fn steps_of_older_answers_are_added_up_and_end_their_calls() {
    let finish = |id: &str, input: u64| {
        json!({"id": id, "type": "step-finish", "cost": 0.1,
        "tokens": {"input": input, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}})
    };
    let session = Session::new()
        .user("msg_a", 0, &[text("prt_a1", "Go")])
        .done(
            "msg_b",
            1,
            &[
                ran("prt_b1", "c1", "one", 0),
                finish("prt_b2", 100),
                json!({"id": "prt_b3", "type": "step-start"}),
                ran("prt_b4", "c2", "two", 0),
                finish("prt_b5", 20),
            ],
        );
    let events = session.read();
    assert_eq!(
        keys(&events)[1..5],
        ["prt_b1", "prt_b1/result", "prt_b4", "prt_b4/result"]
    );
    assert_eq!(usages(&events).len(), 1);
    assert_eq!(usages(&events)[0].usage, Usage::new(120, 2));
    assert_eq!(usages(&events)[0].cost_usd, Some(0.25));
}

#[test]
fn a_prompt_is_one_message_and_what_the_agent_added_is_not_the_users() {
    let session = Session::new()
        .user("msg_a", 0, &[
            json!({"id": "prt_a1", "type": "text", "text": "Look at this"}),
            json!({"id": "prt_a2", "type": "text", "text": "Called Read", "synthetic": true}),
            json!({"id": "prt_a3", "type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD"}),
            json!({"id": "prt_a4", "type": "file", "mime": "text/plain", "filename": "a.txt",
                "url": "file:///work/a.txt"}),
            json!({"id": "prt_a5", "type": "text", "text": "not for the model", "ignored": true}),
            json!({"id": "prt_a6", "type": "agent", "name": "explore"}),
        ])
        .user("msg_b", 1, &[json!({"id": "prt_b1", "type": "subtask", "prompt": "Count pears",
            "description": "count", "agent": "general"})]);
    let events = session.read();
    assert_eq!(keys(&events), ["msg_a", "prt_a2", "prt_a5", "msg_b"]);
    let all = messages(&events);
    let prompts: Vec<bool> = all.iter().map(Message::is_prompt).collect();
    assert_eq!(prompts, [true, false, false, true]);
    let blocks = &all[0].blocks;
    assert!(matches!(&blocks[1], Block::Media(media) if media.kind == "image"));
    assert!(
        matches!(&blocks[2], Block::Other(json) if json.as_str().contains("file:///work/a.txt"))
    );
}

#[test]
fn attachments_of_a_result_and_errors_of_calls_and_answers_are_kept() {
    let image = json!({"type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD"});
    let session = Session::new()
        .user("msg_a", 0, &[text("prt_a1", "Go")])
        .done(
            "msg_b",
            1,
            &[
                tool(
                    "prt_b1",
                    "c1",
                    json!({"status": "completed", "input": {}, "output": "a picture",
            "attachments": [image], "time": {"start": time(1), "end": time(2)}}),
                ),
                tool(
                    "prt_b2",
                    "c2",
                    json!({"status": "error", "input": {}, "error": "not allowed",
            "time": {"start": time(1), "end": time(2)}}),
                ),
                tool("prt_b3", "c3", json!({"status": "running", "input": {}})),
            ],
        )
        .answer(
            "msg_c",
            5,
            json!({"error": {"name": "MessageAbortedError"},
        "time": {"created": time(5), "completed": time(6)}}),
            &[],
        );
    let events = session.read();
    let all = messages(&events);
    let results: Vec<_> = all
        .iter()
        .flat_map(|message| &message.blocks)
        .filter_map(|block| match block {
            Block::ToolResult(result) => Some((result.output.as_str().to_owned(), result.is_error)),
            _ => None,
        })
        .collect();
    assert!(results[0].0.contains("image/png"), "{results:?}");
    assert_eq!(results[1], ("\"not allowed\"".to_owned(), true));
    assert_eq!(results.len(), 2);
    let error = all.last().unwrap().extra.get("error").unwrap();
    assert!(error.as_str().contains("MessageAbortedError"));
}

#[test]
fn a_session_names_its_parent_or_the_session_it_is_a_copy_of() {
    let child = usual()
        .set("parentID", json!("ses_0"))
        .set("agent", json!("general"));
    let spawned = Origin::Spawned {
        session: Some("ses_0".to_owned()),
        tool_use_id: None,
    };
    for events in [child.read(), read_text(&child.export()).1] {
        let main = events.main().unwrap();
        assert_eq!(main.thread.origin, spawned);
        assert_eq!(main.details.tags, Some(vec!["general".to_owned()]));
    }
    let fork = usual().set("forkSessionID", json!("ses_0"));
    let copy = Origin::Copy {
        session: "ses_0".to_owned(),
    };
    assert_eq!(fork.read().main().unwrap().thread.origin, copy);
    let unnamed = usual().set("title", json!("New session - 2026-11-16T06:55:09.674Z"));
    assert_eq!(unnamed.read().main().unwrap().details.title, None);
}

#[test]
fn a_copied_answer_counts_once_and_another_one_of_the_same_moment_counts() {
    let one = usual();
    let mut copy = one.clone();
    copy.messages[1].0["id"] = json!("msg_z");
    copy.messages[1].0["parentID"] = json!("msg_y");
    for part in &mut copy.messages[1].1 {
        part["id"] = json!(part["id"].as_str().unwrap().replace("prt_b", "prt_z"));
    }
    let id = |session: &Session| usages(&session.read())[0].response_id.clone();
    assert_eq!(id(&one), id(&copy));
    // Its parts may vanish.
    copy.messages[1].1.truncate(1);
    assert_eq!(id(&one), id(&copy));
    // Sub-agents work in the same moment.
    let sub_agent = |name: &str| {
        let session = one.clone().set("parentID", json!("ses_0"));
        session.set("id", json!(name))
    };
    assert_ne!(id(&sub_agent("ses_a")), id(&sub_agent("ses_b")));
    assert_ne!(id(&sub_agent("ses_a")), id(&one));
}

#[test]
fn what_is_unknown_or_damaged_is_counted_and_costs_nothing_else() {
    let mut rows = usual().rows();
    let message = |id: &str, data: &str| {
        format!(
            "{{\"table\":\"message\",\"row\":{{\"id\":\"{id}\",\"session_id\":\"ses_1\",\"data\":{data}}}}}\n"
        )
    };
    let part = |data: &str| {
        format!(
            "{{\"table\":\"part\",\"row\":{{\"id\":\"prt_x\",\"message_id\":\"msg_x\",\"data\":{data}}}}}\n"
        )
    };
    let added = [
        message("msg_v", r#"{"role":"robot"}"#),
        message("msg_w", r#"{"time":{}}"#),
        message("msg_w", "null"),
        message("msg_x", r#"{"role":"assistant","time":{"created":1,"completed":2}}"#),
        part(r#"{"type":"hologram"}"#),
        part("[]"),
        part(r#"{"type":"text"}"#),
        part(r#"{"type":"tool","callID":"c"}"#),
        part(r#""{\n\"type\": \"text\", \"text\": \"still read\"}""#),
        "{\"table\":\"part\",\"row\":{\"id\":\"prt_y\",\"message_id\":\"msg_gone\",\"data\":{\"type\":\"text\",\"text\":\"t\"}}}\n".to_owned(),
        "{\"table\":\"todo\",\"row\":{}}\n".to_owned(),
        "{\"table\":\"session_message\",\"row\":{}}\n".to_owned(),
        "{\"table\":\"part\",\"rowid\":7,\"damaged\":\"a bad page\"}\n".to_owned(),
        "{}\n".to_owned(),
    ];
    rows += &added.concat();
    let (report, events) = read_text(&rows);
    let unknown: Vec<_> = report
        .unknown
        .iter()
        .map(|(kind, n)| (kind.as_str(), *n))
        .collect();
    assert_eq!(
        unknown,
        [
            ("message: robot", 1),
            ("part: hologram", 1),
            ("table: session_message", 1)
        ]
    );
    assert_eq!(report.damage.count, 8, "{:?}", report.damage);
    assert!(keys(&events).contains(&"prt_x".to_owned()));
}

#[test]
fn repeated_ids_get_keys_of_their_own() {
    let session = usual();
    let mut twice = session.clone();
    twice.messages.extend(session.messages.clone());
    let keys = keys(&twice.read());
    assert_eq!(keys.len(), 16);
    assert_eq!(keys[8], "msg_a~2");
}

#[test]
fn other_files_are_not_recognised() {
    for other in [
        "{\"table\":\"messages\",\"row\":{\"id\":1,\"session_id\":\"s\",\"content_json\":[]}}",
        "{\"table\":\"sessions\",\"row\":{\"id\":1}}",
        "{\"table\":\"message\",\"row\":{\"id\":1}}",
        "{\"file\":\"other/a.json\",\"text\":\"{}\"}",
        "{\"info\":{\"id\":1},\"messages\":[]}",
        "{\"messages\":[]}",
        "",
    ] {
        assert!(
            !OpenCode.recognises(&Source::from_bytes(PATH, other)),
            "{other}"
        );
    }
}

#[test]
fn a_huge_answer_takes_time_in_proportion() {
    let parts: Vec<Value> = (0..20_000)
        .map(|n| ran(&format!("prt_{n:06}"), "c", "x", 0))
        .collect();
    let session = Session::new().done("msg_b", 1, &parts);
    assert_eq!(keys(&session.read()).len(), 40_001);
}

/// Writes the files of older versions.
fn write_files(session: &Session, storage: &Path) -> PathBuf {
    for line in session.files().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let path = storage.join(line["file"].as_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, line["text"].as_str().unwrap()).unwrap();
    }
    storage.join("session/p1/ses_1.json")
}

#[test]
fn a_session_of_many_files_is_found_and_read_as_one() {
    let home = tempfile::tempdir().unwrap();
    let storage = home.path().join("storage");
    let session = usual().set("parentID", json!("ses_0"));
    let path = write_files(&session, &storage);
    assert!(OpenCode.is_session_file(&path));
    assert!(OpenCode.recognises(&Source::open(&path).unwrap()));
    assert!(OpenCode.accompanies_session(&storage.join("part/msg_b/prt_b1.json")));
    assert!(OpenCode.accompanies_session(&storage.join("message/ses_1/msg_a.json")));
    assert!(!OpenCode.accompanies_session(&path));
    let contents = || {
        OpenCode
            .container(&path)
            .unwrap()
            .unwrap()
            .contents()
            .unwrap()
    };
    let before = contents();
    assert!(before.sessions[0].is_sub_agent);
    let read = || testing::read_sessions(&OpenCode, &path).unwrap().remove(0);
    assert_eq!(read().1, session.read());
    assert_eq!(contents(), before);
    // A part that changed is noticed, and one that cannot be read is counted.
    std::fs::write(storage.join("part/msg_b/prt_b3.json"), b"\xff").unwrap();
    assert_ne!(contents(), before);
    let (report, events) = read();
    assert_eq!(report.damage.count, 1);
    assert_eq!(
        events.messages().count(),
        session.read().messages().count() - 1
    );
}

#[test]
fn an_id_does_not_lead_out_of_its_folder() {
    let home = tempfile::tempdir().unwrap();
    let storage = home.path().join("storage");
    let mut session = usual();
    let path = write_files(&session, &storage);
    session.info["id"] = json!("../part/msg_b");
    session.messages[0].0["id"] = json!("../../..");
    write_files(&session, &storage);
    let (report, events) = testing::read_sessions(&OpenCode, &path).unwrap().remove(0);
    assert_eq!(report.damage.count, 0);
    assert!(events.messages().count() >= 6);
}

use backtrail::{Block, Role};
use proptest::prelude::*;

use super::*;
use crate::collector::EventCollector;
use crate::event::Event;
use crate::testing::{check, read};

const PATH: &str = "/g/tmp/shop/chats/session-2026-02-03T04-05-0123abcd.jsonl";

const HEADER: &str = r#"{"sessionId":"0123abcd-1","projectHash":"ffee","startTime":"2026-02-03T04:05:06.789Z","lastUpdated":"2026-02-03T04:05:06.789Z","kind":"main"}"#;

fn lines(lines: &[&str]) -> String {
    let mut all = HEADER.to_owned() + "\n";
    lines.iter().for_each(|line| all = format!("{all}{line}\n"));
    all
}

fn said(id: &str, kind: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-02-03T04:06:00.000Z","type":"{kind}","content":"{text}"}}"#
    )
}

fn set(messages: &[String]) -> String {
    format!(r#"{{"$set":{{"messages":[{}]}}}}"#, messages.join(","))
}

fn collected(text: &str) -> EventCollector {
    read(&GeminiCli, PATH, text.as_bytes()).unwrap().1
}

fn texts(collected: &EventCollector) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Message(said) => said.message.text().into_owned(),
        Event::Summary(summarised) => format!("[{}|{}]", summarised.summary, summarised.keep),
        Event::Usage(_) => "(used)".to_owned(),
    };
    collected.main().unwrap().events.iter().map(text).collect()
}

#[test]
fn the_last_line_of_a_message_counts_at_the_position_of_the_first() {
    let call = |rest: &str| {
        format!(
            r#"{{"id":"g","timestamp":"2026-02-03T04:07:00Z","type":"gemini","content":"","thoughts":[{{"subject":"Plan","description":"look","timestamp":"x"}}],"tokens":{{"input":100,"output":7,"cached":60,"thoughts":3,"tool":5,"total":115}},"model":"gemini-x","toolCalls":[{{"id":"c","name":"ls","args":{{"dir":"."}},"timestamp":"2026-02-03T04:07:05Z",{rest}}}]}}"#
        )
    };
    let text = lines(&[
        &said("u", "user", "list"),
        &call(r#""status":"executing""#),
        r#"{"id":"r","timestamp":"x","type":"user","content":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a.txt"}}}]}"#,
        &call(
            r#""status":"error","result":[{"functionResponse":{"id":"c","name":"ls","response":{"error":"gone"}}}]"#,
        ),
        r#"{"$set":{"summary":"Listing files","lastUpdated":"y","directories":["/home/me/shop"]}}"#,
        &said("i", "info", "Cancelled."),
    ]);
    let (report, collected) = read(&GeminiCli, PATH, text.as_bytes()).unwrap();
    assert_eq!(collected.session, "0123abcd-1");
    assert_eq!((report.damage.count, report.unknown.len()), (0, 0));
    let main = collected.main().unwrap();
    assert_eq!(main.details.title.as_deref(), Some("Listing files"));
    assert_eq!(main.details.model.as_deref(), Some("gemini-x"));
    assert_eq!(
        main.details.directory.as_deref(),
        Some("/home/me/shop".as_ref())
    );
    let messages: Vec<_> = collected.messages().collect();
    let roles: Vec<_> = messages
        .iter()
        .map(|said| said.message.role.clone())
        .collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
    let usage = messages[1].message.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (45, 10));
    assert_eq!((usage.cache_read_input_tokens, usage.total()), (60, 115));
    assert_eq!(usage.reasoning_output_tokens, Some(3));
    assert!(
        matches!(&messages[1].message.blocks[0], Block::Thinking(t) if t.thinking.as_str() == "Plan\n\nlook")
    );
    assert!(
        matches!(&messages[1].message.blocks[1], Block::ToolUse(call) if call.input.as_str() == r#"{"dir":"."}"#)
    );
    assert!(
        matches!(&messages[2].message.blocks[0], Block::ToolResult(r) if r.is_error && r.output.as_str() == "\"gone\"")
    );
    assert_eq!(messages[2].key, format!("{}/results", messages[1].key));
    assert!(messages[3].message.is_meta());
}

#[test]
fn a_message_that_changed_has_another_key_and_one_that_did_not_has_the_same() {
    let key = |text: &str| {
        collected(&lines(&[text]))
            .messages()
            .next()
            .unwrap()
            .key
            .clone()
    };
    let first = key(&said("u", "user", "one"));
    assert_ne!(first, key(&said("u", "user", "two")));
    assert_eq!(
        first,
        key(&said("u", "user", "one").replace("\":", "\" : "))
    );
}

#[test]
fn a_rewind_removes_that_message_and_all_after_it() {
    let text = [
        said("a", "user", "one"),
        said("b", "gemini", "two"),
        said("c", "user", "three"),
        r#"{"$rewindTo":"b"}"#.to_owned(),
        said("d", "gemini", "other"),
    ];
    let text: Vec<&str> = text.iter().map(String::as_str).collect();
    assert_eq!(texts(&collected(&lines(&text))), ["one", "other"]);
    let unknown = text.join("\n").replace("To\":\"b\"", "To\":\"nobody\"");
    assert_eq!(texts(&collected(&lines(&[&unknown]))), ["other"]);
}

#[test]
fn a_list_that_replaces_all_messages_is_a_summary_a_rewind_or_nothing_new() {
    let before = [
        said("a", "user", "one"),
        said("b", "gemini", "two"),
        said("n", "info", "note"),
        said("c", "user", "three"),
    ];
    let texts_of = |list: &[String]| {
        let text = format!(
            "{}\n{}\n{}",
            before.join("\n"),
            set(list),
            said("z", "user", "on")
        );
        texts(&collected(&lines(&[&text])))
    };
    // Nothing new, under other ids too.
    let same = [
        said("a", "user", "one"),
        said("x", "gemini", "two"),
        said("c", "user", "three"),
    ];
    assert_eq!(texts_of(&same), ["one", "two", "note", "three", "on"]);
    // Something after it.
    let more = [&same[..], &[said("y", "gemini", "four")]].concat();
    assert_eq!(
        texts_of(&more),
        ["one", "two", "note", "three", "four", "on"]
    );
    // A step back.
    assert_eq!(texts_of(&same[..1]), ["one", "on"]);
    // A summary, with the last message kept under a new id.
    let summed = [
        said("s", "user", "in short"),
        said("t", "gemini", "fine"),
        said("k", "user", "three"),
    ];
    assert_eq!(
        texts_of(&summed),
        ["one", "two", "note", "three", "[in short|1]", "on"]
    );
    // A first message of the agent in the user's name is not a summary.
    let context = set(&[said("s", "user", "<session_context>\\nhere")]);
    let first = lines(&[&context, &before[0]]);
    assert!(
        collected(&first)
            .messages()
            .next()
            .unwrap()
            .message
            .is_meta()
    );
}

#[test]
fn the_older_and_the_newer_form_have_the_same_keys() {
    let (one, two) = (said("a", "user", "one"), said("b", "gemini", "two"));
    let header = HEADER.trim_end_matches('}');
    let old = format!("{header},\"messages\":[\n  {one},\n {two}]}}\n").replace(",\"", ",\n  \"");
    let path = PATH.trim_end_matches('l');
    let (report, old) = read(&GeminiCli, path, old.as_bytes()).unwrap();
    assert_eq!(report.state, None);
    let new = collected(&lines(&[&one, &two]));
    assert_eq!(old.threads, new.threads);
}

#[test]
fn a_saved_chat_is_a_session_that_grows() {
    let saved = |rest: &str| {
        let text = format!(
            r#"{{"history":[{{"role":"user","parts":[{{"text":"see"}},{{"inlineData":{{"mimeType":"image/png","data":"aGk="}}}}]}},{{"role":"model","parts":[{{"text":"hm","thought":true}},{{"functionCall":{{"name":"ls","args":{{}}}}}}]}}{rest}],"authType":"x"}}"#
        );
        read(
            &GeminiCli,
            "/g/tmp/shop/checkpoint-my%20tag.json",
            text.as_bytes(),
        )
        .unwrap()
    };
    let (_, short) = saved("");
    let (_, long) = saved(
        r#",{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"a"}}}]}"#,
    );
    assert_eq!(short.session, long.session);
    let keys = |collected: &EventCollector| {
        collected
            .messages()
            .map(|said| said.key.clone())
            .collect::<Vec<_>>()
    };
    assert!(keys(&long).starts_with(&keys(&short)));
    assert_eq!(long.messages().last().unwrap().message.role, Role::Tool);
    assert!(matches!(
        &short.messages().next().unwrap().message.blocks[1],
        Block::Media(_)
    ));
    assert_eq!(
        short.main().unwrap().details.title.as_deref(),
        Some("my%20tag")
    );
}

/// A session with a call: the reply, the line with its result, and the list that a resume writes
/// of both, in which the result comes twice.
fn resumed() -> (Vec<String>, String) {
    let result = r#"{"functionResponse":{"id":"c","name":"run_shell_command","response":{"output":"Output: no\nExit Code: 2"}}}"#;
    let results = |id: &str| format!(r#"{{"id":"{id}","type":"user","content":[{result}]}}"#);
    let reply = |content: &str| {
        format!(
            r#"{{"id":"g","type":"gemini","content":{content},"tokens":{{"input":9,"output":1}},"toolCalls":[{{"id":"c","name":"run_shell_command","args":{{}},"status":"success","result":[{result}]}}]}}"#
        )
    };
    let context = said("k", "user", "<session_context>here");
    let before = vec![
        set(std::slice::from_ref(&context)),
        said("u", "user", "list"),
        reply("\"look\""),
        results("r"),
        said("e", "gemini", "done"),
    ];
    let list = set(&[
        context,
        before[1].clone(),
        reply(r#"[{"text":"look"},{"functionCall":{"id":"c","name":"run_shell_command"}}]"#),
        results("g"),
        results("r"),
        said("e", "gemini", "done"),
    ]);
    (before, list)
}

fn joined(lines: &[String]) -> String {
    lines.join("\n")
}

#[test]
fn a_resume_is_not_a_summary_and_adds_nothing() {
    let (mut file, list) = resumed();
    let before = collected(&lines(&[&joined(&file)]));
    file.push(r#"{"$set":{"sessionId":"0123abcd-1"}}"#.to_owned());
    file.push(list);
    let after = collected(&lines(&[&joined(&file)]));
    assert_eq!(after.threads, before.threads);
    let failed = |block: &Block| matches!(block, Block::ToolResult(result) if result.is_error);
    let blocks = before.messages().flat_map(|said| &said.message.blocks);
    assert_eq!(blocks.filter(|block| failed(block)).count(), 1);
    file.push(said("v", "user", "on"));
    let on = collected(&lines(&[&joined(&file)]));
    assert_eq!(texts(&on).len(), texts(&before).len() + 1);
}

/// A resume in the minute in which the session began continues the same file. Like every start it
/// writes a header and the context, and only then the list of what it resumes.
#[test]
fn a_resume_in_the_same_file_is_not_a_rewind() {
    let (mut file, list) = resumed();
    let before = collected(&lines(&[&joined(&file)]));
    file.push(HEADER.to_owned());
    file.push(file[0].clone());
    let begun = collected(&lines(&[&joined(&file)]));
    assert_eq!(begun.threads, before.threads);
    file.push(r#"{"$set":{"sessionId":"0123abcd-1"}}"#.to_owned());
    file.push(list);
    let after = collected(&lines(&[&joined(&file)]));
    assert_eq!(after.threads, before.threads);
    // Later, such a list is a rewind to the beginning.
    file.push(file[0].clone());
    let rewound = collected(&lines(&[&joined(&file)]));
    assert_ne!(rewound.threads, before.threads);
}

#[test]
fn a_summary_of_a_session_with_calls_is_still_one() {
    let (mut file, _) = resumed();
    file.push(set(&[
        said("s", "user", "in short"),
        said("e", "gemini", "done"),
    ]));
    let texts = texts(&collected(&lines(&[&joined(&file)])));
    assert_eq!(texts.last().unwrap(), "[in short|1]");
    assert_eq!(texts.len(), 6);
}

#[test]
fn a_file_with_nothing_but_the_session_context_is_not_a_session_yet() {
    let (file, _) = resumed();
    let stub = lines(&[&file[0], r#"{"$set":{"lastUpdated":"x"}}"#]);
    let (report, nothing) = read(&GeminiCli, PATH, stub.as_bytes()).unwrap();
    assert_eq!((nothing.session.as_str(), nothing.threads.len()), ("", 0));
    assert_eq!((report.damage.count, report.state), (0, None));
    let grown = stub + &file[1] + "\n";
    assert_eq!(collected(&grown).session, "0123abcd-1");
}

#[test]
fn a_message_that_is_rewound_thousands_of_times_takes_linear_time() {
    let step = said("a", "user", "again") + "\n{\"$rewindTo\":\"a\"}";
    let text = format!("{HEADER}\n{}", (step + "\n").repeat(20_000));
    assert_eq!(texts(&collected(&text)).len(), 0);
    let text = lines(&[&said("n", "info", "note")]);
    let text = text + &"{\"$set\":{\"messages\":[]}}\n".repeat(20_000);
    assert_eq!(texts(&collected(&text)), ["note"]);
}

#[test]
fn a_sub_agents_parent_is_the_session_whose_directory_it_is_in() {
    let text = lines(&[&said("a", "user", "dig")]).replace("\"main\"", "\"subagent\"");
    let path = "/g/tmp/shop/chats/parent-7/agent-9.jsonl";
    let (_, collected) = read(&GeminiCli, path, text.as_bytes()).unwrap();
    let spawned = Origin::Spawned {
        session: Some("parent-7".to_owned()),
        tool_use_id: None,
    };
    assert_eq!(collected.main().unwrap().thread.origin, spawned);
}

#[test]
fn the_directory_is_that_of_the_project() {
    let root = tempfile::tempdir().unwrap();
    let chats = root.path().join(".gemini/tmp/shop/chats");
    std::fs::create_dir_all(&chats).unwrap();
    let file = chats.join("session-2026-02-03T04-05-0123abcd.jsonl");
    std::fs::write(&file, lines(&[])).unwrap();
    let directory = || {
        let mut collected = EventCollector::default();
        let source = Source::open(&file).unwrap();
        collected.read(GeminiCli.open(&source).unwrap()).unwrap();
        collected.main().unwrap().details.directory.clone()
    };
    assert_eq!(directory(), None);
    let projects = r#"{"projects":{"/else":"other","/home/me/shop":"shop"}}"#;
    std::fs::write(root.path().join(".gemini/projects.json"), projects).unwrap();
    assert_eq!(directory(), Some("/home/me/shop".into()));
    std::fs::write(chats.join("../.project_root"), "/moved/shop\n").unwrap();
    assert_eq!(directory(), Some("/moved/shop".into()));
}

#[test]
fn files_that_are_not_sessions_are_skipped() {
    let is = |name: &str| GeminiCli.is_session_file(name.as_ref());
    assert!(is("/t/p/chats/session-1.json") && is("/t/p/chats/session-1.jsonl"));
    assert!(is("/t/p/checkpoint-a.json") && is("/t/p/chats/parent/agent.jsonl"));
    assert!(!is("/t/p/logs.json") && !is("/t/p/chats/session-1.meta.json"));
    assert!(!is("/t/p/checkpoints/2026-a.json") && !is("/t/p/chats/x.txt"));
    let logs = r#"[{"sessionId":"s","messageId":0,"type":"user","message":"hi","timestamp":"x"}]"#;
    assert!(!GeminiCli.recognises(&Source::from_bytes("/t/p/logs.json", logs)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn resuming_equals_reading_from_the_beginning(
        steps in prop::collection::vec((0usize..9, 0u8..16), 0..16),
        cuts in prop::collection::vec(0usize..4_000, 8),
    ) {
        let mut text = HEADER.to_owned() + "\n";
        for (n, (of, step)) in steps.iter().enumerate() {
            let id = format!("m{n}");
            let old = format!("m{of}");
            let line = match step {
                0 => format!(r#"{{"$rewindTo":"{old}"}}"#),
                1 => said(&old, "gemini", &format!("revised {n}")),
                2 => set(&[said(&old, "user", "text"), said(&id, "gemini", "more")]),
                3 => format!(r#"{{"$set":{{"summary":"title {n}"}}}}"#),
                4 => said(&id, "info", "note"),
                5 => "\0\0{\"torn".to_owned(),
                6 => format!(r#"{{"id":"{id}","type":"gemini","content":"","model":"m{of}","tokens":{{"input":{n},"output":1}},"toolCalls":[{{"id":"c","name":"x","status":"success","result":"ok"}}]}}"#),
                7 => format!(r#"{{"id":"{id}","type":"user","content":[{{"functionResponse":{{"id":"c","name":"x","response":{{"output":"ok"}}}}}}]}}"#),
                8 => r#"{"what":1}"#.to_owned(),
                9 => HEADER.to_owned(),
                10 => set(&[said("k", "user", "<session_context>here")]),
                _ => said(&id, "user", "text"),
            };
            text.push_str(&line);
            text.push('\n');
        }
        for cut in cuts {
            check(&GeminiCli, PATH, text.as_bytes(), cut % (text.len() + 1));
        }
    }
}

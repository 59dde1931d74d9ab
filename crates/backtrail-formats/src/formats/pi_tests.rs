use backtrail::{Block, Role};
use proptest::prelude::*;

use super::*;
use crate::collector::{CollectedThread, EventCollector};
use crate::event::{ForkPoint, ThreadId};
use crate::testing::{check, read, resume};

const PATH: &str = "/s/2026-01-02T03-04-05-678Z_0190.jsonl";

const HEADER: &str = r#"{"type":"session","version":3,"id":"0190","timestamp":"2026-01-02T03:04:05.678Z","cwd":"/home/me/shop"}"#;

fn lines(lines: &[&str]) -> String {
    let mut all = HEADER.to_owned() + "\n";
    lines.iter().for_each(|line| all = format!("{all}{line}\n"));
    all
}

fn user(id: &str, parent: &str, text: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-02T03:05:00.000Z","message":{{"role":"user","content":"{text}","timestamp":1767323100000}}}}"#
    )
}

fn collected(text: &str) -> EventCollector {
    read(&Pi, PATH, text.as_bytes()).unwrap().1
}

fn texts(thread: &CollectedThread) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Message(said) => said.message.text().into_owned(),
        Event::Summary(summarised) => format!("[{}]", summarised.summary),
        Event::Usage(_) => "(used)".to_owned(),
    };
    thread.events.iter().map(text).collect()
}

#[test]
fn entries_of_every_type_are_read_in_order() {
    let text = lines(&[
        r#"{"type":"model_change","id":"a0","parentId":null,"timestamp":"2026-01-02T03:04:06Z","provider":"acme","modelId":"acme-1"}"#,
        r#"{"type":"message","id":"a1","parentId":"a0","timestamp":"2026-01-02T03:05:00Z","message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"timestamp":1}}"#,
        r#"{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-01-02T03:05:01Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig=="},{"type":"text","text":"so"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a.txt","n":1.50}}],"model":"acme-2","usage":{"input":10,"output":5,"cacheRead":100,"cacheWrite":7,"cost":{"total":0.25}},"stopReason":"toolUse","timestamp":2,"responseId":"r1"}}"#,
        r#"{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-01-02T03:05:02Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"no such file"}],"isError":true,"timestamp":3,"usage":{"input":1,"output":2}}}"#,
        r#"{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-01-02T03:05:03Z","message":{"role":"bashExecution","command":"ls","output":"a.txt\n","exitCode":2}}"#,
        r#"{"type":"custom_message","id":"a5","parentId":"a4","timestamp":"2026-01-02T03:05:04Z","customType":"x","content":"mind the gap","display":true}"#,
        r#"{"type":"custom","id":"a6","parentId":"a5","customType":"x","data":{}}"#,
        r#"{"type":"label","id":"a7","parentId":"a6","targetId":"a1","label":"start"}"#,
        r#"{"type":"session_info","id":"a8","parentId":"a7","name":"Looking at files"}"#,
        r#"{"type":"hologram","id":"a9","parentId":"a8"}"#,
    ]);
    let (report, collected) = read(&Pi, PATH, text.as_bytes()).unwrap();
    assert_eq!(collected.session, "0190");
    assert_eq!(report.unknown.get("hologram"), Some(&1));
    assert_eq!(report.damage.count, 0);
    assert!(report.state.is_some());
    let main = collected.main().unwrap();
    assert_eq!(main.details.title.as_deref(), Some("Looking at files"));
    assert_eq!(main.details.model.as_deref(), Some("acme-2"));
    assert_eq!(
        main.details.directory.as_deref(),
        Some("/home/me/shop".as_ref())
    );
    assert!(main.details.started_at.is_some());
    let keys: Vec<_> = main.events.iter().map(Event::key).collect();
    assert_eq!(keys, ["a1", "a2", "a3", "a3/used", "a4", "a5"]);
    let said: Vec<_> = collected.messages().collect();
    assert!(matches!(&said[0].message.blocks[1], Block::Media(media) if media.kind == "image"));
    assert!(said[0].message.is_prompt());
    let reply = &said[1];
    assert_eq!(reply.response_id.as_deref(), Some("r1@2"));
    assert_eq!(reply.cost_usd, Some(0.25));
    let usage = reply.message.usage.as_ref().unwrap();
    assert_eq!(usage.total(), 122);
    assert_eq!(usage.cache_creation_input_tokens, 7);
    assert!(
        matches!(&reply.message.blocks[0], Block::Thinking(t) if t.signature.as_deref() == Some("sig=="))
    );
    assert!(
        matches!(&reply.message.blocks[2], Block::ToolUse(call) if call.input.as_str() == r#"{"path":"a.txt","n":1.50}"#)
    );
    assert_eq!(said[2].message.role, Role::Tool);
    assert!(
        matches!(&said[2].message.blocks[0], Block::ToolResult(r) if r.is_error && r.output.as_str() == "\"no such file\"")
    );
    assert!(said[3].message.is_meta() && said[4].message.is_meta());
    assert_eq!(said[3].message.text(), "$ ls\na.txt\n\n(exit code 2)");
}

#[test]
fn an_abandoned_branch_starts_where_it_left() {
    let text = lines(&[
        &user("a", "", "first"),
        &user("b", "a", "left"),
        &user("c", "b", "left too"),
        &user("d", "a", "kept"),
        &user("e", "b", "left later"),
        &user("f", "", "begun again, left"),
        &user("g", "d", "kept too"),
    ]);
    let collected = collected(&text);
    let conversations: Vec<_> = collected.threads.iter().map(texts).collect();
    assert_eq!(conversations[0], ["first", "kept", "kept too"]);
    assert_eq!(conversations[1], ["left", "left too"]);
    assert_eq!(conversations[2], ["left", "left later"]);
    assert_eq!(conversations[3], ["begun again, left"]);
    let threads: Vec<_> = collected
        .threads
        .iter()
        .map(|thread| &thread.thread)
        .collect();
    assert_eq!(threads[2].id, ThreadId::Branch("e".to_owned()));
    let after = |n: usize| match &threads[n].origin {
        Origin::Continues { point, .. } => point.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(after(1), ForkPoint::After("a".to_owned()));
    assert_eq!(after(2), ForkPoint::After("a".to_owned()));
    assert_eq!(after(3), ForkPoint::Start);
}

#[test]
fn a_compaction_keeps_the_messages_from_the_first_kept_entry_on() {
    let text = lines(&[
        &user("a", "", "one"),
        &user("b", "a", "two"),
        &user("c", "b", "three"),
        r#"{"type":"compaction","id":"d","parentId":"c","timestamp":"2026-01-02T04:00:00Z","summary":"so far","firstKeptEntryId":"b","tokensBefore":9,"usage":{"input":3,"output":4}}"#,
        &user("e", "d", "four"),
    ]);
    let collected = collected(&text);
    let main = collected.main().unwrap();
    assert_eq!(texts(main), ["one", "two", "three", "[so far]", "four"]);
    let Event::Summary(summarised) = &main.events[3] else {
        panic!("{:?}", main.events[3]);
    };
    assert_eq!(summarised.keep, 2);
    assert_eq!(summarised.usage.as_ref().unwrap().total(), 7);
}

#[test]
fn a_compaction_that_contains_what_it_keeps_keeps_as_many() {
    let text = lines(&[
        &user("a", "", "one"),
        &user("b", "a", "two"),
        &user("c", "b", "three"),
        r#"{"type":"compaction","id":"d","parentId":"c","summary":"so far","firstKeptEntryId":"a","retainedTail":[{"role":"user","content":"two"},{"role":"user","content":"three"}]}"#,
    ]);
    let whole = collected(&text);
    assert!(matches!(whole.main().unwrap().events.last(), Some(Event::Summary(s)) if s.keep == 2));
    for cut in 0..text.len() {
        check(&Pi, PATH, text.as_bytes(), cut);
    }
}

#[test]
fn a_leaf_entry_sets_the_end_of_the_conversation() {
    let text = lines(&[
        &user("a", "", "one"),
        &user("b", "a", "two"),
        r#"{"type":"leaf","id":"l","parentId":"b","targetId":"a"}"#,
    ]);
    let events = collected(&text);
    assert_eq!(texts(&events.threads[0]), ["one"]);
    assert_eq!(texts(&events.threads[1]), ["two"]);
    let on = format!("{text}{}\n", user("c", "a", "three"));
    assert_eq!(texts(collected(&on).main().unwrap()), ["one", "three"]);
    for cut in 0..on.len() {
        check(&Pi, PATH, on.as_bytes(), cut);
    }
}

#[test]
fn version_1_is_linear_without_ids() {
    let text = concat!(
        r#"{"type":"session","id":"old","timestamp":"2025-12-09T00:53:29.825Z","cwd":"/p","provider":"acme","modelId":"acme-1","branchedFrom":"/s/2025-12-09T00-52-54-397Z_d973.jsonl"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-12-09T00:53:30Z","message":{"role":"user","content":[{"type":"text","text":"one"}],"timestamp":5}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-12-09T00:53:31Z","message":{"role":"assistant","content":[{"type":"text","text":"two"}],"model":"acme-1","usage":{"input":1,"output":1},"timestamp":6}}"#,
        "\n",
        r#"{"type":"compaction","timestamp":"2025-12-09T00:53:32Z","summary":"short","firstKeptEntryIndex":2,"tokensBefore":5}"#,
        "\n",
    );
    let collected = collected(text);
    let main = collected.main().unwrap();
    assert_eq!(main.details.model.as_deref(), Some("acme-1"));
    assert_eq!(
        main.thread.origin,
        Origin::Copy {
            session: "d973".to_owned()
        }
    );
    assert_eq!(texts(main), ["one", "two", "[short]"]);
    assert!(matches!(&main.events[2], Event::Summary(s) if s.keep == 1));
    for cut in 0..text.len() {
        check(&Pi, PATH, text.as_bytes(), cut);
    }
}

#[test]
fn a_copy_of_a_response_counts_once_and_another_with_its_id_counts_too() {
    let reply = |time: u64| {
        format!(
            r#"{{"type":"message","id":"m{time}","parentId":null,"message":{{"role":"assistant","content":[],"responseId":"same","usage":{{"input":1,"output":1}},"timestamp":{time}}}}}"#
        )
    };
    let response = |text: &str| {
        collected(text)
            .messages()
            .last()
            .unwrap()
            .response_id
            .clone()
    };
    let original = response(&lines(&[&reply(1)]));
    let copied = response(&lines(&[&reply(1)]).replace("0190", "0191"));
    assert_eq!(original, copied);
    assert_ne!(original, response(&lines(&[&reply(2)])));
}

#[test]
fn a_linear_file_is_resumed_and_one_with_a_new_branch_is_not() {
    let before = lines(&[&user("a", "", "one"), &user("b", "a", "two")]);
    let (report, _) = read(&Pi, PATH, before.as_bytes()).unwrap();
    let is_resumed = |line: &str| {
        let source = Source::from_bytes(PATH, format!("{before}{line}\n"));
        let mut events = EventCollector::default();
        let resumed = resume(&Pi, &source, &report, &mut events).unwrap();
        resumed.is_some()
    };
    assert!(is_resumed(&user("c", "b", "three")));
    assert!(!is_resumed(&user("c", "a", "other")));
    assert!(!is_resumed(&user("a", "b", "again")));
}

#[test]
fn cycles_missing_parents_and_repeated_ids_end_in_a_result() {
    let text = lines(&[
        &user("a", "a", "its own parent"),
        &user("b", "c", "its child's child"),
        &user("c", "b", "circle"),
        &user("d", "gone", "nobody's"),
        &user("c", "d", "twice"),
        &user("e", "c", "last"),
    ]);
    let main = collected(&text);
    let main = main.main().unwrap();
    assert_eq!(texts(main), ["nobody's", "twice", "last"]);
    let keys: Vec<_> = main.events.iter().map(Event::key).collect();
    assert_eq!(keys, ["d", "c~2", "e"]);
    for cut in 0..text.len() {
        check(&Pi, PATH, text.as_bytes(), cut);
    }
}

#[test]
fn thousands_of_branches_from_a_long_stem_take_linear_time() {
    let mut text = lines(&[&user("r", "", "root")]);
    let mut parent = "r".to_owned();
    for n in 0..4_000 {
        let (id, twig) = (format!("s{n}"), format!("t{n}"));
        text.push_str(&user(&id, &parent, "stem"));
        text.push('\n');
        text.push_str(&user(&twig, &id, "twig"));
        text.push('\n');
        parent = id;
    }
    text.push_str(&user("z", "r", "last"));
    text.push('\n');
    let collected = collected(&text);
    let count: usize = collected
        .threads
        .iter()
        .map(|thread| thread.events.len())
        .sum();
    assert_eq!(collected.threads.len(), 4_001);
    assert!(count < 60_000, "{count}");
}

#[test]
fn the_directories_are_those_of_pi() {
    let home = Environment::new("/home/me");
    assert_eq!(
        Pi.directories(&home),
        [PathBuf::from("/home/me/.pi/agent/sessions")]
    );
    let moved = home.clone().with("PI_CODING_AGENT_DIR", "/x");
    assert_eq!(Pi.directories(&moved), [PathBuf::from("/x/sessions")]);
    let moved = home.with("PI_CODING_AGENT_SESSION_DIR", "/y");
    assert_eq!(Pi.directories(&moved), [PathBuf::from("/y")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn resuming_equals_reading_from_the_beginning(
        parents in prop::collection::vec((0usize..12, 0u8..12), 0..14),
        cuts in prop::collection::vec(0usize..4_000, 8),
        linear in any::<bool>(),
    ) {
        let mut text = HEADER.to_owned() + "\n";
        let mut last = String::new();
        for (n, (parent, kind)) in parents.iter().enumerate() {
            let parent = match linear || *kind > 3 {
                true => last.clone(),
                false => format!("e{parent}"),
            };
            let id = format!("e{n}");
            let line = match kind {
                5 => format!(r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","summary":"s","firstKeptEntryId":"e{}"}}"#, n.saturating_sub(2)),
                6 => format!(r#"{{"type":"session_info","id":"{id}","parentId":"{parent}","name":"title {n}"}}"#),
                7 => "{\"torn".to_owned(),
                8 => format!(r#"{{"type":"model_change","id":"{id}","parentId":"{parent}","modelId":"m{n}"}}"#),
                9 => "\0\0\0".to_owned(),
                _ => user(&id, &parent, "text"),
            };
            if !matches!(kind, 7 | 9) {
                last = id;
            }
            text.push_str(&line);
            text.push('\n');
        }
        for cut in cuts {
            check(&Pi, PATH, text.as_bytes(), cut % (text.len() + 1));
        }
    }
}

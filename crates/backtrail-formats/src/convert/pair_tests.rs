//! A session that goes from one agent to another and back keeps all that the losses do not name.
//! Every step is that of the product: written as the agent's file, imported, handed over.

use std::cell::Cell;
use std::path::PathBuf;

use backtrail::context::{
    HandOver, HandOverContent, HandOverExtent, HandOverOptions, HandOverPart, ReplyPart,
};
use backtrail::conversation::Argument;
use backtrail::{SessionReader, Store};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::read_back::{
    Except, ID, PNG, Said, TITLE, Written, as_read, assistant, call, hand_over, hard, is_except,
    new_session, readable_targets, text, user, write_new,
};
use super::tools::{ListOf, ToolRow, rename};
use super::{Losses, Target};
use crate::environment::Environment;
use crate::format::Format;
use crate::formats::ClaudeCode;
use crate::import::{ImportOptions, import};
use crate::launchers::launcher;

/// A store, and a home directory that the agents' files are in.
struct Kit {
    home: tempfile::TempDir,
    store: Store,
    sessions: Cell<u64>,
}

/// A session of a target that was handed over.
struct Imported {
    written: Written,
    hand_over: HandOver,
}

impl Kit {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(home.path().join("store")).unwrap();
        Self {
            home,
            store,
            sessions: Cell::new(0),
        }
    }

    /// Writes a session for a target where the agent finds it, and imports it.
    fn take(&self, (target, format): (Target, &'static dyn Format), given: HandOver) -> Imported {
        let n = self.sessions.get() + 1;
        self.sessions.set(n);
        let environment = Environment::new(self.home.path().join(n.to_string()));
        let mut new = new_session(&environment);
        new.id = format!("01a1e322-c9cd-7641-8b1f-{n:012}");
        let launcher = launcher(target.name());
        let launcher = launcher.filter(|it| it.import_command("f".as_ref()).is_none());
        let file = match launcher {
            Some(launcher) => launcher.place(&new).unwrap(),
            None => self.home.path().join(format!("{n}/export.json")),
        };
        let written = write_new(target, given, &new, &file);
        let put = |path: &std::path::Path, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(&file, &written.text);
        for (path, text) in &written.companions {
            put(path, text);
        }
        let reader = self.import(format, &environment, file, &new.id);
        let info = reader.info().unwrap();
        assert_eq!(info.title.as_deref(), Some(TITLE), "{target:?}");
        let hand_over = reader.hand_over(HandOverOptions::default()).unwrap();
        Imported { written, hand_over }
    }

    /// Imports a file with one session.
    fn import(
        &self,
        format: &'static dyn Format,
        environment: &Environment,
        file: PathBuf,
        id: &str,
    ) -> SessionReader {
        let options = ImportOptions::new(environment.clone())
            .formats(vec![format])
            .paths(vec![file]);
        let report = import(&self.store, &options, &|_| {}).unwrap();
        let agent = &report.agents[0];
        assert!(
            report.errors.is_empty() && agent.errors.is_empty(),
            "{report:?}"
        );
        assert!(agent.unknown_types.is_empty(), "{report:?}");
        assert_eq!((agent.new, agent.damaged_lines), (1, 0), "{report:?}");
        self.store.read_session(&id.parse().unwrap()).unwrap()
    }
}

/// Puts short texts in the place of the media that a target does not take, as its losses say.
fn without_media(mut hand_over: HandOver, target: &Target) -> (HandOver, Losses) {
    let taken = target.writer.media();
    let mut losses = Losses::default();
    for message in &mut hand_over.messages {
        match &mut message.content {
            HandOverContent::User(parts) => taken.keep_in_prompt(parts, &mut losses),
            HandOverContent::Assistant { parts, .. } => {
                for part in parts {
                    if let ReplyPart::Call(call) = part {
                        taken.keep_in_result(&mut call.output, &mut losses);
                    }
                }
            }
        }
    }
    (hand_over, losses)
}

/// Gives calls the names that a target has for them.
fn renamed(mut hand_over: HandOver, target: &Target) -> HandOver {
    for message in &mut hand_over.messages {
        if let HandOverContent::Assistant { parts, .. } = &mut message.content {
            for part in parts {
                if let ReplyPart::Call(call) = part {
                    rename(call, target.writer.tools());
                }
            }
        }
    }
    hand_over
}

/// Whose tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tools {
    /// The first target's own: they come back as they were.
    Own,
    /// Any. Those that the first target does not have come back under the second's names.
    Any,
}

/// Takes sessions through all pairs of targets. Returns what is wrong.
fn check(given: impl Fn(&Target) -> HandOver, tools: Tools) -> Vec<String> {
    let kit = Kit::new();
    let mut wrong = Vec::new();
    for first in readable_targets() {
        let there = kit.take(first, given(&first.0));
        let name = first.0.name();
        // What was read is what was written.
        let again = kit.prepared(&first.0, there.hand_over.clone());
        let expected = as_read(name, there.written.said.clone());
        compare(name, &expected, &again, &mut wrong);
        compare_facts(&[name], &there.written, &again, &mut wrong);
        for second in readable_targets() {
            let names = format!("{name} -> {} -> {name}", second.0.name());
            let (expected, losses) = without_media(there.hand_over.clone(), &second.0);
            let between = kit.take(second, there.hand_over.clone());
            if between.written.losses != losses {
                wrong.push(format!("{names}: {:?}", between.written.losses));
            }
            let back = kit.prepared(&first.0, between.hand_over);
            if !back.losses.is_empty() {
                wrong.push(format!("{names}: {:?}", back.losses));
            }
            let expected = match tools {
                Tools::Own => expected,
                Tools::Any => renamed(expected, &second.0),
            };
            let expected = kit.prepared(&first.0, expected).said;
            let expected = as_read(second.0.name(), expected);
            compare(&names, &as_read(name, expected), &back, &mut wrong);
            let through = [name, second.0.name()];
            compare_facts(&through, &there.written, &back, &mut wrong);
        }
    }
    wrong
}

impl Kit {
    /// Prepares a conversation for a target.
    fn prepared(&self, target: &Target, hand_over: HandOver) -> Written {
        let environment = Environment::new(self.home.path());
        write_new(*target, hand_over, &new_session(&environment), "f".as_ref())
    }
}

fn compare(names: &str, expected: &[Said], found: &Written, wrong: &mut Vec<String>) {
    if expected == found.said {
        return;
    }
    let differ = expected.iter().zip(&found.said).find(|(a, b)| a != b);
    let show =
        |said: &dyn std::fmt::Debug| format!("{said:?}").chars().take(600).collect::<String>();
    wrong.push(match differ {
        Some((a, b)) => format!("{names}:\n  {}\n  {}", show(a), show(b)),
        None => format!("{names}: {} and {} parts", expected.len(), found.said.len()),
    });
}

/// Compares the times, responses and models of a session that went through targets.
fn compare_facts(through: &[&str], first: &Written, found: &Written, wrong: &mut Vec<String>) {
    let is = |except: Except| through.iter().any(|name| is_except(name, except));
    let times = |written: &Written| {
        let unit = if is(Except::RoughTimes) { 1_000 } else { 1 };
        let times = written.times.iter().map(|at| at.as_millis() / unit);
        let mut times: Vec<_> = times.collect();
        times.dedup();
        times
    };
    let (first_times, found_times) = (times(first), times(found));
    let is_kept = match is(Except::OneResponse) {
        true => found_times.iter().all(|at| first_times.contains(at)),
        false => first_times == found_times,
    };
    if !is_kept {
        wrong.push(format!("{through:?}: {:?}, {:?}", first.times, found.times));
    }
    // A response may become several, but calls of several never become calls of one.
    let is_within = |ids: &Vec<String>| {
        let mut all = first.calls.iter();
        all.any(|first| ids.iter().all(|id| first.contains(id)))
    };
    if !is(Except::OneResponse) && !found.calls.iter().all(is_within) {
        wrong.push(format!("{through:?}: {:?}, {:?}", first.calls, found.calls));
    }
    let models: &[String] = match is(Except::NoModels) {
        true => &[],
        false => &first.models,
    };
    if models != found.models {
        wrong.push(format!("{through:?}: {models:?}, {:?}", found.models));
    }
}

/// Returns a call of a target's own tool with all its arguments, or only those that it needs.
fn call_of(row: &ToolRow, id: usize, is_full: bool) -> ReplyPart {
    let mut input = Map::new();
    let optional = row.may_have.iter().filter(|_| is_full);
    for (n, (argument, name)) in row.needs.iter().chain(optional).enumerate() {
        let one = json!(format!("the {name}"));
        let value = match (argument, row.list.filter(|_| n == 0)) {
            (_, Some(ListOf::Values)) => json!([one]),
            (_, Some(ListOf::Objects(name))) => json!([{ name: one }]),
            (Argument::Todos, _) => {
                let text = row.todo_text.unwrap_or("content");
                json!([{text: "a", "status": "pending"}, {text: "b", "status": "completed"}])
            }
            _ => one,
        };
        input.insert((*name).to_owned(), value);
    }
    if is_full {
        input.insert("description".to_owned(), json!("why"));
        input.insert("n".to_owned(), json!(1.5));
    }
    let input = Value::Object(input).to_string();
    call(&format!("own_{id}"), row.name, &input, vec![text("done")])
}

/// Calls of tools, and of some that no target has.
fn calls_of<'r>(rows: impl Iterator<Item = &'r ToolRow>) -> HandOver {
    let rows = rows.flat_map(|row| [(row, false), (row, true)]);
    let calls = rows.enumerate();
    let mut parts: Vec<_> = calls
        .map(|(n, (row, is_full))| call_of(row, n, is_full))
        .collect();
    for (n, (name, input)) in [
        (
            "Task",
            r#"{"description":"d","prompt":"p","subagent_type":"s"}"#,
        ),
        ("spawn_agent", r#"{"message":"p","agent_type":"worker"}"#),
        (
            "MultiEdit",
            r#"{"file_path":"a","edits":[{"old_string":"a","new_string":"b"}]}"#,
        ),
        (
            "apply_patch",
            r#"{"input":"*** Begin Patch\n*** End Patch"}"#,
        ),
        ("delete_file", r#"{"path":"a"}"#),
        ("ExitPlanMode", r#"{"plan":"p"}"#),
        ("AskUserQuestion", r#"{"questions":[]}"#),
        ("Skill", r#"{"skill":"pdf"}"#),
        ("mcp__server__look", r#"{"command":"x","path":1}"#),
    ]
    .into_iter()
    .enumerate()
    {
        parts.push(call(&format!("other_{n}"), name, input, vec![text("done")]));
    }
    hand_over([user(vec![text("use all tools")]), assistant(parts)])
}

fn assert_kept(given: &HandOver) {
    assert_eq!(check(|_| given.clone(), Tools::Any).join("\n"), "");
}

#[test]
fn there_and_back_a_target_s_own_tools_are_called_as_before() {
    let own = |target: &Target| calls_of(target.writer.tools().iter());
    assert_eq!(check(own, Tools::Own).join("\n"), "");
}

#[test]
fn there_and_back_all_tools_are_called_as_before() {
    let all = readable_targets().flat_map(|(target, _)| target.writer.tools());
    let mut given = calls_of(all);
    let odd = [
        call("odd_1", "Bash", r#"{"cmd":"a"}"#, Vec::new()),
        call("odd_2", "Bash", r#"{"cmd":"a","command":"b"}"#, Vec::new()),
        call(
            "odd_3",
            "shell",
            r#"{"command":["bash","-lc","ls"]}"#,
            Vec::new(),
        ),
        call("odd_4", "Read", "{}", Vec::new()),
    ];
    let odd = hand_over([assistant(odd.into())]);
    given.messages.extend(odd.messages);
    assert_kept(&given);
}

#[test]
fn there_and_back_a_hard_conversation_is_as_before() {
    assert_kept(&hard());
}

#[test]
fn there_and_back_any_conversation_is_as_before() {
    const CASES: usize = 3;
    let mut runner = TestRunner::new(ProptestConfig::default());
    let any = super::round_trip_tests::any_hand_over();
    for _ in 0..CASES {
        let mut given = any.new_tree(&mut runner).unwrap().current();
        // The first message is always the user's.
        let first = hand_over([user(vec![text("begin")])]);
        given.messages.splice(..0, first.messages);
        without_media_of_failures(&mut given);
        assert_kept(&given);
    }
}

/// Failed calls have only texts.
fn without_media_of_failures(given: &mut HandOver) {
    for message in &mut given.messages {
        let HandOverContent::Assistant { parts, .. } = &mut message.content else {
            continue;
        };
        for part in parts {
            if let ReplyPart::Call(call) = part
                && call.is_error
            {
                let is_text = |part: &HandOverPart| matches!(part, HandOverPart::Text(_));
                call.output.retain(is_text);
            }
        }
    }
}

const SUMMARY: &str = "So far: the till is broken.";

/// Imports a session of Claude Code with all that is hard to hand over.
fn hard_session(kit: &Kit, output: &str) -> SessionReader {
    // Half of a surrogate pair, which no text in Rust can have.
    const HALF: &str = "(half)";
    let said = |role: &str, content: Value| json!({"role": role, "content": content});
    let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let used = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
    let image = json!({"type": "image", "source": source});
    let long = long_id();
    let task = json!({"description": "d", "prompt": "Look at all tills", "subagent_type": "s"});
    let lines = [
        said("user", json!("the old prompt")),
        said(
            "assistant",
            json!([{"type": "text", "text": "the old answer"}]),
        ),
        json!({"subtype": "compact_boundary"}),
        said("user", json!(SUMMARY)),
        said(
            "user",
            json!([{"type": "text", "text": format!("Go {HALF} on")}, image]),
        ),
        said(
            "assistant",
            json!([
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look."},
                used(&long, "Bash", json!({"command": "cat big"})),
                used("odd", "what? an/odd.name", json!({"a": 1})),
                used("shot", "screenshot", json!({})),
                used("task", "Task", task),
            ]),
        ),
        said("user", json!([result("shot", json!([image]))])),
        said(
            "user",
            json!([result("task", json!("All tills are broken."))]),
        ),
        said(
            "user",
            json!([
                result(&long, json!([{"type": "text", "text": output}])),
                result("odd", json!(format!("{HALF}"))),
            ]),
        ),
        said(
            "assistant",
            json!([used("open", "Bash", json!({"command": "sleep 9"}))]),
        ),
        said("user", json!("And now?")),
    ];
    let lines = lines.into_iter().enumerate().map(|(n, message)| {
        let mut line = json!({
            "type": message["role"].as_str().unwrap_or("system"),
            "uuid": format!("u{n}"),
            "parentUuid": n.checked_sub(1).map(|n| format!("u{n}")),
            "sessionId": ID,
            "timestamp": format!("2026-11-06T21:20:{n:02}.000Z"),
        });
        match message.get("subtype") {
            Some(subtype) => line["subtype"] = subtype.clone(),
            None => line["message"] = message.clone(),
        }
        if message["content"] == SUMMARY {
            line["isCompactSummary"] = json!(true);
        }
        format!("{line}\n").replace(HALF, "\\ud83d")
    });
    let file = kit.home.path().join(format!("{ID}.jsonl"));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    kit.import(&ClaudeCode, &Environment::new(kit.home.path()), file, ID)
}

/// An id that providers refuse.
fn long_id() -> String {
    format!("call_{}", "x".repeat(80))
}

#[test]
fn a_hard_session_reaches_every_target_and_all_that_is_lost_is_named() {
    let kit = Kit::new();
    let output = "0123456789abcde\n".repeat(1 << 17);
    let reader = hard_session(&kit, &output);
    let given = reader.hand_over(HandOverOptions::default()).unwrap();
    for target in readable_targets() {
        let name = target.0.name();
        let there = kit.take(target, given.clone());
        assert!(!there.written.text.contains("the old"), "{name}");
        let again = kit.prepared(&target.0, there.hand_over.clone());
        assert!(again.losses.is_empty(), "{name}: {:?}", again.losses);
        assert_eq!(
            as_read(name, there.written.said.clone()),
            again.said,
            "{name}"
        );
        // Of one image in a prompt and one in a result.
        let media = match name {
            "copilot-cli" => 1,
            "atif" => 2,
            _ => 0,
        };
        let lost = there.written.losses.rows();
        let lost: Vec<_> = lost.iter().map(|loss| (loss.kind, loss.count)).collect();
        let mut expected = vec![("thoughts", 1), ("media", media), ("open_calls", 1)];
        expected.extend([("names", 1), ("ids", 1), ("characters", 2)]);
        expected.retain(|(_, count)| *count > 0);
        assert_eq!(lost, expected, "{name}");
        assert_hard(&again.said, &output);
    }
}

/// Checks that a session has all that can be kept of a hard one.
fn assert_hard(all: &[Said], output: &str) {
    let [
        Said::Prompt(first),
        Said::Text(answer),
        calls @ ..,
        Said::Prompt(last),
    ] = all
    else {
        panic!("{all:?}");
    };
    let HandOverPart::Text(first) = &first[0] else {
        panic!("{first:?}");
    };
    let summary = "This is a summary of the conversation up to this point:";
    let expected = format!("{summary}\n\n{SUMMARY}\nGo \u{fffd} on");
    assert!(first.starts_with(&expected), "{first:?}");
    assert_eq!(
        (answer.as_str(), &last[..]),
        ("I look.", &[text("And now?")][..])
    );
    let calls = calls.iter().map(|said| match said {
        Said::Call {
            id,
            input,
            result: Some((text, ..)),
            ..
        } => (id, input, text),
        other => panic!("{other:?}"),
    });
    let [long, odd, shot, task, open] = &calls.collect::<Vec<_>>()[..] else {
        panic!("{all:?}");
    };
    assert!(long.0.len() <= 64 && long.1.contains("cat big") && long.2 == output);
    assert_eq!((odd.0.as_str(), odd.2.as_str()), ("odd", "\u{fffd}"));
    assert_eq!(shot.0, "shot");
    assert!(task.1.contains("Look at all tills") && task.2 == "All tills are broken.");
    assert!(
        open.0 == "open" && open.2.contains("interrupted"),
        "{open:?}"
    );
}

#[test]
fn there_and_back_a_hard_session_is_as_before() {
    let kit = Kit::new();
    let given = hard_session(&kit, "a\n").hand_over(HandOverOptions::default());
    assert_kept(&given.unwrap());
}

#[test]
fn a_whole_session_begins_before_its_summary() {
    let kit = Kit::new();
    let options = HandOverOptions::new(HandOverExtent::Whole, None);
    let given = hard_session(&kit, "a\n").hand_over(options).unwrap();
    for target in readable_targets() {
        let there = kit.take(target, given.clone());
        let said = kit.prepared(&target.0, there.hand_over).said;
        assert_eq!(said[0], Said::Prompt(vec![text("the old prompt")]));
        assert_eq!(said[1], Said::Text("the old answer".to_owned()));
    }
}

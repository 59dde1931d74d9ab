//! Sessions that were handed over to another agent: what it adds comes back as a fork of the
//! original, and nothing of the shared part is there twice (F24).

use std::path::Path;

use backtrail::trash::DeleteScope;
use backtrail::{ErrorKind, LocalStorage, RecordKind, SessionId, Store, StoreOptions};
use backtrail_formats::{
    ClaudeCode, Cline, Codex, Environment, Format, HandOver, ImportOptions, OpenCode,
    PausedImports, Source, contained_file, hand_over, import, import_new,
};
use backtrail_testkit::{Count, Fault, FaultyStorage, When};
use serde_json::json;

use crate::agents::{self, OPENCODE};
use crate::toy::{Kit, Toy, lines};

const PARENT: &str = "0b1c2d3e-0000-4000-8000-000000000001";
const NAME: &str = "session-of-a-toy-2";

fn parent() -> SessionId {
    PARENT.parse().unwrap()
}

fn id() -> SessionId {
    NAME.parse().unwrap()
}

/// A line of Claude Code; an odd one is an answer with usage.
fn claude_line(session: &str, n: usize, parent: Option<usize>) -> String {
    let uuid = |n: usize| format!("{}-0000-4000-8000-{n:012}", &session[..8]);
    let message = match n % 2 {
        0 => json!({"role": "user", "content": format!("prompt {n}")}),
        _ => json!({"role": "assistant", "id": format!("msg_{}_{n}", &session[30..]),
            "model": "claude-x", "content": [{"type": "text", "text": format!("answer {n}")}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 100, "output_tokens": 7}}),
    };
    let line = json!({"parentUuid": parent.map(uuid), "sessionId": session,
        "type": message["role"], "message": message, "uuid": uuid(n), "cwd": "/work",
        "timestamp": format!("2026-08-03T10:{:02}:{:02}.000Z", n / 60, n % 60)});
    format!("{line}\n")
}

fn claude(session: &str, messages: usize) -> String {
    let line = |n: usize| claude_line(session, n, n.checked_sub(1));
    (0..messages).map(line).collect()
}

/// Imports a session of Claude Code, to be handed over. Returns its last record.
fn import_parent(kit: &Kit, store: &Store) -> u64 {
    let name = format!("{PARENT}.jsonl");
    kit.write(&name, claude(PARENT, 4));
    import_file(kit, store, &name, &ClaudeCode);
    let mut back = store
        .read_session(&parent())
        .unwrap()
        .records_back()
        .unwrap();
    loop {
        let record = back.next().unwrap().unwrap();
        if record.kind() == RecordKind::Message {
            return record.seq();
        }
    }
}

fn import_file(kit: &Kit, store: &Store, name: &str, format: &'static dyn Format) -> (u64, u64) {
    let options = ImportOptions::new(Environment::new(kit.path("")))
        .formats(vec![format])
        .paths(vec![kit.path(name)]);
    let report = import(store, &options, &|_| {}).unwrap();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let agent = &report.agents[0];
    assert!(agent.errors.is_empty(), "{:?}", agent.errors);
    (agent.new, agent.updated)
}

fn new<'h>(
    agent: &'static dyn Format,
    name: &'h str,
    file: &'h Path,
    (parent, seq): (&'h SessionId, u64),
) -> HandOver<'h> {
    HandOver {
        agent,
        name,
        file,
        content: None,
        parent,
        seq,
        title: Some("fix login (from Claude Code)"),
        directory: Some(Path::new("/work/shop")),
    }
}

/// Hands the parent over as a file of toys.
fn hand_over_toy(kit: &Kit, seq: u64, (file, name, text): (&str, &str, &str)) -> SessionId {
    let (path, parent) = (kit.path(file), parent());
    let content = Source::from_bytes(&path, text);
    let new = HandOver {
        content: Some(&content),
        ..new(&Toy, name, &path, (&parent, seq))
    };
    hand_over(&kit.store, &new).unwrap()
}

/// A parent of four messages, and its copy as a file of toys.
pub(crate) fn handed_over(file: &str, name: &str, text: &str) -> Kit {
    let kit = Kit::new();
    let seq = import_parent(&kit, &kit.store);
    let id = hand_over_toy(&kit, seq, (file, name, text));
    assert_eq!(id.as_str(), name);
    kit.write(file, text);
    kit
}

/// Returns the keys of the messages that a session has itself, after its fork point.
fn own_keys(store: &Store, id: &SessionId) -> Vec<String> {
    let reader = store.read_session(id).unwrap();
    let fork = reader.info().unwrap().forked_from.unwrap().seq.unwrap();
    let mut records = reader.records_from(fork + 1).unwrap();
    let mut keys = Vec::new();
    while let Some(record) = records.next().unwrap() {
        if record.seq() > fork && record.kind() == RecordKind::Message {
            keys.push(record.id().unwrap().into_owned());
        }
    }
    keys
}

/// How a file is found by the next import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// As it was left: only what was appended is read.
    Appended,
    /// The cache is gone.
    WithoutCache,
    /// Another byte is in its first line, so that it is read from the beginning.
    Rewritten,
}

const NEXT: [Next; 3] = [Next::Appended, Next::WithoutCache, Next::Rewritten];

impl Next {
    fn prepare(self, kit: &Kit, file: &str) {
        match self {
            Self::Appended => {}
            Self::WithoutCache => kit.forget_cache(),
            Self::Rewritten => {
                let text = std::fs::read_to_string(kit.path(file)).unwrap();
                let other = match text.strip_prefix("{ ") {
                    Some(rest) => format!("{{{rest}"),
                    None => text.replacen('{', "{ ", 1),
                };
                kit.write(file, other);
            }
        }
    }
}

#[test]
fn f24_what_another_agent_adds_comes_back_once_as_a_fork() {
    for next in NEXT {
        let kit = Kit::new();
        let seq = import_parent(&kit, &kit.store);
        let copy = lines(NAME, &["c1", "c2"]);
        hand_over_toy(&kit, seq, ("b.toy", NAME, &copy));
        let info = || kit.store.read_session(&id()).unwrap().info().unwrap();
        let fork = info().forked_from.unwrap();
        assert_eq!((&*fork.parent_session_id, fork.seq), (PARENT, Some(seq)));
        assert_eq!(info().belongs_to.as_deref(), Some("toy"));
        assert_eq!(
            info().title.as_deref(),
            Some("fix login (from Claude Code)")
        );
        assert_eq!(info().workspace_root.unwrap(), Path::new("/work/shop"));
        // It is an ordinary session, whose file is not there yet.
        assert_eq!(kit.counts(), (0, 0, 0));
        assert!(
            kit.store
                .read_session(&id())
                .unwrap()
                .verify()
                .unwrap()
                .is_ok()
        );
        assert_eq!(
            kit.kept("b.toy").unwrap(),
            (id(), copy.clone().into_bytes())
        );
        let shared = kit.keys(&parent());
        assert_eq!(shared.len(), 4);
        let mut text = copy;
        kit.write("b.toy", &text);
        let mut own = Vec::new();
        for turn in 0..3 {
            next.prepare(&kit, "b.toy");
            assert_eq!(kit.import().agents[0].messages, 0);
            assert_eq!(kit.keys(&id()), [shared.clone(), own.clone()].concat());
            for key in [format!("n{turn}"), format!("m{turn}")] {
                text.push_str(&format!("{{\"say\":\"{key}\"}}\n"));
                own.push(key);
            }
            kit.write("b.toy", &text);
            next.prepare(&kit, "b.toy");
            let report = kit.import();
            assert_eq!((report.agents[0].new, report.agents[0].messages), (0, 2));
            assert_eq!(own_keys(&kit.store, &id()), own);
            let bytes = std::fs::read(kit.path("b.toy")).unwrap();
            assert_eq!(kit.kept("b.toy").unwrap().1, bytes);
        }
        assert_eq!(kit.store.sessions().unwrap().len(), 2);
        assert_eq!(kit.keys(&parent()), shared);
        // The title is the caller's until the agent gives it another one.
        assert_eq!(
            info().title.as_deref(),
            Some("fix login (from Claude Code)")
        );
        kit.write("b.toy", text + "{\"title\":\"Login\"}\n");
        kit.import();
        assert_eq!(info().title.as_deref(), Some("Login"));
    }
}

#[test]
fn f24_import_new_adds_only_what_is_new() {
    let copy = lines(NAME, &["c1", "c2"]);
    let kit = handed_over("b.toy", NAME, &copy);
    kit.import();
    let new = || import_new(&kit.store, &kit.options(), &|| false).unwrap();
    assert_eq!(new().imported, 0);
    kit.write("b.toy", lines(NAME, &["c1", "c2", "n1"]));
    for imported in [1, 0] {
        assert_eq!(new().imported, imported);
        assert_eq!(own_keys(&kit.store, &id()), ["n1"]);
    }
    kit.forget_cache();
    kit.write("b.toy", lines(NAME, &["c1", "c2", "n1", "n2"]));
    assert_eq!(new().imported, 1);
    assert_eq!(own_keys(&kit.store, &id()), ["n1", "n2"]);
}

#[test]
fn an_agent_that_goes_back_into_the_copy_goes_back_to_the_fork_point() {
    for next in NEXT {
        let mut text = lines(NAME, &["c1", "c2", "c3"]);
        let kit = handed_over("b.toy", NAME, &text);
        let shared = kit.keys(&parent());
        kit.import();
        let mut add = |line: &str, own: &[&str]| {
            text.push_str(line);
            text.push('\n');
            kit.write("b.toy", &text);
            for _ in 0..2 {
                next.prepare(&kit, "b.toy");
                kit.import();
                assert_eq!(own_keys(&kit.store, &id()), own, "{line}");
            }
            assert_eq!(kit.keys(&id())[..4], shared);
        };
        add(r#"{"say":"n1"}"#, &["n1"]);
        add(r#"{"say":"n2"}"#, &["n1", "n2"]);
        add(r#"{"back":"n1"}"#, &["n1"]);
        add(r#"{"say":"n3"}"#, &["n1", "n3"]);
        add(r#"{"back":"c2"}"#, &[]);
        add(r#"{"say":"n4"}"#, &["n4"]);
        add(r#"{"back":""}"#, &[]);
        add(r#"{"say":"n5"}"#, &["n5"]);
        assert_eq!(kit.store.sessions().unwrap().len(), 2);
    }
}

#[test]
fn f24_branches_repeat_nothing_of_the_copy() {
    for next in NEXT {
        let text = lines(NAME, &["c1", "c2", "c3"]);
        let kit = handed_over("b.toy", NAME, &text);
        kit.import();
        let seq = kit.store.read_session(&id()).unwrap().info().unwrap();
        let seq = seq.forked_from.unwrap().seq;
        // A branch that is only a copy, one that begins as a copy, and one after a copy.
        let branches = r#"{"say":"n1"}
{"branch":"c2","after":"c1","say":"c2"}
{"branch":"c1","say":"c1"}
{"branch":"c1","say":"b1"}
{"branch":"b2","after":"c2","say":"b2"}
{"branch":"b3","after":"n1","say":"b3"}
"#;
        kit.write("b.toy", text + branches);
        for _ in 0..2 {
            next.prepare(&kit, "b.toy");
            kit.import();
            assert_eq!(own_keys(&kit.store, &id()), ["n1"]);
            let ids = kit.store.sessions().unwrap().into_iter();
            let others = ids.filter(|other| *other != id() && *other != parent());
            let mut branches: Vec<_> = others
                .map(|branch| {
                    let info = kit.store.read_session(&branch).unwrap().info().unwrap();
                    let fork = info.forked_from.unwrap();
                    assert_eq!(fork.parent_session_id, NAME);
                    (own_keys(&kit.store, &branch), fork.seq == seq)
                })
                .collect();
            branches.sort();
            let expected = [("b1", true), ("b2", true), ("b3", false)];
            let expected = expected.map(|(key, is_at_fork)| (vec![key.to_owned()], is_at_fork));
            assert_eq!(branches, expected);
        }
    }
}

#[test]
fn a_file_that_is_cut_off_or_garbage_takes_nothing_away() {
    for next in [Next::Appended, Next::WithoutCache] {
        let whole = lines(NAME, &["c1", "c2", "n1", "n2"]);
        let kit = handed_over("b.toy", NAME, &lines(NAME, &["c1", "c2"]));
        kit.write("b.toy", &whole);
        kit.import();
        let half_of_the_copy = lines(NAME, &["c1"]);
        let zeros = vec![0; whole.len() + 100];
        let cut = &whole.as_bytes()[..whole.len() - 5];
        for bytes in [half_of_the_copy.as_bytes(), b"", b"garbage\n", &zeros, cut] {
            kit.write("b.toy", bytes);
            next.prepare(&kit, "b.toy");
            kit.import();
            assert_eq!(own_keys(&kit.store, &id()), ["n1", "n2"]);
        }
        kit.write("b.toy", lines(NAME, &["c1", "c2", "n1", "n2", "n3"]));
        next.prepare(&kit, "b.toy");
        kit.import();
        assert_eq!(own_keys(&kit.store, &id()), ["n1", "n2", "n3"]);
        // The agent wrote its file again, with less of the copy.
        kit.write("b.toy", lines(NAME, &["c2", "x1"]) + &" ".repeat(200));
        next.prepare(&kit, "b.toy");
        kit.import();
        assert_eq!(own_keys(&kit.store, &id()), ["x1"]);
        assert_eq!(kit.keys(&id()).len(), 5);
        assert_eq!(kit.store.sessions().unwrap().len(), 2);
    }
}

#[test]
fn f24_a_copy_of_the_file_that_differs_becomes_a_branch_without_the_shared_part() {
    let kit = handed_over("b.toy", NAME, &lines(NAME, &["c1", "c2"]));
    kit.write("b.toy", lines(NAME, &["c1", "c2", "n1"]));
    kit.import();
    kit.write("c.toy", lines(NAME, &["c1", "c2", "x1"]));
    for text in [&["c1", "c2", "x1"][..], &["c1", "c2", "x1", "x2"]] {
        kit.write("c.toy", lines(NAME, text));
        for next in NEXT {
            next.prepare(&kit, "c.toy");
            kit.import();
            assert_eq!(own_keys(&kit.store, &id()), ["n1"]);
            let (branch, _) = kit.kept("c.toy").unwrap();
            assert_eq!(own_keys(&kit.store, &branch), text[2..]);
            assert_eq!(kit.keys(&branch)[..4], kit.keys(&parent()));
        }
    }
    assert_eq!(kit.store.sessions().unwrap().len(), 3);
}

#[test]
fn two_imports_at_once_add_what_is_new_once() {
    let mut text = lines(NAME, &["c1", "c2"]);
    let kit = handed_over("b.toy", NAME, &text);
    let mut own = Vec::new();
    for n in 0..8 {
        text.push_str(&format!("{{\"say\":\"n{n}\"}}\n"));
        own.push(format!("n{n}"));
        kit.write("b.toy", &text);
        if n % 2 == 1 {
            kit.forget_cache();
        }
        let updated: u64 = std::thread::scope(|scope| {
            let imports = [0; 3].map(|_| {
                scope.spawn(|| {
                    let store = Store::open(kit.store.root()).unwrap();
                    import(&store, &kit.options(), &|_| {}).unwrap().agents[0].updated
                })
            });
            imports.map(|import| import.join().unwrap()).iter().sum()
        });
        assert_eq!(updated, 1);
        assert_eq!(own_keys(&kit.store, &id()), own);
    }
}

#[test]
fn no_process_imports_while_a_database_is_written() {
    let kit = Kit::new();
    kit.write("a.toy", lines("session-of-a-toy-1", &["1"]));
    kit.import();
    kit.write("a.toy", lines("session-of-a-toy-1", &["1", "2"]));
    let paused = PausedImports::begin(&kit.store).unwrap();
    let other = Store::open(kit.store.root()).unwrap();
    let new = || import_new(&other, &kit.options(), &|| false).unwrap();
    assert!(new().is_busy);
    drop(paused);
    assert_eq!(new().imported, 1);
}

// F24: killed at any write of the hand-over, before the file has its name.
#[test]
fn f24_a_hand_over_that_is_killed_leaves_the_original_and_at_most_an_empty_fork() {
    for when in [When::Before, When::After] {
        for n in 0.. {
            let kit = Kit::new();
            let seq = import_parent(&kit, &kit.store);
            let shared = kit.keys(&parent());
            let disk = FaultyStorage::new(LocalStorage).counting(Count::Writes);
            let faulty = StoreOptions::new().storage(disk.clone());
            let faulty = faulty.open(kit.store.root()).unwrap();
            disk.arm(n, Fault::Crash { when });
            let (path, parent) = (kit.path("b.toy"), parent());
            let content = Source::from_bytes(&path, lines(NAME, &["c1", "c2"]));
            let new = HandOver {
                content: Some(&content),
                ..new(&Toy, NAME, &path, (&parent, seq))
            };
            let handed = hand_over(&faulty, &new);
            if !disk.fired() {
                handed.unwrap();
                assert!(n > 3, "{n}");
                break;
            }
            drop(faulty);
            assert_eq!(kit.counts(), (0, 0, 0), "{n}");
            assert_eq!(kit.keys(&parent), shared, "{n}");
            for id in kit.store.sessions().unwrap() {
                assert_eq!(kit.keys(&id), shared, "{n}");
            }
            // The next attempt has another name.
            let path = kit.path("c.toy");
            let name = "session-of-a-toy-3";
            let content = Source::from_bytes(&path, lines(name, &["c1", "c2"]));
            let again = HandOver {
                name,
                file: &path,
                content: Some(&content),
                ..new
            };
            let id = hand_over(&kit.store, &again).unwrap();
            kit.write("c.toy", lines(name, &["c1", "c2", "n1"]));
            kit.import();
            assert_eq!(own_keys(&kit.store, &id), ["n1"], "{n}");
        }
    }
}

#[test]
fn a_file_that_is_not_the_whole_session_is_refused_and_nothing_is_created() {
    let kit = Kit::new();
    let seq = import_parent(&kit, &kit.store);
    let (path, parent) = (kit.path("b.toy"), parent());
    let whole = lines(NAME, &["c1", "c2"]);
    let try_it = |text: &str, seq: u64| {
        let content = Source::from_bytes(&path, text);
        let new = HandOver {
            content: Some(&content),
            ..new(&Toy, NAME, &path, (&parent, seq))
        };
        hand_over(&kit.store, &new).map_err(|error| {
            let kind = error.store().map(backtrail::Error::kind);
            (error.to_string(), kind)
        })
    };
    let refused = |text: &str, seq: u64| try_it(text, seq).unwrap_err();
    let about = |text: &str, what: &str| {
        let (message, _) = refused(text, seq);
        assert!(
            message.contains(what) && message.contains("b.toy"),
            "{message}"
        );
    };
    about(&lines("session-of-a-toy-9", &["c1"]), "session-of-a-toy-9");
    about("", "names no session");
    about(&lines(NAME, &[]), "no complete conversation");
    about(
        &(whole.clone() + "{\"say\":\"c"),
        "no complete conversation",
    );
    about(&(whole.clone() + "not JSON\n"), "line 4 is damaged");
    assert_eq!(refused(&whole, seq + 100).1, Some(ErrorKind::NotFound));
    assert_eq!(kit.store.sessions().unwrap().len(), 1);
    // A file that is not there, and a session that is.
    let missing = hand_over(&kit.store, &new(&Toy, NAME, &path, (&parent, seq)));
    assert!(missing.is_err());
    try_it(&whole, seq).unwrap();
    assert_eq!(refused(&whole, seq).1, Some(ErrorKind::Conflict));
}

#[test]
fn a_session_that_was_handed_over_and_deleted_stays_deleted() {
    let kit = handed_over("b.toy", NAME, &lines(NAME, &["c1", "c2"]));
    kit.write("b.toy", lines(NAME, &["c1", "c2", "n1"]));
    kit.import();
    let plan = kit.store.delete_plan(&[id()], DeleteScope::Named);
    plan.unwrap().apply().unwrap();
    for next in NEXT {
        next.prepare(&kit, "b.toy");
        kit.write("b.toy", lines(NAME, &["c1", "c2", "n1", "n2"]));
        assert_eq!(kit.import().agents[0].deleted_here, 1);
        assert_eq!(kit.store.sessions().unwrap(), [parent()]);
    }
}

#[test]
fn f24_a_session_goes_to_another_agent_and_back_and_each_has_only_its_own() {
    let kit = Kit::new();
    let seq = import_parent(&kit, &kit.store);
    let spent = |id: &SessionId| {
        let stats = kit.store.read_session(id).unwrap().stats().unwrap();
        (stats.responses, stats.usage.input_tokens)
    };
    assert_eq!(spent(&parent()), (2, 200));
    // To Codex, whose copy has usage as well.
    let codex_name = "0b1c2d3e-0000-7000-8000-000000000002";
    let file = format!("rollout-2026-08-03T10-48-56-{codex_name}.jsonl");
    let line = |n: u32, kind: &str, payload: serde_json::Value| {
        let at = format!("2026-08-03T11:00:{n:02}.000Z");
        format!(
            "{}\n",
            json!({"timestamp": at, "type": kind, "payload": payload})
        )
    };
    let said = |n: u32, role: &str, text: &str| {
        let kind = ["output_text", "input_text"][usize::from(role == "user")];
        let content = json!([{"type": kind, "text": text}]);
        line(
            n,
            "response_item",
            json!({"type": "message", "role": role, "content": content}),
        )
    };
    let used = |n: u32, total: u64, last: u64| {
        let tokens = |n: u64| {
            json!({"input_tokens": n, "cached_input_tokens": 0,
            "output_tokens": 0, "reasoning_output_tokens": 0, "total_tokens": n})
        };
        let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last),
            "model_context_window": 1000});
        line(n, "event_msg", json!({"type": "token_count", "info": info}))
    };
    let meta = json!({"id": codex_name, "cwd": "/work", "timestamp": "2026-08-03T11:00:00.000Z",
        "cli_version": "0.166.0", "originator": "codex_cli_rs"});
    let mut codex = line(0, "session_meta", meta)
        + &said(1, "user", "prompt 0")
        + &said(2, "assistant", "answer 1")
        + &used(3, 200, 200)
        + &said(4, "user", "prompt 2")
        + &said(5, "assistant", "answer 3");
    kit.write(&file, &codex);
    let (path, parent) = (kit.path(&file), parent());
    let to_codex = new(&Codex, codex_name, &path, (&parent, seq));
    let first = hand_over(&kit.store, &to_codex).unwrap();
    assert_eq!(import_file(&kit, &kit.store, &file, &Codex), (0, 0));
    codex += &(said(6, "user", "more") + &said(7, "assistant", "done") + &used(8, 330, 130));
    kit.write(&file, &codex);
    for next in [Next::Appended, Next::WithoutCache] {
        next.prepare(&kit, &file);
        import_file(&kit, &kit.store, &file, &Codex);
        assert_eq!(own_keys(&kit.store, &first).len(), 2);
        assert_eq!(kit.keys(&first).len(), 6);
    }
    assert_eq!(spent(&parent), (2, 200));
    // And back to Claude Code, which goes back into the copy there.
    let claude_name = "0b1c2d3f-0000-4000-8000-000000000003";
    let file = format!("{claude_name}.jsonl");
    let last = kit
        .store
        .read_session(&first)
        .unwrap()
        .info()
        .unwrap()
        .last_seq;
    let text = claude(claude_name, 6);
    let path = kit.path(&file);
    let content = Source::from_bytes(&path, text.as_str());
    let back = HandOver {
        content: Some(&content),
        ..new(&ClaudeCode, claude_name, &path, (&first, last))
    };
    let second = hand_over(&kit.store, &back).unwrap();
    kit.write(&file, &text);
    assert_eq!(import_file(&kit, &kit.store, &file, &ClaudeCode), (0, 0));
    let text = text + &claude_line(claude_name, 6, Some(5)) + &claude_line(claude_name, 7, Some(6));
    let uuid = |n: usize| format!("{}-0000-4000-8000-{n:012}", &claude_name[..8]);
    kit.write(&file, &text);
    for next in NEXT {
        next.prepare(&kit, &file);
        import_file(&kit, &kit.store, &file, &ClaudeCode);
        assert_eq!(own_keys(&kit.store, &second), [uuid(6), uuid(7)]);
        assert_eq!(kit.keys(&second).len(), 8);
    }
    kit.write(&file, text + &claude_line(claude_name, 8, Some(1)));
    for next in NEXT {
        next.prepare(&kit, &file);
        import_file(&kit, &kit.store, &file, &ClaudeCode);
        assert_eq!(own_keys(&kit.store, &second), [uuid(8)]);
        let sessions = kit.store.sessions().unwrap();
        assert_eq!(sessions.len(), 4, "what it left is a branch");
        for id in sessions.iter().filter(|id| **id != parent) {
            let own = own_keys(&kit.store, id);
            assert!(
                !own.iter().any(|key| (0..6).any(|n| *key == uuid(n))),
                "{own:?}"
            );
        }
    }
}

#[test]
fn f24_a_file_that_its_agent_rewrites_in_place_adds_only_what_is_new() {
    let name = "1790000000000_abcde";
    let message = |n: usize, id: Option<&str>| {
        let role = ["user", "assistant"][n % 2];
        let mut message = json!({"role": role, "ts": 1_790_000_000_000_u64 + n as u64,
            "content": [{"type": "text", "text": format!("message {n}")}]});
        if role == "assistant" {
            message["metrics"] = json!({"inputTokens": 10, "outputTokens": 1, "cost": 0.5});
        }
        if let Some(id) = id {
            message["id"] = json!(format!("{id}{n}"));
        }
        message
    };
    let file = |messages: &[serde_json::Value], prompt: Option<&str>| {
        let mut file = json!({"version": 1, "updated_at": "2026-09-21T10:00:00Z",
            "agent": "lead", "sessionId": name, "messages": messages});
        if let Some(prompt) = prompt {
            file["system_prompt"] = json!(prompt);
        }
        file.to_string()
    };
    for next in NEXT {
        let kit = Kit::new();
        let seq = import_parent(&kit, &kit.store);
        let messages = file(&[0, 1, 2, 3].map(|n| message(n, None)), None);
        let file_name = format!("{name}.messages.json");
        let (path, parent) = (kit.path(&file_name), parent());
        let content = Source::from_bytes(&path, messages.as_str());
        let new = HandOver {
            content: Some(&content),
            ..new(&Cline, name, &path, (&parent, seq))
        };
        let id = hand_over(&kit.store, &new).unwrap();
        let spent = || {
            let stats = kit.store.read_session(&id).unwrap().stats().unwrap();
            stats.usage.input_tokens
        };
        let before = spent();
        kit.write(&file_name, &messages);
        assert_eq!(import_file(&kit, &kit.store, &file_name, &Cline), (0, 0));
        let mut all: Vec<_> = [0, 1, 2, 3].map(|n| message(n, None)).into();
        let mut write = |new: serde_json::Value, prompt: Option<&str>, own: usize| {
            all.push(new);
            kit.write(&file_name, file(&all, prompt));
            for _ in 0..2 {
                next.prepare(&kit, &file_name);
                import_file(&kit, &kit.store, &file_name, &Cline);
                assert_eq!(own_keys(&kit.store, &id).len(), own);
            }
        };
        write(message(4, Some("m")), None, 1);
        write(message(5, Some("m")), None, 2);
        assert_eq!(spent(), before + 10);
        // It gives its messages other ids, and adds its instructions.
        let mut all: Vec<_> = (0..6).map(|n| message(n, Some("x"))).collect();
        all.push(message(6, Some("x")));
        kit.write(&file_name, file(&all, None));
        for _ in 0..2 {
            next.prepare(&kit, &file_name);
            import_file(&kit, &kit.store, &file_name, &Cline);
            assert_eq!(own_keys(&kit.store, &id), ["x4", "x5", "x6"]);
        }
        assert_eq!(spent(), before + 10);
        assert_eq!(kit.store.sessions().unwrap().len(), 2);
    }
}

#[test]
fn f24_a_session_in_a_database_adds_only_what_is_new() {
    for next in [Next::Appended, Next::WithoutCache] {
        let kit = agents::Kit::new("opencode/opencode.db", OPENCODE);
        let parents = Kit::new();
        let seq = import_parent(&parents, &kit.store);
        let forget = || {
            if next == Next::WithoutCache {
                std::fs::remove_dir_all(kit.store.root().join("derived")).ok();
            }
        };
        // The agent's own import command writes to the database.
        let paused = PausedImports::begin(&kit.store).unwrap();
        let session = "INSERT INTO session VALUES ('ses_of_pears', 'p', NULL, 's', '/work',
            'Pears', '1.18.0', NULL, ?1, ?1)";
        kit.run(session, &[&agents::AT]);
        let answer = |at: i64| {
            json!({"role": "assistant", "modelID": "m-1", "cost": 0.5,
                "time": {"created": agents::AT + at, "completed": agents::AT + at},
                "tokens": {"input": 7, "output": 3}})
        };
        let say = |n: i64| {
            let (message, part) = (format!("msg_{n}"), format!("prt_{n}"));
            let prompt = json!({"role": "user", "time": {"created": agents::AT + n}});
            let data = if n % 2 == 0 { prompt } else { answer(n) };
            kit.message(&message, n, &data);
            let time = json!({"start": agents::AT + n, "end": agents::AT + n});
            let text = json!({"type": "text", "text": format!("pears {n}"), "time": time});
            kit.part(&part, &message, &text);
        };
        (0..4).for_each(say);
        let path = contained_file(&kit.database, "ses_of_pears");
        let parent = parent();
        let new = HandOver {
            title: None,
            directory: None,
            ..new(&OpenCode, "ses_of_pears", &path, (&parent, seq))
        };
        let id = paused.hand_over(&new).unwrap();
        drop(paused);
        let spent = || {
            let stats = kit.store.read_session(&id).unwrap().stats().unwrap();
            (stats.usage.input_tokens, stats.cost_usd)
        };
        let before = spent();
        let info = kit.store.read_session(&id).unwrap().info().unwrap();
        assert_eq!(info.title.as_deref(), Some("Pears"));
        assert_eq!(info.workspace_root.unwrap(), Path::new("/work"));
        for _ in 0..2 {
            forget();
            assert_eq!(kit.import(), ("opencode", 0, 0));
            assert_eq!(own_keys(&kit.store, &id), [""; 0]);
        }
        say(4);
        say(5);
        for updated in [1, 0] {
            forget();
            assert_eq!(kit.import(), ("opencode", 0, updated));
            assert_eq!(own_keys(&kit.store, &id), ["msg_4", "prt_5"]);
        }
        assert_eq!(spent(), (before.0 + 7, Some(before.1.unwrap_or(0.0) + 0.5)));
        // It reverts to a message of the copy, and goes on from there.
        kit.run(
            "UPDATE session SET revert = '{\"messageID\":\"msg_2\"}'",
            &[],
        );
        forget();
        kit.import();
        assert_eq!(own_keys(&kit.store, &id), [""; 0]);
        kit.run("UPDATE session SET revert = NULL", &[]);
        kit.run("DELETE FROM message WHERE id >= 'msg_2'", &[]);
        kit.run("DELETE FROM part WHERE id >= 'prt_2'", &[]);
        say(6);
        for updated in [1, 0] {
            forget();
            assert_eq!(kit.import(), ("opencode", 0, updated));
            assert_eq!(own_keys(&kit.store, &id), ["msg_6"]);
        }
        assert_eq!(kit.store.sessions().unwrap().len(), 2);
    }
}

#[test]
fn f24_files_that_share_a_part_of_a_copy_are_forks_at_its_end() {
    let kit = Kit::new();
    let seq = import_parent(&kit, &kit.store);
    let codex_name = |n: u32| format!("0b1c2d3e-0000-7000-8000-{n:012}");
    let file = |n: u32| format!("rollout-2026-08-03T10-48-{n:02}-{}.jsonl", codex_name(n));
    let meta = |n: u32, base: Option<u32>| {
        let mut meta = json!({"id": codex_name(n), "cwd": "/work", "cli_version": "0.166.0"});
        if let Some(end) = base {
            meta["history_base"] = json!({"thread_id": codex_name(2),
                "end_ordinal_exclusive": end, "end_byte_offset": 99});
            meta["forked_from_id"] = json!(codex_name(2));
        }
        meta
    };
    let line = |ordinal: u32, kind: &str, payload: serde_json::Value| {
        let at = format!("2026-08-03T11:00:{ordinal:02}.000Z");
        let line = json!({"timestamp": at, "ordinal": ordinal, "type": kind, "payload": payload});
        format!("{line}\n")
    };
    let said = |n: u32, from: std::ops::Range<u32>| -> String {
        let one = |ordinal: u32| {
            let content = json!([{"type": "input_text", "text": format!("{n}: {ordinal}")}]);
            let payload = json!({"type": "message", "role": "user", "content": content});
            line(ordinal, "response_item", payload)
        };
        from.map(one).collect()
    };
    let mut text = line(0, "session_meta", meta(2, None)) + &said(2, 1..5);
    kit.write(&file(2), &text);
    let (name, path, parent) = (codex_name(2), kit.path(&file(2)), parent());
    let to_codex = new(&Codex, &name, &path, (&parent, seq));
    let handed = hand_over(&kit.store, &to_codex).unwrap();
    text += &said(2, 5..7);
    kit.write(&file(2), text);
    import_file(&kit, &kit.store, &file(2), &Codex);
    let keys = own_keys(&kit.store, &handed);
    assert_eq!(keys, ["000000000005", "000000000006"]);
    // One that left in the copy, and one after the first new message.
    for (n, end, is_at_fork) in [(3, 3, true), (4, 6, false)] {
        let text = line(end, "session_meta", meta(n, Some(end))) + &said(n, end + 1..end + 2);
        kit.write(&file(n), text);
        for next in NEXT {
            next.prepare(&kit, &file(n));
            import_file(&kit, &kit.store, &file(n), &Codex);
            let fork: SessionId = codex_name(n).parse().unwrap();
            let info = kit.store.read_session(&fork).unwrap().info().unwrap();
            let from = info.forked_from.unwrap();
            assert_eq!(from.parent_session_id, name);
            assert_eq!(from.seq == Some(seq), is_at_fork, "{n}");
            assert_eq!(own_keys(&kit.store, &fork).len(), 1, "{n}");
            let shared = if is_at_fork { 4 } else { 5 };
            assert_eq!(kit.keys(&fork).len(), shared + 1, "{n}");
        }
    }
}

// opencode keeps the id of a session that it imports, and its exports are read like its database.
#[test]
fn f24_a_session_can_be_handed_over_before_a_database_has_it() {
    for next in [Next::Appended, Next::WithoutCache] {
        let kit = agents::Kit::new("opencode/opencode.db", OPENCODE);
        let parents = Kit::new();
        let seq = import_parent(&parents, &kit.store);
        let info = |n: i64| match n % 2 {
            0 => json!({"role": "user", "time": {"created": agents::AT + n}}),
            _ => json!({"role": "assistant", "modelID": "m-1", "cost": 0.5,
                "time": {"created": agents::AT + n, "completed": agents::AT + n},
                "tokens": {"input": 7, "output": 3}}),
        };
        let part = |n: i64| {
            json!({"type": "text", "text": format!("pears {n}"),
                "time": {"start": agents::AT + n, "end": agents::AT + n}})
        };
        let exported = |n: i64| {
            let (mut info, mut part) = (info(n), part(n));
            for value in [&mut info, &mut part] {
                value["sessionID"] = json!("ses_of_pears");
            }
            info["id"] = json!(format!("msg_{n}"));
            part["id"] = json!(format!("prt_{n}"));
            part["messageID"] = info["id"].clone();
            json!({"info": info, "parts": [part]})
        };
        let time = json!({"created": agents::AT, "updated": agents::AT});
        let session = json!({"id": "ses_of_pears", "projectID": "p", "directory": "/work",
            "title": "Pears", "version": "1.18.0", "time": time});
        let messages: Vec<_> = (0..4).map(exported).collect();
        let export = json!({"info": session, "messages": messages}).to_string();
        let path = contained_file(&kit.database, "ses_of_pears");
        let content = Source::from_bytes(&path, export);
        let parent = parent();
        let new = HandOver {
            content: Some(&content),
            ..new(&OpenCode, "ses_of_pears", &path, (&parent, seq))
        };
        let id = hand_over(&kit.store, &new).unwrap();
        let import = |own: &[&str]| {
            for _ in 0..2 {
                if next == Next::WithoutCache {
                    std::fs::remove_dir_all(kit.store.root().join("derived")).ok();
                }
                kit.import();
                assert_eq!(own_keys(&kit.store, &id), own);
            }
            assert_eq!(kit.store.sessions().unwrap().len(), 2);
        };
        let session = "INSERT INTO session VALUES ('ses_of_pears', 'p', NULL, 's', '/work',
            'Pears', '1.18.0', NULL, ?1, ?1)";
        kit.run(session, &[&agents::AT]);
        let say = |n: i64| {
            kit.message(&format!("msg_{n}"), n, &info(n));
            kit.part(&format!("prt_{n}"), &format!("msg_{n}"), &part(n));
        };
        (0..4).for_each(say);
        import(&[]);
        (4..6).for_each(say);
        import(&["msg_4", "prt_5"]);
        let info = kit.store.read_session(&id).unwrap().info().unwrap();
        assert_eq!(info.title.as_deref(), Some("fix login (from Claude Code)"));
    }
}

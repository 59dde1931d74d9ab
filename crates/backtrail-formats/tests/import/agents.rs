//! Databases of real agents, made by SQLite with the agents' own schemas: imported while they
//! grow.

use std::path::{Path, PathBuf};

use backtrail::{RecordKind, SessionReader, Store};
use backtrail_formats::{Environment, ImportOptions, import};
use rusqlite::Connection;
use serde_json::{Value, json};

pub(crate) struct Kit {
    dir: tempfile::TempDir,
    pub(crate) store: Store,
    connection: Connection,
    pub(crate) database: PathBuf,
}

impl Kit {
    pub(crate) fn new(file: &str, schema: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let database = dir.path().join(file);
        std::fs::create_dir_all(database.parent().unwrap()).unwrap();
        let connection = Connection::open(&database).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;")
            .unwrap();
        connection.execute_batch(schema).unwrap();
        Self {
            dir,
            store,
            connection,
            database,
        }
    }

    pub(crate) fn run(&self, statement: &str, values: &[&dyn rusqlite::ToSql]) {
        self.connection.execute(statement, values).unwrap();
    }

    /// Imports the database; returns the agent, and how many sessions are new and updated.
    pub(crate) fn import(&self) -> (&'static str, u64, u64) {
        let environment = Environment::new(self.dir.path());
        let options = ImportOptions::new(environment).paths(vec![self.database.clone()]);
        let report = import(&self.store, &options, &|_| {}).unwrap();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        let agents = || report.agents.iter().filter(|agent| agent.found > 0);
        assert_eq!(agents().count(), 1);
        let agent = agents().next().unwrap();
        assert!(agent.errors.is_empty(), "{:?}", agent.errors);
        assert_eq!(agent.damaged_lines, 0, "{:?}", agent.first_damaged);
        assert!(agent.unknown_types.is_empty(), "{:?}", agent.unknown_types);
        (agent.agent, agent.new, agent.updated)
    }

    fn session(&self, id: &str) -> SessionReader {
        let named = |found: &backtrail::SessionId| {
            let info = self.store.read_session(found).unwrap().info().unwrap();
            found.as_str() == id || info.original_id.as_deref() == Some(id)
        };
        let ids = self.store.sessions().unwrap();
        let found = ids.into_iter().find(named).expect("it was imported");
        self.store.read_session(&found).unwrap()
    }

    /// Returns the keys of a session's messages.
    fn keys(&self, id: &str) -> Vec<String> {
        let mut records = self.session(id).records().unwrap();
        let mut keys = Vec::new();
        while let Some(record) = records.next().unwrap() {
            if record.kind() == RecordKind::Message {
                keys.push(record.id().unwrap().into_owned());
            }
        }
        keys
    }

    /// Returns what a session spent: input tokens, output tokens, and the cost.
    fn spent(&self, id: &str) -> (u64, u64, f64) {
        let stats = self.session(id).stats().unwrap();
        let usage = &stats.usage;
        (
            usage.input_tokens,
            usage.output_tokens,
            stats.cost_usd.unwrap_or(0.0),
        )
    }
}

fn text(value: &Value) -> String {
    value.to_string()
}

pub(crate) const OPENCODE: &str = "
    CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
        slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
        revert text, time_created integer NOT NULL, time_updated integer NOT NULL);
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);";

pub(crate) const AT: i64 = 1_767_323_100_000;

impl Kit {
    pub(crate) fn message(&self, id: &str, at: i64, data: &Value) {
        let statement = "INSERT OR REPLACE INTO message VALUES (?1, 'ses_of_pears', ?2, ?2, ?3)";
        self.run(statement, &[&id, &(AT + at), &text(data)]);
    }

    pub(crate) fn part(&self, id: &str, message: &str, data: &Value) {
        let statement = "INSERT OR REPLACE INTO part VALUES (?1, ?2, 'ses_of_pears', ?3, ?3, ?4)";
        self.run(statement, &[&id, &message, &AT, &text(data)]);
    }
}

#[test]
fn a_session_of_opencode_follows_its_agent_and_its_revert() {
    let kit = Kit::new("opencode/opencode.db", OPENCODE);
    let session = "INSERT INTO session VALUES ('ses_of_pears', 'p', NULL, 's', '/work', 'Pears',
        '1.18.0', NULL, ?1, ?1)";
    kit.run(session, &[&(AT + 900)]);
    kit.message(
        "msg_a",
        0,
        &json!({"role": "user", "time": {"created": AT}}),
    );
    kit.part(
        "prt_a",
        "msg_a",
        &json!({"type": "text", "text": "Count the pears"}),
    );
    assert_eq!(kit.import(), ("opencode", 1, 0));
    let open = json!({"role": "assistant", "modelID": "m-1", "time": {"created": AT + 1},
        "tokens": {"input": 0, "output": 0}});
    kit.message("msg_b", 1, &open);
    let call =
        |state: Value| json!({"type": "tool", "tool": "bash", "callID": "c1", "state": state});
    kit.part(
        "prt_b1",
        "msg_b",
        &json!({"type": "text", "text": "I", "time": {"start": AT}}),
    );
    kit.import();
    assert_eq!(kit.keys("ses_of_pears"), ["msg_a"]);
    let whole = json!({"type": "text", "text": "I look.", "time": {"start": AT, "end": AT}});
    kit.part("prt_b1", "msg_b", &whole);
    kit.part(
        "prt_b2",
        "msg_b",
        &call(json!({"status": "running", "input": {"command": "ls"}})),
    );
    assert_eq!(kit.import(), ("opencode", 0, 1));
    assert_eq!(kit.keys("ses_of_pears"), ["msg_a", "prt_b1", "prt_b2"]);
    kit.part(
        "prt_b2",
        "msg_b",
        &call(json!({"status": "completed", "input": {"command": "ls"},
        "output": "pears", "time": {"start": AT, "end": AT}})),
    );
    let done = json!({"role": "assistant", "modelID": "m-1", "cost": 0.5,
        "time": {"created": AT + 1, "completed": AT + 2}, "tokens": {"input": 7, "output": 3}});
    kit.message("msg_b", 1, &done);
    kit.import();
    let whole = ["msg_a", "prt_b1", "prt_b2", "prt_b2/result"];
    assert_eq!(kit.keys("ses_of_pears"), whole);
    assert_eq!(kit.spent("ses_of_pears"), (7, 3, 0.5));
    kit.message(
        "msg_c",
        3,
        &json!({"role": "user", "time": {"created": AT + 3}}),
    );
    kit.part(
        "prt_c",
        "msg_c",
        &json!({"type": "text", "text": "And plums"}),
    );
    kit.import();
    assert_eq!(kit.keys("ses_of_pears").len(), 5);
    kit.run(
        "UPDATE session SET revert = '{\"messageID\":\"msg_c\",\"snapshot\":\"s\"}'",
        &[],
    );
    kit.import();
    assert_eq!(kit.keys("ses_of_pears"), whole);
    // The next prompt removes what was reverted.
    kit.run("UPDATE session SET revert = NULL", &[]);
    kit.run("DELETE FROM message WHERE id = 'msg_c'", &[]);
    kit.run("DELETE FROM part WHERE id = 'prt_c'", &[]);
    kit.message(
        "msg_d",
        4,
        &json!({"role": "user", "time": {"created": AT + 4}}),
    );
    kit.part(
        "prt_d",
        "msg_d",
        &json!({"type": "text", "text": "And figs"}),
    );
    kit.import();
    assert_eq!(kit.keys("ses_of_pears")[3..], ["prt_b2/result", "msg_d"]);
    assert_eq!(kit.import(), ("opencode", 0, 0));
    assert_eq!(kit.spent("ses_of_pears"), (7, 3, 0.5));
}

#[test]
fn rows_of_opencode_that_are_not_read_are_kept_and_counted() {
    let kit = Kit::new("opencode/opencode.db", OPENCODE);
    let session = "INSERT INTO session VALUES ('ses_of_pears', 'p', NULL, 's', '/work', 'Pears',
        '1.18', NULL, 1, ?1)";
    kit.run(session, &[&(AT + 1)]);
    kit.message("msg_1", 1, &json!({"role": "user", "time": {"created": 1}}));
    kit.part("prt_1", "msg_1", &json!({"type": "text", "text": "pears"}));
    kit.part(
        "prt_2",
        "msg_gone",
        &json!({"type": "text", "text": "plums"}),
    );
    let environment = Environment::new(kit.dir.path());
    let options = ImportOptions::new(environment).paths(vec![kit.database.clone()]);
    let report = import(&kit.store, &options, &|_| {}).unwrap();
    let agent = report.agents.iter().find(|agent| agent.found > 0).unwrap();
    assert_eq!(agent.damaged_lines, 1);
    assert_eq!(
        agent.first_damaged[0].line.reason,
        "part without its message"
    );
    let reader = kit.session("ses_of_pears");
    let mut kept = Vec::new();
    reader
        .write_source(&reader.sources().unwrap()[0], &mut kept)
        .unwrap();
    assert!(String::from_utf8(kept).unwrap().contains("plums"));
}

#[test]
fn a_session_of_opencode_without_a_message_is_not_a_session() {
    let kit = Kit::new("opencode/opencode.db", OPENCODE);
    let session = "INSERT INTO session VALUES (?1, 'p', NULL, 's', '/work', 'Pears', '1.18',
        NULL, 1, ?2)";
    kit.run(session, &[&"ses_of_pears", &(AT + 1)]);
    kit.run(session, &[&"ses_of_plums", &(AT + 1)]);
    kit.message(
        "msg_1",
        1,
        &json!({"role": "user", "time": {"created": AT}}),
    );
    kit.part("prt_1", "msg_1", &json!({"type": "text", "text": "pears"}));
    let environment = Environment::new(kit.dir.path());
    let options = ImportOptions::new(environment).paths(vec![kit.database.clone()]);
    for new in [1, 0] {
        let report = import(&kit.store, &options, &|_| {}).unwrap();
        let agent = report.agents.iter().find(|agent| agent.found > 0).unwrap();
        assert_eq!((agent.found, agent.new), (2, new));
        assert_eq!(agent.without_conversation, 1);
        assert_eq!(kit.store.sessions().unwrap().len(), 1);
    }
    // It becomes one with its first message.
    let said = "INSERT INTO message VALUES ('msg_2', 'ses_of_plums', ?1, ?1, ?2)";
    kit.run(
        said,
        &[
            &AT,
            &text(&json!({"role": "user", "time": {"created": AT}})),
        ],
    );
    let part = "INSERT INTO part VALUES ('prt_2', 'msg_2', 'ses_of_plums', ?1, ?1, ?2)";
    kit.run(
        part,
        &[&AT, &text(&json!({"type": "text", "text": "plums"}))],
    );
    assert_eq!(kit.import().1, 1);
    assert_eq!(kit.keys("ses_of_plums"), ["msg_2"]);
}

#[test]
fn a_sub_agent_of_opencode_names_the_call_that_started_it() {
    let kit = Kit::new("opencode/opencode.db", OPENCODE);
    let session = "INSERT INTO session VALUES (?1, 'p', ?2, 's', '/work', 'Pears', '1.18', NULL,
        ?3, ?3)";
    let none: Option<&str> = None;
    kit.run(session, &[&"ses_of_pears", &none, &(AT + 9)]);
    let parent = Some("ses_of_pears");
    let children = ["ses_of_counting", "ses_of_tasting", "ses_of_nothing"];
    for child in children {
        kit.run(session, &[&child, &parent, &(AT + 9)]);
        let (id, said) = (
            format!("msg_{child}"),
            json!({"role": "user", "time": {"created": AT}}),
        );
        let statement = "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)";
        kit.run(statement, &[&id, &child, &AT, &text(&said)]);
        let part = "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)";
        let said = text(&json!({"type": "text", "text": "Count"}));
        kit.run(part, &[&format!("prt_{child}"), &id, &child, &AT, &said]);
    }
    kit.message(
        "msg_a",
        0,
        &json!({"role": "user", "time": {"created": AT}}),
    );
    kit.part(
        "prt_a",
        "msg_a",
        &json!({"type": "text", "text": "Count the pears"}),
    );
    let answer = json!({"role": "assistant", "modelID": "m-1", "time": {"created": AT + 1}});
    kit.message("msg_b", 1, &answer);
    let call = |id: &str, state: Value| json!({"type": "tool", "tool": "task", "callID": id, "state": state});
    let counted = json!({"status": "completed", "input": {"prompt": "Count"}, "output": "Three.",
        "metadata": {"sessionId": "ses_of_counting"}, "time": {"start": AT, "end": AT}});
    kit.part("prt_b1", "msg_b", &call("c1", counted));
    // It is still at work.
    let tasting = json!({"status": "running", "input": {"prompt": "Taste"},
        "metadata": {"sessionId": "ses_of_tasting"}, "time": {"start": AT}});
    kit.part("prt_b2", "msg_b", &call("c2", tasting));
    assert_eq!(kit.import().1, 4);
    let spawned = children.map(|child| kit.session(child).info().unwrap().spawned_by.unwrap());
    let calls: Vec<&str> = spawned.iter().map(|it| it.tool_use_id.as_str()).collect();
    assert_eq!(calls, ["c1", "c2", ""]);
    assert!(
        spawned[0].seq > 0 && spawned[1].seq > spawned[0].seq,
        "{spawned:?}"
    );
}

const GOOSE: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '',
        session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
        created_at TIMESTAMP DEFAULT '2026-01-02 03:04:05', extension_data TEXT DEFAULT '{}',
        accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER,
        accumulated_cost REAL, model_config_json TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
        session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
        content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
        timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);";

#[test]
fn a_session_of_goose_grows_and_its_total_counts_once() {
    let kit = Kit::new("goose/sessions/sessions.db", GOOSE);
    let session = "INSERT INTO sessions (id, name, working_dir, model_config_json)
        VALUES ('20260102_1', 'Pears', '/work', '{\"model_name\":\"m-1\"}')";
    kit.run(session, &[]);
    let say = |id: &str, role: &str, words: &str| {
        let content = text(&json!([{"type": "text", "text": words}]));
        let statement = "INSERT INTO messages (message_id, session_id, role, content_json,
            created_timestamp, metadata_json) VALUES (?1, '20260102_1', ?2, ?3, 1767323100,
            '{\"userVisible\":true,\"agentVisible\":true}')";
        kit.run(statement, &[&id, &role, &content]);
    };
    let total = |input: i64, output: i64, cost: f64| {
        let statement = "UPDATE sessions SET accumulated_input_tokens = ?1,
            accumulated_output_tokens = ?2, accumulated_cost = ?3";
        kit.run(statement, &[&input, &output, &cost]);
    };
    say("m1", "user", "Count the pears");
    say("m2", "assistant", "Three.");
    total(10, 2, 0.25);
    assert_eq!(kit.import(), ("goose", 1, 0));
    assert_eq!(kit.spent("20260102_1"), (10, 2, 0.25));
    for turn in 2..5_i64 {
        say(&format!("m{turn}a"), "user", "Again");
        say(&format!("m{turn}b"), "assistant", "Three.");
        total(10 * turn, 2 * turn, 0.25 * turn as f64);
        assert_eq!(kit.import(), ("goose", 0, 1));
        assert_eq!(kit.import(), ("goose", 0, 0));
        let turns = turn.unsigned_abs();
        assert_eq!(kit.keys("20260102_1").len() as u64, 2 * turns);
        assert_eq!(
            kit.spent("20260102_1"),
            (10 * turns, 2 * turns, 0.25 * turn as f64)
        );
    }
    let stats = kit.session("20260102_1").stats().unwrap();
    assert_eq!((stats.turns, stats.responses), (4, 1));
}

// An export has the messages in the order of their times, and the result of a call may have an
// earlier time than the call.
#[test]
fn an_export_of_goose_is_the_same_session_as_in_its_database() {
    let result = json!([{"type": "toolResponse", "id": "c1",
        "toolResult": {"status": "success", "value": {"content": []}}}]);
    let call = json!([{"type": "toolRequest", "id": "c1",
        "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {}}}}]);
    let words = |words: &str| json!([{"type": "text", "text": words}]);
    let messages = [
        ("m1", "user", words("Count the pears"), 1_767_323_100_i64),
        ("m2", "assistant", words("I look."), 1_767_323_101),
        ("m3", "assistant", call, 1_767_323_102),
        ("m4", "user", result, 1_767_323_101),
        ("m5", "assistant", words("Three."), 1_767_323_102),
    ];
    let exported = [0, 1, 3, 2, 4].map(|at: usize| {
        let (id, role, content, created) = &messages[at];
        json!({"id": id, "role": role, "created": created, "content": content,
            "metadata": {"userVisible": true, "agentVisible": true}})
    });
    let export = json!({"id": "20260102_1", "working_dir": "/work", "name": "Pears",
        "created_at": "2026-01-02T03:04:05Z", "conversation": exported});
    for export_is_first in [false, true] {
        let kit = Kit::new("goose/sessions/sessions.db", GOOSE);
        let session = "INSERT INTO sessions (id, name, working_dir)
            VALUES ('20260102_1', 'Pears', '/work')";
        kit.run(session, &[]);
        for (id, role, content, created) in &messages {
            let statement = "INSERT INTO messages (message_id, session_id, role, content_json,
                created_timestamp) VALUES (?1, '20260102_1', ?2, ?3, ?4)";
            kit.run(statement, &[id, role, &text(content), created]);
        }
        let file = kit.dir.path().join("export.json");
        std::fs::write(&file, export.to_string()).unwrap();
        let mut files = [kit.database.clone(), file];
        if export_is_first {
            files.reverse();
        }
        for file in files {
            let environment = Environment::new(kit.dir.path());
            let options = ImportOptions::new(environment).paths(vec![file]);
            let report = import(&kit.store, &options, &|_| {}).unwrap();
            assert!(report.errors.is_empty(), "{:?}", report.errors);
        }
        assert_eq!(kit.store.sessions().unwrap().len(), 1);
        assert_eq!(kit.keys("20260102_1"), ["m1", "m2", "m3", "m4", "m5"]);
    }
}

#[test]
fn chats_of_aider_that_began_in_the_same_second_are_separate_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let chat = |answer: &str| {
        format!(
            "\n# aider chat started at 2026-01-02 03:04:05\n\n> Aider v0.86.1  \n\n\
             #### count the pears  \n\n{answer}\n\n#### and the plums  \n\nTwo.\n\n"
        )
    };
    // The last is a copy of the first.
    let projects = [
        ("a", "Three."),
        ("b", "Four."),
        ("c", "Five."),
        ("d", "Three."),
    ];
    let paths: Vec<PathBuf> = projects
        .iter()
        .map(|(project, answer)| {
            let path = dir.path().join(project).join(".aider.chat.history.md");
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            std::fs::write(&path, chat(answer)).unwrap();
            path
        })
        .collect();
    let options = ImportOptions::new(Environment::new(dir.path())).paths(paths.clone());
    for again in [false, true] {
        let report = import(&store, &options, &|_| {}).unwrap();
        let agent = report.agents.iter().find(|it| it.agent == "aider").unwrap();
        assert!(agent.errors.is_empty(), "{:?}", agent.errors);
        assert_eq!(agent.new, if again { 0 } else { 3 });
        let ids = store.sessions().unwrap();
        assert_eq!(ids.len(), 3);
        for id in ids {
            let reader = store.read_session(&id).unwrap();
            assert_eq!(reader.info().unwrap().forked_from, None);
            assert_eq!(reader.stats().unwrap().turns, 2);
        }
        // What is in the sessions counts, not what was remembered.
        std::fs::remove_dir_all(store.root().join("derived")).unwrap();
    }
    // Each goes on in its own file.
    let more = "#### and the figs  \n\nNone.\n\n";
    for path in &paths[..3] {
        let before = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, before + more).unwrap();
    }
    let report = import(&store, &options, &|_| {}).unwrap();
    let agent = report.agents.iter().find(|it| it.agent == "aider").unwrap();
    assert_eq!((agent.new, agent.updated), (0, 3));
    for id in store.sessions().unwrap() {
        let stats = store.read_session(&id).unwrap().stats().unwrap();
        assert_eq!(stats.turns, 3, "{id}");
    }
}

const CRUSH: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
        message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
        completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0,
        updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT,
        todos TEXT);
    CREATE TABLE files (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, path TEXT NOT NULL,
        content TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
        parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
        is_summary_message INTEGER DEFAULT 0 NOT NULL);";

#[test]
fn sessions_of_crush_are_imported_with_their_sub_agents() {
    let kit = Kit::new("shop/.crush/crush.db", CRUSH);
    let session =
        "INSERT INTO sessions (id, parent_session_id, title, cost, updated_at, created_at)
        VALUES (?1, ?2, ?3, ?4, 1767323200, 1767323100)";
    let none: Option<&str> = None;
    kit.run(
        session,
        &[
            &"6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            &none,
            &"Pears",
            &0.75,
        ],
    );
    let child = "m2$$call_1";
    let main = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let parent = Some(main);
    kit.run(session, &[&child, &parent, &"New Agent Session", &0.25]);
    let say = |session: &str, id: &str, role: &str, parts: Value| {
        let statement = "INSERT OR REPLACE INTO messages (id, session_id, role, parts, model,
            created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 'm-1', 1767323101, 1767323101)";
        kit.run(statement, &[&id, &session, &role, &text(&parts)]);
    };
    let part = |words: &str| json!({"type": "text", "data": {"text": words}});
    let finish = json!({"type": "finish", "data": {"reason": "tool_use", "time": 1_767_323_102}});
    let call = json!({"type": "tool_call", "data": {"id": "call_1", "name": "agent", "input": "{}",
        "finished": true}});
    say(main, "m1", "user", json!([part("Count the pears"), finish]));
    say(main, "m2", "assistant", json!([part("I"), call]));
    say(child, "n1", "user", json!([part("Count"), finish]));
    say(child, "n2", "assistant", json!([part("Three."), finish]));
    assert_eq!(kit.import(), ("crush", 2, 0));
    assert_eq!(kit.keys(main), ["m1"]);
    say(
        main,
        "m2",
        "assistant",
        json!([part("I ask."), call, finish]),
    );
    assert_eq!(kit.import(), ("crush", 0, 1));
    assert_eq!(kit.keys(main), ["m1", "m2"]);
    assert_eq!(kit.keys(child), ["n1", "n2"]);
    // The parent's cost includes that of its sub-agents.
    assert_eq!(kit.spent(main).2, 0.75);
    assert_eq!(kit.spent(child).2, 0.0);
    let spawned = kit.session(child).info().unwrap().spawned_by.unwrap();
    assert_eq!(spawned.tool_use_id, "call_1");
    let root = kit.session(main).info().unwrap().workspace_root.unwrap();
    assert!(Path::new(&root).ends_with("shop"), "{root:?}");
}

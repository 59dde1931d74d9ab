//! Files that grow or are rewritten, imported again and again: the session is the same as from
//! the last file alone.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are its own"
)]

use std::path::{Path, PathBuf};

use backtrail::{RecordKind, Store};
use backtrail_formats::{Environment, ImportOptions, import};

struct Home {
    dir: tempfile::TempDir,
    store: Store,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        Self { dir, store }
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn import(&self, path: &Path) {
        let options = ImportOptions::new(Environment::default()).paths(vec![path.to_owned()]);
        let report = import(&self.store, &options, &|_| {}).unwrap();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        for agent in &report.agents {
            assert!(agent.errors.is_empty(), "{:?}", agent.errors);
        }
    }

    /// Returns the keys of the messages of all sessions, as they are now.
    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for id in self.store.sessions().unwrap() {
            keys.push(id.to_string());
            let reader = self.store.read_session(&id).unwrap();
            let mut records = reader.records().unwrap();
            while let Some(record) = records.next().unwrap() {
                if record.kind() == RecordKind::Message {
                    keys.extend(record.id().map(std::borrow::Cow::into_owned));
                }
            }
            assert!(reader.verify().unwrap().is_ok());
        }
        keys
    }
}

/// Imports a file at all of these lengths, and once at its last.
fn grows(name: &str, contents: &[String], sessions: usize) {
    let (often, once) = (Home::new(), Home::new());
    let path = often.file(name);
    for content in contents {
        std::fs::write(&path, content).unwrap();
        often.import(&path);
    }
    let last = once.file(name);
    std::fs::write(&last, contents.last().unwrap()).unwrap();
    once.import(&last);
    assert_eq!(once.store.sessions().unwrap().len(), sessions);
    assert_eq!(often.keys(), once.keys(), "{name}");
}

#[test]
fn a_chat_of_aider_that_is_being_written() {
    let lines = [
        "# aider chat started at 2026-02-03 04:05:06\n\n",
        "> aider a.rs  \n",
        "> Model: big with diff edit format  \n",
        "\n#### mend it  \n\n",
        "Certainly!\n",
        "\nDone.\n",
        "> Tokens: 10 sent, 5 received.\n",
        "Cost: $0.1 message, $0.1 session.  \n",
        "> Applied edit to a.rs  \n",
        "\n# aider chat started at 2026-02-03 05:00:00\n\n",
        "#### go on  \n",
        "\nI do.\n",
    ];
    let contents: Vec<String> = (1..=lines.len()).map(|n| lines[..n].concat()).collect();
    grows("shop/.aider.chat.history.md", &contents, 2);
}

#[test]
fn a_session_of_cline_that_is_rewritten() {
    let message = |n: u32| {
        let role = if n.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        format!(r#"{{"id":"m{n}","role":"{role}","content":"message {n}","ts":179000000{n}000}}"#)
    };
    let content = |count: u32| {
        let messages: Vec<String> = (0..count).map(message).collect();
        format!(
            r#"{{"version":1,"updated_at":"2026-09-21T10:00:0{count}Z","agent":"lead","sessionId":"1790000000000_abcde","messages":[{}],"system_prompt":"Be brief."}}"#,
            messages.join(",")
        )
    };
    let mut contents: Vec<String> = (1..7).map(content).collect();
    // Half of a file that is being written.
    contents.insert(3, content(4)[..200].to_owned());
    let name = "1790000000000_abcde/1790000000000_abcde.messages.json";
    grows(name, &contents, 1);
}

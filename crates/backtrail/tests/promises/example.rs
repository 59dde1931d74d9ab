//! The example agent as a real process: killed anywhere and run again, it ends in the
//! same conversation (F25).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use backtrail::context::MendRule;
use backtrail::{RecordKind, Shape, Store};
use tempfile::TempDir;

/// Returns the example. `cargo test` builds it, unless only some tests are selected by
/// name.
fn agent() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().and_then(Path::parent).unwrap();
    let name = format!("agent{}", std::env::consts::EXE_SUFFIX);
    let path = profile.join("examples").join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/agent.rs");
    let made = |path: &Path| path.metadata().and_then(|known| known.modified()).ok();
    assert!(
        made(&path) >= made(&source),
        "{} is missing or old; build it: cargo build -p backtrail --example agent",
        path.display()
    );
    path
}

/// A directory for a store and for the files that the agent's tool writes.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(agent())
            .arg(self.store())
            .args(args)
            .output()
            .unwrap()
    }

    /// Runs the agent to its end and returns its output.
    fn finish(&self, args: &[&str]) -> Vec<String> {
        let output = self.run(args);
        assert!(output.status.success(), "{output:?}");
        lines(&output)
    }

    fn kill(&self, args: &[&str]) {
        let output = self.run(args);
        #[cfg(unix)]
        {
            use std::os::unix::process::ExitStatusExt;
            assert!(output.status.signal().is_some(), "{output:?}");
        }
        assert_eq!(lines(&output).len(), 1, "the id, and no more: {output:?}");
    }

    /// Returns all messages, and the current context.
    fn conversation(&self) -> (Vec<String>, String) {
        let store = Store::open(self.store()).unwrap();
        let id = store.resolve("latest").unwrap();
        let reader = store.read_session(&id).unwrap();
        let mut said = Vec::new();
        let mut records = reader.records().unwrap();
        while let Some(record) = records.next().unwrap() {
            said.push(match record.message_json().unwrap() {
                Some(message) => message.into_owned(),
                None => record.kind().as_str().to_owned(),
            });
        }
        assert!(records.damage().is_empty());
        assert!(reader.verify().unwrap().is_ok());
        let context = reader.context(Shape::Anthropic).unwrap();
        (said, context.into_json())
    }

    /// Returns the files that the tool wrote.
    fn files(&self) -> Vec<Option<Vec<u8>>> {
        let storage = backtrail::LocalStorage;
        (0..4)
            .map(|line| {
                let path = self.0.path().join(format!("poem/line-{line}.txt"));
                let file = backtrail::Storage::open_read(&storage, &path).ok()?;
                let mut bytes = vec![0; 100];
                let n = file.read_at(&mut bytes, 0).unwrap();
                bytes.truncate(n);
                Some(bytes)
            })
            .collect()
    }
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Runs an agent without killing it.
fn undisturbed() -> Place {
    let place = Place::new();
    let printed = place.finish(&[]);
    assert_eq!(printed.len(), 2, "{printed:?}");
    assert_eq!(printed[1], "done: 10 messages");
    let (said, _) = place.conversation();
    let compactions = said
        .iter()
        .filter(|said| *said == RecordKind::Compaction.as_str());
    assert_eq!(compactions.count(), 1, "{said:#?}");
    assert_eq!(said.len(), 11);
    place
}

// F25
#[test]
fn f25_an_agent_that_is_killed_in_a_tool_call_continues_and_says_nothing_twice() {
    let whole = undisturbed();
    let place = Place::new();
    place.kill(&["--die-in-tool"]);
    let store = Store::open(place.store()).unwrap();
    let id = store.resolve("latest").unwrap();
    // Until the call has its result, the context adds one.
    let context = store
        .read_session(&id)
        .unwrap()
        .context(Shape::Anthropic)
        .unwrap();
    let mends: Vec<MendRule> = context.mends().iter().map(|mend| mend.rule).collect();
    assert_eq!(mends, [MendRule::DanglingCall]);
    assert_eq!(
        place.files()[0],
        Some(b"to".to_vec()),
        "in the middle of it"
    );
    let printed = place.finish(&[id.as_str()]);
    assert_eq!(printed, [id.to_string(), "done: 10 messages".to_owned()]);
    assert_eq!(place.conversation(), whole.conversation());
    assert_eq!(place.files(), whole.files());
    // There is nothing left to do.
    assert_eq!(place.finish(&[]), printed);
    assert_eq!(place.conversation(), whole.conversation());
}

#[test]
fn an_agent_that_is_killed_after_any_record_ends_in_the_same_conversation() {
    let whole = undisturbed();
    let records = whole.conversation().0.len();
    for n in 1..=records {
        let place = Place::new();
        place.kill(&["--die-after", &n.to_string()]);
        assert_eq!(
            place.conversation().0.len(),
            n,
            "what was recorded is there"
        );
        place.finish(&[]);
        assert_eq!(
            place.conversation(),
            whole.conversation(),
            "killed after {n}"
        );
        assert_eq!(place.files(), whole.files());
    }
}

#[test]
fn an_agent_that_is_killed_after_every_record_gets_there_anyway() {
    let whole = undisturbed();
    let place = Place::new();
    for n in 1..=whole.conversation().0.len() {
        place.kill(&["--die-after", "1"]);
        assert_eq!(place.conversation().0.len(), n);
    }
    place.finish(&["--die-after", "1"]);
    assert_eq!(place.conversation(), whole.conversation());
    assert_eq!(place.files(), whole.files());
}

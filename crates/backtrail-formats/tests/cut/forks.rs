//! A copy is imported as a fork of the session it was made from, and counts nothing twice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backtrail::conversation::Response;
use backtrail::{SessionId, Store};
use backtrail_formats::{
    Environment, ImportOptions, NewSession, Source, import, launcher, resumable,
};

use crate::properties::{conversation, format, new_session, read};
use crate::sessions::{self, Sample};

/// A home directory with agents' files, and a store.
struct Home {
    dir: tempfile::TempDir,
    store: Store,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let gemini = dir.path().join(".gemini/tmp/proj");
        std::fs::create_dir_all(&gemini).unwrap();
        let home = Self { dir, store };
        std::fs::write(gemini.join(".project_root"), home.directory()).unwrap();
        home
    }

    fn directory(&self) -> String {
        self.dir.path().join("proj").to_str().unwrap().to_owned()
    }

    fn environment(&self) -> Environment {
        Environment::new(self.dir.path())
    }

    fn write(&self, file: &Path, text: &[u8]) -> PathBuf {
        let path = self.dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn import(&self, agent: &str) {
        let options = ImportOptions::new(self.environment()).formats(vec![format(agent)]);
        let report = import(&self.store, &options, &|_| {}).unwrap();
        assert!(report.agents[0].errors.is_empty(), "{report:?}");
    }

    /// Copies a session whose file is at `path`, up to so many messages, under an id.
    fn copy(&self, agent: &str, path: &Path, messages: usize, id: &str) -> PathBuf {
        let text = std::fs::read(path).unwrap();
        let events = read(agent, path, &text);
        let keys = conversation(&events).into_iter().map(|(key, _)| key);
        let keys: Vec<String> = keys.take(messages).collect();
        let (agent, source) = (resumable(agent).unwrap(), Source::open(path).unwrap());
        let cut = agent.cut(&source, &keys).unwrap().unwrap();
        let environment = self.environment();
        let new = NewSession {
            id: id.to_owned(),
            ..new_session(&self.directory(), &environment)
        };
        let place = agent.launcher().place_of_copy(source.path(), &new).unwrap();
        let mut copy = Vec::new();
        agent.write_copy(&source, cut, &new, &mut copy).unwrap();
        assert!(!place.exists());
        self.write(&place, &copy)
    }

    /// Returns the ids of the responses whose tokens a session counts, unless another session
    /// has them too.
    fn responses(&self, id: &str) -> BTreeSet<String> {
        let id: SessionId = id.parse().unwrap();
        let reader = self.store.read_session(&id).unwrap();
        let mut ids = BTreeSet::new();
        let add = |response: Response| {
            if response.is_measured() {
                ids.insert(response.id.expect("a response with an id"));
            }
        };
        reader.survey(add).unwrap();
        ids
    }

    fn parent(&self, id: &str) -> Option<String> {
        let id: SessionId = id.parse().unwrap();
        let info = self.store.read_session(&id).unwrap().info().unwrap();
        Some(info.forked_from?.parent_session_id)
    }
}

const COPY: &str = "01a1ee56-5e00-7707-8707-070707070707";
const COPY_OF_COPY: &str = "01a1ee57-6000-7707-8707-070707070708";

fn sample_in(home: &Home, agent: &str) -> (Sample, PathBuf) {
    let mut all = sessions::all(&home.directory()).into_iter();
    let sample = all.find(|sample| sample.agent == agent).unwrap();
    let path = home.write(Path::new(&sample.file), sample.text.as_bytes());
    (sample, path)
}

// F24
#[test]
fn a_copy_is_a_fork_that_counts_nothing_twice() {
    for agent in sessions::all("/p").iter().map(|sample| sample.agent) {
        let home = Home::new();
        let (sample, path) = sample_in(&home, agent);
        let copy = home.copy(agent, &path, sample.first_messages, COPY);
        home.import(agent);
        assert_eq!(home.parent(COPY).as_deref(), Some(sample.id), "{agent}");
        assert_eq!(home.parent(sample.id), None, "{agent}");
        let own = home.responses(sample.id);
        assert_eq!(own.len(), 4, "{agent}: {own:?}");
        let copied = home.responses(COPY);
        assert!(copied.is_subset(&own), "{agent}: {copied:?} {own:?}");
        // And a copy of the copy.
        home.copy(agent, &copy, sample.first_messages - 1, COPY_OF_COPY);
        home.import(agent);
        assert_eq!(home.parent(COPY_OF_COPY).as_deref(), Some(COPY), "{agent}");
        let copied = home.responses(COPY_OF_COPY);
        assert!(copied.is_subset(&own), "{agent}: {copied:?} {own:?}");
        assert_eq!(home.store.sessions().unwrap().len(), 3, "{agent}");
    }
}

#[test]
fn the_order_of_import_does_not_matter() {
    for agent in sessions::all("/p").iter().map(|sample| sample.agent) {
        let home = Home::new();
        let (sample, path) = sample_in(&home, agent);
        home.copy(agent, &path, sample.first_messages, COPY);
        std::fs::remove_file(&path).unwrap();
        home.import(agent);
        assert_eq!(home.parent(COPY).as_deref(), Some(sample.id), "{agent}");
        sample_in(&home, agent);
        home.import(agent);
        let (own, copied) = (home.responses(sample.id), home.responses(COPY));
        assert!(copied.is_subset(&own), "{agent}: {copied:?} {own:?}");
    }
}

#[test]
fn a_copy_is_where_its_agent_looks_for_it() {
    let home = Home::new();
    let mut places = Vec::new();
    for agent in sessions::all("/p").iter().map(|sample| sample.agent) {
        let (sample, path) = sample_in(&home, agent);
        let copy = home.copy(agent, &path, sample.first_messages, COPY);
        assert!(format(agent).is_session_file(&copy), "{agent}");
        let directories = format(agent).directories(&home.environment());
        assert!(
            directories.iter().any(|dir| copy.starts_with(dir)),
            "{agent}"
        );
        let place = copy.strip_prefix(home.dir.path()).unwrap().to_owned();
        places.push(place.to_str().unwrap().to_owned());
    }
    let directory = home.directory();
    let plain = directory.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let dashes = directory[1..].replace('/', "-");
    assert_eq!(
        places,
        [
            format!(".claude/projects/{plain}/{COPY}.jsonl"),
            format!(".codex/sessions/2026/11/18/rollout-2026-11-18T11-06-40-{COPY}.jsonl"),
            ".gemini/tmp/proj/chats/session-2026-11-18T11-06-01a1ee56.jsonl".to_owned(),
            format!(".copilot/session-state/{COPY}/events.jsonl"),
            format!(".pi/agent/sessions/--{dashes}--/2026-11-18T11-06-40-000Z_{COPY}.jsonl"),
            format!(".qwen/projects/{plain}/chats/{COPY}.jsonl"),
        ]
    );
}

#[test]
fn what_cannot_be_copied_is_refused_with_the_reason() {
    let refused = |agent: &str, text: &str| {
        let agent = resumable(agent).unwrap();
        let source = Source::from_bytes("/x/a.jsonl", text.as_bytes());
        let environment = Environment::new("/home/u");
        let new = new_session("/p", &environment);
        let whole = agent.whole(&source).unwrap();
        let copied = agent.write_copy(&source, whole, &new, &mut Vec::new());
        copied.unwrap_err().message().to_owned()
    };
    let based = r#"{"timestamp":"2026-10-03T09:15:00Z","type":"session_meta","payload":{"id":"a","cwd":"/p","history_base":{"thread_id":"b","end_ordinal_exclusive":3}}}"#;
    assert_eq!(
        refused("codex", based),
        "its first part is in the file of another session"
    );
    assert_eq!(
        refused("codex", r#"{"id":"a","timestamp":"2025-05-01T00:00:00Z"}"#),
        "a session of an older version of Codex"
    );
    assert_eq!(refused("pi", "{}"), "no line names the session");
    let home = Home::new();
    let environment = home.environment();
    let new = new_session("/somewhere/else", &environment);
    // A directory that Gemini CLI does not know yet gets the folder that the agent would make.
    let place = launcher("gemini-cli").unwrap().place(&new).unwrap();
    let folder = place.parent().and_then(Path::parent).unwrap();
    assert!(folder.ends_with(".gemini/tmp/else"), "{place:?}");
}

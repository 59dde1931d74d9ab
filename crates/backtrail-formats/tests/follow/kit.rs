//! A home directory with an agent's files, a store, and what a store contains.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use backtrail::{RecordKind, Store, Timestamp};
use backtrail_formats::{
    Environment, FollowOptions, Followed, FollowedKind, Follower, ImportOptions, Wake, import,
};

/// How long a test waits for something that comes at once if it comes at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Kit {
    dir: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir, store }
    }

    /// The project that the agent works in.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment::new(self.home())
    }

    pub(crate) fn options(&self) -> FollowOptions {
        FollowOptions::new(self.environment())
    }

    pub(crate) fn follow(&self) -> Follower {
        Follower::start(&self.store, &self.options()).unwrap()
    }

    /// Returns the path of a file below the home directory. The directories above it exist.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let path = self.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(crate) fn append(&self, name: &str, text: impl AsRef<[u8]>) {
        append(&self.path(name), text.as_ref());
    }

    /// Imports everything into this store.
    pub(crate) fn import(&self) {
        import_all(&self.store, &self.environment());
    }

    /// Returns what an import of everything makes in an empty store.
    pub(crate) fn imported(&self) -> String {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        import_all(&store, &self.environment());
        contents(&store)
    }

    pub(crate) fn contents(&self) -> String {
        contents(&self.store)
    }
}

pub(crate) fn append(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

pub(crate) fn import_all(store: &Store, environment: &Environment) {
    let options = ImportOptions::new(environment.clone());
    let report = import(store, &options, &|_| {}).unwrap();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    for agent in &report.agents {
        assert!(agent.errors.is_empty(), "{:?}", agent.errors);
    }
}

/// Returns what a store contains, without what depends on how often files were read: details,
/// items, usage, and the files that are kept.
pub(crate) fn contents(store: &Store) -> String {
    let mut text = String::new();
    let mut ids = store.sessions().unwrap();
    ids.sort();
    for id in ids {
        let reader = store.read_session(&id).unwrap();
        assert!(reader.verify().unwrap().is_ok());
        let info = reader.info().unwrap();
        writeln!(
            text,
            "{id} {:?} {:?} {:?} {:?} {:?} {:?}",
            info.title,
            info.model,
            info.workspace_root,
            info.created_at,
            info.updated_at,
            info.spawned_by.map(|by| (by.session_id, by.tool_use_id)),
        )
        .unwrap();
        let mut records = reader.records().unwrap();
        while let Some(record) = records.next().unwrap() {
            let is_event = matches!(
                record.kind(),
                RecordKind::Message | RecordKind::Compaction | RecordKind::Usage
            );
            if is_event {
                let message = record.stored_message_json();
                let (id, at) = (record.id(), record.at());
                writeln!(text, "  {:?} {id:?} {at:?} {message:?}", record.kind()).unwrap();
            }
        }
        writeln!(text, "  {:?}", reader.stats().unwrap()).unwrap();
        for source in reader.sources().unwrap() {
            let mut bytes = Vec::new();
            reader.write_source(&source, &mut bytes).unwrap();
            let bytes = String::from_utf8_lossy(&bytes);
            writeln!(text, "  {}: {bytes:?}", source.path.display()).unwrap();
        }
    }
    text
}

/// Waits until a follower reports something. It must.
pub(crate) fn next(follower: &mut Follower) -> Wake {
    let wake = follower.wait(Some(Instant::now() + PATIENCE)).unwrap();
    assert!(!wake.is_empty(), "nothing came");
    wake
}

/// Waits for the next report, which is about one session and no problem.
pub(crate) fn next_session(follower: &mut Follower) -> Followed {
    let mut wake = next(follower);
    assert!(wake.problems.is_empty(), "{:?}", wake.problems);
    assert_eq!(wake.sessions.len(), 1, "{:?}", wake.sessions);
    wake.sessions.remove(0)
}

/// Waits until as many records were reported, and returns them.
pub(crate) fn next_kinds(follower: &mut Follower, count: usize) -> Vec<FollowedKind> {
    let mut kinds = Vec::new();
    while kinds.len() < count {
        let wake = next(follower);
        assert!(wake.problems.is_empty(), "{:?}", wake.problems);
        kinds.extend(wake.sessions.into_iter().flat_map(kinds_of));
    }
    kinds
}

pub(crate) fn kinds_of(followed: Followed) -> Vec<FollowedKind> {
    let kinds = followed.records.into_iter().map(|record| record.kind);
    kinds.collect()
}

/// A session file of Claude Code.
pub(crate) struct Claude {
    pub(crate) session: String,
    directory: PathBuf,
    lines: u32,
}

impl Claude {
    pub(crate) fn new(n: u32, directory: impl Into<PathBuf>) -> Self {
        Self {
            session: format!("0b1c2d3e-0000-4000-8000-{n:012}"),
            directory: directory.into(),
            lines: 0,
        }
    }

    /// Its place below the home directory.
    pub(crate) fn name(&self) -> String {
        format!(".claude/projects/-work/{}.jsonl", self.session)
    }

    fn line(&mut self, kind: &str, message: &str) -> String {
        let uuid = |session: &str, n: u32| {
            format!("{}-{n:04}-4000-8000-{}", &session[..8], &session[24..])
        };
        let parent = match self.lines {
            0 => "null".to_owned(),
            n => format!("\"{}\"", uuid(&self.session, n - 1)),
        };
        let own = uuid(&self.session, self.lines);
        self.lines += 1;
        let now: Timestamp = SystemTime::now().into();
        let now = Timestamp::from_millis(now.as_millis()).unwrap();
        format!(
            "{{\"parentUuid\":{parent},\"sessionId\":\"{}\",\"type\":\"{kind}\",\"cwd\":{:?},\
             \"message\":{message},\"uuid\":\"{own}\",\"timestamp\":\"{now}\"}}\n",
            self.session, self.directory
        )
    }

    pub(crate) fn prompt(&mut self, text: &str) -> String {
        self.line(
            "user",
            &format!("{{\"role\":\"user\",\"content\":{text:?}}}"),
        )
    }

    pub(crate) fn answer(&mut self, text: &str) -> String {
        self.response(
            "end_turn",
            &format!("{{\"type\":\"text\",\"text\":{text:?}}}"),
        )
    }

    pub(crate) fn call(&mut self, id: &str) -> String {
        let block = format!(
            "{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"Bash\",\"input\":{{\"command\":\"ls\"}}}}"
        );
        self.response("tool_use", &block)
    }

    pub(crate) fn result(&mut self, id: &str) -> String {
        let block = format!(
            "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"content\":\"a\"}}]}}"
        );
        self.line("user", &block)
    }

    fn response(&mut self, reason: &str, block: &str) -> String {
        let message = format!(
            "{{\"id\":\"msg_{}_{}\",\"role\":\"assistant\",\"model\":\"claude-x\",\"content\":[{block}],\
             \"stop_reason\":\"{reason}\",\"usage\":{{\"input_tokens\":3,\"output_tokens\":5}}}}",
            &self.session[24..],
            self.lines
        );
        self.line("assistant", &message)
    }

    /// A turn with one call: four lines.
    pub(crate) fn turn(&mut self, text: &str) -> Vec<String> {
        let call = format!("toolu_{}_{}", &self.session[24..], self.lines);
        vec![
            self.prompt(text),
            self.call(&call),
            self.result(&call),
            self.answer("done"),
        ]
    }
}

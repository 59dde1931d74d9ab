//! A minimal format for the tests, and a store to import it into.
//!
//! Each line is one object: `{"session":"…"}` first, then `{"say":"key"}`, `{"back":"key"}`,
//! `{"agent":"id","say":"key","call":"tool"}`, `{"branch":"first","after":"key","say":"key"}`,
//! `{"title":"…"}`. Each line adds to the lines before it.

use std::path::{Path, PathBuf};

use backtrail::{Message, RecordKind, SessionId, Store, Timestamp, Usage};
use backtrail_formats::{
    Agent, DamagedLine, Details, Environment, Event, EventSink, ForkPoint, Format, ImportOptions,
    ImportReport, Lines, MessageEvent, OpenFile, Origin, ReadReport, Result, Resume, Source,
    Thread, ThreadId, import,
};
use serde_json::{Value, json};

pub(crate) struct Toy;

impl Format for Toy {
    fn agent(&self) -> Agent {
        let mut agent = backtrail_formats::ClaudeCode.agent();
        (agent.name, agent.title) = ("toy", "Toy");
        agent
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment
            .directory("TOY_HOME", ".toy")
            .into_iter()
            .collect()
    }

    fn is_session_file(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "toy")
    }

    fn recognises(&self, source: &Source) -> bool {
        source.head().starts_with(b"{\"session\"")
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let Some(session) = session_of(source)? else {
            return Ok(OpenFile::unnamed(read_lines(source, 0, 0, None)?));
        };
        Ok(OpenFile::new(session, Origin::Start, |sink| {
            read_lines(source, 0, 0, Some(sink))
        }))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let state: Value = resume.state.parse()?;
        let (from, number) = (resume.read_to, state["lines"].as_u64().unwrap());
        let Some(session) = state["session"].as_str() else {
            return Ok(None);
        };
        Ok(Some(OpenFile::new(session, Origin::Start, move |sink| {
            read_lines(source, from, number, Some(sink))
        })))
    }
}

/// Returns the session that a file belongs to, by its first line that can be read.
fn session_of(source: &Source) -> Result<Option<String>> {
    let mut lines = Lines::new(source, 0, 0);
    while let Some(line) = lines.next()? {
        if let Ok(first) = serde_json::from_slice::<Value>(line.bytes) {
            let session = first["session"].as_str().unwrap_or("nameless");
            return Ok(Some(session.to_owned()));
        }
    }
    Ok(None)
}

fn read_lines(
    source: &Source,
    from: u64,
    number: u64,
    mut sink: Option<&mut dyn EventSink>,
) -> Result<ReadReport> {
    let mut lines = Lines::new(source, from, number);
    let mut report = ReadReport {
        read_to: from,
        lines: number,
        ..ReadReport::default()
    };
    while let Some(line) = lines.next()? {
        let value = serde_json::from_slice::<Value>(line.bytes);
        if value.is_err() && !line.ended {
            report.unfinished = true;
            break;
        }
        report.read_to = line.range.end;
        report.lines = line.number;
        match (value, &mut sink) {
            (Ok(value), Some(sink)) => send(&value, *sink)?,
            (Ok(_), None) => {}
            (Err(_), _) => report.damage.add(DamagedLine {
                line: line.number,
                byte: line.range.start,
                bytes: 0,
                reason: "not JSON".to_owned(),
            }),
        }
    }
    let state = json!({"session": session_of(source)?, "lines": report.lines});
    report.state = Some(backtrail::Json::from_value(&state)?);
    Ok(report)
}

fn send(value: &Value, sink: &mut dyn EventSink) -> Result<()> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let thread = if let Some(agent) = text("agent") {
        Thread {
            id: ThreadId::SubAgent(agent),
            origin: Origin::Spawned {
                session: None,
                tool_use_id: text("call"),
            },
        }
    } else if let Some(first) = text("branch") {
        Thread {
            id: ThreadId::Branch(first),
            origin: Origin::Continues {
                session: None,
                point: text("after").map_or(ForkPoint::Start, ForkPoint::After),
            },
        }
    } else {
        Thread::main(Origin::Start)
    };
    sink.thread(&thread)?;
    if let Some(title) = text("title") {
        sink.details(Details {
            title: Some(title),
            ..Details::default()
        })?;
    }
    if let Some(key) = text("back") {
        let key = (!key.is_empty()).then_some(key);
        sink.rewind_to(key.as_deref())?;
    }
    if let Some(key) = text("say") {
        let message = Message::assistant([backtrail::Block::text(format!("text of {key}"))]);
        let message = match value["free"].is_null() {
            true => message.usage(Usage::new(10, 1)),
            false => message,
        };
        let mut event = MessageEvent::new(key.as_str(), message);
        event.response_id = Some(format!("r-{key}"));
        event.at = Timestamp::from_millis(1_700_000_000_000);
        sink.event(Event::Message(event))?;
    }
    Ok(())
}

/// A store, and a directory of toy files.
pub(crate) struct Kit {
    dir: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        Self { dir, store }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("files").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
        // Two writes in one tick of the clock must not look like one.
        let step = std::time::Duration::from_millis(self.tick());
        let time = std::time::SystemTime::UNIX_EPOCH + step;
        let file = std::fs::File::options()
            .append(true)
            .open(self.path(name))
            .unwrap();
        file.set_modified(time).unwrap();
    }

    fn tick(&self) -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static TICKS: AtomicU64 = AtomicU64::new(1_000_000);
        TICKS.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn options(&self) -> ImportOptions {
        let environment = Environment::new(self.dir.path()).with("TOY_HOME", self.path(""));
        let options = ImportOptions::new(environment).formats(vec![&Toy]);
        options.as_history()
    }

    pub(crate) fn import(&self) -> ImportReport {
        let report = import(&self.store, &self.options(), &|_| {}).unwrap();
        let errors: Vec<_> = report
            .agents
            .iter()
            .flat_map(|agent| &agent.errors)
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
        report
    }

    /// Returns new, updated, unchanged.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let report = self.import();
        let agent = &report.agents[0];
        (agent.new, agent.updated, agent.unchanged)
    }

    pub(crate) fn forget_cache(&self) {
        std::fs::remove_dir_all(self.store.root().join("derived")).ok();
    }

    fn cache_path(&self) -> PathBuf {
        self.store.root().join("derived/import-2")
    }

    pub(crate) fn cache(&self) -> Option<Vec<u8>> {
        std::fs::read(self.cache_path()).ok()
    }

    pub(crate) fn set_cache(&self, cache: Option<&[u8]>) {
        match cache {
            Some(cache) => std::fs::write(self.cache_path(), cache).unwrap(),
            None => self.forget_cache(),
        }
    }

    /// Returns the keys of a session's conversation.
    pub(crate) fn keys(&self, id: &SessionId) -> Vec<String> {
        let mut keys = Vec::new();
        let mut records = self.store.read_session(id).unwrap().records().unwrap();
        while let Some(record) = records.next().unwrap() {
            if record.kind() == RecordKind::Message {
                keys.push(record.id().unwrap().into_owned());
            }
        }
        assert!(records.damage().is_empty());
        keys
    }

    /// Returns the keys of all events of a session, rewound or not.
    pub(crate) fn all_keys(&self, id: &SessionId) -> Vec<String> {
        let reader = self.store.read_session(id).unwrap();
        let mut keys = Vec::new();
        for trail in 0..reader.info().unwrap().trails {
            let mut records = reader.trail_records(trail, 0).unwrap();
            while let Some(found) = records.next().unwrap() {
                keys.extend(found.record.id().map(std::borrow::Cow::into_owned));
            }
        }
        keys
    }

    /// Returns the conversations of all sessions, in order.
    pub(crate) fn all(&self) -> Vec<Vec<String>> {
        let sessions = self.store.sessions().unwrap();
        let mut all: Vec<_> = sessions.iter().map(|id| self.keys(id)).collect();
        all.sort();
        all
    }

    /// Returns the session that keeps a file, and the file as it is kept.
    pub(crate) fn kept(&self, name: &str) -> Option<(SessionId, Vec<u8>)> {
        let path = self.path(name);
        for id in self.store.sessions().unwrap() {
            let reader = self.store.read_session(&id).unwrap();
            for source in reader.sources().unwrap() {
                if source.path == path && source.held_by.is_none() {
                    let mut bytes = Vec::new();
                    reader.write_source(&source, &mut bytes).unwrap();
                    return Some((id, bytes));
                }
            }
        }
        None
    }
}

/// Returns the lines of a file with these keys.
pub(crate) fn lines(session: &str, keys: &[&str]) -> String {
    let mut text = format!("{{\"session\":\"{session}\"}}\n");
    for key in keys {
        text.push_str(&format!("{{\"say\":\"{key}\"}}\n"));
    }
    text
}

//! A format of the tests' own, as simple as one can be, and a store to take it in.
//!
//! Each line is one object: `{"session":"…"}` first, then `{"say":"key"}`, `{"back":"key"}`,
//! `{"agent":"id","say":"key","call":"tool"}`, `{"branch":"first","after":"key","say":"key"}`,
//! `{"title":"…"}`. It is linear: each line adds to what the lines before told.

use std::path::{Path, PathBuf};

use backtrail::{Message, RecordKind, SessionId, Store, Timestamp, Usage};
use backtrail_formats::{
    About, After, DamagedLine, Damages, Environment, Format, ImportOptions, ImportReport, Item,
    Lines, Origin, ReadError, Resume, Said, Sink, Source, Support, Thread, Told, Which, import,
};
use serde_json::{Value, json};

pub(crate) struct Toy;

impl Format for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn title(&self) -> &'static str {
        "Toy"
    }

    fn support(&self) -> Support {
        backtrail_formats::ClaudeCode.support()
    }

    fn places(&self, environment: &Environment) -> Vec<PathBuf> {
        environment
            .directory("TOY_HOME", ".toy")
            .into_iter()
            .collect()
    }

    fn is_session_name(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "toy")
    }

    fn recognises(&self, source: &Source) -> bool {
        source.head().starts_with(b"{\"session\"")
    }

    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        let state: Value = match resume {
            Some(resume) => resume.state.parse()?,
            None => json!({"session": null, "lines": 0}),
        };
        let mut session = state["session"].as_str().map(str::to_owned);
        if let Some(session) = &session {
            sink.session(session)?;
        }
        let from = resume.map_or(0, |resume| resume.read_to);
        let mut lines = Lines::new(source, from, state["lines"].as_u64().unwrap());
        let mut read_to = from;
        let mut damage = Damages::default();
        let mut unfinished = false;
        let mut number = state["lines"].as_u64().unwrap();
        while let Some(line) = lines.next()? {
            let Ok(value) = serde_json::from_slice::<Value>(line.bytes) else {
                if !line.ended {
                    unfinished = true;
                    break;
                }
                damage.add(DamagedLine {
                    line: line.number,
                    byte: line.place.start,
                    bytes: 0,
                    reason: "no JSON".to_owned(),
                });
                read_to = line.place.end;
                number = line.number;
                continue;
            };
            read_to = line.place.end;
            number = line.number;
            if session.is_none() {
                let name = value["session"].as_str().unwrap_or("nameless");
                sink.session(name)?;
                session = Some(name.to_owned());
            }
            tell(&value, sink)?;
        }
        let state = json!({"session": session, "lines": number});
        Ok(Told {
            session: session.unwrap_or_default(),
            read_to,
            state: Some(backtrail::Json::from_value(&state)?),
            lines: number,
            damage,
            unknown: Default::default(),
            unfinished,
        })
    }
}

fn tell(value: &Value, sink: &mut dyn Sink) -> Result<(), ReadError> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let thread = if let Some(agent) = text("agent") {
        Thread {
            which: Which::Agent(agent),
            origin: Origin::Spawned {
                session: None,
                tool_use_id: text("call"),
            },
        }
    } else if let Some(first) = text("branch") {
        Thread {
            which: Which::Branch(first),
            origin: Origin::Continues {
                session: None,
                after: text("after").map_or(After::Nothing, After::Key),
            },
        }
    } else {
        Thread::main()
    };
    sink.thread(&thread)?;
    if let Some(title) = text("title") {
        sink.about(About {
            title: Some(title),
            ..About::default()
        })?;
    }
    if let Some(key) = text("back") {
        let key = (!key.is_empty()).then_some(key);
        sink.back_to(key.as_deref())?;
    }
    if let Some(key) = text("say") {
        let message = Message::assistant([backtrail::Block::text(format!("says {key}"))]);
        let message = match value["free"].is_null() {
            true => message.usage(Usage::new(10, 1)),
            false => message,
        };
        let mut said = Said::new(key.as_str(), message);
        said.response_id = Some(format!("r-{key}"));
        said.at = Timestamp::from_millis(1_700_000_000_000);
        sink.item(Item::Said(said))?;
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
        // Two writes in one tick of the clock must not look like none.
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
        ImportOptions::new(environment).from(vec![&Toy])
    }

    pub(crate) fn import(&self) -> ImportReport {
        let report = import(Some(&self.store), &self.options(), &|_| {}).unwrap();
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

    /// Returns the keys of a session's conversation, as it stands.
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

    /// Returns the keys of all that was ever said in a session, taken back or not.
    pub(crate) fn ever_said(&self, id: &SessionId) -> Vec<String> {
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

    /// Returns the session that a file is held by, and the file as it is held.
    pub(crate) fn held(&self, name: &str) -> Option<(SessionId, Vec<u8>)> {
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

/// Returns the lines of a file that says keys.
pub(crate) fn says(session: &str, keys: &[&str]) -> String {
    let mut text = format!("{{\"session\":\"{session}\"}}\n");
    for key in keys {
        text.push_str(&format!("{{\"say\":\"{key}\"}}\n"));
    }
    text
}

//! Real session files, imported into a store and written back. They are not part of the
//! project: without them these tests are skipped, and say so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are its own"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use backtrail::{RecordKind, SessionId, Store};
use backtrail_formats::{Environment, Format, ImportOptions, Source, formats, import, recognise};

fn samples() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    if root.is_dir() {
        return Some(root.canonicalize().unwrap());
    }
    eprintln!(
        "SKIPPED: needs the samples; there are none in {}",
        root.display()
    );
    None
}

fn files(dir: &Path, all: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files(&path, all),
            false => all.push(path),
        }
    }
}

/// Returns all sample files of known formats, with their agents.
fn known_samples(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut all = Vec::new();
    files(root, &mut all);
    all.into_iter()
        .filter_map(|path| {
            let format = recognise(&path).ok()??;
            Some((path, format.name()))
        })
        .collect()
}

/// Returns whether a sample is imported session by session, and not as a file.
fn is_container(path: &Path, agent: &str) -> bool {
    let format = formats().find(|format| format.name() == agent).unwrap();
    format.container(path).unwrap().is_some()
}

/// Imports a file with sessions, or a session of many files. What has no lines of its own is kept
/// as lines of JSON.
fn check_container(path: &PathBuf, agent: &str) {
    let home = Home::new();
    let (new, _, _) = home.import(std::slice::from_ref(path));
    assert!(new > 0, "{agent} {path:?}");
    assert_eq!(home.import(std::slice::from_ref(path)), (0, 0, new));
    assert_eq!(home.store.sessions().unwrap().len() as u64, new);
    for id in home.store.sessions().unwrap() {
        let reader = home.store.read_session(&id).unwrap();
        let sources = reader.sources().unwrap();
        assert!(sources.iter().all(|source| source.path.starts_with(path)));
        let kept = home.kept(&sources[0].path).unwrap();
        let is_json = sources[0].path.extension().is_some_and(|it| it == "jsonl");
        for line in String::from_utf8(kept).unwrap().lines().filter(|_| is_json) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(
                line["table"].is_string() || line["file"].is_string(),
                "{line}"
            );
        }
    }
    home.verify();
}

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

    /// Imports files; returns how many are new, updated and unchanged.
    fn import(&self, paths: &[PathBuf]) -> (u64, u64, u64) {
        let options = ImportOptions::new(Environment::default()).paths(paths.to_vec());
        let report = import(&self.store, &options, &|_| {}).unwrap();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        let mut counts = (0, 0, 0);
        for agent in &report.agents {
            assert!(agent.errors.is_empty(), "{:?}", agent.errors);
            assert_eq!(agent.found, agent.new + agent.updated + agent.unchanged);
            counts.0 += agent.new;
            counts.1 += agent.updated;
            counts.2 += agent.unchanged;
        }
        counts
    }

    /// Returns a file as a session keeps it.
    fn kept(&self, path: &Path) -> Option<Vec<u8>> {
        for id in self.store.sessions().unwrap() {
            let reader = self.store.read_session(&id).unwrap();
            for source in reader.sources().unwrap() {
                if source.path == path && source.held_by.is_none() {
                    let mut bytes = Vec::new();
                    reader.write_source(&source, &mut bytes).unwrap();
                    return Some(bytes);
                }
            }
        }
        None
    }

    fn keys(&self, id: &SessionId) -> Vec<String> {
        let mut keys = Vec::new();
        let mut records = self.store.read_session(id).unwrap().records().unwrap();
        while let Some(record) = records.next().unwrap() {
            if record.kind() == RecordKind::Message {
                keys.extend(record.id().map(std::borrow::Cow::into_owned));
            }
        }
        keys
    }

    /// Returns all sessions that are neither sub-agents nor branches.
    fn main_sessions(&self) -> BTreeMap<SessionId, Vec<String>> {
        let ids = self.store.sessions().unwrap().into_iter();
        let main = ids.filter(|id| {
            let info = self.store.read_session(id).unwrap().info().unwrap();
            info.spawned_by.is_none() && info.forked_from.is_none()
        });
        main.map(|id| (id.clone(), self.keys(&id))).collect()
    }

    fn verify(&self) {
        for id in self.store.sessions().unwrap() {
            let report = self.store.read_session(&id).unwrap().verify().unwrap();
            assert!(report.is_ok(), "{id}: {report:?}");
        }
    }
}

#[test]
fn every_sample_is_imported_and_written_back_byte_for_byte() {
    let Some(root) = samples() else { return };
    let known = known_samples(&root);
    let agents: BTreeSet<&str> = known.iter().map(|(_, agent)| *agent).collect();
    for agent in [
        "claude-code",
        "codex",
        "gemini-cli",
        "opencode",
        "qwen-code",
        "copilot-cli",
        "cline",
        "goose",
        "aider",
        "atif",
        "cursor",
        "droid",
        "kimi-cli",
        "antigravity",
        "grok-cli",
        "pi",
        "openclaw",
        "hermes",
        "claw-code",
    ] {
        assert!(agents.contains(agent), "no sample of {agent}: {agents:?}");
    }
    let (many, known): (Vec<_>, Vec<_>) = known
        .into_iter()
        .partition(|(path, agent)| is_container(path, agent));
    assert!(many.len() >= 5, "{many:?}");
    for (path, agent) in &many {
        check_container(path, agent);
    }
    // Each by itself.
    let mut said = Vec::new();
    let mut silent = Vec::new();
    for (path, agent) in &known {
        let home = Home::new();
        let counts = home.import(std::slice::from_ref(path));
        if counts == (0, 0, 1) {
            assert_eq!(home.store.sessions().unwrap(), [], "{agent} {path:?}");
            silent.push(path.strip_prefix(&root).unwrap_or(path).to_owned());
            continue;
        }
        said.push(path.clone());
        assert_eq!(counts, (1, 0, 0), "{agent} {path:?}");
        let bytes = std::fs::read(path).unwrap();
        assert!(home.kept(path) == Some(bytes), "{agent} {path:?}");
        assert_eq!(
            home.import(std::slice::from_ref(path)),
            (0, 0, 1),
            "{agent} {path:?}"
        );
        home.verify();
    }
    assert_eq!(silent.len(), 13, "without a conversation: {silent:#?}");
    // And all of them in one store, twice.
    let home = Home::new();
    let paths = said;
    let (new, updated, unchanged) = home.import(&paths);
    assert_eq!(new + updated + unchanged, paths.len() as u64);
    let before = home.main_sessions();
    for _ in 0..2 {
        assert_eq!(home.import(&paths), (0, 0, paths.len() as u64));
        assert!(home.main_sessions() == before);
        std::fs::remove_dir_all(home.dir.path().join("store/derived")).unwrap();
    }
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        assert!(home.kept(path) == Some(bytes), "{path:?}");
    }
    home.verify();
}

#[test]
fn no_file_is_claimed_by_two_formats() {
    let Some(root) = samples() else { return };
    let mut all = Vec::new();
    files(&root, &mut all);
    files(&root.join("../agents/samples"), &mut all);
    for path in all {
        let source = Source::open(&path).unwrap();
        let claims: Vec<_> = formats()
            .filter(|format| format.recognises(&source))
            .map(Format::name)
            .collect();
        assert!(claims.len() <= 1, "{claims:?}: {path:?}");
    }
}

#[test]
fn copies_of_a_session_at_five_lengths_are_one_session_in_any_order() {
    let Some(root) = samples() else { return };
    let mut paths = Vec::new();
    files(&root.join("claude-code/same-session-0cf3db51"), &mut paths);
    assert_eq!(paths.len(), 5);
    let orders = [
        [0, 1, 2, 3, 4],
        [4, 3, 2, 1, 0],
        [2, 4, 0, 3, 1],
        [1, 0, 4, 2, 3],
        [3, 1, 4, 0, 2],
    ];
    let mut first: Option<BTreeMap<SessionId, Vec<String>>> = None;
    for order in orders {
        let home = Home::new();
        let mut length = 0;
        for at in order {
            home.import(&[paths[at].clone()]);
            let sessions = home.main_sessions();
            assert_eq!(sessions.len(), 1, "{order:?}");
            let grown = sessions.values().next().unwrap().len();
            assert!(grown > length, "{order:?}: {grown} after {length}");
            length = grown;
        }
        let sessions = home.main_sessions();
        let first = first.get_or_insert_with(|| sessions.clone());
        assert!(*first == sessions, "{order:?}");
        for path in &paths {
            assert!(home.kept(path) == Some(std::fs::read(path).unwrap()));
        }
        home.verify();
    }
    // All at once is the same.
    let home = Home::new();
    home.import(&paths);
    assert!(first == Some(home.main_sessions()));
}

#[test]
fn a_file_that_is_being_written_is_imported_again_and_again() {
    let Some(root) = samples() else { return };
    // One of each agent, not too long.
    let mut taken = BTreeMap::new();
    for (path, agent) in known_samples(&root) {
        let len = std::fs::metadata(&path).unwrap().len();
        let is_lines = path
            .extension()
            .is_some_and(|extension| extension == "jsonl");
        if (20_000..250_000).contains(&len) && is_lines {
            taken.entry(agent).or_insert(path);
        }
    }
    assert!(taken.len() >= 2, "{taken:?}");
    for (agent, sample) in taken {
        let bytes = std::fs::read(&sample).unwrap();
        let whole = Home::new();
        let writing = Home::new();
        let path = writing.dir.path().join(sample.file_name().unwrap());
        let again = whole.dir.path().join(sample.file_name().unwrap());
        std::fs::write(&again, &bytes).unwrap();
        whole.import(&[again]);
        let mut end = 0;
        let mut step = 7_919;
        while end < bytes.len() {
            // Incomplete lines, complete lines, and several at once.
            end = (end + step).min(bytes.len());
            step = step * 31 % 17_011 + 1;
            if step % 3 == 0 {
                let newline = bytes[end..].iter().position(|byte| *byte == b'\n');
                end += newline.map_or(0, |at| at + 1);
            }
            std::fs::write(&path, &bytes[..end]).unwrap();
            if recognise(&path).unwrap().is_some() {
                writing.import(std::slice::from_ref(&path));
            }
        }
        assert!(
            writing.main_sessions() == whole.main_sessions(),
            "{agent} {sample:?}"
        );
        assert!(writing.kept(&path) == Some(bytes), "{agent}");
        writing.verify();
    }
}

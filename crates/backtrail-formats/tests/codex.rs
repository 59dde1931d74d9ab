//! Real rollouts of Codex: they are recognised, and resuming reads the same as reading from the
//! beginning. What independent readers found in them is in `expected`.
//!
//! The files are in `../shared/samples`; without them the tests are skipped, and say so.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are only read"
)]

use std::path::{Path, PathBuf};

use backtrail_formats::{
    Codex, Details, Event, EventCollector, EventSink, ForkPoint, Format, Origin, ReadReport,
    Result, Source, Thread, formats, testing,
};

/// Returns the directory of samples.
fn samples() -> Option<PathBuf> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let there = samples.canonicalize().ok();
    if there.is_none() {
        eprintln!(
            "SKIPPED: needs the samples; there are none in {}",
            samples.display()
        );
    }
    there
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => walk(&path, found),
            false => found.push(path),
        }
    }
}

fn files(samples: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&samples.join("codex"), &mut found);
    walk(&samples.join("matrix-agent-sessions/codex"), &mut found);
    found.retain(|path| !path.ends_with("session_index.jsonl"));
    assert!(found.len() > 20, "{found:?}");
    found
}

fn read(path: &Path) -> (EventCollector, ReadReport) {
    let source = Source::open(path).unwrap();
    let mut collected = EventCollector::default();
    let report = collected.read(Codex.open(&source).unwrap()).unwrap();
    (collected, report)
}

#[test]
fn samples_of_codex_are_recognised_and_no_others() {
    let Some(samples) = samples() else { return };
    let ours = files(&samples);
    let mut all = Vec::new();
    walk(&samples, &mut all);
    for path in all {
        let source = Source::open(&path).unwrap();
        let expected = ours.contains(&path);
        assert_eq!(Codex.recognises(&source), expected, "{}", path.display());
        if expected {
            let others = formats().filter(|format| format.recognises(&source));
            assert_eq!(others.count(), 1, "{}", path.display());
        }
    }
}

/// Reads a file up to a cut and then the rest.
fn in_two(path: &Path, bytes: &[u8], cut: usize) -> EventCollector {
    let mut collected = EventCollector::default();
    let first = Source::from_bytes(path, &bytes[..cut]);
    let report = collected.read(Codex.open(&first).unwrap()).unwrap();
    let whole = Source::from_bytes(path, bytes);
    let len = report
        .state
        .as_ref()
        .map_or(0, |state| state.as_str().len());
    assert!(len < 16 << 10, "{len}");
    let resumed = testing::resume(&Codex, &whole, &report, &mut collected).unwrap();
    if resumed.is_none() {
        collected = EventCollector::default();
        collected.read(Codex.open(&whole).unwrap()).unwrap();
    }
    collected
}

#[test]
fn resuming_reads_the_same_as_reading_from_the_beginning() {
    let Some(samples) = samples() else { return };
    for path in files(&samples) {
        let bytes = std::fs::read(&path).unwrap();
        let mut whole = EventCollector::default();
        let source = Source::from_bytes(&*path, &*bytes);
        whole.read(Codex.open(&source).unwrap()).unwrap();
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).collect();
        let every = ends.len().div_ceil(20).max(1);
        let cuts = ends.iter().step_by(every);
        let cuts = cuts.flat_map(|end| [end.saturating_sub(7), *end, end + 1]);
        for cut in cuts.chain([0, 1, bytes.len()]) {
            let both = in_two(&path, &bytes, cut);
            assert!(both == whole, "cut at {cut} of {}", path.display());
        }
    }
}

#[test]
fn keys_are_unique_in_every_sample() {
    let Some(samples) = samples() else { return };
    for path in files(&samples) {
        let (collected, _) = read(&path);
        let mut keys = std::collections::BTreeSet::new();
        for event in &collected.main().unwrap().events {
            let key = event.key();
            assert!((1..=256).contains(&key.len()) && !key.chars().any(char::is_control));
            assert!(keys.insert(key.to_owned()), "{key} in {}", path.display());
        }
    }
}

#[test]
fn forks_reverts_and_sub_agents_have_their_origins() {
    let Some(samples) = samples() else { return };
    let id = |n: u32| format!("01a00000-0000-7000-8000-0000000000{n:02}");
    let home = samples.join("codex/claude-history-crate/sessions/2026/09/02");
    let origin = |name: &str| {
        let (collected, _) = read(&home.join(name));
        let origin = collected.main().unwrap().thread.origin.clone();
        (collected.session, origin)
    };
    let continues = |session: String, key: &str| Origin::Continues {
        session: Some(session),
        point: ForkPoint::AfterLastUpTo(key.to_owned()),
    };
    let fork = format!("rollout-2026-09-02T08-00-00-{}.jsonl", id(3));
    assert_eq!(origin(&fork), (id(3), continues(id(2), "000000000014")));
    let revert = format!("rollout-2026-09-02T09-10-00-{}_{}.jsonl", id(4), id(44));
    let name = format!("{}_{}", id(4), id(44));
    assert_eq!(origin(&revert), (name, continues(id(4), "000000000011")));
    let agent = format!("rollout-2026-09-02T12-00-00-{}.jsonl", id(7));
    let spawned = Origin::Spawned {
        session: Some(id(2)),
        tool_use_id: None,
    };
    assert_eq!(origin(&agent), (id(7), spawned));
    let (collected, _) = read(&home.join(agent));
    let tags = collected.main().unwrap().details.tags.clone();
    assert_eq!(tags, Some(vec!["explorer".to_owned(), "Euclid".to_owned()]));
}

#[test]
fn titles_come_from_the_index() {
    let Some(samples) = samples() else { return };
    let home = samples.join("codex/claude-history-crate/sessions/2026/09/01");
    let name = "rollout-2026-09-01T09-00-00-0198f000-0000-7000-8000-000000000001.jsonl";
    let (collected, _) = read(&home.join(name));
    let details = &collected.main().unwrap().details;
    assert_eq!(details.title.as_deref(), Some("Zebra listing"));
    assert_eq!(details.model.as_deref(), Some("gpt-5-codex"));
    assert_eq!(details.directory.as_deref(), Some(Path::new("/work/demo")));
}

/// Counts events and keeps nothing.
#[derive(Default)]
struct Counter {
    events: u64,
    tokens: u64,
}

impl EventSink for Counter {
    fn thread(&mut self, _: &Thread) -> Result<()> {
        Ok(())
    }

    fn details(&mut self, _details: Details) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<()> {
        self.events += 1;
        if let Event::Usage(usage) = event {
            self.tokens += usage.usage.total();
        }
        Ok(())
    }

    fn rewind_to(&mut self, _: Option<&str>) -> Result<()> {
        Ok(())
    }
}

/// Measures how fast the file in `CODEX_ROLLOUT` is read, with `--release` and
/// `-- --ignored --nocapture`.
#[test]
#[ignore = "for measuring"]
fn speed() {
    let path = std::env::var("CODEX_ROLLOUT").expect("CODEX_ROLLOUT names a rollout");
    let source = Source::open(path.as_ref()).unwrap();
    let begin = std::time::Instant::now();
    let mut counter = Counter::default();
    let report = Codex.open(&source).unwrap().read(&mut counter).unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    let rate = source.len() as f64 / 1e6 / seconds;
    eprintln!(
        "{rate:.0} MB/s, {} lines, {} events, {} tokens, {peak:?}",
        report.lines, counter.events, counter.tokens
    );
}

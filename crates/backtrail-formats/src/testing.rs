//! What every format promises for any bytes, in one place: tests and fuzz targets call it.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;

use crate::collector::EventCollector;
use crate::container::Spool;
use crate::error::Result;
use crate::event::ReadReport;
use crate::format::{Format, Resume};
use crate::source::Source;
use crate::sqlite;

/// The largest state.
const MAX_STATE: usize = 8 << 10;

/// Reads bytes as a file of a format, from the beginning.
///
/// # Errors
///
/// Fails if the format does.
pub fn read(format: &dyn Format, path: &str, bytes: &[u8]) -> Result<(ReadReport, EventCollector)> {
    let source = Source::from_bytes(path, bytes);
    format.recognises(&source);
    let mut events = EventCollector::default();
    let report = events.read(format.open(&source)?)?;
    Ok((report, events))
}

/// Reads all sessions of a file: one, or those that it contains.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn read_sessions(
    format: &dyn Format,
    path: &Path,
) -> Result<Vec<(ReadReport, EventCollector)>> {
    let read_one = |source: &Source| -> Result<_> {
        let mut events = EventCollector::default();
        let report = events.read(format.open(source)?)?;
        Ok((report, events))
    };
    let Some(container) = format.container(path)? else {
        return Ok(vec![read_one(&Source::open(path)?)?]);
    };
    let mut sessions = Vec::new();
    for session in container.contents()?.sessions {
        let mut lines = Spool::new(std::env::temp_dir());
        container.write(&session, &mut lines)?;
        sessions.push(read_one(&lines.into_source(&session.path)?)?);
    }
    Ok(sessions)
}

/// Reads what follows an earlier reading. `None` if the file must be read from the beginning.
///
/// # Errors
///
/// Fails if the format does.
pub fn resume(
    format: &dyn Format,
    source: &Source,
    earlier: &ReadReport,
    events: &mut EventCollector,
) -> Result<Option<ReadReport>> {
    let Some(state) = earlier.state.clone() else {
        return Ok(None);
    };
    let resume = Resume {
        read_to: earlier.read_to,
        state,
    };
    match format.resume(source, &resume)? {
        Some(file) => events.read(file).map(Some),
        None => Ok(None),
    }
}

/// Checks that a file is read without a panic, that the result is sound and not larger than
/// the file, and that reading it up to `cut` and then resuming gives the same.
///
/// # Panics
///
/// If it does not.
pub fn check(format: &dyn Format, path: &str, bytes: &[u8], cut: usize) {
    let whole = read(format, path, bytes).ok();
    if let Some((report, events)) = &whole {
        check_sound(report, events, bytes.len());
    }
    let cut = cut.min(bytes.len());
    let Ok((before, mut events)) = read(format, path, &bytes[..cut]) else {
        return;
    };
    check_sound(&before, &events, cut);
    let source = Source::from_bytes(path, bytes);
    if !source.can_resume_at(before.read_to) {
        return;
    }
    let resumed = resume(format, &source, &before, &mut events);
    let Some(resumed) = resumed.expect("a file that was read can be resumed") else {
        return;
    };
    let (report, whole) = whole.expect("a file that can be resumed can be read");
    assert_eq!(events.session, whole.session, "cut at {cut}");
    assert_eq!(events.threads, whole.threads, "cut at {cut}");
    let end = |report: &ReadReport| (report.read_to, report.lines, report.unfinished);
    assert_eq!(end(&resumed), end(&report), "cut at {cut}");
    let damage = before.damage.count + resumed.damage.count;
    assert_eq!(damage, report.damage.count, "cut at {cut}");
    let unknown = |report: &ReadReport| report.unknown.values().sum::<u64>();
    let both = unknown(&before) + unknown(&resumed);
    assert_eq!(both, unknown(&report), "cut at {cut}");
}

/// Checks any bytes, cut in the middle and at a place that depends on them.
///
/// # Panics
///
/// If a promise does not hold.
pub fn check_any(format: &dyn Format, path: &str, bytes: &[u8]) {
    check(format, path, bytes, bytes.len() / 2);
    let hash = blake3::hash(bytes);
    let chosen = hash
        .as_bytes()
        .iter()
        .take(4)
        .fold(0, |all, byte| all << 8 | usize::from(*byte));
    check(format, path, bytes, chosen % (bytes.len() + 1));
}

/// Checks that any bytes are read as a database without a panic, and that reading ends.
///
/// # Panics
///
/// If it does not.
pub fn check_database(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("it can be written");
    let rows = sqlite::read_everything(file.path());
    // Each row needs some bytes, and several tables may claim them.
    assert!(rows <= bytes.len() as u64, "{rows} rows");
}

fn check_sound(report: &ReadReport, events: &EventCollector, bytes: usize) {
    assert!(report.read_to <= bytes as u64);
    if let Some(state) = &report.state {
        assert!(state.as_str().len() <= MAX_STATE, "the state is small");
    }
    let mut count = 0;
    for thread in &events.threads {
        let mut keys = HashSet::new();
        for event in &thread.events {
            let key = event.key();
            assert!(
                (1..=256).contains(&key.len()),
                "a key of this size: {key:?}"
            );
            assert!(!key.chars().any(char::is_control), "a plain key: {key:?}");
            assert!(keys.insert(key), "a unique key: {key:?}");
        }
        count += thread.events.len();
    }
    // Each event needs some bytes.
    assert!(count <= bytes, "{count} events in {bytes} bytes");
}

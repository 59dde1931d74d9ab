//! What every format promises for any bytes, in one place: tests and fuzz targets call it.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;

use crate::collector::EventCollector;
use crate::container::Spool;
use crate::error::Result;
use crate::event::ReadReport;
use crate::format::{Format, Resume};
use crate::hooks::{
    HookEvent, HookKind, MAX_HOOK_PROMPT, hook_agents, hook_answer, hook_event, hook_shows,
    hook_takes_context,
};
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
        let mut lines = Spool::new(None);
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

/// Reads any bytes as the payload of a hook of every agent: nothing panics, an event has only
/// what can be one, and the answer refuses nothing.
///
/// # Panics
///
/// Panics if a promise is broken.
pub fn check_hook_payload(bytes: &[u8]) {
    for agent in hook_agents() {
        for event in [
            None,
            Some("PreToolUse"),
            Some("tool.execute.before"),
            Some("\0"),
        ] {
            let kind = match hook_event(agent, event, bytes) {
                Ok(event) => {
                    check_hook_event(&event);
                    event.kind
                }
                Err(error) => HookKind::Other(error.to_string()),
            };
            check_hook_answer(agent, &kind);
        }
    }
}

fn check_hook_event(event: &HookEvent) {
    const MAX_ID: usize = 512;
    let (name, call) = match &event.kind {
        HookKind::ToolStart { name, call, .. } | HookKind::ToolEnd { name, call, .. } => {
            (Some(name), call.as_ref())
        }
        HookKind::Other(name) => (Some(name), None),
        _ => (None, None),
    };
    let ids = [&event.session, &event.turn, &event.sub_agent];
    for id in ids.into_iter().flatten().chain(name).chain(call) {
        assert!(
            id.len() <= MAX_ID && !id.contains(char::is_control),
            "{event:?}"
        );
    }
    for path in [&event.transcript, &event.directory].into_iter().flatten() {
        let bytes = path.as_os_str().as_encoded_bytes();
        assert!(!bytes.is_empty() && !bytes.contains(&0), "{event:?}");
    }
    if let HookKind::Prompt { text: Some(text) } = &event.kind {
        assert!(text.len() <= MAX_HOOK_PROMPT && !text.trim().is_empty());
    }
}

/// Checks that an answer is one line of JSON with nothing in it that decides anything.
///
/// # Panics
///
/// Panics if it is not.
pub fn check_hook_answer(agent: &str, kind: &HookKind) {
    let (shown, context) = ("LINE-1 \"\n", "LINE-2 \u{2028}");
    for (shown, context) in [
        (None, None),
        (Some(shown), None),
        (Some(shown), Some(context)),
    ] {
        let Some(answer) = hook_answer(agent, kind, shown, context) else {
            continue;
        };
        assert!(!answer.contains('\n'), "{answer}");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("it is JSON");
        let fields = answer.as_object().expect("it is an object");
        let known = [
            "systemMessage",
            "hookSpecificOutput",
            "additionalContext",
            "show",
            "context",
        ];
        for (name, value) in fields {
            let is_harmless = match name.as_str() {
                "cancel" => value == false,
                "contextModification" => true,
                name => known.contains(&name),
            };
            assert!(is_harmless, "{agent}: {answer}");
        }
        let text = answer.to_string();
        let says = |line: Option<&str>| line.is_some_and(|line| text.contains(&line[..6]));
        assert_eq!(
            says(shown),
            shown.is_some() && hook_shows(agent, kind),
            "{text}"
        );
        let takes_context = context.is_some() && hook_takes_context(agent, kind);
        assert_eq!(says(context), takes_context, "{text}");
    }
}

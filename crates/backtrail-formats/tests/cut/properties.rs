//! A copy contains exactly the conversation up to its last record, under a new id, and is the
//! agent's own file otherwise.

use std::path::Path;

use backtrail::Timestamp;
use backtrail_formats::{
    CompleteEnd, Environment, Event, EventCollector, Format, NewSession, Result, ResumableAgent,
    Source, formats, launcher, resumable,
};

use crate::sessions::{self, Sample};

const DIRECTORY: &str = "/home/u/my proj";
pub(crate) const NEW_ID: &str = "01a1f000-0000-7000-8000-000000000001";

pub(crate) fn format(agent: &str) -> &'static dyn Format {
    formats().find(|format| format.name() == agent).unwrap()
}

/// Reads a file of an agent.
pub(crate) fn read(agent: &str, path: &Path, text: &[u8]) -> EventCollector {
    let source = Source::from_bytes(path, text);
    let mut events = EventCollector::default();
    let report = events.read(format(agent).open(&source).unwrap()).unwrap();
    assert_eq!(report.damage.count, 0, "{agent}: {:?}", report.damage);
    events
}

/// The messages and summaries of a file's own conversation: their keys and contents.
pub(crate) fn conversation(events: &EventCollector) -> Vec<(String, String)> {
    let all = events.main().map_or(&[][..], |main| &main.events);
    let spoken = all.iter().filter_map(|event| {
        let content = match event {
            Event::Message(event) => serde_json::to_string(&event.message).unwrap(),
            Event::Summary(event) => event.summary.clone(),
            Event::Usage(_) => return None,
        };
        Some((event.key().to_owned(), content))
    });
    spoken.collect()
}

/// Copies the beginning of a file whose conversation ends with the last key.
pub(crate) fn copy(
    agent: ResumableAgent,
    source: &Source,
    keys: &[String],
    directory: &str,
) -> Result<Option<(u64, Vec<u8>)>> {
    let Some(cut) = agent.cut(source, keys)? else {
        return Ok(None);
    };
    let environment = Environment::new("/home/u");
    let new = new_session(directory, &environment);
    let mut copy = Vec::new();
    agent.write_copy(source, cut, &new, &mut copy)?;
    Ok(Some((cut.end, copy)))
}

pub(crate) fn new_session<'e>(directory: &str, environment: &'e Environment) -> NewSession<'e> {
    NewSession {
        id: NEW_ID.to_owned(),
        at: Timestamp::from_millis(1_795_000_000_000).unwrap(),
        directory: directory.into(),
        environment,
    }
}

/// Returns where a conversation may end: how many messages are before that.
fn ends(events: &EventCollector) -> Vec<usize> {
    let mut end = CompleteEnd::default();
    let messages = events.messages().map(|event| {
        end.add(&event.message, event.response_id.as_deref());
        end.is_complete()
    });
    let complete: Vec<bool> = messages.collect();
    (1..=complete.len()).filter(|n| complete[n - 1]).collect()
}

/// Opens a session. Returns the keys of its conversation, too.
fn opened(sample: &Sample) -> (ResumableAgent, Source, Vec<String>) {
    let (path, text) = (Path::new(&sample.file), sample.text.as_bytes());
    let keys = conversation(&read(sample.agent, path, text)).into_iter();
    let keys = keys.map(|(key, _)| key).collect();
    let agent = resumable(sample.agent).unwrap();
    (agent, Source::from_bytes(path, text), keys)
}

/// Checks the copy at every record of a session where it may end. Returns how many there are.
pub(crate) fn check(sample: &Sample, directory: &str) -> usize {
    let agent = resumable(sample.agent).unwrap();
    let path = Path::new("/home/u").join(&sample.file);
    let source = Source::from_bytes(&path, sample.text.as_bytes());
    let events = read(sample.agent, &path, sample.text.as_bytes());
    let whole = conversation(&events);
    let ends = ends(&events);
    for end in &ends {
        let keys: Vec<String> = whole[..*end].iter().map(|(key, _)| key.clone()).collect();
        let copied = copy(agent, &source, &keys, directory).unwrap();
        let (len, copied) = copied.unwrap_or_else(|| panic!("{}: {end}", sample.agent));
        check_copy(sample, &copied, &whole[..*end], directory);
        check_bytes(sample, len as usize, &copied, directory);
    }
    ends.len()
}

fn check_copy(sample: &Sample, copied: &[u8], expected: &[(String, String)], directory: &str) {
    let environment = Environment::new("/home/u");
    let agent = resumable(sample.agent).unwrap();
    let old = Source::from_bytes(Path::new("/home/u").join(&sample.file), Vec::new());
    let place = match sample.agent {
        // It needs the agent's own list of projects.
        "gemini-cli" => Path::new("/x/session-2026-11-18T00-00-01a1f000.jsonl").to_owned(),
        _ => agent
            .launcher()
            .place_of_copy(old.path(), &new_session(directory, &environment))
            .unwrap(),
    };
    let events = read(sample.agent, &place, copied);
    assert_eq!(events.session, NEW_ID, "{}", sample.agent);
    let texts = |all: &[(String, String)]| all.iter().map(|(_, text)| text.clone()).collect();
    let (got, expected): (Vec<String>, Vec<String>) =
        (texts(&conversation(&events)), texts(expected));
    assert_eq!(got, expected, "{}", sample.agent);
}

/// Every line is the agent's own, apart from the values that name the session.
fn check_bytes(sample: &Sample, len: usize, copied: &[u8], directory: &str) {
    let copied = String::from_utf8(copied.to_vec()).unwrap();
    let (old, new) = (sample.text[..len].lines(), copied.lines());
    assert_eq!(old.clone().count(), new.clone().count());
    let mut origins = 0;
    for (old, new) in old.zip(new) {
        let mut expected: serde_json::Value = serde_json::from_str(old).unwrap();
        let mut got: serde_json::Value = serde_json::from_str(new).unwrap();
        origins += usize::from(take_origin(&mut got, sample.id));
        rename(&mut expected, sample.id, directory);
        assert_eq!(got, expected, "{}", sample.agent);
        if old.len() == new.len() {
            let differ = old.bytes().zip(new.bytes()).filter(|(a, b)| a != b).count();
            // At most five ids in a line.
            assert!(differ <= 5 * 36, "{}: {new}", sample.agent);
        }
    }
    assert_eq!(origins, 1, "{}", sample.agent);
    assert!(copied.ends_with('\n'));
}

/// Removes the field that names the session it was copied from; returns whether it was there.
fn take_origin(line: &mut serde_json::Value, old: &str) -> bool {
    let mut found = false;
    for name in ["forkedFrom", "forked_from_id", "parentSession"] {
        for place in ["", "/payload", "/data"] {
            let object = line.pointer_mut(place).and_then(|it| it.as_object_mut());
            if let Some(origin) = object.and_then(|object| object.remove(name)) {
                assert!(origin.to_string().contains(old), "{origin}");
                found = true;
            }
        }
    }
    found
}

/// Replaces the id and the directory where agents look for them.
fn rename(line: &mut serde_json::Value, old: &str, directory: &str) {
    for place in [
        "/sessionId",
        "/$set/sessionId",
        "/data/sessionId",
        "/payload/id",
        "/payload/session_id",
        "/payload/thread_id",
        "/id",
    ] {
        if let Some(value) = line.pointer_mut(place).filter(|value| *value == old) {
            *value = NEW_ID.into();
        }
    }
    for place in [
        "/cwd",
        "/payload/cwd",
        "/payload/thread_settings/cwd",
        "/data/context/cwd",
        "/data/context/gitRoot",
    ] {
        if let Some(value) = line.pointer_mut(place) {
            *value = directory.into();
        }
    }
}

#[test]
fn a_copy_has_exactly_the_conversation_up_to_its_record() {
    for sample in sessions::all(DIRECTORY) {
        assert!(check(&sample, DIRECTORY) >= 5, "{}", sample.agent);
    }
}

#[test]
fn a_copy_for_a_directory_that_was_moved_names_the_new_one() {
    for sample in sessions::all(DIRECTORY) {
        check(&sample, "/srv/my \"new\" proj");
    }
}

#[test]
fn a_copy_of_the_first_turn_has_its_last_lines_and_none_of_the_next_start() {
    for sample in sessions::all(DIRECTORY) {
        let (agent, source, mut keys) = opened(&sample);
        keys.truncate(sample.first_messages);
        let cut = agent.cut(&source, &keys).unwrap().unwrap();
        let lines = sample.text[..cut.end as usize].lines().count();
        assert_eq!(lines, sample.first_turn, "{}", sample.agent);
    }
}

#[test]
fn a_whole_copy_ends_with_the_last_complete_line() {
    for sample in sessions::all(DIRECTORY) {
        let agent = resumable(sample.agent).unwrap();
        let torn = format!("{}{{\"type\":\"us", sample.text);
        let whole = agent
            .whole(&Source::from_bytes(&sample.file, torn.as_bytes()))
            .unwrap();
        assert_eq!(whole.end as usize, sample.text.len(), "{}", sample.agent);
        let unended = sample.text.trim_end();
        let source = Source::from_bytes(&sample.file, unended.as_bytes());
        let whole = agent.whole(&source).unwrap();
        assert_eq!(whole.end as usize, unended.len(), "{}", sample.agent);
        let environment = Environment::new("/home/u");
        let new = new_session(DIRECTORY, &environment);
        let mut copy = Vec::new();
        agent.write_copy(&source, whole, &new, &mut copy).unwrap();
        assert!(copy.ends_with(b"}\n"), "the agent appends a line to it");
    }
}

#[test]
fn a_conversation_that_the_file_does_not_have_is_not_cut() {
    for sample in sessions::all(DIRECTORY) {
        let (agent, source, keys) = opened(&sample);
        let cut = |keys: &[String]| agent.cut(&source, keys).unwrap();
        assert!(cut(&keys).is_some(), "{}", sample.agent);
        assert_eq!(cut(&keys[1..]), None, "{}", sample.agent);
        assert_eq!(cut(&["other".to_owned()]), None, "{}", sample.agent);
        assert_eq!(cut(&[]), None, "{}", sample.agent);
    }
}

#[test]
fn ids_and_commands_are_the_agents_own() {
    let at = Timestamp::from_millis(1_795_000_000_000).unwrap();
    let new = |agent: &str| launcher(agent).unwrap().new_id(at, [7; 16]);
    assert_eq!(new("claude-code"), "07070707-0707-4707-8707-070707070707");
    assert_eq!(new("codex"), "01a1ee56-5e00-7707-8707-070707070707");
    let command = |agent: &str| launcher(agent).unwrap().command("ID").join(" ");
    let commands: Vec<String> = sessions::all("/p")
        .iter()
        .map(|it| command(it.agent))
        .collect();
    assert_eq!(
        commands,
        [
            "claude --resume ID",
            "codex resume ID",
            "gemini --resume ID",
            "copilot --resume=ID",
            "pi --session ID",
            "qwen --resume ID",
        ]
    );
    for agent in ["opencode", "goose", "cline", "nobody"] {
        assert!(resumable(agent).is_none());
    }
}

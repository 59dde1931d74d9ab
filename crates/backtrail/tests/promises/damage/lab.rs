//! Sessions on a disk in memory, to be damaged and inspected.

use std::path::{Path, PathBuf};

use backtrail::verify::Damage;
use backtrail::{
    Block, Message, Note, Reason, Session, SessionId, SessionOptions, SessionReader, Storage,
    Store, StoreOptions, ToolResult, ToolUse, Usage,
};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

/// A record as it is shown: its seq, and its line without the newline.
pub(crate) type Shown = (u64, Vec<u8>);

const NOW: i64 = 1_794_729_600_000;
const NEVER: u64 = u64::MAX;

/// A store on a disk in memory.
pub(crate) struct Lab {
    pub(crate) disk: MemoryStorage,
    pub(crate) store: Store,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::on(MemoryStorage::new(), NEVER)
    }

    /// Opens the store of a disk, as a new process does.
    pub(crate) fn on(disk: MemoryStorage, rotation: u64) -> Self {
        let store = StoreOptions::new()
            .storage(disk.clone())
            .clock(ManualClock::new(NOW))
            .randomness(SeededRandomness::new(7))
            .rotation(rotation)
            .open_or_create("/store")
            .unwrap();
        Self { disk, store }
    }

    /// Copies the disk, to be damaged without affecting this one.
    pub(crate) fn copy(&self) -> Self {
        Self::on(self.disk.kill(), NEVER)
    }

    pub(crate) fn reader(&self, id: &SessionId) -> SessionReader {
        self.store.read_session(id).unwrap()
    }

    pub(crate) fn bytes(&self, id: &SessionId, trail: u32) -> Vec<u8> {
        self.disk.read(&trail_path(id, trail)).unwrap()
    }

    pub(crate) fn put(&self, id: &SessionId, trail: u32, bytes: &[u8]) {
        self.disk.write(&trail_path(id, trail), bytes).unwrap();
    }

    /// Writes a session that no engine wrote.
    pub(crate) fn plant(&self, id: &SessionId, trails: &[&[u8]]) {
        let dir = Path::new("/store/sessions").join(id.as_str());
        self.disk.create_dir(&dir).unwrap();
        for (trail, bytes) in trails.iter().enumerate() {
            self.put(id, u32::try_from(trail).unwrap(), bytes);
        }
    }
}

pub(crate) fn trail_path(id: &SessionId, trail: u32) -> PathBuf {
    Path::new("/store/sessions")
        .join(id.as_str())
        .join(format!("{trail:04}.jsonl"))
}

/// An intact session, and what it shows.
pub(crate) struct Story {
    pub(crate) lab: Lab,
    pub(crate) id: SessionId,
    pub(crate) shown: Vec<Shown>,
}

impl Story {
    /// Everything in one trail.
    pub(crate) fn in_one_trail() -> Self {
        let lab = Lab::new();
        let session = begin(&lab);
        tell_first_half(&session);
        tell_second_half(&session);
        Self::of(lab, session)
    }

    /// The first half in trail 0, the second in trail 1.
    pub(crate) fn in_two_trails() -> Self {
        let lab = Lab::new();
        let session = begin(&lab);
        tell_first_half(&session);
        let id = session.id().clone();
        session.close().unwrap();
        let rotating = Lab::on(lab.disk.clone(), 1);
        let session = rotating.store.open_session(&id).unwrap();
        session.append(Message::user_text("go on")).unwrap();
        session.close().unwrap();
        let session = lab.store.open_session(&id).unwrap();
        tell_second_half(&session);
        Self::of(lab, session)
    }

    fn of(lab: Lab, session: Session) -> Self {
        let id = session.id().clone();
        session.close().unwrap();
        let (shown, damage) = forwards(&lab.reader(&id));
        assert!(damage.is_empty() && lab.reader(&id).verify().unwrap().is_ok());
        Self { lab, id, shown }
    }

    pub(crate) fn bytes(&self, trail: u32) -> Vec<u8> {
        self.lab.bytes(&self.id, trail)
    }

    /// Returns a copy in which a trail has other bytes.
    pub(crate) fn with(&self, trail: u32, bytes: &[u8]) -> Lab {
        let lab = self.lab.copy();
        lab.put(&self.id, trail, bytes);
        lab
    }

    /// Returns what is shown if these lines are lost.
    pub(crate) fn without<'a>(&self, lost: impl IntoIterator<Item = &'a [u8]>) -> Vec<Shown> {
        let lost: Vec<&[u8]> = lost.into_iter().map(trim_newline).collect();
        let mut shown = self.shown.clone();
        shown.retain(|(_, bytes)| !lost.contains(&bytes.as_slice()));
        shown
    }
}

fn begin(lab: &Lab) -> Session {
    let options = SessionOptions::new().title("a story").agent("tester");
    lab.store.create_session(options).unwrap()
}

fn tell_first_half(session: &Session) {
    session
        .append(Message::user_text("Grüße, 世界 🦀"))
        .unwrap();
    let call = ToolUse::new("t1", "bash", &serde_json::json!({"command": "ls"})).unwrap();
    let usage = Usage::new(10, 4).cache_read(2);
    session
        .append(Message::assistant([Block::from(call)]).usage(usage))
        .unwrap();
    let result = ToolResult::ok("a.rs\nb \"c\".rs\u{0}").answers("t1", "bash");
    session.append(Message::tool_result(result)).unwrap();
}

fn tell_second_half(session: &Session) {
    session.note(&Note::new().title("renamed")).unwrap();
    session
        .append(Message::assistant([Block::text("{\"type\":\"x\"}")]))
        .unwrap();
    session.append(Message::user_text("thanks")).unwrap();
}

/// Splits a trail into its lines, including newlines.
pub(crate) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

pub(crate) fn trim_newline(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Returns where each line begins.
pub(crate) fn starts(bytes: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let next = |line: &&[u8]| {
        let start = at;
        at += line.len();
        start
    };
    lines(bytes).iter().map(next).collect()
}

pub(crate) fn forwards(reader: &SessionReader) -> (Vec<Shown>, Vec<Damage>) {
    collect(reader.records().unwrap())
}

/// Reads backwards and returns the result in the order of [`forwards`].
pub(crate) fn backwards(reader: &SessionReader) -> (Vec<Shown>, Vec<Damage>) {
    let (mut shown, damage) = collect(reader.records_back().unwrap());
    shown.reverse();
    (shown, damage)
}

fn collect(mut records: backtrail::Records) -> (Vec<Shown>, Vec<Damage>) {
    let mut shown = Vec::new();
    while let Some(record) = records.next().unwrap() {
        shown.push((record.seq(), record.bytes().to_vec()));
    }
    (shown, records.damage().first().to_vec())
}

/// Asserts that a session shows exactly this, whichever way it is read, and returns the
/// damage seen forwards.
pub(crate) fn assert_shows(
    lab: &Lab,
    id: &SessionId,
    expected: &[Shown],
    what: &str,
) -> Vec<Damage> {
    let reader = lab.reader(id);
    let (shown, damage) = forwards(&reader);
    assert_same(&shown, expected, &format!("{what}, forwards"));
    let (shown, seen_back) = backwards(&reader);
    assert_same(&shown, expected, &format!("{what}, backwards"));
    // A record missing between two trails only shows forwards; a duplicate of the last
    // record of a part only shows backwards.
    let is_link = |damage: &Damage| matches!(damage.reason, Reason::BrokenLink(_));
    let is_plain = !damage.iter().all(is_link);
    assert!(
        !is_plain || !seen_back.is_empty(),
        "{what}: damage is seen from one end only: {damage:?}"
    );
    let last = expected.last().map_or(0, |(seq, _)| *seq);
    for seq in 1..=last + 1 {
        let record = reader.record(seq).unwrap();
        let found = record.as_ref().map(|record| record.as_ref().bytes());
        let expected = expected.iter().find(|(n, _)| *n == seq);
        assert_eq!(
            found,
            expected.map(|(_, bytes)| bytes.as_slice()),
            "{what}: record {seq}"
        );
    }
    damage
}

fn assert_same(shown: &[Shown], expected: &[Shown], what: &str) {
    let seqs = |shown: &[Shown]| shown.iter().map(|(seq, _)| *seq).collect::<Vec<_>>();
    assert_eq!(seqs(shown), seqs(expected), "{what}");
    assert!(shown == expected, "{what}: a record has other bytes");
}

/// Asserts that the session continues: a new record comes after everything that is shown,
/// and nothing else changes. Returns the handle's report of what it cut.
pub(crate) fn assert_goes_on(
    lab: &Lab,
    id: &SessionId,
    expected: &[Shown],
    what: &str,
) -> Vec<backtrail::verify::SetAside> {
    let session = lab
        .store
        .open_session(id)
        .unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let seq = session.append(Message::user_text("after all")).unwrap();
    let set_aside = session.set_aside().to_vec();
    session.close().unwrap();
    let (shown, _) = forwards(&lab.reader(id));
    let (new, before) = shown.split_last().expect("a record was appended");
    assert_same(before, expected, &format!("{what}, after an append"));
    assert_eq!(new.0, seq, "{what}");
    assert!(seq > expected.last().map_or(0, |(seq, _)| *seq), "{what}");
    let text = String::from_utf8_lossy(&new.1);
    assert!(text.contains("after all"), "{what}: {text}");
    set_aside
}

/// Lines with correct sums that no engine wrote.
pub(crate) mod forge {
    use backtrail::SessionId;

    /// The value of `prev` if there is nothing before.
    pub(crate) const NOTHING: &str = "0000000000000000";

    /// Ends a line: `front` is a JSON object without its closing brace.
    pub(crate) fn line(front: &[u8], prev: &str) -> Vec<u8> {
        let mut line = front.to_vec();
        line.extend_from_slice(format!(",\"prev\":\"{prev}\"").as_bytes());
        let hash = blake3::hash(&line).to_hex();
        line.extend_from_slice(format!(",\"sum\":\"{}\"}}\n", &hash[..16]).as_bytes());
        line
    }

    /// Returns the sum that a line ends with.
    pub(crate) fn sum(line: &[u8]) -> String {
        let line = super::trim_newline(line);
        String::from_utf8(line[line.len() - 18..line.len() - 2].to_vec()).unwrap()
    }

    /// Changes the front of a line, and its sum accordingly.
    pub(crate) fn change(line: &[u8], from: &str, to: &str) -> Vec<u8> {
        let text = std::str::from_utf8(super::trim_newline(line)).unwrap();
        let (front, rest) = text.rsplit_once(",\"prev\":\"").unwrap();
        assert!(front.contains(from), "{front}");
        self::line(front.replacen(from, to, 1).as_bytes(), &rest[..16])
    }

    pub(crate) fn message(seq: u64, text: &str, prev: &str) -> Vec<u8> {
        let front = format!(
            r#"{{"type":"message","seq":{seq},"at":"2026-11-15T08:00:00.000Z","id":"m{seq}","message":{{"role":"user","blocks":[{{"type":"text","text":"{text}"}}]}}"#
        );
        line(front.as_bytes(), prev)
    }

    /// A record of a trail that another trail continues.
    pub(crate) struct From<'a> {
        pub(crate) id: &'a SessionId,
        pub(crate) trail: u32,
        pub(crate) seq: u64,
        pub(crate) sum: String,
    }

    impl<'a> From<'a> {
        /// Points to record `seq` of a trail that contains it.
        pub(crate) fn new(id: &'a SessionId, trail: u32, seq: u64, bytes: &[u8]) -> Self {
            let key = format!("\"seq\":{seq},");
            let line = super::lines(bytes)
                .into_iter()
                .rev()
                .find(|line| String::from_utf8_lossy(line).contains(&key));
            Self {
                id,
                trail,
                seq,
                sum: line.map_or_else(|| "00000000000000ff".to_owned(), sum),
            }
        }
    }

    /// Creates a trail with messages `id/trail/seq`.
    pub(crate) fn trail(
        id: &SessionId,
        trail: u32,
        reason: &str,
        from: Option<From<'_>>,
        messages: u64,
    ) -> Vec<u8> {
        let seq = from.as_ref().map_or(0, |from| from.seq);
        let continues = from.as_ref().map_or_else(String::new, |from| {
            let From {
                id,
                trail,
                seq,
                sum,
            } = from;
            format!(
                r#","continues":{{"session_id":"{id}","trail":{trail},"seq":{seq},"sum":"{sum}"}}"#
            )
        });
        let front = format!(
            r#"{{"type":"session_meta","version":2,"seq":{seq},"at":"2026-11-15T08:00:00.000Z","session_id":"{id}","trail":{trail},"because":"{reason}"{continues}"#
        );
        let mut bytes = line(
            front.as_bytes(),
            from.as_ref().map_or(NOTHING, |from| &from.sum),
        );
        let mut prev = sum(&bytes);
        for seq in seq + 1..=seq + messages {
            let line = message(seq, &format!("{id}/{trail}/{seq}"), &prev);
            prev = sum(&line);
            bytes.extend_from_slice(&line);
        }
        bytes
    }
}

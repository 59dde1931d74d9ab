//! Reads whole files of version 1, in both forms.

use std::io;
use std::time::{Duration, SystemTime};

use super::*;
use crate::error::ErrorKind;

/// A file in memory, modified at 1000 s.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl StorageFile for Bytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or(&[]);
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn append(&self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn modified(&self) -> io::Result<SystemTime> {
        Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(1000))
    }
}

/// A whole file as it was read.
#[derive(Debug)]
struct Read {
    session: V1Session,
    /// The seqs of all records, by the index.
    seqs: Vec<u64>,
    messages: usize,
}

fn tried(name: &str, content: &[u8]) -> Result<Read> {
    let file: Arc<dyn StorageFile> = Arc::new(Bytes(content.to_vec()));
    let mut messages = Vec::new();
    let session = read(&file, Path::new(name), &mut |json| {
        messages.push(json.to_owned());
        Ok(())
    })?;
    let index = V1Index::read(file.as_ref(), Path::new(name))?;
    let (seqs, by_index) = read_by_index(name, file.as_ref(), &index);
    assert_eq!(by_index, messages);
    let last = index.compaction(file.as_ref(), Path::new(name))?;
    assert_eq!(last, session.compaction);
    Ok(Read {
        session,
        seqs,
        messages: messages.len(),
    })
}

fn of(name: &str, content: impl AsRef<[u8]>) -> Read {
    tried(name, content.as_ref()).unwrap()
}

/// Returns the seqs of all records, and the messages at the places in the index.
fn read_by_index(name: &str, file: &dyn StorageFile, index: &V1Index) -> (Vec<u64>, Vec<String>) {
    let (mut seqs, mut messages) = (Vec::new(), Vec::new());
    for seq in 1..=index.last_seq() {
        let loaded = index.load(file, Path::new(name), seq).unwrap();
        let Ok(bytes) = loaded else {
            continue;
        };
        let Ok(Some(record)) = index.look(seq, &bytes).content else {
            continue;
        };
        seqs.push(seq);
        match record {
            V1Record::Message(json) => messages.push(json.to_owned()),
            V1Record::Object(all) => {
                let valid = all.into_iter().filter(|json| check_message(json).is_ok());
                messages.extend(valid.map(str::to_owned));
            }
            _ => {}
        }
    }
    assert_eq!(index.place(0), None);
    assert_eq!(index.place(index.last_seq() + 1), None);
    (seqs, messages)
}

fn is_lines(content: impl AsRef<[u8]>) -> bool {
    let file = Bytes(content.as_ref().to_vec());
    V1Index::read(&file, Path::new("s")).unwrap().is_lines()
}

const USER: &str =
    r#"{"message":{"blocks":[{"text":"a","type":"text"}],"role":"user"},"type":"message"}"#;

// A8
#[test]
fn lines_keep_their_numbers_whatever_is_between_them() {
    let text = format!(
        "\n{USER}\n\nnot json\n{{\"type\":\"session_meta\",\"session_id\":\"first\"}}\n{USER}\n{{\"type\":\"session_meta\",\"session_id\":\"last\",\"created_at_ms\":5}}\n"
    );
    assert!(is_lines(&text));
    let read = of("s.jsonl", &text);
    assert_eq!((read.seqs, read.messages), (vec![2, 5, 6, 7], 2));
    let session = read.session;
    assert_eq!(session.session_id.as_str(), "last");
    assert_eq!((session.created_at_ms, session.updated_at_ms), (5, 5));
    assert_eq!(session.damage.count(), 1);
    let damage = &session.damage.first()[0];
    assert_eq!(damage.line, Some(4));
    assert_eq!(damage.byte, text.find("not").unwrap() as u64);
    assert_eq!(damage.bytes, 8);
}

// A8
#[test]
fn the_last_compaction_counts() {
    let compaction = |n: u32| {
        format!(
            r#"{{"count":{n},"removed_message_count":{n},"summary":"s{n}","type":"compaction"}}"#
        )
    };
    let text = format!("{}\n{USER}\n{}\n", compaction(1), compaction(2));
    let last = of("s", &text).session.compaction.unwrap();
    assert_eq!((last.count, last.summary.as_str()), (2, "s2"));
}

// A9
#[test]
fn one_object_is_read_however_it_is_spaced() {
    let compact =
        r#"{"messages":[{"blocks":[{"text":"hello","type":"text"}],"role":"user"}],"version":1}"#;
    let pretty = "{\n  \"version\": 1,\n  \"messages\": [\n    {\n \"role\": \"user\",\n \"blocks\": [] }\n  ]\n}";
    for text in [compact, pretty] {
        assert!(!is_lines(text));
        let read = of("session-1775008161929.json", text);
        assert_eq!((read.messages, read.seqs), (1, vec![1]));
        let session = read.session;
        assert_eq!(session.session_id.as_str(), "session-1775008161929");
        assert_eq!(session.created_at_ms, 1_775_008_161_929);
        assert_eq!(session.updated_at_ms, 1_775_008_161_929);
        assert!(session.damage.is_empty());
    }
    assert_eq!(of("s", r#"{"messages":[],"version":1}"#).messages, 0);
}

// A9
#[test]
fn the_fields_of_an_object_count() {
    let text = r#"{"compaction":{"count":3,"removed_message_count":4,"summary":"s"},"created_at_ms":1,"fork":{"parent_session_id":"p"},"messages":[],"prompt_history":[{"text":"x","timestamp_ms":9}],"session_id":"me","updated_at_ms":2,"version":1}"#;
    let untimed = text.replace("\"created_at_ms\":1,", "");
    assert_eq!(of("s", untimed).session.created_at_ms, 2);
    let untimed = text.replace("_at_ms\"", "\"");
    assert_eq!(of("s", untimed).session.created_at_ms, 9);
    let session = of("s", text).session;
    assert_eq!(session.session_id.as_str(), "me");
    assert_eq!((session.created_at_ms, session.updated_at_ms), (1, 2));
    assert_eq!(session.compaction.unwrap().count, 3);
    let fork = session.meta.unwrap().fork.unwrap();
    assert_eq!(
        (fork.parent_session_id.as_str(), fork.branch_name),
        ("p", None)
    );
}

// A8
#[test]
fn an_absent_time_is_that_of_the_first_prompt_the_name_or_the_file() {
    let prompt = r#"{"text":"x","timestamp_ms":77,"type":"prompt_history"}"#;
    let with_prompt = format!("{USER}\n{prompt}\n");
    let created = |name: &str, text: &str| of(name, text).session.created_at_ms;
    assert_eq!(created("session-1775008161929", &with_prompt), 77);
    assert_eq!(created("session-1775008161929", USER), 1_775_008_161_929);
    assert_eq!(created("s", USER), 1_000_000);
    let updated = format!("{USER}\n{{\"type\":\"session_meta\",\"updated_at_ms\":55}}\n");
    assert_eq!(created("s", &updated), 55);
}

#[test]
fn an_invalid_id_is_kept_beside_a_valid_one() {
    let text = format!("{{\"type\":\"session_meta\",\"session_id\":\"../../x\"}}\n{USER}\n");
    let session = of("talk.jsonl", &text).session;
    assert_eq!(session.session_id.as_str(), "talk");
    assert_eq!(session.original_id.as_deref(), Some("../../x"));
}

// F1
#[test]
fn a_torn_end_costs_itself_in_both_forms() {
    let text = format!("{USER}\n{USER}");
    for len in USER.len() + 2..text.len() {
        let read = of("s", &text.as_bytes()[..len]);
        assert_eq!(read.messages, 1);
        let damage = read.session.damage;
        assert_eq!(damage.first()[0].reason, Reason::Unfinished);
        assert_eq!(damage.first()[0].byte, USER.len() as u64 + 1);
    }
    assert!(of("s", &text).session.damage.is_empty());
    let object =
        r#"{"messages":[{"blocks":[],"role":"user"},{"blocks":[],"role":"tool"}],"version":1}"#;
    for len in 41..object.len() {
        let read = of("s", &object.as_bytes()[..len]);
        assert!(read.messages >= 1);
        let damage = read.session.damage;
        assert_eq!(damage.first()[0].reason, Reason::Unfinished);
    }
}

// F8
#[test]
fn one_bad_element_costs_itself() {
    let text = b"{\"messages\":[{\"blocks\":[],\"role\":\"user\"},\n{\"blocks\":[\"\xff\"],\"role\":\"user\"},{\"role\":\"x\"},{\"blocks\":[],\"role\":\"tool\"}],\"version\":1}";
    let read = of("s", text);
    assert_eq!((read.messages, read.seqs), (2, vec![1, 4]));
    let damage = read.session.damage.first();
    assert!(matches!(damage[0].reason, Reason::NotUtf8(_)));
    assert_eq!(damage[0].line, Some(2));
    assert_eq!(damage[1].reason, Reason::MissingField("blocks"));
}

// A14
#[test]
fn a_file_that_is_not_a_session_is_refused_with_place_and_reason() {
    let cases: [(&[u8], Reason); 6] = [
        (b"", Reason::Syntax("the file is empty".to_owned())),
        (b"\n\n[1]\n", Reason::NotAnObject),
        (b"{\"a\":1}", Reason::MissingType),
        (
            b"{\"messages\":7}",
            Reason::WrongField("messages", "an array"),
        ),
        (
            b"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
            Reason::MissingField("blocks"),
        ),
        (b"{\"type\":\"other\"}\n\xff\n", Reason::NotUtf8(0)),
    ];
    for (content, reason) in cases {
        let error = tried("/a/file.json", content).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.path(), Some(Path::new("/a/file.json")));
        assert_eq!(error.reason(), Some(&reason));
        assert!(error.line().is_some());
    }
    assert_eq!(tried("s", b"\n\n[1]\n").unwrap_err().line(), Some(3));
}

#[test]
fn records_across_chunks_are_read_whole() {
    let long = "é".repeat(CHUNK);
    let message = format!(r#"{{"blocks":[{{"text":"{long}","type":"text"}}],"role":"user"}}"#);
    let line = format!("{{\"message\":{message},\"type\":\"message\"}}\n");
    let short = format!("{USER}\n");
    let text = [line.as_str(), &short, &line, &short].concat();
    let read = of("s", &text);
    assert_eq!(read.messages, 4);
    assert!(read.session.damage.is_empty());
    let object = format!(r#"{{"messages":[{message},{{"blocks":[],"role":"user"}},{message}]}}"#);
    let file = Bytes(object.clone().into_bytes());
    let expected = *blake3::hash(object.as_bytes()).as_bytes();
    assert_eq!(hash(&file, Path::new("s")).unwrap(), expected);
    let read = of("s", &object);
    assert_eq!((is_lines(&object), read.messages), (false, 3));
}

#[test]
fn a_line_that_is_too_long_is_damage_and_the_next_is_read() {
    let mut text = vec![b' '; MAX_READ + 1];
    text.push(b'\n');
    text.extend_from_slice(USER.as_bytes());
    let file: Arc<dyn StorageFile> = Arc::new(Bytes(text));
    let mut messages = 0;
    let session = read(&file, Path::new("s"), &mut |_| {
        messages += 1;
        Ok(())
    });
    let damage = session.unwrap().damage;
    assert_eq!(messages, 1);
    assert!(matches!(damage.first()[0].reason, Reason::TooLong { .. }));
}

// F8
#[test]
fn random_damage_never_panics() {
    let object = r#"{"messages":[{"blocks":[{"text":"a\"","type":"text"}],"role":"user"},{"blocks":[],"role":"tool"}],"version":1,"compaction":{"summary":"s"}}"#;
    let lines = format!("{USER}\n{{\"type\":\"session_meta\"}}\n{USER}\n");
    for text in [object.as_bytes(), lines.as_bytes()] {
        for at in 0..text.len() {
            for byte in [0, b'"', b'\\', b'{', b'}', b'[', b']', b'\n', b',', 0xff] {
                let mut bytes = text.to_vec();
                bytes[at] = byte;
                if let Ok(read) = tried("s", &bytes) {
                    assert!(read.messages <= 2);
                }
            }
        }
    }
}

// F2: an old program appended lines to a single object.
#[test]
fn an_object_with_lines_after_it_is_lines_and_keeps_its_messages() {
    let text =
        format!("{{\"messages\":[{{\"blocks\":[],\"role\":\"user\"}}],\"version\":1}}\n{USER}\n");
    assert!(is_lines(&text));
    let read = of("s", &text);
    assert_eq!(read.messages, 2);
    assert!(read.session.damage.is_empty());
}

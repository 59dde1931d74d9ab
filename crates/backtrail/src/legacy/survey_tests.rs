//! What a whole file of version 1 is, in both forms.

use std::io;
use std::time::{Duration, SystemTime};

use super::super::Index;
use super::*;

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

/// Keeps what it is shown.
#[derive(Default)]
struct Shown(Vec<(u64, String)>);

impl Visit for Shown {
    fn found(&mut self, at: &At, found: &Found<'_>) -> Result<()> {
        self.0.push((at.seq, format!("{found:?}")));
        Ok(())
    }

    fn start_over(&mut self) {
        self.0.clear();
    }
}

fn tried(name: &str, content: &[u8]) -> Result<Summary> {
    let file: Arc<dyn StorageFile> = Arc::new(Bytes(content.to_vec()));
    let summary = survey(&file, Path::new(name))?;
    check_index(name, content, &summary);
    Ok(summary)
}

fn of(name: &str, content: impl AsRef<[u8]>) -> Summary {
    tried(name, content.as_ref()).unwrap()
}

/// The index must lead to the same records as going through the file does.
fn check_index(name: &str, content: &[u8], summary: &Summary) {
    let (file, path) = (Bytes(content.to_vec()), Path::new(name));
    let mut shown = Shown::default();
    walk(&file, path, &mut shown).unwrap();
    let index = Index::read(&file, path).unwrap();
    assert_eq!(index.form, summary.form);
    assert_eq!(index.last_seq(), summary.last_seq);
    let mut buffer = Vec::new();
    let mut found = Vec::new();
    for seq in 1..=index.last_seq() {
        if index.load(&file, path, seq, &mut buffer).unwrap().is_err() {
            continue;
        }
        match index.look(seq, &buffer).found {
            Found::Blank | Found::Damage(_) => {}
            record => found.push((seq, format!("{record:?}"))),
        }
    }
    assert_eq!(found, shown.0);
    assert_eq!(found.len() as u64, summary.records);
    assert_eq!(index.place(0), None);
    assert_eq!(index.place(index.last_seq() + 1), None);
}

const USER: &str =
    r#"{"message":{"blocks":[{"text":"a","type":"text"}],"role":"user"},"type":"message"}"#;

// A8
#[test]
fn lines_keep_their_numbers_whatever_stands_between_them() {
    let text = format!(
        "\n{USER}\n\nnot json\n{{\"type\":\"session_meta\",\"session_id\":\"first\"}}\n{USER}\n{{\"type\":\"session_meta\",\"session_id\":\"last\",\"created_at_ms\":5}}\n"
    );
    let summary = of("s.jsonl", &text);
    assert_eq!(summary.form, Form::Lines);
    assert_eq!((summary.messages, summary.records), (2, 4));
    assert_eq!(summary.last_seq, 7);
    assert_eq!(summary.session_id.as_str(), "last");
    assert_eq!((summary.created_at_ms, summary.updated_at_ms), (5, 5));
    assert_eq!(summary.bytes, text.len() as u64);
    assert_eq!(summary.hash, *blake3::hash(text.as_bytes()).as_bytes());
    assert_eq!(summary.damage.count(), 1);
    let damage = &summary.damage.first()[0];
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
    let last = of("s", &text).compaction.unwrap();
    assert_eq!((last.count, last.summary.as_str()), (2, "s2"));
}

// A9
#[test]
fn one_object_is_read_however_it_is_spaced() {
    let compact =
        r#"{"messages":[{"blocks":[{"text":"hello","type":"text"}],"role":"user"}],"version":1}"#;
    let pretty = "{\n  \"version\": 1,\n  \"messages\": [\n    {\n \"role\": \"user\",\n \"blocks\": [] }\n  ]\n}";
    for text in [compact, pretty] {
        let summary = of("session-1775008161929.json", text);
        assert_eq!(summary.form, Form::Object);
        assert_eq!((summary.messages, summary.last_seq), (1, 1));
        assert_eq!(summary.session_id.as_str(), "session-1775008161929");
        assert_eq!(summary.created_at_ms, 1_775_008_161_929);
        assert_eq!(summary.updated_at_ms, 1_775_008_161_929);
        assert!(summary.damage.is_empty());
    }
    assert_eq!(of("s", r#"{"messages":[],"version":1}"#).messages, 0);
}

// A9
#[test]
fn what_an_object_says_about_itself_counts() {
    let text = r#"{"compaction":{"count":3,"removed_message_count":4,"summary":"s"},"created_at_ms":1,"fork":{"parent_session_id":"p"},"messages":[],"prompt_history":[{"text":"x","timestamp_ms":9}],"session_id":"me","updated_at_ms":2,"version":1}"#;
    let summary = of("s", text);
    assert_eq!(summary.session_id.as_str(), "me");
    assert_eq!((summary.created_at_ms, summary.updated_at_ms), (1, 2));
    assert_eq!(summary.compaction.unwrap().count, 3);
    assert_eq!(summary.first_prompt_ms, Some(9));
    let fork = summary.meta.unwrap().fork.unwrap();
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
    assert_eq!(of("session-1775008161929", &with_prompt).created_at_ms, 77);
    assert_eq!(
        of("session-1775008161929", USER).created_at_ms,
        1_775_008_161_929
    );
    assert_eq!(of("s", USER).created_at_ms, 1_000_000);
    let updated = format!("{USER}\n{{\"type\":\"session_meta\",\"updated_at_ms\":55}}\n");
    assert_eq!(of("s", &updated).created_at_ms, 55);
}

#[test]
fn an_id_that_is_none_is_kept_beside_one_that_is() {
    let text = format!("{{\"type\":\"session_meta\",\"session_id\":\"../../x\"}}\n{USER}\n");
    let summary = of("talk.jsonl", &text);
    assert_eq!(summary.session_id.as_str(), "talk");
    assert_eq!(summary.original_id.as_deref(), Some("../../x"));
}

// F1
#[test]
fn a_torn_end_costs_itself_in_both_forms() {
    let text = format!("{USER}\n{USER}");
    for len in USER.len() + 2..text.len() {
        let summary = of("s", &text.as_bytes()[..len]);
        assert_eq!(summary.messages, 1);
        assert_eq!(summary.damage.first()[0].reason, Reason::Unfinished);
        assert_eq!(summary.damage.first()[0].byte, USER.len() as u64 + 1);
    }
    assert!(of("s", &text).damage.is_empty());
    let object =
        r#"{"messages":[{"blocks":[],"role":"user"},{"blocks":[],"role":"tool"}],"version":1}"#;
    for len in 41..object.len() {
        let summary = of("s", &object.as_bytes()[..len]);
        assert!(summary.messages >= 1);
        assert_eq!(summary.damage.first()[0].reason, Reason::Unfinished);
    }
}

// F8
#[test]
fn one_bad_element_costs_itself() {
    let text = b"{\"messages\":[{\"blocks\":[],\"role\":\"user\"},\n{\"blocks\":[\"\xff\"],\"role\":\"user\"},{\"role\":\"x\"},{\"blocks\":[],\"role\":\"tool\"}],\"version\":1}";
    let summary = of("s", text);
    assert_eq!((summary.messages, summary.last_seq), (2, 4));
    let damage = summary.damage.first();
    assert!(matches!(damage[0].reason, Reason::NotUtf8(_)));
    assert_eq!(damage[0].line, Some(2));
    assert_eq!(damage[1].reason, Reason::MissingField("blocks"));
}

// A14
#[test]
fn what_is_no_session_is_an_error_that_says_where_and_why() {
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
    let summary = of("s", &text);
    assert_eq!(summary.messages, 4);
    assert!(summary.damage.is_empty());
    let object = format!(r#"{{"messages":[{message},{{"blocks":[],"role":"user"}},{message}]}}"#);
    let summary = of("s", &object);
    assert_eq!((summary.form, summary.messages), (Form::Object, 3));
    assert_eq!(summary.hash, *blake3::hash(object.as_bytes()).as_bytes());
}

#[test]
fn a_line_that_is_too_long_is_damage_and_the_next_is_read() {
    let mut text = vec![b' '; MAX_READ + 1];
    text.push(b'\n');
    text.extend_from_slice(USER.as_bytes());
    let file: Arc<dyn StorageFile> = Arc::new(Bytes(text));
    let summary = survey(&file, Path::new("s")).unwrap();
    assert_eq!(summary.messages, 1);
    assert!(matches!(
        summary.damage.first()[0].reason,
        Reason::TooLong { .. }
    ));
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
                if let Ok(summary) = tried("s", &bytes) {
                    assert!(summary.messages <= 2);
                }
            }
        }
    }
}

// F2: what an old program made of a single object by appending to it is lines.
#[test]
fn an_object_with_lines_behind_it_is_lines() {
    let text =
        format!("{{\"messages\":[{{\"blocks\":[],\"role\":\"user\"}}],\"version\":1}}\n{USER}\n");
    let summary = of("s", &text);
    assert_eq!((summary.form, summary.messages), (Form::Lines, 1));
    assert_eq!(summary.damage.first()[0].reason, Reason::MissingType);
}

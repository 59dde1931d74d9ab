//! One odd line costs itself and nothing else, and what it costs is reported (A8, A9,
//! A14, F8). Each file is checked three times: as it was imported, with the second trail
//! lost, and with that trail's opener damaged.

use std::path::Path;
use std::sync::Arc;

use backtrail::{ErrorKind, Message, Reason, Shape, Storage, Transcript};

use super::disk::{Desk, LINES, doors, message, meta, object};

/// A file, and what must come of it.
struct Odd {
    what: &'static str,
    bytes: Vec<u8>,
    /// The messages that must be there, with the numbers they must have.
    says: Vec<(u64, &'static str)>,
    /// The line of each damaged place, and what is wrong there.
    damage: Vec<(u64, Wrong)>,
}

/// Says whether a reason is the one that was expected.
type Wrong = fn(&Reason) -> bool;

fn odd(what: &'static str, bytes: impl Into<Vec<u8>>) -> Odd {
    Odd {
        what,
        bytes: bytes.into(),
        says: Vec::new(),
        damage: Vec::new(),
    }
}

impl Odd {
    fn says(mut self, says: &[(u64, &'static str)]) -> Self {
        self.says = says.to_vec();
        self
    }

    fn damaged(mut self, line: u64, reason: Wrong) -> Self {
        self.damage.push((line, reason));
        self
    }
}

/// A message whose one block is `block`.
fn of_block(block: &str) -> String {
    format!(
        "{{\"message\":{{\"blocks\":[{block}],\"role\":\"assistant\"}},\"type\":\"message\"}}\n"
    )
}

fn deep(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Where things stand, and how lines end.
fn odd_orders() -> Vec<Odd> {
    let (a, b) = (message("a"), message("b"));
    let (one, two) = (meta("one"), meta("two"));
    vec![
        odd("no meta", a.clone() + &b).says(&[(1, "a"), (2, "b")]),
        odd("a meta in the middle", [&*a, &one, &b].concat()).says(&[(1, "a"), (3, "b")]),
        odd("a meta at the end", [&*a, &b, &one].concat()).says(&[(1, "a"), (2, "b")]),
        odd("two metas", [&*one, &a, &two, &b].concat()).says(&[(2, "a"), (4, "b")]),
        odd("blank lines", format!("\n\n{a} \t \n{one}\n{b}\n\n")).says(&[(3, "a"), (7, "b")]),
        odd("CRLF", [&*one, &a, &b].concat().replace('\n', "\r\n")).says(&[(2, "a"), (3, "b")]),
        odd("a byte order mark", format!("\u{feff}{a}{b}")).says(&[(1, "a"), (2, "b")]),
        odd("a mark before the meta", format!("\u{feff}{one}{b}")).says(&[(2, "b")]),
        odd("a last line without newline", [&*a, b.trim_end()].concat())
            .says(&[(1, "a"), (2, "b")]),
        odd("only a meta", one.clone()),
        odd(
            "a prompt before all",
            "{\"text\":\"x\",\"timestamp_ms\":1,\"type\":\"prompt_history\"}\n".to_owned() + &a,
        )
        .says(&[(2, "a")]),
        odd(
            "an unknown type first",
            "{\"type\":\"later\",\"x\":1}\n".to_owned() + &a + &b,
        )
        .says(&[(2, "a"), (3, "b")]),
    ]
}

/// Lines that are lost, and what is around them.
fn odd_losses() -> Vec<Odd> {
    let (a, b, one) = (message("a"), message("b"), meta("one"));
    let torn = |line: &str| line.as_bytes()[..line.len() / 2].to_vec();
    let nuls = [0; 5000];
    let bad = a.replace("\"a\"", "\"\u{1}\"").replace('\u{1}', "\u{7f}");
    let mut not_utf8 = bad.into_bytes();
    let at = not_utf8.iter().position(|byte| *byte == 0x7f).unwrap();
    not_utf8[at] = 0xff;
    let is_syntax: Wrong = |reason| matches!(reason, Reason::Syntax(_));
    let is_unfinished: Wrong = |reason| *reason == Reason::Unfinished;
    let is_nul: Wrong = |reason| *reason == Reason::NulBlock;
    let is_not_utf8: Wrong = |reason| matches!(reason, Reason::NotUtf8(_));
    vec![
        odd(
            "a torn line where numbers have gaps",
            joined(&[one.as_bytes(), a.as_bytes(), &torn(&b)]),
        )
        .says(&[(2, "a")])
        .damaged(3, is_unfinished),
        odd("a torn last line", joined(&[a.as_bytes(), &torn(&b)]))
            .says(&[(1, "a")])
            .damaged(2, is_unfinished),
        odd(
            "a torn meta at the end",
            joined(&[a.as_bytes(), &torn(&one)]),
        )
        .says(&[(1, "a")])
        .damaged(2, is_unfinished),
        odd(
            "a torn first line",
            joined(&[&torn(&one), b"\n", a.as_bytes()]),
        )
        .says(&[(2, "a")])
        .damaged(1, is_syntax),
        odd(
            "a line glued onto a torn one",
            joined(&[a.as_bytes(), &torn(&a), b.as_bytes()]),
        )
        .says(&[(1, "a"), (2, "b")])
        .damaged(2, |_| true),
        odd(
            "NULs in the middle",
            joined(&[a.as_bytes(), &nuls, b.as_bytes()]),
        )
        .says(&[(1, "a"), (2, "b")])
        .damaged(2, is_nul),
        odd(
            "NULs at the beginning",
            joined(&[&nuls, a.as_bytes(), b.as_bytes()]),
        )
        .says(&[(1, "a"), (2, "b")])
        .damaged(1, is_nul),
        odd("NULs at the end", joined(&[a.as_bytes(), &nuls]))
            .says(&[(1, "a")])
            .damaged(2, is_nul),
        odd(
            "a line of NULs first",
            joined(&[&nuls, b"\n", a.as_bytes()]),
        )
        .says(&[(2, "a")])
        .damaged(1, is_nul),
        odd(
            "bytes that are not UTF-8",
            joined(&[one.as_bytes(), &not_utf8, b.as_bytes()]),
        )
        .says(&[(3, "b")])
        .damaged(2, is_not_utf8),
        odd(
            "not UTF-8 on the first line",
            joined(&[&not_utf8, b.as_bytes()]),
        )
        .says(&[(2, "b")])
        .damaged(1, is_not_utf8),
        odd("an array, a number, a word", format!("[1]\n7\nhello\n{a}"))
            .says(&[(4, "a")])
            .damaged(1, |reason| *reason == Reason::NotAnObject)
            .damaged(2, |reason| *reason == Reason::NotAnObject)
            .damaged(3, is_syntax),
        odd("no type", format!("{{\"x\":1}}\n{a}"))
            .says(&[(2, "a")])
            .damaged(1, |reason| *reason == Reason::MissingType),
        odd(
            "a message without a message",
            format!("{{\"type\":\"message\"}}\n{a}"),
        )
        .says(&[(2, "a")])
        .damaged(1, |reason| *reason == Reason::MissingField("message")),
        odd(
            "a compaction without a summary",
            format!("{a}{{\"type\":\"compaction\"}}\n"),
        )
        .says(&[(1, "a")])
        .damaged(2, |reason| *reason == Reason::MissingField("summary")),
        odd("a type that is a number", format!("{{\"type\":7}}\n{a}"))
            .says(&[(2, "a")])
            .damaged(1, |reason| matches!(reason, Reason::UnsupportedType(_))),
    ]
}

/// F8: values that other readers refuse, and this one must not.
fn odd_values() -> Vec<Odd> {
    let a = message("a");
    let usage = |usage: &str| {
        format!(
            "{{\"message\":{{\"blocks\":[{{\"text\":\"u\",\"type\":\"text\"}}],\
             \"role\":\"assistant\",\"usage\":{usage}}},\"type\":\"message\"}}\n"
        )
    };
    let call = |input: &str| {
        of_block(&format!(
            "{{\"type\":\"text\",\"text\":\"d\"}},\
             {{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{input}}}"
        ))
    };
    let long = "x".repeat(1 << 20);
    vec![
        odd("no usage", a.clone() + &usage("null")).says(&[(1, "a"), (2, "u")]),
        odd("a huge usage", a.clone() + &usage("{\"input_tokens\":4294967297,\"output_tokens\":99999999999999999999999,\"cache_read_input_tokens\":1e400,\"cache_creation_input_tokens\":-1}"))
            .says(&[(1, "a"), (2, "u")]),
        odd("a usage that is a word", a.clone() + &usage("\"none\"")).says(&[(1, "a"), (2, "u")]),
        odd("a huge time", "{\"created_at_ms\":99999999999999999999999,\"type\":\"session_meta\",\"updated_at_ms\":-1e400,\"version\":99999999999999999999999}\n".to_owned() + &a)
            .says(&[(2, "a")]),
        odd("an emoji as a pair, and half of one", message("\\ud83d\\ude00") + &message("\\ud83d"))
            .says(&[(1, "😀"), (2, "\u{fffd}")]),
        odd("unknown blocks", of_block("{\"type\":\"hologram\",\"x\":[1]},{\"type\":\"text\",\"text\":\"t\"}"))
            .says(&[(1, "t")]),
        odd("blocks that are no blocks", of_block("null,7,{\"type\":\"text\",\"text\":\"t\"}"))
            .says(&[(1, "t")]),
        odd("a deep tool input", a.clone() + &call(&deep(100_000))).says(&[(1, "a"), (2, "d")]),
        odd("a deep field", a.clone() + &format!("{{\"x\":{},\"type\":\"later\"}}\n", deep(100_000)) + &message("b"))
            .says(&[(1, "a"), (3, "b")]),
        odd("a deep block first", of_block(&format!("{{\"type\":\"text\",\"text\":\"t\",\"x\":{}}}", deep(100_000))))
            .says(&[(1, "t")]),
        odd("a line of a megabyte", message(&long) + &a).says(&[(2, "a")]),
        odd("a first line of a megabyte that is lost", format!("{{\"type\":\"{long}\n{a}"))
            .says(&[(2, "a")])
            .damaged(1, |_| true),
    ]
}

fn odd_objects() -> Vec<Odd> {
    let element = |text: &str| {
        format!("{{\"role\":\"user\",\"blocks\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}")
    };
    let (a, b) = (element("a"), element("b"));
    let whole = format!("{{\"messages\":[{a},{b}],\"version\":1}}");
    vec![
        odd("an object", whole.clone()).says(&[(1, "a"), (2, "b")]),
        odd("an object with a mark", format!("\u{feff}{whole}")).says(&[(1, "a"), (2, "b")]),
        odd(
            "an object over lines",
            format!("\r\n{{\r\n \"messages\": [\r\n  {a},\r\n  {b}\r\n ]\r\n}}\r\n"),
        )
        .says(&[(1, "a"), (2, "b")]),
        odd(
            "an object without messages",
            "{\"version\":1,\"messages\":[]}",
        ),
        odd("an object of one empty array", "{\"messages\":[]}"),
        odd(
            "an object that breaks off",
            format!("{{\"messages\":[{a},{b},{{\"role\":"),
        )
        .says(&[(1, "a"), (2, "b")])
        .damaged(1, |reason| *reason == Reason::Unfinished),
        odd(
            "an object with NULs behind it",
            joined(&[whole.as_bytes(), &[0; 300]]),
        )
        .says(&[(1, "a"), (2, "b")])
        .damaged(1, |reason| *reason == Reason::NulBlock),
        odd(
            "an element that is no message",
            format!("{{\"messages\":[{a},7,{b}]}}"),
        )
        .says(&[(1, "a"), (3, "b")])
        .damaged(1, |reason| {
            matches!(reason, Reason::WrongField("message", _))
        }),
        odd(
            "a deep object",
            format!(
                "{{\"x\":{},\"messages\":[{a},{{\"role\":\"user\",\"blocks\":[{}]}}]}}",
                deep(100_000),
                deep(100_000)
            ),
        )
        .says(&[(1, "a"), (2, "user…")]),
    ]
}

fn all() -> Vec<Odd> {
    let groups = [odd_orders(), odd_losses(), odd_values(), odd_objects()];
    groups.into_iter().flatten().collect()
}

/// What of a history must be there.
fn said(desk: &Desk, id: &backtrail::SessionId) -> Vec<(u64, String)> {
    let (mut history, _) = doors(&desk.reader(id));
    let aside = ["prompt_history", "later", "note", "*"];
    history.retain(|(_, word)| !aside.contains(&word.as_str()) && word.len() < 1000);
    history
}

// A8, A9, A14, F8
#[test]
fn an_odd_line_costs_only_itself_and_the_loss_is_reported() {
    for odd in all() {
        let what = odd.what;
        let desk = Desk::new();
        let loaded = desk.try_load("talk.jsonl", &odd.bytes);
        let loaded = loaded.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        // What costs nothing is only reported.
        let is_free =
            |reason: &Reason| matches!(reason, Reason::UnsupportedType(_) | Reason::OutOfRange(_));
        let mut found = loaded.skipped().first().to_vec();
        found.retain(|one| {
            let mut damage = odd.damage.iter();
            !is_free(&one.reason) || damage.any(|(line, _)| one.line == Some(*line))
        });
        let fits = found.len() == odd.damage.len()
            && found
                .iter()
                .zip(&odd.damage)
                .all(|(found, (line, reason))| {
                    found.line == Some(*line)
                        && reason(&found.reason)
                        && found.file == Path::new("/desk/talk.jsonl")
                });
        assert!(fits, "{what}: {found:?}");
        let says: Vec<_> = odd
            .says
            .iter()
            .map(|(n, w)| (*n, (*w).to_owned()))
            .collect();
        let id = desk.old_session("talk.jsonl", &odd.bytes);
        assert_eq!(said(&desk, &id), says, "{what}");
        assert!(desk.reader(&id).verify().unwrap().is_ok(), "{what}");
    }
}

/// Who reads the history later is told of the damage in it too. What is behind its
/// last record is not in it, and was told once.
#[test]
fn losses_in_the_file_are_reported_whenever_it_is_read() {
    for odd in odd_losses() {
        let desk = Desk::new();
        let id = desk.old_session("talk.jsonl", &odd.bytes);
        let (_, damaged) = doors(&desk.reader(&id));
        let last = odd.says.last().map_or(0, |(seq, _)| *seq);
        let inside = odd.damage.iter().filter(|(line, _)| *line <= last);
        assert_eq!(damaged, inside.count() as u64, "{}", odd.what);
        for shape in Shape::ALL {
            let context = desk.reader(&id).context(shape).unwrap();
            assert_eq!(context.skipped(), damaged, "{}", odd.what);
        }
    }
}

#[test]
fn every_odd_file_gives_a_context_and_continues() {
    for odd in all() {
        let what = odd.what;
        let desk = Desk::new();
        let id = desk.old_session("talk.jsonl", &odd.bytes);
        let session = desk.store.open_session(&id).unwrap();
        let last = session.last_seq();
        assert_eq!(
            session.append(Message::user_text("on")).unwrap(),
            last + 1,
            "{what}"
        );
        for shape in Shape::ALL {
            let context = session.context(shape).unwrap();
            let said = context.as_json();
            assert!(said.contains("\"on\""), "{what}");
            for (_, word) in &odd.says {
                // Half a surrogate pair keeps its bytes where it may.
                let kept = word.replace('\u{fffd}', "\\ud83d");
                let shows = |word: &str| said.contains(&format!("\"{word}\""));
                let shown = shows(word) || shows(&kept) || word.ends_with('…');
                assert!(shown, "{what}, {shape}: {word}");
            }
        }
        session.rewind_chat(0).unwrap().unwrap();
        assert_eq!(doors(&session.reader()).0, [], "{what}");
        session.undo().unwrap().unwrap();
        let mut expected: Vec<_> = odd
            .says
            .iter()
            .map(|(n, w)| (*n, (*w).to_owned()))
            .collect();
        expected.push((last + 1, "on".to_owned()));
        assert_eq!(said(&desk, &id), expected, "{what}");
        assert_eq!(
            desk.memory.read(&desk.trail(&id, 0)).unwrap(),
            odd.bytes,
            "{what}"
        );
    }
}

/// A crash can leave the first trail alone: it still reads, and whoever writes
/// makes the second.
#[test]
fn every_odd_file_reads_without_its_second_trail() {
    for odd in all() {
        let what = odd.what;
        let desk = Desk::new();
        let id = desk.old_session("talk.jsonl", &odd.bytes);
        let whole = doors(&desk.reader(&id));
        desk.memory.remove_file(&desk.trail(&id, 1)).unwrap();
        let alone = doors(&desk.reader(&id));
        assert_eq!(alone.0, whole.0, "{what}");
        let session = desk.store.open_session(&id).unwrap();
        assert_eq!(doors(&session.reader()), whole, "{what}");
        assert_eq!(session.reader().info().unwrap().trails, 2, "{what}");
        assert!(session.reader().verify().unwrap().is_ok(), "{what}");
    }
}

/// F1, F19: damage in the second trail's opener does not hide the first.
#[test]
fn every_odd_file_reads_behind_a_damaged_opener() {
    for odd in all() {
        let what = odd.what;
        let desk = Desk::new();
        let id = desk.old_session("talk.jsonl", &odd.bytes);
        let (whole, damaged) = doors(&desk.reader(&id));
        let second = desk.trail(&id, 1);
        let mut bytes = desk.memory.read(&second).unwrap();
        bytes[60] ^= 1;
        desk.memory.write(&second, &bytes).unwrap();
        let (history, now) = doors(&desk.reader(&id));
        assert_eq!(history, whole, "{what}");
        assert!(now > damaged, "{what}: the opener is damage too");
        // Whoever writes gives the trail an opener again, and hides nothing by it.
        let session = desk.store.open_session(&id).unwrap();
        session.append(Message::user_text("on")).unwrap();
        let (mut history, _) = doors(&session.reader());
        assert_eq!(history.pop().unwrap().1, "on", "{what}");
        assert_eq!(history, whole, "{what}");
    }
}

// A14
#[test]
fn what_is_no_session_is_refused_with_file_line_and_reason() {
    type Case = (&'static str, Vec<u8>, u64, Wrong);
    let syntax: Wrong = |reason| matches!(reason, Reason::Syntax(_));
    let cases: [Case; 10] = [
        ("empty", vec![], 1, |_| true),
        ("blank", b"\n\n \n".to_vec(), 1, |_| true),
        ("text", b"hello\nthere\n".to_vec(), 1, syntax),
        ("array", b"[{}]\n".to_vec(), 1, |r| {
            *r == Reason::NotAnObject
        }),
        ("other.json", b"{\"name\":\"x\"}\n".to_vec(), 1, |r| {
            *r == Reason::MissingType
        }),
        ("message", b"\n{\"type\":\"message\"}\n".to_vec(), 2, |r| {
            *r == Reason::MissingField("message")
        }),
        ("messages", b"{\"messages\":7}".to_vec(), 1, |r| {
            matches!(r, Reason::WrongField("messages", _))
        }),
        ("torn", b"{\"type\":\"mess".to_vec(), 1, |r| {
            *r == Reason::Unfinished
        }),
        ("nuls", vec![0; 4096], 1, |r| *r == Reason::NulBlock),
        ("binary", vec![0xff, 0xfe, 1, 2], 1, |r| {
            matches!(r, Reason::NotUtf8(0))
        }),
    ];
    for (name, bytes, line, reason) in cases {
        let desk = Desk::new();
        let error = desk.try_load(name, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error:?}");
        assert_eq!(error.path(), Some(Path::new("/desk").join(name).as_path()));
        assert_eq!(error.line(), Some(line), "{name}: {error:?}");
        assert!(error.reason().is_some_and(reason), "{name}: {error:?}");
        assert!(desk.store.sessions().unwrap().is_empty(), "{name}");
    }
}

// A14
#[test]
fn a_missing_file_and_a_directory_are_errors_that_name_them() {
    let desk = Desk::new();
    let load = |path: &Path| {
        let loaded = Transcript::load_from_place(path, Arc::new(desk.memory.clone()));
        loaded.unwrap_err()
    };
    let missing = Path::new("/desk/none.jsonl");
    let error = load(missing);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.path(), Some(missing));
    let error = load(Path::new("/nowhere/at/all"));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // On a real disk a directory can be opened, and fails when it is read.
    let dir = tempfile::tempdir().unwrap();
    let error = Transcript::load_from_path(dir.path()).unwrap_err();
    assert_eq!(error.path(), Some(dir.path()));
    assert!(
        matches!(error.kind(), ErrorKind::Io | ErrorKind::Invalid),
        "{error:?}"
    );
    assert!(load(Path::new("/desk")).path().is_some());
}

/// A trail of ours is not a file of version 1: read as one, it would hide itself.
#[test]
fn a_trail_of_ours_is_never_loaded_as_version_1() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    let session = desk.store.open_session(&id).unwrap();
    session.append(Message::user_text("on")).unwrap();
    let second = desk.memory.read(&desk.trail(&id, 1)).unwrap();
    let before = desk.everything();
    let path = Path::new("/desk/0001.jsonl");
    let error = desk.try_load("0001.jsonl", second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert_eq!(error.path(), Some(path));
    desk.memory.remove_file(path).unwrap();
    assert_eq!(desk.everything(), before);
}

/// A name that no note could hold must not stop all notes after it.
#[test]
fn names_that_are_too_long_stay_in_the_file_and_stop_nothing() {
    let long = "x".repeat(20 << 20);
    for field in ["model", "workspace_root", "session_id"] {
        let meta = format!(
            "{{\"{field}\":\"{long}\",\"fork\":{{\"parent_session_id\":\"{long}\"}},\
             \"type\":\"session_meta\",\"version\":1}}\n"
        );
        let desk = Desk::new();
        let id = desk.old_session("talk.jsonl", meta + &message("a"));
        let note = backtrail::Note::new().title("t");
        assert_eq!(desk.store.note(&id, &note).unwrap(), 3, "{field}");
        let second = desk.memory.read(&desk.trail(&id, 1)).unwrap();
        assert!(second.len() < 100_000, "{field}: {} bytes", second.len());
        let info = desk.reader(&id).info().unwrap();
        assert_eq!(info.title.as_deref(), Some("t"));
    }
    assert!(object().len() < long.len());
}

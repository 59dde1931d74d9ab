//! The promise: a transcript is a plain value. What was pushed is on disk when
//! the push returns, what failed left no trace, and no copy ever overwrites what
//! another one wrote.

use std::path::Path;
use std::sync::Arc;

use backtrail::{Block, ErrorKind, Message, Reason, Storage, StoreOptions, Transcript, Usage};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};
use proptest::prelude::*;

const PATH: &str = "/talk.jsonl";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn path() -> &'static Path {
    Path::new(PATH)
}

fn here(disk: &MemoryStorage) -> Arc<dyn Storage> {
    Arc::new(disk.clone())
}

fn load(disk: &MemoryStorage) -> Transcript {
    Transcript::load_from_place(PATH, here(disk)).unwrap()
}

fn placed(disk: &MemoryStorage) -> Transcript {
    Transcript::new().with_place(PATH, here(disk))
}

/// A transcript of a few messages and a compaction, in its file.
fn started(disk: &MemoryStorage) -> Transcript {
    let mut talk = placed(disk);
    talk.push_user_text("one").unwrap();
    talk.push(Message::assistant([Block::text("two")]).usage(Usage::new(3, 4)))
        .unwrap();
    talk.record_compaction("so far", 1).unwrap();
    talk.push_user_text("three").unwrap();
    talk
}

fn names(disk: &MemoryStorage) -> Vec<String> {
    let name = |path: std::path::PathBuf| path.display().to_string();
    disk.files().into_iter().map(name).collect()
}

// A1
#[test]
fn a_new_one_has_all_it_needs_without_a_store() {
    let talk = Transcript::new();
    assert_eq!(talk.version(), 2);
    assert_eq!(talk.created_at_ms(), talk.updated_at_ms());
    assert!(talk.created_at_ms() > 1_700_000_000_000);
    assert_eq!(talk.messages(), []);
    assert!(talk.compaction().is_none() && talk.fork_origin().is_none());
    assert_eq!(talk.path(), None);
    assert_ne!(talk.session_id(), Transcript::new().session_id());
}

// A1
#[test]
fn two_are_equal_whatever_their_place() {
    let disk = MemoryStorage::new();
    let talk = started(&disk);
    let copy = talk.clone().with_place("/other.jsonl", here(&disk));
    assert_ne!(copy.path(), talk.path());
    assert_eq!(copy, talk);
    assert_ne!(Transcript::new(), talk);
}

// A6
#[test]
fn a_push_starts_a_missing_or_empty_file_and_is_on_disk_when_it_returns() {
    for empty in [false, true] {
        let disk = MemoryStorage::new();
        if empty {
            disk.write(path(), b"").unwrap();
        }
        let mut talk = Transcript::new();
        talk.push_user_text("before it had a place").unwrap();
        let mut talk = talk.with_place(PATH, here(&disk));
        assert!(
            !disk
                .files()
                .iter()
                .any(|file| !disk.read(file).unwrap().is_empty())
        );
        for n in 0..3 {
            talk.push_user_text(format!("{n}")).unwrap();
            let after = disk.crash(Loss::Unsynced);
            assert_eq!(load(&after), talk);
        }
        assert_eq!(talk.messages().len(), 4);
        assert_eq!(names(&disk), [PATH]);
    }
}

// A7
#[test]
fn the_updated_time_is_right_after_every_append() {
    let disk = MemoryStorage::new();
    let mut talk = placed(&disk);
    for n in 0..20 {
        let before = talk.updated_at_ms();
        if n % 5 == 4 {
            talk.record_compaction("s", 1).unwrap();
        } else {
            talk.push_user_text("x").unwrap();
        }
        assert!(talk.updated_at_ms() >= before);
        assert_eq!(load(&disk).updated_at_ms(), talk.updated_at_ms());
        assert_eq!(load(&disk).created_at_ms(), talk.created_at_ms());
    }
}

// A11
#[test]
fn compactions_count_up_and_the_originals_stay() {
    let disk = MemoryStorage::new();
    let mut talk = started(&disk);
    assert_eq!(talk.compaction().unwrap().count, 1);
    assert_eq!(talk.kept_messages().len(), 2);
    talk.record_compaction("more", 1).unwrap();
    let last = talk.compaction().unwrap();
    assert_eq!((last.count, last.removed_message_count), (2, 1));
    assert_eq!(last.summary.as_str(), "more");
    assert_eq!(talk.kept_messages(), &talk.messages()[2..]);
    talk.record_compaction("all", 99).unwrap();
    assert_eq!(talk.kept_messages(), []);
    assert_eq!(talk.messages().len(), 3);
    assert_eq!(load(&disk), talk);
    talk.push_user_text("after").unwrap();
    assert_eq!(talk.kept_messages(), [Message::user_text("after")]);
    assert_eq!(load(&disk).kept_messages(), talk.kept_messages());
    let text = String::from_utf8(disk.read(path()).unwrap()).unwrap();
    let keeps: Vec<&str> = text.split("\"keeps_from\":").skip(1).collect();
    let seqs: Vec<&str> = keeps.iter().map(|k| k.split(',').next().unwrap()).collect();
    assert_eq!(seqs, ["2", "4", "7"]);
}

// A12
#[test]
fn a_fork_has_a_new_id_its_parents_messages_and_the_exact_place() {
    let disk = MemoryStorage::new();
    let talk = started(&disk);
    let fork = talk.fork_as("  try-2 \n");
    assert_ne!(fork.session_id(), talk.session_id());
    assert_eq!(fork.messages(), talk.messages());
    assert_eq!(fork.compaction(), talk.compaction());
    assert_eq!(fork.path(), None);
    let origin = fork.fork_origin().unwrap();
    assert_eq!(origin.parent_session_id, talk.session_id().as_str());
    assert_eq!(origin.branch_name.as_deref(), Some("try-2"));
    assert_eq!(origin.seq, Some(4));
    for fork in [talk.fork(), talk.fork_as(""), talk.fork_as(" \t ")] {
        assert_eq!(fork.fork_origin().unwrap().branch_name, None);
    }
    fork.save_to_place("/fork.jsonl", here(&disk)).unwrap();
    let back = Transcript::load_from_place("/fork.jsonl", here(&disk)).unwrap();
    assert_eq!(back, fork);
    // It is as old as it is, not as its messages are.
    let old = r#"{"messages":[{"role":"user","blocks":[]}],"updated_at_ms":5}"#;
    let fork = serde_json::from_str::<Transcript>(old).unwrap().fork();
    fork.save_to_place(PATH.to_owned() + "l", here(&disk))
        .unwrap();
    let back = Transcript::load_from_place(PATH.to_owned() + "l", here(&disk)).unwrap();
    assert_eq!(back, fork);
}

// A4
#[test]
fn it_goes_through_serde() {
    let disk = MemoryStorage::new();
    for talk in [started(&disk), started(&MemoryStorage::new()).fork()] {
        let json = serde_json::to_string(&talk).unwrap();
        assert!(json.starts_with(r#"{"version":2,"session_id":""#));
        assert_eq!(serde_json::from_str::<Transcript>(&json).unwrap(), talk);
    }
    for refused in [
        r#"{"version":3,"messages":[]}"#,
        r#"{"version":1}"#,
        r#"{"messages":[],"created_at_ms":9223372036854775807}"#,
    ] {
        assert!(serde_json::from_str::<Transcript>(refused).is_err());
    }
}

// F3, F10
#[test]
fn each_push_is_one_write_of_one_line_at_the_end() {
    let memory = MemoryStorage::new();
    let disk = FaultyStorage::new(memory.clone());
    let mut talk = Transcript::new().with_place(PATH, Arc::new(disk.clone()));
    talk.push_user_text("first").unwrap();
    for n in 0..50 {
        let before = memory.read(path()).unwrap();
        let logged = disk.log().len();
        talk.push_user_text(format!("{n}")).unwrap();
        let after = memory.read(path()).unwrap();
        assert!(after.starts_with(&before));
        let added = after.len() - before.len();
        assert_eq!(
            after[before.len()..]
                .iter()
                .filter(|b| **b == b'\n')
                .count(),
            1
        );
        let expected = [
            "lock talk.jsonl".to_owned(),
            format!("append talk.jsonl {added}"),
            "sync talk.jsonl".to_owned(),
            "unlock talk.jsonl".to_owned(),
        ];
        assert_eq!(disk.log()[logged..], expected);
    }
}

// F4
#[test]
fn a_stale_copy_is_refused_and_loses_nothing() {
    let disk = MemoryStorage::new();
    let mut one = started(&disk);
    let mut two = load(&disk);
    let mut three = one.clone();
    two.push_user_text("from two").unwrap();
    let content = disk.read(path()).unwrap();
    for stale in [&mut one, &mut three] {
        let before = stale.clone();
        let error = stale.push_user_text("from a stale copy").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("load it again"));
        assert_eq!(*stale, before);
        let error = stale.save_to_place(PATH, here(&disk)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }
    assert_eq!(disk.read(path()).unwrap(), content);
    let mut one = load(&disk);
    one.push_user_text("again").unwrap();
    assert_eq!(load(&disk).messages().len(), 5);
}

// F4
#[test]
fn two_writers_at_once_never_lose_or_mix_a_line() {
    let disk = MemoryStorage::new();
    started(&disk);
    let speak = |name: &'static str| {
        let disk = disk.clone();
        move || {
            let mut told = Vec::new();
            let mut talk = load(&disk);
            while told.len() < 20 {
                let text = format!("{name} {}", told.len());
                match talk.push_user_text(text.clone()) {
                    Ok(()) => told.push(text),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict);
                        talk = load(&disk);
                    }
                }
            }
            told
        }
    };
    let threads = ["a", "b"].map(|name| std::thread::spawn(speak(name)));
    let told: Vec<String> = threads
        .into_iter()
        .flat_map(|t| t.join().unwrap())
        .collect();
    let talk = load(&disk);
    assert!(talk.skipped().is_empty());
    let mut texts: Vec<String> = talk.messages()[3..]
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    texts.sort();
    let mut told = told;
    told.sort();
    assert_eq!(texts, told);
}

// F2
#[test]
fn a_version_1_file_is_never_written_to() {
    let line =
        r#"{"message":{"blocks":[{"text":"a","type":"text"}],"role":"user"},"type":"message"}"#;
    let object = r#"{"messages":[{"blocks":[],"role":"user"}],"version":1}"#;
    for content in [line, object] {
        let disk = MemoryStorage::new();
        disk.write(path(), content.as_bytes()).unwrap();
        let mut talk = load(&disk);
        let before = talk.clone();
        let error = talk.push_user_text("more").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("save it to another file"));
        assert!(talk.record_compaction("s", 1).is_err());
        assert_eq!(talk, before);
        assert!(talk.save_to_place(PATH, here(&disk)).is_err());
        let fresh = Transcript::new()
            .with_place(PATH, here(&disk))
            .push_user_text("x");
        assert_eq!(fresh.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(disk.read(path()).unwrap(), content.as_bytes());
        talk.save_to_place("/new.jsonl", here(&disk)).unwrap();
        let mut talk = talk.with_place("/new.jsonl", here(&disk));
        talk.push_user_text("more").unwrap();
        let back = Transcript::load_from_place("/new.jsonl", here(&disk)).unwrap();
        assert_eq!(back, talk);
        assert_eq!(back.messages().len(), 2);
    }
}

// F1
#[test]
fn a_torn_last_line_is_set_aside_and_the_next_push_starts_clean() {
    let whole = MemoryStorage::new();
    let talk = started(&whole);
    let content = whole.read(path()).unwrap();
    let last = content[..content.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for cut in last + 1..content.len() - 1 {
        let disk = MemoryStorage::new();
        disk.write(path(), &content[..cut]).unwrap();
        let mut torn = load(&disk);
        assert_eq!(torn.messages(), &talk.messages()[..2]);
        assert_eq!(torn.skipped().first()[0].reason, Reason::Unfinished);
        torn.push_user_text("next").unwrap();
        let aside = format!("{PATH}.aside-{last}");
        assert_eq!(disk.read(Path::new(&aside)).unwrap(), content[last..cut]);
        let back = load(&disk);
        assert!(back.skipped().is_empty());
        assert_eq!(back, torn);
    }
    // What only lacks its newline gets one.
    let disk = MemoryStorage::new();
    disk.write(path(), &content[..content.len() - 1]).unwrap();
    let mut torn = load(&disk);
    assert_eq!(torn, talk);
    torn.push_user_text("next").unwrap();
    assert_eq!(load(&disk), torn);
    assert_eq!(names(&disk), [PATH]);
    // Blanks at the end are nobody's, and nothing is glued onto them.
    for blanks in ["\n", "  ", "\n  "] {
        let disk = MemoryStorage::new();
        disk.write(path(), &[&content, blanks.as_bytes()].concat())
            .unwrap();
        let mut talk = load(&disk);
        talk.push_user_text("next").unwrap();
        assert_eq!(load(&disk), talk);
        assert!(load(&disk).skipped().is_empty());
        assert_eq!(names(&disk), [PATH]);
    }
}

// A6
#[test]
fn a_file_that_ends_in_its_first_record_is_started_again() {
    let whole = MemoryStorage::new();
    let mut talk = placed(&whole);
    talk.push_user_text("one").unwrap();
    let content = whole.read(path()).unwrap();
    let first = content.iter().position(|byte| *byte == b'\n').unwrap();
    for cut in [1, 20, 60, first - 1] {
        let disk = MemoryStorage::new();
        disk.write(path(), &content[..cut]).unwrap();
        let loaded = Transcript::load_from_place(PATH, here(&disk));
        assert_eq!(loaded.unwrap_err().reason(), Some(&Reason::Unfinished));
        talk.clone()
            .with_place(PATH, here(&disk))
            .push_user_text("two")
            .unwrap();
        assert_eq!(load(&disk).messages().len(), 2);
    }
}

#[test]
fn damage_costs_its_line_and_is_reported() {
    let disk = MemoryStorage::new();
    let talk = started(&disk);
    let content = disk.read(path()).unwrap();
    let at = content.windows(3).position(|w| w == b"two").unwrap();
    let mut bytes = content.clone();
    bytes[at] ^= 1;
    disk.write(path(), &bytes).unwrap();
    let mut hurt = load(&disk);
    assert_eq!(hurt.messages().len(), 2);
    assert_eq!(hurt.skipped().count(), 1);
    assert_eq!(hurt.skipped().first()[0].reason, Reason::BadSum);
    assert_eq!(hurt.skipped().first()[0].line, Some(3));
    let error = talk.save_to_place(PATH, here(&disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    hurt.push_user_text("goes on").unwrap();
    assert_eq!(load(&disk), hurt);
    // A lost line shows as well.
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    disk.write(path(), &[lines[0], lines[1], lines[3], lines[4]].concat())
        .unwrap();
    assert_eq!(load(&disk).skipped().first()[0].reason, Reason::Gap);
    // Without its opener a file can be read, not written to.
    disk.write(path(), &lines[1..].concat()).unwrap();
    let mut headless = load(&disk);
    assert_eq!(headless.messages(), talk.messages());
    assert!(headless.push_user_text("x").is_err());
}

// A7, F4
#[test]
fn saving_creates_completes_or_leaves_alone_and_else_refuses() {
    let disk = MemoryStorage::new();
    let mut talk = started(&MemoryStorage::new());
    let save = |talk: &Transcript| talk.save_to_place(PATH, here(&disk));
    save(&talk).unwrap();
    assert_eq!(load(&disk), talk);
    let content = disk.read(path()).unwrap();
    save(&talk).unwrap();
    assert_eq!(disk.read(path()).unwrap(), content);
    let early = talk.clone();
    let mut talk = {
        talk = talk.with_place("/elsewhere.jsonl", here(&disk));
        talk.push_user_text("more").unwrap();
        talk.record_compaction("later", 2).unwrap();
        talk
    };
    save(&talk).unwrap();
    assert!(disk.read(path()).unwrap().starts_with(&content));
    assert_eq!(load(&disk), talk);
    let content = disk.read(path()).unwrap();
    let mut uncompacted = early.clone().with_place("/fourth.jsonl", here(&disk));
    uncompacted.push_user_text("more").unwrap();
    let mut other_end = early.clone().with_place("/third.jsonl", here(&disk));
    other_end.push_user_text("something else").unwrap();
    let fork = talk.fork();
    for refused in [&early, &uncompacted, &other_end, &Transcript::new(), &fork] {
        assert_eq!(save(refused).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(disk.read(path()).unwrap(), content);
    }
    talk.push_user_text("end").unwrap();
    disk.write(path(), b"my notes\n").unwrap();
    assert_eq!(save(&talk).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(disk.read(path()).unwrap(), b"my notes\n");
}

// F7
#[test]
fn a_stores_trail_is_read_but_never_written_to() {
    let disk = MemoryStorage::new();
    let options = StoreOptions::new().storage(disk.clone());
    let store = options.open_or_create("/store").unwrap();
    let session = store.create_session(Default::default()).unwrap();
    session.append(Message::user_text("hello")).unwrap();
    let trail = format!("/store/sessions/{}/0000.jsonl", session.id());
    let mut talk = Transcript::load_from_place(&trail, here(&disk)).unwrap();
    assert_eq!(talk.session_id(), session.id());
    assert_eq!(talk.messages(), [Message::user_text("hello")]);
    let error = talk.push_user_text("x").unwrap_err();
    assert!(error.to_string().contains("belongs to a store"));
    let error = talk.save_to_place(&trail, here(&disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// What a writer left that died.
const TORN: &[u8] = b"{\"type\":\"mess";

/// What is tried while a fault waits.
#[derive(Debug, Clone, Copy)]
enum Attempt {
    First,
    Empty,
    Next,
    AfterTear,
    Compaction,
    Save,
    SaveRest,
}

impl Attempt {
    const ALL: [Self; 7] = [
        Self::First,
        Self::Empty,
        Self::Next,
        Self::AfterTear,
        Self::Compaction,
        Self::Save,
        Self::SaveRest,
    ];

    /// Makes the disk and the transcript that it starts from.
    fn prepare(self, memory: &MemoryStorage, disk: &FaultyStorage) -> Transcript {
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let talk = started(memory);
        let content = memory.read(path()).unwrap();
        match self {
            Self::First | Self::Save => memory.remove_file(path()).unwrap(),
            Self::Empty => memory.write(path(), b"").unwrap(),
            Self::Next | Self::Compaction => {}
            Self::AfterTear => {
                let torn = [&content[..], TORN].concat();
                memory.write(path(), &torn).unwrap();
            }
            Self::SaveRest => {
                let newline = content.iter().position(|byte| *byte == b'\n').unwrap();
                memory.write(path(), &content[..=newline]).unwrap();
            }
        }
        memory.sync_dir(Path::new("/")).unwrap();
        match self {
            Self::Next | Self::Compaction | Self::AfterTear => {
                Transcript::load_from_place(PATH, storage).unwrap()
            }
            _ => talk.with_place(PATH, storage),
        }
    }

    fn run(self, talk: &mut Transcript, disk: &FaultyStorage) -> backtrail::Result<()> {
        match self {
            Self::Compaction => talk.record_compaction("new", 1),
            Self::Save | Self::SaveRest => talk.save_to_place(PATH, Arc::new(disk.clone())),
            _ => talk.push_user_text("new"),
        }
    }
}

/// What the transcript's file holds, as far as it is there: without an unfinished
/// end, which the next append sets aside.
fn kept(memory: &MemoryStorage) -> Option<Transcript> {
    Transcript::load_from_place(PATH, here(memory)).ok()
}

// A6: every operation fails once.
#[test]
fn a_push_or_save_that_fails_leaves_memory_and_disk_as_they_were() {
    for attempt in Attempt::ALL {
        for number in [EIO, ENOSPC] {
            for n in 0.. {
                let memory = MemoryStorage::new();
                let disk = FaultyStorage::new(memory.clone()).counting(Count::All);
                let mut talk = attempt.prepare(&memory, &disk);
                let (before, there) = (talk.clone(), kept(&memory));
                disk.arm(n, Fault::Error(number));
                let outcome = attempt.run(&mut talk, &disk);
                let (fired, log) = (disk.fired(), disk.log());
                disk.disarm();
                if outcome.is_ok() {
                    assert_eq!(load(&memory), talk, "{attempt:?} {log:?}");
                } else {
                    assert_eq!(talk, before, "{attempt:?} {log:?}");
                    assert_eq!(kept(&memory), there, "{attempt:?} {log:?}");
                    if log
                        .iter()
                        .any(|line| line.starts_with("sync") && line.contains("<-"))
                    {
                        talk = match there {
                            Some(_) if !matches!(attempt, Attempt::SaveRest) => load(&memory),
                            _ => before.with_place(PATH, here(&memory)),
                        };
                    }
                    attempt.run(&mut talk, &disk).unwrap_or_else(|error| {
                        panic!("{attempt:?} again: {error:?} {log:?}");
                    });
                    assert_eq!(load(&memory), talk, "{attempt:?} {log:?}");
                    assert!(load(&memory).skipped().is_empty(), "{attempt:?} {log:?}");
                }
                if !fired {
                    assert!(n > 3);
                    break;
                }
            }
        }
    }
}

// A6, F5: the machine stops at every operation, and loses what was not synced.
#[test]
fn a_crash_at_any_moment_keeps_all_that_was_acknowledged() {
    let faults = [
        Fault::Crash { when: When::Before },
        Fault::Crash { when: When::After },
        Fault::Tear {
            numerator: 1,
            denominator: 2,
        },
    ];
    for attempt in Attempt::ALL {
        for fault in faults {
            for n in 0.. {
                let memory = MemoryStorage::new();
                let disk = FaultyStorage::new(memory.clone());
                let mut talk = attempt.prepare(&memory, &disk);
                let there = kept(&memory).map_or(0, |talk| talk.messages().len());
                disk.arm(n, fault);
                let outcome = attempt.run(&mut talk, &disk);
                for after in [memory.crash(Loss::Unsynced), memory.kill()] {
                    let found = kept(&after).map_or(0, |talk| talk.messages().len());
                    assert!(found >= there, "{attempt:?} {:?}", disk.log());
                    if matches!(attempt, Attempt::AfterTear) {
                        let holds = |file: &Path| after.read(file).unwrap().ends_with(TORN);
                        assert!(after.files().iter().any(|file| holds(file)));
                    }
                    if outcome.is_ok() {
                        assert_eq!(load(&after), talk);
                    }
                    let mut next = match kept(&after) {
                        Some(talk) => talk,
                        None => talk.clone().with_place(PATH, here(&after)),
                    };
                    next.push_user_text("after the crash").unwrap();
                    assert_eq!(load(&after), next);
                }
                if !disk.fired() {
                    break;
                }
            }
        }
    }
}

// Invariant: after a failed sync nothing is acknowledged.
#[test]
fn after_a_failed_sync_it_must_be_loaded_again() {
    let memory = MemoryStorage::new();
    let disk = FaultyStorage::new(memory.clone());
    let mut talk = Attempt::Next.prepare(&memory, &disk);
    disk.arm(2, Fault::Error(EIO));
    talk.push_user_text("x").unwrap_err();
    assert!(disk.log()[2].starts_with("sync"));
    disk.disarm();
    let error = talk.push_user_text("x").unwrap_err();
    assert!(error.to_string().contains("load it again"));
    load(&memory).push_user_text("x").unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    // A7
    #[test]
    fn saving_and_loading_gives_back_an_equal_one(talk in crate::version1::transcript::talk()) {
        let disk = MemoryStorage::new();
        // Loaded once, it holds what a file can hold.
        talk.save_to_place("/first.jsonl", here(&disk)).unwrap();
        let talk = Transcript::load_from_place("/first.jsonl", here(&disk)).unwrap();
        prop_assert!(talk.skipped().is_empty());
        talk.save_to_place(PATH, here(&disk)).unwrap();
        prop_assert_eq!(&load(&disk), &talk);
        let json = serde_json::to_string(&talk).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Transcript>(&json).unwrap(), &talk);
    }

    // F8
    #[test]
    fn random_damage_never_panics_and_never_grows(
        at in 0..1200_usize,
        bytes in proptest::collection::vec(any::<u8>(), 1..20),
    ) {
        let disk = MemoryStorage::new();
        started(&disk);
        let mut content = disk.read(path()).unwrap();
        let at = at.min(content.len() - 1);
        let end = (at + bytes.len()).min(content.len());
        content.splice(at..end, bytes);
        disk.write(path(), &content).unwrap();
        if let Ok(mut talk) = Transcript::load_from_place(PATH, here(&disk)) {
            prop_assert!(talk.messages().len() <= 3);
            if talk.push_user_text("next").is_ok() {
                prop_assert_eq!(load(&disk), talk);
            }
        }
    }
}

#[test]
fn the_directories_above_its_file_are_created_durably() {
    let path = Path::new("/a/b/talk.jsonl");
    let disk = MemoryStorage::new();
    let mut talk = Transcript::new().with_place(path, here(&disk));
    talk.push_user_text("one").unwrap();
    let after = disk.crash(Loss::Unsynced);
    assert_eq!(
        Transcript::load_from_place(path, here(&after)).unwrap(),
        talk
    );
    let elsewhere = Path::new("/a/c/d/talk.jsonl");
    talk.save_to_place(elsewhere, here(&after)).unwrap();
    let after = after.crash(Loss::Unsynced);
    assert_eq!(
        Transcript::load_from_place(elsewhere, here(&after)).unwrap(),
        talk
    );
}

/// Lines of version 1, some of which only other programs understand.
const V1_LINES: [&str; 7] = [
    r#"{"created_at_ms":1754000000000,"session_id":"s1","type":"session_meta","updated_at_ms":99999999999999999999,"version":1}"#,
    r#"{"text":"one","timestamp_ms":1754000000001,"type":"prompt_history"}"#,
    r#"{"message":{"blocks":[{"text":"one","type":"text"}],"role":"user"},"type":"message"}"#,
    r#"{ "type" : "todo",  "items":["\u0041"] , "n":1e400}"#,
    r#"{"message":{"blocks":[{"text":"two","type":"text"}],"role":"assistant","usage":{"input_tokens":-4,"output_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}},"type":"message"}"#,
    r#"{"type":"prompt_history","text":"two","timestamp_ms":-99999999999999999}"#,
    r#"{"type":"todo"}"#,
];

fn v1(disk: &MemoryStorage) -> Transcript {
    let storage = here(disk);
    let file = storage.create_new(path()).unwrap();
    file.append(V1_LINES.join("\n").as_bytes()).unwrap();
    file.append(b"\n").unwrap();
    load(disk)
}

// A14
#[test]
fn version_1_reports_unsupported_types_and_numbers_out_of_range_by_line() {
    let talk = v1(&MemoryStorage::new());
    assert_eq!(talk.messages().len(), 2);
    let skipped = talk.skipped().first().iter();
    let skipped: Vec<_> = skipped
        .map(|damage| (damage.line.unwrap(), damage.reason.clone()))
        .collect();
    let todo = || Reason::UnsupportedType("todo".to_owned());
    assert_eq!(
        skipped,
        [
            (1, Reason::OutOfRange("updated_at_ms")),
            (4, todo()),
            (5, Reason::OutOfRange("input_tokens")),
            (6, Reason::OutOfRange("timestamp_ms")),
            (7, todo()),
        ]
    );
}

#[test]
fn version_1_keeps_what_only_others_understand_when_it_is_saved_again() {
    let disk = MemoryStorage::new();
    let talk = v1(&disk);
    let kept = [1, 3, 5, 6].map(|n| V1_LINES[n]);
    let lines = |talk: &Transcript| {
        let mut out = Vec::new();
        talk.write_v1(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        out.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let written = lines(&talk);
    // In the same places, byte by byte.
    assert_eq!([1, 3, 5, 6].map(|n| written[n].as_str()), kept);
    // Also by way of a file of version 2, which grows.
    let saved = Path::new("/new/saved.jsonl");
    talk.save_to_place(saved, here(&disk)).unwrap();
    let mut again = Transcript::load_from_place(saved, here(&disk)).unwrap();
    assert!(again.skipped().is_empty());
    assert_eq!(again, talk);
    assert_eq!(lines(&again), written);
    again.push_user_text("three").unwrap();
    let mut again = Transcript::load_from_place(saved, here(&disk)).unwrap();
    again.push_user_text("four").unwrap();
    let grown = lines(&Transcript::load_from_place(saved, here(&disk)).unwrap());
    assert_eq!(grown[..written.len()][1..], written[1..]);
    assert_eq!(grown.len(), written.len() + 2);
    // And of the older form, in which the prompts are beside the messages.
    let object = r#"{"version":1,"session_id":"s1","messages":[],"prompt_history":[{"timestamp_ms":1754000000001,"text":"one"}]}"#;
    let storage = here(&disk);
    let file = storage.create_new(Path::new("/old.json")).unwrap();
    file.append(object.as_bytes()).unwrap();
    let old = Transcript::load_from_place("/old.json", here(&disk)).unwrap();
    let prompt = r#"{"type":"prompt_history","timestamp_ms":1754000000001,"text":"one"}"#;
    assert_eq!(lines(&old)[1], prompt);
}

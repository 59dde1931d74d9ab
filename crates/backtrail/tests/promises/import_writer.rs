//! Imported sessions: complete or absent, with the bytes of their source files, updated as
//! their agent continues them.

use std::path::Path;

use backtrail::plumbing::{CallUsage, ImportWriter, ImportWriterOptions, SourceRecord};
use backtrail::{
    Block, Compaction, Draft, ErrorKind, Json, Message, RecordKind, SessionId, SessionOptions,
    Storage, Store, StoreOptions, Timestamp, ToolUse, Usage,
};
use backtrail_testkit::{
    Fault, FaultyStorage, Loss, ManualClock, MemoryStorage, SeededRandomness, When,
};

use crate::kit::ROOT;

fn id(n: u32) -> SessionId {
    format!("an-imported-session-{n}").parse().unwrap()
}

fn store_on(storage: impl Storage) -> backtrail::Result<Store> {
    store_by(7, storage)
}

fn store_by(seed: u64, storage: impl Storage) -> backtrail::Result<Store> {
    StoreOptions::new()
        .storage(storage)
        .clock(ManualClock::new(1_794_726_000_000))
        .randomness(SeededRandomness::new(seed))
        .open_or_create(ROOT)
}

fn at(n: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + n).unwrap()
}

fn options() -> ImportWriterOptions {
    ImportWriterOptions::new("toy", SessionOptions::new().title("t")).began(at(0))
}

fn say(writer: &mut ImportWriter, key: &str) -> backtrail::Result<()> {
    let draft = Draft::from(Message::user_text(key)).id(key).at(at(1));
    writer.message(&draft)
}

/// The content of the file of session `n`.
fn file(n: u32) -> Vec<u8> {
    format!("file {n}\n").into_bytes().repeat(200)
}

/// Imports a session with three messages and its file.
fn import(store: &Store, n: u32) -> backtrail::Result<()> {
    let mut writer = store.begin_import(&id(n), options())?;
    for key in ["1", "2", "3"] {
        say(&mut writer, key)?;
    }
    let path = format!("/home/u/toy/{n}");
    let mut source = SourceRecord::new("toy", path).at(at(1));
    writer.keep(&mut source, &file(n))?;
    writer.source(&source)?;
    writer.close()
}

fn keys(store: &Store, id: &SessionId) -> Vec<String> {
    let mut records = store.read_session(id).unwrap().records().unwrap();
    let mut keys = Vec::new();
    while let Some(record) = records.next().unwrap() {
        if record.kind() == RecordKind::Message {
            keys.push(record.id().unwrap().into_owned());
        }
    }
    assert!(records.damage().is_empty());
    keys
}

fn held(store: &Store, id: &SessionId) -> Vec<u8> {
    let reader = store.read_session(id).unwrap();
    let sources = reader.sources().unwrap();
    let mut bytes = Vec::new();
    reader.write_source(&sources[0], &mut bytes).unwrap();
    bytes
}

// F5: after a power cut at any step, staged sessions are complete or absent.
#[test]
fn f5_staged_sessions_are_complete_or_absent_after_a_power_cut_at_any_step() {
    let mut there = [false; 2];
    for loss in [Loss::Unsynced, Loss::Nothing, Loss::Shuffled { seed: 3 }] {
        for n in 0.. {
            let memory = MemoryStorage::new();
            let disk = FaultyStorage::new(memory.clone());
            disk.arm(n, Fault::Crash { when: When::Before });
            let outcome = (|| {
                let store = store_on(disk.clone())?;
                let staging = store.stage()?;
                for n in 0..3 {
                    import(&staging.aside()?, n)?;
                }
                let taken = staging.publish()?;
                assert!(taken.is_empty());
                Ok::<(), backtrail::Error>(())
            })();
            let store = store_by(8, memory.crash(loss)).unwrap();
            let sessions = store.sessions().unwrap();
            assert!(outcome.is_err() || sessions.len() == 3, "{n}");
            for id in &sessions {
                assert_eq!(keys(&store, id), ["1", "2", "3"], "{n}");
                assert!(store.read_session(id).unwrap().verify().unwrap().is_ok());
                there[1] = true;
            }
            there[0] |= sessions.is_empty();
            // The next import adds the missing sessions.
            let staging = store.stage().unwrap();
            for n in 0..3 {
                import(&staging.aside().unwrap(), n).unwrap();
            }
            assert_eq!(staging.publish().unwrap().len(), sessions.len());
            drop(staging);
            for n in 0..3 {
                assert_eq!(held(&store, &id(n)), file(n));
            }
            if !disk.fired() {
                break;
            }
        }
    }
    assert_eq!(there, [true; 2]);
}

#[test]
fn an_imported_session_keeps_its_times_and_ids_and_belongs_to_its_agent() {
    let store = store_on(MemoryStorage::new()).unwrap();
    import(&store, 1).unwrap();
    let info = store.read_session(&id(1)).unwrap().info().unwrap();
    assert_eq!(info.belongs_to.as_deref(), Some("toy"));
    assert_eq!(
        (info.created_at, info.updated_at),
        (Some(at(0)), Some(at(1)))
    );
    // Nobody moves it here, and it is not made twice.
    let session = store.open_session(&id(1)).unwrap();
    assert!(session.rewind_chat(1).is_err());
    session.close().unwrap();
    let again = store.begin_import(&id(1), options()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    // One of our own is not gone on with in another's name.
    let own = store.create_session(SessionOptions::new()).unwrap();
    let own_id = own.id().clone();
    own.close().unwrap();
    assert!(store.resume_import(&own_id).is_err());
}

#[test]
fn its_agent_rewinds_the_conversation_and_nothing_is_lost() {
    let store = store_on(MemoryStorage::new()).unwrap();
    import(&store, 1).unwrap();
    let mut writer = store.resume_import(&id(1)).unwrap();
    writer.back_to(1).unwrap();
    say(&mut writer, "4").unwrap();
    writer.close().unwrap();
    assert_eq!(keys(&store, &id(1)), ["1", "4"]);
    // The source file is still held, and found in the trail that was left.
    assert_eq!(held(&store, &id(1)), file(1));
}

#[test]
fn a_branch_continues_the_session_and_a_sub_agent_names_its_call() {
    let store = store_on(MemoryStorage::new()).unwrap();
    let mut writer = store.begin_import(&id(1), options()).unwrap();
    say(&mut writer, "1").unwrap();
    let call = ToolUse::new("t1", "task", &serde_json::json!({})).unwrap();
    let draft = Draft::from(Message::assistant([Block::from(call)]));
    writer.message(&draft.id("2").at(at(2))).unwrap();
    writer.close().unwrap();
    let branch = options().continues(&id(1), 1, None);
    let mut writer = store.begin_import(&id(2), branch).unwrap();
    say(&mut writer, "x").unwrap();
    writer.close().unwrap();
    assert_eq!(keys(&store, &id(2)), ["1", "x"]);
    let agent = options().spawned_by(&id(1), 2, "t1");
    store.begin_import(&id(3), agent).unwrap().close().unwrap();
    let info = store.read_session(&id(3)).unwrap().info().unwrap();
    assert_eq!(
        info.spawned_by.map(|by| (by.session_id, by.seq)),
        Some((id(1), 2))
    );
}

// F24: usage that is recorded apart from its messages counts once.
#[test]
fn f24_usage_that_comes_after_its_messages_counts_for_them_once() {
    let store = store_on(MemoryStorage::new()).unwrap();
    let mut writer = store.begin_import(&id(1), options()).unwrap();
    for key in ["1", "2"] {
        let draft = Draft::from(Message::assistant([Block::text("said")]));
        let draft = draft.id(key).at(at(1)).response_id("r1");
        writer.message(&draft).unwrap();
    }
    for (key, output) in [("u1", 3), ("u2", 5)] {
        let used = CallUsage::new(key, at(2), "r1", Usage::new(10, output));
        writer.usage(&used).unwrap();
    }
    let summary = Compaction::new("sum").id("c").at(at(3)).covers(12);
    writer.compact(&summary).unwrap();
    writer.close().unwrap();
    let stats = store.read_session(&id(1)).unwrap().stats().unwrap();
    assert_eq!(stats.usage, Usage::new(10, 5));
    assert_eq!(stats.messages.total, 2);
    let reader = store.read_session(&id(1)).unwrap();
    let last = reader.last_records(1).unwrap();
    let compaction = last[0].as_ref().compaction().unwrap().unwrap();
    assert_eq!(compaction.removed_message_count, 14);
    assert_eq!(last[0].as_ref().id().as_deref(), Some("c"));
}

// F19, and payloads: a lost piece of a file is found and reported.
#[test]
fn a_lost_piece_of_a_file_is_reported_by_verify_and_the_file_is_not_exported_as_complete() {
    let memory = MemoryStorage::new();
    let store = store_on(memory.clone()).unwrap();
    import(&store, 1).unwrap();
    assert!(
        store
            .read_session(&id(1))
            .unwrap()
            .verify()
            .unwrap()
            .is_ok()
    );
    let payloads = Path::new(ROOT)
        .join("sessions")
        .join(id(1).as_str())
        .join("payloads");
    let mut bytes = memory.read(&payloads).unwrap();
    let middle = bytes.len() - 10;
    bytes[middle] ^= 1;
    memory.write(&payloads, &bytes).unwrap();
    let reader = store.read_session(&id(1)).unwrap();
    assert!(!reader.verify().unwrap().is_ok());
    let source = &reader.sources().unwrap()[0];
    assert!(reader.write_source(source, &mut Vec::new()).is_err());
    assert_eq!(keys(&store, &id(1)), ["1", "2", "3"]);
}

#[test]
fn readings_of_a_file_add_up_and_a_new_beginning_starts_over() {
    let store = store_on(MemoryStorage::new()).unwrap();
    let path = "/home/u/toy/a";
    let mut writer = store.begin_import(&id(1), options()).unwrap();
    let note = Json::from_value(&serde_json::json!({"n": 1})).unwrap();
    let mut first = SourceRecord::new("toy", path).note(note.clone());
    writer.keep(&mut first, b"one\n").unwrap();
    writer.source(&first).unwrap();
    let mut second = SourceRecord::new("toy", path).from(4);
    writer.keep(&mut second, b"two\n").unwrap();
    writer.source(&second).unwrap();
    writer.close().unwrap();
    assert_eq!(held(&store, &id(1)), b"one\ntwo\n");
    let mut writer = store.resume_import(&id(1)).unwrap();
    let mut anew = SourceRecord::new("toy", path).note(note);
    writer.keep(&mut anew, b"rewritten\n").unwrap();
    let (trail, seq, byte) = writer.source(&anew).unwrap();
    writer.close().unwrap();
    assert_eq!(held(&store, &id(1)), b"rewritten\n");
    let reader = store.read_session(&id(1)).unwrap();
    let record = reader.trail_record(trail, seq, byte).unwrap().unwrap();
    assert_eq!(record.as_ref().source().unwrap().to, 10);
    // A gap between readings is not passed over in silence.
    let mut writer = store.resume_import(&id(1)).unwrap();
    let mut gap = SourceRecord::new("toy", path).from(100);
    writer.keep(&mut gap, b"far\n").unwrap();
    writer.source(&gap).unwrap();
    writer.close().unwrap();
    let reader = store.read_session(&id(1)).unwrap();
    let source = &reader.sources().unwrap()[0];
    assert!(source.incomplete);
    assert!(reader.write_source(source, &mut Vec::new()).is_err());
}

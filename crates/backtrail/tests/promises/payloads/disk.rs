//! Whatever the disk does, no record is acknowledged, or even readable, without its
//! payload, and a payload that cannot be stored affects nothing else (F1, F3, F5, F22).

use backtrail::{Draft, Durability, ErrorKind, Message, Session, SessionOptions};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage};

use super::{Lab, assert_whole, json, payload_file, picture, said, shown, store_on};
use crate::faults::{EIO, ERRORS, STOPS, at_every_operation, check_after_error, ends};
use crate::kit::{
    Checked, DiaryWriter, EVERY_DURABILITY, End, Flaws, Kept, check_after, check_store,
};

/// A session with pictures in several trails, some of them twice, and with a torn tail.
fn live(writer: &mut DiaryWriter) {
    writer.say();
    writer.show();
    writer.show();
    writer.say();
    writer.show();
    writer.show();
    writer.close();
    writer.tear();
    writer.show();
    writer.say();
}

/// Checks that all three pictures can be read, and survive a power cut.
fn check_shows_on(next: &mut DiaryWriter) -> Checked {
    for _ in 0..3 {
        next.show();
    }
    next.close();
    if let Some(error) = next.errors.first() {
        return Err(format!("cannot show any more: {error:?}"));
    }
    let mut last = next.moved_to(next.memory.crash(Loss::Unsynced));
    let store = last.store().ok_or("the store cannot be opened")?;
    check_store(&store, &last.diaries, Kept::Acknowledged, Flaws::Any)
        .map_err(|wrong| format!("after a second power cut: {wrong}"))
}

#[test]
fn f22_no_error_at_any_operation_leaves_a_record_without_its_payload() {
    for (durability, fault) in EVERY_DURABILITY
        .into_iter()
        .flat_map(|durability| ERRORS.map(|fault| (durability, fault)))
    {
        at_every_operation(
            fault,
            Count::Writes,
            || DiaryWriter::new(durability),
            live,
            |writer, _| {
                check_shows_on(&mut writer.moved_to(writer.memory.kill()))?;
                check_after_error(writer, fault)
            },
        );
    }
}

#[test]
fn f22_no_failing_read_costs_a_payload() {
    let fault = Fault::Error(EIO);
    at_every_operation(
        fault,
        Count::All,
        || DiaryWriter::new(Durability::Record),
        live,
        |writer, _| check_after_error(writer, fault),
    );
}

fn survives_stops(durability: Durability) {
    for fault in STOPS {
        at_every_operation(
            fault,
            Count::Writes,
            || DiaryWriter::new(durability),
            live,
            |writer, n| {
                ends(n).try_for_each(|end| {
                    check_after(writer, end, durability)
                        .and_then(|()| check_shows_on_after(writer, end))
                        .map_err(|wrong| format!("{end:?}: {wrong}"))
                })
            },
        );
    }
}

fn check_shows_on_after(writer: &DiaryWriter, end: End) -> Checked {
    let mut next = writer.moved_to(end.of(&writer.memory));
    if let End::Power(_) = end {
        next.strike_out_lost()?;
    }
    check_shows_on(&mut next)
}

#[test]
fn f1_f5_a_stop_anywhere_leaves_no_record_without_its_payload_by_record_commit() {
    survives_stops(Durability::Record);
}

#[test]
fn f1_f5_a_stop_anywhere_leaves_no_record_without_its_payload_by_group_commit() {
    survives_stops(Durability::Batch);
}

/// The same in OS mode: a line that exists has its payloads.
#[test]
fn f1_f5_a_stop_anywhere_leaves_no_line_without_its_payload_left_to_the_os() {
    survives_stops(Durability::Os);
}

/// The checks above can fail: on a disk whose syncs lie, a power cut does lose the
/// payload of an acknowledged record, and they notice.
#[test]
fn a_sync_that_lies_does_lose_a_payload() {
    for verb in ["sync payloads", "sync_dir "] {
        let mut writer = DiaryWriter::new(Durability::Record).rotating_at(1 << 20);
        writer.say();
        let mut rehearsal = writer.moved_to(writer.memory.kill());
        rehearsal.session();
        rehearsal.disk.arm(u64::MAX, Fault::LostSync);
        rehearsal.show();
        let log = rehearsal.disk.log();
        let n = log.iter().position(|line| line.starts_with(verb)).unwrap();
        writer.disk.arm(n as u64, Fault::LostSync);
        writer.show();
        assert!(writer.errors.is_empty(), "{:?}", writer.errors);
        let cut = End::Power(Loss::Unsynced);
        let wrong = check_after(&writer, cut, Durability::Record).unwrap_err();
        assert!(wrong.contains("payload"), "{wrong}");
    }
}

#[test]
fn f22_a_payload_that_does_not_fit_is_an_error_that_takes_nothing_with_it() {
    for durability in EVERY_DURABILITY {
        for at_first in [true, false] {
            let lab = Lab::new();
            let session = begin(&lab, durability);
            let mut expected = vec![shown("a", &picture(0, 200))];
            if at_first {
                expected[0] = Message::user_text("no payload yet");
            }
            session.append(expected[0].clone()).unwrap();
            let file = payload_file(&session.reader());
            let before = lab.memory.read(&file).unwrap_or_default();
            for (n, space) in [0, 1, 50, 500, 4_000].into_iter().enumerate() {
                lab.memory.set_space(Some(space));
                let large = shown("large", &picture(1, 5_000));
                let error = session.append(large).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
                assert_eq!(error.path(), Some(file.as_path()));
                assert!(
                    error.to_string().contains("nothing was recorded"),
                    "{error}"
                );
                let after = lab.memory.read(&file).unwrap_or_default();
                assert!(after == before, "a part of it stayed");
                // Its space was freed: a small one fits.
                if space >= 500 {
                    let small = Message::user_text(format!("small {n}"));
                    session.append(small.clone()).unwrap();
                    expected.push(small);
                }
            }
            lab.memory.set_space(None);
            let large = shown("at last", &picture(1, 5_000));
            session.append(large.clone()).unwrap();
            expected.push(large);
            let expected: Vec<String> = expected.iter().map(json).collect();
            assert_eq!(said(&session.reader()), expected);
            assert_whole(&session.reader());
        }
    }
}

fn begin(lab: &Lab, durability: Durability) -> Session {
    let options = SessionOptions::new().durability(durability);
    lab.store.create_session(options).unwrap()
}

#[test]
fn batches_and_deferred_appends_with_pictures_are_durable_in_their_order() {
    for durability in [Durability::Record, Durability::Batch] {
        let lab = Lab::new();
        let session = begin(&lab, durability);
        let message = |n: u64| match n % 3 {
            0 => Message::user_text(format!("text {n}")),
            _ => shown(&format!("picture {n}"), &picture(n % 5, 3_000)),
        };
        let outcomes = session.append_batch((0..20).map(message));
        let commits: Vec<_> = (20..40)
            .map(|n| session.append_deferred(message(n)))
            .collect();
        let seqs = outcomes.into_iter().map(|seq| seq.unwrap());
        let seqs = seqs.chain(commits.into_iter().map(|commit| commit.wait().unwrap()));
        assert!(seqs.eq(1..=40));
        let id = session.id().clone();
        let expected: Vec<String> = (0..40).map(|n| json(&message(n))).collect();
        let cut = Lab::on(lab.memory.crash(Loss::Unsynced));
        let reader = cut.store.read_session(&id).unwrap();
        assert_eq!(said(&reader), expected);
        assert_whole(&reader);
        assert!(cut.payloads(&reader).len() < 5 * 3_200);
    }
}

/// A message that cannot be stored is refused by itself; the others get their own
/// numbers.
#[test]
fn f22_of_a_batch_only_what_cannot_be_stored_fails() {
    for durability in EVERY_DURABILITY {
        let lab = Lab::new();
        let session = begin(&lab, durability);
        let batch = [
            Message::user_text("first"),
            shown("fits", &picture(1, 2_000)),
            shown("does not", &picture(2, 60_000)),
            Message::user_text("between"),
            shown("fits too", &picture(1, 2_000)),
        ];
        lab.memory.set_space(Some(10_000));
        let outcomes = session.append_batch(batch.clone());
        lab.memory.set_space(None);
        let seqs: Vec<Option<u64>> = outcomes.iter().map(|o| o.as_ref().ok().copied()).collect();
        assert_eq!(seqs, [Some(1), Some(2), None, Some(3), Some(4)]);
        let error = outcomes[2].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DiskFull);
        let kept = [0, 1, 3, 4].map(|n: usize| json(&batch[n]));
        assert_eq!(said(&session.reader()), kept);
        assert_whole(&session.reader());
        // A second attempt records it once, after the others.
        let draft = Draft::from(batch[2].clone()).expect(4);
        assert_eq!(session.append(draft).unwrap(), 5);
        assert_eq!(said(&session.reader())[4], json(&batch[2]));
    }
}

/// A payload that could not be made durable is not recorded, and can be tried again
/// through the same handle.
#[test]
fn f22_after_a_failed_sync_of_the_payloads_a_second_try_is_durable() {
    let memory = MemoryStorage::new();
    let disk = FaultyStorage::new(memory.clone());
    let store = store_on(disk.clone(), u64::MAX);
    let session = store.create_session(SessionOptions::new()).unwrap();
    session.append(shown("before", &picture(0, 500))).unwrap();
    let message = shown("again", &picture(1, 500));
    // The append of the payload, and its sync.
    disk.arm(1, Fault::Error(EIO));
    let error = session.append(message.clone()).unwrap_err();
    assert!(
        disk.log()[1].starts_with("sync payloads"),
        "{:?}",
        disk.log()
    );
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(session.stopped().is_none());
    assert_eq!(session.append(message.clone()).unwrap(), 2);
    let id = session.id().clone();
    for loss in (0..50).map(|seed| Loss::Shuffled { seed }) {
        let cut = Lab::on(memory.crash(loss));
        let reader = cut.store.read_session(&id).unwrap();
        assert_eq!(said(&reader)[1], json(&message), "{loss:?}");
        assert_whole(&reader);
    }
}

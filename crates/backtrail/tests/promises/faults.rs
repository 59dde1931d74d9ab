//! Whatever goes wrong with the disk, nothing acknowledged is lost, nothing is
//! shown that was not said, and the session continues (F1, F3, F5, F22).
//!
//! A writer goes through a session's whole life on a disk whose nth operation
//! fails, tears or stops the machine, for every n until the fault is no longer
//! reached. Each time the next process must find what the diary says.

use backtrail::{Draft, Durability, ErrorKind, Message, Storage};
use backtrail_testkit::{Count, Fault, Loss, When};

use crate::kit::{
    Checked, EVERY_DURABILITY, End, Flaws, Kept, Speaker, check_after, check_goes_on, check_store,
};

pub(crate) const EIO: i32 = 5;
const EACCES: i32 = 13;
pub(crate) const ENOSPC: i32 = 28;

/// Errors that come once, and one that stays.
pub(crate) const ERRORS: [Fault; 4] = [
    Fault::Error(EIO),
    Fault::Error(ENOSPC),
    Fault::Error(EACCES),
    Fault::ErrorFrom(ENOSPC),
];

pub(crate) const STOPS: [Fault; 5] = [
    Fault::Crash { when: When::Before },
    Fault::Crash { when: When::After },
    Fault::Tear {
        numerator: 1,
        denominator: 3,
    },
    Fault::Tear {
        numerator: 2,
        denominator: 3,
    },
    // All but the last byte, as long as that is not more than 2^32.
    Fault::Tear {
        numerator: u32::MAX - 1,
        denominator: u32::MAX,
    },
];

/// A session's life: it begins, is written to and noted about through several
/// rotations, closed, found with a torn tail, and written to again.
fn live(speaker: &mut Speaker) {
    speaker.say();
    speaker.note();
    speaker.say();
    speaker.say_batch(2);
    speaker.close();
    speaker.tear();
    speaker.say();
    speaker.say();
}

/// Runs `script` with `fault` at every operation in turn, and `check` on what
/// comes of it.
pub(crate) fn at_every_operation(
    fault: Fault,
    count: Count,
    start: impl Fn() -> Speaker,
    script: impl Fn(&mut Speaker),
    check: impl Fn(&mut Speaker, u64) -> Checked,
) {
    for n in 0.. {
        let mut speaker = start();
        speaker.disk = speaker.disk.counting(count);
        speaker.disk.arm(n, fault);
        script(&mut speaker);
        let fired = speaker.disk.fired();
        let log = speaker.disk.log();
        // At other operations a tear is a crash before them.
        let is_double = matches!(fault, Fault::Tear { .. })
            && log.last().is_some_and(|last| !last.starts_with("append"));
        if fired && is_double {
            continue;
        }
        if let Err(wrong) = check(&mut speaker, n) {
            let until = log.len().min(n as usize + 1);
            let last = &log[until.saturating_sub(12)..until];
            panic!("{fault:?} at operation {n}: {wrong}\n{}", last.join("\n"));
        }
        if !fired {
            assert!(n > 40, "only {n} operations: the script came to nothing");
            assert!(speaker.errors.is_empty(), "{:?}", speaker.errors);
            break;
        }
    }
}

/// Checks what a process finds that continues after an error.
pub(crate) fn check_after_error(speaker: &mut Speaker, fault: Fault) -> Checked {
    speaker.leave();
    for error in &speaker.errors {
        let expected = match fault {
            Fault::Error(ENOSPC) | Fault::ErrorFrom(ENOSPC) => ErrorKind::DiskFull,
            _ => ErrorKind::Io,
        };
        if error.kind() != expected {
            return Err(format!("an error of another kind: {error:?}"));
        }
    }
    let mut next = speaker.moved_to(speaker.memory.clone());
    let store = next.store().ok_or("the store cannot be opened")?;
    check_store(&store, &next.diaries, Kept::Acknowledged, Flaws::Unfinished)?;
    check_goes_on(&mut next, Flaws::None)
}

/// Some of the ways in which the machine may stop; others for each `n`.
pub(crate) fn ends(n: u64) -> impl Iterator<Item = End> {
    let keep_bytes = [0, 1, 17, 300][(n % 4) as usize];
    let some = match n % 3 {
        0 => Loss::Nothing,
        _ => Loss::Tail { keep_bytes },
    };
    let shuffled = |m| Loss::Shuffled { seed: n * 97 + m };
    let losses = [Loss::Unsynced, some, shuffled(0), shuffled(1)];
    [End::Kill]
        .into_iter()
        .chain(losses.into_iter().map(End::Power))
}

fn survives_errors(durability: Durability) {
    for fault in ERRORS {
        at_every_operation(
            fault,
            Count::Writes,
            || Speaker::new(durability),
            live,
            |speaker, _| check_after_error(speaker, fault),
        );
    }
}

fn survives_stops(durability: Durability) {
    for fault in STOPS {
        at_every_operation(
            fault,
            Count::Writes,
            || Speaker::new(durability),
            live,
            |speaker, n| {
                ends(n).try_for_each(|end| {
                    check_after(speaker, end, durability).map_err(|w| format!("{end:?}: {w}"))
                })
            },
        );
    }
}

#[test]
fn f22_no_error_at_any_operation_loses_what_a_record_commit_acknowledged() {
    survives_errors(Durability::Record);
}

#[test]
fn f22_no_error_at_any_operation_loses_what_a_group_commit_acknowledged() {
    survives_errors(Durability::Batch);
}

#[test]
fn f22_no_error_at_any_operation_loses_what_was_left_to_the_os() {
    survives_errors(Durability::Os);
}

/// A read that fails is an error, and never taken for the end of a file or for
/// damage.
#[test]
fn f22_no_failing_read_makes_a_record_disappear() {
    at_every_operation(
        Fault::Error(EIO),
        Count::All,
        || Speaker::new(Durability::Record),
        live,
        |speaker, _| check_after_error(speaker, Fault::Error(EIO)),
    );
}

#[test]
fn f1_f3_f5_a_crash_anywhere_keeps_what_a_record_commit_acknowledged() {
    survives_stops(Durability::Record);
}

#[test]
fn f1_f3_f5_a_crash_anywhere_keeps_what_a_group_commit_acknowledged() {
    survives_stops(Durability::Batch);
}

/// What was left to the OS outlives the process, and after a power cut what is
/// left of it was said.
#[test]
fn f1_f3_f5_a_killed_process_keeps_what_was_left_to_the_os() {
    survives_stops(Durability::Os);
}

/// Returns a session with a ruined record in a trail that is not its last, and
/// with a torn tail; all of it durable.
fn ruined(durability: Durability) -> Speaker {
    let mut speaker = Speaker::new(durability);
    live(&mut speaker);
    speaker.close();
    assert!(speaker.errors.is_empty(), "{:?}", speaker.errors);
    let trail = speaker.trails()[1].clone();
    let mut bytes = speaker.memory.read(&trail).unwrap();
    let line = 1 + bytes.iter().position(|b| *b == b'\n').unwrap();
    let record: serde_json::Value =
        serde_json::from_slice(bytes[line..].split(|b| *b == b'\n').next().unwrap()).unwrap();
    bytes[line + 100] ^= 1;
    speaker.memory.write(&trail, &bytes).unwrap();
    let diary = speaker.diaries.last_mut().unwrap();
    diary.strike_out(record["seq"].as_u64().unwrap());
    speaker.tear();
    speaker.moved_to(speaker.memory.crash(Loss::Nothing))
}

/// Repairs, a second time if the first failed, and speaks on.
fn repair_and_speak(speaker: &mut Speaker) {
    speaker.repair();
    if !speaker.errors.is_empty() {
        speaker.repair();
    }
    speaker.say();
    speaker.say();
    speaker.close();
}

/// Checks that a repair can be done, or done again, and mends everything.
fn check_repairs(next: &mut Speaker, kept: Kept) -> Checked {
    let store = next.store().ok_or("the store cannot be opened")?;
    check_store(&store, &next.diaries, kept, Flaws::Any)?;
    if kept == Kept::Acknowledged {
        next.repair_all()?;
        check_goes_on(next, Flaws::Repaired)?;
    }
    Ok(())
}

#[test]
fn a_repair_that_fails_half_way_loses_nothing_and_can_be_done_again() {
    let ruined = ruined(Durability::Record);
    for fault in ERRORS {
        let count = match fault {
            Fault::Error(EIO) => Count::All,
            _ => Count::Writes,
        };
        at_every_operation(
            fault,
            count,
            || ruined.moved_to(ruined.memory.crash(Loss::Nothing)),
            repair_and_speak,
            |speaker, _| {
                speaker.leave();
                let mut next = speaker.moved_to(speaker.memory.clone());
                check_repairs(&mut next, Kept::Acknowledged)
            },
        );
    }
}

#[test]
fn f5_a_crash_in_a_repair_loses_nothing_and_it_can_be_done_again() {
    let durability = Durability::Record;
    let ruined = ruined(durability);
    for fault in STOPS {
        at_every_operation(
            fault,
            Count::Writes,
            || ruined.moved_to(ruined.memory.crash(Loss::Nothing)),
            repair_and_speak,
            |speaker, n| {
                ends(n).try_for_each(|end| {
                    let mut next = speaker.moved_to(end.of(&speaker.memory));
                    check_repairs(&mut next, end.keeps(durability))
                        .map_err(|w| format!("{end:?}: {w}"))
                })
            },
        );
    }
}

/// What a repair went around belongs to no line of history any more, so it is
/// no news to whoever reads.
#[test]
fn a_repaired_session_reads_without_complaint() {
    let mut speaker = ruined(Durability::Record);
    speaker.repair();
    speaker.say();
    assert!(speaker.errors.is_empty(), "{:?}", speaker.errors);
    let reader = speaker.session().unwrap().reader();
    let report = reader.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.damage.first());
    assert_eq!(report.repaired.count(), 1);
    let mut records = reader.records().unwrap();
    while records.next().unwrap().is_some() {}
    assert!(records.damage().is_empty(), "{:?}", records.damage());
    let mut back = reader.records_back().unwrap();
    while back.next().unwrap().is_some() {}
    assert!(back.damage().is_empty(), "{:?}", back.damage());
}

/// Two records on one line are two records, for whoever reads from either end,
/// and for a repair that begins between them.
#[test]
fn a_lost_newline_costs_no_record() {
    let mut speaker = Speaker::new(Durability::Record).rotating_at(1 << 20);
    for _ in 0..5 {
        speaker.say();
    }
    speaker.close();
    let trail = speaker.trails().pop().unwrap();
    let bytes = speaker.memory.read(&trail).unwrap();
    let newlines = (1..bytes.len() - 1).filter(|at| bytes[*at] == b'\n');
    for (at, instead) in newlines.flat_map(|at| [(at, 0), (at, b'x')]) {
        let mut next = speaker.moved_to(speaker.memory.kill());
        let mut damaged = bytes.clone();
        damaged[at] = instead;
        next.memory.write(&trail, &damaged).unwrap();
        if let Err(wrong) = check_repairs(&mut next, Kept::Acknowledged) {
            panic!("without the newline at {at}: {wrong}");
        }
    }
}

/// Lets `fault` happen at the first operation that `verb` names, when one more
/// thing is said.
fn say_with(speaker: &mut Speaker, verb: &str, fault: Fault) {
    // A rehearsal on a copy of the disk tells which operation that is.
    let mut rehearsal = speaker.moved_to(speaker.memory.kill());
    rehearsal.store();
    if !rehearsal.diaries.is_empty() {
        rehearsal.session();
    }
    rehearsal.disk.arm(u64::MAX, fault);
    rehearsal.say();
    let log = rehearsal.disk.log();
    let found = log.iter().position(|line| line.starts_with(verb));
    let n = found.unwrap_or_else(|| panic!("no {verb} among {log:?}"));
    speaker.disk.arm(n as u64, fault);
    speaker.say();
    let log = speaker.disk.log();
    assert!(speaker.disk.fired() && log[n].starts_with(verb), "{log:?}");
}

/// Says three things that are acknowledged, far from any rotation.
fn well_begun(durability: Durability) -> Speaker {
    let mut speaker = Speaker::new(durability).rotating_at(1 << 20);
    speaker.say();
    speaker.say();
    speaker.note();
    assert!(speaker.errors.is_empty(), "{:?}", speaker.errors);
    speaker
}

/// Whoever continues after a failed sync may be told "durable" of what the disk
/// has long since dropped.
#[test]
fn f22_after_a_failed_sync_nothing_is_acknowledged_until_the_session_is_opened_again() {
    for durability in [Durability::Record, Durability::Batch] {
        for (number, kind) in [(EIO, ErrorKind::Io), (ENOSPC, ErrorKind::DiskFull)] {
            let mut speaker = well_begun(durability);
            let session = speaker.session().unwrap();
            say_with(&mut speaker, "sync 0", Fault::Error(number));
            // The disk works again, but nobody can tell what became of the record.
            for _ in 0..3 {
                let error = session.append(Message::user_text("no")).unwrap_err();
                assert_eq!(error.kind(), kind);
            }
            for outcome in session.append_batch([Draft::from(Message::user_text("no"))]) {
                assert_eq!(outcome.unwrap_err().kind(), kind);
            }
            let deferred = session.append_deferred(Message::user_text("no"));
            assert_eq!(deferred.wait().unwrap_err().kind(), kind);
            speaker.leave();
            assert_eq!(session.close().unwrap_err().kind(), kind);
            assert_eq!(speaker.errors.len(), 1);
            for end in [End::Kill, End::Power(Loss::Unsynced)] {
                check_after(&speaker, end, durability).unwrap();
            }
        }
    }
}

/// The sync before a rotation is one of the kind.
#[test]
fn f22_a_failed_sync_in_a_rotation_stops_acknowledgements_whatever_the_durability() {
    for durability in EVERY_DURABILITY {
        let mut speaker = Speaker::new(durability);
        for _ in 0..5 {
            speaker.say();
        }
        assert_eq!(speaker.trails().len(), 2);
        let session = speaker.session().unwrap();
        // Of the two syncs in this append, the rotation's comes first.
        say_with(&mut speaker, "sync 0001", Fault::Error(EIO));
        assert_eq!(speaker.trails().len(), 2);
        assert_eq!(speaker.errors.len(), 1);
        let error = session.append(Message::user_text("no")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        speaker.leave();
        session.close().unwrap_err();
        check_after(&speaker, End::Kill, durability).unwrap();
    }
}

/// A second try with `expect` learns that the first one's record is there. To
/// the caller that is an acknowledgement.
#[test]
fn what_a_reopened_session_has_read_outlives_the_next_power_cut() {
    let mut speaker = well_begun(Durability::Record);
    let crash = Fault::Crash { when: When::Before };
    say_with(&mut speaker, "sync 0", crash);
    assert!(speaker.disk.crashed());
    let mut next = speaker.moved_to(speaker.memory.kill());
    let session = next.session().unwrap();
    let again = Draft::from(Message::user_text("the same again")).expect(3);
    let error = session.append(again).unwrap_err();
    assert_eq!((error.kind(), error.head()), (ErrorKind::Conflict, Some(4)));
    let mut last = next.moved_to(next.memory.crash(Loss::Unsynced));
    let reader = last.session().unwrap().reader();
    assert!(reader.record(4).unwrap().is_some(), "record 4 is lost");
}

/// Sessions that are left to the OS are made durable when they are left, as
/// `close` says.
#[test]
fn a_dropped_session_is_as_durable_as_a_closed_one() {
    let mut speaker = well_begun(Durability::Os);
    speaker.say();
    speaker.leave();
    check_after(&speaker, End::Power(Loss::Unsynced), Durability::Record).unwrap();
}

/// A repair may not outlive what it continues.
#[test]
fn a_repair_makes_durable_what_it_builds_on() {
    let mut speaker = well_begun(Durability::Os);
    let head = speaker.trails().pop().unwrap();
    let session = speaker.session().unwrap();
    let file = speaker.memory.open_append(&head).unwrap();
    file.append(b"garbage\n").unwrap();
    drop(session);
    let mut next = speaker.moved_to(speaker.memory.kill());
    next.say();
    let mut next = next.moved_to(next.memory.kill());
    next.repair();
    assert!(next.errors.is_empty(), "{:?}", next.errors);
    let mut last = next.moved_to(next.memory.crash(Loss::Unsynced));
    let store = last.store().unwrap();
    check_store(&store, &last.diaries, Kept::Acknowledged, Flaws::Repaired).unwrap();
}

/// F22: the error says that the disk is full, the part of a line that fitted is
/// removed, and when there is space again the same handle continues.
#[test]
fn f22_a_full_disk_is_an_error_that_takes_nothing_with_it() {
    for durability in EVERY_DURABILITY {
        let mut speaker = well_begun(durability);
        let head = speaker.trails().pop().unwrap();
        let session = speaker.session().unwrap();
        for space in [0, 1, 100, 200, 250, 300] {
            let before = speaker.memory.read(&head).unwrap();
            speaker.memory.set_space(Some(space));
            // Two lines fit in no case, and one of them only in the last.
            let outcomes = session.append_batch([big("first"), big("second")]);
            for outcome in &outcomes {
                let error = outcome.as_ref().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
                assert_eq!(error.path(), Some(head.as_path()));
            }
            assert_eq!(speaker.memory.read(&head).unwrap(), before);
            check_after(&speaker, End::Kill, durability).unwrap_err();
            speaker.memory.set_space(None);
            check_after(&speaker, End::Kill, durability).unwrap();
        }
        let last = session.last_seq();
        assert_eq!(session.append(big("at last")).unwrap(), last + 1);
        assert!(speaker.memory.read(&head).unwrap().ends_with(b"\n"));
    }
}

fn big(text: &str) -> Draft {
    Message::user_text(text.repeat(40)).into()
}

/// Even where the part that fitted cannot be removed, it is set aside once
/// there is space, and never glued to the next record (F1).
#[test]
fn f1_f22_a_part_that_cannot_be_removed_is_set_aside() {
    for durability in EVERY_DURABILITY {
        let mut speaker = well_begun(durability);
        let session = speaker.session().unwrap();
        let head = speaker.trails().pop().unwrap();
        let whole = speaker.memory.read(&head).unwrap().len();
        speaker.memory.set_space(Some(30));
        // lock, append, append for the rest, truncate
        speaker.disk.arm(3, Fault::Error(EIO));
        speaker.say();
        assert!(speaker.disk.log()[3].starts_with("truncate"));
        assert_eq!(speaker.errors[0].kind(), ErrorKind::DiskFull);
        assert_eq!(speaker.memory.read(&head).unwrap().len(), whole + 30);
        speaker.memory.set_space(None);
        check_after(&speaker, End::Kill, durability).unwrap();
        speaker.say();
        assert_eq!(speaker.errors.len(), 1, "{:?}", speaker.errors);
        let report = session.reader().verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.damage.first());
        let asides: Vec<u64> = report.set_aside.iter().map(|(_, len)| *len).collect();
        assert_eq!(asides, [30]);
        check_after(&speaker, End::Kill, durability).unwrap();
    }
}

/// F22: a rotation needs space for a new trail; without it nothing is lost, and
/// it is made up for later.
#[test]
fn f5_f22_a_rotation_on_a_full_disk_can_be_made_up_for() {
    let mut speaker = Speaker::new(Durability::Record);
    for _ in 0..3 {
        speaker.say();
    }
    let session = speaker.session().unwrap();
    for space in [0, 1, 50, 200] {
        speaker.memory.set_space(Some(space));
        let error = session.append(big("more")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
    }
    assert_eq!(speaker.trails().len(), 1);
    speaker.memory.set_space(None);
    speaker.say();
    assert_eq!(speaker.trails().len(), 2);
    assert!(speaker.errors.is_empty(), "{:?}", speaker.errors);
    check_after(&speaker, End::Power(Loss::Unsynced), Durability::Record).unwrap();
}

/// The checks above can fail: on a disk whose syncs lie, a power cut does lose
/// an acknowledged record, and they notice.
#[test]
fn a_sync_that_lies_does_lose_an_acknowledged_record() {
    for durability in [Durability::Record, Durability::Batch] {
        let mut speaker = well_begun(durability);
        say_with(&mut speaker, "sync 0", Fault::LostSync);
        assert!(speaker.errors.is_empty(), "{:?}", speaker.errors);
        check_after(&speaker, End::Kill, durability).unwrap();
        let cut = End::Power(Loss::Unsynced);
        let wrong = check_after(&speaker, cut, durability).unwrap_err();
        assert!(wrong.contains("record 4 is lost"), "{wrong}");
    }
}

/// The same for a directory: an acknowledged session has no name.
#[test]
fn a_sync_of_a_directory_that_lies_does_lose_an_acknowledged_session() {
    let mut speaker = Speaker::new(Durability::Record);
    speaker.store().unwrap();
    say_with(&mut speaker, "sync_dir sessions", Fault::LostSync);
    assert!(speaker.errors.is_empty(), "{:?}", speaker.errors);
    let cut = End::Power(Loss::Unsynced);
    let wrong = check_after(&speaker, cut, Durability::Record).unwrap_err();
    assert!(wrong.contains("is lost"), "{wrong}");
}

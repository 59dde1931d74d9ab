//! Whatever happens to the disk, nothing acknowledged is lost, nothing is shown that was
//! not recorded, and the session continues (F1, F3, F5, F22).
//!
//! A writer goes through a session's whole life on a disk whose nth operation fails,
//! tears or stops the machine, for every n until the fault is no longer reached. Each
//! time the next process must find what the diary says.

use backtrail::{Draft, Durability, ErrorKind, Message, Storage};
use backtrail_testkit::{Count, Fault, Loss, When};

use crate::kit::{
    Checked, DiaryWriter, EVERY_DURABILITY, End, Flaws, Kept, check_after, check_goes_on,
    check_store,
};

pub(crate) const EIO: i32 = 5;
const EACCES: i32 = 13;
pub(crate) const ENOSPC: i32 = 28;

/// Errors that occur once, and one that stays.
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

/// A session's life: it is created, written to and noted about through several rotations,
/// closed, found with a torn tail, and written to again.
fn live(writer: &mut DiaryWriter) {
    writer.say();
    writer.note();
    writer.say();
    writer.say_batch(2);
    writer.close();
    writer.tear();
    writer.say();
    writer.say();
}

/// Runs `script` with `fault` at every operation in turn, and `check` on the result.
pub(crate) fn at_every_operation(
    fault: Fault,
    count: Count,
    start: impl Fn() -> DiaryWriter,
    script: impl Fn(&mut DiaryWriter),
    check: impl Fn(&mut DiaryWriter, u64) -> Checked,
) {
    for n in 0.. {
        let mut writer = start();
        writer.disk = writer.disk.counting(count);
        writer.disk.arm(n, fault);
        script(&mut writer);
        let fired = writer.disk.fired();
        let log = writer.disk.log();
        // At other operations a tear is a crash before them.
        let is_double = matches!(fault, Fault::Tear { .. })
            && log.last().is_some_and(|last| !last.starts_with("append"));
        if fired && is_double {
            continue;
        }
        if let Err(wrong) = check(&mut writer, n) {
            let until = log.len().min(n as usize + 1);
            let last = &log[until.saturating_sub(12)..until];
            panic!("{fault:?} at operation {n}: {wrong}\n{}", last.join("\n"));
        }
        if !fired {
            assert!(n > 40, "only {n} operations: the script came to nothing");
            assert!(writer.errors.is_empty(), "{:?}", writer.errors);
            break;
        }
    }
}

/// Checks what a process finds that continues after an error.
pub(crate) fn check_after_error(writer: &mut DiaryWriter, fault: Fault) -> Checked {
    writer.leave();
    for error in &writer.errors {
        let expected = match fault {
            Fault::Error(ENOSPC) | Fault::ErrorFrom(ENOSPC) => ErrorKind::DiskFull,
            _ => ErrorKind::Io,
        };
        if error.kind() != expected {
            return Err(format!("an error of another kind: {error:?}"));
        }
    }
    let mut next = writer.moved_to(writer.memory.clone());
    let store = next.store().ok_or("the store cannot be opened")?;
    check_store(&store, &next.diaries, Kept::Acknowledged, Flaws::Unfinished)?;
    check_goes_on(&mut next, Flaws::None)
}

/// Some ways in which the machine may stop, different for each `n`.
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
            || DiaryWriter::new(durability),
            live,
            |writer, _| check_after_error(writer, fault),
        );
    }
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
                    check_after(writer, end, durability).map_err(|w| format!("{end:?}: {w}"))
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

/// A failing read is an error, and never mistaken for the end of a file or for damage.
#[test]
fn f22_no_failing_read_makes_a_record_disappear() {
    at_every_operation(
        Fault::Error(EIO),
        Count::All,
        || DiaryWriter::new(Durability::Record),
        live,
        |writer, _| check_after_error(writer, Fault::Error(EIO)),
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

/// Records left to the OS outlive the process, and after a power cut the remaining ones
/// are intact.
#[test]
fn f1_f3_f5_a_killed_process_keeps_what_was_left_to_the_os() {
    survives_stops(Durability::Os);
}

/// Returns a durable session with a ruined record in a trail that is not its last, and
/// with a torn tail.
fn ruined(durability: Durability) -> DiaryWriter {
    let mut writer = DiaryWriter::new(durability);
    live(&mut writer);
    writer.close();
    assert!(writer.errors.is_empty(), "{:?}", writer.errors);
    let trail = writer.trails()[1].clone();
    let mut bytes = writer.memory.read(&trail).unwrap();
    let line = 1 + bytes.iter().position(|b| *b == b'\n').unwrap();
    let record: serde_json::Value =
        serde_json::from_slice(bytes[line..].split(|b| *b == b'\n').next().unwrap()).unwrap();
    bytes[line + 100] ^= 1;
    writer.memory.write(&trail, &bytes).unwrap();
    let diary = writer.diaries.last_mut().unwrap();
    diary.strike_out(record["seq"].as_u64().unwrap());
    writer.tear();
    writer.moved_to(writer.memory.crash(Loss::Nothing))
}

/// Repairs, again if the first attempt failed, and continues writing.
fn repair_and_speak(writer: &mut DiaryWriter) {
    writer.repair();
    if !writer.errors.is_empty() {
        writer.repair();
    }
    writer.say();
    writer.say();
    writer.close();
}

/// Checks that a repair can be made, or repeated, and fixes everything.
fn check_repairs(next: &mut DiaryWriter, kept: Kept) -> Checked {
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
            |writer, _| {
                writer.leave();
                let mut next = writer.moved_to(writer.memory.clone());
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
            |writer, n| {
                ends(n).try_for_each(|end| {
                    let mut next = writer.moved_to(end.of(&writer.memory));
                    check_repairs(&mut next, end.keeps(durability))
                        .map_err(|w| format!("{end:?}: {w}"))
                })
            },
        );
    }
}

/// Damage that a repair bypassed belongs to no line of history any more, so readers do
/// not report it.
#[test]
fn a_repaired_session_reads_without_complaint() {
    let mut writer = ruined(Durability::Record);
    writer.repair();
    writer.say();
    assert!(writer.errors.is_empty(), "{:?}", writer.errors);
    let reader = writer.session().unwrap().reader();
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

/// Two records on one line are two records, from either end, and for a repair that begins
/// between them.
#[test]
fn a_lost_newline_costs_no_record() {
    let mut writer = DiaryWriter::new(Durability::Record).rotating_at(1 << 20);
    for _ in 0..5 {
        writer.say();
    }
    writer.close();
    let trail = writer.trails().pop().unwrap();
    let bytes = writer.memory.read(&trail).unwrap();
    let newlines = (1..bytes.len() - 1).filter(|at| bytes[*at] == b'\n');
    for (at, instead) in newlines.flat_map(|at| [(at, 0), (at, b'x')]) {
        let mut next = writer.moved_to(writer.memory.kill());
        let mut damaged = bytes.clone();
        damaged[at] = instead;
        next.memory.write(&trail, &damaged).unwrap();
        if let Err(wrong) = check_repairs(&mut next, Kept::Acknowledged) {
            panic!("without the newline at {at}: {wrong}");
        }
    }
}

/// Appends once more, with `fault` at the first operation that `verb` names.
fn say_with(writer: &mut DiaryWriter, verb: &str, fault: Fault) {
    // A rehearsal on a copy of the disk shows which operation that is.
    let mut rehearsal = writer.moved_to(writer.memory.kill());
    rehearsal.store();
    if !rehearsal.diaries.is_empty() {
        rehearsal.session();
    }
    rehearsal.disk.arm(u64::MAX, fault);
    rehearsal.say();
    let log = rehearsal.disk.log();
    let found = log.iter().position(|line| line.starts_with(verb));
    let n = found.unwrap_or_else(|| panic!("no {verb} among {log:?}"));
    writer.disk.arm(n as u64, fault);
    writer.say();
    let log = writer.disk.log();
    assert!(writer.disk.fired() && log[n].starts_with(verb), "{log:?}");
}

/// Appends three acknowledged records, far from any rotation.
fn well_begun(durability: Durability) -> DiaryWriter {
    let mut writer = DiaryWriter::new(durability).rotating_at(1 << 20);
    writer.say();
    writer.say();
    writer.note();
    assert!(writer.errors.is_empty(), "{:?}", writer.errors);
    writer
}

/// Whoever continues after a failed sync may be told "durable" of what the disk
/// has long since dropped.
#[test]
fn f22_after_a_failed_sync_nothing_is_acknowledged_until_the_session_is_opened_again() {
    for durability in [Durability::Record, Durability::Batch] {
        for (number, kind) in [(EIO, ErrorKind::Io), (ENOSPC, ErrorKind::DiskFull)] {
            let mut writer = well_begun(durability);
            let session = writer.session().unwrap();
            say_with(&mut writer, "sync 0", Fault::Error(number));
            // The disk works again, but the state of the record is unknown.
            for _ in 0..3 {
                let error = session.append(Message::user_text("no")).unwrap_err();
                assert_eq!(error.kind(), kind);
            }
            for outcome in session.append_batch([Draft::from(Message::user_text("no"))]) {
                assert_eq!(outcome.unwrap_err().kind(), kind);
            }
            let deferred = session.append_deferred(Message::user_text("no"));
            assert_eq!(deferred.wait().unwrap_err().kind(), kind);
            writer.leave();
            assert_eq!(session.close().unwrap_err().kind(), kind);
            assert_eq!(writer.errors.len(), 1);
            for end in [End::Kill, End::Power(Loss::Unsynced)] {
                check_after(&writer, end, durability).unwrap();
            }
        }
    }
}

/// The sync before a rotation counts too.
#[test]
fn f22_a_failed_sync_in_a_rotation_stops_acknowledgements_whatever_the_durability() {
    for durability in EVERY_DURABILITY {
        let mut writer = DiaryWriter::new(durability);
        for _ in 0..5 {
            writer.say();
        }
        assert_eq!(writer.trails().len(), 2);
        let session = writer.session().unwrap();
        // Of the two syncs in this append, the rotation's comes first.
        say_with(&mut writer, "sync 0001", Fault::Error(EIO));
        assert_eq!(writer.trails().len(), 2);
        assert_eq!(writer.errors.len(), 1);
        let error = session.append(Message::user_text("no")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        writer.leave();
        session.close().unwrap_err();
        check_after(&writer, End::Kill, durability).unwrap();
    }
}

/// A second attempt with `expect` learns that the first one's record is there. For the
/// caller that is an acknowledgement.
#[test]
fn what_a_reopened_session_has_read_outlives_the_next_power_cut() {
    let mut writer = well_begun(Durability::Record);
    let crash = Fault::Crash { when: When::Before };
    say_with(&mut writer, "sync 0", crash);
    assert!(writer.disk.crashed());
    let mut next = writer.moved_to(writer.memory.kill());
    let session = next.session().unwrap();
    let again = Draft::from(Message::user_text("the same again")).expect(3);
    let error = session.append(again).unwrap_err();
    assert_eq!((error.kind(), error.head()), (ErrorKind::Conflict, Some(4)));
    let mut last = next.moved_to(next.memory.crash(Loss::Unsynced));
    let reader = last.session().unwrap().reader();
    assert!(reader.record(4).unwrap().is_some(), "record 4 is lost");
}

/// Sessions left to the OS are made durable when they are dropped, as `close` does.
#[test]
fn a_dropped_session_is_as_durable_as_a_closed_one() {
    let mut writer = well_begun(Durability::Os);
    writer.say();
    writer.leave();
    check_after(&writer, End::Power(Loss::Unsynced), Durability::Record).unwrap();
}

/// A repair must not outlive the records it continues.
#[test]
fn a_repair_makes_durable_what_it_builds_on() {
    let mut writer = well_begun(Durability::Os);
    let head = writer.trails().pop().unwrap();
    let session = writer.session().unwrap();
    let file = writer.memory.open_append(&head).unwrap();
    file.append(b"garbage\n").unwrap();
    drop(session);
    let mut next = writer.moved_to(writer.memory.kill());
    next.say();
    let mut next = next.moved_to(next.memory.kill());
    next.repair();
    assert!(next.errors.is_empty(), "{:?}", next.errors);
    let mut last = next.moved_to(next.memory.crash(Loss::Unsynced));
    let store = last.store().unwrap();
    check_store(&store, &last.diaries, Kept::Acknowledged, Flaws::Repaired).unwrap();
}

/// F22: the error says that the disk is full, the partial line is removed, and when there
/// is space again the same handle continues.
#[test]
fn f22_a_full_disk_is_an_error_that_takes_nothing_with_it() {
    for durability in EVERY_DURABILITY {
        let mut writer = well_begun(durability);
        let head = writer.trails().pop().unwrap();
        let session = writer.session().unwrap();
        for space in [0, 1, 100, 200, 250, 300] {
            let before = writer.memory.read(&head).unwrap();
            writer.memory.set_space(Some(space));
            // Two lines never fit, and one of them only in the last case.
            let outcomes = session.append_batch([big("first"), big("second")]);
            for outcome in &outcomes {
                let error = outcome.as_ref().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
                assert_eq!(error.path(), Some(head.as_path()));
            }
            assert_eq!(writer.memory.read(&head).unwrap(), before);
            check_after(&writer, End::Kill, durability).unwrap_err();
            writer.memory.set_space(None);
            check_after(&writer, End::Kill, durability).unwrap();
        }
        let last = session.last_seq();
        assert_eq!(session.append(big("at last")).unwrap(), last + 1);
        assert!(writer.memory.read(&head).unwrap().ends_with(b"\n"));
    }
}

fn big(text: &str) -> Draft {
    Message::user_text(text.repeat(40)).into()
}

/// Even if the partial line cannot be removed, it is set aside once there is space, and
/// never joined with the next record (F1).
#[test]
fn f1_f22_a_part_that_cannot_be_removed_is_set_aside() {
    for durability in EVERY_DURABILITY {
        let mut writer = well_begun(durability);
        let session = writer.session().unwrap();
        let head = writer.trails().pop().unwrap();
        let whole = writer.memory.read(&head).unwrap().len();
        writer.memory.set_space(Some(30));
        // lock, append, append for the rest, truncate
        writer.disk.arm(3, Fault::Error(EIO));
        writer.say();
        assert!(writer.disk.log()[3].starts_with("truncate"));
        assert_eq!(writer.errors[0].kind(), ErrorKind::DiskFull);
        assert_eq!(writer.memory.read(&head).unwrap().len(), whole + 30);
        writer.memory.set_space(None);
        check_after(&writer, End::Kill, durability).unwrap();
        writer.say();
        assert_eq!(writer.errors.len(), 1, "{:?}", writer.errors);
        let report = session.reader().verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.damage.first());
        let asides: Vec<u64> = report.set_aside.iter().map(|(_, len)| *len).collect();
        assert_eq!(asides, [30]);
        check_after(&writer, End::Kill, durability).unwrap();
    }
}

/// F22: a rotation needs space for a new trail; without it nothing is lost, and it
/// happens later.
#[test]
fn f5_f22_a_rotation_on_a_full_disk_can_be_made_up_for() {
    let mut writer = DiaryWriter::new(Durability::Record);
    for _ in 0..3 {
        writer.say();
    }
    let session = writer.session().unwrap();
    for space in [0, 1, 50, 200] {
        writer.memory.set_space(Some(space));
        let error = session.append(big("more")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
    }
    assert_eq!(writer.trails().len(), 1);
    writer.memory.set_space(None);
    writer.say();
    assert_eq!(writer.trails().len(), 2);
    assert!(writer.errors.is_empty(), "{:?}", writer.errors);
    check_after(&writer, End::Power(Loss::Unsynced), Durability::Record).unwrap();
}

/// The checks above can fail: on a disk whose syncs lie, a power cut does lose an
/// acknowledged record, and they notice.
#[test]
fn a_sync_that_lies_does_lose_an_acknowledged_record() {
    for durability in [Durability::Record, Durability::Batch] {
        let mut writer = well_begun(durability);
        say_with(&mut writer, "sync 0", Fault::LostSync);
        assert!(writer.errors.is_empty(), "{:?}", writer.errors);
        check_after(&writer, End::Kill, durability).unwrap();
        let cut = End::Power(Loss::Unsynced);
        let wrong = check_after(&writer, cut, durability).unwrap_err();
        assert!(wrong.contains("record 4 is lost"), "{wrong}");
    }
}

/// The same for a directory: an acknowledged session has no name.
#[test]
fn a_sync_of_a_directory_that_lies_does_lose_an_acknowledged_session() {
    let mut writer = DiaryWriter::new(Durability::Record);
    writer.store().unwrap();
    say_with(&mut writer, "sync_dir sessions", Fault::LostSync);
    assert!(writer.errors.is_empty(), "{:?}", writer.errors);
    let cut = End::Power(Loss::Unsynced);
    let wrong = check_after(&writer, cut, Durability::Record).unwrap_err();
    assert!(wrong.contains("is lost"), "{wrong}");
}

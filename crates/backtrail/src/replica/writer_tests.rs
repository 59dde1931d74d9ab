//! The promises of the machine alone: what it asks, and when.

use super::*;
use crate::replica::{Lease, LogOwner};

const TTL: u64 = 300;

fn log() -> LogKey {
    LogKey {
        owner: LogOwner::Session,
        id: "7f3a".parse().unwrap(),
    }
}

fn line(seq: u64) -> Line {
    Line {
        seq,
        sum: [seq as u8; 8],
        bytes: Vec::new(),
    }
}

fn end(seq: u64) -> End {
    End {
        trail: 0,
        seq,
        sum: [seq as u8; 8],
    }
}

fn status(head: Option<End>) -> LogStatus {
    LogStatus {
        head,
        fence: Fence(1),
        lease: None,
        changed_at_ms: 0,
        bytes: 0,
        deleted_at_ms: None,
        wrapped_key: Vec::new(),
    }
}

fn lost() -> Result<Answer, ReplicaError> {
    Err(ReplicaError {
        kind: ReplicaErrorKind::Away,
        message: "lost".to_owned(),
    })
}

/// A writer with the lease of a log that ends at record 5, and nothing to send.
fn leased() -> Writer {
    let mut writer = Writer::new(log(), "a", TTL);
    writer.renew();
    assert!(matches!(asked(&mut writer, 0), Request::Lease { .. }));
    let answer = Answer::Leased {
        fence: Fence(1),
        log: status(Some(end(5))),
    };
    writer.answered(0, Ok(answer)).unwrap();
    assert_eq!(
        writer.step(0),
        WriterStep::Read {
            after: Some(end(5))
        }
    );
    writer.found(Unsent::Nothing);
    assert_eq!(writer.step(0), WriterStep::Rest);
    writer
}

fn asked(writer: &mut Writer, now: u64) -> Request {
    match writer.step(now) {
        WriterStep::Ask(request) => request.clone(),
        other => panic!("{other:?}"),
    }
}

/// Sends a line, without an answer yet.
fn sending(writer: &mut Writer, seq: u64) -> Request {
    writer.send();
    assert!(matches!(writer.step(0), WriterStep::Read { .. }));
    writer.found(Unsent::Lines(vec![line(seq)], Vec::new()));
    asked(writer, 0)
}

#[test]
fn a_request_without_an_answer_is_asked_again_as_it_was_before_anything_else() {
    let mut writer = leased();
    let first = sending(&mut writer, 6);
    writer.answered(0, lost()).unwrap_err();
    writer.send();
    writer.renew();
    assert_eq!(asked(&mut writer, TTL * 2), first);
    writer.answered(0, Ok(Answer::Appended(end(6)))).unwrap();
    assert!(matches!(asked(&mut writer, 0), Request::Renew { .. }));
}

#[test]
fn lines_that_are_there_already_are_not_sent_again() {
    let mut writer = leased();
    sending(&mut writer, 6);
    writer.answered(0, Ok(Answer::Moved(Some(end(7))))).unwrap();
    assert_eq!(
        writer.step(0),
        WriterStep::Read {
            after: Some(end(7))
        }
    );
    writer.found(Unsent::Lines(vec![line(8)], Vec::new()));
    let Request::Append { after, .. } = asked(&mut writer, 0) else {
        panic!("it is an append");
    };
    assert_eq!(after, end(7));
    // An end that is denied and named in one answer leads nowhere.
    let error = writer
        .answered(0, Ok(Answer::Moved(Some(end(7)))))
        .unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Corrupt);
}

#[test]
fn an_idle_writer_renews_and_an_append_renews_as_well() {
    let mut writer = leased();
    assert_eq!(writer.due(), Some(TTL / 3));
    assert_eq!(writer.step(TTL / 3 - 1), WriterStep::Rest);
    assert!(matches!(asked(&mut writer, TTL / 3), Request::Renew { .. }));
    writer.answered(TTL / 3, lost()).unwrap_err();
    // An append does not wait for it.
    assert!(matches!(sending(&mut writer, 6), Request::Append { .. }));
    writer.answered(1000, Ok(Answer::Appended(end(6)))).unwrap();
    assert_eq!(writer.due(), Some(1000 + TTL / 3));
}

#[test]
fn a_fenced_writer_asks_nothing_more() {
    let by = Lease {
        holder: "b".to_owned(),
        left_ms: 1,
    };
    for answer in [
        Answer::Fenced {
            fence: Fence(2),
            lease: Some(by),
        },
        Answer::Purged(1),
    ] {
        let mut writer = leased();
        sending(&mut writer, 6);
        writer.answered(0, Ok(answer)).unwrap();
        for _ in 0..3 {
            writer.send();
            writer.renew();
            assert!(matches!(writer.step(TTL * 9), WriterStep::Stop(_)));
        }
        assert_eq!(writer.release(), None, "the lease is another writer's");
    }
}

#[test]
fn a_log_that_is_ahead_or_another_one_is_not_written_to_and_the_lease_is_given_back() {
    for found in [Unsent::Ahead, Unsent::Diverged] {
        let mut writer = leased();
        writer.send();
        writer.step(0);
        writer.found(found);
        assert!(matches!(writer.step(0), WriterStep::Stop(_)));
        assert!(matches!(writer.release(), Some(Request::Release { .. })));
    }
}

#[test]
fn payloads_come_before_the_lines_that_name_them() {
    let mut writer = leased();
    writer.send();
    writer.step(0);
    let payload = BlobName {
        kind: crate::replica::BlobKind::Payload,
        hash: [1; 32],
    };
    writer.found(Unsent::Lines(vec![line(6)], vec![payload]));
    for _ in 0..2 {
        assert_eq!(writer.step(0), WriterStep::Store(&[payload]));
    }
    writer.stored();
    assert!(matches!(asked(&mut writer, 0), Request::Append { .. }));
}

#[test]
fn an_answer_to_something_else_is_no_answer() {
    let mut writer = leased();
    let first = sending(&mut writer, 6);
    for answer in [Answer::Absent, Answer::Renewed, Answer::Done] {
        let error = writer.answered(0, Ok(answer)).unwrap_err();
        assert_eq!(error.kind, ReplicaErrorKind::Corrupt);
        assert_eq!(asked(&mut writer, 0), first);
    }
}

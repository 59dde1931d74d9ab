//! A purge removes everything, and the id is refused for ever.

use backtrail::replica::{Answer, BlobKind, LogKey, LogOwner, Order, Request};

use super::case::{Case, LONG_MS, Writer, line};

fn purge(log: &LogKey) -> Request {
    Request::Purge { log: log.clone() }
}

/// Returns what a client may ask about a log.
fn requests(writer: &Writer<'_>) -> Vec<Request> {
    let log = || writer.log.clone();
    let (fence, ttl_ms) = (writer.fence, LONG_MS);
    vec![
        Request::Status { log: log() },
        Request::Lease {
            log: log(),
            holder: "first".to_owned(),
            ttl_ms,
            wrapped_key: Vec::new(),
        },
        Request::Renew {
            log: log(),
            fence,
            ttl_ms,
        },
        Request::Trails { log: log() },
        Request::Read {
            log: log(),
            trail: 0,
            beyond: None,
            order: Order::Forwards,
            max_bytes: 100,
        },
        writer.append(&[line(2, "b")]),
        writer.begin(Some(writer.end), 1, &line(1, "opener")),
        writer.begin(None, 0, &line(0, "opener")),
    ]
}

fn assert_purged(case: &Case<'_>, writer: &Writer<'_>) {
    for request in requests(writer) {
        let answer = case.ask(&request);
        assert!(
            matches!(answer, Answer::Purged(at_ms) if at_ms > 0),
            "{request:?}: {answer:?}"
        );
    }
}

pub(super) fn a_purged_log_is_gone(case: &Case<'_>) {
    let mut writer = case.writer();
    let append = writer.append(&[line(1, "a")]);
    let payload = case.put(&writer.log, BlobKind::Payload, b"words");
    writer.write(&[line(1, "a")]);
    assert_eq!(case.ask(&purge(&writer.log)), Answer::Done);
    assert_purged(case, &writer);
    let retry = case.ask(&append);
    assert!(matches!(retry, Answer::Purged(_)), "{retry:?}");
    assert!(!case.has(&writer.log, payload));
    assert_eq!(case.get(&writer.log, payload), None);
    assert_eq!(case.changes_of(&writer.log), []);
    let list = Request::List {
        after: None,
        limit: u32::MAX,
    };
    let Answer::Logs(logs) = case.ask(&list) else {
        panic!("no list");
    };
    assert!(logs.iter().all(|(log, _)| *log != writer.log));
}

pub(super) fn a_purged_id_is_refused_for_ever(case: &Case<'_>) {
    let writer = case.writer();
    for holder in ["first", "second", "first"] {
        assert_eq!(case.ask(&purge(&writer.log)), Answer::Done);
        let lease = case.try_lease(&writer.log, holder, LONG_MS);
        assert!(matches!(lease, Answer::Purged(_)), "{lease:?}");
        case.ask(&Request::Release {
            log: writer.log.clone(),
            fence: writer.fence,
        });
        case.ask(&Request::Delete {
            log: writer.log.clone(),
            deleted: false,
        });
        assert_purged(case, &writer);
        case.control.outlive(5);
    }
}

pub(super) fn what_was_never_there_can_be_purged(case: &Case<'_>) {
    let log = case.log();
    for _ in 0..2 {
        assert_eq!(case.ask(&purge(&log)), Answer::Done);
    }
    let lease = case.try_lease(&log, "first", LONG_MS);
    assert!(matches!(lease, Answer::Purged(_)), "{lease:?}");
}

pub(super) fn a_writer_of_a_purged_log_writes_nothing(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(1, "a")]);
    case.ask(&purge(&writer.log));
    let append = case.ask(&writer.append(&[line(2, "b")]));
    assert!(matches!(append, Answer::Purged(_)), "{append:?}");
    assert_purged(case, &writer);
    assert_eq!(case.changes_of(&writer.log), []);
}

pub(super) fn no_payload_comes_back_to_a_purged_log(case: &Case<'_>) {
    let writer = case.writer();
    let before = case.put(&writer.log, BlobKind::Payload, b"stored before");
    case.ask(&purge(&writer.log));
    case.put(&writer.log, BlobKind::Payload, b"stored before");
    let after = case.put(&writer.log, BlobKind::Payload, b"stored after");
    for name in [before, after] {
        assert!(!case.has(&writer.log, name));
        assert_eq!(case.get(&writer.log, name), None);
    }
    let append = case.ask(&writer.append(&[line(1, "names it")]));
    assert!(matches!(append, Answer::Purged(_)), "{append:?}");
}

pub(super) fn a_purge_leaves_other_logs_alone(case: &Case<'_>) {
    let purged = case.writer();
    let twin = LogKey {
        owner: LogOwner::Workspace,
        ..purged.log.clone()
    };
    let others = [case.log(), twin].map(|log| case.writer_of(log, LONG_MS));
    let put = |writer: &Writer<'_>| case.put(&writer.log, BlobKind::Payload, b"the same words");
    put(&purged);
    let names = others.each_ref().map(put);
    case.ask(&purge(&purged.log));
    for (mut writer, name) in others.into_iter().zip(names) {
        writer.write(&[line(1, "a")]);
        assert_eq!(case.lines(&writer.log, 0).len(), 2);
        assert_eq!(case.changes_of(&writer.log).len(), 2);
        assert_eq!(
            case.get(&writer.log, name).as_deref(),
            Some(&b"the same words"[..])
        );
    }
}

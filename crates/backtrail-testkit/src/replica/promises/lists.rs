//! Status, lists and changes: what is there, for clients that know nothing yet.

use std::collections::BTreeSet;

use backtrail::replica::{Answer, LogKey, LogOwner, LogStatus, Request};

use super::case::{Case, LONG_MS, end_of, line};

pub(super) fn a_status_counts_bytes_and_has_times(case: &Case<'_>) {
    let log = case.log();
    case.lease(&log, "first", LONG_MS);
    let created = case.status(&log);
    assert!(created.changed_at_ms > 0);
    case.control.outlive(5);
    let mut writer = case.writer_of(log, LONG_MS);
    let opener = case.status(&writer.log);
    assert!(opener.changed_at_ms > created.changed_at_ms);
    case.control.outlive(5);
    writer.write(&[line(1, "12345"), line(2, "123")]);
    let status = case.status(&writer.log);
    assert_eq!(status.bytes, opener.bytes + 8);
    assert!(status.changed_at_ms > opener.changed_at_ms);
    assert_eq!(
        (status.deleted_at_ms, status.wrapped_key),
        (None, Vec::new())
    );
    case.control.outlive(5);
    writer.changes_nothing(&writer.append(&[line(0, "refused")]));
    writer.superseded();
    let after = case.status(&writer.log);
    assert_eq!(after.changed_at_ms, status.changed_at_ms);
    writer.fence = after.fence;
    writer.turn_to(1, &line(0, "1234"));
    assert_eq!(case.status(&writer.log).bytes, status.bytes + 4);
}

pub(super) fn the_trash_has_a_log_and_gives_it_back(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(1, "a")]);
    let delete = |deleted| Request::Delete {
        log: writer.log.clone(),
        deleted,
    };
    for _ in 0..2 {
        assert_eq!(case.ask(&delete(true)), Answer::Done);
        let at_ms = case.status(&writer.log).deleted_at_ms;
        assert!(at_ms.is_some_and(|at_ms| at_ms > 0));
        assert_eq!(case.lines(&writer.log, 0).len(), 2);
    }
    for _ in 0..2 {
        assert_eq!(case.ask(&delete(false)), Answer::Done);
        assert_eq!(case.status(&writer.log).deleted_at_ms, None);
    }
    assert_eq!(case.lines(&writer.log, 0).len(), 2);
}

/// Returns all logs of the replica, read in small pages.
fn all_logs(case: &Case<'_>, limit: u32) -> Vec<(LogKey, LogStatus)> {
    let mut found: Vec<(LogKey, LogStatus)> = Vec::new();
    loop {
        let after = found.last().map(|(log, _)| log.clone());
        let list = Request::List {
            after: after.clone(),
            limit,
        };
        let Answer::Logs(page) = case.ask(&list) else {
            panic!("no list");
        };
        assert!(page.iter().all(|(log, _)| Some(log) != after.as_ref()));
        assert!(page.len() <= limit as usize);
        if page.is_empty() {
            return found;
        }
        found.extend(page);
    }
}

pub(super) fn lists_have_each_log_once_in_order(case: &Case<'_>) {
    let mut expected = BTreeSet::new();
    for n in 0..7 {
        let log = LogKey {
            owner: if n % 2 == 0 {
                LogOwner::Session
            } else {
                LogOwner::Workspace
            },
            id: case.control.fresh(),
        };
        let twin = LogKey {
            owner: LogOwner::Workspace,
            ..log.clone()
        };
        for log in BTreeSet::from([log, twin]) {
            expected.insert(case.writer_of(log, LONG_MS).log);
        }
    }
    let trashed = expected.first().expect("seven logs").clone();
    let purged = expected.pop_last().expect("seven logs");
    case.ask(&Request::Delete {
        log: trashed.clone(),
        deleted: true,
    });
    case.ask(&Request::Purge { log: purged });
    for limit in [3, 1000] {
        let logs = all_logs(case, limit);
        for owner in [LogOwner::Session, LogOwner::Workspace] {
            let ids = logs.iter().filter(|(log, _)| log.owner == owner);
            assert!(ids.map(|(log, _)| &log.id).is_sorted_by(|a, b| a < b));
        }
        let ours = logs.iter().filter(|(log, _)| expected.contains(log));
        let ours: Vec<_> = ours.cloned().collect();
        assert_eq!(ours.len(), expected.len());
        for (log, listed) in ours {
            let status = case.status(&log);
            assert_eq!((listed.head, listed.fence), (status.head, status.fence));
            assert_eq!(listed.deleted_at_ms.is_some(), log == trashed);
        }
    }
}

pub(super) fn changes_say_what_was_appended_and_by_whom(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(1, "a"), line(2, "b")]);
    let second = writer.superseded();
    case.control.outlive(5);
    writer.fence = second;
    writer.turn_to(1, &line(1, "rewound"));
    writer.write(&[line(2, "c")]);
    let opener = case.trails(&writer.log)[0].opener.clone();
    let expected = [
        (end_of(0, &opener), "first"),
        (end_of(0, &line(2, "b")), "first"),
        (end_of(1, &line(1, "rewound")), "second"),
        (end_of(1, &line(2, "c")), "second"),
    ];
    let changes = case.changes_of(&writer.log);
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.end, change.by.as_str()))
        .collect();
    assert_eq!(told, expected);
    assert!(changes.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert!(changes[0].id > 0 && changes[0].at_ms > 0);
    assert!(changes[1].at_ms < changes[2].at_ms);
    assert_eq!(changes[3].at_ms, case.status(&writer.log).changed_at_ms);
    let after = case.changes(changes[1].id, 1);
    assert_eq!(after.len(), 1);
    assert!(after[0].id > changes[1].id && after[0].id <= changes[2].id);
}

pub(super) fn nothing_that_was_refused_is_a_change(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(1, "a")]);
    let end = writer.end;
    writer.end.seq = 9;
    writer.changes_nothing(&writer.append(&[line(10, "elsewhere")]));
    writer.changes_nothing(&writer.begin(None, 4, &line(0, "elsewhere")));
    writer.end = end;
    let mut append = writer.append_with(&[line(2, "b")], &[[0xee; 32]]);
    writer.changes_nothing(&append);
    writer.superseded();
    append = writer.append(&[line(2, "b")]);
    writer.changes_nothing(&append);
}

//! Appends: lines are there once, in order, from the writer that has the newest fence.

use backtrail::replica::{Answer, End, Fence, Request};

use super::case::{Case, LONG_MS, SHORT_MS, Writer, end_of, line};

pub(super) fn lines_come_after_the_end(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(1, "a"), line(2, "b")]);
    writer.write(&[line(3, "c")]);
    // Numbers that were lost here leave gaps.
    writer.write(&[line(7, "d")]);
    let lines = case.lines(&writer.log, 0);
    let expected = [line(1, "a"), line(2, "b"), line(3, "c"), line(7, "d")];
    assert_eq!(lines[1..], expected);
    assert_eq!(case.status(&writer.log).head, Some(end_of(0, &expected[3])));
}

pub(super) fn a_writer_whose_lease_was_taken_never_writes_again(case: &Case<'_>) {
    let writer = case.writer_of(case.log(), LONG_MS);
    let second = writer.superseded();
    let append = writer.append(&[line(1, "too late")]);
    let Answer::Fenced { fence, lease } = case.ask(&append) else {
        panic!("a fenced writer writes");
    };
    assert_eq!(fence, second);
    assert_eq!(lease.map(|lease| lease.holder).as_deref(), Some("second"));
    let release = Request::Release {
        log: writer.log.clone(),
        fence: second,
    };
    case.ask(&release);
    // Nobody has the lease now, and the older fence stays refused.
    let Answer::Fenced { fence, lease } = case.ask(&append) else {
        panic!("a fenced writer writes");
    };
    assert_eq!((fence, lease), (second, None));
    writer.changes_nothing(&append);
    let invented = Writer {
        fence: Fence(second.0 + 1),
        ..writer
    };
    invented.changes_nothing(&invented.append(&[line(1, "a fence of no lease")]));
}

pub(super) fn a_retry_is_answered_as_the_first_time(case: &Case<'_>) {
    let mut writer = case.writer();
    let lines = [line(1, "a"), line(2, "b")];
    let append = writer.append(&lines);
    let first = case.ask(&append);
    assert_eq!(first, Answer::Appended(end_of(0, &lines[1])));
    assert_eq!(case.ask(&append), first);
    writer.end = end_of(0, &lines[1]);
    writer.write(&[line(3, "c")]);
    assert_eq!(case.ask(&append), first);
    let there = case.lines(&writer.log, 0);
    assert_eq!(there[1..], [line(1, "a"), line(2, "b"), line(3, "c")]);
    assert_eq!(case.changes_of(&writer.log).len(), 3);
}

pub(super) fn a_retry_is_answered_whatever_the_fence_and_the_trail(case: &Case<'_>) {
    let mut writer = case.writer();
    let append = writer.append(&[line(1, "a"), line(2, "b")]);
    let first = case.ask(&append);
    let second = writer.superseded();
    assert_eq!(case.ask(&append), first);
    writer.fence = second;
    writer.end = end_of(0, &line(2, "b"));
    writer.turn_to(1, &line(1, "rewound"));
    writer.write(&[line(2, "another b")]);
    assert_eq!(case.ask(&append), first);
    assert_eq!(case.lines(&writer.log, 0).len(), 3);
    assert_eq!(case.lines(&writer.log, 1).len(), 2);
    assert_eq!(case.holder(&writer.log).as_deref(), Some("second"));
}

pub(super) fn a_retry_with_another_sum_is_no_retry(case: &Case<'_>) {
    let mut writer = case.writer();
    let opener = writer.end;
    writer.write(&[line(1, "a")]);
    writer.end = opener;
    let other = writer.append(&[line(1, "another a")]);
    assert_eq!(
        case.ask(&other),
        Answer::Moved(Some(end_of(0, &line(1, "a"))))
    );
    writer.changes_nothing(&other);
    writer.fence = writer.superseded();
    writer.changes_nothing(&other);
}

pub(super) fn lines_that_are_there_in_part_are_not_appended(case: &Case<'_>) {
    let mut writer = case.writer();
    let opener = writer.end;
    writer.write(&[line(1, "a"), line(2, "b")]);
    writer.end = opener;
    let longer = writer.append(&[line(1, "a"), line(2, "b"), line(3, "c")]);
    assert_eq!(
        case.ask(&longer),
        Answer::Moved(Some(end_of(0, &line(2, "b"))))
    );
    writer.changes_nothing(&longer);
    let shorter = writer.append(&[line(1, "a")]);
    assert_eq!(
        case.ask(&shorter),
        Answer::Appended(end_of(0, &line(1, "a")))
    );
}

pub(super) fn the_fence_is_checked_before_the_end(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.superseded();
    writer.end.seq = 40;
    let answer = case.ask(&writer.append(&[line(41, "a")]));
    assert!(matches!(answer, Answer::Fenced { .. }), "{answer:?}");
}

pub(super) fn another_end_is_moved(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(1, "a")]);
    let end = writer.end;
    let other_ends = [
        End { seq: 0, ..end },
        End { seq: 2, ..end },
        End { trail: 1, ..end },
        End { sum: [9; 8], ..end },
    ];
    for other in other_ends {
        writer.end = other;
        let append = writer.append(&[line(3, "b")]);
        assert_eq!(case.ask(&append), Answer::Moved(Some(end)), "{other:?}");
    }
    writer.end = end;
    assert_eq!(case.lines(&writer.log, 0).len(), 2);
    let empty = case.log();
    let fence = case.lease(&empty, "first", LONG_MS);
    let append = Writer {
        log: empty,
        fence,
        ..writer
    }
    .append(&[line(2, "a")]);
    assert_eq!(case.ask(&append), Answer::Moved(None));
}

pub(super) fn lines_out_of_order_are_never_there(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(5, "a")]);
    for seqs in [&[5, 6][..], &[4], &[7, 6], &[6, 6], &[]] {
        let lines: Vec<_> = seqs.iter().map(|seq| line(*seq, "b")).collect();
        writer.changes_nothing(&writer.append(&lines));
    }
    writer.write(&[line(6, "in order")]);
}

pub(super) fn an_append_prolongs_the_lease(case: &Case<'_>) {
    let mut writer = case.writer();
    let renew = Request::Renew {
        log: writer.log.clone(),
        fence: writer.fence,
        ttl_ms: SHORT_MS,
    };
    assert_eq!(case.ask(&renew), Answer::Renewed);
    writer.write(&[line(1, "a")]);
    case.control.outlive(SHORT_MS);
    let second = case.try_lease(&writer.log, "second", LONG_MS);
    assert!(matches!(second, Answer::Held(_)), "{second:?}");
}

pub(super) fn a_retry_of_a_fenced_writer_takes_no_lease(case: &Case<'_>) {
    let writer = case.writer();
    let append = writer.append(&[line(1, "a")]);
    case.ask(&append);
    let second = writer.superseded();
    let release = Request::Release {
        log: writer.log.clone(),
        fence: second,
    };
    case.ask(&release);
    assert!(matches!(case.ask(&append), Answer::Appended(_)));
    assert_eq!(case.holder(&writer.log), None);
    case.lease(&writer.log, "third", LONG_MS);
}

pub(super) fn any_bytes_come_back_as_they_were(case: &Case<'_>) {
    let mut writer = case.writer();
    let large: Vec<u8> = (0..1_200_000_u32).map(|n| (n % 251) as u8).collect();
    let all: Vec<u8> = (0..=255).collect();
    let mut lines = vec![
        line(1, b"\0"),
        line(2, all),
        line(3, "\\x00 ' \" {} \u{1f600}"),
        line(1 << 40, large),
    ];
    lines[0].sum = [0xff; 8];
    lines[1].sum = [0; 8];
    writer.write(&lines);
    assert_eq!(case.lines(&writer.log, 0)[1..], lines);
    assert_eq!(case.trails(&writer.log)[0].end, end_of(0, &lines[3]));
}

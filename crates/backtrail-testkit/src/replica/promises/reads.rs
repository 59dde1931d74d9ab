//! Lines are read in both directions, page by page.

use backtrail::replica::{Answer, Line, Order, Request};

use super::case::{Case, Writer, line};

/// Returns a writer of a trail with an opener and ten lines of 100 bytes each.
fn ten_lines<'a>(case: &'a Case<'a>) -> (Writer<'a>, Vec<Line>) {
    let mut writer = case.writer();
    let opener = line(20, format!("{:100}", "opener"));
    writer.turn_to(1, &opener);
    let text = |seq: u64| line(seq, format!("{seq:100}"));
    let lines: Vec<Line> = (21..=30).map(text).collect();
    writer.write(&lines);
    (writer, [vec![opener], lines].concat())
}

pub(super) fn lines_are_read_forwards(case: &Case<'_>) {
    let (writer, all) = ten_lines(case);
    let read = |beyond| case.page(&writer.log, 1, beyond, Order::Forwards, u64::MAX);
    assert_eq!(read(None), (all.clone(), false));
    // The opener does not count, wherever reading starts.
    assert_eq!(read(Some(3)), (all[1..].to_vec(), false));
    assert_eq!(read(Some(20)), (all[1..].to_vec(), false));
    assert_eq!(read(Some(25)), (all[6..].to_vec(), false));
    assert_eq!(read(Some(30)), (Vec::new(), false));
}

pub(super) fn lines_are_read_backwards(case: &Case<'_>) {
    let (writer, mut all) = ten_lines(case);
    all.reverse();
    let read = |beyond| case.page(&writer.log, 1, beyond, Order::Backwards, u64::MAX);
    assert_eq!(read(None), (all.clone(), false));
    assert_eq!(read(Some(26)), (all[5..].to_vec(), false));
    assert_eq!(read(Some(21)), (all[10..].to_vec(), false));
    assert_eq!(read(Some(20)), (Vec::new(), false));
}

pub(super) fn pages_have_about_the_bytes_that_were_asked_for(case: &Case<'_>) {
    let (writer, all) = ten_lines(case);
    for order in [Order::Forwards, Order::Backwards] {
        let mut expected = all.clone();
        if order == Order::Backwards {
            expected.reverse();
        }
        for (max_bytes, most) in [(0, 1), (1, 1), (350, 4), (1_000_000, 11)] {
            let (mut read, mut more) = (Vec::new(), true);
            while more {
                let beyond = read.last().map(|line: &Line| line.seq);
                let (page, still) = case.page(&writer.log, 1, beyond, order, max_bytes);
                assert!((1..=most).contains(&page.len()), "{} lines", page.len());
                read.extend(page);
                more = still;
            }
            assert_eq!(read, expected);
        }
    }
}

pub(super) fn what_is_absent_is_absent(case: &Case<'_>) {
    let mut writer = case.writer();
    let read = |writer: &Writer<'_>, trail| {
        case.ask(&Request::Read {
            log: writer.log.clone(),
            trail,
            beyond: None,
            order: Order::Forwards,
            max_bytes: 100,
        })
    };
    assert_eq!(read(&writer, 1), Answer::Absent);
    writer.log = case.log();
    assert_eq!(read(&writer, 0), Answer::Absent);
    let log = writer.log.clone();
    let (fence, ttl_ms) = (writer.fence, 1000);
    let requests = [
        Request::Status { log: log.clone() },
        Request::Trails { log: log.clone() },
        Request::Renew {
            log: log.clone(),
            fence,
            ttl_ms,
        },
        Request::Delete { log, deleted: true },
        writer.append(&[line(1, "a")]),
        writer.begin(None, 0, &line(0, "opener")),
    ];
    for request in requests {
        assert_eq!(case.ask(&request), Answer::Absent, "{request:?}");
    }
}

//! Trails: each begins with an opener, where the one before ended.

use backtrail::replica::{Answer, End, Fence, TrailStatus};

use super::case::{Case, LONG_MS, end_of, line};

pub(super) fn a_trail_begins_with_its_opener(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(1, "a"), line(2, "b")]);
    let opener = line(1, "continues at 1");
    writer.turn_to(1, &opener);
    assert_eq!(case.status(&writer.log).head, Some(end_of(1, &opener)));
    writer.write(&[line(2, "c")]);
    let trails = case.trails(&writer.log);
    let expected = TrailStatus {
        opener: opener.clone(),
        end: end_of(1, &line(2, "c")),
    };
    assert_eq!(trails.len(), 2);
    assert_eq!(trails[0].end, end_of(0, &line(2, "b")));
    assert_eq!(trails[1], expected);
    assert_eq!(
        case.lines(&writer.log, 0)[1..],
        [line(1, "a"), line(2, "b")]
    );
    assert_eq!(case.lines(&writer.log, 1), [opener, line(2, "c")]);
}

pub(super) fn a_trail_may_skip_numbers_and_start_at_a_lower_seq(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.write(&[line(8, "a")]);
    for (trail, seq) in [(3, 2), (4, 8), (300, 0)] {
        writer.turn_to(trail, &line(seq, format!("opener {trail}")));
    }
    let numbers: Vec<u32> = case
        .trails(&writer.log)
        .iter()
        .map(|trail| trail.end.trail)
        .collect();
    assert_eq!(numbers, [0, 3, 4, 300]);
}

pub(super) fn the_beginning_of_a_trail_is_answered_again(case: &Case<'_>) {
    let mut writer = case.writer();
    let opener = line(0, "again");
    let begin = writer.begin(Some(writer.end), 1, &opener);
    let first = case.ask(&begin);
    assert_eq!(first, Answer::Appended(end_of(1, &opener)));
    assert_eq!(case.ask(&begin), first);
    writer.fence = writer.superseded();
    writer.end = end_of(1, &opener);
    writer.write(&[line(1, "a")]);
    writer.turn_to(2, &line(1, "and on"));
    assert_eq!(case.ask(&begin), first);
    assert_eq!(case.lines(&writer.log, 1), [opener, line(1, "a")]);
    assert_eq!(case.trails(&writer.log).len(), 3);
    assert_eq!(case.changes_of(&writer.log).len(), 4);
}

pub(super) fn a_trail_begins_only_at_the_head(case: &Case<'_>) {
    let mut writer = case.writer();
    let opener = writer.end;
    writer.write(&[line(1, "a")]);
    let end = writer.end;
    let other_ends = [
        None,
        Some(opener),
        Some(End { sum: [9; 8], ..end }),
        Some(End { trail: 1, ..end }),
    ];
    for head in other_ends {
        let begin = writer.begin(head, 2, &line(0, "elsewhere"));
        assert_eq!(case.ask(&begin), Answer::Moved(Some(end)), "{head:?}");
        writer.changes_nothing(&begin);
    }
    let mut empty = case.writer_of(case.log(), LONG_MS);
    empty.log = case.log();
    empty.fence = case.lease(&empty.log, "first", LONG_MS);
    let begin = empty.begin(Some(end), 2, &line(0, "elsewhere"));
    assert_eq!(case.ask(&begin), Answer::Moved(None));
}

pub(super) fn a_fenced_writer_begins_no_trail(case: &Case<'_>) {
    let mut writer = case.writer();
    let second = writer.superseded();
    let begin = writer.begin(Some(writer.end), 1, &line(0, "too late"));
    let Answer::Fenced { fence, .. } = case.ask(&begin) else {
        panic!("a fenced writer begins a trail");
    };
    assert_eq!(fence, second);
    let elsewhere = writer.begin(None, 1, &line(0, "too late"));
    let answer = case.ask(&elsewhere);
    assert!(matches!(answer, Answer::Fenced { .. }), "{answer:?}");
    writer.fence = Fence(second.0 + 1);
    writer.changes_nothing(&writer.begin(Some(writer.end), 1, &line(0, "a fence of no lease")));
}

pub(super) fn a_lower_number_begins_no_trail(case: &Case<'_>) {
    let mut writer = case.writer();
    writer.turn_to(3, &line(0, "third"));
    for trail in [0, 2, 3] {
        for seq in [0, 5] {
            let begin = writer.begin(Some(writer.end), trail, &line(seq, "lower"));
            writer.changes_nothing(&begin);
        }
    }
}

pub(super) fn lines_go_to_the_newest_trail_alone(case: &Case<'_>) {
    let mut writer = case.writer();
    let older = writer.end;
    writer.turn_to(1, &line(0, "newer"));
    let newest = writer.end;
    writer.end = older;
    let append = writer.append(&[line(1, "a")]);
    assert_eq!(case.ask(&append), Answer::Moved(Some(newest)));
    writer.changes_nothing(&append);
}

//! Leases and fences: who may write.

use backtrail::replica::{Answer, Fence, LogKey, Request};

use super::case::{Case, LONG_MS, SHORT_MS, line};

fn renew(log: &LogKey, fence: Fence, ttl_ms: u64) -> Request {
    Request::Renew {
        log: log.clone(),
        fence,
        ttl_ms,
    }
}

fn release(log: &LogKey, fence: Fence) -> Request {
    Request::Release {
        log: log.clone(),
        fence,
    }
}

pub(super) fn a_lease_creates_a_log_without_a_trail(case: &Case<'_>) {
    let log = case.log();
    let status = Request::Status { log: log.clone() };
    assert_eq!(case.ask(&status), Answer::Absent);
    let Answer::Leased { fence, log: leased } = case.try_lease(&log, "köln 7", LONG_MS) else {
        panic!("no lease");
    };
    assert!(fence > Fence(0));
    assert_eq!((leased.head, leased.bytes), (None, 0));
    let status = case.status(&log);
    assert_eq!((status.head, status.fence), (None, fence));
    let lease = status.lease.expect("it was taken just now");
    assert_eq!(lease.holder, "köln 7");
    assert!((1..=LONG_MS).contains(&lease.left_ms), "{lease:?}");
    assert_eq!(case.trails(&log), []);
}

pub(super) fn each_lease_has_a_higher_fence(case: &Case<'_>) {
    let log = case.log();
    let mut fences = Vec::new();
    for holder in ["first", "second", "first", "first"] {
        let fence = case.lease(&log, holder, LONG_MS);
        assert_eq!(case.status(&log).fence, fence);
        fences.push(fence);
        case.ask(&release(&log, fence));
    }
    assert!(
        fences.windows(2).all(|pair| pair[0] < pair[1]),
        "{fences:?}"
    );
}

pub(super) fn a_lease_is_held_against_others(case: &Case<'_>) {
    let log = case.log();
    let fence = case.lease(&log, "first", LONG_MS);
    let Answer::Held(lease) = case.try_lease(&log, "second", LONG_MS) else {
        panic!("two writers have the lease");
    };
    assert_eq!(lease.holder, "first");
    assert!((1..=LONG_MS).contains(&lease.left_ms), "{lease:?}");
    assert_eq!(case.status(&log).fence, fence);
    assert_eq!(case.ask(&renew(&log, fence, LONG_MS)), Answer::Renewed);
}

pub(super) fn its_own_holder_takes_a_lease_again_and_fences_the_older_handle(case: &Case<'_>) {
    let older = case.writer();
    let fence = case.lease(&older.log, "first", LONG_MS);
    assert!(fence > older.fence);
    let Answer::Fenced {
        fence: newest,
        lease,
    } = case.ask(&older.append(&[line(1, "a")]))
    else {
        panic!("the older handle writes");
    };
    assert_eq!(newest, fence);
    assert_eq!(lease.map(|lease| lease.holder).as_deref(), Some("first"));
}

pub(super) fn a_lease_that_ran_out_costs_nothing_until_it_is_taken(case: &Case<'_>) {
    let log = case.log();
    let fence = case.lease(&log, "first", SHORT_MS);
    case.control.outlive(SHORT_MS);
    assert_eq!(case.holder(&log), None);
    assert_eq!(case.status(&log).fence, fence);
    let mut writer = case.writer_of(case.log(), LONG_MS);
    let short = Request::Renew {
        log: writer.log.clone(),
        fence: writer.fence,
        ttl_ms: SHORT_MS,
    };
    assert_eq!(case.ask(&short), Answer::Renewed);
    case.control.outlive(SHORT_MS);
    writer.write(&[line(1, "late, and nobody minds")]);
    assert_eq!(case.holder(&writer.log).as_deref(), Some("first"));
    let second = case.lease(&log, "second", LONG_MS);
    assert!(second > fence);
}

pub(super) fn a_renewal_prolongs_a_lease(case: &Case<'_>) {
    let log = case.log();
    let fence = case.lease(&log, "first", SHORT_MS);
    assert_eq!(case.ask(&renew(&log, fence, LONG_MS)), Answer::Renewed);
    case.control.outlive(SHORT_MS);
    let second = case.try_lease(&log, "second", LONG_MS);
    assert!(matches!(second, Answer::Held(_)), "{second:?}");
    let left_ms = case.status(&log).lease.map_or(0, |lease| lease.left_ms);
    assert!((SHORT_MS + 1..=LONG_MS).contains(&left_ms), "{left_ms}");
}

pub(super) fn a_lease_that_ran_out_is_renewed_unless_it_was_taken(case: &Case<'_>) {
    let log = case.log();
    let fence = case.lease(&log, "first", SHORT_MS);
    case.control.outlive(SHORT_MS);
    assert_eq!(case.ask(&renew(&log, fence, SHORT_MS)), Answer::Renewed);
    case.control.outlive(SHORT_MS);
    let second = case.lease(&log, "second", LONG_MS);
    let Answer::Fenced {
        fence: newest,
        lease,
    } = case.ask(&renew(&log, fence, LONG_MS))
    else {
        panic!("a lease that was taken is renewed");
    };
    assert_eq!(newest, second);
    assert_eq!(lease.map(|lease| lease.holder).as_deref(), Some("second"));
    assert_eq!(case.holder(&log).as_deref(), Some("second"));
}

pub(super) fn a_release_lets_others_in(case: &Case<'_>) {
    let log = case.log();
    let fence = case.lease(&log, "first", LONG_MS);
    assert_eq!(case.ask(&release(&log, fence)), Answer::Renewed);
    assert_eq!(case.holder(&log), None);
    assert_eq!(case.ask(&release(&log, fence)), Answer::Renewed);
    case.lease(&log, "second", LONG_MS);
}

pub(super) fn a_late_release_takes_nothing_from_the_next_writer(case: &Case<'_>) {
    let log = case.log();
    let fence = case.lease(&log, "first", LONG_MS);
    case.ask(&release(&log, fence));
    let second = case.lease(&log, "second", LONG_MS);
    assert_eq!(case.ask(&release(&log, fence)), Answer::Renewed);
    let status = case.status(&log);
    assert_eq!(status.fence, second);
    assert_eq!(case.holder(&log).as_deref(), Some("second"));
    let third = case.try_lease(&log, "third", LONG_MS);
    assert!(matches!(third, Answer::Held(_)), "{third:?}");
}

pub(super) fn the_key_is_that_of_the_first_lease(case: &Case<'_>) {
    let log = case.log();
    for key in [&b"sealed\0\xff"[..], b"another"] {
        let request = Request::Lease {
            log: log.clone(),
            holder: "first".to_owned(),
            ttl_ms: LONG_MS,
            wrapped_key: key.to_vec(),
        };
        let Answer::Leased { log: leased, .. } = case.ask(&request) else {
            panic!("no lease");
        };
        assert_eq!(leased.wrapped_key, b"sealed\0\xff");
        assert_eq!(case.status(&log).wrapped_key, b"sealed\0\xff");
    }
}

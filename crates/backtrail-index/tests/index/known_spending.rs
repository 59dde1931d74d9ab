//! What is looked up at once is what the queries answer, without a scan, a write or a wait.

use backtrail::{Block, Draft, ForkOptions, Message, SessionOptions, Timestamp, Usage};
use backtrail_index::{
    Filter, Index, IndexOptions, KnownSpending, Price, Prices, Spending, SpendingQuestion,
    known_spending,
};
use rusqlite::Connection;

use crate::kit::{Home, call_tool, respond};
use crate::random::Random;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// A day that begins at this time, UTC.
const MONDAY: i64 = 1_794_873_600_000;

fn index(home: &Home) -> Index {
    let prices = Prices::with_own(vec![Price::new("m-1", 1.0, 2.0)]);
    Index::open(&home.store, IndexOptions::new().prices(prices)).unwrap()
}

fn time(at: i64) -> Timestamp {
    Timestamp::from_millis(at).unwrap()
}

/// Makes a session whose calls are at these times, each of as many tokens as it has a number.
fn calls(home: &Home, times: &[i64]) -> String {
    let session = home.session();
    for (n, at) in times.iter().enumerate() {
        let reply = Message::assistant([Block::text("x")]).usage(Usage::new(n as u64 + 1, 7));
        let draft = Draft::from(reply).model("m-1").at(time(*at));
        session.append(draft).unwrap();
    }
    session.id().to_string()
}

fn ask(home: &Home, session: Option<&str>, now: i64) -> KnownSpending {
    let question = SpendingQuestion {
        session,
        today: time(MONDAY),
        now: time(now),
    };
    known_spending(&home.store, &question)
}

/// Returns what is looked up of a sum.
fn cost(spending: &Spending) -> (i64, u64, u64, u64, u64) {
    let it = spending;
    (
        it.cost.0,
        it.calls,
        it.unpriced_calls,
        it.estimated_calls,
        it.lower_bound_calls,
    )
}

#[test]
fn figures_are_those_of_the_queries_whatever_the_times_of_the_calls() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let home = Home::new();
        // From calls without a pause to calls a day apart; some are before 1970.
        let pauses = [20 * MINUTE, 3 * HOUR, 5 * HOUR, 26 * HOUR];
        let pause = pauses[random.below(4)];
        let mut at = match random.one_in(8) {
            true => -40 * HOUR,
            false => MONDAY - 40 * HOUR,
        };
        let times: Vec<i64> = (0..60)
            .map(|_| {
                at += random.below(pause as usize) as i64;
                at
            })
            .collect();
        let (some, others) = times.split_at(random.below(times.len()));
        let id = calls(&home, some);
        calls(&home, others);
        let index = index(&home);
        index.catch_up().unwrap();
        for now in [0, 2 * HOUR, 6 * HOUR].map(|later| at + later) {
            let known = ask(&home, Some(&id), now);
            let blocks = index.blocks(&Filter::default(), time(now)).unwrap();
            let active = blocks.last().filter(|block| block.active);
            assert_eq!(
                known.block.map(|(start, sum)| (start, cost(&sum))),
                active.map(|block| (block.start, cost(&block.spending))),
                "seed {seed}, {now}"
            );
            let mut filter = Filter::default();
            filter.since = Some(time(MONDAY));
            let today = index.spending(&filter).unwrap().total;
            assert_eq!(known.today.map(|sum| cost(&sum)), Some(cost(&today)));
            let mut filter = Filter::default();
            filter.session = Some(id.parse().unwrap());
            let session = index.spending(&filter).unwrap().total;
            assert_eq!(known.session.map(|sum| cost(&sum)), Some(cost(&session)));
        }
    }
}

#[test]
fn a_session_costs_what_its_sub_agents_cost_too() {
    let home = Home::new();
    let session = home.session();
    respond(&session, "a", (10, 1), "x");
    call_tool(&session, "t-1", "done");
    let child = session.spawn("t-1", SessionOptions::new()).unwrap();
    respond(&child, "b", (20, 2), "y");
    let fork = session.fork(&ForkOptions::new()).unwrap();
    respond(&fork, "c", (40, 4), "z");
    index(&home).catch_up().unwrap();
    let known = ask(&home, Some(session.id().as_str()), MONDAY).session;
    // 30 tokens of input for $1 a million, and 3 of output for $2.
    assert_eq!(known.unwrap().cost.0, 36_000);
    assert_eq!(ask(&home, Some("unknown"), MONDAY).session, None);
}

#[test]
fn without_a_catalogue_that_can_be_trusted_there_are_no_figures() {
    let home = Home::new();
    let id = calls(&home, &[MONDAY + HOUR]);
    let asked = || ask(&home, Some(&id), MONDAY + HOUR);
    let nothing = KnownSpending::default();
    assert_eq!(asked(), nothing, "missing");
    index(&home).catch_up().unwrap();
    assert_ne!(asked(), nothing);
    let path = home.store.root().join("derived/catalogue-7.db");

    // A process that commits holds it alone; nobody waits for that.
    let db = Connection::open(&path).unwrap();
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let began = std::time::Instant::now();
    assert_eq!(asked(), nothing, "locked");
    assert!(began.elapsed() < std::time::Duration::from_secs(2));
    db.execute_batch("ROLLBACK").unwrap();
    drop(db);
    assert_ne!(asked(), nothing);

    std::fs::write(&path, b"not a database").unwrap();
    assert_eq!(asked(), nothing, "another program's");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert_eq!(asked(), nothing, "a link");
}

#[test]
fn a_catalogue_of_before_has_the_index_after_its_next_commit() {
    let home = Home::new();
    let id = calls(&home, &[MONDAY + HOUR]);
    let index = index(&home);
    index.catch_up().unwrap();
    let path = home.store.root().join("derived/catalogue-7.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("DROP INDEX spending_by_time").unwrap();
    drop(db);
    // As if it had been left like this.
    std::fs::write(path.with_extension("busy"), b"").unwrap();
    let known = ask(&home, Some(&id), MONDAY + HOUR);
    assert!(known.session.is_some(), "{known:?}");
    assert_eq!((known.today, known.block), (None, None), "not slowly");
    calls(&home, &[MONDAY + 2 * HOUR]);
    index.catch_up().unwrap();
    let known = ask(&home, Some(&id), MONDAY + HOUR);
    assert_eq!(known.today.unwrap().calls, 2);
}

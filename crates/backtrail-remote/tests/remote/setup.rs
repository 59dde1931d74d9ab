//! `init`: what it creates, and what it does the second time.

use backtrail::replica::ReplicaErrorKind;
use backtrail_remote::{Remote, init};

use crate::kit::{Directory, LONG_MS, Writer, fresh_log, lines_of, with_blobs};
use crate::servers::{Postgres, free_ports};

#[test]
fn a_database_becomes_a_remote_once() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.empty_database();
    let owner = cluster.options(&database, "postgres");
    let before = Remote::connect(&owner).unwrap_err();
    assert_eq!(before.kind, ReplicaErrorKind::Unfit, "{before}");
    assert!(before.message.contains("backtrail remote init"), "{before}");
    let done = init(&owner).unwrap();
    assert!(
        done.iter().any(|done| done.contains("schema backtrail")),
        "{done:?}"
    );
    let agent = Remote::connect(&cluster.options(&database, "agent")).unwrap();
    let log = fresh_log();
    let line = Writer::new(&agent, &log, "agent", LONG_MS).write("a line");
    assert_eq!(init(&owner).unwrap(), ["nothing to do"]);
    assert_eq!(lines_of(&agent, &log), [line]);
}

#[test]
fn two_who_set_up_at_once_take_turns() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let owner = cluster.options(&cluster.empty_database(), "postgres");
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| init(&owner).unwrap()))
            .collect();
        let all: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
        let idle = all.iter().filter(|done| **done == ["nothing to do"]);
        assert_eq!(idle.count(), 2, "{all:?}");
    });
    Remote::connect(&owner).unwrap();
}

#[test]
fn a_role_without_superpowers_sets_up_a_remote() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.empty_database();
    cluster.sql(
        &database,
        &format!("create role maker_{database} login createrole; grant create on database {database} to maker_{database}"),
    );
    let mut maker = cluster.options(&database, &format!("maker_{database}"));
    maker.schema = "team_one".to_owned();
    init(&maker).unwrap();
    assert_eq!(init(&maker).unwrap(), ["nothing to do"]);
    assert!(Remote::connect(&maker).unwrap().check().unwrap().may_purge);
    let owner = "select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'team_one'";
    assert_eq!(cluster.sql(&database, owner), "team_one_owner");
}

#[test]
fn tenants_do_not_see_each_other() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let mut other = cluster.options(&database, "postgres");
    other.schema = "team_two".to_owned();
    init(&other).unwrap();
    let log = fresh_log();
    let ours = Remote::connect(&cluster.options(&database, "agent")).unwrap();
    Writer::new(&ours, &log, "agent", LONG_MS).write("ours");
    let theirs = Remote::connect(&other).unwrap();
    Writer::new(&theirs, &log, "agent of two", LONG_MS).write("theirs");
    assert_eq!(lines_of(&ours, &log).len(), 1);
    let mut intruder = cluster.options(&database, "agent");
    intruder.schema = "team_two".to_owned();
    let error = Remote::connect(&intruder).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Denied, "{error}");
}

#[test]
fn what_is_not_there_is_away_or_unfit() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let absent = Remote::connect(&cluster.options("nowhere", "agent")).unwrap_err();
    assert_eq!(absent.kind, ReplicaErrorKind::Unfit, "{absent}");
    let [nobody] = free_ports();
    let url = format!("postgresql://agent:hush@127.0.0.1:{nobody}/x");
    let away = Remote::connect(&backtrail_remote::RemoteOptions::new(url)).unwrap_err();
    assert_eq!(away.kind, ReplicaErrorKind::Away, "{away}");
    assert!(
        away.message.contains(&format!("127.0.0.1:{nobody}/x")),
        "{away}"
    );
    assert!(!away.message.contains("hush"), "{away}");
}

#[test]
fn setting_up_tries_the_bucket() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let directory = Directory::new();
    let owner = cluster.options(&cluster.database(), "postgres");
    let done = init(&with_blobs(owner.clone(), directory.url())).unwrap();
    assert!(done[0].contains("takes blobs"), "{done:?}");
    let error = init(&with_blobs(owner, "ftp://somewhere".to_owned())).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
}

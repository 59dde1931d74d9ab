//! Clients and remotes of different versions.

use backtrail::replica::{Answer, Replica, ReplicaErrorKind, Request};
use backtrail_remote::{Remote, init};

use crate::kit::{LONG_MS, Writer, fresh_log};
use crate::servers::Postgres;

#[test]
fn an_older_client_works_as_long_as_the_remote_serves_it() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let options = cluster.options(&database, "agent");
    cluster.sql(
        &database,
        "update backtrail.about set version = version + 1",
    );
    let remote = Remote::connect(&options).unwrap();
    Writer::new(&remote, &fresh_log(), "older", LONG_MS).write("a line");
    let error = init(&cluster.options(&database, "postgres")).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
    cluster.sql(
        &database,
        "update backtrail.about set oldest_client = version",
    );
    let error = Remote::connect(&options).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
    assert!(error.message.contains("newer"), "{error}");
}

#[test]
fn an_older_remote_has_to_be_set_up_again() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    cluster.sql(
        &database,
        "update backtrail.about set version = version - 1",
    );
    let error = Remote::connect(&cluster.options(&database, "agent")).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
    assert!(error.message.contains("backtrail remote init"), "{error}");
}

#[test]
fn followers_go_on_after_a_dump_was_restored_to_another_server() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let remote = Remote::connect(&cluster.options(&database, "agent")).unwrap();
    let log = fresh_log();
    let mut writer = Writer::new(&remote, &log, "writer", LONG_MS);
    writer.write("before");
    // The other server has had fewer transactions: its numbers are lower.
    cluster.sql(
        &database,
        "update backtrail.change set id = id + 1000000000",
    );
    let changes = |after| match remote.ask(&Request::Changes { after, limit: 100 }) {
        Ok(Answer::Changes(changes)) => changes,
        other => panic!("{other:?}"),
    };
    init(&cluster.options(&database, "postgres")).unwrap();
    let old = changes(0).last().unwrap().id;
    writer.write("after");
    Writer::new(&remote, &fresh_log(), "another", LONG_MS);
    let new = changes(old);
    assert_eq!(new.len(), 2);
    assert_eq!(new[0].end, writer.end);
}

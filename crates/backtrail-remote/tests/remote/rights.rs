//! Roles: an agent calls functions and sees no table; a reader does not write; strangers do nothing.

use backtrail::replica::{Answer, Replica, ReplicaErrorKind, Request};
use backtrail_remote::Remote;

use crate::kit::{LONG_MS, Writer, fresh_log, lease, lines_of};
use crate::servers::Postgres;

/// Asserts that a role is refused what it tries.
fn refused(cluster: &Postgres, database: &str, role: &str, statement: &str) {
    let block = format!(
        "set session authorization {role};
         do $try$ begin
             execute $it${statement}$it$;
             raise exception 'was allowed';
         exception when insufficient_privilege then null; end $try$"
    );
    cluster.sql(database, &block);
}

#[test]
fn nobody_reads_or_writes_tables() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let tables = "select string_agg(relname, ' ') from pg_class
        where relnamespace = 'backtrail'::regnamespace and relkind in ('r', 'p')";
    let tables = cluster.sql(&database, tables);
    assert!(
        tables.contains("record_31") && tables.contains("blob"),
        "{tables}"
    );
    for role in ["agent", "reader", "admin", "stranger"] {
        let mut all = String::new();
        for table in tables.split(' ') {
            all += &format!(
                "select from backtrail.{table}\ndelete from backtrail.{table}\ntruncate backtrail.{table}\n"
            );
        }
        all += "insert into backtrail.about values (true, 1, 1, 1)\nselect nextval('backtrail.seal')\ncreate table backtrail.mine (n int)\n";
        let tries = all.lines().map(|statement| {
            format!(
                "begin execute $it${statement}$it$; raise exception 'was allowed: {}'; exception when insufficient_privilege then null; end;",
                statement.replace('\'', "")
            )
        });
        let block = format!(
            "set session authorization {role}; do $try$ begin {} end $try$",
            tries.collect::<String>()
        );
        cluster.sql(&database, &block);
    }
}

#[test]
fn inner_functions_are_for_the_owner_alone() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    for call in [
        "rely_on('{}')",
        "locked(0, 'x')",
        "keeper(0, 'x', true)",
        "durable()",
        "may('x')",
    ] {
        refused(
            cluster,
            &database,
            "agent",
            &format!("select backtrail.{call}"),
        );
    }
}

#[test]
fn an_agent_writes_and_does_not_purge() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let agent = Remote::connect(&cluster.options(&database, "agent")).unwrap();
    let log = fresh_log();
    let mut writer = Writer::new(&agent, &log, "agent", LONG_MS);
    writer.write("a line");
    let remove = Request::RemovePacks {
        condemned_ms: 0,
        limit: 1,
    };
    let condemn = Request::Condemn {
        packs: vec![([0; 32], 0)],
    };
    for request in [Request::Purge { log: log.clone() }, remove, condemn] {
        let error = agent.ask(&request).unwrap_err();
        assert_eq!(error.kind, ReplicaErrorKind::Denied, "{error}");
    }
    let admin = Remote::connect(&cluster.options(&database, "admin")).unwrap();
    assert_eq!(admin.ask(&Request::Purge { log }), Ok(Answer::Done));
}

#[test]
fn a_reader_reads_and_does_not_write() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let agent = Remote::connect(&cluster.options(&database, "agent")).unwrap();
    let log = fresh_log();
    let mut writer = Writer::new(&agent, &log, "agent", LONG_MS);
    let line = writer.write("a line");
    let reader = Remote::connect(&cluster.options(&database, "reader")).unwrap();
    assert_eq!(lines_of(&reader, &log), [line]);
    let delete = Request::Delete {
        log: log.clone(),
        deleted: true,
    };
    for request in [
        lease(&log, "reader", 1),
        writer.append(&[writer.next("no")]),
        delete,
    ] {
        let error = reader.ask(&request).unwrap_err();
        assert_eq!(error.kind, ReplicaErrorKind::Denied, "{error}");
    }
}

#[test]
fn strangers_and_wrong_passwords_are_denied() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let stranger = Remote::connect(&cluster.options(&database, "stranger")).unwrap_err();
    assert_eq!(stranger.kind, ReplicaErrorKind::Denied, "{stranger}");
    let none = Remote::connect(&cluster.options(&database, "locked")).unwrap_err();
    let wrong = Remote::connect(&cluster.options(&database, "locked:tapioca")).unwrap_err();
    for error in [none, wrong] {
        assert_eq!(error.kind, ReplicaErrorKind::Denied, "{error}");
        assert!(error.message.contains(&database), "{error}");
        assert!(!error.message.contains("tapioca"), "{error}");
    }
    // With its password it logs in, and has no rights either.
    let right = Remote::connect(&cluster.options(&database, "locked:open%20sesame")).unwrap_err();
    assert!(right.message.contains("permission denied"), "{right}");
}

#[test]
fn functions_run_with_a_search_path_of_their_own() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let bare = "select string_agg(proname, ' ') from pg_proc
        where pronamespace = 'backtrail'::regnamespace and prosecdef
        and not coalesce(proconfig, '{}') @> '{\"search_path=backtrail, pg_temp\"}'";
    assert_eq!(cluster.sql(&cluster.database(), bare), "");
    let open = "select string_agg(proname, ' ') from pg_proc p
        where pronamespace = 'backtrail'::regnamespace and has_function_privilege('stranger', p.oid, 'execute')";
    assert_eq!(cluster.sql(&cluster.database(), open), "");
}

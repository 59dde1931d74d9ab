//! No byte of a purged session is in a dump or a bucket.

use backtrail::replica::{Answer, Replica, Request};
use backtrail_remote::{Remote, RemoteOptions};
use std::time::Duration;

use crate::kit::{Directory, LONG_MS, Writer, fresh_log, line, payload, with_blobs};
use crate::network::{Odds, Proxy};
use crate::servers::{Postgres, Weed};

const SECRET: &str = "the purple elephant sings";

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

/// Returns whether a dump has the secret, as text or as PostgreSQL writes bytes.
fn has_secret(dump: &[u8]) -> bool {
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    contains(dump, SECRET.as_bytes()) || contains(dump, hex.as_bytes())
}

fn files_have_secret(directory: &Directory) -> bool {
    let mut files = directory.files().into_iter();
    files.any(|file| contains(&std::fs::read(file).unwrap(), SECRET.as_bytes()))
}

/// Writes the secret wherever a client can.
fn write_secrets(remote: &Remote) -> backtrail::replica::LogKey {
    let log = fresh_log();
    let lease = Request::Lease {
        log: log.clone(),
        holder: format!("{SECRET} on this machine"),
        ttl_ms: LONG_MS,
        wrapped_key: SECRET.into(),
    };
    let Ok(Answer::Leased { fence, .. }) = remote.ask(&lease) else {
        panic!("no lease")
    };
    let opener = line(0, format!("opener: {SECRET}"));
    let begin = Request::Begin {
        log: log.clone(),
        fence,
        head: None,
        trail: 0,
        opener,
        relies_on: Vec::new(),
        ttl_ms: LONG_MS,
    };
    let Ok(Answer::Appended(end)) = remote.ask(&begin) else {
        panic!("no trail")
    };
    let mut writer = Writer {
        replica: remote,
        log: log.clone(),
        fence,
        end,
        ttl_ms: LONG_MS,
    };
    let bytes = format!("payload: {SECRET}");
    remote
        .put_blob(&log, payload(bytes.as_bytes()), bytes.as_bytes())
        .unwrap();
    writer.write(&format!("line: {SECRET}"));
    log
}

#[test]
fn no_byte_of_a_purged_session_is_in_a_dump() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let remote = Remote::connect(&cluster.options(&database, "admin")).unwrap();
    let log = write_secrets(&remote);
    assert!(has_secret(&cluster.dump(&database)));
    assert_eq!(
        remote.ask(&Request::Purge { log: log.clone() }),
        Ok(Answer::Done)
    );
    let dump = cluster.dump(&database);
    assert!(!has_secret(&dump));
    // The id is left, and refused for ever.
    assert!(contains(&dump, log.id.as_str().as_bytes()));
}

#[test]
fn no_byte_of_a_purged_session_is_in_a_bucket() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let directory = Directory::new();
    let options = with_blobs(cluster.options(&database, "admin"), directory.url());
    let remote = Remote::connect(&options).unwrap();
    let log = write_secrets(&remote);
    assert!(files_have_secret(&directory));
    assert_eq!(
        remote.ask(&Request::Purge { log: log.clone() }),
        Ok(Answer::Done)
    );
    assert!(!has_secret(&cluster.dump(&database)));
    assert_eq!(directory.files().len(), 0);
    // Nor after a later push.
    let bytes = format!("payload: {SECRET}");
    remote
        .put_blob(&log, payload(bytes.as_bytes()), bytes.as_bytes())
        .unwrap();
    assert_eq!(directory.files().len(), 0);
    assert!(!has_secret(&cluster.dump(&database)));
}

/// A purge, and the options of one who cannot reach the bucket.
fn without_bucket(options: &RemoteOptions) -> RemoteOptions {
    RemoteOptions {
        blobs: None,
        ..options.clone()
    }
}

#[test]
fn a_purge_that_cannot_reach_the_bucket_fails_and_is_completed_later() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let directory = Directory::new();
    let options = with_blobs(
        cluster.options(&cluster.database(), "admin"),
        directory.url(),
    );
    let remote = Remote::connect(&options).unwrap();
    let log = write_secrets(&remote);
    let blind = Remote::connect(&without_bucket(&options)).unwrap();
    let purge = Request::Purge { log };
    assert!(blind.ask(&purge).is_err());
    assert!(files_have_secret(&directory));
    assert!(blind.ask(&purge).is_err());
    assert_eq!(remote.ask(&purge), Ok(Answer::Done));
    assert_eq!(directory.files().len(), 0);
}

#[test]
fn an_upload_that_a_purge_overtook_leaves_nothing_behind() {
    let (Some(cluster), Some(weed)) = (Postgres::shared(), Weed::shared()) else {
        return;
    };
    let database = cluster.database();
    // Every piece on the way to and from the bucket is late, and the purge is not.
    let proxy = Proxy::new(
        weed.port,
        Odds {
            late: 1000,
            ..Odds::default()
        },
    );
    let url = weed.place_through(proxy.port);
    let direct = url.replace(
        &format!("127.0.0.1:{}", proxy.port),
        &format!("127.0.0.1:{}", weed.port),
    );
    let slow = Remote::connect(&with_blobs(cluster.options(&database, "agent"), url)).unwrap();
    let fast = with_blobs(cluster.options(&database, "admin"), direct);
    let fast = Remote::connect(&fast).unwrap();
    for n in 0..4_u64 {
        let log = fresh_log();
        let bytes = SECRET.repeat(5000).into_bytes();
        Writer::new(&slow, &log, "writer", LONG_MS);
        std::thread::scope(|scope| {
            let put = scope.spawn(|| slow.put_blob(&log, payload(&bytes), &bytes));
            std::thread::sleep(Duration::from_millis(25 * n));
            assert_eq!(
                fast.ask(&Request::Purge { log: log.clone() }),
                Ok(Answer::Done)
            );
            assert_eq!(put.join().unwrap(), Ok(()));
        });
        assert_eq!(fast.has_blobs(&log, &[payload(&bytes)]), Ok(vec![false]));
        assert_eq!(weed.list(log.id.as_str()), Vec::<String>::new());
    }
}

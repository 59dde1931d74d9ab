//! Buckets that fail: what a line may name is there, or it is known to be missing.

use backtrail::replica::{
    Answer, BlobKind, BlobName, ObjectPlace, Replica, ReplicaErrorKind, Request,
};
use backtrail_remote::{BlobsCheck, Remote};

use crate::kit::{Directory, LONG_MS, Writer, fresh_log, payload, with_blobs};
use crate::servers::{Postgres, free_ports};

#[test]
fn a_bucket_that_is_away_takes_no_blob_and_says_so() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let [nobody] = free_ports();
    let url = format!(
        "s3://remotes/x?endpoint=http://127.0.0.1:{nobody}&region=here&allow_http=true&access_key_id=any&secret_access_key=hush"
    );
    let options = with_blobs(cluster.options(&cluster.database(), "agent"), url);
    let remote = Remote::connect(&options).unwrap();
    let log = fresh_log();
    Writer::new(&remote, &log, "writer", LONG_MS);
    let error = remote
        .put_blob(&log, payload(b"words"), b"words")
        .unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Away, "{error}");
    assert!(
        error.message.contains("s3://remotes/x") && !error.message.contains("hush"),
        "{error}"
    );
    assert_eq!(
        remote.has_blobs(&log, &[payload(b"words")]),
        Ok(vec![false])
    );
    assert_eq!(remote.get_blob(&log, payload(b"words"), None), Ok(None));
}

#[test]
fn a_blob_that_the_bucket_lost_is_missed_and_can_be_stored_again() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let directory = Directory::new();
    let options = with_blobs(
        cluster.options(&cluster.database(), "agent"),
        directory.url(),
    );
    let remote = Remote::connect(&options).unwrap();
    let log = fresh_log();
    let name = payload(b"words");
    for damage in [
        |path: &std::path::Path| std::fs::remove_file(path),
        |path: &std::path::Path| std::fs::write(path, b"wor"),
    ] {
        remote.put_blob(&log, name, b"words").unwrap();
        assert_eq!(remote.has_blobs(&log, &[name]), Ok(vec![true]));
        let [file] = &directory.files()[..] else {
            panic!("one file")
        };
        damage(file).unwrap();
        assert_eq!(remote.has_blobs(&log, &[name]), Ok(vec![false]));
        let whole = remote.get_blob(&log, name, None);
        let part = remote.get_blob(&log, name, Some((2, 3)));
        for got in [whole, part] {
            let missed = match &got {
                Ok(found) => found.is_none(),
                Err(error) => error.kind == ReplicaErrorKind::Corrupt,
            };
            assert!(missed, "{got:?}");
        }
        remote.put_blob(&log, name, b"words").unwrap();
        assert_eq!(
            remote.get_blob(&log, name, None),
            Ok(Some(b"words".to_vec()))
        );
    }
}

#[test]
fn two_clients_that_encrypt_the_same_blob_never_mix_their_bytes() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let directory = Directory::new();
    let mut options = with_blobs(
        cluster.options(&cluster.database(), "agent"),
        directory.url(),
    );
    options.keyed_names = true;
    let remote = Remote::connect(&options).unwrap();
    let log = fresh_log();
    let name = BlobName {
        kind: BlobKind::Payload,
        hash: [7; 32],
    };
    std::thread::scope(|scope| {
        for client in 0..8_u8 {
            let (remote, log) = (&remote, &log);
            scope.spawn(move || remote.put_blob(log, name, &[client; 5000]).unwrap());
        }
    });
    let got = remote.get_blob(&log, name, None).unwrap().unwrap();
    assert!(got.len() == 5000 && got.iter().all(|byte| *byte == got[0]));
    assert_eq!(directory.files().len(), 1);
}

#[test]
fn a_blob_whose_name_is_another_hash_is_refused() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let remote = Remote::connect(&cluster.options(&cluster.database(), "agent")).unwrap();
    let error = remote
        .put_blob(&fresh_log(), payload(b"words"), b"other words")
        .unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{error}");
}

#[test]
fn packs_that_could_not_be_removed_from_the_bucket_are_removed_later() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let directory = Directory::new();
    let database = cluster.database();
    let options = with_blobs(cluster.options(&database, "admin"), directory.url());
    let remote = Remote::connect(&options).unwrap();
    let log = fresh_log();
    let bytes = b"16 random bytes and objects";
    let name = BlobName {
        kind: BlobKind::Pack,
        ..payload(bytes)
    };
    remote.put_blob(&log, name, bytes).unwrap();
    let object = ObjectPlace {
        id: [3; 32],
        pack: name.hash,
        from: 16,
        bytes: 11,
    };
    let seal = Request::SealPack {
        log,
        objects: vec![object],
    };
    assert_eq!(remote.ask(&seal), Ok(Answer::Done));
    remote
        .ask(&Request::Condemn {
            packs: vec![(name.hash, 1)],
        })
        .unwrap();
    let remove = Request::RemovePacks {
        condemned_ms: 0,
        limit: 10,
    };
    // A client without the bucket removes the pack from the tables, and cannot remove its bytes.
    let without = Remote::connect(&cluster.options(&database, "admin")).unwrap();
    let error = without.ask(&remove).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
    assert!(error.message.contains("--blobs"), "{error}");
    assert_eq!(directory.files().len(), 1);
    assert_eq!(remote.ask(&remove), Ok(Answer::Packs(vec![])));
    assert_eq!(directory.files().len(), 0);
    assert_eq!(remote.ask(&seal), Ok(Answer::PacksGone(vec![name.hash])));
}

#[test]
fn a_check_tries_the_bucket() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let directory = Directory::new();
    let database = cluster.database();
    let options = with_blobs(cluster.options(&database, "agent"), directory.url());
    let check = Remote::connect(&options).unwrap().check().unwrap();
    assert_eq!(check.blobs, BlobsCheck::InBucket(directory.url()));
    assert_eq!(directory.files().len(), 0, "the probe was removed");
    assert!(check.may_read && check.may_append && !check.may_purge);
    assert!(check.clock_ahead_ms.abs() < 1000, "{check:?}");
    let check = Remote::connect(&cluster.options(&database, "admin"))
        .unwrap()
        .check()
        .unwrap();
    assert_eq!(check.blobs, BlobsCheck::InDatabase);
    assert!(check.may_purge);
}

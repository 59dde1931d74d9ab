//! What every replica promises, on each way to the database and with blobs in each place.

use backtrail::SessionId;
use backtrail::replica::{BlobKind, BlobName, LogKey};
use backtrail_remote::{Remote, RemoteOptions};
use backtrail_testkit::replica::promises::{self, Control};
use object_store::{ObjectStore, ObjectStoreExt};
use std::time::Duration;

use crate::kit::{Directory, fresh_id, with_blobs};
use crate::servers::{Pgbouncer, Postgres, Weed};

/// Where the test finds the blobs that it damages.
enum Place<'a> {
    Database(&'a Postgres, &'a str),
    Directory(&'a Directory),
    Bucket(&'a Weed, &'a str),
}

impl Control for Place<'_> {
    fn fresh(&self) -> SessionId {
        fresh_id()
    }

    fn outlive(&self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }

    fn damage(&self, _: &LogKey, name: BlobName) {
        let hash = blake3::Hash::from(name.hash).to_hex();
        match self {
            Self::Database(cluster, database) => {
                let update = format!(
                    "update backtrail.blob set data = set_byte(data, 7, 255 - get_byte(data, 7)) where hash = '\\x{hash}'"
                );
                cluster.sql(database, &update);
            }
            Self::Directory(directory) => {
                let mut files = directory.files().into_iter();
                let file = files.find(|path| path.to_string_lossy().contains(&*hash));
                let file = file.expect("the blob is a file");
                let mut bytes = std::fs::read(&file).unwrap();
                bytes[7] ^= 1;
                std::fs::write(&file, bytes).unwrap();
            }
            Self::Bucket(weed, url) => damage_in_bucket(weed, url, name, &hash),
        }
    }
}

fn damage_in_bucket(weed: &Weed, url: &str, name: BlobName, hash: &str) {
    let store = weed.store();
    let below = url.split(['/', '?']).nth(3).unwrap();
    let kind = match name.kind {
        BlobKind::Payload => "payload",
        BlobKind::Pack => "pack",
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        use futures_util::TryStreamExt;
        let found = store.list(Some(&format!("{below}/{kind}").into()));
        let found: Vec<_> = found.try_collect().await.unwrap();
        let mut found = found.into_iter().map(|found| found.location);
        let place = found.find(|path| path.as_ref().contains(hash)).unwrap();
        let blob = store.get(&place).await.unwrap();
        let mut bytes = blob.bytes().await.unwrap().to_vec();
        bytes[7] ^= 1;
        store.put(&place, bytes.into()).await.unwrap();
    });
}

fn keeps_all(options: &RemoteOptions, place: &Place<'_>) {
    promises::all(&Remote::connect(options).unwrap(), place);
}

#[test]
fn postgres_keeps_every_promise_with_blobs_in_the_database() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let database = cluster.database();
    let options = cluster.options(&database, "admin");
    keeps_all(&options, &Place::Database(cluster, &database));
}

#[test]
fn postgres_keeps_every_promise_with_blobs_in_a_directory() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let directory = Directory::new();
    let options = cluster.options(&cluster.database(), "admin");
    keeps_all(
        &with_blobs(options, directory.url()),
        &Place::Directory(&directory),
    );
}

#[test]
fn postgres_keeps_every_promise_with_blobs_in_a_bucket() {
    let (Some(cluster), Some(weed)) = (Postgres::shared(), Weed::shared()) else {
        return;
    };
    let url = weed.place();
    let options = cluster.options(&cluster.database(), "admin");
    keeps_all(
        &with_blobs(options, url.clone()),
        &Place::Bucket(weed, &url),
    );
}

#[test]
fn pgbouncer_in_transaction_mode_keeps_every_promise_with_blobs_in_the_database() {
    let (Some(cluster), Some(bouncer)) = (Postgres::shared(), Pgbouncer::shared()) else {
        return;
    };
    let database = cluster.database();
    let options = bouncer.options(&database, "admin");
    keeps_all(&options, &Place::Database(cluster, &database));
}

#[test]
fn pgbouncer_in_transaction_mode_keeps_every_promise_with_blobs_in_a_directory() {
    let (Some(cluster), Some(bouncer)) = (Postgres::shared(), Pgbouncer::shared()) else {
        return;
    };
    let directory = Directory::new();
    let options = bouncer.options(&cluster.database(), "admin");
    keeps_all(
        &with_blobs(options, directory.url()),
        &Place::Directory(&directory),
    );
}

#[test]
fn pgbouncer_in_transaction_mode_keeps_every_promise_with_blobs_in_a_bucket() {
    let (Some(cluster), Some(bouncer)) = (Postgres::shared(), Pgbouncer::shared()) else {
        return;
    };
    let Some(weed) = Weed::shared() else { return };
    let url = weed.place();
    let options = bouncer.options(&cluster.database(), "admin");
    keeps_all(
        &with_blobs(options, url.clone()),
        &Place::Bucket(weed, &url),
    );
}

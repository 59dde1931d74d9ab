//! Payloads and packs, sealed.

use backtrail::replica::{Answer, BlobKind, BlobName, LogKey, Replica, ReplicaError};

use super::chunks::Part;
use super::errors::{corrupt, named, unfit};
use super::{EncryptedReplica, Opened};

impl<R: Replica> EncryptedReplica<R> {
    pub(super) fn has_sealed(
        &self,
        log: &LogKey,
        names: &[BlobName],
    ) -> Result<Vec<bool>, ReplicaError> {
        let Opened::Keys(keys) = self.keys(log)? else {
            return Ok(vec![false; names.len()]);
        };
        let hidden: Vec<BlobName> = names.iter().map(|name| keys.hide_name(*name)).collect();
        self.inner.has_blobs(log, &hidden)
    }

    pub(super) fn put_sealed(
        &self,
        log: &LogKey,
        name: BlobName,
        bytes: &[u8],
    ) -> Result<(), ReplicaError> {
        let keys = match self.keys(log)? {
            Opened::Keys(keys) => keys,
            // Nothing is stored of it, and the append that follows says so.
            Opened::Gone(Answer::Purged(_)) => return Ok(()),
            Opened::Gone(_) => {
                return Err(unfit(format!(
                    "cannot store {}: {} has no key yet; take its lease first",
                    blob(name),
                    named(log)
                )));
            }
        };
        let sealed = keys.chunks(name).seal(bytes);
        self.inner.put_blob(log, keys.hide_name(name), &sealed)
    }

    pub(super) fn get_whole(
        &self,
        log: &LogKey,
        name: BlobName,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        let Opened::Keys(keys) = self.keys(log)? else {
            return Ok(None);
        };
        let Some(sealed) = self.inner.get_blob(log, keys.hide_name(name), None)? else {
            return Ok(None);
        };
        let plain = keys.chunks(name).open(&sealed);
        plain.map(Some).map_err(|why| unopened(log, name, &why))
    }

    pub(super) fn get_part(
        &self,
        log: &LogKey,
        name: BlobName,
        from: u64,
        bytes: u64,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        let Opened::Keys(keys) = self.keys(log)? else {
            return Ok(None);
        };
        let missing = || unopened(log, name, "it does not have this part");
        let part = Part::new(from, bytes).ok_or_else(missing)?;
        let hidden = keys.hide_name(name);
        let Some(sealed) = self.inner.get_blob(log, hidden, Some(part.sealed))? else {
            return Ok(None);
        };
        let plain = part.open(&keys.chunks(name), &sealed);
        plain.map(Some).map_err(|why| unopened(log, name, &why))
    }
}

fn unopened(log: &LogKey, name: BlobName, why: &str) -> ReplicaError {
    corrupt(format!(
        "cannot decrypt {} of {}: {why}",
        blob(name),
        named(log)
    ))
}

fn blob(name: BlobName) -> String {
    let hash = blake3::Hash::from_bytes(name.hash).to_hex();
    let short = &hash[..16];
    match name.kind {
        BlobKind::Payload => format!("payload {short}…"),
        BlobKind::Pack => format!("pack {short}…"),
    }
}

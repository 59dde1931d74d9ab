//! A replica that was added as plaintext: what is encrypted there is refused, not misread.

use backtrail::replica::{
    Answer, BlobName, LogKey, LogStatus, Replica, ReplicaError, ReplicaErrorKind, Request,
};

/// Passes everything on, and refuses logs that are encrypted.
#[derive(Debug)]
pub(super) struct PlainReplica<R>(pub(super) R);

impl<R: Replica> Replica for PlainReplica<R> {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        let answer = self.0.ask(request)?;
        match &answer {
            Answer::Log(log) | Answer::Leased { log, .. } => check(request, log)?,
            _ => {}
        }
        Ok(answer)
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        self.0.has_blobs(log, names)
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        self.0.put_blob(log, name, bytes)
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        self.0.get_blob(log, name, part)
    }
}

fn check(request: &Request, status: &LogStatus) -> Result<(), ReplicaError> {
    if status.wrapped_key.is_empty() {
        return Ok(());
    }
    let what = match request {
        Request::Status { log } | Request::Lease { log, .. } => format!("session {}", log.id),
        _ => "what is there".to_owned(),
    };
    Err(ReplicaError {
        kind: ReplicaErrorKind::Denied,
        message: format!(
            "{what} is encrypted at this remote, which was added with --plaintext; add it again \
             with --encrypt"
        ),
    })
}

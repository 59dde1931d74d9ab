//! A replica on PostgreSQL.

use std::fmt;
use std::future::Future;

use backtrail::replica::{
    Answer, BlobName, LogKey, Replica, ReplicaError, ReplicaErrorKind, Request,
};
use tokio::runtime::Runtime;

use crate::blobs::Blobs;
use crate::bucket::Bucket;
use crate::check::{RemoteCheck, check, check_version};
use crate::error::{Doing, error, unfit};
use crate::lines::{self, Reading, Writing};
use crate::options::RemoteOptions;
use crate::pool::Pool;
use crate::runtime::runtime;
use crate::{logs, packs};

/// A replica on PostgreSQL, with blobs in an object store or in the database.
///
/// It can be shared by threads: they take turns with its connections.
pub struct Remote {
    pool: Pool,
    bucket: Option<Bucket>,
    keyed_names: bool,
    /// Runs on the threads that ask, as long as they wait. Taken when the remote is dropped.
    runtime: Option<Runtime>,
}

impl Remote {
    /// Returns a remote without connecting to it: whoever asks first does.
    ///
    /// # Errors
    ///
    /// Fails if the options cannot be right.
    pub fn new(options: &RemoteOptions) -> Result<Self, ReplicaError> {
        Ok(Self {
            pool: Pool::new(options)?,
            bucket: Bucket::new(options)?,
            keyed_names: options.keyed_names,
            runtime: Some(runtime()?),
        })
    }

    /// Connects to a remote.
    ///
    /// # Errors
    ///
    /// Fails if it is away, refuses the client, or is not set up for this version.
    pub fn connect(options: &RemoteOptions) -> Result<Self, ReplicaError> {
        let remote = Self::new(options)?;
        remote.run(check_version(&remote.pool))?;
        Ok(remote)
    }

    /// Tries what a client needs: the version, the rights, the clocks, and a probe in the bucket.
    ///
    /// # Errors
    ///
    /// Fails if the database or the bucket does.
    pub fn check(&self) -> Result<RemoteCheck, ReplicaError> {
        self.run(check(&self.pool, self.bucket.as_ref()))
    }

    fn blobs(&self) -> Blobs<'_> {
        Blobs {
            pool: &self.pool,
            bucket: self.bucket.as_ref(),
            keyed_names: self.keyed_names,
        }
    }

    fn run<T>(
        &self,
        work: impl Future<Output = Result<T, ReplicaError>>,
    ) -> Result<T, ReplicaError> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => Err(error(
                ReplicaErrorKind::Away,
                "the remote was closed".into(),
            )),
        }
    }

    async fn answer(&self, request: &Request) -> Result<Answer, ReplicaError> {
        match request {
            Request::SealPack { objects, .. } => packs::seal(&self.pool, objects).await,
            Request::Locate { ids, .. } => packs::locate(&self.pool, ids).await,
            Request::Packs { after, limit } => packs::list(&self.pool, *after, *limit).await,
            Request::Condemn { packs } => packs::condemn(&self.pool, packs).await,
            Request::RemovePacks {
                condemned_ms,
                limit,
            } => {
                let removed = packs::remove(&self.pool, *condemned_ms, *limit).await?;
                self.blobs().sweep(Doing::Remote("remove packs")).await?;
                Ok(removed)
            }
            Request::Purge { log } => {
                self.blobs().purge(log).await?;
                Ok(Answer::Done)
            }
            request => self.answer_about_log(request).await,
        }
    }

    async fn answer_about_log(&self, request: &Request) -> Result<Answer, ReplicaError> {
        let pool = &self.pool;
        match request {
            Request::Status { log } => logs::status(pool, log).await,
            Request::List { after, limit } => logs::list(pool, after.as_ref(), *limit).await,
            Request::Lease {
                log,
                holder,
                ttl_ms,
                wrapped_key,
            } => logs::take_lease(pool, log, holder, *ttl_ms, wrapped_key).await,
            Request::Renew { log, fence, ttl_ms } => logs::renew(pool, log, *fence, *ttl_ms).await,
            Request::Release { log, fence } => logs::release(pool, log, *fence).await,
            Request::Delete { log, deleted } => logs::delete(pool, log, *deleted).await,
            Request::Trails { log } => lines::trails(pool, log).await,
            Request::Changes { after, limit } => lines::changes(pool, *after, *limit).await,
            request => self.answer_about_lines(request).await,
        }
    }

    async fn answer_about_lines(&self, request: &Request) -> Result<Answer, ReplicaError> {
        match request {
            Request::Append {
                log,
                fence,
                after,
                lines,
                relies_on,
                ttl_ms,
            } => {
                let writing = Writing {
                    log,
                    fence: *fence,
                    relies_on,
                    ttl_ms: *ttl_ms,
                };
                lines::append(&self.pool, &writing, *after, lines).await
            }
            Request::Begin {
                log,
                fence,
                head,
                trail,
                opener,
                relies_on,
                ttl_ms,
            } => {
                let writing = Writing {
                    log,
                    fence: *fence,
                    relies_on,
                    ttl_ms: *ttl_ms,
                };
                lines::begin(&self.pool, &writing, *head, *trail, opener).await
            }
            Request::Read {
                log,
                trail,
                beyond,
                order,
                max_bytes,
            } => {
                let reading = Reading {
                    log,
                    trail: *trail,
                    beyond: *beyond,
                    order: *order,
                    max_bytes: *max_bytes,
                };
                lines::read(&self.pool, &reading).await
            }
            _ => Err(unfit("this version does not know the request")),
        }
    }
}

impl Replica for Remote {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        self.run(self.answer(request))
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        self.run(self.blobs().has(log, names))
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        self.run(self.blobs().put(log, name, bytes))
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        self.run(self.blobs().get(log, name, part))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Waiting for it would panic where a runtime drives the thread.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("database", &self.pool.name())
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

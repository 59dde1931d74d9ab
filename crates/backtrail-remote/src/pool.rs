//! A few connections to the database, which are replaced when they drop.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backtrail::replica::{ReplicaError, ReplicaErrorKind};
use tokio::sync::Semaphore;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Doing, error, is_lost, of_database};
use crate::options::{RemoteOptions, Target};
use crate::tls;

/// The parameters of a call, with their types: so the server is not asked for them first.
pub(crate) type Params<'a> = [(&'a (dyn ToSql + Sync), Type)];

pub(crate) struct Pool {
    target: Target,
    tls: Option<MakeRustlsConnect>,
    timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Client>>,
}

impl Pool {
    pub(crate) fn new(options: &RemoteOptions) -> Result<Self, ReplicaError> {
        let target = Target::new(options)?;
        Ok(Self {
            tls: tls::connector(&target.verification)?,
            target,
            timeout: options.timeout,
            permits: Semaphore::new(options.connections.max(1)),
            idle: Mutex::default(),
        })
    }

    /// Returns the host and the database, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.target.name
    }

    pub(crate) fn schema(&self) -> &str {
        &self.target.schema
    }

    /// Calls a function of the remote: one round trip, one transaction.
    pub(crate) async fn call(
        &self,
        doing: Doing<'_>,
        function: &str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, ReplicaError> {
        self.call_for(self.timeout, doing, function, params).await
    }

    /// Calls a function with or for this many bytes.
    pub(crate) async fn call_with_bytes(
        &self,
        bytes: u64,
        doing: Doing<'_>,
        function: &str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, ReplicaError> {
        // A slow line carries 100 kB/s.
        let timeout = self.timeout + Duration::from_millis(bytes / 100);
        self.call_for(timeout, doing, function, params).await
    }

    async fn call_for(
        &self,
        timeout: Duration,
        doing: Doing<'_>,
        function: &str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, ReplicaError> {
        let sql = statement(self.schema(), function, params.len());
        match tokio::time::timeout(timeout, self.query(doing, &sql, params)).await {
            Ok(answered) => answered,
            // The connection is dropped with the call, for its answer may still come.
            Err(_) => Err(self.too_late(doing, timeout)),
        }
    }

    /// Every request may be asked again after its answer was lost. So if a connection turns out to have
    /// dropped while it was idle, the call is repeated with a new one.
    async fn query(
        &self,
        doing: Doing<'_>,
        sql: &str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, ReplicaError> {
        let permit = self.permits.acquire().await;
        let _permit = permit.map_err(|_| self.closed(doing))?;
        if let Some(client) = self.take_idle() {
            match client.query_typed(sql, params).await {
                Err(cause) if is_lost(&cause) => lock(&self.idle).clear(),
                answered => return self.finish(client, doing, answered),
            }
        }
        let client = self.connect(doing).await?;
        let answered = client.query_typed(sql, params).await;
        self.finish(client, doing, answered)
    }

    fn finish(
        &self,
        client: Client,
        doing: Doing<'_>,
        answered: Result<Vec<Row>, tokio_postgres::Error>,
    ) -> Result<Vec<Row>, ReplicaError> {
        if !client.is_closed() && !answered.as_ref().is_err_and(is_lost) {
            lock(&self.idle).push(client);
        }
        answered.map_err(|cause| of_database(doing, self.name(), &cause))
    }

    fn take_idle(&self) -> Option<Client> {
        let mut idle = lock(&self.idle);
        idle.retain(|client| !client.is_closed());
        idle.pop()
    }

    /// Returns a new connection.
    pub(crate) async fn connect(&self, doing: Doing<'_>) -> Result<Client, ReplicaError> {
        let Target { config, .. } = &self.target;
        let connected = match &self.tls {
            None => config.connect(NoTls).await.map(|(client, connection)| {
                tokio::spawn(connection);
                client
            }),
            Some(tls) => config
                .connect(tls.clone())
                .await
                .map(|(client, connection)| {
                    tokio::spawn(connection);
                    client
                }),
        };
        connected.map_err(|cause| of_database(doing, self.name(), &cause))
    }

    fn too_late(&self, doing: Doing<'_>, timeout: Duration) -> ReplicaError {
        let message = format!(
            "cannot {doing} at {}: no answer within {} s",
            self.name(),
            timeout.as_secs_f32()
        );
        error(ReplicaErrorKind::Away, message)
    }

    fn closed(&self, doing: Doing<'_>) -> ReplicaError {
        let message = format!("cannot {doing} at {}: it was closed", self.name());
        error(ReplicaErrorKind::Away, message)
    }
}

fn statement(schema: &str, function: &str, params: usize) -> String {
    let params: Vec<String> = (1..=params).map(|at| format!("${at}")).collect();
    format!("select * from {schema}.{function}({})", params.join(", "))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

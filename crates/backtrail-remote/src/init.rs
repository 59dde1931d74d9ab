//! Setting up a remote: roles, schema, migrations and rights.

use backtrail::replica::ReplicaError;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::bucket::Bucket;
use crate::check::probe;
use crate::error::{Doing, of_database, unfit};
use crate::options::RemoteOptions;
use crate::pool::Pool;
use crate::roles;
use crate::runtime::runtime;
use crate::version::{MIGRATIONS, OLDEST_CLIENT, VERSION};

/// Sets up a remote, or brings it to this version, and returns what was done. Everything happens in one
/// transaction. The role of the URL needs the rights to create schemas and roles.
///
/// # Errors
///
/// Fails if the database or the bucket refuses, or if a newer version set it up.
pub fn init(options: &RemoteOptions) -> Result<Vec<String>, ReplicaError> {
    let pool = Pool::new(options)?;
    let bucket = Bucket::new(options)?;
    runtime()?.block_on(async {
        let doing = Doing::Remote("set up the remote");
        let client = pool.connect(doing).await?;
        let mut setup = Setup {
            client,
            pool: &pool,
            done: Vec::new(),
        };
        setup.run().await?;
        if let Some(bucket) = &bucket {
            probe(bucket).await?;
            setup.done.push(format!("{} takes blobs", bucket.name()));
        }
        if setup.done.is_empty() {
            setup.done.push("nothing to do".to_owned());
        }
        Ok(setup.done)
    })
}

struct Setup<'a> {
    client: Client,
    pool: &'a Pool,
    done: Vec<String>,
}

impl Setup<'_> {
    /// A connection that is dropped before the commit takes everything back.
    async fn run(&mut self) -> Result<(), ReplicaError> {
        let schema = self.pool.schema().to_owned();
        // Two who set up at once take turns.
        self.execute("begin; select pg_advisory_xact_lock(2147483647, 24)")
            .await?;
        let old = self.version(&schema).await?;
        if old > VERSION {
            return Err(unfit(&format!(
                "a newer backtrail set up the remote at {}: use that one",
                self.pool.name()
            )));
        }
        self.execute(&roles::create(&schema)).await?;
        if !self.has_schema(&schema).await? {
            self.execute(&format!(
                "create schema {schema} authorization {schema}_owner"
            ))
            .await?;
            self.done.push(format!(
                "created the schema {schema}, and the roles {schema}_reader, {schema}_agent and {schema}_admin"
            ));
        }
        self.execute(&format!(
            "set local role {schema}_owner; set local search_path = {schema}, pg_temp"
        ))
        .await?;
        if old < VERSION {
            self.migrate(&schema, old).await?;
        }
        self.number_changes_above_old_ones().await?;
        self.execute(&roles::grant(&schema)).await?;
        self.execute("commit").await
    }

    async fn migrate(&mut self, schema: &str, old: i32) -> Result<(), ReplicaError> {
        let done = usize::try_from(old).unwrap_or(0);
        for migration in MIGRATIONS.iter().skip(done) {
            self.execute(&migration.replace("@schema@", schema)).await?;
        }
        let about = format!(
            "insert into about (version, oldest_client) values ({VERSION}, {OLDEST_CLIENT})
             on conflict (only_row) do update set version = {VERSION}, oldest_client = {OLDEST_CLIENT}"
        );
        self.execute(&about).await?;
        self.done.push(match old {
            0 => format!("created its tables and functions, version {VERSION}"),
            old => format!("brought it from version {old} to {VERSION}"),
        });
        Ok(())
    }

    /// Numbers of changes are those of transactions, which begin anew on a server that a dump was
    /// restored to.
    async fn number_changes_above_old_ones(&self) -> Result<(), ReplicaError> {
        self.execute(
            "update about set change_base = newest
             from (select coalesce(max(id), 0) as newest from change) as changes
             where newest >= change_base + pg_current_xact_id()::text::bigint",
        )
        .await
    }

    /// Returns the number of the newest migration there; 0 if there is none.
    async fn version(&self, schema: &str) -> Result<i32, ReplicaError> {
        let table = format!("{schema}.about");
        if !self
            .is_there("select to_regclass($1) is not null", &table)
            .await?
        {
            return Ok(0);
        }
        // Whoever may set it up may also be the owner.
        let sql = format!("select version from {schema}.about");
        let rows = self.client.query_typed(&sql, &[]).await;
        let rows = rows.map_err(|cause| self.failed(&cause))?;
        Ok(rows
            .first()
            .and_then(|row| row.try_get(0).ok())
            .unwrap_or(0))
    }

    async fn has_schema(&self, schema: &str) -> Result<bool, ReplicaError> {
        self.is_there("select to_regnamespace($1) is not null", schema)
            .await
    }

    async fn is_there(&self, sql: &str, name: &str) -> Result<bool, ReplicaError> {
        let rows = self.client.query_typed(sql, &[(&name, Type::TEXT)]).await;
        let rows = rows.map_err(|cause| self.failed(&cause))?;
        Ok(rows
            .first()
            .is_some_and(|row| row.try_get(0).unwrap_or(false)))
    }

    async fn execute(&self, sql: &str) -> Result<(), ReplicaError> {
        let executed = self.client.batch_execute(sql).await;
        executed.map_err(|cause| self.failed(&cause))
    }

    fn failed(&self, cause: &tokio_postgres::Error) -> ReplicaError {
        of_database(Doing::Remote("set up the remote"), self.pool.name(), cause)
    }
}

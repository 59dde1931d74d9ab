//! A bucket of an object store, or a directory.

use std::fmt;
use std::path::Path as FilePath;
use std::time::Duration;

use backtrail::replica::{ReplicaError, ReplicaErrorKind};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, GetOptions, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutPayload,
    RetryConfig,
};
use url::Url;

use crate::error::{Doing, chain, error, unfit};
use crate::options::RemoteOptions;
use crate::tls;

/// How many requests go to the bucket at once.
pub(crate) const AT_ONCE: usize = 16;

pub(crate) struct Bucket {
    store: Box<dyn ObjectStore>,
    below: Path,
    /// The URL without its settings, for messages.
    name: String,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Bucket {
    /// Returns the bucket that the options name.
    pub(crate) fn new(options: &RemoteOptions) -> Result<Option<Self>, ReplicaError> {
        let Some(text) = &options.blobs else {
            return Ok(None);
        };
        tls::choose_cryptography();
        let mut url: Url = text.parse().map_err(|_| not_a_bucket())?;
        let mut settings: Vec<(String, String)> = defaults();
        settings.extend(options.blob_settings.iter().cloned());
        settings.extend(url.query_pairs().into_owned());
        url.set_query(None);
        let has_secret = url.password().is_some();
        if has_secret {
            return Err(unfit(
                "the URL of the blobs must not have a password: set it in the environment",
            ));
        }
        let (scheme, below) = ObjectStoreScheme::parse(&url).map_err(|_| not_a_bucket())?;
        let store = open(&scheme, &url, &settings)?;
        Ok(Some(Self {
            store,
            below: match scheme {
                ObjectStoreScheme::Local => Path::default(),
                _ => below,
            },
            name: url.to_string(),
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn at(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.below.clone(), |path, part| path.join(part))
    }

    pub(crate) async fn put(
        &self,
        doing: Doing<'_>,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), ReplicaError> {
        let path = self.at(name);
        let put = self
            .store
            .put(&path, PutPayload::from(bytes.to_vec()))
            .await;
        put.map(drop).map_err(|cause| self.failed(doing, &cause))
    }

    /// Returns how many bytes a blob has; `None` if it is not there.
    pub(crate) async fn size(
        &self,
        doing: Doing<'_>,
        name: &str,
    ) -> Result<Option<u64>, ReplicaError> {
        let head = self
            .store
            .head(&self.at(name))
            .await
            .map(|found| found.size);
        self.unless_missing(doing, head)
    }

    pub(crate) async fn get(
        &self,
        doing: Doing<'_>,
        name: &str,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        let part = part.map(|(from, bytes)| from..from.saturating_add(bytes));
        let options = GetOptions::new().with_range(part);
        let got = match self.store.get_opts(&self.at(name), options).await {
            Ok(got) => got.bytes().await,
            Err(cause) => Err(cause),
        };
        self.unless_missing(doing, got.map(|bytes| bytes.to_vec()))
    }

    /// Removes a blob, or all below a name that ends in a slash.
    pub(crate) async fn remove(&self, doing: Doing<'_>, name: &str) -> Result<(), ReplicaError> {
        let path = self.at(name);
        let all = match name.ends_with('/') {
            true => {
                self.store
                    .list(Some(&path))
                    .map_ok(|found| found.location)
                    .try_collect()
                    .await
            }
            false => Ok(vec![path]),
        };
        let all: Vec<Path> = all.map_err(|cause| self.failed(doing, &cause))?;
        let removals = stream::iter(all).map(|path| async move {
            let removed = self.store.delete(&path).await;
            self.unless_missing(doing, removed).map(drop)
        });
        removals.buffer_unordered(AT_ONCE).try_collect().await
    }

    fn unless_missing<T>(
        &self,
        doing: Doing<'_>,
        result: Result<T, Error>,
    ) -> Result<Option<T>, ReplicaError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(cause) => Err(self.failed(doing, &cause)),
        }
    }

    fn failed(&self, doing: Doing<'_>, cause: &Error) -> ReplicaError {
        let kind = match cause {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                ReplicaErrorKind::Denied
            }
            Error::NotFound { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::InvalidPath { .. }
            | Error::UnknownConfigurationKey { .. } => ReplicaErrorKind::Unfit,
            _ => ReplicaErrorKind::Away,
        };
        error(
            kind,
            format!("cannot {doing} at {}: {}", self.name, chain(cause)),
        )
    }
}

fn not_a_bucket() -> ReplicaError {
    unfit(
        "the URL of the blobs is not valid: use s3://BUCKET/PREFIX, gs://…, az://… or file:///DIRECTORY",
    )
}

/// Large blobs take long; a server that is away is noticed sooner.
fn defaults() -> Vec<(String, String)> {
    [
        ("timeout", "600 seconds"),
        ("connect_timeout", "10 seconds"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 5,
        retry_timeout: Duration::from_secs(20),
    }
}

macro_rules! build {
    ($builder:expr, $url:expr, $settings:expr) => {{
        let builder = $builder.with_url($url.as_str()).with_retry(retries());
        let builder = $settings.iter().fold(builder, |builder, (key, value)| {
            match key.to_ascii_lowercase().parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            }
        });
        builder
            .build()
            .map(|store| Box::new(store) as Box<dyn ObjectStore>)
    }};
}

fn open(
    scheme: &ObjectStoreScheme,
    url: &Url,
    settings: &[(String, String)],
) -> Result<Box<dyn ObjectStore>, ReplicaError> {
    let opened = match scheme {
        ObjectStoreScheme::Local => return directory(url),
        ObjectStoreScheme::AmazonS3 => build!(AmazonS3Builder::new(), url, settings),
        ObjectStoreScheme::GoogleCloudStorage => {
            build!(GoogleCloudStorageBuilder::new(), url, settings)
        }
        ObjectStoreScheme::MicrosoftAzure => build!(MicrosoftAzureBuilder::new(), url, settings),
        _ => return Err(not_a_bucket()),
    };
    opened.map_err(|cause| unfit(&format!("cannot use {url} for blobs: {}", chain(&cause))))
}

/// Opens a directory, which is created. Blobs in it are synced before they are acknowledged.
fn directory(url: &Url) -> Result<Box<dyn ObjectStore>, ReplicaError> {
    let path = url.to_file_path().map_err(|()| not_a_bucket())?;
    let broken = |cause: &dyn fmt::Display| {
        let path = FilePath::display(&path);
        unfit(&format!("cannot use {path} for blobs: {cause}"))
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the directory of a remote is not part of a store"
    )]
    std::fs::create_dir_all(&path).map_err(|cause| broken(&cause))?;
    let opened = LocalFileSystem::new_with_prefix(&path).map_err(|cause| broken(&cause))?;
    Ok(Box::new(opened.with_fsync(true)))
}

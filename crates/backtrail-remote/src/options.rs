//! Where a remote is, and how to reach it.

use std::fmt;
use std::time::Duration;

use backtrail::replica::ReplicaError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use url::form_urlencoded;

use crate::error::unfit;
use crate::tls::Verification;

/// Where a remote is, and how to reach it.
#[derive(Clone)]
pub struct RemoteOptions {
    /// The database, as `postgresql://USER@HOST/DATABASE`.
    ///
    /// `sslmode` is `verify-full` unless the host is this machine; `require` and `verify-ca` mean the
    /// same, `prefer` verifies if the server has TLS, and `disable` switches it off. `sslrootcert` names
    /// a file of certificates to trust instead of the machine's.
    pub url: String,
    /// Where blobs are: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or `file:///DIRECTORY`; `None` for the
    /// database. Settings may follow, as in `s3://b/p?endpoint=https://…&region=…`.
    pub blobs: Option<String>,
    /// Settings and secrets of the object store by the names of their environment variables, such as
    /// `AWS_ACCESS_KEY_ID`. Others are ignored, so the whole environment can be given.
    pub blob_settings: Vec<(String, String)>,
    /// The schema of the database. Each tenant has one, with roles of its own.
    pub schema: String,
    /// Whether names of blobs are keyed hashes, which cannot be compared with the bytes.
    pub keyed_names: bool,
    /// How many connections are open at most.
    pub connections: usize,
    /// How long an answer may take. Large blobs get more.
    pub timeout: Duration,
}

impl RemoteOptions {
    /// Returns the options of a remote that keeps blobs in the database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            blobs: None,
            blob_settings: Vec::new(),
            schema: "backtrail".to_owned(),
            keyed_names: false,
            connections: 4,
            timeout: Duration::from_secs(30),
        }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both URLs and the settings may hold passwords.
        f.debug_struct("RemoteOptions")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// A database, understood.
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) verification: Verification,
    /// The host and the database, for messages.
    pub(crate) name: String,
    pub(crate) schema: String,
}

impl Target {
    pub(crate) fn new(options: &RemoteOptions) -> Result<Self, ReplicaError> {
        check_schema(&options.schema)?;
        let (url, tls) = split_tls(&options.url)?;
        // The error of the parser may quote the URL, and with it a password.
        let mut config: Config = url.parse().map_err(|_| {
            unfit("the URL of the remote is not valid: use postgresql://USER@HOST/DATABASE")
        })?;
        if config.get_application_name().is_none() {
            config.application_name("backtrail");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        // A connection that died without a word is noticed while it is idle.
        config.keepalives_idle(Duration::from_secs(30));
        let verification = tls.verification(is_here(&config))?;
        config.ssl_mode(match verification {
            Verification::Off => SslMode::Disable,
            Verification::IfOffered(_) => SslMode::Prefer,
            Verification::Always(_) => SslMode::Require,
        });
        Ok(Self {
            name: name(&config),
            config,
            verification,
            schema: options.schema.clone(),
        })
    }
}

/// Names of schemas become part of statements and of roles.
fn check_schema(schema: &str) -> Result<(), ReplicaError> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
    let starts = schema.starts_with(|c: char| c.is_ascii_lowercase());
    if starts && schema.len() <= 40 && schema.bytes().all(plain) {
        return Ok(());
    }
    Err(unfit(
        "the name of a schema has up to 40 lower-case letters, digits and _, and begins with a letter",
    ))
}

/// What a URL says about TLS.
#[derive(Default)]
struct TlsWishes {
    mode: Option<String>,
    roots: Option<String>,
}

impl TlsWishes {
    fn verification(self, here: bool) -> Result<Verification, ReplicaError> {
        match self.mode.as_deref() {
            Some("disable") => Ok(Verification::Off),
            None if here && self.roots.is_none() => Ok(Verification::Off),
            Some("allow" | "prefer") => Ok(Verification::IfOffered(self.roots)),
            None | Some("require" | "verify-ca" | "verify-full") => {
                Ok(Verification::Always(self.roots))
            }
            Some(_) => Err(unfit(
                "the URL of the remote has an unknown sslmode: use disable, prefer or verify-full",
            )),
        }
    }
}

/// Returns the URL without what it says about TLS: the client knows fewer modes.
fn split_tls(url: &str) -> Result<(String, TlsWishes), ReplicaError> {
    if !url.starts_with("postgresql://") && !url.starts_with("postgres://") {
        return Err(unfit(
            "the URL of a remote begins with postgresql://, as in postgresql://USER@HOST/DATABASE",
        ));
    }
    let mut tls = TlsWishes::default();
    let Some((base, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), tls));
    };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        for (key, value) in form_urlencoded::parse(pair.as_bytes()) {
            match &*key {
                "sslmode" => tls.mode = Some(value.into_owned()),
                "sslrootcert" => tls.roots = Some(value.into_owned()),
                _ => rest.push(pair),
            }
        }
    }
    let url = match rest.is_empty() {
        true => base.to_owned(),
        false => format!("{base}?{}", rest.join("&")),
    };
    Ok((url, tls))
}

fn is_here(config: &Config) -> bool {
    let hosts = config.get_hosts();
    let all_here = hosts.iter().all(|host| match host {
        Host::Tcp(host) => {
            host == "localhost"
                || host
                    .parse()
                    .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    !hosts.is_empty() && all_here && config.get_hostaddrs().iter().all(|ip| ip.is_loopback())
}

fn name(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "(no host)".to_owned(),
    };
    let port = config.get_ports().first().filter(|port| **port != 5432);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user());
    format!("{host}{port}/{}", database.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::new(&RemoteOptions::new(url)).unwrap()
    }

    #[test]
    fn other_machines_are_verified_unless_tls_is_switched_off() {
        let mode = |url| target(url).config.get_ssl_mode();
        assert_eq!(mode("postgresql://u@db.example/x"), SslMode::Require);
        assert_eq!(
            mode("postgresql://u@db.example/x?sslmode=require"),
            SslMode::Require
        );
        assert_eq!(
            mode("postgresql://u@db.example/x?sslmode=prefer"),
            SslMode::Prefer
        );
        assert_eq!(
            mode("postgresql://u@db.example/x?sslmode=disable"),
            SslMode::Disable
        );
        assert_eq!(mode("postgresql://u@127.0.0.1/x"), SslMode::Disable);
        assert_eq!(
            mode("postgresql://u@127.0.0.1/x?sslmode=verify-full"),
            SslMode::Require
        );
        assert_eq!(mode("postgresql://u@a,127.0.0.1/x"), SslMode::Require);
        assert!(Target::new(&RemoteOptions::new("postgresql://u@a/x?sslmode=no")).is_err());
    }

    #[test]
    fn names_and_errors_have_no_password() {
        let options = RemoteOptions::new("postgresql://u:hush@db.example:6432/x?connect_timeout=3");
        assert_eq!(Target::new(&options).unwrap().name, "db.example:6432/x");
        assert!(!format!("{options:?}").contains("hush"));
        let broken = RemoteOptions::new("postgresql://u:hush@db.example:port/x");
        let error = Target::new(&broken).err().unwrap();
        assert!(!error.message.contains("hush"), "{error}");
    }

    #[test]
    fn a_schema_cannot_be_a_statement() {
        let mut options = RemoteOptions::new("postgresql://u@h/x");
        for bad in ["", "a b", "a\"; drop", "Abc", "1a", "pg;"] {
            bad.clone_into(&mut options.schema);
            assert!(Target::new(&options).is_err(), "{bad}");
        }
    }
}

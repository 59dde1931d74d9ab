//! A cluster of PostgreSQL.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use backtrail_remote::RemoteOptions;

use super::keeper::Keeper;
use super::{as_ordinary_user, directory, find, free_ports, is_root, run, skip};

/// A cluster. Its superuser is `postgres`; everybody may log in without a password, but not `locked`.
pub(crate) struct Postgres {
    directory: PathBuf,
    pub(crate) port: u16,
    settings: String,
    _keeper: Keeper,
}

const ACCESS: &str = "
local all all trust
host all locked 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
";

static DATABASES: AtomicU32 = AtomicU32::new(0);

impl Postgres {
    /// Returns the cluster that most tests share; `None` if it cannot be had here, which is reported.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        SHARED.get_or_init(|| Self::start("")).as_ref().or_else(|| {
            skip("postgres");
            None
        })
    }

    /// Starts a cluster for one test, which may crash it.
    pub(crate) fn own(settings: &str) -> Option<Self> {
        Self::start(settings).or_else(|| {
            skip("postgres");
            None
        })
    }

    fn start(settings: &str) -> Option<Self> {
        let ctl = find("pg_ctl")?;
        find("initdb")?;
        if is_root() {
            find("setpriv")?;
        }
        let directory = directory("postgres");
        let become_user = match is_root() {
            true => "setpriv --reuid=65534 --regid=65534 --clear-groups ",
            false => "",
        };
        let end = format!(
            "{become_user}{} -D \"$1/data\" -m immediate stop",
            ctl.display()
        );
        let keeper = Keeper::new(&directory, &end);
        let [port] = free_ports();
        let cluster = Self {
            settings: format!(
                "-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={} \
                 -c max_connections=200 -c fsync=off -c log_min_messages=warning {settings}",
                directory.display()
            ),
            directory,
            port,
            _keeper: keeper,
        };
        run(as_ordinary_user(&find("initdb")?)
            .args([
                "-A",
                "trust",
                "-U",
                "postgres",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(cluster.data()));
        std::fs::write(cluster.data().join("pg_hba.conf"), ACCESS).expect("its access");
        cluster.up();
        cluster.sql(
            "postgres",
            "create role locked login password 'open sesame'",
        );
        let template = cluster.options("template_remote", "postgres");
        cluster.sql("postgres", "create database template_remote");
        backtrail_remote::init(&template).expect("a remote");
        cluster.sql(
            "postgres",
            "create role agent login in role backtrail_agent;
             create role reader login in role backtrail_reader;
             create role admin login in role backtrail_admin;
             create role stranger login",
        );
        Some(cluster)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub(crate) fn sockets(&self) -> String {
        self.directory.display().to_string()
    }

    fn ctl(&self) -> Command {
        let mut command = as_ordinary_user(&find("pg_ctl").expect("pg_ctl"));
        command.arg("-w").arg("-D").arg(self.data());
        command
    }

    pub(crate) fn up(&self) {
        let log = self.directory.join("log");
        let started = self
            .ctl()
            .args(["-o", &self.settings, "-l"])
            .arg(&log)
            .arg("start")
            .stdout(std::process::Stdio::null())
            .status();
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(started.expect("pg_ctl").success(), "{}", said());
    }

    /// Ends the server as a crash does: without a checkpoint, in the middle of everything.
    pub(crate) fn crash(&self) {
        run(self.ctl().args(["-m", "immediate", "stop"]));
    }

    /// Returns a database that is not set up.
    pub(crate) fn empty_database(&self) -> String {
        let name = format!("empty_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("create database {name}"));
        name
    }

    /// Returns a database that is a remote.
    pub(crate) fn database(&self) -> String {
        let name = format!("remote_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.sql(
            "postgres",
            &format!("create database {name} template template_remote"),
        );
        name
    }

    pub(crate) fn options(&self, database: &str, user: &str) -> RemoteOptions {
        options_of(self.port, database, user)
    }

    /// Runs statements as the superuser, and returns what they print.
    pub(crate) fn sql(&self, database: &str, statements: &str) -> String {
        let output = run(Command::new(find("psql").expect("psql"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "postgres",
            ])
            .args([
                "-h",
                &self.sockets(),
                "-p",
                &self.port.to_string(),
                "-d",
                database,
            ])
            .args(["-c", statements]));
        String::from_utf8_lossy(&output).trim().to_owned()
    }

    /// Returns everything in a database, as text.
    pub(crate) fn dump(&self, database: &str) -> Vec<u8> {
        run(Command::new(find("pg_dump").expect("pg_dump"))
            .args([
                "-U",
                "postgres",
                "-h",
                &self.sockets(),
                "-p",
                &self.port.to_string(),
            ])
            .arg(database))
    }
}

/// Returns the options of a remote on this machine.
pub(crate) fn options_of(port: u16, database: &str, user: &str) -> RemoteOptions {
    RemoteOptions::new(format!("postgresql://{user}@127.0.0.1:{port}/{database}"))
}

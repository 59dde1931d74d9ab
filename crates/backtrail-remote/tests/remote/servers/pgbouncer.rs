//! pgbouncer in transaction mode, before the shared cluster.

use std::process::Stdio;
use std::sync::OnceLock;

use backtrail_remote::RemoteOptions;

use super::keeper::Keeper;
use super::postgres::{Postgres, options_of};
use super::{as_ordinary_user, await_port, directory, find, free_ports, is_root, skip};

pub(crate) struct Pgbouncer {
    port: u16,
    _keeper: Keeper,
}

impl Pgbouncer {
    /// Returns the one before the shared cluster; `None` if it cannot be had here, which is reported.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Pgbouncer>> = OnceLock::new();
        let cluster = Postgres::shared()?;
        SHARED
            .get_or_init(|| Self::start(cluster))
            .as_ref()
            .or_else(|| {
                skip("pgbouncer");
                None
            })
    }

    fn start(cluster: &Postgres) -> Option<Self> {
        let program = find("pgbouncer")?;
        let directory = directory("pgbouncer");
        let [port] = free_ports();
        // Three connections for all clients of a database: whoever relies on a session's state sees another's.
        let settings = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {directory}/users\npool_mode = transaction\n\
             default_pool_size = 3\nmax_client_conn = 500\nlogfile = {directory}/log\npidfile = {directory}/pid\n",
            cluster.sockets(),
            cluster.port,
            directory = directory.display()
        );
        std::fs::write(directory.join("settings"), settings).expect("its settings");
        let users = "\"postgres\" \"\"\n\"agent\" \"\"\n\"admin\" \"\"\n";
        std::fs::write(directory.join("users"), users).expect("its users");
        if is_root() {
            super::run(
                std::process::Command::new("chown")
                    .args(["-R", "65534:65534"])
                    .arg(&directory),
            );
        }
        let keeper = Keeper::new(&directory, "kill -9 $(cat \"$1/pid\")");
        let mut command = as_ordinary_user(&program);
        #[expect(clippy::zombie_processes, reason = "the keeper ends it")]
        let _server = command
            .arg(directory.join("settings"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgbouncer");
        await_port(port);
        Some(Self {
            port,
            _keeper: keeper,
        })
    }

    pub(crate) fn options(&self, database: &str, user: &str) -> RemoteOptions {
        options_of(self.port, database, user)
    }
}

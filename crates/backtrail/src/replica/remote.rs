//! Which replica sessions are written to, and how.

use std::sync::Arc;
use std::time::Duration;

use super::Replica;

/// The replica to which the sessions of a store are written as well, if they are opened with
/// [`Durability::Remote`](crate::Durability::Remote).
#[derive(Debug, Clone)]
pub struct Remote {
    pub(crate) name: String,
    pub(crate) replica: Arc<dyn Replica>,
    pub(crate) holder: String,
    pub(crate) lease: Duration,
    pub(crate) when_away: WhenAway,
}

/// What happens to an append while the replica cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WhenAway {
    /// It fails with [`ErrorKind::Away`](crate::ErrorKind::Away). The message is here, not
    /// acknowledged, and sent with the next one.
    #[default]
    Fail,
    /// It is acknowledged as soon as it is durable here, and sent later; see
    /// [`Session::behind`](crate::Session::behind).
    Local,
}

impl Remote {
    /// For how long a lease is taken: 30 seconds.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

    /// Sets the replica, and what it is called in messages. `holder` names the writer to
    /// people at other machines, and has to be another one for every store: a lease is never
    /// refused to its own holder.
    pub fn new(
        name: impl Into<String>,
        replica: impl Replica + 'static,
        holder: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            replica: Arc::new(replica),
            holder: holder.into(),
            lease: Self::DEFAULT_LEASE,
            when_away: WhenAway::default(),
        }
    }

    /// Sets for how long a lease is taken. An idle session renews it three times as often. If
    /// a machine dies, its sessions can be continued elsewhere after this time.
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Sets what happens while the replica cannot be reached.
    #[must_use]
    pub fn when_away(mut self, when_away: WhenAway) -> Self {
        self.when_away = when_away;
        self
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX)
    }
}

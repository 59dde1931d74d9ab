//! Why a writer stops for good.

use std::fmt;

use super::Lease;

/// Why a writer writes nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Somebody else has the lease.
    Held(Lease),
    /// Somebody else took the lease since; this one, unless it has run out.
    Fenced(Option<Lease>),
    /// The replica has lines that are not here.
    Ahead,
    /// The replica has other lines than there are here.
    Diverged,
    /// The log is in the trash there.
    Deleted,
    /// The log was purged, at this time in milliseconds since 1970.
    Purged(i64),
}

impl Stop {
    /// Returns whether the writer may still have the lease.
    pub(super) fn has_lease(&self) -> bool {
        matches!(self, Self::Ahead | Self::Diverged | Self::Deleted)
    }
}

impl fmt::Display for Stop {
    /// Writes what is wrong, and the way out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(lease) => {
                let Lease { holder, left_ms } = lease;
                let seconds = left_ms.div_ceil(1000);
                write!(f, "{holder} is writing to it (for {seconds} s more at least)")
            }
            Self::Fenced(Some(Lease { holder, .. })) => {
                write!(f, "{holder} is writing to it now; pull it to continue here")
            }
            Self::Fenced(None) => {
                f.write_str("another machine continued it; pull it to continue here")
            }
            Self::Ahead => f.write_str("the remote has newer lines; pull it first"),
            Self::Diverged => {
                f.write_str("the remote has other lines than this store; push it as a fork")
            }
            Self::Deleted => f.write_str("it is in the trash of the remote; restore it there"),
            Self::Purged(_) => f.write_str("it was purged from the remote"),
        }
    }
}

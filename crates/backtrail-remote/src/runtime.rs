//! Runs what waits for servers on the thread that asks.

use backtrail::replica::{ReplicaError, ReplicaErrorKind};
use tokio::runtime::{Builder, Runtime};

use crate::error::error;

pub(crate) fn runtime() -> Result<Runtime, ReplicaError> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|cause| {
        error(
            ReplicaErrorKind::Away,
            format!("cannot reach a remote: {cause}"),
        )
    })
}

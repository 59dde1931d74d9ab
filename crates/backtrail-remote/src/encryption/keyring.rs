//! The keys of the logs that were opened so far.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backtrail::replica::{LogKey, ReplicaError};

use super::errors::{corrupt, named};
use super::keys::{Identities, Recipient};
use super::log_keys::LogKeys;
use super::wrapped_key;

/// How many keys are kept. Any of them can be opened again.
const MOST: usize = 4096;

/// Opens the keys of logs, and keeps them.
#[derive(Debug)]
pub(super) struct Keyring {
    recipients: Vec<Recipient>,
    identities: Identities,
    opened: Mutex<HashMap<LogKey, Opened>>,
}

#[derive(Debug, Clone)]
struct Opened {
    wrapped: Arc<[u8]>,
    keys: Arc<LogKeys>,
}

impl Keyring {
    pub(super) fn new(recipients: Vec<Recipient>, identities: Identities) -> Self {
        Self {
            recipients,
            identities,
            opened: Mutex::default(),
        }
    }

    pub(super) fn opened(&self, log: &LogKey) -> Option<Arc<LogKeys>> {
        let opened = self.lock();
        opened.get(log).map(|opened| Arc::clone(&opened.keys))
    }

    /// Makes a key for a log that is created, and returns it with its keys. It counts once the
    /// replica has it: see [`Self::open`].
    pub(super) fn create(&self, log: &LogKey) -> Result<(Vec<u8>, LogKeys), ReplicaError> {
        let wrapped = wrapped_key::create(log, &self.recipients, &self.identities)?;
        let keys = wrapped_key::open(log, &wrapped, &self.identities)?;
        Ok((wrapped, keys))
    }

    /// Opens the wrapped key that the replica has, and keeps it.
    ///
    /// # Errors
    ///
    /// Fails as [`wrapped_key::open`] does, and if the log had another key before.
    pub(super) fn open(&self, log: &LogKey, wrapped: &[u8]) -> Result<Arc<LogKeys>, ReplicaError> {
        let before = self.lock().get(log).cloned();
        if let Some(before) = &before
            && *before.wrapped == *wrapped
        {
            return Ok(Arc::clone(&before.keys));
        }
        let keys = wrapped_key::open(log, wrapped, &self.identities)?;
        if before.is_some_and(|before| before.keys.check() != keys.check()) {
            return Err(corrupt(format!(
                "{} has another key at the remote than before",
                named(log)
            )));
        }
        let opened = Opened {
            wrapped: wrapped.into(),
            keys: Arc::new(keys),
        };
        let mut all = self.lock();
        if all.len() >= MOST {
            all.clear();
        }
        let keys = Arc::clone(&opened.keys);
        all.insert(log.clone(), opened);
        Ok(keys)
    }

    pub(super) fn forget(&self, log: &LogKey) {
        self.lock().remove(log);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LogKey, Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

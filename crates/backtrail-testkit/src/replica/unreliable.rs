//! A replica behind a network and a bucket that fail, the same way for the same seed.

use std::fmt;
use std::sync::{Arc, Mutex};

use backtrail::replica::{
    Answer, BlobName, LogKey, Replica, ReplicaError, ReplicaErrorKind, Request,
};

use crate::lock::lock;
use crate::splitmix::SplitMix;

/// How often what goes wrong, of a thousand calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mishaps {
    /// A request does not arrive.
    pub request_lost: u16,
    /// A request is carried out, and its answer does not arrive.
    pub answer_lost: u16,
    /// The client gives up, and the request is carried out later: behind its own retry and
    /// others' requests.
    pub late: u16,
    /// A blob is not stored.
    pub put_lost: u16,
    /// A blob is stored, and the answer does not arrive.
    pub put_answer_lost: u16,
    /// A blob is not found, although it is there.
    pub blob_missing: u16,
    /// A part of a blob has fewer bytes than it should have. A whole blob that was cut does not
    /// match its name, and is an error.
    pub blob_cut: u16,
}

impl Mishaps {
    /// Returns what goes wrong in a bad network: each about every twentieth time.
    pub fn often() -> Self {
        Self {
            request_lost: 50,
            answer_lost: 50,
            late: 50,
            put_lost: 50,
            put_answer_lost: 50,
            blob_missing: 20,
            blob_cut: 20,
        }
    }
}

/// A replica that fails; clones share it.
#[derive(Clone)]
pub struct Unreliable<R> {
    replica: R,
    network: Arc<Mutex<Network>>,
}

struct Network {
    mishaps: Mishaps,
    random: SplitMix,
    /// Requests that were given up, and arrive later.
    late: Vec<Request>,
    lost: u64,
}

/// What happens to a request.
enum Fate {
    Answered,
    RequestLost,
    AnswerLost,
    Late,
}

impl<R: Replica> Unreliable<R> {
    /// Wraps a replica.
    pub fn new(replica: R, seed: u64, mishaps: Mishaps) -> Self {
        let network = Network {
            mishaps,
            random: SplitMix::new(seed),
            late: Vec::new(),
            lost: 0,
        };
        Self {
            replica,
            network: Arc::new(Mutex::new(network)),
        }
    }

    /// Sets what goes wrong from now on; the default is nothing.
    pub fn set(&self, mishaps: Mishaps) {
        lock(&self.network).mishaps = mishaps;
    }

    /// Carries out all requests that are late. Their answers are lost.
    pub fn settle(&self) {
        let late = std::mem::take(&mut lock(&self.network).late);
        for request in late {
            self.replica.ask(&request).ok();
        }
    }

    /// Returns how many calls failed so far.
    pub fn lost(&self) -> u64 {
        lock(&self.network).lost
    }

    /// Returns the replica without the failures.
    pub fn inner(&self) -> &R {
        &self.replica
    }

    fn fate(&self) -> Fate {
        let mut network = lock(&self.network);
        let Mishaps {
            request_lost,
            answer_lost,
            late,
            ..
        } = network.mishaps;
        match network.pick(&[request_lost, answer_lost, late]) {
            Some(0) => Fate::RequestLost,
            Some(1) => Fate::AnswerLost,
            Some(_) => Fate::Late,
            None => Fate::Answered,
        }
    }

    /// Carries out a late request at times, before whatever comes next.
    fn deliver(&self) {
        let mut network = lock(&self.network);
        if network.late.is_empty() || network.random.below(3) > 0 {
            return;
        }
        let waiting = network.late.len();
        let at = network.random.below(waiting);
        let request = network.late.swap_remove(at);
        drop(network);
        self.replica.ask(&request).ok();
    }
}

impl Network {
    /// Returns which of several mishaps happens, each with its own odds.
    fn pick(&mut self, odds: &[u16]) -> Option<usize> {
        let mut drawn = self.random.below(1000);
        for (at, odds) in odds.iter().enumerate() {
            if drawn < usize::from(*odds) {
                self.lost += 1;
                return Some(at);
            }
            drawn -= usize::from(*odds);
        }
        None
    }
}

fn away(message: &str) -> ReplicaError {
    ReplicaError {
        kind: ReplicaErrorKind::Away,
        message: message.to_owned(),
    }
}

impl<R: Replica> Replica for Unreliable<R> {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        self.deliver();
        match self.fate() {
            Fate::Answered => self.replica.ask(request),
            Fate::RequestLost => Err(away("the request was lost")),
            Fate::AnswerLost => {
                self.replica.ask(request).ok();
                Err(away("the answer was lost"))
            }
            Fate::Late => {
                lock(&self.network).late.push(request.clone());
                Err(away("there was no answer in time"))
            }
        }
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        match self.fate() {
            Fate::Answered => self.replica.has_blobs(log, names),
            _ => Err(away("the answer was lost")),
        }
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        let mut network = lock(&self.network);
        let odds = [network.mishaps.put_lost, network.mishaps.put_answer_lost];
        let picked = network.pick(&odds);
        drop(network);
        match picked {
            None => self.replica.put_blob(log, name, bytes),
            Some(0) => Err(away("the blob was lost")),
            Some(_) => {
                self.replica.put_blob(log, name, bytes).ok();
                Err(away("the answer was lost"))
            }
        }
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        let mut network = lock(&self.network);
        let odds = [network.mishaps.blob_missing, network.mishaps.blob_cut];
        let picked = network.pick(&odds);
        let cut = network.random.next();
        drop(network);
        let blob = self.replica.get_blob(log, name, part)?;
        match (picked, blob, part) {
            (None, blob, _) => Ok(blob),
            (Some(0), ..) | (_, None, _) => Ok(None),
            (_, Some(_), None) => Err(ReplicaError {
                kind: ReplicaErrorKind::Corrupt,
                message: "the blob was cut".to_owned(),
            }),
            (_, Some(mut bytes), Some(_)) => {
                bytes.truncate((cut % (bytes.len().max(1) as u64)) as usize);
                Ok(Some(bytes))
            }
        }
    }
}

impl<R: Replica> fmt::Debug for Unreliable<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unreliable").field(&self.replica).finish()
    }
}

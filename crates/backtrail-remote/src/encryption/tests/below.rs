//! The replica below: remembers every byte that reached it, and alters what it gives back.

use std::fmt;
use std::sync::{Arc, Mutex};

use backtrail::replica::{Answer, BlobName, End, Line, LogKey, Replica, ReplicaError, Request};
use backtrail_testkit::ManualClock;
use backtrail_testkit::replica::MemoryReplica;

type AlterAnswer = Box<dyn Fn(&mut Answer) + Send + Sync>;
type AlterBlob = Box<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// Clones share it.
#[derive(Clone)]
pub(super) struct Below {
    pub(super) memory: MemoryReplica,
    pub(super) clock: ManualClock,
    seen: Arc<Mutex<Seen>>,
    answers: Arc<Mutex<Option<AlterAnswer>>>,
    blobs: Arc<Mutex<Option<AlterBlob>>>,
}

/// What reached it.
#[derive(Default)]
pub(super) struct Seen {
    /// Everything but the ids of logs and the names of packs.
    pub(super) bytes: Vec<Vec<u8>>,
    /// How often it was asked to write.
    pub(super) writes: usize,
}

impl Below {
    pub(super) fn new() -> Self {
        let clock = ManualClock::new(1_700_000_000_000);
        Self {
            memory: MemoryReplica::new(clock.clone()).with_keyed_names(),
            clock,
            seen: Arc::default(),
            answers: Arc::default(),
            blobs: Arc::default(),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    pub(super) fn alter_answers(&self, alter: impl Fn(&mut Answer) + Send + Sync + 'static) {
        *self.answers.lock().unwrap() = Some(Box::new(alter));
    }

    pub(super) fn alter_blobs(&self, alter: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) {
        *self.blobs.lock().unwrap() = Some(Box::new(alter));
    }
}

impl fmt::Debug for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Below")
    }
}

impl Seen {
    fn request(&mut self, request: &Request) {
        self.writes += usize::from(!matches!(
            request,
            Request::Status { .. }
                | Request::Trails { .. }
                | Request::Read { .. }
                | Request::List { .. }
                | Request::Changes { .. }
                | Request::Locate { .. }
                | Request::Packs { .. }
        ));
        match request {
            Request::Lease {
                holder,
                wrapped_key,
                ..
            } => {
                self.bytes.push(holder.clone().into_bytes());
                self.bytes.push(wrapped_key.clone());
            }
            Request::Append { after, lines, .. } => {
                self.end(after);
                lines.iter().for_each(|line| self.line(line));
            }
            Request::Begin { head, opener, .. } => {
                head.iter().for_each(|head| self.end(head));
                self.line(opener);
            }
            Request::Locate { ids, .. } => self.bytes.extend(ids.iter().map(|id| id.to_vec())),
            Request::SealPack { objects, .. } => {
                let ids = objects.iter().map(|object| object.id.to_vec());
                self.bytes.extend(ids);
            }
            Request::Status { .. }
            | Request::Renew { .. }
            | Request::Release { .. }
            | Request::Trails { .. }
            | Request::Read { .. }
            | Request::List { .. }
            | Request::Changes { .. }
            | Request::Delete { .. }
            | Request::Purge { .. }
            | Request::Packs { .. }
            | Request::Condemn { .. }
            | Request::RemovePacks { .. } => {}
            other => panic!("{other:?} may carry words"),
        }
    }

    fn end(&mut self, end: &End) {
        self.bytes.push(end.sum.to_vec());
    }

    fn line(&mut self, line: &Line) {
        self.bytes.push(line.sum.to_vec());
        self.bytes.push(line.bytes.clone());
    }

    fn name(&mut self, name: BlobName) {
        if name.kind == backtrail::replica::BlobKind::Payload {
            self.bytes.push(name.hash.to_vec());
        }
    }
}

impl Replica for Below {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        self.seen.lock().unwrap().request(request);
        let mut answer = self.memory.ask(request)?;
        if let Some(alter) = &*self.answers.lock().unwrap() {
            alter(&mut answer);
        }
        Ok(answer)
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        let mut seen = self.seen.lock().unwrap();
        names.iter().for_each(|name| seen.name(*name));
        drop(seen);
        self.memory.has_blobs(log, names)
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        let mut seen = self.seen.lock().unwrap();
        seen.name(name);
        seen.bytes.push(bytes.to_vec());
        seen.writes += 1;
        drop(seen);
        self.memory.put_blob(log, name, bytes)
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        self.seen.lock().unwrap().name(name);
        let mut blob = self.memory.get_blob(log, name, part)?;
        if let (Some(alter), Some(bytes)) = (&*self.blobs.lock().unwrap(), &mut blob) {
            alter(bytes);
        }
        Ok(blob)
    }
}

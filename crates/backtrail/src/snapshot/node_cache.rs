//! A cache of nodes in memory.
//!
//! Similar snapshots share most of their nodes, and comparing several of them reads the
//! same nodes many times. A node's id is its content, so a cached node never becomes
//! stale.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::source::{Contents, Nodes};
use crate::error::Result;
use crate::objects::ObjectId;
use crate::sync::lock;

/// The limit in bytes: enough for the directories of some 500,000 files.
const ROOM: usize = 32 << 20;

/// A source that caches the nodes read from it, but not contents.
#[derive(Debug)]
pub(crate) struct CachedNodes {
    source: Arc<dyn Contents>,
    cache: Mutex<NodeCache>,
}

#[derive(Debug, Default)]
struct NodeCache {
    nodes: HashMap<ObjectId, Box<[u8]>>,
    bytes: usize,
}

impl CachedNodes {
    pub(crate) fn new(source: Arc<dyn Contents>) -> Self {
        Self {
            source,
            cache: Mutex::default(),
        }
    }
}

impl Nodes for CachedNodes {
    fn node(&self, id: &ObjectId) -> Result<Cow<'_, [u8]>> {
        if let Some(bytes) = lock(&self.cache).nodes.get(id) {
            return Ok(Cow::Owned(bytes.to_vec()));
        }
        let bytes = self.source.node(id)?;
        lock(&self.cache).insert(*id, &bytes);
        Ok(bytes)
    }
}

impl Contents for CachedNodes {
    fn content(
        &self,
        path: &Path,
        id: &ObjectId,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.source.content(path, id, take)
    }
}

impl NodeCache {
    /// Caches a node if there is room.
    fn insert(&mut self, id: ObjectId, bytes: &[u8]) {
        if self.bytes + bytes.len() > ROOM {
            return;
        }
        if self.nodes.insert(id, bytes.into()).is_none() {
            self.bytes += bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Memory, dir, file, named, snapshot};
    use super::super::tree::Snapshot;
    use super::*;

    #[test]
    fn a_node_is_read_once_and_says_the_same_every_time() {
        let memory = Arc::new(Memory::default());
        let items = named([("a", dir([("b", dir([("c", file("one"))]))]))]);
        let plain = snapshot(&memory, &items);
        let source = Arc::new(CachedNodes::new(memory.clone()));
        let remembered = Snapshot::open(source, plain.id()).unwrap();
        let paths = ["a", "a/b", "a/b/c", "a/b/d"].map(Path::new);
        let found = |snapshot: &Snapshot| paths.map(|path| snapshot.walk_down(path).unwrap());
        let expected = found(&plain);
        memory.reads();
        assert_eq!(found(&remembered), expected);
        assert_eq!(memory.reads(), 3, "the root, a and a/b");
        assert_eq!(found(&remembered), expected);
        assert_eq!(memory.reads(), 0);
        assert_eq!(remembered.read("a/b/c").unwrap().unwrap(), b"one");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut cache = NodeCache::default();
        let large = vec![0; ROOM / 2 + 1];
        for n in 0..3_u8 {
            cache.insert(ObjectId::of(&[n]), &large);
        }
        cache.insert(ObjectId::of(&[0]), &large);
        assert_eq!((cache.nodes.len(), cache.bytes), (1, large.len()));
    }
}

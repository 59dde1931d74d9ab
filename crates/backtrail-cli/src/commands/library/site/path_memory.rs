//! How the paths of a session are shown, remembered from range to range.
//!
//! A session that names its workspace needs no memory. Of another one all calls are read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use backtrail::conversation::RelativePaths;
use backtrail::{SessionId, SessionInfo, SessionReader};

use super::super::{REMEMBERED, lock};
use crate::error::Result;

/// How many sessions are remembered.
const MOST: usize = 16;
/// The paths of a longer session are shown as they are: its calls are not all read.
const LONGEST: u64 = 50_000;

/// The paths of the sessions that were read last. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct PathMemory(Arc<Mutex<VecDeque<KnownPaths>>>);

#[derive(Debug)]
struct KnownPaths {
    session: SessionId,
    end: u64,
    at: Instant,
    paths: RelativePaths,
}

impl PathMemory {
    /// Returns how the paths of a session are shown.
    pub(super) fn of(&self, reader: &SessionReader, info: &SessionInfo) -> Result<RelativePaths> {
        let root = info.workspace_root.as_deref();
        if root.is_some() || info.last_seq > LONGEST {
            return Ok(RelativePaths::new(root));
        }
        let is_fresh = |known: &&KnownPaths| {
            let is_new = known.end == info.last_seq || known.at.elapsed() < REMEMBERED;
            known.session == info.id && is_new
        };
        if let Some(known) = lock(&self.0).iter().find(is_fresh) {
            return Ok(known.paths.clone());
        }
        let paths = reader.relative_paths(None)?;
        self.keep(info, paths.clone());
        Ok(paths)
    }

    fn keep(&self, info: &SessionInfo, paths: RelativePaths) {
        let mut known = lock(&self.0);
        known.retain(|known| known.session != info.id);
        known.push_back(KnownPaths {
            session: info.id.clone(),
            end: info.last_seq,
            at: Instant::now(),
            paths,
        });
        while known.len() > MOST {
            known.pop_front();
        }
    }
}

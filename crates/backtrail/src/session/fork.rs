//! Forks: sessions that begin where another one is, by reference and without copying.

use super::Session;
use super::note::check_texts;
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::Durability;
use crate::log::directory::LogDir;
use crate::log::lock::LockFile;
use crate::log::place::{self, Place};
use crate::log::present_at;
use crate::store::Store;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::origin::ForkOrigin;
use crate::trail::present::{Present, WorkspaceRef};
#[cfg(feature = "snapshots")]
use crate::workspace::{SessionPlace, Workspace};

/// Options for a fork.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    at: Option<u64>,
    branch_name: Option<String>,
    durability: Option<Durability>,
    /// The trail of the session that leads there; the head by default.
    trail: Option<u32>,
    /// The fork's workspace; the session's by default.
    workspace: Option<WorkspaceRef>,
}

impl ForkOptions {
    /// Returns options for a fork at the end of a session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the last record that the fork shares with the session.
    #[must_use]
    pub fn at(mut self, seq: u64) -> Self {
        self.at = Some(seq);
        self
    }

    /// Names the fork. The name is trimmed; a blank name is ignored.
    #[must_use]
    pub fn branch_name(mut self, name: impl Into<String>) -> Self {
        self.branch_name = Some(name.into());
        self
    }

    /// Sets the durability of appends to the fork.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets the last shared record by the trail that leads to it, which may be one that
    /// the session has left.
    #[cfg(feature = "snapshots")]
    pub(crate) fn at_place(mut self, place: &SessionPlace) -> Self {
        self.trail = Some(place.trail);
        self.at(place.seq)
    }

    /// Lets the fork work in another workspace.
    #[cfg(feature = "snapshots")]
    pub(crate) fn works_in(mut self, workspace: &Workspace) -> Self {
        self.workspace = Some(workspace.reference());
        self
    }
}

impl Session {
    /// Forks this session and opens the fork for writing.
    ///
    /// # Errors
    ///
    /// Fails with `NotFound` if the session has no such record, and if the store cannot be written.
    pub fn fork(&self, options: &ForkOptions) -> Result<Self> {
        fork(&self.0.store, self.id(), options)
    }
}

/// Forks a session, even if another process writes to it.
pub(crate) fn fork(store: &Store, parent: &SessionId, options: &ForkOptions) -> Result<Session> {
    check_texts(options.branch_name.iter())?;
    let files = store.files(parent);
    let head = files.head()?;
    // The session must not be deleted before the fork exists and refers to it.
    let lock = LockFile::existing(&files)?;
    let _guard = lock.map(|lock| lock.hold()).transpose()?;
    files.head()?;
    let end = place::end(store, &files, head)?;
    let on_head = options.trail.is_none_or(|trail| trail == head);
    let place = match options.at {
        Some(seq) if seq != end.position.seq || !on_head => {
            place::find(store, &files, options.trail.unwrap_or(head), seq)?
        }
        _ => end,
    };
    make_durable(&files, &place)?;
    let known = present_at(store, &files, end.trail, &end.position)?;
    let present = Present {
        pinned: false,
        // A fork belongs to this store, whatever its parent belongs to.
        belongs_to: None,
        workspace: options.workspace.clone().or(known.workspace),
        ..known
    };
    let name = options.branch_name.as_deref();
    let seq = place.position.seq;
    let origin = ForkOrigin::new(parent.as_str(), name, Some(seq));
    let opener = |id: &SessionId| {
        let opener = Opener {
            present,
            fork: Some(origin),
            ..Opener::new(id, 0, TrailReason::Fork, store.now())
        };
        match seq {
            0 => opener,
            _ => opener.continuing(place.continues(parent), place.position.compacted),
        }
    };
    Session::create_opened(store, store.new_session_id()?, opener, options.durability)
}

/// Makes the records that a fork continues as durable as the fork itself will be: in some
/// modes the session's own writer leaves that to the operating system.
fn make_durable(files: &LogDir, place: &Place) -> Result<()> {
    let path = files.trail_path(place.trail);
    files
        .open_read(place.trail)?
        .sync()
        .map_err(|error| Error::io("cannot make the session durable", &path, error))?;
    files.sync_names()
}

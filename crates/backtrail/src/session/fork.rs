//! A session that begins where another is: by reference, nothing is copied.

use super::Session;
use super::note::check_texts;
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::Durability;
use crate::log::directory::LogDir;
use crate::log::lock::AppendLock;
use crate::log::place::{self, Place};
use crate::log::present_at;
use crate::store::Store;
use crate::trail::opener::{Because, Opener};
use crate::trail::origin::ForkOrigin;
use crate::trail::present::{Present, WorkspaceRef};
use crate::workspace::{SessionPlace, Workspace};

/// Where a session is forked, and what the fork is called.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    at: Option<u64>,
    branch_name: Option<String>,
    durability: Option<Durability>,
    /// The trail of the session that leads there; else its head does.
    trail: Option<u32>,
    /// Where the fork works; else where the session does.
    workspace: Option<WorkspaceRef>,
}

impl ForkOptions {
    /// Makes options for a fork at the end of a session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the last record that the fork has in common with the session.
    #[must_use]
    pub fn at(mut self, seq: u64) -> Self {
        self.at = Some(seq);
        self
    }

    /// Names the fork. The name is trimmed; a blank one is none.
    #[must_use]
    pub fn branch_name(mut self, name: impl Into<String>) -> Self {
        self.branch_name = Some(name.into());
        self
    }

    /// Sets when an append to the fork returns.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets the last record in common by the trail that leads to it, which may be
    /// one that the session has left.
    pub(crate) fn at_place(mut self, place: &SessionPlace) -> Self {
        self.trail = Some(place.trail);
        self.at(place.seq)
    }

    /// Lets the fork work in another workspace.
    pub(crate) fn works_in(mut self, workspace: &Workspace) -> Self {
        self.workspace = Some(workspace.reference());
        self
    }
}

impl Session {
    /// Forks this session, and speaks in the fork.
    pub fn fork(&self, options: &ForkOptions) -> Result<Self> {
        fork(&self.0.store, self.id(), options)
    }
}

/// Forks a session, whoever speaks in it.
pub(crate) fn fork(store: &Store, parent: &SessionId, options: &ForkOptions) -> Result<Session> {
    check_texts(options.branch_name.iter())?;
    let files = store.files(parent);
    let head = files.head()?;
    // Nobody deletes the session before the fork is there to say that it reads it.
    let lock = AppendLock::open_existing(&files)?;
    let _guard = lock.as_ref().map(AppendLock::hold).transpose()?;
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
        // What goes on from it is ours, whosever it is.
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
            ..Opener::new(id, 0, Because::Fork, store.now())
        };
        match seq {
            0 => opener,
            _ => opener.continuing(place.continues(parent), place.position.compacted),
        }
    };
    Session::create_opened(store, store.new_session_id()?, opener, options.durability)
}

/// Makes what a fork continues as durable as the fork itself will be: in some
/// modes the session's own speaker leaves that to the operating system.
fn make_durable(files: &LogDir, place: &Place) -> Result<()> {
    let path = files.trail_path(place.trail);
    files
        .open_read(place.trail)?
        .sync()
        .map_err(|error| Error::io("cannot make the session durable", &path, error))?;
    files.sync_names()
}

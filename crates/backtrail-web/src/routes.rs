//! Which address is answered by what.

use crate::answer::Handler;
use crate::pages::{blame, changes, costs, files, health, search, session, sessions, timeline};

/// The addresses of data that is only read.
pub(crate) const READS: &[(&str, Handler)] = &[
    ("/api/sessions", sessions::sessions),
    ("/api/choices", sessions::choices),
    ("/api/search", search::search),
    ("/api/session", session::session),
    ("/api/records", session::records),
    ("/api/outline", session::outline),
    ("/api/context", session::context),
    ("/api/text", session::text),
    ("/api/export", session::export),
    ("/api/changes", changes::changes),
    ("/api/diff", changes::diff),
    ("/api/timeline", timeline::timeline),
    ("/api/workspaces", timeline::workspaces),
    ("/api/files", files::files),
    ("/api/file", files::file),
    ("/api/blame", blame::blame),
    ("/api/spending", costs::spending),
    ("/api/year", costs::year),
    ("/api/five-hours", costs::five_hours),
    ("/api/dearest", costs::dearest),
    ("/api/health", health::health),
];

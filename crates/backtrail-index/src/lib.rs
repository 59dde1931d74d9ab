//! Data derived from a store of sessions: a catalogue, a full-text index and a ledger of
//! costs.
//!
//! Trails, payloads and objects are the truth; everything here is in the store's
//! `derived/` directory and can be deleted at any time. Nothing runs in the background:
//! an [`Index`] catches up with the trails before every query.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let home = dir.path().join("store");
//! use backtrail::{Message, SessionOptions, Store};
//! use backtrail_index::{Filter, Index, IndexOptions, SearchQuery};
//!
//! let store = Store::open_or_create(home)?;
//! let session = store.create_session(SessionOptions::new().agent("mine"))?;
//! session.append(Message::user_text("why does round_half_even lose a cent?"))?;
//!
//! let index = Index::open(&store, IndexOptions::new())?;
//! let sessions = index.sessions(&Filter::default())?;
//! assert_eq!(sessions[0].messages, 1);
//!
//! let answer = index.search(&SearchQuery::new("half cent"))?;
//! assert_eq!(answer.hits[0].seq, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "derived data is in files of its own, not part of what the engine promises"
)]

mod blocks;
mod catalogue;
mod catch_up;
mod edited_paths;
mod error;
mod feed;
mod files;
mod filter;
mod index;
mod ingest;
mod known_sessions;
mod known_spending;
mod lock;
mod message_search;
mod plan;
mod prices;
mod projects;
mod rows;
mod seal;
mod search;
mod trail_dirs;

pub use blocks::UsageBlock;
pub use error::{Error, Result};
pub use filter::{Filter, WorkspaceFilter};
pub use index::{CatchUp, Index, IndexOptions, Progress};
pub use known_sessions::{KnownSession, known_sessions};
pub use known_spending::{KnownSpending, SpendingQuestion, known_spending};
pub use prices::{Price, Prices, SessionPrices};
pub use projects::{Project, remote_of};
pub use rows::{
    Family, Field, Group, Money, SessionRow, Spending, SpendingReport, SpendingRow, ToolCount,
    ToolReport, ToolRow, TurnRow, UnpricedModel,
};
pub use search::{Hit, HitKind, Order, SearchAnswer, SearchQuery, Snippet};

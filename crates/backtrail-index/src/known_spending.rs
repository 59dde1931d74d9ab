//! What the catalogue knows about spending, at once: it is not brought up to date.

use backtrail::{Store, Timestamp};

use crate::catalogue::{Catalogue, Paths};
use crate::rows::Spending;

/// What to look up.
#[derive(Debug, Clone, Copy)]
pub struct SpendingQuestion<'a> {
    /// A session's id.
    pub session: Option<&'a str>,
    /// When today began.
    pub today: Timestamp,
    /// The present moment.
    pub now: Timestamp,
}

/// Costs, as the catalogue knew them last. They have the costs and the calls that these are of,
/// but no tokens.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct KnownSpending {
    /// The cost of the session, with the sub-agents that it started.
    pub session: Option<Spending>,
    /// The cost of all calls of today.
    pub today: Option<Spending>,
    /// The cost of the block of five hours that is not over yet, and when it began.
    pub block: Option<(Timestamp, Spending)>,
}

/// Looks up costs. It reads a few pages of one file, writes nothing and waits for no other
/// process. What cannot be read is missing.
pub fn known_spending(store: &Store, question: &SpendingQuestion<'_>) -> KnownSpending {
    let paths = Paths::new(&store.root().join("derived"));
    let known = paths.open_at_once();
    known.map_or_else(KnownSpending::default, |known| read(&known, question))
}

fn read(known: &Catalogue, question: &SpendingQuestion<'_>) -> KnownSpending {
    let session = question.session.map(|id| known.cost_of_session(id));
    let block = known.block_at(question.now.as_millis()).ok().flatten();
    KnownSpending {
        session: session.and_then(|cost| cost.ok().flatten()),
        today: known.cost_since(question.today.as_millis()).ok(),
        block: block.and_then(|(start, cost)| Some((Timestamp::from_millis(start)?, cost))),
    }
}

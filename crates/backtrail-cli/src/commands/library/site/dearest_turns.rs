//! The turns that cost most.

use backtrail::SessionId;
use backtrail_index::{Group, Index, Money, Spending, TurnRow};
use backtrail_web::library::{DearTurn, SpendingQuery};

use super::super::{Answer, StoreLibrary, failure};
use super::spending::filter;
use crate::commands::conversation::NO_TITLE;
use crate::commands::export::prompt_words;
use crate::commands::list::title_of;
use crate::commands::stats::bars::{group_cost, group_tokens};
use crate::derived;
use crate::error::Result;
use crate::text::{one_line, visible};

/// No more sessions are looked at.
const MOST_SESSIONS: usize = 500;

pub(super) fn dearest_turns(
    library: &StoreLibrary,
    query: &SpendingQuery,
) -> Answer<Vec<DearTurn>> {
    let read = || -> Result<Vec<DearTurn>> {
        let index = library.recent_index()?;
        let found = find(library, &index, query)?;
        let turns = found.into_iter();
        turns.map(|turn| dear_turn(&index, turn)).collect()
    };
    read().map_err(failure)
}

/// A turn of a session.
struct SessionTurn {
    session: SessionId,
    turn: TurnRow,
}

/// Finds the dearest turns. No turn costs more than its session, so those that cost less than what
/// was found are not looked at.
fn find(library: &StoreLibrary, index: &Index, query: &SpendingQuery) -> Result<Vec<SessionTurn>> {
    let filter = filter(library, query)?;
    let sessions = index.spending_by(&filter, &[Group::Session])?.by;
    let mut found: Vec<SessionTurn> = Vec::new();
    for row in sessions.into_iter().take(MOST_SESSIONS) {
        let least = query.limit.checked_sub(1).and_then(|last| found.get(last));
        let least = least
            .map(|it| weight(&it.turn.spending))
            .unwrap_or_default();
        if query.limit == 0 || weight(&row.spending) <= least {
            break;
        }
        let Some(session) = row.key.and_then(|key| key.parse::<SessionId>().ok()) else {
            continue;
        };
        let turns = index.turns(&session, &filter)?.into_iter();
        found.extend(turns.map(|turn| SessionTurn {
            session: session.clone(),
            turn,
        }));
        found.sort_by_key(|it| std::cmp::Reverse(weight(&it.turn.spending)));
        found.truncate(query.limit);
    }
    Ok(found)
}

/// What is compared: costs, and tokens where they are equal.
fn weight(spending: &Spending) -> (Money, u64) {
    (spending.cost, spending.tokens())
}

fn dear_turn(index: &Index, found: SessionTurn) -> Result<DearTurn> {
    let row = derived::session(index, &found.session)?;
    let title = row.as_ref().and_then(title_of).unwrap_or(NO_TITLE);
    Ok(DearTurn {
        session: found.session.to_string(),
        title: one_line(&visible(title), 120),
        seq: found.turn.seq,
        prompt: prompt_words(&visible(&found.turn.prompt)),
        cost: group_cost(&found.turn.spending),
        tokens: group_tokens(&found.turn.spending),
    })
}

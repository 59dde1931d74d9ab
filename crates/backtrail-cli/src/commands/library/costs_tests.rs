//! Costs are those of `stats`, in its groups, and each group names its sessions.

use backtrail::{Draft, Message, Session, SessionOptions, Usage};
use backtrail_view::library::Library;

use super::super::testing::{Fixture, answer, call, result};
use super::*;

/// Adds an answer that cost so much, at a time.
fn spend(session: &Session, model: &str, dollars: f64, at: &str) {
    let reply = answer("done").usage(Usage::new(1000, 500));
    let draft = Draft::from(reply).model(model).cost_usd(dollars);
    session.append(draft.at(at.parse().unwrap())).unwrap();
}

fn store() -> (Fixture, [String; 2]) {
    let fixture = Fixture::new();
    let here = fixture.session(SessionOptions::new().agent("codex"));
    spend(&here, "m-1", 3.0, "2026-11-03T12:00:00Z");
    spend(&here, "m-2", 1.0, "2026-11-03T13:00:00Z");
    let other = fixture.create(SessionOptions::new().agent("pi"));
    spend(&other, "m-1", 1.0, "2026-11-05T12:00:00Z");
    let ids = [here.id().to_string(), other.id().to_string()];
    (fixture, ids)
}

fn rows(costs: &Costs) -> Vec<(&str, &str, &str, u16)> {
    let rows = costs.rows.iter();
    rows.map(|row| {
        (
            row.name.as_str(),
            row.cost.as_str(),
            row.tokens.as_str(),
            row.share,
        )
    })
    .collect()
}

#[test]
fn groups_are_those_of_stats_with_their_sessions() {
    let (fixture, [here, other]) = store();
    let costs = |by| fixture.library.costs(by, Scope::Everything).unwrap();
    let by_model = costs(CostsBy::Model);
    assert_eq!(
        rows(&by_model),
        [
            ("m-1", "$4.00", "3.0 k", 1000),
            ("m-2", "$1.00", "1.5 k", 250)
        ]
    );
    let mut sessions = by_model.rows[0].sessions.clone();
    sessions.sort();
    let mut both = [here.clone(), other.clone()];
    both.sort();
    assert_eq!(sessions, both);
    assert_eq!(by_model.rows[1].sessions, std::slice::from_ref(&here));
    assert!(
        by_model.total.ends_with("2 sessions · 3 calls · $5.00"),
        "{}",
        by_model.total
    );
    let by_agent = costs(CostsBy::Agent);
    assert_eq!(
        rows(&by_agent),
        [
            ("Codex", "$4.00", "3.0 k", 1000),
            ("pi", "$1.00", "1.5 k", 250)
        ]
    );
    let blocks = costs(CostsBy::Block);
    let spent: Vec<_> = rows(&blocks)
        .into_iter()
        .map(|(_, cost, ..)| cost)
        .collect();
    assert_eq!(spent, ["$4.00", "$1.00"]);
    assert_eq!(blocks.rows[0].sessions, [here]);
    assert_eq!(blocks.rows[1].sessions, [other]);
}

#[test]
fn months_tags_and_branches_are_groups_too() {
    let (fixture, _) = store();
    let tagged = fixture.session(SessionOptions::new().tags(["bug"]));
    spend(&tagged, "m-1", 2.0, "2026-11-06T12:00:00Z");
    let costs = |by| fixture.library.costs(by, Scope::Everything).unwrap();
    let by_month = costs(CostsBy::Month);
    let [(_, cost, ..)] = rows(&by_month)[..] else {
        panic!("{by_month:?}");
    };
    assert_eq!(cost, "$7.00");
    let by_tag = costs(CostsBy::Tag);
    let bugs = by_tag.rows.iter().find(|row| row.name == "bug").unwrap();
    assert_eq!(bugs.cost, "$2.00");
    assert_eq!(bugs.sessions, [tagged.id().to_string()]);
    assert_eq!(costs(CostsBy::Branch).rows.len(), 1);
}

#[test]
fn tools_are_counted_by_their_calls() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new().agent("codex"));
    for id in ["t1", "t2"] {
        session
            .append(Message::assistant([call(id, "ls")]))
            .unwrap();
        session.append(result(id, "a file")).unwrap();
    }
    let by_tool = fixture.library.costs(CostsBy::Tool, Scope::Everything);
    let by_tool = by_tool.unwrap();
    assert_eq!(rows(&by_tool), [("bash", "2 calls", "", 1000)]);
    assert_eq!(by_tool.rows[0].sessions, [session.id().to_string()]);
    assert!(
        by_tool.total.starts_with("2 tool calls"),
        "{}",
        by_tool.total
    );
}

#[test]
fn days_without_calls_are_there_and_empty() {
    let (fixture, [here, other]) = store();
    let by_day = fixture
        .library
        .costs(CostsBy::Day, Scope::Everything)
        .unwrap();
    let sessions: Vec<_> = by_day.rows.iter().map(|row| row.sessions.clone()).collect();
    assert_eq!(sessions, [vec![here], vec![], vec![other]]);
    let costs: Vec<_> = rows(&by_day)
        .into_iter()
        .map(|(_, cost, _, share)| (cost, share))
        .collect();
    assert_eq!(costs, [("$4.00", 1000), ("", 0), ("$1.00", 250)]);
}

#[test]
fn a_scope_limits_what_is_added_up() {
    let (fixture, _) = store();
    let costs = fixture
        .library
        .costs(CostsBy::Model, Scope::Workspace)
        .unwrap();
    assert!(
        costs.total.ends_with("1 session · 2 calls · $4.00"),
        "{}",
        costs.total
    );
    let nothing = Fixture::new();
    let costs = nothing
        .library
        .costs(CostsBy::Day, Scope::Everything)
        .unwrap();
    assert_eq!(costs.rows, []);
}

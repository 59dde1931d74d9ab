//! Short ids: every session has one, it is shown, and every verb accepts it.

use std::collections::HashMap;

use backtrail::{SessionId, Store};
use serde_json::Value;

use crate::find::{fill, ok};
use crate::kit::{Cli, short};

/// Returns two ids whose short ids share their first four letters.
fn twins() -> [String; 2] {
    let mut seen: HashMap<String, String> = HashMap::new();
    for n in 0.. {
        let id = format!("twin-{n}");
        let start = id.parse::<SessionId>().unwrap().short()[..4].to_owned();
        if let Some(other) = seen.insert(start, id.clone()) {
            return [other, id];
        }
    }
    unreachable!("there are more ids than beginnings")
}

/// Makes sessions of these ids, as another program would name them.
fn make(cli: &Cli, ids: &[&str]) {
    for id in ids {
        let made = cli.new_session(&format!("the talk of {id}"));
        let sessions = cli.store().join("sessions");
        std::fs::rename(sessions.join(&made), sessions.join(id)).unwrap();
    }
}

#[test]
fn every_verb_accepts_a_short_id() {
    let cli = Cli::new();
    let found = fill(&cli);
    let reference = short(&found.rounding);
    let of = |value: &Value| value["session"].as_str().map(str::to_owned);
    let place = format!("{reference}:2");
    let shown = ok(cli.run(&["show", &reference, "--json"])).json();
    assert_eq!(shown["id"], found.rounding.as_str());
    assert_eq!(shown["short"], reference.as_str());
    for args in [
        &["show", &place][..],
        &["show", &reference],
        &["title", &reference, "Rounding"],
        &["tag", &reference, "money"],
        &["pin", &reference],
        &["stats", &reference],
        &["context", &reference],
        &["export", &reference, "--to", "markdown"],
        &["log", "--steps", &reference],
        &["verify", &reference],
        &["rewind", &place, "--chat"],
        &["undo", &reference],
        &["redo", &reference],
        &["search", "rounding", "--all"],
    ] {
        let ran = ok(cli.run(args));
        assert!(!ran.stderr.contains("error"), "{args:?}: {ran:#?}");
    }
    let list = ok(cli.run(&["list", "--json"])).json();
    let mut rows = list.as_array().unwrap().iter();
    let row = rows.find(|row| row["id"] == found.rounding.as_str());
    let row = row.unwrap();
    assert_eq!(row["short"], reference.as_str());
    assert_eq!(
        (&row["title"], &row["pinned"]),
        (&"Rounding".into(), &true.into())
    );
    let fork = ok(cli.run(&["fork", &place, "--json"])).json();
    assert!(of(&fork).is_some_and(|id| id != found.rounding), "{fork}");
    let gone = short(&found.keys);
    ok(cli.run(&["delete", &gone]));
    let ran = cli.run(&["show", &gone]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains(&format!("trash restore {gone}")),
        "{ran:#?}"
    );
    ok(cli.run(&["trash", "restore", &gone]));
    ok(cli.run(&["show", &gone]));
}

#[test]
fn a_beginning_that_two_sessions_share_names_both_and_one_letter_more_is_shown() {
    let cli = Cli::new();
    let [one, other] = twins();
    make(&cli, &[&one, &other]);
    let shared = short(&one);
    assert_eq!(shared, short(&other));
    let known = Store::open(cli.store()).unwrap().short_ids().unwrap();
    let shown = [&one, &other].map(|id| known.shortest(&id.parse().unwrap()));
    assert!(
        shown
            .iter()
            .all(|it| it.len() > 4 && it.starts_with(&shared))
    );
    let ran = cli.run(&["show", &shared]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr
            .contains(&format!("2 session ids begin with \"{shared}\"")),
        "{ran:#?}"
    );
    let list = ok(cli.run(&["list", "--all"])).stdout;
    for (shown, id) in shown.iter().zip([&one, &other]) {
        assert!(ran.stderr.contains(&format!("hint: {shown} (")), "{ran:#?}");
        assert!(list.contains(&format!("{shown}  ")), "{list}");
        let json = ok(cli.run(&["show", shown, "--json"])).json();
        assert_eq!(json["id"], id.as_str());
        assert_eq!(json["short"], shown.as_str());
    }
    // In the trash it counts all the same: it can be restored.
    ok(cli.run(&["delete", &other]));
    let list = ok(cli.run(&["list", "--all"])).stdout;
    assert!(list.contains(&shown[0]), "{list}");
}

#[test]
fn an_id_comes_before_a_short_id_and_that_before_the_beginning_of_an_id() {
    let cli = Cli::new();
    let owner = cli.new_session("the owner");
    let letters = short(&owner);
    let longer = format!("{letters}-and-more");
    make(&cli, &[&longer]);
    let found = |reference: &str| {
        let shown = ok(cli.run(&["show", reference, "--json"])).json();
        shown["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(found(&letters), owner, "the short id");
    assert_eq!(found(&longer[..6]), longer, "the beginning of an id");
    make(&cli, &[&letters]);
    assert_eq!(found(&letters), letters, "the id itself");
    assert_eq!(
        found(&owner[..8]),
        owner,
        "the beginning of an id still works"
    );
}

//! The plan against a model: a session is a list of keys, and a file a list of changes.

use backtrail::{Block, Message, Usage};
use proptest::prelude::*;

use super::*;

type Session = Vec<(String, u64)>;

fn message(key: &str) -> Event {
    let message = Message::assistant([Block::text(format!("text of {key}"))]);
    Event::Message(MessageEvent::new(key, message))
}

fn existing(session: &Session) -> impl Iterator<Item = Result<Existing>> {
    let one = |(key, seq): &(String, u64)| Existing {
        key: key.clone(),
        seq: *seq,
        has_usage: true,
    };
    let all: Vec<_> = session.iter().map(one).map(Ok).collect();
    all.into_iter()
}

fn compare(session: &Session, changes: &[Change], on_difference: OnDifference) -> Vec<Step> {
    plan(
        Diff::compare(existing(session), on_difference).unwrap(),
        changes,
    )
}

fn plan(mut diff: Diff<impl Iterator<Item = Result<Existing>>>, changes: &[Change]) -> Vec<Step> {
    let mut plan = Vec::new();
    for change in changes {
        diff.next(change.clone(), &mut plan).unwrap();
    }
    diff.end(&mut plan).unwrap();
    plan
}

/// Carries out a plan on the model. Returns what belongs to another session.
fn apply(session: &mut Session, plan: &[Step]) -> Option<(Option<u64>, Vec<Change>)> {
    let mut next = session.last().map_or(1, |(_, seq)| seq + 1) + 1_000;
    for step in plan {
        match step {
            Step::Make(Change::Add(event)) => {
                session.push((event.key().to_owned(), next));
                next += 1;
            }
            Step::RewindToRecord(seq) => {
                session.retain(|(_, own)| seq.is_some_and(|seq| *own <= seq));
            }
            Step::Make(Change::RewindTo(None)) => session.clear(),
            Step::Make(Change::RewindTo(Some(key))) => {
                if let Some(at) = session.iter().rposition(|(own, _)| own == key) {
                    session.truncate(at + 1);
                }
            }
            Step::Leave { common, changes } => return Some((*common, changes.clone())),
        }
    }
    None
}

fn keys(session: &Session) -> Vec<&str> {
    session.iter().map(|(key, _)| key.as_str()).collect()
}

/// Returns the conversation that a file amounts to.
fn conversation(changes: &[Change]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for change in changes {
        match change {
            Change::Add(event) => keys.push(event.key().to_owned()),
            Change::RewindTo(key) => {
                let at = keys.iter().rposition(|own| Some(own) == key.as_ref());
                keys.truncate(at.map_or(0, |at| at + 1));
            }
        }
    }
    keys
}

fn session(keys: &[String]) -> Session {
    keys.iter().cloned().zip(1..).collect()
}

/// Random changes whose keys start with `name`, after others.
fn changes(before: Vec<Change>, name: &'static str) -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec(prop::option::weighted(0.3, any::<u8>()), 0..16).prop_map(move |random| {
        let mut changes = before.clone();
        for (n, rewind) in random.into_iter().enumerate() {
            let keys = conversation(&changes);
            changes.push(match rewind {
                Some(to) => {
                    let to = usize::from(to) % (keys.len() + 1);
                    Change::RewindTo(to.checked_sub(1).map(|to| keys[to].clone()))
                }
                None => Change::Add(message(&format!("{name}{n}"))),
            });
        }
        changes
    })
}

/// A session's file as it was imported, and the file to import: both start in the same way.
fn two_files() -> impl Strategy<Value = (Vec<Change>, Vec<Change>)> {
    changes(Vec::new(), "shared")
        .prop_flat_map(|shared| (changes(shared.clone(), "old"), changes(shared, "new")))
}

proptest! {
    #[test]
    fn a_session_follows_its_file_and_a_second_import_changes_nothing(
        (old, new) in two_files(),
        at_end in any::<bool>(),
    ) {
        let on_difference = match at_end {
            true => OnDifference::RewindAtEnd,
            false => OnDifference::Rewind,
        };
        let before = session(&conversation(&old));
        let mut after = before.clone();
        let left = apply(&mut after, &compare(&before, &new, on_difference));
        prop_assert_eq!(left, None);
        let expected = conversation(&new);
        let only_ends_early = !at_end && keys(&before).starts_with(
            &expected.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        match only_ends_early {
            true => prop_assert!(keys(&after).starts_with(&keys(&session(&expected)))),
            false => prop_assert_eq!(keys(&after), expected),
        }
        // A file that ends with a rewind appends the events again, and rewinds them again.
        if matches!(new.last(), Some(Change::Add(_))) {
            prop_assert_eq!(compare(&after, &new, on_difference), Vec::new());
        }
    }

    #[test]
    fn a_session_of_another_file_is_left_unchanged_and_nothing_is_lost((old, new) in two_files()) {
        let before = session(&conversation(&old));
        let plan = compare(&before, &new, OnDifference::Leave);
        let leaves = plan.iter().position(|step| matches!(step, Step::Leave { .. }));
        let mut after = before.clone();
        match apply(&mut after, &plan) {
            Some((common, changes)) => {
                prop_assert_eq!(leaves, Some(0));
                prop_assert_eq!(&after, &before);
                let mut branch = before;
                branch.retain(|(_, seq)| common.is_some_and(|common| *seq <= common));
                let steps: Vec<Step> = changes.into_iter().map(Step::Make).collect();
                apply(&mut branch, &steps);
                // What follows in the file goes to the branch as well.
                apply(&mut branch, &plan[1..]);
                prop_assert_eq!(keys(&branch), conversation(&new));
            }
            None => {
                let expected = session(&conversation(&new));
                let is_covered = keys(&before).starts_with(&keys(&expected));
                prop_assert!(keys(&after) == keys(&expected) || is_covered);
            }
        }
    }

    #[test]
    fn parts_of_several_files_are_added_once((old, new) in two_files()) {
        let adds = |changes: &[Change]| -> Vec<Change> {
            let is_add = |change: &&Change| matches!(change, Change::Add(_));
            changes.iter().filter(is_add).cloned().collect()
        };
        let before = conversation(&adds(&old));
        let known: HashSet<String> = before.iter().cloned().collect();
        let diff = Diff::<std::vec::IntoIter<_>>::add_missing(known.clone());
        let mut after = session(&before);
        apply(&mut after, &plan(diff, &adds(&new)));
        let missing = conversation(&adds(&new)).into_iter().filter(|key| !known.contains(key));
        let expected: Vec<String> = before.into_iter().chain(missing).collect();
        prop_assert_eq!(keys(&after), expected);
        let known = after.iter().map(|(key, _)| key.clone()).collect();
        let diff = Diff::<std::vec::IntoIter<_>>::add_missing(known);
        prop_assert_eq!(plan(diff, &adds(&new)), Vec::new());
    }

    #[test]
    fn events_that_a_crash_left_are_not_appended_twice(count in 0..12_usize, left in 0..12_usize) {
        let all: Vec<Change> = (0..count).map(|n| Change::Add(message(&n.to_string()))).collect();
        let left = left.min(count);
        let known = conversation(&all[..left]).into_iter().collect();
        let mut after = session(&conversation(&all[..left]));
        apply(&mut after, &plan(Diff::<std::vec::IntoIter<_>>::append_after(known), &all));
        prop_assert_eq!(keys(&after), conversation(&all));
    }
}

#[test]
fn usage_that_a_session_lacks_is_added_once_at_the_end() {
    let with_usage = |key: &str| {
        let message = Message::assistant([Block::text("text")]).usage(Usage::new(10, 1));
        let mut event = MessageEvent::new(key, message);
        event.response_id = Some(format!("response-{key}"));
        Change::Add(Event::Message(event))
    };
    let changes = [with_usage("1"), with_usage("2"), with_usage("3")];
    let had = |key: &str, seq| Existing {
        key: key.to_owned(),
        seq,
        has_usage: false,
    };
    let run = |existing: Vec<Existing>| {
        let existing = existing.into_iter().map(Ok);
        let diff = Diff::compare(existing, OnDifference::Rewind).unwrap();
        let steps = plan(diff, &changes).into_iter();
        let keys = steps.map(|step| match step {
            Step::Make(Change::Add(event)) => event.key().to_owned(),
            other => panic!("{other:?}"),
        });
        keys.collect::<Vec<_>>()
    };
    let two = vec![had("1", 1), had("2", 2)];
    assert_eq!(run(two.clone()), ["3", "1~usage", "2~usage"]);
    let known = [two, vec![had("1~usage", 3)]].concat();
    assert_eq!(run(known), ["3", "2~usage"]);
}

#[test]
fn usage_that_belongs_to_no_place_is_added_once_however_the_session_grows() {
    let usage = |key: &str| {
        Change::Add(Event::Usage(UsageEvent {
            key: format!("{key}{}", UsageEvent::ANYWHERE),
            at: None,
            response_id: "r".to_owned(),
            model: None,
            usage: Usage::new(1, 1),
            duration_ms: None,
            cost_usd: None,
        }))
    };
    let add = |key: &str| Change::Add(message(key));
    for on_difference in [OnDifference::Rewind, OnDifference::RewindAtEnd] {
        let mut session = Session::new();
        let mut import = |changes: &[Change]| {
            let plan = compare(&session, changes, on_difference);
            apply(&mut session, &plan);
            let keys: Vec<String> = session.iter().map(|(key, _)| key.clone()).collect();
            (plan.len(), keys.join(" "))
        };
        let first = [add("1"), usage("a")];
        assert_eq!(import(&first), (2, "1 a~usage".to_owned()));
        assert_eq!(import(&first).0, 0);
        let grown = [add("1"), add("2"), usage("a"), usage("b")];
        assert_eq!(import(&grown), (2, "1 a~usage 2 b~usage".to_owned()));
        assert_eq!(import(&grown).0, 0);
        // What is rewound with the conversation is added again.
        let other = [add("1"), add("3"), usage("a"), usage("b")];
        assert_eq!(import(&other).1, "1 3 a~usage b~usage");
        assert_eq!(import(&other).0, 0);
    }
}

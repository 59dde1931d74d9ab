//! Import, one promise at a time.

use backtrail::SessionId;
use backtrail::trash::DeleteScope;
use backtrail_formats::import;

use crate::toy::{Kit, says};

const NAME: &str = "session-of-a-toy-1";

fn id() -> SessionId {
    NAME.parse().unwrap()
}

#[test]
fn a_file_is_taken_in_once_and_goes_on_where_it_was() {
    let kit = Kit::new();
    kit.write("a.toy", says(NAME, &["1", "2"]));
    assert_eq!(kit.counts(), (1, 0, 0));
    assert_eq!(kit.counts(), (0, 0, 1));
    assert_eq!(kit.keys(&id()), ["1", "2"]);
    kit.write("a.toy", says(NAME, &["1", "2", "3"]));
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    let info = kit.store.read_session(&id()).unwrap().info().unwrap();
    assert_eq!(info.belongs_to.as_deref(), Some("toy"));
    // When it was said counts, not when it was taken in.
    let at = info.updated_at.unwrap().to_string();
    assert!(at.starts_with("2023-11-14T"), "{at}");
}

#[test]
fn what_is_known_of_files_can_be_deleted_at_any_time() {
    let kit = Kit::new();
    kit.write("a.toy", says(NAME, &["1", "2"]));
    kit.import();
    kit.forget_cache();
    assert_eq!(kit.counts(), (0, 0, 1));
    kit.write("a.toy", says(NAME, &["1", "2", "3"]));
    kit.forget_cache();
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.all(), [["1", "2", "3"]]);
    assert_eq!(
        kit.held("a.toy").unwrap().1,
        says(NAME, &["1", "2", "3"]).into_bytes()
    );
}

#[test]
fn copies_of_one_session_at_several_lengths_are_one_that_grew_in_whatever_order() {
    let lengths: [&[&str]; 4] = [&["1"], &["1", "2"], &["1", "2", "3"], &["1", "2", "3", "4"]];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        let kit = Kit::new();
        for (n, at) in order.into_iter().enumerate() {
            kit.write(&format!("{n}.toy"), says(NAME, lengths[at]));
            kit.import();
        }
        assert_eq!(kit.all(), [["1", "2", "3", "4"]], "{order:?}");
        for (n, at) in order.into_iter().enumerate() {
            let held = kit.held(&format!("{n}.toy")).unwrap();
            assert_eq!(held.1, says(NAME, lengths[at]).into_bytes());
        }
    }
}

// F21
#[test]
fn f21_a_source_that_is_cut_off_rewritten_or_deleted_takes_nothing_away() {
    let kit = Kit::new();
    let whole = says(NAME, &["1", "2", "3"]);
    kit.write("a.toy", &whole);
    kit.import();
    kit.write("a.toy", &whole[..whole.len() - 20]);
    assert_eq!(kit.counts(), (0, 0, 1));
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    assert_eq!(kit.held("a.toy").unwrap().1, whole.as_bytes());
    kit.write("a.toy", "");
    assert_eq!(kit.counts(), (0, 0, 1));
    std::fs::remove_file(kit.path("a.toy")).unwrap();
    assert_eq!(kit.import().agents[0].found, 0);
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    // Rewritten: the session goes along, and what was taken in stays in its trail.
    kit.write("a.toy", says(NAME, &["1", "x", "y", "z"]));
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1", "x", "y", "z"]);
    let old = kit.ever_said(&id());
    assert!(old.contains(&"2".to_owned()) && old.contains(&"3".to_owned()));
    assert_eq!(kit.counts(), (0, 0, 1));
}

#[test]
fn another_file_with_the_same_name_is_a_branch_or_a_session_of_its_own() {
    let kit = Kit::new();
    kit.write("a.toy", says(NAME, &["1", "2"]));
    kit.write("b.toy", says(NAME, &["1", "x"]));
    kit.write("c.toy", says(NAME, &["p", "q"]));
    assert_eq!(kit.counts(), (3, 0, 0));
    assert_eq!(kit.all(), [["1", "2"], ["1", "x"], ["p", "q"]]);
    let (branch, _) = kit.held("b.toy").unwrap();
    let info = kit.store.read_session(&branch).unwrap().info().unwrap();
    assert_eq!(info.forked_from.unwrap().parent_session_id, NAME);
    let (other, _) = kit.held("c.toy").unwrap();
    let info = kit.store.read_session(&other).unwrap().info().unwrap();
    assert_eq!(info.original_id.as_deref(), Some(NAME));
    for _ in 0..2 {
        assert_eq!(kit.counts(), (0, 0, 3));
        kit.forget_cache();
    }
    for (file, keys) in [("b.toy", ["1", "x", "y"]), ("c.toy", ["p", "q", "r"])] {
        kit.write(file, says(NAME, &keys));
    }
    assert_eq!(kit.counts(), (0, 2, 1));
    assert_eq!(
        kit.all(),
        [vec!["1", "2"], vec!["1", "x", "y"], vec!["p", "q", "r"]]
    );
}

#[test]
fn branches_and_sub_agents_are_sessions_of_their_own() {
    let kit = Kit::new();
    let lines = says(NAME, &["1", "2"])
        + "{\"agent\":\"a1\",\"say\":\"s1\",\"call\":\"t\"}\n"
        + "{\"branch\":\"x\",\"after\":\"1\",\"say\":\"x\"}\n"
        + "{\"say\":\"3\"}\n"
        + "{\"agent\":\"a1\",\"say\":\"s2\",\"call\":\"t\"}\n";
    kit.write("a.toy", &lines);
    assert_eq!(kit.counts(), (1, 0, 0));
    assert_eq!(
        kit.all(),
        [vec!["1", "2", "3"], vec!["1", "x"], vec!["s1", "s2"]]
    );
    kit.write(
        "a.toy",
        lines + "{\"agent\":\"a1\",\"say\":\"s3\"}\n{\"branch\":\"x\",\"say\":\"y\"}\n",
    );
    assert_eq!(kit.counts(), (0, 1, 0));
    let all = kit.all();
    assert_eq!(
        all,
        [
            vec!["1", "2", "3"],
            vec!["1", "x", "y"],
            vec!["s1", "s2", "s3"]
        ]
    );
    kit.forget_cache();
    assert_eq!(kit.counts(), (0, 0, 1));
    assert_eq!(kit.all(), all);
    let spawned = kit.store.sessions().unwrap().into_iter().filter(|id| {
        let info = kit.store.read_session(id).unwrap().info().unwrap();
        info.spawned_by
            .is_some_and(|by| by.session_id == self::id())
    });
    assert_eq!(spawned.count(), 1);
}

#[test]
fn a_conversation_that_its_agent_took_back_is_taken_back() {
    let kit = Kit::new();
    let lines = says(NAME, &["1", "2", "3"]);
    kit.write("a.toy", &lines);
    kit.import();
    let lines = lines + "{\"back\":\"1\"}\n{\"say\":\"4\"}\n";
    kit.write("a.toy", &lines);
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1", "4"]);
    let trails = || {
        kit.store
            .read_session(&id())
            .unwrap()
            .info()
            .unwrap()
            .trails
    };
    let before = trails();
    // Read whole, it is the same conversation: nothing is done again.
    kit.forget_cache();
    assert_eq!(kit.counts(), (0, 0, 1));
    assert_eq!(
        (kit.keys(&id()), trails()),
        (vec!["1".into(), "4".into()], before)
    );
}

// F21: what a person deleted does not come back by itself.
#[test]
fn f21_a_session_that_was_deleted_here_is_not_taken_in_again() {
    let kit = Kit::new();
    kit.write("a.toy", says(NAME, &["1"]));
    kit.import();
    let plan = kit.store.delete_plan(&[id()], DeleteScope::Named);
    plan.unwrap().apply().unwrap();
    for _ in 0..2 {
        let report = kit.import();
        assert_eq!((report.agents[0].unchanged, report.agents[0].new), (1, 0));
        assert!(kit.store.sessions().unwrap().is_empty());
        kit.write("a.toy", says(NAME, &["1", "2"]));
        kit.forget_cache();
    }
}

#[test]
fn a_title_that_a_person_gave_stays_until_the_agent_gives_another() {
    let kit = Kit::new();
    let title = || kit.store.read_session(&id()).unwrap().info().unwrap().title;
    let lines = says(NAME, &["1"]) + "{\"title\":\"first\"}\n";
    kit.write("a.toy", &lines);
    kit.import();
    assert_eq!(title().as_deref(), Some("first"));
    kit.store
        .note(&id(), &backtrail::Note::new().title("mine"))
        .unwrap();
    let lines = lines + "{\"say\":\"2\"}\n";
    kit.write("a.toy", &lines);
    kit.import();
    assert_eq!(title().as_deref(), Some("mine"));
    assert_eq!(kit.keys(&id()), ["1", "2"]);
    kit.write("a.toy", lines + "{\"title\":\"second\"}\n");
    kit.import();
    assert_eq!(title().as_deref(), Some("second"));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let kit = Kit::new();
    kit.write("a.toy", says(NAME, &["1"]));
    let dry = || {
        let report = import(Some(&kit.store), &kit.options().dry_run(), &|_| {}).unwrap();
        let agent = &report.agents[0];
        (agent.new, agent.updated, agent.unchanged)
    };
    assert_eq!(dry(), (1, 0, 0));
    assert!(kit.store.sessions().unwrap().is_empty());
    kit.import();
    assert_eq!(dry(), (0, 0, 1));
    kit.write("a.toy", says(NAME, &["1", "2"]));
    assert_eq!(dry(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1"]);
    let nobody = import(None, &kit.options().dry_run(), &|_| {}).unwrap();
    assert_eq!(nobody.agents[0].new, 1);
}

// F4: two imports at once.
#[test]
fn f4_imports_at_the_same_time_take_each_thing_in_once() {
    let kit = Kit::new();
    for n in 0..20 {
        let name = format!("a-session-of-a-toy-{n}");
        kit.write(&format!("{n}.toy"), says(&name, &["1", "2", "3"]));
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| kit.import());
        }
    });
    assert_eq!(kit.all(), vec![["1", "2", "3"]; 20]);
    assert_eq!(kit.counts(), (0, 0, 20));
}

// F5: what a crash left behind the last reading is found by its keys.
#[test]
fn f5_records_that_a_crash_left_without_their_reading_do_not_come_twice() {
    let kit = Kit::new();
    kit.write("a.toy", says(NAME, &["1"]));
    kit.import();
    let mut intake = kit.store.resume_intake(&id()).unwrap();
    let message = backtrail::Message::assistant([backtrail::Block::text("says 2")]);
    intake
        .message(&backtrail::Draft::from(message).id("2"))
        .unwrap();
    intake.close().unwrap();
    kit.write("a.toy", says(NAME, &["1", "2", "3"]));
    kit.import();
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    assert_eq!(kit.counts(), (0, 0, 1));
}

#[test]
fn a_file_that_was_rewritten_shorter_takes_nothing_away() {
    let kit = Kit::new();
    kit.write("a.toy", says(NAME, &["1", "2", "3"]));
    kit.import();
    kit.write("a.toy", says(NAME, &["1"]) + "garbage\n");
    kit.import();
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
}

#[test]
fn two_files_of_one_name_that_grow_side_by_side_do_not_take_each_others_place() {
    let kit = Kit::new();
    for file in ["a.toy", "b.toy"] {
        kit.write(file, says(NAME, &[]));
    }
    kit.import();
    for n in 1..4 {
        let a: Vec<String> = (0..n).map(|n| format!("a{n}")).collect();
        let b: Vec<String> = (0..n).map(|n| format!("b{n}")).collect();
        for (file, keys) in [("a.toy", &a), ("b.toy", &b)] {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            kit.write(file, says(NAME, &keys));
            kit.import();
            assert_eq!(kit.held(file).unwrap().1, says(NAME, &keys).into_bytes());
        }
        assert_eq!(kit.all(), [a, b]);
    }
}

#[test]
fn what_its_agent_took_back_is_not_told_again_when_the_file_is_read_whole() {
    let kit = Kit::new();
    let lines = says(NAME, &["1", "2", "3"]) + "{\"back\":\"1\"}\n{\"say\":\"4\"}\n";
    kit.write("a.toy", &lines);
    kit.import();
    let trails = || {
        kit.store
            .read_session(&id())
            .unwrap()
            .info()
            .unwrap()
            .trails
    };
    let before = trails();
    // Longer at its beginning: it has to be read whole.
    let header = format!("{{\"session\":\"{NAME}\"}}\n");
    kit.write(
        "a.toy",
        lines.replace(&header, &format!("{header}{{\"title\":\"t\"}}\n")),
    );
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(
        (kit.keys(&id()), trails()),
        (vec!["1".into(), "4".into()], before)
    );
}

// F24: a usage that only another file of the session tells counts, once.
#[test]
fn f24_usage_that_another_file_tells_counts_once() {
    let kit = Kit::new();
    kit.write(
        "a.toy",
        says(NAME, &["1"]).replace("\"say\"", "\"free\":1,\"say\""),
    );
    kit.import();
    let usage = || {
        kit.store
            .read_session(&id())
            .unwrap()
            .stats()
            .unwrap()
            .usage
    };
    assert_eq!(usage().total(), 0);
    kit.write("b.toy", says(NAME, &["1"]));
    kit.import();
    assert_eq!(usage().total(), 11);
    kit.forget_cache();
    kit.write("b.toy", says(NAME, &["1"]) + "\n");
    kit.import();
    assert_eq!(usage().total(), 11);
    assert_eq!(kit.all(), [["1"]]);
}

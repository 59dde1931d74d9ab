//! Import, one promise at a time.

use backtrail::plumbing::SourceRecord;
use backtrail::trash::DeleteScope;
use backtrail::{LocalStorage, SessionId, StoreOptions};
use backtrail_formats::{ClaudeCode, import, preview};
use backtrail_testkit::{Count, Fault, FaultyStorage, When};

use crate::toy::{Kit, lines};

const NAME: &str = "session-of-a-toy-1";

fn id() -> SessionId {
    NAME.parse().unwrap()
}

#[test]
fn a_file_is_imported_once_and_continued_when_it_grows() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2"]));
    assert_eq!(kit.counts(), (1, 0, 0));
    assert_eq!(kit.counts(), (0, 0, 1));
    assert_eq!(kit.keys(&id()), ["1", "2"]);
    kit.write("a.toy", lines(NAME, &["1", "2", "3"]));
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    let info = kit.store.read_session(&id()).unwrap().info().unwrap();
    assert_eq!(info.belongs_to.as_deref(), Some("toy"));
    // The time of the messages counts, not the time of the import.
    let at = info.updated_at.unwrap().to_string();
    assert!(at.starts_with("2023-11-14T"), "{at}");
}

#[test]
fn the_cache_can_be_deleted_at_any_time() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2"]));
    kit.import();
    kit.forget_cache();
    assert_eq!(kit.counts(), (0, 0, 1));
    kit.write("a.toy", lines(NAME, &["1", "2", "3"]));
    kit.forget_cache();
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.all(), [["1", "2", "3"]]);
    assert_eq!(
        kit.kept("a.toy").unwrap().1,
        lines(NAME, &["1", "2", "3"]).into_bytes()
    );
}

// F5, F38: a crash between the session's last sync and the cache's, or a backup of `derived/`.
#[test]
fn f38_a_cache_that_is_older_than_the_session_decides_nothing() {
    let kit = Kit::new();
    let all = ["1", "2", "3", "4", "5"];
    let mut caches = Vec::new();
    for to in 1..all.len() {
        kit.write("a.toy", lines(NAME, &all[..to]));
        kit.import();
        caches.push(kit.cache());
    }
    let whole = lines(NAME, &all);
    for cache in &caches {
        kit.set_cache(cache.as_deref());
        assert_eq!(kit.counts(), (0, 0, 1));
    }
    for cache in &caches {
        kit.set_cache(cache.as_deref());
        kit.write("a.toy", &whole);
        kit.import();
        assert_eq!(kit.keys(&id()), all);
        assert_eq!(kit.kept("a.toy").unwrap().1, whole.as_bytes());
    }
}

/// A file of Claude Code with so many messages.
fn claude_file(messages: usize) -> String {
    let line = |n: usize| {
        let parent = match n {
            0 => "null".to_owned(),
            n => format!("\"00000000-0000-4000-8000-{:012}\"", n - 1),
        };
        format!(
            "{{\"parentUuid\":{parent},\"sessionId\":\"0b1c2d3e-0000-4000-8000-000000000001\",\
             \"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"message {n}\"}},\
             \"uuid\":\"00000000-0000-4000-8000-{n:012}\",\
             \"timestamp\":\"2026-08-03T10:00:{n:02}.000Z\"}}\n"
        )
    };
    (0..messages).map(line).collect()
}

// F5: killed at any write or sync of the second import; the cache is as it was before, as
// after `kill -9`, or as the import left it.
#[test]
fn f5_an_import_of_a_grown_file_that_is_killed_anywhere_is_made_whole_by_the_next() {
    let mut killed = 0;
    for (when, is_cache_older) in [
        (When::Before, true),
        (When::After, true),
        (When::After, false),
    ] {
        for n in 0.. {
            let kit = Kit::new();
            let name = "0b1c2d3e-0000-4000-8000-000000000001.jsonl";
            let options = || {
                let options = kit.options().formats(vec![&ClaudeCode]);
                options.paths(vec![kit.path(name)])
            };
            kit.write(name, claude_file(2));
            import(&kit.store, &options(), &|_| {}).unwrap();
            let cache = kit.cache();
            kit.write(name, claude_file(4));
            let disk = FaultyStorage::new(LocalStorage).counting(Count::Writes);
            let faulty = StoreOptions::new().storage(disk.clone());
            let faulty = faulty.open(kit.store.root()).unwrap();
            disk.arm(n, Fault::Crash { when });
            import(&faulty, &options(), &|_| {}).ok();
            let fired = disk.fired();
            drop(faulty);
            if is_cache_older {
                kit.set_cache(cache.as_deref());
            }
            // The file may have grown again by then.
            for messages in [4, 6, 6] {
                kit.write(name, claude_file(messages));
                let report = import(&kit.store, &options(), &|_| {}).unwrap();
                assert!(
                    report.agents[0].errors.is_empty(),
                    "{n}: {:?}",
                    report.agents[0].errors
                );
                let (id, kept) = kit.kept(name).unwrap();
                assert_eq!(
                    String::from_utf8(kept).unwrap(),
                    claude_file(messages),
                    "{n}"
                );
                let reader = kit.store.read_session(&id).unwrap();
                assert!(!reader.sources().unwrap()[0].incomplete, "{n}");
                assert_eq!(kit.keys(&id).len(), messages, "{n}");
            }
            if !fired {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed > 10, "{killed}");
}

// F38.
#[test]
fn f38_a_cache_that_is_newer_than_a_restored_session_decides_nothing() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2"]));
    kit.import();
    let dir = kit.store.root().join("sessions").join(NAME);
    let backup: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (std::fs::read(&path).unwrap(), path))
        .collect();
    let whole = lines(NAME, &["1", "2", "3"]);
    kit.write("a.toy", &whole);
    kit.import();
    for (bytes, path) in backup {
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    assert_eq!(kit.kept("a.toy").unwrap().1, whole.as_bytes());
}

#[test]
fn a_part_of_a_file_that_was_kept_twice_is_exported_once() {
    let kit = Kit::new();
    let lengths: [&[&str]; 3] = [&["1"], &["1", "2"], &["1", "2", "3"]];
    for keys in lengths {
        kit.write("a.toy", lines(NAME, keys));
        kit.import();
    }
    let whole = lines(NAME, lengths[2]);
    for from in [lengths[1], lengths[0], &[]].map(|keys| lines(NAME, keys).len()) {
        // Where no record ended, bytes before the part are missing.
        let is_boundary = from > lines(NAME, &[]).len();
        let mut writer = kit.store.resume_import(&id()).unwrap();
        let mut again = SourceRecord::new("toy", kit.path("a.toy")).from(from as u64);
        writer.keep(&mut again, &whole.as_bytes()[from..]).unwrap();
        writer.source(&again).unwrap();
        writer.close().unwrap();
        let sources = kit.store.read_session(&id()).unwrap().sources().unwrap();
        assert_eq!(sources[0].incomplete, !is_boundary, "{from}");
        if is_boundary {
            assert_eq!(kit.kept("a.toy").unwrap().1, whole.as_bytes());
        }
    }
    // The next reading keeps the whole file.
    kit.write("a.toy", lines(NAME, &["1", "2", "3", "4"]));
    kit.forget_cache();
    kit.import();
    assert_eq!(
        kit.kept("a.toy").unwrap().1,
        lines(NAME, &["1", "2", "3", "4"]).into_bytes()
    );
}

#[test]
fn copies_of_a_session_at_several_lengths_are_one_session_in_any_order() {
    let lengths: [&[&str]; 4] = [&["1"], &["1", "2"], &["1", "2", "3"], &["1", "2", "3", "4"]];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        let kit = Kit::new();
        for (n, at) in order.into_iter().enumerate() {
            kit.write(&format!("{n}.toy"), lines(NAME, lengths[at]));
            kit.import();
        }
        assert_eq!(kit.all(), [["1", "2", "3", "4"]], "{order:?}");
        for (n, at) in order.into_iter().enumerate() {
            let held = kit.kept(&format!("{n}.toy")).unwrap();
            assert_eq!(held.1, lines(NAME, lengths[at]).into_bytes());
        }
    }
}

// F21
#[test]
fn f21_a_file_that_is_truncated_rewritten_or_deleted_removes_nothing() {
    let kit = Kit::new();
    let whole = lines(NAME, &["1", "2", "3"]);
    kit.write("a.toy", &whole);
    kit.import();
    kit.write("a.toy", &whole[..whole.len() - 20]);
    assert_eq!(kit.counts(), (0, 0, 1));
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    assert_eq!(kit.kept("a.toy").unwrap().1, whole.as_bytes());
    kit.write("a.toy", "");
    assert_eq!(kit.counts(), (0, 0, 1));
    std::fs::remove_file(kit.path("a.toy")).unwrap();
    assert_eq!(kit.import().agents[0].found, 0);
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    // Rewritten: the session follows, and the old events stay in its trail.
    kit.write("a.toy", lines(NAME, &["1", "x", "y", "z"]));
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1", "x", "y", "z"]);
    let old = kit.all_keys(&id());
    assert!(old.contains(&"2".to_owned()) && old.contains(&"3".to_owned()));
    assert_eq!(kit.counts(), (0, 0, 1));
}

#[test]
fn another_file_with_the_same_name_is_a_branch_or_a_session_of_its_own() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2"]));
    kit.write("b.toy", lines(NAME, &["1", "x"]));
    kit.write("c.toy", lines(NAME, &["p", "q"]));
    assert_eq!(kit.counts(), (3, 0, 0));
    assert_eq!(kit.all(), [["1", "2"], ["1", "x"], ["p", "q"]]);
    let (branch, _) = kit.kept("b.toy").unwrap();
    let info = kit.store.read_session(&branch).unwrap().info().unwrap();
    assert_eq!(info.forked_from.unwrap().parent_session_id, NAME);
    let (other, _) = kit.kept("c.toy").unwrap();
    let info = kit.store.read_session(&other).unwrap().info().unwrap();
    assert_eq!(info.original_id.as_deref(), Some(NAME));
    for _ in 0..2 {
        assert_eq!(kit.counts(), (0, 0, 3));
        kit.forget_cache();
    }
    for (file, keys) in [("b.toy", ["1", "x", "y"]), ("c.toy", ["p", "q", "r"])] {
        kit.write(file, lines(NAME, &keys));
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
    let text = lines(NAME, &["1", "2"])
        + "{\"agent\":\"a1\",\"say\":\"s1\",\"call\":\"t\"}\n"
        + "{\"branch\":\"x\",\"after\":\"1\",\"say\":\"x\"}\n"
        + "{\"say\":\"3\"}\n"
        + "{\"agent\":\"a1\",\"say\":\"s2\",\"call\":\"t\"}\n";
    kit.write("a.toy", &text);
    assert_eq!(kit.counts(), (1, 0, 0));
    assert_eq!(
        kit.all(),
        [vec!["1", "2", "3"], vec!["1", "x"], vec!["s1", "s2"]]
    );
    kit.write(
        "a.toy",
        text + "{\"agent\":\"a1\",\"say\":\"s3\"}\n{\"branch\":\"x\",\"say\":\"y\"}\n",
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
fn a_conversation_that_its_agent_rewound_is_rewound() {
    let kit = Kit::new();
    let text = lines(NAME, &["1", "2", "3"]);
    kit.write("a.toy", &text);
    kit.import();
    let text = text + "{\"back\":\"1\"}\n{\"say\":\"4\"}\n";
    kit.write("a.toy", &text);
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
    // Read from the beginning, it is the same conversation: nothing changes.
    kit.forget_cache();
    assert_eq!(kit.counts(), (0, 0, 1));
    assert_eq!(
        (kit.keys(&id()), trails()),
        (vec!["1".into(), "4".into()], before)
    );
}

// F21: a deleted session does not come back by itself.
#[test]
fn f21_a_session_that_was_deleted_here_is_not_imported_again() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1"]));
    kit.import();
    let plan = kit.store.delete_plan(&[id()], DeleteScope::Named);
    plan.unwrap().apply().unwrap();
    for _ in 0..2 {
        let report = kit.import();
        assert_eq!((report.agents[0].unchanged, report.agents[0].new), (1, 0));
        assert!(kit.store.sessions().unwrap().is_empty());
        kit.write("a.toy", lines(NAME, &["1", "2"]));
        kit.forget_cache();
    }
}

#[test]
fn a_title_that_the_user_set_stays_until_the_agent_sets_another() {
    let kit = Kit::new();
    let title = || kit.store.read_session(&id()).unwrap().info().unwrap().title;
    let text = lines(NAME, &["1"]) + "{\"title\":\"first\"}\n";
    kit.write("a.toy", &text);
    kit.import();
    assert_eq!(title().as_deref(), Some("first"));
    kit.store
        .note(&id(), &backtrail::Note::new().title("mine"))
        .unwrap();
    let text = text + "{\"say\":\"2\"}\n";
    kit.write("a.toy", &text);
    kit.import();
    assert_eq!(title().as_deref(), Some("mine"));
    assert_eq!(kit.keys(&id()), ["1", "2"]);
    kit.write("a.toy", text + "{\"title\":\"second\"}\n");
    kit.import();
    assert_eq!(title().as_deref(), Some("second"));
}

#[test]
fn a_dry_run_reports_what_an_import_would_do_and_does_nothing() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1"]));
    let dry = || {
        let report = import(&kit.store, &kit.options().dry_run(), &|_| {}).unwrap();
        let agent = &report.agents[0];
        (agent.new, agent.updated, agent.unchanged)
    };
    assert_eq!(dry(), (1, 0, 0));
    assert!(kit.store.sessions().unwrap().is_empty());
    kit.import();
    assert_eq!(dry(), (0, 0, 1));
    kit.write("a.toy", lines(NAME, &["1", "2"]));
    assert_eq!(dry(), (0, 1, 0));
    assert_eq!(kit.keys(&id()), ["1"]);
    let without_store = preview(&kit.options(), &|_| {}).unwrap();
    assert_eq!(without_store.agents[0].new, 1);
}

// F4: two imports at once.
#[test]
fn f4_simultaneous_imports_import_everything_once() {
    let kit = Kit::new();
    for n in 0..20 {
        let name = format!("a-session-of-a-toy-{n}");
        kit.write(&format!("{n}.toy"), lines(&name, &["1", "2", "3"]));
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| kit.import());
        }
    });
    assert_eq!(kit.all(), vec![["1", "2", "3"]; 20]);
    assert_eq!(kit.counts(), (0, 0, 20));
}

// F5: events that a crash left after the last noted import are found by their keys.
#[test]
fn f5_events_that_a_crash_left_are_not_imported_twice() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1"]));
    kit.import();
    let mut writer = kit.store.resume_import(&id()).unwrap();
    let message = backtrail::Message::assistant([backtrail::Block::text("text of 2")]);
    writer
        .message(&backtrail::Draft::from(message).id("2"))
        .unwrap();
    writer.close().unwrap();
    kit.write("a.toy", lines(NAME, &["1", "2", "3"]));
    kit.import();
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
    assert_eq!(kit.counts(), (0, 0, 1));
}

#[test]
fn a_file_that_was_rewritten_shorter_removes_nothing() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2", "3"]));
    kit.import();
    kit.write("a.toy", lines(NAME, &["1"]) + "garbage\n");
    kit.import();
    assert_eq!(kit.keys(&id()), ["1", "2", "3"]);
}

#[test]
fn what_is_appended_to_a_file_that_ended_earlier_follows_its_own_end() {
    // The file was rewritten shorter, and then its agent went on.
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2", "3", "4", "5", "6"]));
    kit.import();
    let shorter = format!("{}garbage\n", lines(NAME, &["1"]));
    kit.write("a.toy", &shorter);
    kit.import();
    assert_eq!(kit.keys(&id()), ["1", "2", "3", "4", "5", "6"]);
    kit.write("a.toy", format!("{shorter}{{\"say\":\"x\"}}\n"));
    kit.import();
    assert_eq!(kit.all(), [["1", "x"]]);
    // A shorter copy went another way.
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2", "3"]));
    kit.import();
    kit.write("b.toy", lines(NAME, &["1", "2"]));
    kit.import();
    kit.write("b.toy", lines(NAME, &["1", "2", "x"]));
    kit.import();
    assert_eq!(kit.all(), [["1", "2", "3"], ["1", "2", "x"]]);
}

#[test]
fn two_files_of_one_name_that_grow_in_turn_do_not_replace_each_other() {
    let kit = Kit::new();
    for file in ["a.toy", "b.toy"] {
        kit.write(file, lines(NAME, &[]));
    }
    kit.import();
    for n in 1..4 {
        let a: Vec<String> = (0..n).map(|n| format!("a{n}")).collect();
        let b: Vec<String> = (0..n).map(|n| format!("b{n}")).collect();
        for (file, keys) in [("a.toy", &a), ("b.toy", &b)] {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            kit.write(file, lines(NAME, &keys));
            kit.import();
            assert_eq!(kit.kept(file).unwrap().1, lines(NAME, &keys).into_bytes());
        }
        assert_eq!(kit.all(), [a, b]);
    }
}

#[test]
fn rewound_events_are_not_imported_again_when_the_file_is_read_from_the_beginning() {
    let kit = Kit::new();
    let text = lines(NAME, &["1", "2", "3"]) + "{\"back\":\"1\"}\n{\"say\":\"4\"}\n";
    kit.write("a.toy", &text);
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
    // It became longer at its beginning, so it must be read from there.
    let header = format!("{{\"session\":\"{NAME}\"}}\n");
    kit.write(
        "a.toy",
        text.replace(&header, &format!("{header}{{\"title\":\"t\"}}\n")),
    );
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(
        (kit.keys(&id()), trails()),
        (vec!["1".into(), "4".into()], before)
    );
}

// F24: usage that only another file of the session contains counts once.
#[test]
fn f24_usage_from_another_file_counts_once() {
    let kit = Kit::new();
    kit.write(
        "a.toy",
        lines(NAME, &["1"]).replace("\"say\"", "\"free\":1,\"say\""),
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
    kit.write("b.toy", lines(NAME, &["1"]));
    kit.import();
    assert_eq!(usage().total(), 11);
    kit.forget_cache();
    kit.write("b.toy", lines(NAME, &["1"]) + "\n");
    kit.import();
    assert_eq!(usage().total(), 11);
    assert_eq!(kit.all(), [["1"]]);
}

// F5: the same for events of a sub-agent, whose session is not the one that keeps the file.
#[test]
fn f5_sub_agent_events_that_a_crash_left_are_not_imported_twice() {
    let kit = Kit::new();
    let say = |key: &str| format!("{{\"agent\":\"a1\",\"say\":\"{key}\"}}\n");
    let text = lines(NAME, &["1"]) + &say("s1");
    kit.write("a.toy", &text);
    kit.import();
    let mut sessions = kit.store.sessions().unwrap().into_iter();
    let agent = sessions.find(|session| *session != id()).unwrap();
    let mut writer = kit.store.resume_import(&agent).unwrap();
    let message = backtrail::Message::assistant([backtrail::Block::text("text of s2")]);
    writer
        .message(&backtrail::Draft::from(message).id("s2"))
        .unwrap();
    writer.close().unwrap();
    kit.write("a.toy", text + &say("s2") + &say("s3"));
    kit.import();
    assert_eq!(kit.keys(&agent), ["s1", "s2", "s3"]);
}

#[test]
fn a_branch_that_was_deleted_here_is_not_imported_again() {
    let kit = Kit::new();
    kit.write("a.toy", lines(NAME, &["1", "2"]));
    kit.write("b.toy", lines(NAME, &["1", "x"]));
    kit.import();
    let (branch, _) = kit.kept("b.toy").unwrap();
    let plan = kit.store.delete_plan(&[branch], DeleteScope::Named);
    plan.unwrap().apply().unwrap();
    kit.forget_cache();
    let report = kit.import();
    let agent = &report.agents[0];
    assert_eq!((agent.new, agent.unchanged, agent.deleted_here), (0, 2, 1));
    assert_eq!(kit.all(), [["1", "2"]]);
}

#[test]
fn a_dry_run_counts_a_session_in_several_files_once() {
    let kit = Kit::new();
    kit.write("1.toy", lines(NAME, &["a", "b"]));
    kit.write("2.toy", lines(NAME, &["a", "b", "c"]));
    kit.write("3.toy", lines(NAME, &["a", "b"]));
    for _ in 0..2 {
        let report = import(&kit.store, &kit.options().dry_run(), &|_| {}).unwrap();
        let agent = &report.agents[0];
        let counts = (agent.found, agent.new, agent.updated, agent.messages);
        assert_eq!(counts, (3, 1, 2, 3));
        assert_eq!(kit.store.sessions().unwrap(), []);
    }
    assert_eq!(kit.counts(), (1, 2, 0));
    assert_eq!(kit.all(), [["a", "b", "c"]]);
}

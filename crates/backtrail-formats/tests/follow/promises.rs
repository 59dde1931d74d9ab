//! Following, one promise at a time.

use std::time::Instant;

use backtrail_formats::{ClaudeCode, FollowedKind, Follower};

use crate::kit::{Claude, Kit, PATIENCE, kinds_of, next_kinds, next_session};

#[test]
fn each_line_is_reported_as_it_is_written_and_what_it_is() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    kit.append(&name, claude.prompt("mend it"));
    let first = next_session(&mut follower);
    assert_eq!(first.agent, "claude-code");
    assert_eq!(first.session.as_str(), claude.session);
    assert_eq!(first.agent_session_id, claude.session);
    assert_eq!(first.source, kit.path(&name));
    assert_eq!(first.directory, Some(kit.work()));
    assert!(first.is_new && first.spawned_by.is_none() && first.forked_from.is_none());
    assert_eq!(first.records[0].trail, 0);
    assert!(first.records[0].at.is_some());
    assert_eq!(kinds_of(first), [FollowedKind::Prompt]);
    kit.append(&name, claude.call("c1"));
    let call = next_session(&mut follower);
    assert!(!call.is_new);
    let (id, name_of_tool) = ("c1".to_owned(), "Bash".to_owned());
    let expected = FollowedKind::Call {
        id: id.clone(),
        name: name_of_tool,
    };
    assert_eq!(kinds_of(call), [expected]);
    kit.append(&name, claude.result("c1"));
    let result = FollowedKind::Result { id, failed: false };
    assert_eq!(kinds_of(next_session(&mut follower)), [result]);
    kit.append(&name, claude.answer("done"));
    let end = next_session(&mut follower);
    assert_eq!(end.records[0].seq, end.records[1].seq);
    assert_eq!(kinds_of(end), [FollowedKind::Answer, FollowedKind::TurnEnd]);
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn half_lines_wait_and_the_session_is_what_an_import_makes() {
    let kit = Kit::new();
    let options = kit.options().formats(vec![&ClaudeCode]);
    let mut follower = Follower::start(&kit.store, &options).unwrap();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    for turn in 0..5 {
        for line in claude.turn(&format!("turn {turn}")) {
            let (half, rest) = line.split_at(line.len() / 2);
            kit.append(&name, half);
            kit.append(&name, rest);
            next_kinds(&mut follower, 1);
        }
    }
    drop(follower);
    let followed = kit.contents();
    assert_eq!(followed, kit.imported());
    kit.import();
    assert_eq!(kit.contents(), followed);
}

#[test]
fn an_agents_first_start_ever_is_followed() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    // Not even the agent's own directory exists.
    assert!(std::fs::read_dir(kit.home()).unwrap().next().is_none());
    for n in 1..4 {
        let mut claude = Claude::new(n, kit.work());
        let name = format!(".claude/projects/-work-{n}/{}.jsonl", claude.session);
        kit.append(&name, claude.prompt("hello"));
        assert_eq!(next_session(&mut follower).session.as_str(), claude.session);
    }
}

#[test]
fn a_file_that_is_renamed_into_place_is_followed() {
    let kit = Kit::new();
    let mut claude = Claude::new(1, kit.work());
    let place = kit.path(&claude.name());
    let mut follower = kit.follow();
    let aside = kit.home().join("aside");
    std::fs::write(&aside, claude.prompt("hello")).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    assert_eq!(
        kinds_of(next_session(&mut follower)),
        [FollowedKind::Prompt]
    );
    // The same for a directory full of files, and for one that is replaced.
    let mut other = Claude::new(2, kit.work());
    std::fs::create_dir(aside.with_extension("dir")).unwrap();
    let inside = aside
        .with_extension("dir")
        .join(format!("{}.jsonl", other.session));
    std::fs::write(&inside, other.prompt("hello")).unwrap();
    std::fs::rename(
        aside.with_extension("dir"),
        kit.home().join(".claude/projects/-moved"),
    )
    .unwrap();
    assert_eq!(next_session(&mut follower).session.as_str(), other.session);
    std::fs::remove_dir_all(kit.home().join(".claude")).unwrap();
    let mut third = Claude::new(3, kit.work());
    let name = third.name();
    kit.append(&name, third.prompt("hello"));
    assert_eq!(next_session(&mut follower).session.as_str(), third.session);
}

#[test]
fn only_what_is_added_after_the_start_is_reported_but_all_is_imported() {
    let kit = Kit::new();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    let early = "2026-01-01T00:00:00.000Z";
    let aged = |line: String| {
        let at = line.find("\"timestamp\":\"").unwrap() + 13;
        format!("{}{early}{}", &line[..at], &line[at + early.len()..])
    };
    for line in claude.turn("an old prompt") {
        kit.append(&name, aged(line));
    }
    let mut follower = kit.follow();
    kit.append(&name, claude.prompt("a new prompt"));
    let followed = next_session(&mut follower);
    assert!(followed.is_new);
    assert_eq!(kinds_of(followed), [FollowedKind::Prompt]);
    assert_eq!(kit.contents(), kit.imported());
    // The same for a session that is in the store already.
    drop(follower);
    let mut follower = kit.follow();
    kit.append(&name, claude.answer("done"));
    let followed = next_session(&mut follower);
    assert!(!followed.is_new);
}

#[test]
fn only_sessions_in_or_around_the_directory_are_followed() {
    let kit = Kit::new();
    let options = kit.options().directory(kit.work());
    let mut follower = Follower::start(&kit.store, &options).unwrap();
    let below = kit.work().join("deep/below");
    let directories = [
        (kit.home().join("elsewhere"), false),
        (kit.work(), true),
        (below, true),
        (kit.work().with_file_name("work-2"), false),
        (kit.work().parent().unwrap().to_owned(), true),
    ];
    let mut expected = Vec::new();
    for (n, (directory, is_followed)) in (0_u32..).zip(directories) {
        let mut claude = Claude::new(n, directory);
        kit.append(&claude.name(), claude.prompt("hello"));
        kit.append(&claude.name(), claude.answer("hi"));
        if is_followed {
            let kinds = next_kinds(&mut follower, 2);
            assert_eq!(kinds[0], FollowedKind::Prompt);
            expected.push(claude.session);
        }
    }
    let mut sessions: Vec<String> = kit
        .store
        .sessions()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    sessions.sort();
    assert_eq!(sessions, expected);
}

#[test]
fn a_sub_agent_waits_for_its_parent() {
    let kit = Kit::new();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    // The parent was there before and is not in the store.
    kit.append(&name, claude.prompt("go"));
    kit.append(&name, claude.call("toolu_task"));
    let mut follower = kit.follow();
    let mut agent = Claude::new(1, kit.work());
    let line = agent.prompt("look").replace(
        "\"type\":\"user\"",
        "\"type\":\"user\",\"isSidechain\":true,\"agentId\":\"a1b2c3d\"",
    );
    let path = format!(
        ".claude/projects/-work/{}/subagents/agent-a1b2c3d.jsonl",
        claude.session
    );
    kit.append(&path, line);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        for followed in crate::kit::next(&mut follower).sessions {
            seen.push((
                followed.session.to_string(),
                followed.spawned_by.map(|by| by.session_id.to_string()),
            ));
        }
    }
    assert_eq!(seen[0], (claude.session.clone(), None));
    assert_eq!(seen[1].1.as_deref(), Some(&*claude.session));
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn at_the_end_nothing_is_held_back() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let mut claude = Claude::new(1, kit.work());
    kit.append(&claude.name(), claude.turn("mend it").concat());
    let deadline = Instant::now() + PATIENCE;
    let mut wake = follower.catch_up(deadline).unwrap();
    assert!(Instant::now() < deadline && wake.problems.is_empty());
    assert_eq!(kinds_of(wake.sessions.remove(0)).len(), 5);
    assert!(follower.catch_up(deadline).unwrap().is_empty());
    assert_eq!(kit.contents(), kit.imported());
}

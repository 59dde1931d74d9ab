//! Following, one promise at a time.

use backtrail_formats::{ClaudeCode, FollowedKind, Follower};

use crate::kit::{Claude, Kit, kinds_of, next_kinds, next_session};

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

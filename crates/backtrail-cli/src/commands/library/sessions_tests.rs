//! The list of sessions is that of `list --forks`, in its order and with its numbers, and it can be
//! had as the catalogue was left.

use backtrail::{Draft, ForkOptions, Message, Note, SessionOptions, Usage};
use backtrail_view::library::Library;

use super::super::testing::{Fixture, answer, call, make_directory, write_file};
use super::*;
use crate::commands::list::row_json;

fn titles(list: &SessionList) -> Vec<(usize, &str)> {
    let entries = list.entries.iter();
    entries.map(|it| (it.depth, it.title.as_str())).collect()
}

fn current(fixture: &Fixture, scope: Scope) -> SessionList {
    fixture.library.sessions(scope, Freshness::Current).unwrap()
}

#[test]
fn forks_and_sub_agents_are_below_the_session_that_they_come_from() {
    let fixture = Fixture::new();
    let pinned = fixture.session(SessionOptions::new().title("pinned"));
    pinned.append(Message::user_text("keep")).unwrap();
    pinned.note(&Note::new().pinned(true)).unwrap();
    let first = fixture.session(SessionOptions::new().title("first"));
    first.append(Message::user_text("begin")).unwrap();
    first
        .append(Message::assistant([call("t1", "task")]))
        .unwrap();
    let child = first
        .spawn("t1", SessionOptions::new().title("helper"))
        .unwrap();
    child.append(Message::user_text("help")).unwrap();
    let fork = first.fork(&ForkOptions::new().branch_name("try")).unwrap();
    fork.append(Message::user_text("otherwise")).unwrap();
    let below = fork.fork(&ForkOptions::new()).unwrap();
    below.note(&Note::new().title("again")).unwrap();
    let list = current(&fixture, Scope::Everything);
    assert_eq!(
        titles(&list),
        [
            (0, "pinned"),
            (0, "first"),
            (1, "helper"),
            (1, "[fork try] first"),
            (2, "[fork] again"),
        ]
    );
    let flags: Vec<_> = list
        .entries
        .iter()
        .map(|it| (it.is_pinned, it.is_sub_agent))
        .collect();
    assert_eq!(flags[..3], [(true, false), (false, false), (false, true)]);
    assert_eq!(list.all, 5);
}

#[test]
fn an_entry_has_the_numbers_of_list() {
    let fixture = Fixture::new();
    let options = SessionOptions::new().agent("claude-code").tags(["a", "b"]);
    let session = fixture.session(options);
    session
        .append(Message::user_text("fix \u{1b}[31mit\nnow"))
        .unwrap();
    let reply = answer("done").usage(Usage::new(1000, 100));
    session
        .append(Draft::from(reply).model("claude-sonnet-4-5").cost_usd(1.25))
        .unwrap();
    let list = current(&fixture, Scope::Workspace);
    let index = fixture.library.index_as_left().unwrap();
    let row = derived::session(&index, session.id()).unwrap().unwrap();
    let json = row_json(&row, &fixture.library.store);
    let entry = &list.entries[0];
    assert_eq!(entry.id, json["id"].as_str().unwrap());
    assert_eq!(entry.short, json["short"].as_str().unwrap());
    assert_eq!(entry.agent, "Claude Code");
    assert_eq!(entry.project, "shop");
    assert_eq!(entry.title, "fix it now");
    assert_eq!(entry.cost, "$1.25");
    assert_eq!(entry.tags, ["a", "b"]);
    assert_eq!(entry.turns, json["turns"].as_u64().unwrap());
    assert_eq!(entry.files, json["files_changed"].as_u64().unwrap());
    assert_eq!(entry.last_seq, json["last_seq"].as_u64().unwrap());
    assert_eq!(entry.updated_ms, row.updated_at.unwrap().as_millis());
    assert!(!entry.is_wordless && !entry.is_damaged);
    assert_eq!(list.workspace.as_deref(), Some("shop"));
    assert_eq!(list.project.as_deref(), Some("shop"));
}

#[test]
fn known_is_as_the_catalogue_was_left_and_current_has_everything() {
    let fixture = Fixture::new();
    let known = || {
        let list = fixture
            .library
            .sessions(Scope::Everything, Freshness::Known);
        list.unwrap().entries.len()
    };
    fixture.session(SessionOptions::new().title("one"));
    assert_eq!(known(), 0, "nothing was catalogued");
    assert!(
        !fixture.library.store.root().join("derived").exists(),
        "nor is it now"
    );
    assert_eq!(current(&fixture, Scope::Everything).entries.len(), 1);
    fixture.session(SessionOptions::new().title("two"));
    assert_eq!(known(), 1);
    assert_eq!(current(&fixture, Scope::Everything).entries.len(), 2);
    assert_eq!(known(), 2);
}

#[test]
fn a_scope_is_this_workspace_this_project_or_everything() {
    let fixture = Fixture::new();
    let root = &fixture.root;
    let git = root.join(".git/worktrees/feature");
    make_directory(&git);
    write_file(&git.join("commondir"), "../..\n");
    let worktree = fixture.directory("elsewhere/feature");
    let pointer = format!("gitdir: {}\n", git.display());
    write_file(&worktree.join(".git"), &pointer);
    let at = |root: &std::path::Path, title: &str| {
        let session = fixture.create(SessionOptions::new().workspace_root(root).title(title));
        session.append(Message::user_text("hello")).unwrap();
    };
    at(root, "here");
    at(&worktree, "worktree");
    at(&fixture.directory("other"), "other");
    let listed = |scope| {
        let list = current(&fixture, scope);
        let mut titles: Vec<String> = list.entries.into_iter().map(|it| it.title).collect();
        titles.sort();
        assert_eq!(list.all, 3);
        titles
    };
    assert_eq!(listed(Scope::Workspace), ["here"]);
    assert_eq!(listed(Scope::Project), ["here", "worktree"]);
    assert_eq!(listed(Scope::Everything), ["here", "other", "worktree"]);
}

#[test]
fn a_session_without_a_prompt_says_so() {
    let fixture = Fixture::new();
    fixture.session(SessionOptions::new());
    let list = current(&fixture, Scope::Everything);
    assert!(list.entries[0].is_wordless);
    assert_eq!(list.entries[0].title, NO_TITLE);
}

#[test]
fn the_head_has_the_short_id_the_numbers_of_show_and_who_is_writing() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new().title("the title").agent("codex"));
    session.append(Message::user_text("hello")).unwrap();
    session
        .append(Message::assistant([call("t1", "ls")]))
        .unwrap();
    current(&fixture, Scope::Everything);
    let head = fixture.library.head(session.id().as_str()).unwrap();
    assert_eq!(head.title, "the title");
    let facts: Vec<&str> = head.facts.split(", ").collect();
    let expected = [
        &*short(session.id()),
        "1 turn",
        "1 tool call",
        "~6 tokens",
        "unpriced",
    ];
    assert_eq!(facts, expected);
    let writer = head.writer.unwrap();
    assert!(writer.contains(&std::process::id().to_string()), "{writer}");
    let id = session.id().clone();
    session.close().unwrap();
    assert_eq!(fixture.library.head(id.as_str()).unwrap().writer, None);
}

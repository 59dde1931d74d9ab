//! What the catalogue lists about sessions.

use backtrail::{ForkOptions, Message, Note, SessionOptions};
use backtrail_index::{Filter, WorkspaceFilter};

use crate::kit::{Home, call_tool, respond};

#[test]
fn a_session_is_listed_with_its_messages_and_spending() {
    let home = Home::new();
    let session = home.session();
    session
        .append(Message::user_text("fix the  rounding\nof refunds"))
        .unwrap();
    respond(&session, "r1", (10, 4), "Let me look.");
    call_tool(&session, "t1", "src");

    let rows = home.rows();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(&row.id, session.id());
    assert_eq!(row.begins.as_deref(), Some("fix the rounding of refunds"));
    assert_eq!((row.messages, row.turns, row.tool_calls), (4, 1, 1));
    assert_eq!(row.spending.calls, 1);
    assert_eq!(row.spending.tokens(), 14);
    assert_eq!(row.spending.unpriced_calls, 1);
    assert_eq!(row.spending.estimated_calls, 1, "the call of the tool");
    assert_eq!(row.error, None);

    // It continues where it stopped.
    session.append(Message::user_text("and now?")).unwrap();
    respond(&session, "r1", (20, 9), "the same response again");
    respond(&session, "r2", (5, 5), "another");
    home.store
        .note(session.id(), &Note::new().title("rounding"))
        .unwrap();
    let row = &home.rows()[0];
    assert_eq!((row.messages, row.turns), (7, 2));
    assert_eq!(row.title.as_deref(), Some("rounding"));
    assert_eq!(row.spending.calls, 2, "a response counts once");
    assert_eq!(
        row.spending.tokens(),
        29 + 10,
        "by what was said of it last"
    );
    assert_eq!(home.rows(), home.rebuilt_rows());
}

#[test]
fn forks_and_rewinds_count_their_line_and_their_own_spending() {
    let home = Home::new();
    let session = home.session();
    session.append(Message::user_text("one")).unwrap();
    respond(&session, "r1", (10, 0), "first");
    session.append(Message::user_text("two")).unwrap();
    respond(&session, "r2", (100, 0), "second");
    home.rows();
    let fork = session.fork(&ForkOptions::new().at(2)).unwrap();
    fork.append(Message::user_text("three")).unwrap();
    respond(&fork, "r3", (1000, 0), "third");
    session.rewind_chat(1).unwrap();
    respond(&session, "r4", (10_000, 0), "fourth");

    let rows = home.rows();
    let row = rows.iter().find(|row| row.id == *session.id()).unwrap();
    assert_eq!((row.messages, row.turns), (2, 1));
    assert_eq!(
        row.spending.input_tokens, 10_110,
        "what was taken back was spent"
    );
    let row = rows.iter().find(|row| row.id == *fork.id()).unwrap();
    assert_eq!((row.messages, row.turns), (4, 2));
    assert_eq!(
        row.spending.input_tokens, 1000,
        "what it inherits counts for the parent"
    );
    assert_eq!(row.family.root, session.id().to_string());
    assert_eq!(row.begins.as_deref(), Some("one"));
    assert_eq!(rows, home.rebuilt_rows());

    let mut filter = Filter::default();
    filter.family_of = Some(fork.id().clone());
    assert_eq!(home.index().sessions(&filter).unwrap().len(), 2);
    let report = home.index().spending(&filter).unwrap();
    assert_eq!(report.total.input_tokens, 11_110);
    assert_eq!(report.sessions, 2);
}

#[test]
fn f23_a_session_that_is_deleted_leaves_and_one_that_is_unreadable_stays() {
    let home = Home::new();
    let (gone, bad) = (home.session(), home.session());
    for session in [&gone, &bad] {
        session.append(Message::user_text("hello")).unwrap();
    }
    let (gone, bad_id) = {
        let ids = (gone.id().clone(), bad.id().clone());
        drop((gone, bad));
        ids
    };
    assert_eq!(home.rows().len(), 2);
    let plan = home.store.delete_plan(
        std::slice::from_ref(&gone),
        backtrail::trash::DeleteScope::default(),
    );
    plan.unwrap().apply().unwrap();
    let rows = home.rows();
    assert_eq!(
        rows.iter().map(|row| &row.id).collect::<Vec<_>>(),
        [&bad_id]
    );

    let trail = home
        .store
        .root()
        .join(format!("sessions/{bad_id}/0000.jsonl"));
    std::fs::remove_file(&trail).unwrap();
    std::fs::create_dir(&trail).unwrap();
    let row = &home.rows()[0];
    assert!(row.error.is_some(), "listed as what it is");
    assert_eq!(home.rows(), home.rebuilt_rows());
}

#[test]
fn f26_sessions_are_found_where_their_directory_is_now() {
    let home = Home::new();
    let (old, new) = (home.dir().join("shop"), home.dir().join("store-front"));
    std::fs::create_dir(&old).unwrap();
    let by_path = SessionOptions::new().agent("mine").workspace_root(&old);
    let by_path = home.store.create_session(by_path).unwrap();
    let workspace = home.store.workspace(&old).unwrap();
    let by_id = SessionOptions::new().agent("mine").workspace(&workspace);
    let by_id = home.store.create_session(by_id).unwrap();
    for session in [&by_path, &by_id] {
        session.append(Message::user_text("hello")).unwrap();
    }
    assert_eq!(home.rows().len(), 2);

    // Copied, so that only the user knows.
    std::fs::create_dir(&new).unwrap();
    std::fs::remove_dir(&old).unwrap();
    home.store
        .relink(&old, &new, backtrail::workspace::RelinkOptions::new())
        .unwrap();
    let mut here = Filter::default();
    here.workspace = Some(WorkspaceFilter {
        id: Some(workspace.id().clone()),
        root: new.clone(),
    });
    let found = home.index().sessions(&here).unwrap();
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|row| row.workspace.as_deref() == Some(&new))
    );
    assert_eq!(home.rows(), home.rebuilt_rows());
}

#[test]
fn f23_damage_is_reported_and_counted_once_and_hides_nothing() {
    let home = Home::new();
    let session = home.session();
    session.append(Message::user_text("before")).unwrap();
    home.rows();
    let id = session.id().clone();
    drop(session);
    let trail = home.store.root().join(format!("sessions/{id}/0000.jsonl"));
    let write = |bytes: &[u8]| {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&trail)
            .unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
    };
    write(b"garbage\n");
    assert_eq!(home.rows()[0].damaged, 1, "behind the last record");
    write(b"more of it\n");
    assert_eq!(home.rows()[0].damaged, 2);
    let session = home.store.open_session(&id).unwrap();
    session.append(Message::user_text("after")).unwrap();
    let row = &home.rows()[0];
    assert_eq!((row.damaged, row.messages), (2, 2));
    write(b"{\"type\":\"message\",\"se");
    assert_eq!(
        home.rows()[0].damaged,
        2,
        "what is being written is no damage"
    );
    assert_eq!(home.rows(), home.rebuilt_rows());
    std::fs::write(&trail, [0x5a; 3000]).unwrap();
    let rows = home.rows();
    assert!(rows[0].damaged > 0 || rows[0].error.is_some(), "{rows:?}");
    assert_eq!(rows, home.rebuilt_rows());
}

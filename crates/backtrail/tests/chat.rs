//! Conversations need no workspace: this also passes without the feature `snapshots`.

use backtrail::trash::{DeleteScope, EmptyOptions};
use backtrail::{Block, Compaction, ErrorKind, ForkOptions, Message, SessionOptions, Shape, Store};

fn texts(store: &Store, id: &backtrail::SessionId) -> Vec<String> {
    let reader = store.read_session(id).expect("opened");
    let mut records = reader.records().expect("records");
    let mut texts = Vec::new();
    while let Some(record) = records.next().expect("a record") {
        if let Some(message) = record.message().expect("a message") {
            texts.push(message.text().into_owned());
        }
    }
    texts
}

#[test]
fn a_conversation_is_kept_goes_back_and_forks_without_a_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let root = dir.path().join("project");
    let options = SessionOptions::new().title("talk").workspace_root(&root);
    let session = store.create_session(options).unwrap();
    session.append(Message::user_text("one")).unwrap();
    let answer = Message::assistant([Block::text("two")]);
    session.append(answer).unwrap();

    let outcome = session.rewind_chat(1).unwrap().unwrap();
    assert_eq!(outcome.chat.map(|chat| (chat.from, chat.to)), Some((2, 1)));
    assert_eq!(texts(&store, session.id()), ["one"]);
    session.undo().unwrap().unwrap();
    session.redo().unwrap().unwrap();
    session.undo().unwrap().unwrap();
    assert_eq!(texts(&store, session.id()), ["one", "two"]);

    let elsewhere = SessionOptions::new().workspace_root(dir.path());
    store.create_session(elsewhere).unwrap().close().unwrap();
    assert_eq!(&store.resolve_in("latest", &root).unwrap(), session.id());

    let fork = session.fork(&ForkOptions::new().at(1)).unwrap();
    fork.append(Message::user_text("three")).unwrap();
    assert_eq!(texts(&store, fork.id()), ["one", "three"]);

    let summary = Compaction::new("They counted.");
    session.compact(&summary).unwrap();
    let context = session.context(Shape::Anthropic).unwrap();
    assert!(context.as_json().contains("They counted."));

    let id = session.id().clone();
    session.close().unwrap();
    fork.close().unwrap();
    assert!(store.read_session(&id).unwrap().verify().unwrap().is_ok());
}

#[test]
fn a_session_is_deleted_restored_and_removed_for_good_without_a_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let session = store.create_session(SessionOptions::new()).unwrap();
    session.append(Message::user_text("one")).unwrap();
    let id = session.id().clone();
    session.close().unwrap();

    let delete = || {
        store
            .delete_plan(std::slice::from_ref(&id), DeleteScope::Named)
            .unwrap()
            .apply()
    };
    delete().unwrap();
    let error = store.open_session(&id).unwrap_err();
    assert_eq!(error.in_trash(), Some(&id));
    let name = store.trash().unwrap().entries[0].name.clone();
    store.restore_deleted(&name).unwrap();
    assert_eq!(texts(&store, &id), ["one"]);
    delete().unwrap();
    store
        .empty_plan(&EmptyOptions::new())
        .unwrap()
        .apply()
        .unwrap();
    let error = store.read_session(&id).unwrap_err();
    assert_eq!(
        (error.kind(), error.in_trash()),
        (ErrorKind::NotFound, None)
    );
}

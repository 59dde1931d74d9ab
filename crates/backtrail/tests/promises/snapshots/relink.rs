//! Directories that are moved, renamed and copied keep their sessions and their project
//! (F26), and what was said of them is never lost, only said anew.

use std::fs;
use std::path::{Path, PathBuf};

use backtrail::workspace::{RelinkOptions, RelinkedWhat};
use backtrail::{
    CheckpointOptions, ErrorKind, Message, SessionId, SessionOptions, Store, Workspace,
};

use super::desk::Desk;

impl Desk {
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Records a session that knows its directory by its path alone.
    fn session_at(&self, root: &Path) -> SessionId {
        let options = SessionOptions::new().workspace_root(root);
        let session = self.store.create_session(options).unwrap();
        session.append(Message::user_text("hello")).unwrap();
        session.id().clone()
    }

    /// Does what `cp -a` and `rm` do: another directory, with the same in it.
    fn copy_away(&self, to: &str) {
        fs::create_dir(self.at(to)).unwrap();
        for entry in fs::read_dir(self.at("work")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), self.at(to).join(entry.file_name())).unwrap();
        }
        fs::remove_dir_all(self.at("work")).unwrap();
    }

    fn relink(&self, old: &str, new: &str) -> backtrail::Result<backtrail::workspace::Relinked> {
        self.store
            .relink(&self.at(old), &self.at(new), RelinkOptions::new())
    }

    /// Opens the store anew, and a workspace in it by the path of its directory.
    fn found(&self, name: &str) -> Workspace {
        let store = Store::open(self.store.root()).unwrap();
        store.find_workspace(&self.at(name)).unwrap().unwrap()
    }
}

fn sessions(workspace: &Workspace) -> Vec<SessionId> {
    let mut ids = workspace.sessions().unwrap();
    ids.sort();
    ids
}

fn sorted(mut ids: Vec<SessionId>) -> Vec<SessionId> {
    ids.sort();
    ids
}

// F26
#[test]
fn f26_a_renamed_directory_keeps_sessions_that_know_only_its_path() {
    let desk = Desk::new();
    desk.write("a", "1");
    desk.keep();
    let by_path = desk.session_at(&desk.at("work"));
    let options = SessionOptions::new().workspace(&desk.workspace);
    let by_id = desk.store.create_session(options).unwrap().id().clone();
    fs::rename(desk.at("work"), desk.at("renamed")).unwrap();
    // Recognised, and noted as soon as somebody works there.
    let workspace = desk.store.workspace(&desk.at("renamed")).unwrap();
    assert_eq!(workspace.id(), desk.workspace.id());
    assert_eq!(
        sessions(&desk.found("renamed")),
        sorted(vec![by_path.clone(), by_id])
    );
    let former = workspace.former_roots().unwrap();
    assert_eq!(former.len(), 1);
    assert_eq!(former[0].root, desk.at("work"));
    // What begins at the old path from now on is something else.
    fs::create_dir(desk.at("work")).unwrap();
    let later = desk.session_at(&desk.at("work"));
    assert!(!sessions(&desk.found("renamed")).contains(&later));
    assert!(sessions(&desk.found("renamed")).contains(&by_path));
    let latest = desk.store.resolve_in("latest", &desk.at("work")).unwrap();
    assert_eq!(latest, later);
    let latest = desk
        .store
        .resolve_in("latest", &desk.at("renamed"))
        .unwrap();
    assert_ne!(latest, later);
}

// F26
#[test]
fn f26_a_directory_that_was_copied_and_relinked_keeps_everything() {
    let desk = Desk::new();
    desk.write("a", "1");
    desk.label("before");
    let session = desk.session_at(&desk.at("work"));
    desk.copy_away("copy");
    assert!(
        desk.store
            .find_workspace(&desk.at("copy"))
            .unwrap()
            .is_none()
    );
    let linked = desk.relink("work", "copy").unwrap();
    assert_eq!(linked.what, RelinkedWhat::Workspace);
    let found = desk.found("copy");
    assert_eq!(found.id(), desk.workspace.id());
    assert_eq!(sessions(&found), std::slice::from_ref(&session));
    assert_eq!(found.checkpoints().unwrap().count(), 1);
    // The session goes on there, though it says the old path.
    let open = desk.store.open_session(&session).unwrap();
    let turn = open.begin_turn(Message::user_text("go on")).unwrap();
    let kept = turn.end().unwrap();
    assert_eq!(kept.files(), 1);
    assert_eq!(found.checkpoints().unwrap().count(), 3);
    desk.verify();
}

// F21
#[test]
fn f21_relinking_is_undone_by_relinking_and_loses_nothing() {
    let desk = Desk::new();
    desk.write("a", "1");
    desk.keep();
    let session = desk.session_at(&desk.at("work"));
    fs::create_dir(desk.at("other")).unwrap();
    let before = desk.session_at(&desk.at("other"));
    fs::remove_dir_all(desk.at("work")).unwrap();
    desk.relink("work", "other").unwrap();
    assert!(sessions(&desk.found("other")).contains(&session));
    // By mistake; the old directory is gone, and need not be there.
    desk.relink("other", "work").unwrap();
    let found = desk.found("work");
    assert_eq!(found.id(), desk.workspace.id());
    assert_eq!(sessions(&found), [session]);
    let latest = desk.store.resolve_in("latest", &desk.at("other")).unwrap();
    assert_eq!(latest, before);
    desk.verify();
}

#[test]
fn sessions_alone_are_relinked_and_back() {
    let desk = Desk::new();
    let session = desk.session_at(&desk.at("gone"));
    fs::create_dir(desk.at("here")).unwrap();
    let linked = desk.relink("gone", "here").unwrap();
    assert_eq!(linked.what, RelinkedWhat::Sessions);
    assert_eq!(sessions(&linked.workspace), std::slice::from_ref(&session));
    assert!(linked.workspace.former_roots().unwrap()[0].sessions_only);
    let latest = desk.store.resolve_in("latest", &desk.at("here")).unwrap();
    assert_eq!(latest, session);
    let back = desk.relink("here", "gone").unwrap();
    assert_eq!(back.what, RelinkedWhat::SessionsBack);
    assert_eq!(sessions(&back.workspace), []);
    assert_eq!(back.workspace.root(), desk.at("here"));
}

#[test]
fn a_relink_that_would_mix_two_histories_or_means_nothing_is_refused() {
    let desk = Desk::new();
    desk.keep();
    for name in ["used", "unused", "other"] {
        fs::create_dir(desk.at(name)).unwrap();
    }
    let used = desk.store.workspace(&desk.at("used")).unwrap();
    used.checkpoint(CheckpointOptions::new()).unwrap();
    let refused = |old: &str, new: &str| desk.relink(old, new).unwrap_err();
    let error = refused("nowhere", "other");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains("no checkpoints or sessions in"),
        "{error}"
    );
    let error = refused("work", "nowhere");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("does not exist"), "{error}");
    let error = refused("work", "work");
    assert!(error.to_string().contains("already"), "{error}");
    // The old directory is there: it would lose its past.
    let error = refused("work", "other");
    assert!(error.to_string().contains("still exists"), "{error}");
    let error = refused("work", "store/sessions");
    assert!(error.to_string().contains("is in the store"), "{error}");
    fs::remove_dir_all(desk.at("work")).unwrap();
    let error = refused("work", "used");
    assert!(
        error
            .to_string()
            .contains("already has its own checkpoints"),
        "{error}"
    );
    assert_eq!(desk.found("used").id(), used.id());
    assert_eq!(desk.found("work").id(), desk.workspace.id());
    // One of which nothing was ever kept gives way, with the sessions that it has.
    let unused = desk.store.workspace(&desk.at("unused")).unwrap();
    let options = SessionOptions::new().workspace(&unused);
    let its = desk.store.create_session(options).unwrap().id().clone();
    desk.relink("work", "unused").unwrap();
    assert_eq!(desk.found("unused").id(), desk.workspace.id());
    assert_eq!(sessions(&desk.found("unused")), [its]);
    assert_eq!(
        desk.store.workspace(&desk.at("unused")).unwrap().id(),
        desk.workspace.id()
    );
}

#[test]
fn asked_twice_it_goes_ahead_although_the_old_directory_is_there() {
    let desk = Desk::new();
    desk.keep();
    fs::create_dir(desk.at("other")).unwrap();
    let yes = RelinkOptions::new().replace_existing();
    let linked = desk
        .store
        .relink(&desk.at("work"), &desk.at("other"), yes)
        .unwrap();
    assert_eq!(linked.workspace.id(), desk.workspace.id());
    // The old directory is a new workspace from now on.
    let fresh = desk.store.workspace(&desk.at("work")).unwrap();
    assert_ne!(fresh.id(), desk.workspace.id());
}

#[test]
fn a_project_is_known_when_its_directory_is_gone() {
    let desk = Desk::new();
    let git = |url: &str| desk.write(".git/config", format!("[remote \"origin\"]\nurl = {url}\n"));
    assert_eq!(desk.workspace.remote().unwrap(), None);
    git("https://me:s3cr3t@GitHub.com/acme/shop.git");
    let open = || desk.store.workspace(&desk.at("work")).unwrap();
    assert_eq!(
        open().remote().unwrap().as_deref(),
        Some("github.com/acme/shop")
    );
    let trail = desk.store.root().join("workspaces");
    let trail = trail.join(desk.workspace.id().as_str()).join("0000.jsonl");
    let text = || fs::read_to_string(&trail).unwrap();
    let once = text();
    assert!(!once.contains("s3cr3t"), "{once}");
    // Said once, and anew only when it is another.
    open();
    assert_eq!(text(), once);
    git("https://github.com/acme/store.git");
    assert_eq!(
        open().remote().unwrap().as_deref(),
        Some("github.com/acme/store")
    );
    // A repository that cannot be read says nothing, and takes nothing away.
    fs::remove_dir_all(desk.at("work/.git")).unwrap();
    assert_eq!(
        open().remote().unwrap().as_deref(),
        Some("github.com/acme/store")
    );
    desk.keep();
    fs::remove_dir_all(desk.at("work")).unwrap();
    assert_eq!(
        desk.found("work").remote().unwrap().as_deref(),
        Some("github.com/acme/store")
    );
    // And one that says that it has none does.
    fs::create_dir(desk.at("work")).unwrap();
    desk.write(".git/config", "[core]\n");
    assert_eq!(open().remote().unwrap(), None);
}

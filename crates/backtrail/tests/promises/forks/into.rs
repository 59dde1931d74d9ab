//! What a fork into a directory is.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use backtrail::conversation::HistoryItem;
use backtrail::rewind::ForkInto;
use backtrail::{
    CheckpointOptions, ErrorKind, Message, Point, Rewind, Session, SessionOptions, StoreOptions,
};

use crate::rewind::kit::{Lab, done, is_root, is_tree, setting, stamps, turn, write};
use crate::snapshots::tree::{read_tree, same, stored};
use crate::snapshots::world::World;

fn prompts(session: &Session) -> Vec<String> {
    let items = session.reader().history().unwrap();
    let prompts = items.filter_map(|item| match item.unwrap() {
        HistoryItem::Prompt(prompt) => Some(prompt.text),
        _ => None,
    });
    prompts.collect()
}

#[test]
fn a_fork_has_exactly_the_files_of_its_source_which_is_not_touched() {
    let first = setting("BACKTRAIL_TEST_SEED", 0);
    for seed in first..first + 12 * setting("BACKTRAIL_TEST_LIVES", 1) {
        let lab = Lab::new(seed);
        let mut world = World::new(lab.root(), seed);
        let mut past = Vec::new();
        for _ in 0..3 {
            world.change();
            past.push((lab.keep(), lab.tree()));
        }
        world.change();
        let present = lab.tree();
        let before = stamps(lab.root(), &present);
        for (n, (checkpoint, tree)) in past.iter().enumerate() {
            let dir = lab.dir.path().join(format!("fork-{n}"));
            let point = Point::checkpoint(checkpoint.id());
            let forked = lab.workspace.fork_into(&point, &dir, ForkInto::new());
            let forked = forked.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            is_tree(&dir, tree, &format!("seed {seed}, fork {n}"));
            assert_eq!(forked.workspace.root(), dir.canonicalize().unwrap());
            assert_eq!(forked.checkpoint.snapshot_id(), checkpoint.snapshot_id());
            assert_eq!(forked.files, checkpoint.files());
            assert_eq!(forked.bytes, checkpoint.bytes());
            // And what is looked at there is the same, too.
            let next = forked.workspace.checkpoint(CheckpointOptions::new());
            assert_eq!(next.unwrap().snapshot_id(), checkpoint.snapshot_id());
        }
        same(&lab.tree(), &present).unwrap();
        assert_eq!(stamps(lab.root(), &present), before, "seed {seed}");
        lab.verify();
    }
}

#[test]
fn modes_links_and_empty_directories_are_copied_and_no_file_is_shared() {
    let lab = Lab::new(1);
    lab.write("bin/run", "#!/bin/sh\n");
    lab.write("shut/inside", "kept\n");
    lab.write("secret", "sh\n");
    fs::create_dir(lab.path("empty")).unwrap();
    symlink("../elsewhere", lab.path("link")).unwrap();
    symlink("bin", lab.path("dirlink")).unwrap();
    let set = |name: &str, mode| {
        fs::set_permissions(lab.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("bin/run", 0o4755);
    set("secret", 0o400);
    set("shut", 0o555);
    set("", 0o750);
    let tree = lab.tree();
    lab.keep();
    // An empty directory that is there is taken, too.
    let dir = lab.dir.path().join("fork");
    fs::create_dir(&dir).unwrap();
    let forked = lab
        .workspace
        .fork_into(&Point::last(), &dir, ForkInto::new());
    forked.unwrap();
    is_tree(&dir, &tree, "the fork");
    for name in ["bin/run", "secret", "shut/inside"] {
        let [here, there] =
            [lab.root(), dir.as_path()].map(|root| fs::metadata(root.join(name)).unwrap());
        assert_ne!((here.dev(), here.ino()), (there.dev(), there.ino()));
        assert_eq!((here.nlink(), there.nlink()), (1, 1));
    }
    set("shut", 0o755);
    fs::set_permissions(dir.join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_fork_and_its_source_do_not_affect_each_other() {
    let lab = Lab::new(2);
    lab.write("a", "one\n");
    let session = lab.session();
    let kept = turn(&session, "first", || lab.write("a", "two\n"));
    turn(&session, "second", || lab.write("b", "new\n"));
    let dir = lab.dir.path().join("fork");
    let point = Point::checkpoint(kept.id());
    let options = ForkInto::new().name("  try-2 ");
    let forked = lab.workspace.fork_into(&point, &dir, options).unwrap();

    // The conversation ends where the files are.
    assert_eq!(prompts(&forked.session), ["first"]);
    let info = forked.session.reader().info().unwrap();
    assert_eq!(
        info.workspace_root.as_deref(),
        Some(forked.workspace.root())
    );
    let origin = info.forked_from.unwrap();
    assert_eq!(origin.branch_name.as_deref(), Some("try-2"));
    assert_eq!(origin.seq, kept.session().map(|place| place.seq));
    assert_eq!(
        forked.checkpoint.session().unwrap().id,
        *forked.session.id()
    );
    let latest = forked.workspace.latest_session().unwrap();
    assert_eq!(latest.as_ref(), Some(forked.session.id()));

    // What is done there does not touch the other one, and is undone there.
    let here = lab.tree();
    turn(&forked.session, "third", || {
        write(&dir, "a", "three\n");
        write(&dir, "c/d", "new\n");
    });
    same(&lab.tree(), &here).unwrap();
    assert_eq!(prompts(&session), ["first", "second"]);
    assert_eq!(prompts(&forked.session), ["first", "third"]);
    let there = read_tree(&dir);
    let first = Point::checkpoint(forked.checkpoint.id());
    forked
        .session
        .undo()
        .unwrap()
        .expect("a turn is taken back");
    assert_eq!(fs::read(dir.join("a")).unwrap(), b"two\n");
    assert!(!dir.join("c").exists());
    assert_eq!(prompts(&forked.session), ["first"]);
    forked
        .session
        .redo()
        .unwrap()
        .expect("it comes forward again");
    same(&read_tree(&dir), &there).unwrap();
    let plan = forked.session.rewind_plan(&first, Rewind::files_and_chat());
    plan.unwrap().apply().unwrap();
    same(&read_tree(&dir), &stored(&kept.snapshot().unwrap())).unwrap();
    assert_eq!(prompts(&forked.session), ["first"]);

    // And the other way round.
    let there = read_tree(&dir);
    session.undo().unwrap().expect("a turn is taken back");
    assert!(!lab.has("b"));
    same(&read_tree(&dir), &there).unwrap();
    lab.verify();
}

#[test]
fn a_point_that_the_conversation_has_left_can_be_forked() {
    let lab = Lab::new(3);
    lab.write("a", "one\n");
    let session = lab.session();
    turn(&session, "kept", || lab.write("a", "two\n"));
    let left = turn(&session, "left behind", || lab.write("a", "three\n"));
    session.undo().unwrap().expect("a turn is taken back");
    turn(&session, "instead", || lab.write("a", "four\n"));
    let dir = lab.dir.path().join("fork");
    let point = Point::checkpoint(left.id());
    let forked = lab
        .workspace
        .fork_into(&point, &dir, ForkInto::new())
        .unwrap();
    assert_eq!(prompts(&forked.session), ["kept", "left behind"]);
    assert_eq!(fs::read(dir.join("a")).unwrap(), b"three\n");
    assert_eq!(prompts(&session), ["kept", "instead"]);
}

#[test]
fn a_checkpoint_without_a_session_begins_an_empty_one() {
    let lab = Lab::new(4);
    lab.write("a", "one\n");
    lab.keep();
    let fork = |name: &str, options: ForkInto| {
        let dir = lab.dir.path().join(name);
        let forked = lab
            .workspace
            .fork_into(&Point::last(), &dir, options)
            .unwrap();
        let info = forked.session.reader().info().unwrap();
        assert!(info.forked_from.is_none());
        assert_eq!(
            info.workspace_root.as_deref(),
            Some(forked.workspace.root())
        );
        assert_eq!(forked.session.last_seq(), 0);
        forked.session.append(Message::user_text("hello")).unwrap();
        info.title
    };
    assert_eq!(
        fork("named", ForkInto::new().name(" try ")).as_deref(),
        Some("try")
    );
    assert_eq!(fork("blank", ForkInto::new().name("  ")), None);
    assert_eq!(fork("none", ForkInto::new()), None);
}

#[test]
fn skipped_files_are_named_and_captured_ignored_files_are_copied() {
    let options = StoreOptions::new().snapshot_cap(1000);
    let lab = Lab::with(options);
    lab.write(".gitignore", "target/\n.env\n");
    lab.write(".env", "KEY=1\n");
    lab.write("target/out", "built\n");
    lab.write("large", vec![7; 1001]);
    lab.write(".git/HEAD", "ref: refs/heads/main\n");
    lab.write("src/a", "one\n");
    lab.keep();
    let dir = lab.dir.path().join("fork");
    let plan = lab
        .workspace
        .fork_into_plan(&Point::last(), &dir, ForkInto::new())
        .unwrap();
    assert!(plan.has_git());
    assert_eq!(plan.skipped().count, 2);
    let reasons: Vec<(&str, u64)> = plan
        .skipped_by_reason()
        .iter()
        .map(|(reason, count)| (*reason, *count))
        .collect();
    assert_eq!(reasons, [("ignored", 1), ("too_large", 1)]);
    assert!(!dir.exists(), "a plan touches nothing");
    let forked = plan.apply().unwrap();
    let next = forked.workspace.checkpoint(CheckpointOptions::new());
    assert_eq!(next.unwrap().snapshot_id(), forked.checkpoint.snapshot_id());
    let names: Vec<String> = read_tree(&dir)
        .into_keys()
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(names, [".", ".env", ".gitignore", "src", "src/a"]);
    assert!(!dir.join(".git").exists());
    assert_eq!(forked.checkpoint.skipped().count, 0);
}

#[test]
fn two_forks_of_one_point_at_once_are_both_complete() {
    let lab = Lab::new(6);
    for n in 0..200 {
        lab.write(&format!("d{}/f{n}", n % 7), format!("{n}\n").repeat(50));
    }
    lab.keep();
    let tree = lab.tree();
    let dirs = [0, 1, 2].map(|n| lab.dir.path().join(format!("fork-{n}")));
    std::thread::scope(|scope| {
        for dir in &dirs {
            let workspace = &lab.workspace;
            scope.spawn(move || {
                workspace
                    .fork_into(&Point::last(), dir, ForkInto::new())
                    .unwrap()
            });
        }
    });
    for dir in &dirs {
        is_tree(dir, &tree, "a fork");
    }
    assert_eq!(lab.store.sessions().unwrap().len(), 3);
    assert_eq!(
        names_in(lab.dir.path()),
        ["fork-0", "fork-1", "fork-2", "work"]
    );
    lab.verify();
}

#[test]
fn of_two_forks_into_one_directory_one_succeeds_and_the_other_leaves_nothing() {
    let lab = Lab::new(7);
    for n in 0..100 {
        lab.write(&format!("f{n}"), format!("{n}\n"));
    }
    lab.keep();
    let dir = lab.dir.path().join("fork");
    let plans = [0, 1].map(|_| {
        lab.workspace
            .fork_into_plan(&Point::last(), &dir, ForkInto::new())
            .unwrap()
    });
    let outcomes = plans.map(|plan| plan.apply());
    let [first, second] = outcomes;
    first.unwrap();
    let error = second.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
    assert_eq!(error.path(), Some(dir.as_path()));
    is_tree(&dir, &lab.tree(), "the first");
    assert_eq!(names_in(lab.dir.path()), ["fork", "work"]);
    assert_eq!(lab.store.sessions().unwrap().len(), 1);
}

#[test]
fn a_directory_that_was_created_meanwhile_is_not_touched() {
    let lab = Lab::new(11);
    lab.write("a", "one\n");
    lab.keep();
    let dir = lab.dir.path().join("fork");
    let plan = lab
        .workspace
        .fork_into_plan(&Point::last(), &dir, ForkInto::new())
        .unwrap();
    fs::create_dir(&dir).unwrap();
    let theirs = fs::metadata(&dir).unwrap().ino();
    let error = plan.apply().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
    assert_eq!(fs::metadata(&dir).unwrap().ino(), theirs);
    assert_eq!(names_in(lab.dir.path()), ["fork", "work"]);
    assert_eq!(names_in(&dir), [""; 0]);
}

#[test]
fn a_fork_of_a_fork_continues_from_there() {
    let lab = Lab::new(8);
    lab.write("a", "one\n");
    let session = lab.session();
    turn(&session, "first", || lab.write("a", "two\n"));
    let one = lab.dir.path().join("one");
    let two = lab.dir.path().join("two");
    let first = lab
        .workspace
        .fork_into(&Point::last(), &one, ForkInto::new())
        .unwrap();
    turn(&first.session, "second", || write(&one, "a", "three\n"));
    let second = first
        .workspace
        .fork_into(&Point::last(), &two, ForkInto::new())
        .unwrap();
    assert_eq!(prompts(&second.session), ["first", "second"]);
    assert_eq!(fs::read(two.join("a")).unwrap(), b"three\n");
    // A record that was said in the first one has files in the others, too.
    let at = Point::record(second.session.id(), second.session.last_seq());
    let resolved = second.workspace.resolve(&at).unwrap();
    assert_eq!(resolved.id(), second.checkpoint.id());
}

#[test]
fn a_lost_session_does_not_keep_files_from_being_forked() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("store");
    let store = StoreOptions::new().open_or_create(&home).unwrap();
    let root = dir.path().join("work");
    fs::create_dir(&root).unwrap();
    let workspace = store.workspace(&root).unwrap();
    fs::write(root.join("a"), "one\n").unwrap();
    let session = store.create_session(SessionOptions::new().workspace(&workspace));
    let session = session.unwrap();
    session.append(Message::user_text("hello")).unwrap();
    let options = CheckpointOptions::new().session(session.id());
    workspace.checkpoint(options).unwrap();
    let id = session.id().clone();
    session.close().unwrap();
    fs::remove_dir_all(home.join("sessions").join(id.as_str())).unwrap();
    let fork = dir.path().join("fork");
    let plan = workspace
        .fork_into_plan(&Point::last(), &fork, ForkInto::new())
        .unwrap();
    assert_eq!(plan.lost_session(), Some(&id));
    let forked = plan.apply().unwrap();
    assert_eq!(forked.session.last_seq(), 0);
    assert_eq!(fs::read(fork.join("a")).unwrap(), b"one\n");
}

/// A fork begins with files that belong to who made it.
#[test]
fn files_belong_to_the_user_who_forks() {
    let lab = Lab::new(9);
    lab.write("a", "one\n");
    if is_root() {
        std::os::unix::fs::chown(lab.path("a"), Some(65534), Some(65534)).unwrap();
    } else {
        eprintln!("SKIPPED: needs root; only root gives files to others");
    }
    lab.keep();
    let dir = lab.dir.path().join("fork");
    lab.workspace
        .fork_into(&Point::last(), &dir, ForkInto::new())
        .unwrap();
    let me = fs::metadata("/proc/self").unwrap().uid();
    assert_eq!(fs::metadata(dir.join("a")).unwrap().uid(), me);
}

#[test]
fn a_fork_can_be_rewound_to_its_beginning_by_its_first_checkpoint() {
    let lab = Lab::new(10);
    lab.write("a", "one\n");
    lab.keep();
    let dir = lab.dir.path().join("fork");
    let forked = lab
        .workspace
        .fork_into(&Point::last(), &dir, ForkInto::new())
        .unwrap();
    write(&dir, "a", "two\n");
    forked
        .workspace
        .checkpoint(CheckpointOptions::new())
        .unwrap();
    let first = Point::checkpoint(forked.checkpoint.id());
    done(
        forked
            .workspace
            .rewind(&first, Rewind::files().overwrite())
            .unwrap(),
    );
    is_tree(&dir, &lab.tree(), "as it began");
}

pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

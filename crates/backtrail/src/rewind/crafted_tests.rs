//! A store that somebody crafted: whatever its tree objects say, nothing outside of
//! the workspace is touched, and the error says what is wrong (F16).

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::error::{Error, ErrorKind};
use crate::ids::CheckpointId;
use crate::objects::ObjectId;
use crate::snapshot::entry::{Dir, DirEntry, Node};
use crate::snapshot::node::{write_listing, write_root};
use crate::snapshot::{Snapshot, Totals};
use crate::workspace::step_record::StepRecord;
use crate::workspace::verify::VerifyOptions;
use crate::workspace::{Checkpoint, CheckpointOptions, CheckpointReason, Point, Workspace};
use crate::{Rewind, Store};

/// A workspace, with files outside it.
struct Scene {
    dir: TempDir,
    workspace: Workspace,
    /// The files outside, as they were at first.
    first: Checkpoint,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir_all(work.join("d")).unwrap();
        fs::write(work.join("file"), "inside").unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/file"), "outside").unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let workspace = store.workspace(&work).unwrap();
        let first = workspace.checkpoint(CheckpointOptions::new()).unwrap();
        Self {
            dir,
            workspace,
            first,
        }
    }

    /// Stores a listing as given, and the nodes above it.
    fn store(&self, entries: &[DirEntry]) -> ObjectId {
        let writer = self.workspace.objects().writer().unwrap();
        let put = &mut |bytes: &[u8]| writer.put(bytes);
        let listing = write_listing(entries, put).unwrap();
        let id = put(&write_root(&dir(listing))).unwrap();
        writer.finish().unwrap();
        id
    }

    /// Stores a file, and returns its node.
    fn file(&self, content: &str) -> Node {
        let writer = self.workspace.objects().writer().unwrap();
        let id = writer.put(content.as_bytes()).unwrap();
        writer.finish().unwrap();
        Node::File {
            mode: 0o644,
            size: content.len() as u64,
            content: id,
            ignored: false,
        }
    }

    /// Puts a checkpoint of a crafted snapshot on the trail.
    fn checkpoint(&self, snapshot: ObjectId) -> CheckpointId {
        let begun = self.begun(snapshot);
        let ended = begun.end((snapshot, Totals::default()));
        self.workspace.end_step(&ended).unwrap();
        begun.id
    }

    fn begun(&self, after: ObjectId) -> StepRecord {
        StepRecord {
            at: self.workspace.store().now(),
            id: CheckpointId::from_uuid(uuid::Uuid::from_u128(7)),
            reason: CheckpointReason::Rewind,
            step: None,
            of_session: None,
            from: self.first.id(),
            to: None,
            before: self.first.snapshot_id(),
            after,
            chat: None,
            makes_root: false,
            about: None,
            prompt: None,
            merge: None,
        }
    }

    /// Goes to a crafted snapshot, which must fail both ways: by its checkpoint, and by a
    /// step that seems to have been interrupted.
    fn refuses(&self, snapshot: ObjectId, what: &str) {
        let before = self.look();
        let id = self.checkpoint(snapshot);
        is_told(&self.rewind(id).expect_err(what), what);
        assert_eq!(self.look(), before, "{what}");
        assert!(!self.is_verified(id), "verify knows nothing of {what}");
        self.workspace
            .begin_step(None, &self.begun(snapshot))
            .unwrap();
        match self.workspace.recover() {
            Err(error) => is_told(&error, what),
            // The step is given up with the reason, or the path is left alone and named.
            Ok(recovered) => {
                let it = recovered.expect("a step was open");
                let abandoned = it.abandoned.is_some() && it.now.is_none();
                assert!(abandoned || !it.not_restored.is_empty(), "{what}");
            }
        }
        assert_eq!(self.look(), before, "{what}");
    }

    fn rewind(&self, id: CheckpointId) -> crate::Result<()> {
        let options = Rewind::files().overwrite();
        let rewound = self.workspace.rewind(&Point::checkpoint(id), options);
        rewound.map(drop)
    }

    /// Returns whether a check of the store finds nothing wrong with a checkpoint.
    fn is_verified(&self, id: CheckpointId) -> bool {
        let store = self.workspace.store();
        let [thorough, quick] =
            [VerifyOptions::new(), VerifyOptions::new().quick()].map(|options| {
                let report = store.verify_snapshots_with(&options).unwrap();
                let mut lost = report.lost.iter();
                !lost.any(|state| state.checkpoints.contains(&id))
            });
        assert_eq!(thorough, quick, "a quick check sees as much of a tree");
        thorough
    }

    /// Reads everything except the store.
    fn look(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        look_into(self.dir.path(), &mut found);
        found.retain(|(path, _)| !path.starts_with(self.dir.path().join("store")));
        found.sort();
        found
    }
}

fn look_into(dir: &Path, found: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let bytes = if meta.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        found.push((path.clone(), bytes));
        if meta.is_dir() {
            look_into(&path, found);
        }
    }
}

fn is_told(error: &Error, what: &str) {
    let kinds = [ErrorKind::Corrupt, ErrorKind::Invalid];
    assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
    assert!(error.to_string().len() > 10, "{what}: {error}");
}

fn dir(listing: ObjectId) -> Dir {
    Dir {
        mode: 0o755,
        listing,
        totals: Totals::default(),
    }
}

fn entry(name: &[u8], node: Node) -> DirEntry {
    DirEntry {
        name: name.into(),
        node,
    }
}

#[test]
fn f16_names_that_lead_elsewhere_are_refused_and_nothing_is_touched() {
    let long = [b'a'; 300];
    let names: [&[u8]; 9] = [
        b"..",
        b".",
        b"",
        b"/etc/x",
        b"../outside/file",
        b"a/b",
        b"a\0b",
        b"d/../../outside/new",
        &long,
    ];
    for name in names {
        let scene = Scene::new();
        let node = scene.file("crafted");
        let shown = name.escape_ascii().to_string();
        scene.refuses(scene.store(&[entry(name, node.clone())]), &shown);
        // The same one level down.
        let scene = Scene::new();
        let node = scene.file("crafted");
        let below = scene.store_listing(&[entry(name, node)]);
        let above = scene.store(&[entry(b"d", Node::Dir(dir(below)))]);
        scene.refuses(above, &shown);
    }
}

impl Scene {
    fn store_listing(&self, entries: &[DirEntry]) -> ObjectId {
        let writer = self.workspace.objects().writer().unwrap();
        let listing = write_listing(entries, &mut |bytes| writer.put(bytes)).unwrap();
        writer.finish().unwrap();
        listing
    }
}

#[test]
fn f16_a_link_that_is_also_a_directory_is_not_followed() {
    let scene = Scene::new();
    let outside = scene.dir.path().join("outside");
    let below = scene.store_listing(&[entry(b"file", scene.file("crafted"))]);
    let link = Node::Link {
        target: outside.as_os_str().as_encoded_bytes().into(),
        ignored: false,
    };
    let twice = [
        entry(b"d", link.clone()),
        entry(b"d", Node::Dir(dir(below))),
    ];
    scene.refuses(scene.store(&twice), "one name twice");
    let scene = Scene::new();
    let unsorted = [entry(b"z", link), entry(b"d", Node::Dir(dir(below)))];
    scene.refuses(scene.store(&unsorted), "in no order");
}

#[test]
fn f16_directories_without_end_are_refused() {
    let scene = Scene::new();
    let file = scene.file("deep");
    let writer = scene.workspace.objects().writer().unwrap();
    let put = &mut |bytes: &[u8]| writer.put(bytes);
    let mut listing = write_listing(&[entry(b"file", file)], put).unwrap();
    for _ in 0..5_000 {
        listing = write_listing(&[entry(b"d", Node::Dir(dir(listing)))], put).unwrap();
    }
    writer.finish().unwrap();
    scene.refuses(
        scene.store(&[entry(b"d", Node::Dir(dir(listing)))]),
        "too deep",
    );
}

#[test]
fn f16_objects_that_are_missing_or_something_else_are_refused() {
    let scene = Scene::new();
    let nowhere = ObjectId::of(b"never stored");
    scene.refuses(
        scene.store(&[entry(b"d", Node::Dir(dir(nowhere)))]),
        "no listing",
    );
    let scene = Scene::new();
    let missing = Node::File {
        mode: 0o644,
        size: 3,
        content: nowhere,
        ignored: false,
    };
    let same = |scene: &Scene| Node::Dir(dir(scene.store_listing(&[])));
    let missing = [entry(b"d", same(&scene)), entry(b"file", missing)];
    scene.refuses(scene.store(&missing), "no content");
    let scene = Scene::new();
    let Node::File { content, .. } = scene.file("four") else {
        unreachable!()
    };
    let shorter = Node::File {
        mode: 0o644,
        size: 3,
        content,
        ignored: false,
    };
    let shorter = [entry(b"d", same(&scene)), entry(b"file", shorter)];
    let id = scene.checkpoint(scene.store(&shorter));
    let options = Rewind::files().overwrite();
    let refused = scene.workspace.rewind(&Point::checkpoint(id), options);
    is_told(
        &refused.map(drop).expect_err("it is longer"),
        "of another length",
    );
    assert_eq!(
        fs::read(scene.workspace.root().join("file")).unwrap(),
        b"inside"
    );
}

#[test]
fn f27_a_crafted_tree_does_not_write_into_a_repository() {
    let scene = Scene::new();
    let work = scene.workspace.root();
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    fs::write(work.join(".git/config"), "the user's").unwrap();
    let hooks = scene.store_listing(&[entry(b"post-checkout", scene.file("evil"))]);
    let git = scene.store_listing(&[
        entry(b"config", scene.file("evil")),
        entry(b"hooks", Node::Dir(dir(hooks))),
    ]);
    let id = scene.checkpoint(scene.store(&[entry(b".git", Node::Dir(dir(git)))]));
    let options = Rewind::files().overwrite();
    // It was refused, or done except for that path.
    scene.workspace.rewind(&Point::checkpoint(id), options).ok();
    assert_eq!(fs::read(work.join(".git/config")).unwrap(), b"the user's");
    assert_eq!(fs::read_dir(work.join(".git/hooks")).unwrap().count(), 0);
}

/// Whatever a restore refuses, a check of the store reports, and the other way round.
#[test]
fn f16_verify_and_restore_agree_about_every_tree() {
    let target = |target: &[u8]| Node::Link {
        target: target.into(),
        ignored: false,
    };
    let sized = |scene: &Scene, size: u64| match scene.file("four") {
        Node::File { content, .. } => Node::File {
            mode: 0o644,
            size,
            content,
            ignored: false,
        },
        other => other,
    };
    type Make<'a> = Box<dyn Fn(&Scene) -> (Vec<u8>, Node) + 'a>;
    let link = |name: &'static [u8], to: Vec<u8>| -> Make<'_> {
        Box::new(move |_| (name.to_vec(), target(&to)))
    };
    let named =
        |name: Vec<u8>| -> Make<'_> { Box::new(move |scene| (name.clone(), scene.file("new"))) };
    let cases: Vec<(&str, bool, Make<'_>)> = vec![
        ("a file", true, named(b"new".to_vec())),
        ("a long name", true, named(vec![b'n'; 255])),
        ("no UTF-8", true, named(vec![b'a', 0xff, 0xfe])),
        ("a longer name", false, named(vec![b'n'; 256])),
        ("git's state", false, named(b".git".to_vec())),
        (
            "a staging directory",
            false,
            named(b".backtrail-staging-x".to_vec()),
        ),
        ("a link", true, link(b"link", b"anywhere".to_vec())),
        ("a long link", true, link(b"link", vec![b't'; 4095])),
        ("a link to nothing", false, link(b"link", Vec::new())),
        ("a link with NUL", false, link(b"link", b"a\0b".to_vec())),
        ("a longer link", false, link(b"link", vec![b't'; 4096])),
        (
            "the length",
            true,
            Box::new(|s| (b"f".to_vec(), sized(s, 4))),
        ),
        (
            "a length too small",
            false,
            Box::new(|s| (b"f".to_vec(), sized(s, 3))),
        ),
        (
            "a length too large",
            false,
            Box::new(|s| (b"f".to_vec(), sized(s, 5))),
        ),
        (
            "no length",
            false,
            Box::new(|s| (b"f".to_vec(), sized(s, 0))),
        ),
        (
            "a length that needs chunks",
            false,
            Box::new(|s| (b"f".to_vec(), sized(s, u64::MAX))),
        ),
    ];
    for (what, fine, make) in &cases {
        for depth in 0..3 {
            let scene = Scene::new();
            let (name, node) = make(&scene);
            let mut entries = vec![entry(&name, node)];
            for _ in 0..depth {
                let below = scene.store_listing(&entries);
                let [one, two] = [b"one", b"two"].map(|name| entry(name, Node::Dir(dir(below))));
                entries = vec![one, two];
            }
            let id = scene.checkpoint(scene.store(&entries));
            let restored = scene.rewind(id);
            assert_eq!(restored.is_ok(), *fine, "{what} at {depth}: {restored:?}");
            assert_eq!(scene.is_verified(id), *fine, "{what} at {depth}");
        }
    }
}

/// A few bytes that spell more files than there are atoms in a house: every directory has
/// the next one twice.
#[test]
fn f16_a_tree_that_repeats_itself_without_end_is_refused_at_once() {
    let long = [[b'a'; 200], [b'b'; 200]];
    type Bomb<'a> = (&'a str, [&'a [u8]; 2], bool, usize, &'a [bool]);
    let bombs: [Bomb<'_>; 5] = [
        ("files", [b"a", b"b"], true, 40, &[false, true]),
        ("directories only", [b"a", b"b"], false, 40, &[false]),
        ("long names", [&long[0], &long[1]], true, 40, &[false]),
        (
            "more than numbers can say",
            [b"a", b"b"],
            true,
            200,
            &[false],
        ),
        ("just too many", [b"a", b"b"], true, 18, &[false]),
    ];
    for (what, names, has_file, levels, damage) in bombs {
        for is_damaged in damage.iter().copied() {
            let scene = Scene::new();
            let mut entries = Vec::new();
            if has_file {
                entries.push(entry(b"file", scene.file("one")));
            }
            if is_damaged {
                let nowhere = ObjectId::of(b"never stored");
                entries.insert(0, entry(b"dir", Node::Dir(dir(nowhere))));
            }
            for _ in 0..levels {
                let below = scene.store_listing(&entries);
                entries = names
                    .map(|name| entry(name, Node::Dir(dir(below))))
                    .to_vec();
            }
            let bomb = scene.store(&entries);
            let stored = Snapshot::stored(scene.workspace.objects(), bomb).unwrap();
            let first = scene.first.snapshot().unwrap();
            for refused in [
                first.diff(&stored).map(drop),
                stored.diff(&first).map(drop),
                stored.entries().try_for_each(|entry| entry.map(drop)),
                stored.differences(&first, None).map(drop),
            ] {
                is_told(&refused.expect_err(what), what);
            }
            // The same on both sides is not even read.
            assert!(stored.diff(&stored).unwrap().changes().is_empty());
            scene.refuses(bomb, what);
        }
    }
}

/// Many equal directories are no attack: copies of one package, or test data.
#[test]
fn many_equal_directories_are_listed_compared_and_verified() {
    let scene = Scene::new();
    let file = scene.file("one");
    let name = |n: usize| format!("{n:04}").into_bytes();
    let files: Vec<DirEntry> = (0..100).map(|n| entry(&name(n), file.clone())).collect();
    let below = scene.store_listing(&files);
    let dirs: Vec<DirEntry> = (0..1_500)
        .map(|n| entry(&name(n), Node::Dir(dir(below))))
        .collect();
    let snapshot = scene.store(&dirs);
    let stored = Snapshot::stored(scene.workspace.objects(), snapshot).unwrap();
    let first = scene.first.snapshot().unwrap();
    assert_eq!(stored.entries().count(), 151_500);
    assert_eq!(stored.entries().filter(|entry| entry.is_err()).count(), 0);
    let diff = first.diff(&stored).unwrap();
    assert!(diff.changes().len() >= 150_000);
    let id = scene.checkpoint(snapshot);
    assert!(scene.is_verified(id));
}

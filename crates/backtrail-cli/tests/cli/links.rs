//! Nothing in a store is opened through a link: every directory and file of a real store
//! is replaced by a link to outside, and every verb is run.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::kit::{Cli, Ran};

/// What only the session says that may be behind a link.
const WORDS: &str = "zebracrossing";

/// A store with everything in it: two sessions, one of them with a payload, one in the trash,
/// checkpoints, and derived data.
struct Whole {
    cli: Cli,
    session: String,
    other: String,
}

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran
}

impl Whole {
    fn new() -> Self {
        let cli = Cli::new();
        std::fs::write(cli.work().join("a.txt"), "one\n").unwrap();
        let said = format!(
            r#"{{"type":"message","message":{{"role":"user","blocks":[{{"type":"text","text":"{WORDS}"}},{{"type":"image","media_type":"image/png","data":"aGVsbG8="}}]}}}}"#
        );
        let recorded = ok(cli.run_with(&["record"], said.as_bytes()));
        let session = recorded.json_lines()[0]["session"]
            .as_str()
            .unwrap()
            .to_owned();
        ok(cli.run(&[
            "run",
            "--session",
            &session,
            "--",
            "sh",
            "-c",
            "echo two > a.txt",
        ]));
        let other = cli.new_session("the other one");
        let gone = cli.new_session("a deleted one");
        ok(cli.run(&["delete", &gone]));
        ok(cli.run(&["checkpoint", "now"]));
        ok(cli.run(&["search", WORDS]));
        ok(cli.run(&["rebuild"]));
        Self {
            cli,
            session,
            other,
        }
    }

    /// Returns the paths of everything in the store, relative to it.
    fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        collect(&self.cli.store(), Path::new(""), &mut paths);
        paths.sort();
        paths
    }

    /// Copies the store, and replaces one thing in the copy by a link to outside.
    fn with_link(&self, path: &Path) -> Linked {
        let cli = Cli::new();
        copy(&self.cli.work(), &cli.work());
        copy(&self.cli.store(), &cli.store());
        let link = cli.store().join(path);
        let outside = cli.work().with_file_name("outside");
        std::fs::rename(&link, &outside).unwrap();
        symlink(&outside, &link).unwrap();
        let before = contents(&outside);
        Linked {
            cli,
            link,
            outside,
            before,
        }
    }
}

struct Linked {
    cli: Cli,
    link: PathBuf,
    outside: PathBuf,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Linked {
    fn run(&self, args: &[&str]) -> Ran {
        let ran = self
            .cli
            .run_with(args, b"{\"role\":\"user\",\"text\":\"more\"}\n");
        let now = contents(&self.outside);
        let same = now == self.before;
        assert!(
            same,
            "{args:?} changed what {:?} points to: {ran:#?}",
            self.link
        );
        ran
    }
}

fn collect(dir: &Path, inner: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir.join(inner)).unwrap() {
        let entry = entry.unwrap();
        let path = inner.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(dir, &path, paths);
        }
        paths.push(path);
    }
}

fn copy(from: &Path, to: &Path) {
    let from = format!("{}/.", from.display());
    let status = std::process::Command::new("cp")
        .args(["-a", "--no-target-directory", &from])
        .arg(to)
        .status();
    assert!(status.unwrap().success());
}

/// Returns every file at and below a path with its bytes.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut paths = Vec::new();
    if path.is_dir() {
        collect(path, Path::new(""), &mut paths);
    }
    paths.push(PathBuf::new());
    let bytes = |inner: PathBuf| {
        let path = path.join(&inner);
        let bytes = match path.is_dir() {
            true => b"a directory".to_vec(),
            false => std::fs::read(path.components().as_path()).unwrap(),
        };
        (inner, bytes)
    };
    paths.into_iter().map(bytes).collect()
}

/// The verbs, those that remove most at the end.
const VERBS: &[&[&str]] = &[
    &["status"],
    &["list", "--json"],
    &["show", "SESSION"],
    &["context", "SESSION"],
    &["search", "zebracrossing"],
    &["stats", "SESSION"],
    &["log", "--json"],
    &["diff", "now"],
    &["cat", "now", "a.txt"],
    &["export", "SESSION"],
    &["title", "SESSION", "a title"],
    &["record", "--session", "SESSION"],
    &["checkpoint"],
    &["run", "--", "sh", "-c", "echo three > a.txt"],
    &["undo"],
    &["rewind", "now", "--yes"],
    &["fork", "SESSION"],
    &["repair", "SESSION", "--yes"],
    &["rebuild"],
    &["gc", "--older-than", "0d"],
    &["trash", "--json"],
    &["delete", "SESSION"],
    &["trash", "empty", "--yes"],
];

/// F7: what a link leads to is the user's.
#[test]
fn nothing_in_a_store_is_read_written_or_removed_through_a_link() {
    let whole = Whole::new();
    let paths = whole.paths();
    assert!(paths.len() > 25, "{paths:#?}");
    for path in &paths {
        let linked = whole.with_link(path);
        let session = Path::new("sessions").join(&whole.session);
        let holds_words = session.join("0000.jsonl").starts_with(path);
        for verb in VERBS {
            let verb: Vec<&str> = verb
                .iter()
                .map(|word| match *word {
                    "SESSION" => whole.session.as_str(),
                    word => word,
                })
                .collect();
            let ran = linked.run(&verb);
            assert!(
                !ran.stderr.contains("panicked"),
                "{path:?} {verb:?}: {ran:#?}"
            );
            if holds_words && verb[0] != "list" {
                let shown = &ran.stdout;
                assert!(
                    !shown.contains(WORDS) || ran.code != 0,
                    "{path:?}: {ran:#?}"
                );
            }
        }
    }
}

#[test]
fn verify_and_doctor_name_every_link_and_a_purge_refuses() {
    let whole = Whole::new();
    for path in &whole.paths() {
        let linked = whole.with_link(path);
        let named = |ran: &Ran| {
            let all = format!("{}{}", ran.stdout, ran.stderr);
            all.contains(&path.display().to_string())
        };
        let verified = linked.run(&["verify"]);
        assert_ne!(verified.code, 0, "{path:?}: {verified:#?}");
        assert!(named(&verified), "{path:?}: {verified:#?}");
        let doctor = linked.run(&["doctor"]);
        assert_eq!(doctor.code, 1, "{path:?}: {doctor:#?}");
        assert!(named(&doctor), "{path:?}: {doctor:#?}");
        let purged = linked.run(&["delete", &whole.session, "--purge", "--yes"]);
        assert_eq!(purged.code, 2, "{path:?}: {purged:#?}");
        assert!(named(&purged), "{path:?}: {purged:#?}");
    }
}

#[test]
fn a_link_in_place_of_one_session_hides_no_other() {
    let whole = Whole::new();
    let inside = format!("sessions/{}", whole.session);
    for path in [inside.clone(), format!("{inside}/0000.jsonl")] {
        let linked = whole.with_link(Path::new(&path));
        let listed = ok(linked.run(&["list", "--json"])).json();
        let rows = listed.as_array().unwrap().iter();
        let row = |id: &str| rows.clone().find(|row| row["id"] == id).cloned();
        assert!(row(&whole.other).is_some(), "{listed:#}");
        let broken = row(&whole.session).expect("listed with its reason");
        let text = broken.to_string();
        assert!(text.contains("symbolic link"), "{path}: {text}");
        assert_eq!(linked.cli.texts(&whole.other), ["the other one"]);
    }
}

/// `~/.backtrail` may be a link to another disk.
#[test]
fn the_store_itself_may_be_a_link() {
    let whole = Whole::new();
    let store = whole.cli.store();
    let moved = store.with_file_name("moved");
    std::fs::rename(&store, &moved).unwrap();
    symlink(&moved, &store).unwrap();
    for verb in [
        &["verify"][..],
        &["search", WORDS],
        &["undo"],
        &["gc"],
        &["delete", &whole.session, "--purge", "--yes"],
        &["verify"],
    ] {
        ok(whole.cli.run(verb));
    }
}

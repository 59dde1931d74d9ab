//! The local disk of a store: no link below its root is followed, and a strict umask makes
//! nothing unusable.

#![expect(clippy::disallowed_methods, reason = "tests make their own files")]

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A store's directory behind a link, and a directory outside that links lead to.
struct Lab {
    dir: tempfile::TempDir,
    storage: Arc<dyn Storage>,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["real", "outside", "real/sessions", "real/sessions/one"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        symlink("real", dir.path().join("root")).unwrap();
        fs::write(dir.path().join("outside/file"), "outside").unwrap();
        let storage = LocalStorage.within(&dir.path().join("root")).unwrap();
        Self { dir, storage }
    }

    /// Returns a path in the store, whose root is reached through a link.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("root").join(name)
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }
}

/// Every operation on a path, with the link that it refuses.
fn refused(storage: &dyn Storage, path: &Path, other: &Path) -> Vec<(&'static str, PathBuf)> {
    fn link<T>(done: io::Result<T>) -> PathBuf {
        let error = done.err().expect("refused");
        let link = LinkRefused::link(&error);
        link.unwrap_or_else(|| panic!("{error}")).to_owned()
    }
    vec![
        ("open_append", link(storage.open_append(path))),
        ("open_read", link(storage.open_read(path))),
        ("remove_file", link(storage.remove_file(path))),
        ("remove_dir", link(storage.remove_dir(path))),
        ("rename_new", link(storage.rename_new(path, other))),
        ("replace", link(storage.replace(path, other))),
        ("list", link(storage.list(path))),
        ("exists", link(storage.exists(path))),
        ("sync_dir", link(storage.sync_dir(path))),
        ("sync_tree", link(storage.sync_tree(path))),
    ]
}

#[test]
fn no_operation_follows_a_link_below_the_root_and_each_names_it() {
    let lab = Lab::new();
    let (storage, other) = (lab.storage.as_ref(), lab.path("other"));
    for target in ["outside/file", "outside", "nowhere"] {
        let link = lab.path("sessions/link");
        symlink(lab.dir.path().join(target), &link).unwrap();
        for (operation, named) in refused(storage, &link, &other) {
            assert_eq!(named, link, "{operation} to {target}");
        }
        let there = storage.create_new(&link).map(drop).unwrap_err();
        assert_eq!(there.kind(), io::ErrorKind::AlreadyExists);
        assert!(storage.create_dir(&link).is_err());
        assert!(storage.is_link(&link).unwrap() && !storage.is_dir(&link).unwrap());
        fs::remove_file(link).unwrap();
    }
    assert_eq!(fs::read(lab.outside().join("file")).unwrap(), b"outside");
}

#[test]
fn nothing_is_reached_through_a_directory_that_is_a_link() {
    let lab = Lab::new();
    let storage = lab.storage.as_ref();
    let link = lab.path("sessions/linked");
    symlink(lab.outside(), &link).unwrap();
    let other = lab.path("other");
    for name in ["file", "nothing"] {
        let path = link.join(name);
        for (operation, named) in refused(storage, &path, &other) {
            assert_eq!(named, link, "{operation} of {name}");
        }
        let mut errors = vec![
            storage.create_new(&path).map(drop),
            storage.create_dir(&path),
            storage.is_dir(&path).map(drop),
            storage.is_link(&path).map(drop),
        ];
        fs::write(lab.path("mine"), "mine").unwrap();
        errors.push(storage.link_new(&lab.path("mine"), &path));
        errors.push(storage.link_new(&path, &other));
        errors.push(storage.rename_new(&lab.path("mine"), &path));
        errors.push(storage.replace(&lab.path("mine"), &path));
        for error in errors {
            let error = error.unwrap_err();
            assert_eq!(LinkRefused::link(&error), Some(link.as_path()), "{error}");
        }
    }
    let names = LocalStorage.list(&lab.outside()).unwrap();
    assert_eq!(names, ["file"], "nothing was added or removed");
    assert_eq!(fs::read(lab.outside().join("file")).unwrap(), b"outside");
}

#[test]
fn the_root_itself_may_be_behind_a_link() {
    let lab = Lab::new();
    let storage = lab.storage.as_ref();
    let path = lab.path("sessions/one/0000.jsonl");
    let file = storage.create_new(&path).unwrap();
    file.append(b"words").unwrap();
    storage.sync_dir(&lab.path("sessions/one")).unwrap();
    storage.replace(&path, &lab.path("sessions/file")).unwrap();
    assert!(storage.exists(&lab.path("sessions/file")).unwrap());
    let real = lab.dir.path().join("real/sessions/file");
    assert_eq!(fs::read(real).unwrap(), b"words");
    // A path that leads out of the store is refused, too.
    let up = storage.open_read(&lab.path("sessions/../../outside/file"));
    assert_eq!(up.unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
#[cfg(target_os = "linux")]
fn a_system_that_cannot_open_a_path_in_one_call_answers_alike() {
    let lab = Lab::new();
    fs::write(lab.path("sessions/one/file"), "x").unwrap();
    symlink(lab.outside(), lab.path("sessions/linked")).unwrap();
    symlink("one", lab.path("sessions/inner")).unwrap();
    symlink("file", lab.path("sessions/one/alias")).unwrap();
    let top = rustix::fs::open(lab.path(""), WAY, Mode::empty()).unwrap();
    for path in [
        "sessions",
        "sessions/one",
        "sessions/one/file",
        "sessions/one/alias",
        "sessions/one/none",
        "sessions/one/file/below",
        "sessions/linked",
        "sessions/linked/file",
        "sessions/inner/file",
        "none/below",
    ] {
        let path = Path::new(path);
        for flags in [OFlags::RDONLY, DIRECTORY, WAY] {
            let flags = flags | OFlags::NOFOLLOW;
            let whole = open_whole(&top, path, flags, Mode::empty());
            let steps = open_steps(&top, path, flags, Mode::empty());
            let is_link = |error: &Errno| matches!(*error, Errno::LOOP | Errno::NOTDIR);
            match (whole, steps) {
                (Ok(_), Ok(_)) => {}
                (Err(whole), Err(steps)) => assert!(
                    whole == steps || is_link(&whole) && is_link(&steps),
                    "{path:?}: {whole} and {steps}"
                ),
                both => panic!("{path:?} with {flags:?}: {both:?}"),
            }
        }
    }
}

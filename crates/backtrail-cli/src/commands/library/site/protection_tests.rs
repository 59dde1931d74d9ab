//! What the health page says of each workspace.

use backtrail_web::library::Site;

use crate::commands::library::StoreLibrary;
use crate::commands::library::lab::Lab;
use crate::commands::library::testing::{Fixture, make_directory};

#[test]
fn what_is_not_protected_is_listed_with_the_reason() {
    let lab = Lab::new();
    lab.write(".gitignore", "target/\n");
    lab.write("target/large", &"x".repeat(3 << 20));
    lab.write("a.txt", "a");
    lab.checkpoint();
    let [here] = &lab.library.health().unwrap().protection[..] else {
        panic!("there is one workspace");
    };
    let listed: Vec<_> = here
        .skipped
        .iter()
        .map(|(path, reason)| (path.as_str(), reason.as_str()))
        .collect();
    assert_eq!(listed, [("target/", "ignored")]);
    assert_eq!((&here.problem, here.is_here), (&None, true));
}

#[test]
fn without_a_checkpoint_or_its_files_nothing_is_protected() {
    let fixture = Fixture::new();
    let problem = |library: &StoreLibrary, n: usize| {
        let protection = &library.health().unwrap().protection[n];
        (protection.name.clone(), protection.problem.clone())
    };
    let none = "Nothing is protected: there are no checkpoints yet.";
    assert_eq!(
        problem(&fixture.library, 0),
        ("shop".to_owned(), Some(none.to_owned()))
    );
    let lab = Lab::new();
    lab.write("a.txt", "1");
    lab.checkpoint();
    assert_eq!(problem(&lab.library, 0), ("work".to_owned(), None));
    let other = lab.dir.path().join("other");
    make_directory(&other);
    lab.library.store.workspace(&other).unwrap();
    assert_eq!(
        problem(&lab.library, 1),
        ("other".to_owned(), Some(none.to_owned()))
    );
}

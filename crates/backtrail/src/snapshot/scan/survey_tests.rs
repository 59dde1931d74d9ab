#![expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]

use std::fs;

use super::super::testing::TestWorkspace;
use super::*;

fn survey(place: &TestWorkspace, names: usize) -> Survey {
    let skipped = ["big", "small"].map(|name| {
        let skipped = Skipped {
            reason: SkippedReason::Ignored,
            kind: FileKind::Dir,
            size: 0,
        };
        (PathBuf::from(name), skipped)
    });
    Survey::of_names(&place.root(), &place.options.store, &skipped, names)
}

/// A place with 40 files in each of four directories of `big`, and three files in `small`.
fn place() -> TestWorkspace {
    let place = TestWorkspace::new();
    for n in 0..160 {
        place.write(&format!("big/{}/{n}", n % 4), "1234");
    }
    for n in 0..3 {
        place.write(&format!("small/{n}"), "12");
    }
    place
}

fn amount(survey: &Survey, name: &str) -> (u64, u64, bool) {
    let amount = survey.0[Path::new(name)].amount().unwrap();
    (amount.files, amount.bytes, amount.at_least)
}

fn compare(before: &Survey, after: &Survey) -> Difference {
    let path = Path::new("big");
    before.0[path].compare(&after.0[path])
}

#[test]
fn a_survey_looks_at_so_many_names_and_at_every_entry_first() {
    let place = place();
    let whole = survey(&place, 1000);
    assert_eq!(amount(&whole, "big"), (160, 640, false));
    assert_eq!(amount(&whole, "small"), (3, 6, false));
    // Four directories, three files, and then what is in the first directory.
    let part = survey(&place, 50);
    assert_eq!(amount(&part, "small"), (3, 6, false));
    let (files, bytes, at_least) = amount(&part, "big");
    assert!(files < 160 && bytes == 4 * files && at_least, "{files}");
    assert!(files >= 40, "{files}");
    for names in 0..10 {
        assert!(amount(&survey(&place, names), "big").2, "{names}");
    }
}

/// Whatever a survey was able to look at, it never calls growth a loss, and a loss in what
/// both saw is found.
#[test]
fn surveys_of_any_length_tell_a_loss_from_a_gain() {
    for before_names in [7, 30, 60, 100, 1000] {
        for after_names in [7, 30, 60, 100, 1000] {
            let place = place();
            let before = survey(&place, before_names);
            let same = compare(&before, &survey(&place, after_names));
            assert_eq!(same, Difference::Same, "{before_names} {after_names}");
            place.write("big/0/more", "more");
            let grown = compare(&before, &survey(&place, after_names));
            assert_ne!(grown, Difference::Smaller, "{before_names} {after_names}");
            fs::remove_file(place.at("big/0/more")).unwrap();
            fs::remove_dir_all(place.at("big/3")).unwrap();
            let lost = compare(&before, &survey(&place, after_names));
            assert_eq!(lost, Difference::Smaller, "{before_names} {after_names}");
        }
    }
}

#[test]
fn what_is_emptied_is_smaller_however_little_was_seen_of_it() {
    for names in [7, 50, 1000] {
        let place = place();
        let before = survey(&place, names);
        for n in 0..4 {
            fs::remove_dir_all(place.at(&format!("big/{n}"))).unwrap();
        }
        assert_eq!(
            compare(&before, &survey(&place, names)),
            Difference::Smaller
        );
    }
}

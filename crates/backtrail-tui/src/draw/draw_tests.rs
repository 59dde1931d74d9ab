//! Whole screens, as they look at several widths.
//!
//! `BACKTRAIL_BLESS=1` writes the files in `screens/` again: look at what changed.

use std::path::Path;

use crate::app::driver_tests::{Driver, Made};
use crate::look::Look;
use backtrail_view::library::Span;

/// Compares the screen with the file that shows how it should be.
#[expect(clippy::disallowed_methods, reason = "the files are not in a store")]
fn check(name: &str, driver: &Driver) {
    let screen = driver.screen().join("\n") + "\n";
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/draw/screens");
    let path = dir.join(name).with_extension("txt");
    if std::env::var_os("BACKTRAIL_BLESS").is_some() {
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(&path, &screen).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        screen == expected,
        "{name} is\n{screen}\nand should be\n{expected}"
    );
}

#[test]
fn sessions_look_right_from_60_to_200_columns() {
    for (columns, rows) in [(60, 18), (80, 24), (120, 30), (200, 40)] {
        let mut driver = Driver::new(columns, rows);
        check(&format!("sessions-{columns}"), &driver);
        driver.press("<Enter>");
        check(&format!("conversation-{columns}"), &driver);
        driver.press("<Enter>");
        check(&format!("changes-{columns}"), &driver);
    }
}

#[test]
fn the_other_views_look_right() {
    for columns in [60, 120] {
        let mut driver = Driver::new(columns, 20);
        driver.press("2");
        check(&format!("timeline-{columns}"), &driver);
        driver.press("3");
        check(&format!("costs-{columns}"), &driver);
    }
}

#[test]
fn dialogues_look_right() {
    let mut library = Made::new();
    library.conflicts = true;
    let mut driver = Driver::with(library, 100, 24);
    driver.press("u");
    check("plan", &driver);
    driver.press("<Esc>?");
    check("help", &driver);
    driver.press("<Esc>:");
    check("palette", &driver);
    driver.press("<Esc>/round");
    check("search", &driver);
    driver.press("<Esc>t");
    check("title", &driver);
}

/// `LC_ALL=C`: a terminal that knows nothing but ASCII.
#[test]
fn without_unicode_the_screens_are_ascii() {
    let mut driver = Driver::new(120, 30);
    driver.app.look = Look {
        unicode: false,
        ..Look::default()
    };
    for keys in ["", "<Enter>", "2", "3", "?", "<Esc>u", "<Esc>/x"] {
        driver.press(keys);
        let screen = driver.screen().join("\n");
        assert!(screen.is_ascii(), "{keys}: {screen}");
    }
}

/// The library cleans its texts; a mistake there must not reach the terminal either.
#[test]
fn no_control_character_reaches_a_cell() {
    let mut library = Made::new();
    library.sessions[0].title = "a\u{1b}[31mred\u{7}\u{9b}2J\r\n\tb".to_owned();
    let driver = Driver::with(library, 120, 30);
    let screen = driver.screen().concat();
    assert!(!screen.contains(|c: char| c.is_control()), "{screen:?}");
    let hostile = Span::plain("\u{1b}]0;title\u{7}");
    assert!(hostile.text.contains('\u{1b}'));
}

#[test]
fn no_colour_means_no_colour() {
    let mut driver = Driver::new(120, 30);
    driver.app.look = Look {
        color: false,
        ..Look::default()
    };
    driver.press("<Enter>");
    for keys in ["", "u", "<Esc>?", "<Esc>2", "3"] {
        driver.press(keys);
        assert_eq!(driver.colours(), Vec::new(), "{keys}");
    }
}

/// A terminal that shrinks is drawn to before its new size is heard of.
#[test]
fn a_frame_of_another_size_is_drawn_as_far_as_it_goes() {
    for keys in [
        "", "<Enter>", "2", "3", "?", "<Esc>u", "<Esc>/x", "<Esc>t", "<Esc>w",
    ] {
        let mut driver = Driver::new(200, 50);
        driver.press(keys);
        for size in [(20, 5), (1, 1), (80, 24), (199, 49), (0, 0), (300, 80)] {
            driver.drawn_at(size);
        }
    }
}

//! Everything that changes files, history or sessions.

use std::fs;

use super::Shop;
use super::screen::Screen;
use crate::kit::finish;
use crate::live::{Claude, write};
use crate::pty;

#[test]
fn undo_shows_its_plan_first_and_redo_brings_it_back() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("u", "Enter do it");
    screen.expect("notes.md");
    assert!(shop.read("notes.md").is_some(), "only planned");
    screen.press("<Esc>");
    screen.expect_gone("Enter do it");
    assert!(shop.read("notes.md").is_some(), "given up");
    screen.press_for("u", "Enter do it");
    screen.press_for("<Enter>", "Undid");
    assert_eq!(shop.read("notes.md"), None);
    screen.press_for("U", "Enter do it");
    screen.press_for("<Enter>", "Redid");
    assert_eq!(shop.read("notes.md").as_deref(), Some("# Notes\n"));
    screen.quit();
}

#[test]
fn undo_goes_back_step_by_step_and_says_when_nothing_is_left() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    for _ in 0..3 {
        screen.press_for("u", "Enter do it");
        screen.press_for("<Enter>", "Undid");
        // The footer is worked out anew after each step.
        screen.press("j");
        screen.expect_gone("Undid");
    }
    assert_eq!(shop.read("cart.rs"), None);
    assert_eq!(shop.read("keep.txt").as_deref(), Some("mine\n"));
    screen.expect("nothing to undo");
    screen.quit();
}

#[test]
fn a_conflict_shows_its_choices_and_keep_touches_nothing_of_yours() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let yours = shop
        .read("cart.rs")
        .unwrap()
        .replace("item_1 = 1;", "item_1 = 100;");
    write(&shop.cli().work(), "cart.rs", &yours);
    let mut screen = shop.ui();
    screen.press_for("2", "Timeline · ");
    // Back to before the second turn.
    screen.press_for("jj", "round the prices");
    screen.press_for("r", "choose");
    screen.expect("cart.rs");
    assert_eq!(shop.read("cart.rs").as_deref(), Some(yours.as_str()));
    screen.apply();
    assert_eq!(
        shop.read("cart.rs").as_deref(),
        Some(yours.as_str()),
        "kept"
    );
    screen.quit();
}

#[test]
fn a_conflict_merges_when_merge_is_chosen() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let yours = shop
        .read("cart.rs")
        .unwrap()
        .replace("item_15 = 15;", "item_15 = 1500;");
    write(&shop.cli().work(), "cart.rs", &yours);
    let mut screen = shop.ui();
    screen.press_for("<Enter>", "next prompt");
    // To the second prompt.
    screen.press("[");
    screen.expect("notes.md");
    screen.press_for("[", "round(3)");
    screen.press_for("r", "choose");
    screen.press_for("j", "→ ");
    screen.apply();
    let merged = shop.read("cart.rs").unwrap();
    assert!(merged.contains("item_15 = 1500;"), "yours stays: {merged}");
    assert!(!merged.contains("round("), "the agent's lines go: {merged}");
    screen.quit();
}

/// The panel of changes, which names the workspace, is hidden there.
#[test]
fn a_rewind_from_a_narrow_conversation_moves_the_files_too() {
    if !pty::is_there() {
        return;
    }
    for columns in [80, 120] {
        let shop = Shop::new();
        let mut screen = shop.narrow_ui(columns);
        screen.press_for("<Enter>", " record ");
        // To the second prompt.
        screen.press_for("[[w", "keep.txt");
        screen.press("<Esc>");
        screen.expect_gone("keep.txt");
        screen.press_for("r", "Enter do it");
        screen.expect("notes.md");
        screen.apply();
        assert_eq!(shop.read("notes.md"), None, "{columns}");
        let cart = shop.read("cart.rs").unwrap();
        assert!(!cart.contains("round("), "{columns}: {cart}");
        screen.quit();
    }
}

#[test]
fn a_session_of_another_workspace_is_forked_and_rewound_where_it_works() {
    if !pty::is_there() {
        return;
    }
    let mut claude = Claude::new();
    claude.turn("write a", "call-1", |work| write(work, "a.txt", "a\n"));
    claude.turn("write b", "call-2", |work| write(work, "b.txt", "b\n"));
    let parent = claude.cli.work().parent().unwrap().to_owned();
    let elsewhere = parent.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    write(&elsewhere, "other.txt", "other\n");
    let there = |args: &[&str]| {
        let mut command = claude.command(args);
        command.current_dir(&elsewhere);
        command
    };
    let made = finish(&mut there(&["checkpoint"]), b"");
    assert_eq!(made.code, 0, "{made:#?}");
    let mut screen = Screen::sized(&mut there(&["ui", "--all"]), 30, 120);
    screen.expect("write a");
    screen.press_for("f", "directory for the fork");
    screen.press_for("try<Enter>", "Enter do it");
    screen.apply();
    let forked = fs::read_to_string(parent.join("try/b.txt"));
    assert_eq!(forked.unwrap(), "b\n");
    screen.quit();

    let mut screen = Screen::sized(&mut there(&["ui", "--all"]), 30, 120);
    // The fork is a session of its own, below the one that it continues.
    screen.expect("write a");
    screen.press_for("<Enter>", " record ");
    screen.press_for("[r", "b.txt");
    screen.expect("Enter do it");
    screen.apply();
    assert_eq!(claude.read("b.txt"), None);
    assert_eq!(claude.read("a.txt").as_deref(), Some("a\n"));
    screen.quit();
}

#[test]
fn one_hunk_is_restored_and_the_others_stay() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("2", "Timeline · ");
    screen.press_for("j", "round(27)");
    screen.press_for("d", "Space mark");
    // The second hunk.
    screen.press_for("JR", "Enter do it");
    screen.apply();
    let cart = shop.read("cart.rs").unwrap();
    assert!(cart.contains("round(3)"), "{cart}");
    assert!(!cart.contains("round(27)"), "{cart}");
    screen.quit();
}

#[test]
fn a_file_is_restored_as_it_was_before_a_turn() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("2", "Timeline · ");
    screen.press_for("j", "round(27)");
    screen.press_for("<Enter>R", "Enter do it");
    screen.apply();
    assert!(!shop.read("cart.rs").unwrap().contains("round("));
    assert!(
        shop.read("notes.md").is_some(),
        "only the file that was named"
    );
    screen.quit();
}

#[test]
fn a_session_is_forked_into_a_directory() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("f", "directory for the fork");
    screen.press_for("try<Enter>", "Enter do it");
    let dir = shop.cli().work().parent().unwrap().join("try");
    assert!(!dir.exists(), "only planned");
    screen.apply();
    assert_eq!(
        fs::read_to_string(dir.join("notes.md")).unwrap(),
        "# Notes\n"
    );
    screen.quit();
}

#[test]
fn a_fork_into_a_directory_that_exists_is_refused() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let dir = shop.cli().work().parent().unwrap().join("try");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("mine"), "mine").unwrap();
    let mut screen = shop.ui();
    screen.press_for("f", "directory for the fork");
    screen.press_for("try<Enter>", "try");
    screen.press("<Enter><Enter>");
    screen.expect("Enter open");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    screen.quit();
}

#[test]
fn a_session_is_deleted_after_its_plan_and_comes_back() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let session = shop.claude.session.clone();
    let title = shop.title();
    let mut screen = shop.ui();
    screen.press_for("x", "Enter do it");
    screen.apply();
    screen.expect_gone(&title);
    let gone = shop.claude.run(&["show", &session, "--json"]);
    assert_ne!(gone.code, 0, "{gone:#?}");
    screen.press_for("X", "Enter do it");
    screen.apply();
    screen.expect(&title);
    let back = shop.claude.run(&["show", &session, "--json"]);
    assert_eq!(back.code, 0, "{back:#?}");
    screen.quit();
}

#[test]
fn title_tags_and_pin_are_set() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("t", "title");
    screen.press_for("<Ctrl-U>The shop<Enter>", "The shop");
    screen.press_for("#", "tags");
    screen.press_for("bug<Enter>", "#bug");
    screen.press_for("p", "★");
    screen.quit();
    let shown = shop
        .claude
        .run(&["show", &shop.claude.session, "--json"])
        .json();
    assert_eq!(shown["title"], "The shop", "{shown}");
    assert_eq!(shown["tags"][0], "bug", "{shown}");
    assert_eq!(shown["pinned"], true, "{shown}");
}

#[test]
fn a_session_is_exported_and_a_file_that_exists_is_not_replaced() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    let file = shop.cli().work().join("out.md");
    screen.press_for("e", "atif");
    screen.press("markdown");
    screen.expect_gone("atif");
    screen.press_for("<Enter>", "╭ file ");
    screen.press_for("<Ctrl-U>out.md<Enter>", "exported");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("round the prices"), "{text}");
    fs::write(&file, "mine").unwrap();
    screen.press_for("e", "atif");
    screen.press("markdown");
    screen.expect_gone("atif");
    screen.press_for("<Enter>", "╭ file ");
    screen.press("<Ctrl-U>out.md<Enter>");
    screen.expect("exist");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    screen.quit();
}

#[test]
fn a_plan_that_is_out_of_date_is_refused() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("u", "Enter do it");
    write(&shop.cli().work(), "notes.md", "changed meanwhile\n");
    screen.press_for("<Enter>", "Not done");
    assert_eq!(
        shop.read("notes.md").as_deref(),
        Some("changed meanwhile\n")
    );
    screen.quit();
}

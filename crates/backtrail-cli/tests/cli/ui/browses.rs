//! Finding and reading.

use super::Shop;
use super::screen::Screen;
use crate::kit::Cli;
use crate::live::write;
use crate::pty;

#[test]
fn the_sessions_here_come_first_and_all_are_one_key_away() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.expect("this workspace");
    assert!(!screen.shows("sort the shelf"));
    screen.press_for("aa", "sort the shelf");
    screen.press_for("G", "sort the shelf number 0");
    screen.quit();
}

#[test]
fn typing_filters_ten_thousand_sessions() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("aa", "sort the shelf");
    screen.press_for("Fnumber 7777", "1 of 1");
    screen.expect("sort the shelf number 7777");
    screen.press_for("<Enter>", "filter: number 7777");
    screen.press_for("<Esc>", "sort the shelf number 7776");
    screen.quit();
}

#[test]
fn enter_opens_a_conversation_and_q_goes_back_and_out() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.expect("add the notes");
    screen.press_for("<Enter>", "next prompt");
    screen.press_for("q", "filter");
    screen.press("q");
    assert_eq!(screen.end(), (0, true));
}

#[test]
fn a_match_in_any_session_is_shown_and_opened() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("/", "Search in everything");
    screen.press_for("<Tab>", "in this workspace");
    screen.press_for("<Tab><Tab>", "in everything");
    screen.press_for("\"shelf 4242\"", "shelf 4242 is sorted");
    screen.press_for("<Enter>", "sort the shelf number 4242");
    screen.press_for("n", "match");
    screen.quit();
}

#[test]
fn a_search_that_finds_nothing_and_one_that_is_wrong_leave_the_screen_usable() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("/zzzyqx", "nothing found");
    screen.press_for("<Ctrl-U>(((", "nothing inside the parentheses");
    screen.press_for("<Ctrl-U>zzzyqx AND", "nothing after the `and`");
    screen.press("<Esc>");
    screen.expect_gone("Search in");
    screen.press("/<Ctrl-U>cart");
    screen.expect("write the cart");
    screen.quit();
}

#[test]
fn prompts_are_one_key_apart() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("<Enter>", "next prompt");
    // From the end: the last turn's prompt, then the one before it.
    screen.press("[");
    screen.expect("notes.md");
    screen.press("[");
    screen.expect("cart.rs");
    screen.expect("round(3)");
    screen.quit();
}

#[test]
fn tools_are_hidden_short_or_full() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("<Enter>", "Bash");
    screen.press_for("z", "tool calls: full");
    screen.press_for("z", "tool calls: hidden");
    screen.expect_gone("Bash");
    screen.press_for("z", "Bash");
    screen.quit();
}

#[test]
fn the_timeline_shows_each_turn_and_compares_two_moments() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("2", "Timeline · ");
    screen.expect("round the prices");
    screen.expect("notes.md");
    screen.press_for("j", "round(3)");
    screen.press_for("km", "marked");
    screen.press("j");
    screen.expect("notes.md");
    screen.quit();
}

#[test]
fn files_are_shown_as_they_were_with_who_wrote_them() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("2", "Timeline · ");
    screen.press_for("w", "files as they were");
    screen.expect("keep.txt");
    screen.press_for("cart", "cart.rs");
    screen.expect_gone("keep.txt");
    screen.press_for("<Enter>", "let item_1 = 1;");
    screen.press_for("b", "Blame");
    screen.expect_gone("reading");
    screen.press_for("<Enter>", "next prompt");
    screen.quit();
}

#[test]
fn help_and_palette_name_what_is_possible_and_the_palette_does_it() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("?", "What is possible here");
    screen.expect("continue in an agent");
    screen.press("<Esc>");
    screen.expect_gone("What is possible here");
    screen.press_for(":costs<Enter>", "Costs by day");
    screen.quit();
}

#[test]
fn costs_group_and_lead_to_their_sessions() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    cli.talk();
    let mut screen = Screen::start(&mut cli.command(&["ui", "--all"]));
    screen.expect("a talk");
    screen.press_for("3", "$0.01");
    screen.press_for("]]]", "m-1");
    screen.press_for("<Enter>", "a talk");
    screen.expect("1 of 1");
    screen.quit();
}

#[test]
fn a_text_is_copied_through_the_terminal() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("y", "copied ");
    assert!(screen.wrote(b"\x1b]52;c;"));
    screen.quit();
}

/// 100,000 lines of output cost a line until they are asked for.
#[test]
fn a_huge_output_is_folded_and_opens_whole() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    record_output(&cli, 100_000, usize::MAX);
    let mut screen = Screen::start(&mut cli.command(&["ui"]));
    screen.expect("100,000 lines");
    screen.press_for("<Enter>", "next prompt");
    screen.press_for("[J", "seq");
    screen.press_for("o", "y copy");
    screen.press_for("G", "line 99999");
    screen.press("<Esc>");
    screen.expect_gone("line 99999");
    screen.quit();
}

/// Records a call whose output is folded: so many lines, one of which has a word of its own.
fn record_output(cli: &Cli, lines: usize, needle: usize) {
    let line = |n| match n == needle {
        true => format!("line {n} has the zebra\\n"),
        false => format!("line {n}\\n"),
    };
    let output: String = (0..lines).map(line).collect();
    let lines = format!(
        "{}\n{}\n{}\n",
        r#"{"role":"user","text":"print a lot"}"#,
        r#"{"type":"message","message":{"role":"assistant","blocks":[{"type":"tool_use","id":"t1","name":"bash","input":{"command":"seq"}}]}}"#,
        format_args!(
            r#"{{"type":"message","message":{{"role":"tool","blocks":[{{"type":"tool_result","tool_use_id":"t1","tool_name":"bash","output":"{output}","is_error":false}}]}}}}"#
        ),
    );
    let ran = cli.run_with(&["record"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_match_in_an_output_is_on_the_screen_when_it_is_opened() {
    if !pty::is_there() {
        return;
    }
    for columns in [80, 120] {
        let cli = Cli::new();
        record_output(&cli, 200, 150);
        let mut screen = Screen::sized(&mut cli.command(&["ui"]), 30, columns);
        screen.expect("print a lot");
        screen.press_for("/zebra", "Search in");
        screen.expect("has the zebra");
        screen.press("<Enter>");
        screen.expect_gone("Search in");
        screen.expect("line 151");
        assert!(
            screen.shows("line 150 has the zebra"),
            "{}",
            screen.contents()
        );
        screen.quit();
    }
}

#[test]
fn a_match_below_what_is_shown_of_an_output_says_how_to_see_it() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    record_output(&cli, 20_000, 15_000);
    let mut screen = Screen::sized(&mut cli.command(&["ui"]), 30, 120);
    screen.expect("print a lot");
    screen.press_for("/zebra", "has the zebra");
    screen.press_for("<Enter>", "o shows all of it");
    screen.press_for("o", "y copy");
    screen.press_for("G", "line 19999");
    screen.quit();
}

/// Own edits are not watched.
#[test]
fn the_timeline_shows_what_you_changed_each_time_it_is_opened() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("2", "Timeline · ");
    screen.press("1");
    screen.expect_gone("Timeline · ");
    write(&shop.cli().work(), "mine.txt", "mine\n");
    screen.press_for("2", "mine.txt");
    screen.quit();
}

/// Titles, messages and output that try to drive the terminal.
#[test]
fn hostile_text_reaches_the_terminal_without_its_escapes() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let hostile = "\\u001b]0;owned\\u0007\\u001b[2J\\u001b[?1049l\\u009b31mred\\u202e end";
    let line = format!("{{\"role\":\"user\",\"text\":\"look {hostile}\"}}\n");
    let ran = cli.run_with(&["record"], line.as_bytes());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let mut screen = Screen::start(&mut cli.command(&["ui"]));
    screen.expect("turn 1 ·");
    screen.press_for("<Enter>", "next prompt");
    screen.press_for("o", "y copy");
    screen.expect("end");
    assert!(screen.is_on_alternate_screen(), "the text left the screen");
    assert!(!screen.wrote(b"\x1b]0;owned"), "the text set the title");
    screen.press("<Esc>");
    screen.expect_gone("y copy");
    screen.press_for("/look", "Search in");
    screen.expect("end");
    screen.quit();
}

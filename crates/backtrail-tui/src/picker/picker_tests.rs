//! Pickers: by their state and frames, and in a real terminal.

use std::ffi::OsStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Size;
use rustix::process::Signal;

use super::*;
use crate::terminal_tests::{TestTerminal, this_program};
use backtrail_view::library::{Answer, Failure, Span, TimelineRow};

/// Three choices; the second has no preview. As a search it lists what is typed.
struct Fruit {
    is_search: bool,
}

impl Choices for Fruit {
    fn is_search(&self) -> bool {
        self.is_search
    }

    fn list(&self, typed: &str) -> Answer<Vec<Choice>> {
        let names = ["apple pie", "banana", "cherry"];
        let names: Vec<&str> = match self.is_search {
            true => typed.split_whitespace().collect(),
            false => names.to_vec(),
        };
        let choices = names.into_iter().enumerate().map(|(n, name)| Choice {
            id: format!("id of {name}"),
            columns: vec![n.to_string(), format!("{name}\x1b[31m")],
            beside: Vec::new(),
            searched: name.to_owned(),
        });
        Ok(choices.collect())
    }

    fn preview(&self, id: &str, width: u16, _: Look) -> Answer<Preview> {
        match id {
            "id of banana" => Err(Failure::new("it is eaten")),
            "id of cherry" => panic!("it has a stone"),
            id => Ok(Preview {
                lines: vec![vec![Span::plain(format!("preview of {id}, {width} wide"))]],
                shows_end: false,
            }),
        }
    }
}

/// A state without a terminal, whose questions are answered at once.
struct Rig {
    state: PickerState,
    fruit: Fruit,
}

fn rig(is_search: bool, width: u16, height: u16) -> Rig {
    let size = Size::new(width, height);
    let mut rig = Rig {
        state: PickerState::new("fruit:", Look::default(), is_search, size),
        fruit: Fruit { is_search },
    };
    rig.settle();
    rig
}

impl Rig {
    fn settle(&mut self) {
        loop {
            let questions = self.state.questions();
            if questions.is_empty() {
                return;
            }
            for question in questions {
                self.state.take(question.answer(&self.fruit));
            }
        }
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Outcome {
        let outcome = self
            .state
            .update(Event::Key(KeyEvent::new(code, modifiers)));
        self.settle();
        outcome
    }

    fn type_keys(&mut self, keys: &str) {
        for c in keys.chars() {
            self.press(KeyCode::Char(c), KeyModifiers::NONE);
        }
    }

    fn frame(&self, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| draw::draw(&self.state, frame))
            .unwrap();
        if width == 0 {
            return String::new();
        }
        let text = terminal.backend().to_string();
        let lines = text.lines().map(|line| line.trim_matches('"').trim_end());
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn the_preview_is_below_where_it_is_narrow() {
    let expected = "\
fruit:                               3/3
▌ 0  apple pie�[31m
  1  banana�[31m
  2  cherry�[31m
────────────────────────────────────────
preview of id of apple pie, 40 wide

";
    assert_eq!(
        rig(false, 40, 8).frame(40, 8),
        expected.trim_end_matches(' ')
    );
}

#[test]
fn the_preview_is_beside_where_it_is_wide() {
    let frame = rig(false, 100, 6).frame(100, 6);
    let second = frame.lines().nth(1).unwrap();
    assert!(second.starts_with("▌ 0  apple pie"), "{frame}");
    assert!(
        second.ends_with("│ preview of id of apple pie, 48 wide"),
        "{frame}"
    );
}

/// Rows of a timeline, as `rewind` and `restore` offer them.
struct Moments;

impl Choices for Moments {
    fn list(&self, _: &str) -> Answer<Vec<Choice>> {
        let row = |about: &str| TimelineRow {
            id: about.to_owned(),
            day: "Thu 19 Nov".to_owned(),
            at: "14:32".to_owned(),
            kind: "turn 12".to_owned(),
            style: anstyle::Style::new(),
            about: about.to_owned(),
            change: "+48 -12  4 files".to_owned(),
            short: "kkkl".to_owned(),
            session: None,
            step: None,
        };
        let rows = [
            "add the notes",
            "round the prices half even, but not those of the cart",
        ];
        Ok(rows.map(row).into_iter().map(choices::of_point).collect())
    }

    fn preview(&self, _: &str, _: u16, _: Look) -> Answer<Preview> {
        Ok(Preview::default())
    }
}

#[test]
fn the_prompt_of_a_point_is_seen_before_its_day_and_its_counts() {
    for (width, expected) in [
        (
            80,
            ["round the prices half even, but …", "Thu 19 Nov 14:32"],
        ),
        (100, ["round the prices half even, but", "turn 12"]),
        (
            200,
            [
                "not those of the cart  Thu 19 Nov 14:32",
                "+48 -12  4 files",
            ],
        ),
    ] {
        let mut state = PickerState::new("rewind:", Look::default(), false, Size::new(width, 10));
        for _ in 0..2 {
            for question in state.questions() {
                state.take(question.answer(&Moments));
            }
        }
        let mut terminal = Terminal::new(TestBackend::new(width, 10)).unwrap();
        terminal.draw(|frame| draw::draw(&state, frame)).unwrap();
        let frame = terminal.backend().to_string();
        for text in expected {
            assert!(frame.contains(text), "{width}: no {text} in\n{frame}");
        }
    }
}

#[test]
fn every_size_can_be_drawn() {
    for width in [0, 1, 2, 10, 99, 100, 250] {
        for height in [0, 1, 2, 7, 8, 20] {
            rig(false, width, height).frame(width, height);
        }
    }
}

#[test]
fn typing_filters_and_enter_chooses_the_best() {
    let mut rig = rig(false, 80, 8);
    rig.type_keys("chrry");
    assert_eq!(rig.state.listed().len(), 1);
    assert_eq!(
        rig.press(KeyCode::Enter, KeyModifiers::NONE),
        Outcome::Chosen
    );
    assert_eq!(rig.state.chosen().as_deref(), Some("id of cherry"));
    rig.type_keys("zzz");
    assert_eq!(
        rig.press(KeyCode::Enter, KeyModifiers::NONE),
        Outcome::Continues
    );
    assert!(rig.frame(80, 8).contains("no matches"));
    rig.press(KeyCode::Char('u'), KeyModifiers::CONTROL);
    assert_eq!(rig.state.listed().len(), 3);
    rig.press(KeyCode::Down, KeyModifiers::NONE);
    assert_eq!(rig.state.chosen().as_deref(), Some("id of banana"));
}

#[test]
fn escape_and_control_c_cancel() {
    let mut rig = rig(false, 80, 8);
    assert_eq!(
        rig.press(KeyCode::Esc, KeyModifiers::NONE),
        Outcome::Cancelled
    );
    assert_eq!(
        rig.press(KeyCode::Char('c'), KeyModifiers::CONTROL),
        Outcome::Cancelled
    );
    assert_eq!(
        rig.press(KeyCode::Char('c'), KeyModifiers::NONE),
        Outcome::Continues
    );
}

#[test]
fn a_preview_that_fails_says_so_and_a_panic_ends_nothing() {
    let mut rig = rig(false, 80, 8);
    rig.press(KeyCode::Down, KeyModifiers::NONE);
    assert!(rig.frame(80, 8).contains("it is eaten"));
    rig.press(KeyCode::Down, KeyModifiers::NONE);
    assert!(rig.frame(80, 8).contains("internal error"));
}

#[test]
fn an_answer_to_older_words_is_not_shown() {
    let mut rig = rig(true, 80, 8);
    rig.type_keys("plum");
    rig.state.update(Event::Paste("s\nlost".to_owned()));
    let newest = rig.state.questions();
    assert_eq!(newest, [Question::List("plums".to_owned())]);
    rig.state
        .take(Question::List("old".to_owned()).answer(&rig.fruit));
    assert!(!rig.frame(80, 8).contains("old"));
    rig.state.take(newest[0].clone().answer(&rig.fruit));
    assert!(rig.frame(80, 8).contains("plums"));
}

#[test]
fn control_w_removes_a_word() {
    let mut rig = rig(true, 80, 8);
    rig.type_keys("two words ");
    rig.press(KeyCode::Char('w'), KeyModifiers::CONTROL);
    assert_eq!(rig.state.typed, "two ");
    rig.press(KeyCode::Char('w'), KeyModifiers::CONTROL);
    assert_eq!(rig.state.typed, "");
}

#[test]
#[ignore = "run by the other tests, in a terminal"]
fn the_program_in_the_terminal() {
    let fruit = Arc::new(Fruit { is_search: false });
    let picked = pick("fruit:", fruit, Some(Look::default())).unwrap();
    println!("picked {picked:?}");
}

/// Starts a picker below a line of a shell.
fn start() -> TestTerminal {
    let arguments = this_program("picker::tests::the_program_in_the_terminal");
    let shell = ["sh", "-c", "echo before; exec \"$@\"", "sh"].map(str::to_owned);
    let command: Vec<&OsStr> = shell.iter().chain(&arguments).map(OsStr::new).collect();
    let mut terminal = TestTerminal::start(&command, &[]);
    terminal.wait_for("preview of id of apple pie");
    terminal
}

#[test]
fn a_picker_is_drawn_below_what_was_there_and_gone_when_something_is_chosen() {
    let mut terminal = start();
    assert!(terminal.contents().starts_with("before\n"));
    terminal.type_keys("ban\r");
    terminal.wait_for("picked Some(\"id of banana\")");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_restored());
    assert!(terminal.contents().starts_with("before\n"));
    assert!(
        !terminal.contents().contains("fruit:"),
        "{}",
        terminal.contents()
    );
}

#[test]
fn escape_picks_nothing() {
    let mut terminal = start();
    terminal.type_keys("\x1b");
    terminal.wait_for("picked None");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_restored());
}

#[test]
fn a_signal_restores_the_terminal_of_a_picker() {
    let mut terminal = start();
    terminal.send(Signal::TERM);
    assert_eq!(terminal.end(), 143);
    assert!(terminal.is_restored());
    assert!(
        !terminal.contents().contains("fruit:"),
        "{}",
        terminal.contents()
    );
}

#[test]
fn another_size_moves_the_picker_and_keeps_what_was_typed() {
    let mut terminal = start();
    terminal.type_keys("pie");
    terminal.wait_for("fruit: pie");
    terminal.resize(10, 120);
    terminal.wait_for("58 wide");
    terminal.type_keys("\r");
    assert_eq!(terminal.end(), 0);
}

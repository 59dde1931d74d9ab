//! Undo from a page: it asks about your edits, is done as a whole or not at all, and can be
//! reversed (F15, F37).

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::Pages;
use crate::find::ok;
use crate::kit::Cli;

/// How many files the run writes.
const FILES: usize = 400;
/// How many times an undo is killed after it began to move files.
const KILLS: usize = 8;

/// A workspace in which a run wrote many files, and changed one that you changed since.
struct Lab {
    cli: Cli,
}

impl Lab {
    fn new() -> Self {
        let lab = Self { cli: Cli::new() };
        let base: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        lab.write("shared.txt", &base);
        let script = format!(
            "mkdir many; for n in $(seq {FILES}); do echo $n > many/$n; done; \
             echo of the run >> shared.txt"
        );
        ok(lab.cli.run(&["run", "--", "sh", "-c", &script]));
        let after = lab.read("shared.txt");
        lab.write("shared.txt", &format!("yours\n{after}"));
        lab
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.cli.work().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.cli.work().join(name)).unwrap()
    }

    /// Returns how many files of the run are there, and the one that both changed.
    fn state(&self) -> (usize, String) {
        let many = fs::read_dir(self.cli.work().join("many"));
        (many.map_or(0, Iterator::count), self.read("shared.txt"))
    }

    /// Returns the states before and after an undo that merges.
    fn states(&self) -> [(usize, String); 2] {
        let before = self.state();
        let merged = before.1.replace("of the run\n", "");
        assert_ne!(before.1, merged);
        [before, (0, merged)]
    }

    fn pages(&self) -> Pages {
        Pages::start(&self.cli, &["--write"])
    }
}

/// Plans an action; returns the plan.
fn plan(pages: &Pages, action: &Value) -> Value {
    let body = json!({"action": action}).to_string();
    pages.post("/api/plan", &body).json()
}

/// Returns the order that does a plan.
fn order(plan: &Value, on_conflict: &str) -> String {
    json!({"token": plan["token"], "on_conflict": on_conflict}).to_string()
}

#[test]
fn f15_an_undo_asks_about_your_edits_and_the_answer_reverses_it() {
    let lab = Lab::new();
    let [before, undone] = lab.states();
    let pages = lab.pages();
    let undo = plan(&pages, &json!({"do": "undo"}));
    assert_eq!(undo["possible"], true, "{undo}");
    let choices = undo["choices"].as_array().unwrap().iter();
    let choices: Vec<&str> = choices
        .map(|it| it["on_conflict"].as_str().unwrap())
        .collect();
    assert_eq!(choices, ["keep", "merge", "overwrite"], "{undo}");
    assert_eq!(lab.state(), before, "only planned");
    let stopped = pages.post("/api/apply", &order(&undo, "stop"));
    assert_eq!(stopped.status, 422, "{stopped:?}");
    assert_eq!(lab.state(), before, "nothing was chosen");
    let done = pages.post("/api/apply", &order(&undo, "merge")).json();
    assert_eq!(lab.state(), undone, "{done}");
    let again = pages.post("/api/apply", &order(&undo, "merge"));
    assert_eq!(again.status, 422, "a plan is done once: {again:?}");
    // The button that reverses it.
    let redo = plan(&pages, &done["reverse"]);
    pages.post("/api/apply", &order(&redo, "stop")).json();
    assert_eq!(lab.state(), before);
    assert_eq!(pages.end(Signal::TERM), 0);
}

/// Killed at any moment of an undo with a conflict, the next command finishes it or nothing
/// happened, and no edit of yours is lost.
#[test]
fn f15_f37_killed_in_an_undo_with_a_conflict_the_next_command_makes_it_exact() {
    let lab = Lab::new();
    let states = lab.states();
    for n in 0..=KILLS {
        if lab.state() == states[1] {
            ok(lab.cli.run(&["redo"]));
        }
        assert_eq!(lab.state(), states[0], "kill {n}");
        kill_at(&lab, FILES - FILES * n / KILLS);
        ok(lab.cli.run(&["status"]));
        let found = lab.state();
        assert!(
            states.contains(&found),
            "half done after kill {n}: {found:?}"
        );
        let left = lab.cli.run(&["verify", "--quick"]);
        assert_eq!(left.code, 0, "kill {n}: {left:#?}");
    }
}

/// Begins an undo, and kills the program as soon as no more than so many files are left.
fn kill_at(lab: &Lab, files: usize) {
    let mut pages = lab.pages();
    let undo = plan(&pages, &json!({"do": "undo"}));
    let answer = pages.send_order("/api/apply", &order(&undo, "merge"));
    let many = lab.cli.work().join("many");
    let left = || fs::read_dir(&many).map_or(0, Iterator::count);
    super::wait_until("files move", || left() <= files);
    pages.signal(Signal::KILL);
    assert_eq!(pages.wait(), -1);
    drop(answer);
}

#[test]
fn a_signal_waits_for_an_undo_that_began() {
    let lab = Lab::new();
    let [before, undone] = lab.states();
    let mut pages = lab.pages();
    let undo = plan(&pages, &json!({"do": "undo"}));
    let many = lab.cli.work().join("many");
    let _answer = pages.send_order("/api/apply", &order(&undo, "merge"));
    let count = || fs::read_dir(&many).map_or(0, Iterator::count);
    super::wait_until("files move", || count() < FILES);
    pages.signal(Signal::TERM);
    assert_eq!(pages.wait(), 0);
    assert_eq!(lab.state(), undone);
    ok(lab.cli.run(&["redo"]));
    assert_eq!(lab.state(), before);
}

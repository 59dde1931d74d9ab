//! `kill -9` at any moment: what was acknowledged is there, and nothing is
//! merged (F1, F3).

use std::io::Write;

use crate::kit::{Cli, Dice, Recording, line, texts};

const ROUNDS: u64 = 300;

/// Kills a `record` at a random moment, again and again, in one session. Each
/// round opens the session after the last kill, so recovery is tried as often.
#[test]
fn f1_f3_kill_9_at_random_moments_loses_nothing_acknowledged_and_merges_nothing() {
    let cli = Cli::new();
    let session = cli.new_session("first");
    std::fs::write(cli.store().join("config.toml"), "rotation = \"16 KiB\"").unwrap();
    let mut dice = Dice(1);
    let mut acknowledged = vec!["first".to_owned()];
    let mut unanswered = 0;
    for round in 0..ROUNDS {
        let mode = ["record", "batch", "os"][dice.below(3) as usize];
        let command = cli.command(&["record", "--session", &session, "--durability", mode]);
        let mut recording = Recording::start(command);
        let mut stdin = recording.stdin.take().unwrap();
        let padding = "x".repeat(dice.below(3000) as usize);
        let said = move |n: u64| format!("round {round} message {n} {padding}");
        let speaker = {
            let said = said.clone();
            // Runs ahead of the answers until the program is gone.
            std::thread::spawn(move || {
                (0..)
                    .take_while(|n| stdin.write_all(line(&said(*n)).as_bytes()).is_ok())
                    .count()
            })
        };
        let answers = dice.below(40);
        for n in 0..answers {
            let answer = recording
                .answer()
                .expect("the program answers until it is killed");
            assert_eq!(answer["ok"], true, "{answer}");
            acknowledged.push(said(n));
        }
        for _ in 0..dice.below(200_000) {
            std::hint::spin_loop();
        }
        recording.child.kill().unwrap();
        // What it still managed to say counts as well.
        let mut n = answers;
        while let Some(answer) = recording.answer() {
            assert_eq!(answer["ok"], true, "{answer}");
            acknowledged.push(said(n));
            n += 1;
        }
        recording.child.wait().unwrap();
        let sent = speaker.join().unwrap() as u64;
        unanswered += sent.saturating_sub(n);
        if round % 25 == 24 || round + 1 == ROUNDS {
            acknowledged = check(&cli, &session, acknowledged);
        }
    }
    assert!(
        unanswered > ROUNDS / 4,
        "the kills came too late to prove anything"
    );
    let report = cli.run(&["verify", "--json"]).json();
    assert_eq!(report["damaged"], serde_json::json!([]), "{report}");
}

/// Checks that everything acknowledged is there in order, with nothing beside
/// it but whole messages that were said and not acknowledged.
fn check(cli: &Cli, session: &str, acknowledged: Vec<String>) -> Vec<String> {
    let ran = cli.run(&["show", session, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = texts(&ran.json());
    assert_eq!(ran.json()["damaged"], 0);
    let mut rest = shown.iter();
    for text in &acknowledged {
        assert!(
            rest.any(|shown| shown == text),
            "acknowledged and lost: {}",
            &text[..40.min(text.len())]
        );
    }
    for text in &shown {
        let whole = text == "first"
            || text
                .trim_end_matches('x')
                .strip_prefix("round ")
                .and_then(|rest| rest.trim_end().split_once(" message "))
                .is_some_and(|(round, n)| round.parse::<u64>().is_ok() && n.parse::<u64>().is_ok());
        assert!(whole, "never said like this: {text}");
    }
    shown
}

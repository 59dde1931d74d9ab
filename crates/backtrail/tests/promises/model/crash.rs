//! The machine stops, or the disk fails, at every file operation of each move: afterwards
//! the session is as before or as after it, including its steps, and continues (B2, F5,
//! F6, F22).

use backtrail::Durability;
use backtrail_testkit::{Count, Fault, Loss, When};

use super::chance::Trouble;
use super::state::{Change, Deed, Talk};
use super::world::World;
use crate::kit::{Checked, End};

/// The initial state, and the move that is then made, one word per step.
///
/// `<N` rewinds to record N, `*N` compacts and keeps N messages, `fork@N` forks and
/// continues in the fork, `call` calls a tool, `spawn` starts a session by that call; any
/// other word but `undo`, `redo` and `note` is a message.
const MOVES: [(&str, &str); 19] = [
    ("a b c", "fork@3"),
    ("a b c", "fork@2"),
    ("a b c", "fork@0"),
    ("a b *1 c <2 undo", "fork@4"),
    ("a b c", "<2"),
    ("a b c", "<0"),
    ("a b c <2 undo", "<1"),
    ("a b c fork@2 d", "<1"),
    ("a b c <2 d", "undo"),
    ("a b c <0", "undo"),
    ("a b *1 c note", "undo"),
    ("a b c <2 <1 undo", "undo"),
    ("a b fork@1 c <1 d", "undo"),
    ("a b c <2 d undo", "redo"),
    ("a b *1 c undo note", "redo"),
    ("a b c", "*1"),
    ("a b *1 c call", "*0"),
    ("a b c <2 undo", "*1"),
    ("a call b", "spawn"),
];

fn deed(word: &str) -> Deed {
    let number = |text: &str| text.parse().expect("a number");
    let say = |role: &str, calls: &[&str]| Deed::Say {
        talk: Talk {
            role: role.to_owned(),
            speaks: true,
            calls: calls.iter().map(ToString::to_string).collect(),
            results: Vec::new(),
        },
        word: word.to_owned(),
        expect: None,
    };
    match word {
        "undo" => Deed::Undo,
        "redo" => Deed::Redo,
        "note" => Deed::Note(Change::Title("noted".to_owned())),
        "call" => say("assistant", &["t1"]),
        "spawn" => Deed::Spawn("t1".to_owned()),
        _ => match (word.split_at(1), word.strip_prefix("fork@")) {
            (_, Some(seq)) => Deed::Fork {
                at: Some(number(seq)),
                name: None,
            },
            (("<", seq), _) => Deed::Rewind(number(seq)),
            (("*", keep), _) => Deed::Compact {
                keep: number(keep),
                summary: "sum".to_owned(),
            },
            _ => say("user", &[]),
        },
    }
}

/// Performs the words and returns the resulting session.
fn play(world: &mut World, mut n: usize, words: &str) -> Checked<usize> {
    for word in words.split_whitespace() {
        world.act(n, &deed(word), None, false)?;
        if word.starts_with("fork") {
            n = world.sessions.len() - 1;
        }
    }
    Ok(n)
}

/// A move and its initial state.
struct Case {
    base: World,
    session: usize,
    rotation: u64,
    deed: Deed,
}

/// Makes every move with each fault at every operation in turn.
fn at_every_operation(durability: Durability, faults: &[(Fault, Count)]) {
    for (words, word) in MOVES {
        for rotation in [u64::MAX, 1] {
            let mut base = World::new(1, durability, true)
                .and_then(|world| world.copy(rotation))
                .expect("an empty disk");
            let start = base.begin().and_then(|n| play(&mut base, n, words));
            let case = Case {
                base,
                session: start.expect("nothing goes wrong yet"),
                rotation,
                deed: deed(word),
            };
            for (fault, count) in faults {
                if let Err(wrong) = case.make_with(*fault, *count) {
                    panic!("{words} | {word}, rotation at {rotation}: {wrong}");
                }
            }
        }
    }
}

impl Case {
    /// Makes the move with the fault at every operation in turn.
    fn make_with(&self, fault: Fault, count: Count) -> Checked {
        let trouble = |n, end| Trouble {
            n,
            fault,
            count,
            space: None,
            end,
        };
        // A rehearsal shows which operations there are.
        let log = self.make(trouble(u64::MAX, End::Kill))?.log;
        let mut outcomes = [0, 0];
        for (n, operation) in log.iter().enumerate() {
            let ends = match fault {
                Fault::Crash { .. } => &ends(n as u64)[..],
                // At other operations it is a crash before them.
                Fault::Tear { .. } if operation.starts_with("append") => &ends(n as u64),
                Fault::Tear { .. } => continue,
                _ => &[End::Kill],
            };
            for end in ends {
                let trouble = trouble(n as u64, *end);
                let told = |wrong| format!("{trouble:?} at {operation}: {wrong}");
                let mut world = self.make(trouble).map_err(told)?;
                outcomes[usize::from(self.is_made(&world))] += 1;
                go_on(&mut world, self.session).map_err(told)?;
            }
        }
        // Both outcomes must have occurred.
        match (fault, outcomes) {
            (Fault::Crash { .. }, [0, _] | [_, 0]) => Err(format!("{fault:?}: {outcomes:?}")),
            _ => Ok(()),
        }
    }

    fn make(&self, trouble: Trouble) -> Checked<World> {
        let mut world = self.base.copy(self.rotation)?;
        world.open(self.session)?;
        world.act(self.session, &self.deed, Some(trouble), false)?;
        if (world.hit > 0) == (trouble.n == u64::MAX) {
            return Err("the operations are others than in the rehearsal".to_owned());
        }
        Ok(world)
    }

    fn is_made(&self, world: &World) -> bool {
        let before = &self.base.sessions[self.session].model;
        let after = &world.sessions[self.session].model;
        world.sessions.len() > self.base.sessions.len()
            || (before.line.len(), before.undo.len()) != (after.line.len(), after.undo.len())
    }
}

/// Continues in the session as if nothing had happened.
fn go_on(world: &mut World, session: usize) -> Checked {
    if !world.is_spoiled(session) {
        play(world, session, "x <1 undo redo")?;
        let newest = world.sessions.len() - 1;
        play(world, newest, "y undo")?;
    }
    world.finish()
}

/// Some ways in which the machine may stop, different for each `n`.
fn ends(n: u64) -> [End; 3] {
    let keep_bytes = [0, 1, 17, 300][(n % 4) as usize];
    let some = match n % 3 {
        0 => Loss::Nothing,
        1 => Loss::Tail { keep_bytes },
        _ => Loss::Shuffled { seed: n },
    };
    [End::Kill, End::Power(Loss::Unsynced), End::Power(some)]
}

const STOPS: [(Fault, Count); 4] = [
    (Fault::Crash { when: When::Before }, Count::Writes),
    (Fault::Crash { when: When::After }, Count::Writes),
    (
        Fault::Tear {
            numerator: 1,
            denominator: 2,
        },
        Count::Writes,
    ),
    // All but the last byte, as long as that is not more than 2^32.
    (
        Fault::Tear {
            numerator: u32::MAX - 1,
            denominator: u32::MAX,
        },
        Count::Writes,
    ),
];

const ERRORS: [(Fault, Count); 2] = [
    (Fault::Error(5), Count::All),
    (Fault::ErrorFrom(28), Count::Writes),
];

#[test]
fn f5_f6_a_crash_anywhere_in_a_move_leaves_it_done_or_not_begun() {
    at_every_operation(Durability::Record, &STOPS);
}

#[test]
fn f22_an_error_anywhere_in_a_move_leaves_it_done_or_not_begun() {
    at_every_operation(Durability::Batch, &ERRORS);
}

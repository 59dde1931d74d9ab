//! Repeatable randomness: what is done next, and which faults occur.

use backtrail::Randomness;
use backtrail_testkit::{Count, Fault, Loss, SeededRandomness, When};

use super::state::{Change, Deed, Model, Talk, What};
use crate::kit::End;

#[derive(Debug)]
pub(crate) struct Dice(SeededRandomness);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededRandomness::new(seed))
    }

    pub(crate) fn roll(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes).expect("it never ends");
        u64::from_le_bytes(bytes)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit
    }

    pub(crate) fn pick<T: Clone, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.below(N as u64) as usize].clone()
    }

    /// Returns true once in `n` times on average.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// One operation. Its details follow from the seed and the current state, so that a list
/// of them can be repeated with some skipped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op {
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    Say,
    Batch,
    Note,
    Rewind,
    Undo,
    Redo,
    Compact,
    Fork,
    Spawn,
    Begin,
    Close,
    Stop,
}

/// How often each operation occurs.
const WEIGHTS: [(Plan, u64); 12] = [
    (Plan::Say, 60),
    (Plan::Batch, 14),
    (Plan::Note, 14),
    (Plan::Rewind, 22),
    (Plan::Undo, 32),
    (Plan::Redo, 24),
    (Plan::Compact, 16),
    (Plan::Fork, 4),
    (Plan::Spawn, 2),
    (Plan::Begin, 1),
    (Plan::Close, 6),
    (Plan::Stop, 2),
];

/// Returns the operations of a seed.
pub(crate) fn ops(seed: u64, count: usize) -> Vec<Op> {
    let mut dice = Dice::new(seed);
    let total = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    (0..count)
        .map(|_| {
            let mut roll = dice.below(total);
            let chosen = WEIGHTS.iter().find(|(_, weight)| {
                let hit = roll < *weight;
                roll = roll.saturating_sub(*weight);
                hit
            });
            Op {
                plan: chosen.expect("the roll is below the total").0,
                seed: dice.roll(),
            }
        })
        .collect()
}

impl Plan {
    /// Chooses the details of an operation in a session.
    pub(crate) fn deed(self, model: &Model, word: &str, dice: &mut Dice) -> Option<Deed> {
        Some(match self {
            Self::Say => Deed::Say {
                talk: talk(dice),
                word: word.to_owned(),
                expect: dice
                    .once_in(8)
                    .then(|| dice.below(2) + model.last().saturating_sub(dice.below(4))),
            },
            Self::Batch => Deed::Batch(
                (0..1 + dice.below(4))
                    .map(|n| (talk(dice), format!("{word}.{n}")))
                    .collect(),
            ),
            Self::Note => Deed::Note(match dice.below(4) {
                0 => Change::Tags(vec![word.to_owned()]),
                1 => Change::Pinned(dice.once_in(2)),
                2 => Change::Title(String::new()),
                _ => Change::Title(word.to_owned()),
            }),
            Self::Rewind => Deed::Rewind(target(model, dice)),
            Self::Undo => Deed::Undo,
            Self::Redo => Deed::Redo,
            Self::Compact => Deed::Compact {
                keep: dice.pick([0, 0, 1, 2, 3, 5, 1_000]),
                summary: word.to_owned(),
            },
            Self::Fork => Deed::Fork {
                at: dice.once_in(2).then(|| target(model, dice)),
                name: dice.pick([None, Some(" "), Some(" b ")]).map(str::to_owned),
            },
            Self::Spawn => Deed::Spawn(call_of(model, dice)),
            Self::Begin | Self::Close | Self::Stop => return None,
        })
    }
}

/// Returns a record to go to: usually a late one, sometimes one that does not exist.
fn target(model: &Model, dice: &mut Dice) -> u64 {
    let last = model.last();
    match dice.below(10) {
        0 => 0,
        1 => last + dice.below(2),
        2..5 => dice.below(last + 1),
        _ => last.saturating_sub(1 + dice.below(4)),
    }
}

/// Returns the id of a call on the line, if there is one.
fn call_of(model: &Model, dice: &mut Dice) -> String {
    let calls: Vec<&String> = model
        .line
        .iter()
        .filter_map(|entry| match &entry.what {
            What::Message(talk) => talk.calls.first(),
            _ => None,
        })
        .collect();
    match calls.len() as u64 {
        0 => "t-none".to_owned(),
        n => calls[dice.below(n) as usize].clone(),
    }
}

/// Creates a message: text, calls and results with few ids, so that some calls have no
/// result, some results no call, and some ids are reused.
fn talk(dice: &mut Dice) -> Talk {
    let mut ids = |most: u64| -> Vec<String> {
        let count = dice.below(most + 1);
        (0..count).map(|_| format!("t{}", dice.below(5))).collect()
    };
    let (calls, results) = (ids(2), ids(2));
    let (role, speaks, calls, results) = match dice.below(12) {
        0 => ("system", true, vec![], vec![]),
        1..4 => ("assistant", dice.once_in(2), calls, vec![]),
        4..7 => ("tool", dice.once_in(6), vec![], results),
        7 => ("assistant", dice.once_in(2), calls, results),
        8 => ("assistant", true, vec![], vec![]),
        _ => ("user", true, vec![], vec![]),
    };
    Talk {
        role: role.to_owned(),
        speaks: speaks || (calls.is_empty() && results.is_empty()),
        calls,
        results,
    }
}

/// A fault during a deed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    /// The file operation at which it occurs.
    pub(crate) n: u64,
    pub(crate) fault: Fault,
    pub(crate) count: Count,
    /// How many more bytes fit, if the disk is full.
    pub(crate) space: Option<u64>,
    /// What happens if the machine stops.
    pub(crate) end: End,
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

pub(crate) fn trouble(dice: &mut Dice) -> Trouble {
    let third = 1 + dice.below(2) as u32;
    let fault = dice.pick([
        Fault::Error(EIO),
        Fault::Error(ENOSPC),
        Fault::ErrorFrom(ENOSPC),
        Fault::Crash { when: When::Before },
        Fault::Crash { when: When::After },
        Fault::Tear {
            numerator: third,
            denominator: 3,
        },
    ]);
    let full = dice.once_in(6);
    let (count, most) = dice.pick([(Count::Writes, 5), (Count::Writes, 16), (Count::All, 40)]);
    Trouble {
        n: if full { u64::MAX } else { dice.below(most) },
        fault,
        count,
        space: full.then(|| dice.below(700)),
        end: end(dice),
    }
}

/// Returns how a process or the machine ends.
pub(crate) fn end(dice: &mut Dice) -> End {
    let keep_bytes = dice.below(600) as usize;
    let seed = dice.roll();
    dice.pick([
        End::Kill,
        End::Kill,
        End::Power(Loss::Nothing),
        End::Power(Loss::Unsynced),
        End::Power(Loss::Unsynced),
        End::Power(Loss::Tail { keep_bytes }),
        End::Power(Loss::Shuffled { seed }),
    ])
}

//! Random lives compared with a plain model: appends, notes, torn lines, kills and power
//! cuts in any order, and the diary says what may be read (F1, F3, F5, F22).
//!
//! The model is the writer's diary: a list of texts, each with the number it was
//! acknowledged with. A failing life is identified by its seed.

use backtrail::{Durability, Randomness};
use backtrail_testkit::{Fault, Loss, SeededRandomness, When};

use crate::kit::{Checked, DiaryWriter, End, Flaws, Kept, check_record_by_record, check_store};

const LIVES: u64 = 300;
const STEPS: usize = 20;

#[test]
fn f1_f3_f5_f22_random_lives_lose_nothing_acknowledged_by_record_commit() {
    live_all(Durability::Record, 0);
}

#[test]
fn f1_f3_f5_f22_random_lives_lose_nothing_acknowledged_by_group_commit() {
    live_all(Durability::Batch, 1_000_000);
}

#[test]
fn f1_f3_f5_f22_random_lives_left_to_the_os_show_nothing_that_was_not_said() {
    live_all(Durability::Os, 2_000_000);
}

fn live_all(durability: Durability, first_seed: u64) {
    let mut cuts = 0;
    for seed in first_seed..first_seed + LIVES / 3 {
        let mut life = Life::new(seed, durability);
        if let Err(wrong) = life.live() {
            let steps = life.steps.join("\n  ");
            panic!("seed {seed}, {durability:?}: {wrong}\n  {steps}");
        }
        cuts += life.cuts;
    }
    assert!(cuts > LIVES / 3, "only {cuts} lives were cut off");
}

struct Life {
    writer: DiaryWriter,
    durability: Durability,
    dice: Dice,
    /// Whether unsynced pages were lost and not repaired.
    shuffled: bool,
    cuts: u64,
    /// What happened, to be shown by a failing test.
    steps: Vec<String>,
}

impl Life {
    fn new(seed: u64, durability: Durability) -> Self {
        let mut dice = Dice(SeededRandomness::new(seed));
        let rotation = dice.pick([1, 300, 800, 2_000, 100_000]);
        Self {
            writer: DiaryWriter::new(durability).rotating_at(rotation),
            durability,
            dice,
            shuffled: false,
            cuts: 0,
            steps: vec![format!("rotation at {rotation}")],
        }
    }

    fn live(&mut self) -> Checked {
        for _ in 0..STEPS {
            match self.dice.below(16) {
                0 => self.fail_once()?,
                1 | 2 => self.stop_suddenly()?,
                3 => self.run_out_of_space()?,
                4 => self.end()?,
                5 => self.repair()?,
                6 => self.check(Kept::Acknowledged)?,
                _ => self.speak(),
            }
            if let Some(error) = self.writer.errors.first() {
                return Err(format!("an error for no reason: {error:?}"));
            }
        }
        self.check(Kept::Acknowledged)?;
        let store = self.writer.store().ok_or("the store cannot be opened")?;
        for diary in &self.writer.diaries {
            let reader = store.read_session(&diary.id).map_err(|e| e.to_string())?;
            check_record_by_record(&reader)?;
        }
        Ok(())
    }

    /// Performs an operation without a fault.
    fn speak(&mut self) {
        let what = match self.dice.below(13) {
            0 => {
                self.writer.close();
                "close"
            }
            1 => {
                self.writer.leave();
                "leave"
            }
            2 if self.writer.diaries.len() < 3 => {
                self.writer.begin();
                "begin"
            }
            3 | 4 => {
                self.writer.note();
                "note"
            }
            5 | 6 => {
                let count = self.dice.below(5);
                self.writer.say_batch(count);
                "say several things"
            }
            7 => {
                self.writer.tear();
                "tear"
            }
            8 | 9 => {
                self.writer.show();
                "show"
            }
            _ => {
                self.writer.say();
                "say"
            }
        };
        self.steps.push(what.to_owned());
    }

    /// Makes one operation fail soon, or all from then on for a while.
    fn fail_once(&mut self) -> Checked {
        let number = self.dice.pick([5, 13, 28]);
        let fault = self
            .dice
            .pick([Fault::Error(number), Fault::ErrorFrom(number)]);
        self.speak_with(fault);
        self.writer.disk.disarm();
        // A failed sync stops the handle, and everything after it.
        self.writer.leave();
        self.writer.errors.clear();
        self.check(Kept::Acknowledged)
    }

    /// Makes the machine stop soon.
    fn stop_suddenly(&mut self) -> Checked {
        let thirds = self.dice.below(4) as u32;
        let fault = match self.dice.below(3) {
            0 => Fault::Crash { when: When::Before },
            1 => Fault::Crash { when: When::After },
            _ => Fault::Tear {
                numerator: thirds,
                denominator: 3,
            },
        };
        self.speak_with(fault);
        self.end()
    }

    fn speak_with(&mut self, fault: Fault) {
        let n = self.dice.below(30) as u64;
        self.steps.push(format!("{fault:?} at {n}"));
        self.writer.disk.arm(n, fault);
        for _ in 0..6 {
            self.speak();
        }
    }

    fn run_out_of_space(&mut self) -> Checked {
        let space = self.dice.below(2_000) as u64;
        self.steps.push(format!("space for {space}"));
        self.writer.memory.set_space(Some(space));
        for _ in 0..6 {
            self.speak();
        }
        self.writer.memory.set_space(None);
        self.writer.errors.clear();
        self.check(Kept::Acknowledged)
    }

    /// Kills the process or cuts the power, and checks what is left.
    fn end(&mut self) -> Checked {
        let keep_bytes = self.dice.below(600);
        let seed = self.dice.below(usize::MAX) as u64;
        let end = self.dice.pick([
            End::Kill,
            End::Kill,
            End::Power(Loss::Unsynced),
            End::Power(Loss::Nothing),
            End::Power(Loss::Tail { keep_bytes }),
            End::Power(Loss::Shuffled { seed }),
            End::Power(Loss::Shuffled { seed: seed + 1 }),
        ]);
        self.steps.push(format!("{end:?}"));
        self.cuts += 1;
        self.shuffled |= end.leaves() == Flaws::Any;
        self.writer = self.writer.moved_to(end.of(&self.writer.memory));
        self.check(end.keeps(self.durability))?;
        if let End::Power(_) = end {
            self.writer.strike_out_lost()?;
        }
        Ok(())
    }

    fn repair(&mut self) -> Checked {
        self.steps.push("repair".to_owned());
        self.writer.leave();
        self.writer.repair_all()
    }

    fn check(&mut self, kept: Kept) -> Checked {
        let flaws = if self.shuffled {
            Flaws::Any
        } else {
            Flaws::Unfinished
        };
        let store = self.writer.store().ok_or("the store cannot be opened")?;
        check_store(&store, &self.writer.diaries, kept, flaws)
    }
}

struct Dice(SeededRandomness);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes).expect("it never ends");
        (u64::from_le_bytes(bytes) % limit as u64) as usize
    }

    fn pick<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.below(N)]
    }
}

//! F41: fifty clients share a replica that loses requests, answers and blobs.
//!
//! They take leases and sleep past them, append, rewind, fork, leave notes for the writer, trash
//! and purge logs, and retry whatever was not answered; a clean-up without a waiting time runs
//! beside them. Each answer is compared with that of a second, simpler model, and at the end:
//! every line that was acknowledged is there once and in order, no line of a writer comes behind
//! one of its successor, what was refused is nowhere, and what was purged stays away.
//!
//! `BACKTRAIL_TEST_LIVES` sets how many such lives there are, `BACKTRAIL_TEST_SEED` where their
//! seeds begin.

mod client;
mod outcome;
mod reference;
mod world;

use world::{Seen, World};

const LIVES: u64 = 40;
const STEPS: usize = 4000;

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// Prints the seed of a life that fails.
struct Life(u64);

impl Drop for Life {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("BACKTRAIL_TEST_SEED={} BACKTRAIL_TEST_LIVES=1", self.0);
        }
    }
}

#[test]
fn fifty_clients_lose_no_line_write_none_twice_and_bring_nothing_back() {
    let first = setting("BACKTRAIL_TEST_SEED", 0);
    let lives = setting("BACKTRAIL_TEST_LIVES", LIVES);
    let mut seen = Seen::default();
    for seed in first..first + lives {
        let _life = Life(seed);
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.settle();
        world.check();
        seen.add(&world.seen);
    }
    println!("{seen:#?}");
    if lives >= LIVES {
        seen.assert_nothing_is_missing();
    }
}

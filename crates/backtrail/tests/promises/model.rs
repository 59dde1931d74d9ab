//! Random lives of several sessions in one store, compared with a plain model that keeps
//! whole lines of history, as a text editor's undo does.
//!
//! After every operation the engine must agree with it: the history in every direction,
//! the numbers, the steps, the results of each move and compaction, and the session's
//! metadata (A11, A12, A13, B2, F1, F3, F5, F6, F22). A life is identified by its seed; a
//! failing test makes it shorter first.

mod boundary;
pub(crate) mod chance;
mod crash;
mod outcome;
mod perform;
mod seen;
mod state;
mod world;

use std::ops::Range;

use backtrail::Durability;

use crate::kit::{Checked, EVERY_DURABILITY};
use chance::Op;
use world::World;

/// How many operations a life has.
const OPERATIONS: usize = 2_000;

/// A kind of life: how durable, and whether faults occur.
#[derive(Debug, Clone, Copy)]
struct Way {
    durability: Durability,
    troubled: bool,
}

fn live_all(way: Way, seeds: Range<u64>) {
    let lives = seeds.end - seeds.start;
    let (mut hit, mut happened) = (0, 0);
    for seed in seeds {
        let ops = chance::ops(seed, OPERATIONS);
        let (world, lived) = live(seed, way, &ops);
        if let Err(wrong) = lived {
            let (script, shortest) = shorten(seed, way, ops);
            panic!("seed {seed}, {way:?}: {wrong}\n\nmade shorter: {shortest}\n  {script}");
        }
        hit += world.hit;
        happened += world.happened;
    }
    // Faults must have occurred, some of them too late.
    let enough = hit > 200 * lives && happened > 2 * lives;
    assert!(enough || !way.troubled, "{hit} hit, {happened} happened");
}

fn live(seed: u64, way: Way, ops: &[Op]) -> (World, Checked) {
    let mut world = World::new(seed, way.durability, way.troubled).expect("an empty disk");
    let lived = ops.iter().try_for_each(|op| world.step(*op));
    let lived = lived.and_then(|()| world.finish());
    (world, lived)
}

/// How often a failing life is repeated to make it shorter.
const TRIES: usize = 500;

/// Removes operations as long as the life still fails, and returns the rest with the
/// problem.
fn shorten(seed: u64, way: Way, mut ops: Vec<Op>) -> (String, String) {
    let fails = |ops: &mut Vec<Op>| {
        let (world, lived) = live(seed, way, ops);
        ops.truncate(world.steps());
        lived.err().map(|wrong| (world.script.join("\n  "), wrong))
    };
    let mut told = fails(&mut ops).expect("it did just now");
    let mut tries = 0;
    let mut size = ops.len() / 2;
    while size > 0 && tries < TRIES {
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            tries += 1;
            match fails(&mut fewer) {
                Some(wrong) => (told, ops) = (wrong, fewer),
                None => at += size,
            }
        }
        size /= 2;
    }
    told
}

const fn way(durability: Durability) -> Way {
    Way {
        durability,
        troubled: false,
    }
}

const fn troubled(durability: Durability) -> Way {
    Way {
        durability,
        troubled: true,
    }
}

#[test]
fn b2_random_operations_leave_what_an_editor_would() {
    live_all(way(Durability::Record), 0..2);
    live_all(way(Durability::Batch), 100..102);
    live_all(way(Durability::Os), 200..201);
}

#[test]
fn b2_f5_f22_random_operations_that_fail_happened_or_did_not() {
    live_all(troubled(Durability::Record), 300..302);
    live_all(troubled(Durability::Batch), 400..401);
    live_all(troubled(Durability::Os), 500..501);
}

#[test]
#[ignore = "takes minutes"]
fn b2_f5_f22_far_more_random_operations() {
    for durability in EVERY_DURABILITY {
        live_all(way(durability), 1_000..1_040);
        live_all(troubled(durability), 2_000..2_040);
    }
}

//! Whatever fails, and wherever: what is there afterwards is sound, and the next push or pull
//! finishes.

use backtrail::replica::PullOptions;
use backtrail_testkit::replica::MemoryReplica;
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, ManualClock, MemoryStorage, When};

use super::kit::{CutOff, NOW, Side, Story, assert_same, open, replica};

const EIO: i32 = 5;

#[test]
fn a_push_that_is_cut_off_at_any_request_is_finished_by_the_next() {
    for carried_out in [false, true] {
        for calls in 1.. {
            let clock = ManualClock::new(NOW);
            let there = MemoryReplica::new(clock.clone());
            let (a, b) = (Side::new(1), Side::new(2));
            let story = Story::begin(&a.store);
            story.go_on(&a.store);
            let cut = CutOff::new(&there, calls, carried_out);
            let transfer = a.try_push(&story.main, &cut);
            if !cut.fired() {
                transfer.check().unwrap();
                assert!(calls > 10, "there were requests");
                break;
            }
            // The lease of the push that died runs out.
            clock.advance(60_000);
            a.push(&story.main, &there);
            b.pull(&story.main, &there);
            let (mut ours, theirs) = (a.files(), b.files());
            ours.retain(|path, _| theirs.contains_key(path));
            assert_same(&ours, &theirs);
            assert_eq!(b.texts(&story.main), a.texts(&story.main));
            assert_eq!(b.texts(&story.agent), a.texts(&story.agent));
        }
    }
}

#[test]
fn a_pull_that_is_cut_off_at_any_request_is_finished_by_the_next() {
    let (a, there) = (Side::new(1), replica());
    let story = Story::begin(&a.store);
    a.push(&story.fork_of_fork, &there);
    a.push(&story.main, &there);
    let begun = Side::new(2);
    begun.pull(&story.main, &there);
    begun.pull(&story.fork_of_fork, &there);
    story.go_on(&a.store);
    a.push(&story.main, &there);
    for disk in [MemoryStorage::new(), begun.disk] {
        for calls in 1.. {
            let b = Side::on(disk.kill(), 3);
            let cut = CutOff::new(&there, calls, true);
            let transfer = b.try_pull(&story.fork_of_fork, &cut);
            let transfer = match cut.fired() {
                true => transfer,
                false => b.try_pull(&story.main, &cut),
            };
            b.verify();
            if !cut.fired() {
                transfer.check().unwrap();
                assert!(calls > 4, "there were requests");
                break;
            }
            b.pull(&story.fork_of_fork, &there);
            b.pull(&story.main, &there);
            assert_same(&a.files(), &b.files());
        }
    }
}

/// Lets a fault come at every operation of a pull on a disk, and checks what is there then.
fn at_every_operation(begun: bool, fault: Fault, power: bool) {
    let (a, there) = (Side::new(1), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    let disk = Side::new(2);
    if begun {
        disk.pull(&story.main, &there);
    }
    story.go_on(&a.store);
    a.push(&story.main, &there);
    let mut want = a.trails();
    want.retain(|path, _| {
        [&story.main, &story.agent]
            .iter()
            .any(|id| path.starts_with(format!("/store/sessions/{id}")))
    });
    for n in 0.. {
        let memory = disk.disk.kill();
        let faulty = FaultyStorage::new(memory.clone()).counting(Count::Writes);
        let store = open(faulty.clone(), 7).unwrap();
        faulty.arm(n, fault);
        let ids = [story.main.clone()];
        let pulled = store.pull(&ids, &there, &PullOptions::new(), &mut |_| {});
        let succeeded = pulled.is_ok_and(|transfer| transfer.check().is_ok());
        let fired = faulty.fired();
        drop(store);
        let after = match power {
            true => memory.crash(Loss::Unsynced),
            false => memory.kill(),
        };
        let b = Side::on(after, 8);
        b.verify();
        if succeeded {
            assert_eq!(b.texts(&story.main), a.texts(&story.main), "operation {n}");
        }
        b.pull(&story.main, &there);
        b.verify();
        assert_same(&want, &b.trails());
        if !fired {
            assert!(n > 10, "there were operations");
            break;
        }
    }
}

#[test]
fn a_pull_survives_a_stop_at_any_operation() {
    for begun in [false, true] {
        for when in [When::Before, When::After] {
            for power in [false, true] {
                at_every_operation(begun, Fault::Crash { when }, power);
            }
        }
        let tear = Fault::Tear {
            numerator: 1,
            denominator: 2,
        };
        at_every_operation(begun, tear, false);
        at_every_operation(begun, tear, true);
    }
}

#[test]
fn a_pull_survives_an_error_at_any_operation() {
    for begun in [false, true] {
        at_every_operation(begun, Fault::Error(EIO), false);
    }
}

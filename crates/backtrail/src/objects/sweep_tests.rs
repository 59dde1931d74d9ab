//! A sweep keeps referenced objects however it is interrupted, and the next sweep removes
//! everything else (F30).

use std::any::Any;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;

use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};

use super::testing::*;
use super::*;

/// Marks some objects as referenced at once, and others at later calls.
#[derive(Default)]
struct Names {
    later: VecDeque<Vec<Vec<u8>>>,
}

impl LiveObjects for Names {
    fn catch_up(&mut self, table: &mut ObjectTable) -> Result<()> {
        for content in self.later.pop_front().unwrap_or_default() {
            table.mark(&ObjectId::of(&content), Mark::Live);
        }
        Ok(())
    }

    fn wait_until_alone(&self) -> Result<Option<Box<dyn Any>>> {
        Ok(Some(Box::new(())))
    }
}

fn mark(table: &mut ObjectTable, contents: &[Vec<u8>]) {
    for content in contents {
        let id = ObjectId::of(content);
        table.mark(&id, Mark::Live);
        for chunk in table.chunks(&id).unwrap() {
            table.mark(&chunk, Mark::Live);
        }
    }
}

fn sweep(objects: &Objects, named: &[Vec<u8>]) -> Result<Swept> {
    let mut table = objects.clean_up()?;
    mark(&mut table, named);
    Sweep::run(&mut table, &mut Names::default())
}

fn dry(objects: &Objects, named: &[Vec<u8>]) -> Swept {
    let mut table = objects.object_table().unwrap();
    mark(&mut table, named);
    table.sweep_plan().unwrap()
}

/// Stores contents in several packs, some of them twice; half of them are referenced.
fn filled() -> (MemoryStorage, Vec<Vec<u8>>) {
    let memory = memory();
    let all: Vec<Vec<u8>> = (0..24).map(|n| noise(n, 100 + 40 * n as usize)).collect();
    for some in all.chunks(4) {
        store(&open(&memory, some[0][0].into()), some).unwrap();
    }
    // Concurrent writers do not rely on each other.
    let writers = [91, 92].map(|seed| open(&memory, seed).writer().unwrap());
    for writer in &writers {
        for content in 200..204 {
            writer.put(&text(content, 300)).unwrap();
        }
    }
    finish(writers);
    let twice = (200..204).map(|n| text(n, 300));
    let named = all.iter().step_by(2).cloned().chain(twice.step_by(2));
    (memory.clone(), named.collect())
}

/// Asserts that exactly these objects are stored, each once, and nothing is left over.
#[track_caller]
fn assert_exactly(memory: &MemoryStorage, named: &[Vec<u8>]) {
    let objects = open(memory, 301);
    assert_stored(&objects, named);
    let verified = assert_sound(&objects);
    assert_eq!(verified.objects, named.len() as u64);
    assert_eq!(verified.leftovers, 0);
    let stray = pack_files(memory).into_iter().find(|path| {
        let name = path.file_name().unwrap();
        PackName::parse(name).is_none()
    });
    assert_eq!(stray, None);
    assert_eq!(pack_files(memory).len() as u64, verified.packs);
}

#[test]
fn unreferenced_objects_are_removed_and_all_others_are_stored_once() {
    let (memory, named) = filled();
    let foretold = dry(&open(&memory, 4), &named);
    let before = open(&memory, 4).size().unwrap();
    let swept = sweep(&open(&memory, 5), &named).unwrap();
    assert_exactly(&memory, &named);
    let after = open(&memory, 4).size().unwrap();
    assert_eq!(swept.freed, before - after);
    assert_eq!(swept.left_bytes, after);
    assert_eq!(foretold, swept, "a dry run is exact");
    assert!(swept.rewritten > 2 && swept.objects > 12, "{swept:?}");
    // Nothing changes if there is nothing to do.
    let files = pack_files(&memory);
    let again = sweep(&open(&memory, 6), &named).unwrap();
    assert_eq!((again.removed, again.rewritten, again.freed), (0, 0, 0));
    assert_eq!(pack_files(&memory), files);
    sweep(&open(&memory, 7), &[]).unwrap();
    assert_eq!(pack_files(&memory), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_dry_run_is_exact_whatever_is_named() {
    for seed in 0..40 {
        let (memory, _) = filled();
        let mut contents: Vec<Vec<u8>> = (0..24).map(|n| noise(n, 100 + 40 * n as usize)).collect();
        let mut dice = noise(1000 + seed, 64).into_iter();
        contents.retain(|_| !dice.next().unwrap().is_multiple_of(3));
        let foretold = dry(&open(&memory, 4), &contents);
        let swept = sweep(&open(&memory, 5), &contents).unwrap();
        assert_eq!(foretold, swept, "{seed}");
        assert_exactly(&memory, &contents);
    }
}

#[test]
fn f30_a_sweep_that_is_stopped_at_any_step_loses_nothing_and_the_next_leaves_nothing() {
    let faults = [
        Fault::Crash { when: When::Before },
        Fault::Crash { when: When::After },
        Fault::Tear {
            numerator: 1,
            denominator: 2,
        },
    ];
    let mut losses = vec![Loss::Unsynced, Loss::Nothing, Loss::Tail { keep_bytes: 60 }];
    losses.extend((0..6).map(|seed| Loss::Shuffled { seed }));
    for fault in faults {
        for n in 0.. {
            let (memory, named) = filled();
            let disk = FaultyStorage::new(memory.clone()).counting(Count::Writes);
            disk.arm(n, fault);
            let swept = sweep(&Disk::of(disk.clone()).objects(5, SMALL), &named);
            let context = format!("{fault:?} at {n}: {:?}", disk.log().last());
            let killed = losses.iter().map(|loss| memory.crash(*loss));
            for after in killed.chain([memory.kill()]) {
                let recovers = || {
                    assert_stored(&open(&after, 6), &named);
                    assert_sound(&open(&after, 7));
                    sweep(&open(&after, 8), &named).unwrap();
                    assert_exactly(&after, &named);
                    assert_exactly(&after.crash(Loss::Unsynced), &named);
                };
                if std::panic::catch_unwind(AssertUnwindSafe(recovers)).is_err() {
                    panic!("{context}");
                }
            }
            if !disk.fired() {
                assert!(n > 30, "only {n} steps");
                swept.unwrap();
                break;
            }
        }
    }
}

#[test]
fn failures_are_reported_and_lose_nothing() {
    for n in 0.. {
        let (memory, named) = filled();
        let disk = FaultyStorage::new(memory.clone()).counting(Count::All);
        disk.arm(n, Fault::Error(5));
        sweep(&Disk::of(disk.clone()).objects(5, SMALL), &named).ok();
        assert_stored(&open(&memory, 6), &named);
        assert_stored(&open(&memory.crash(Loss::Unsynced), 6), &named);
        sweep(&open(&memory, 8), &named).unwrap();
        assert_exactly(&memory, &named);
        if !disk.fired() {
            break;
        }
    }
}

#[test]
fn objects_that_become_referenced_during_a_sweep_stay() {
    // Before the lock is taken, and after.
    for asked in 0..20 {
        let (memory, named) = filled();
        let late = noise(1, 140);
        let mut names = Names::default();
        names.later.resize(asked, Vec::new());
        names.later.push_back(vec![late.clone()]);
        let objects = open(&memory, 5);
        let mut table = objects.clean_up().unwrap();
        mark(&mut table, &named);
        let stands = |objects: &Objects| objects.contains(&ObjectId::of(&late)).unwrap();
        Sweep::run(&mut table, &mut names).unwrap();
        if !names.later.is_empty() || !stands(&open(&memory, 6)) {
            // It was removed before it was referenced: its writer would have noticed.
            assert!(asked > 2, "{asked}");
            continue;
        }
        assert_stored(&open(&memory, 6), &[named, vec![late]].concat());
    }
}

#[test]
fn of_two_copies_the_damaged_one_goes_and_a_damaged_single_one_stays_with_its_pack() {
    let memory = memory();
    let both = vec![text(1, 400), text(2, 400)];
    let writers = [91, 92].map(|seed| open(&memory, seed).writer().unwrap());
    for writer in &writers {
        for content in &both {
            writer.put(content).unwrap();
        }
    }
    finish(writers);
    let damage = |path: &Path| {
        let mut bytes = memory.read(path).unwrap();
        // Inside the first entry.
        bytes[40] ^= 1;
        memory.write(path, &bytes).unwrap();
    };
    let packs = pack_files(&memory);
    for damaged in &packs {
        let before: Vec<_> = packs
            .iter()
            .map(|path| memory.read(path).unwrap())
            .collect();
        damage(damaged);
        sweep(&open(&memory, 5), &both).unwrap();
        assert_exactly(&memory, &both);
        for path in pack_files(&memory) {
            memory.write(&path, &[]).unwrap();
        }
        for (path, bytes) in packs.iter().zip(&before) {
            memory.write(path, bytes).unwrap();
        }
    }
    // Now the only copy of a referenced object.
    sweep(&open(&memory, 5), &both).unwrap();
    let [pack] = &pack_files(&memory)[..] else {
        panic!("one pack is enough");
    };
    let whole = memory.read(pack).unwrap();
    damage(pack);
    let one = &both[..1];
    let swept = sweep(&open(&memory, 6), &both).unwrap();
    assert_eq!(swept.freed, 0, "nothing is dead, so nothing is copied");
    let swept = sweep(&open(&memory, 6), one).unwrap();
    let [left] = &swept.skipped[..] else {
        panic!("{swept:?}");
    };
    assert_eq!(left.path, *pack);
    assert_eq!(left.reason, SkipReason::Damaged(ObjectId::of(&both[0])));
    assert_eq!(memory.read(pack).unwrap().len(), whole.len());
}

#[test]
fn a_reader_with_an_old_list_of_packs_finds_everything_kept() {
    let (memory, named) = filled();
    let old = open(&memory, 4);
    assert_stored(&old, &named);
    sweep(&open(&memory, 5), &named).unwrap();
    assert_stored(&old, &named);
    // Removed packs do not count as stored and take no space.
    let len = old.size().unwrap() as usize;
    memory.set_space(Some(0));
    sweep(&open(&memory, 6), &[]).unwrap();
    let new = [named[0].clone(), noise(70, len - 1000)];
    store(&open(&memory, 7), &new).unwrap_err();
    store(&old, &new).unwrap();
    assert_stored(&open(&memory, 8), &new);
}

#[test]
fn the_pack_of_a_writer_at_work_is_left_alone() {
    let memory = memory();
    store(&open(&memory, 1), &[noise(1, 100), noise(2, 100)]).unwrap();
    let objects = open(&memory, 2);
    let writer = objects.writer().unwrap();
    writer.put(&noise(3, 100)).unwrap();
    let swept = sweep(&open(&memory, 3), &[noise(1, 100)]).unwrap();
    assert_eq!(swept.skipped.len(), 1);
    assert_eq!(swept.skipped[0].reason, SkipReason::Busy);
    writer.finish().unwrap();
    assert_stored(&open(&memory, 4), &[noise(1, 100), noise(3, 100)]);
    sweep(&open(&memory, 5), &[noise(1, 100), noise(3, 100)]).unwrap();
    assert_exactly(&memory, &[noise(1, 100), noise(3, 100)]);
}

#[test]
fn chunks_stay_with_the_content_that_is_made_of_them() {
    let memory = memory();
    let large = noise(1, 6 << 20);
    store(&open(&memory, 1), &[large.clone(), noise(2, 6 << 20)]).unwrap();
    sweep(&open(&memory, 2), std::slice::from_ref(&large)).unwrap();
    assert_stored(&open(&memory, 3), &[large]);
    assert_eq!(assert_sound(&open(&memory, 3)).damages, 0);
    assert!(open(&memory, 3).size().unwrap() < 7 << 20);
}

#[test]
fn f21_a_flipped_byte_anywhere_never_makes_the_sweep_lose_more_objects() {
    let (shape, named) = filled();
    let packs = pack_files(&shape);
    for pack in &packs {
        let whole = shape.read(pack).unwrap();
        // After the header, whose version it might change.
        for byte in (16..whole.len()).step_by(11) {
            let memory = shape.kill();
            let mut bytes = whole.clone();
            bytes[byte] ^= 0x20;
            memory.write(pack, &bytes).unwrap();
            let readable = |content: &&Vec<u8>| {
                let read = open(&memory, 20).read(&ObjectId::of(content));
                read.is_ok_and(|read| read == **content)
            };
            let before: Vec<&Vec<u8>> = named.iter().filter(readable).collect();
            let objects = open(&memory, 21);
            let mut table = objects.clean_up().unwrap();
            for content in &named {
                let id = ObjectId::of(content);
                table.mark(&id, Mark::Live);
                if !table.is_stored(&id).unwrap() {
                    table.add_missing(id);
                }
            }
            Sweep::run(&mut table, &mut Names::default()).unwrap();
            for content in before {
                let is_there = readable(&content);
                assert!(
                    is_there,
                    "{} at {byte}: {}",
                    pack.display(),
                    ObjectId::of(content)
                );
            }
        }
    }
}

//! Measurements, run by hand: `cargo test --release -p backtrail speed -- --ignored
//! --nocapture`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::queue::Queue;
use super::sys::{self, Names, Root};
use super::testing::TestWorkspace;
use super::{Sink, StatCache, scan};
use crate::time::Timestamp;

fn fill(root: &Path, dirs: usize, per_dir: usize, size: usize) {
    let mut seed = 1_u64;
    let words: Vec<u8> = (0..1 << 16)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + (seed >> 59) as u8
        })
        .collect();
    for dir in 0..dirs {
        let at = root.join(format!("part-{}/area-{}/dir-{dir}", dir % 10, dir % 100));
        fs::create_dir_all(&at).unwrap();
        for file in 0..per_dir {
            let from = (dir * 31 + file * 977) % (words.len() - size);
            let mut bytes = format!("{dir} {file}\n").into_bytes();
            bytes.extend_from_slice(&words[from..from + size]);
            fs::write(at.join(format!("source-file-{file}.rs")), bytes).unwrap();
        }
    }
}

/// Opens every directory and inspects every name in two threads: the lower bound.
fn bare_walk(root: &Path) -> usize {
    let root = Root::open(root).unwrap();
    let queue = Queue::new(Vec::new());
    let parts = queue.work(2, |queue| {
        let mut names = Names::default();
        let mut count = 0;
        while let Some((path, running)) = queue.next() {
            let fd = root.open_dir(&path).unwrap();
            names.read(&fd).unwrap();
            let mut found = Vec::new();
            for (name, _) in names.iter() {
                count += 1;
                if sys::seen_at(&fd, name).unwrap().kind == super::super::entry::FileKind::Dir {
                    found.push(super::walk::join(&path, name.to_bytes()).into_vec());
                }
            }
            running.finish(found);
        }
        Ok(count)
    });
    parts.unwrap().into_iter().sum()
}

/// Runs several functions in turns and returns the best time of each, so that other load
/// on the machine affects all of them.
fn best<const N: usize>(rounds: usize, mut what: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [f64::MAX; N];
    for _ in 0..rounds {
        for (best, what) in best.iter_mut().zip(&mut what) {
            let start = Instant::now();
            what();
            *best = best.min(start.elapsed().as_secs_f64() * 1000.0);
        }
    }
    best
}

#[test]
#[ignore = "a measurement, not a promise"]
fn speed_of_scans() {
    for (dirs, per_dir) in [(5000, 12), (500, 12), (1, 10_000)] {
        let mut place = TestWorkspace::new();
        place.later_millis = 3_600_000;
        let root = place.root();
        fill(&root, dirs, per_dir, 10_000);
        let [first] = best(2, [&mut || drop(place.scan_fresh())]);
        place.scan();
        let bytes = place.cache.encode().to_vec();
        let known = StatCache::decode(bytes.clone()).unwrap();
        let options = place.options.clone();
        let now = Timestamp::from_millis(4_000_000_000_000).unwrap();
        let [bare, decode, look, same] = best(
            30,
            [
                &mut || assert!(bare_walk(&root) > 0),
                &mut || assert!(StatCache::decode(bytes.clone()).is_some()),
                &mut || {
                    let scanned = scan(&root, &options, &known, Sink::HashOnly, now).unwrap();
                    assert_eq!(scanned.counts.files, 0);
                },
                &mut || drop(place.try_scan().unwrap()),
            ],
        );
        for n in 0..10 {
            let dir = n * 37 % dirs;
            let dir = root.join(format!("part-{}/area-{}/dir-{dir}", dir % 10, dir % 100));
            fs::write(dir.join(format!("source-file-{n}.rs")), "changed").unwrap();
        }
        let [changed] = best(
            30,
            [&mut || assert!(place.try_scan().unwrap().cache.is_some())],
        );
        let [bare_again] = best(30, [&mut || assert!(bare_walk(&root) > 0)]);
        println!(
            "{dirs} dirs, ms: bare {bare:.1}/{bare_again:.1}, hashing all {first:.0}, cache of {} KB {decode:.1}, \
             look {look:.1} ({:.2}x), same {same:.1} ({:.2}x), ten files {changed:.1} ({:.2}x)",
            bytes.len() / 1024,
            look / bare,
            same / bare,
            changed / bare_again,
        );
    }
}

//! Figures, by hand: `cargo test --release -p backtrail speed -- --ignored --nocapture`.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::kit_tests::Place;
use super::queue::{Queue, in_parallel};
use super::sys::{self, Names, Root};
use super::{Sink, StatCache, scan};

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

/// Opens every directory and looks at every name, in two threads: the floor.
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
                if sys::seen_at(&fd, name).unwrap().kind == super::super::entry::Kind::Dir {
                    found.push(super::walk::join(&path, name.to_bytes()).into_vec());
                }
            }
            running.finish(found);
        }
        Ok(count)
    });
    parts.unwrap().into_iter().sum()
}

fn best(mut what: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..9 {
        let start = Instant::now();
        what();
        best = best.min(start.elapsed().as_secs_f64() * 1000.0);
    }
    best
}

#[test]
#[ignore = "a measurement, not a promise"]
fn speed_of_scans() {
    for (dirs, per_dir) in [(5000, 12), (500, 12), (1, 10_000)] {
        let mut place = Place::new();
        place.later_millis = 3_600_000;
        fill(&place.root(), dirs, per_dir, 10_000);
        let bare = best(|| assert!(bare_walk(&place.root()) > 0));
        let start = Instant::now();
        let none = StatCache::empty(7);
        let now = crate::time::Timestamp::from_millis(4_000_000_000_000).unwrap();
        scan(&place.root(), &place.options, &none, Sink::Look, now).unwrap();
        let first = start.elapsed().as_secs_f64() * 1000.0;
        place.scan();
        let bytes = place.cache.encode().to_vec();
        let decode = best(|| assert!(StatCache::decode(bytes.clone(), 7).is_some()));
        let same = best(|| assert!(place.try_scan().unwrap().cache.is_none()));
        let mut round = 0;
        let ten = best(|| {
            round += 1;
            for n in 0..10 {
                let path = format!(
                    "part-{}/area-{}/dir-{}",
                    n % 10,
                    n * 37 % dirs % 100,
                    n * 37 % dirs
                );
                let path = place.at(&path).join("source-file-3.rs");
                if path.exists() {
                    fs::write(path, format!("round {round} {n}")).unwrap();
                }
            }
            place.scan();
        });
        println!(
            "{dirs} dirs: bare {bare:.1} ms, first (hashing only) {first:.0} ms, cache {} KB decoded in {decode:.1} ms, \
             same {same:.1} ms ({:.2}x), ten files {ten:.1} ms ({:.2}x)",
            bytes.len() / 1024,
            same / bare,
            ten / bare
        );
    }
    let _ = in_parallel(1, || Ok(()));
}

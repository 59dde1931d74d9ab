//! The seeds of the fuzz targets, and many files made of each by damaging it, go through
//! every reader: nothing panics, the result is sound and not larger than the file, and
//! reading up to a byte and then resuming gives the same as reading from the beginning. The
//! payloads of hooks are damaged in the same ways.
//!
//! The damage is the same in every run; a failure names the seed and the number that
//! makes it again.

#![allow(clippy::disallowed_methods, reason = "seeds are only read")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use backtrail_formats::{Format, Source, formats, testing};

/// How many files are made of each seed, for the reader that it is for.
const MUTATIONS: u64 = 300;
/// And for each of the others.
const FOR_OTHERS: u64 = 8;

/// Returns the seeds of a format.
fn seeds(format: &dyn Format) -> Vec<PathBuf> {
    seeds_in(&format.name().replace('-', "_"))
}

fn seeds_in(directory: &str) -> Vec<PathBuf> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds");
    let directory = seeds.join(directory);
    let entries = std::fs::read_dir(&directory).expect("every format has seeds");
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} has seeds", directory.display());
    found
}

/// SplitMix64: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("it is below a usize")
    }

    /// Chooses a value in JSON text: from a colon to the next comma.
    fn value(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let colons: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at] == b':').collect();
        let Some(colon) = colons.get(self.below(colons.len())) else {
            return 0..0;
        };
        let from = colon + 1;
        let end = bytes[from..]
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']' | b'\n'));
        from..end.map_or(bytes.len(), |end| from + end)
    }
}

/// Damages a file in one of many ways.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    let to = at + numbers.below(bytes.len() - at + 1);
    match numbers.below(12) {
        0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..to.min(at + 40))),
        3 => {
            let again = bytes[at..to].to_vec();
            bytes.splice(at..at, again);
        }
        4 => swap_lines(bytes, numbers),
        5 => repeat_line(bytes, numbers),
        6 => drop(bytes.splice(at..at, vec![0; numbers.below(5_000)])),
        7 => put(bytes, numbers, &"[".repeat(20_000)),
        8 => put(
            bytes,
            numbers,
            &format!("{}{}", "{\"a\":".repeat(9_000), "}".repeat(9_000)),
        ),
        9 => {
            let odd = [
                "1e99999",
                "-1",
                "99999999999999999999999",
                "0.5",
                "null",
                "[]",
                "{}",
                "true",
            ];
            let value = odd[numbers.below(odd.len())];
            put(bytes, numbers, value);
        }
        10 => {
            let odd = [
                "\"\\ud800\"",
                "\"\"",
                "\"\\u0000\\n\"",
                "\"../../x\"",
                "\"\u{202e}\"",
            ];
            let value = odd[numbers.below(odd.len())];
            put(bytes, numbers, value);
        }
        _ => copy_value(bytes, numbers),
    }
}

/// Puts something in the place of a value.
fn put(bytes: &mut Vec<u8>, numbers: &mut Numbers, value: &str) {
    let range = numbers.value(bytes);
    drop(bytes.splice(range, value.bytes()));
}

/// Puts a value in the place of another: an id that comes twice, a parent that is its own.
fn copy_value(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let from = numbers.value(bytes);
    let value = bytes[from].to_vec();
    let to = numbers.value(bytes);
    drop(bytes.splice(to, value));
}

fn swap_lines(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let mut lines: Vec<_> = bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let (one, other) = (numbers.below(lines.len()), numbers.below(lines.len()));
    lines.swap(one, other);
    *bytes = lines.join(&b'\n');
}

fn repeat_line(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let mut lines: Vec<_> = bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let line = lines[numbers.below(lines.len())].clone();
    lines.insert(numbers.below(lines.len()), line);
    *bytes = lines.join(&b'\n');
}

/// Checks one file, and says which where it fails.
fn check(format: &dyn Format, seed: &Path, number: u64, bytes: &[u8]) {
    let path = seed.to_string_lossy();
    let checked = catch_unwind(AssertUnwindSafe(|| {
        testing::check_any(format, &path, bytes)
    }));
    if let Err(panic) = checked {
        eprintln!("{} failed: {path}, mutation {number}", format.name());
        resume_unwind(panic);
    }
}

#[test]
fn every_seed_is_recognised_by_its_reader_alone_and_read_without_damage() {
    for format in formats() {
        for seed in seeds(format) {
            let source = Source::open(&seed).expect("it can be read");
            for other in formats().filter(|other| other.name() != format.name()) {
                let claims = other.recognises(&source);
                assert!(!claims, "{}: {}", other.name(), seed.display());
            }
            assert!(format.recognises(&source), "{}", seed.display());
            let bytes = std::fs::read(&seed).expect("it can be read");
            let (report, collected) = testing::read(format, &seed.to_string_lossy(), &bytes)
                .unwrap_or_else(|error| panic!("{}: {error}", seed.display()));
            assert_eq!(
                report.damage.count,
                0,
                "{}: {:?}",
                seed.display(),
                report.damage
            );
            assert!(collected.messages().count() >= 2, "{}", seed.display());
        }
    }
}

#[test]
fn every_seed_can_be_resumed_from_every_byte() {
    for format in formats() {
        for seed in seeds(format) {
            let bytes = std::fs::read(&seed).expect("it can be read");
            let path = seed.to_string_lossy();
            (0..=bytes.len()).for_each(|cut| testing::check(format, &path, &bytes, cut));
        }
    }
}

#[test]
fn damaged_seeds_go_through_every_reader() {
    for owner in formats() {
        for seed in seeds(owner) {
            let whole = std::fs::read(&seed).expect("it can be read");
            for number in 0..MUTATIONS {
                let mut numbers = Numbers(number ^ whole.len() as u64);
                let mut bytes = whole.clone();
                for _ in 0..=numbers.below(4) {
                    damage(&mut bytes, &mut numbers);
                }
                for format in formats() {
                    let of_it = format.name() == owner.name();
                    if of_it || number < FOR_OTHERS {
                        check(format, &seed, number, &bytes);
                    }
                }
            }
        }
    }
}

#[test]
fn damaged_databases_are_read_to_their_end() {
    for seed in seeds_in("sqlite") {
        let whole = std::fs::read(&seed).expect("it can be read");
        testing::check_database(&whole);
        for number in 0..MUTATIONS {
            let mut numbers = Numbers(number);
            let mut bytes = whole.clone();
            for _ in 0..=numbers.below(30) {
                damage(&mut bytes, &mut numbers);
            }
            testing::check_database(&bytes);
        }
    }
}

#[test]
fn damaged_payloads_of_hooks_give_an_event_or_an_error() {
    // F35
    for seed in seeds_in("hooks") {
        let whole = std::fs::read(&seed).expect("it can be read");
        testing::check_hook_payload(&whole);
        for number in 0..MUTATIONS / 10 {
            let mut numbers = Numbers(number ^ whole.len() as u64);
            let mut bytes = whole.clone();
            for _ in 0..=numbers.below(4) {
                damage(&mut bytes, &mut numbers);
            }
            let checked = catch_unwind(AssertUnwindSafe(|| testing::check_hook_payload(&bytes)));
            if let Err(panic) = checked {
                eprintln!("failed: {}, mutation {number}", seed.display());
                resume_unwind(panic);
            }
        }
    }
}

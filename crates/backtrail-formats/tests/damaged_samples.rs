//! Samples that were damaged: nothing panics or loops, and what is not damaged is still read.
//!
//! The damage is the same in every run; a failure names the sample and the number that makes it
//! again.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and it only reads"
)]

mod counted;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backtrail_formats::{Event, EventCollector, Format, recognise, testing};

/// How many copies of each sample are damaged.
const MUTATIONS: u64 = 12;
/// The longest sample that is damaged.
const MAX_BYTES: u64 = 200_000;

/// SplitMix64: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit.max(1) as u64).unwrap()
    }
}

/// Returns the samples that are files, not databases, with their formats.
fn samples() -> Vec<(PathBuf, &'static dyn Format)> {
    let Some(samples) = counted::samples() else {
        return Vec::new();
    };
    let mut files = counted::files(&samples);
    files.extend(counted::files(&samples.join("../agents/samples")));
    let known = files.into_iter().filter_map(|path| {
        let len = std::fs::metadata(&path).ok()?.len();
        let format = recognise(&path).ok()??;
        let is_plain = format.container(&path).ok()?.is_none();
        let is_text = path.extension().is_some_and(|it| it != "zst");
        (len <= MAX_BYTES && is_plain && is_text).then_some((path, format))
    });
    known.collect()
}

/// Returns the keys of all messages, in whatever conversation they are.
fn keys(events: &EventCollector) -> BTreeSet<String> {
    let events = events.threads.iter().flat_map(|thread| &thread.events);
    let messages = events.filter(|event| matches!(event, Event::Message(_)));
    messages.map(Event::key).map(str::to_owned).collect()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Damages a file: cut, bits flipped, lines exchanged or repeated, fields renamed.
fn damage(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut all = lines(bytes);
    let (one, other) = (numbers.below(all.len()), numbers.below(all.len()));
    match numbers.below(5) {
        0 => bytes[..numbers.below(bytes.len())].to_vec(),
        1 => {
            let mut bytes = bytes.to_vec();
            for _ in 0..=numbers.below(8) {
                let at = numbers.below(bytes.len());
                bytes[at] ^= 1 << numbers.below(8);
            }
            bytes
        }
        2 => {
            all.swap(one, other);
            all.concat()
        }
        3 => {
            all.insert(other, all[one]);
            all.concat()
        }
        _ => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let names = [
                "\"id\"",
                "\"type\"",
                "\"role\"",
                "\"content\"",
                "\"uuid\"",
                "\"message\"",
            ];
            let name = names[numbers.below(names.len())];
            let often = numbers.below(3) + 1;
            text.replacen(name, "\"renamed\"", often).into_bytes()
        }
    }
}

#[test]
fn damaged_samples_are_read_without_a_panic_and_in_any_split() {
    for (path, format) in samples() {
        let whole = std::fs::read(&path).unwrap();
        for number in 0..MUTATIONS {
            let mut numbers = Numbers(number ^ whole.len() as u64);
            let bytes = damage(&whole, &mut numbers);
            let name = path.to_string_lossy();
            println!("{name}, {number}");
            testing::check(format, &name, &bytes, numbers.below(bytes.len() + 1));
        }
    }
}

/// Returns whether each line of a sample stands for itself: JSON lines, in a format whose files
/// only grow.
fn is_log(path: &Path, format: &dyn Format) -> bool {
    format.agent().appends && path.extension().is_some_and(|it| it == "jsonl")
}

#[test]
fn a_line_that_is_repeated_loses_nothing() {
    for (path, format) in samples() {
        let name = path.to_string_lossy().into_owned();
        let whole = std::fs::read(&path).unwrap();
        let (_, expected) = testing::read(format, &name, &whole).unwrap();
        let all = lines(&whole);
        // Without ids, keys depend on where a line is.
        let has_ids = ["claude-code", "gemini-cli", "pi", "qwen-code"];
        if !is_log(&path, format) || !has_ids.contains(&format.name()) || all.len() < 3 {
            continue;
        }
        let mut numbers = Numbers(whole.len() as u64);
        for _ in 0..4 {
            let at = numbers.below(all.len());
            let mut twice = all.clone();
            // The last line may have no line break.
            twice.splice(at + 1..at + 1, [&b"\n"[..], all[at]]);
            let (_, found) = testing::read(format, &name, &twice.concat()).unwrap();
            let lost: Vec<_> = keys(&expected).difference(&keys(&found)).cloned().collect();
            assert!(
                lost.is_empty(),
                "{name}, line {at} twice: {lost:?} are lost"
            );
        }
    }
}

#[test]
fn a_damaged_line_costs_no_other_message() {
    for (path, format) in samples() {
        let name = path.to_string_lossy().into_owned();
        let whole = std::fs::read(&path).unwrap();
        let all = lines(&whole);
        if !is_log(&path, format) || all.len() < 4 {
            continue;
        }
        let (_, expected) = testing::read(format, &name, &whole).unwrap();
        let mut numbers = Numbers(whole.len() as u64);
        for _ in 0..4 {
            // The first line may name the session.
            let at = 1 + numbers.below(all.len() - 1);
            let mut damaged = all.clone();
            damaged[at] = b"{\"this is cut off\n";
            let (report, found) = testing::read(format, &name, &damaged.concat()).unwrap();
            let messages = |events: &EventCollector| -> usize {
                events
                    .threads
                    .iter()
                    .map(|thread| thread.events.len())
                    .sum()
            };
            let lost = messages(&expected).saturating_sub(messages(&found));
            println!("{}: {name}, line {at}: {lost} lost", format.name());
            assert!(report.damage.count >= 1, "{name}, line {at}: it is counted");
            assert!(
                lost <= MOST_LOST,
                "{name}, line {at}: {lost} events are lost"
            );
        }
    }
}

/// How many events one line can stand for: a response with its calls, and its usage.
const MOST_LOST: usize = 12;

//! What every reader promises of any bytes, in one place: tests and fuzz targets call it.

use std::collections::HashSet;

use crate::format::{Format, ReadError, Resume};
use crate::gathered::Gathered;
use crate::source::Source;
use crate::told::Told;

/// The most that a state may need.
const MAX_STATE: usize = 8 << 10;

/// Reads bytes as a file of a format, whole.
pub fn read(format: &dyn Format, path: &str, bytes: &[u8]) -> Result<(Told, Gathered), ReadError> {
    let source = Source::from_bytes(path, bytes);
    format.recognises(&source);
    let mut gathered = Gathered::default();
    let told = format.read(&source, None, &mut gathered)?;
    Ok((told, gathered))
}

/// Checks that a file is read without a panic, that what comes of it is sound and no more
/// than the file, and that reading it up to `cut` and then on tells the same.
///
/// # Panics
///
/// Where it is not so.
pub fn check(format: &dyn Format, path: &str, bytes: &[u8], cut: usize) {
    let whole = read(format, path, bytes).ok();
    if let Some((told, gathered)) = &whole {
        check_sound(told, gathered, bytes.len());
    }
    let cut = cut.min(bytes.len());
    let Ok((before, mut gathered)) = read(format, path, &bytes[..cut]) else {
        return;
    };
    check_sound(&before, &gathered, cut);
    let Some(state) = before.state.clone() else {
        return;
    };
    let read_to = before.read_to;
    let untouched = gathered.clone();
    let source = Source::from_bytes(path, bytes);
    if !source.can_go_on(read_to) {
        return;
    }
    match format.read(&source, Some(&Resume { read_to, state }), &mut gathered) {
        Ok(on) => {
            let (told, whole) = whole.expect("what can be gone on with can be read");
            assert_eq!(gathered.session, whole.session, "cut at {cut}");
            assert_eq!(gathered.threads, whole.threads, "cut at {cut}");
            assert_eq!(on.session, told.session, "cut at {cut}");
            let ends = |told: &Told| (told.read_to, told.lines, told.unfinished);
            assert_eq!(ends(&on), ends(&told), "cut at {cut}");
            let damage = before.damage.count + on.damage.count;
            assert_eq!(damage, told.damage.count, "cut at {cut}");
            let count = |told: &Told| told.unknown.values().sum::<u64>();
            assert_eq!(count(&before) + count(&on), count(&told), "cut at {cut}");
        }
        Err(ReadError::StartOver) => {
            assert_eq!(gathered, untouched, "nothing is told before starting over");
        }
        Err(ReadError::Failed(error)) => panic!("reading on failed: {error}"),
    }
}

/// Checks any bytes, cut in the middle and at a place that they choose.
///
/// # Panics
///
/// Where a promise does not hold.
pub fn check_any(format: &dyn Format, path: &str, bytes: &[u8]) {
    check(format, path, bytes, bytes.len() / 2);
    let hash = blake3::hash(bytes);
    let chosen = hash
        .as_bytes()
        .iter()
        .take(4)
        .fold(0, |all, byte| all << 8 | usize::from(*byte));
    check(format, path, bytes, chosen % (bytes.len() + 1));
}

/// Checks what came of a file.
fn check_sound(told: &Told, gathered: &Gathered, bytes: usize) {
    assert!(told.read_to <= bytes as u64);
    if let Some(state) = &told.state {
        assert!(state.as_str().len() <= MAX_STATE, "the state is small");
    }
    let mut items = 0;
    for thread in &gathered.threads {
        let mut keys = HashSet::new();
        for item in &thread.items {
            let key = item.key();
            assert!((1..=256).contains(&key.len()), "a key of a size: {key:?}");
            assert!(!key.chars().any(char::is_control), "a plain key: {key:?}");
            assert!(keys.insert(key), "one key, one item: {key:?}");
        }
        items += thread.items.len();
    }
    // Nothing is told without some bytes that say it.
    assert!(items <= bytes, "{items} items of {bytes} bytes");
}

//! The cache is a hint: damaged, foreign or hostile, it hides no change.

use super::StatCache;
use super::testing::{TestWorkspace, truth};

fn place() -> TestWorkspace {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.options.cap = 1000;
    place.write("a/b/file", "x");
    place.write("a/large", vec![0; 2000]);
    place.write("c", "y");
    std::os::unix::fs::symlink("c", place.at("link")).unwrap();
    place.scan();
    place
}

#[test]
fn a_flipped_bit_anywhere_makes_it_no_cache() {
    let place = place();
    let bytes = place.cache.encode().to_vec();
    assert!(StatCache::decode(bytes.clone()).is_some());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(StatCache::decode(flipped).is_none(), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn a_cut_or_longer_one_is_no_cache() {
    let bytes = place().cache.encode().to_vec();
    for len in 0..bytes.len() {
        assert!(StatCache::decode(bytes[..len].to_vec()).is_none());
    }
    assert!(StatCache::decode([bytes, vec![0]].concat()).is_none());
}

/// Recomputes the check, as an attacker could.
fn forge(mut bytes: Vec<u8>) -> Vec<u8> {
    const CHECKED: usize = 4 + 1 + 32;
    let check = *blake3::hash(&bytes[CHECKED..]).as_bytes();
    bytes[5..CHECKED].copy_from_slice(&check);
    bytes
}

#[test]
fn a_forged_one_never_panics_and_leads_nowhere() {
    let mut place = place();
    let bytes = place.cache.encode().to_vec();
    for at in 37..bytes.len() {
        for change in [0x00, 0x01, 0x2f, 0x80, 0xff] {
            let mut forged = bytes.clone();
            forged[at] ^= change;
            if let Some(cache) = StatCache::decode(forge(forged)) {
                place.cache = cache;
                // It may claim anything; it must only do no harm.
                drop(place.try_scan());
            }
        }
    }
}

#[test]
fn a_forged_number_of_directories_allocates_nothing() {
    let mut bytes = place().cache.encode().to_vec();
    // After magic, version, check and device.
    bytes[45..49].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(StatCache::decode(forge(bytes)).is_none());
}

#[test]
fn one_of_another_directory_hides_nothing() {
    let other = place();
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.write("a/b/file", "z");
    place.write("c", "z");
    place.cache = StatCache::decode(other.cache.encode().to_vec()).unwrap();
    assert_eq!(place.things(), truth(&place.root()));
}

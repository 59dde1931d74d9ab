//! Random files, changed at random and imported after every change.

use proptest::prelude::*;

use crate::hand_over::handed_over;
use crate::toy::{Kit, lines};

const NAME: &str = "session-of-a-toy-1";

/// What happens to a file.
#[derive(Debug, Clone)]
enum Change {
    /// Lines are appended, and perhaps an incomplete one.
    Say(u8, bool),
    /// The agent rewinds to an earlier event.
    Back(u8),
    /// A line is damaged.
    Damage,
    /// The file loses its end.
    Cut(u8),
    /// The file is rewritten from an event on.
    Rewrite(u8, u8),
    /// The cache is lost.
    Forget,
    /// The cache is as it was after an earlier import.
    OldCache(u8),
    /// Nothing: the file is only imported again.
    Nothing,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (1..4_u8, any::<bool>()).prop_map(|(n, half)| Change::Say(n, half)),
        2 => any::<u8>().prop_map(Change::Back),
        1 => Just(Change::Damage),
        1 => any::<u8>().prop_map(Change::Cut),
        1 => (any::<u8>(), 1..4_u8).prop_map(|(at, n)| Change::Rewrite(at, n)),
        1 => Just(Change::Forget),
        1 => any::<u8>().prop_map(Change::OldCache),
        1 => Just(Change::Nothing),
    ]
}

/// The file.
struct File {
    bytes: Vec<u8>,
    /// An incomplete line.
    half: Vec<u8>,
    next: u64,
}

impl File {
    fn content(&self) -> Vec<u8> {
        [&self.bytes[..], &self.half[..]].concat()
    }

    /// Returns the conversation in a file, without any code of the crate.
    fn conversation(bytes: &[u8]) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(value) = serde_json::from_slice::<serde_json::Value>(line) else {
                continue;
            };
            if let Some(back) = value["back"].as_str() {
                let at = keys.iter().rposition(|key| key == back);
                keys.truncate(at.map_or(0, |at| at + 1));
            }
            keys.extend(value["say"].as_str().map(str::to_owned));
        }
        keys
    }

    fn say(&mut self, count: u8, half: bool) {
        self.bytes.append(&mut self.half);
        if !self.bytes.ends_with(b"\n") {
            self.bytes.push(b'\n');
        }
        for _ in 0..count {
            self.next += 1;
            let line = format!("{{\"say\":\"k{}\"}}\n", self.next);
            self.bytes.extend_from_slice(line.as_bytes());
        }
        if half {
            self.half = b"{\"say\":\"never".to_vec();
        }
    }
}

/// Where a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Start,
    /// It was handed over: its file begins with copies.
    HandOver,
}

/// Imports a file after each change, and checks the session against the file.
fn follow(from: From, changes: &[Change], again: u8) -> Result<(), TestCaseError> {
    let (copies, shared): (&[&str], usize) = match from {
        From::Start => (&[], 0),
        From::HandOver => (&["copy1", "copy2", "copy3"], 4),
    };
    let bytes = lines(NAME, copies).into_bytes();
    let (kit, mut longest) = match from {
        From::Start => (Kit::new(), Vec::new()),
        From::HandOver => (
            handed_over("a.toy", NAME, &lines(NAME, copies)),
            bytes.clone(),
        ),
    };
    let sessions = 1 + usize::from(from == From::HandOver);
    let mut file = File {
        bytes,
        half: Vec::new(),
        next: 0,
    };
    let mut caches: Vec<Option<Vec<u8>>> = Vec::new();
    for (n, change) in changes.iter().enumerate() {
        let mut cut = false;
        match change {
            Change::Say(count, half) => file.say(*count, *half),
            Change::Back(at) => {
                let keys = File::conversation(&file.bytes);
                if let Some(key) = keys.get(usize::from(*at) % keys.len().max(1)) {
                    file.say(0, false);
                    let line = format!("{{\"back\":\"{key}\"}}\n");
                    file.bytes.extend_from_slice(line.as_bytes());
                    file.say(1, false);
                }
            }
            Change::Damage => {
                file.say(0, false);
                file.bytes.extend_from_slice(b"\0\0garbage\n");
            }
            Change::Cut(at) => {
                file.half.clear();
                let keep = file.bytes.len().min(30 + usize::from(*at));
                cut = keep < file.bytes.len();
                file.bytes.truncate(keep);
            }
            Change::Rewrite(at, count) => {
                let keys = File::conversation(&file.bytes);
                let keep = usize::from(*at) % (keys.len() + 1);
                let kept: Vec<&str> = keys[..keep].iter().map(String::as_str).collect();
                file.half.clear();
                file.bytes = lines(NAME, &kept).into_bytes();
                file.say(*count, false);
            }
            Change::Forget => kit.forget_cache(),
            Change::OldCache(at) => {
                if let Some(cache) = caches.get(usize::from(*at) % caches.len().max(1)) {
                    kit.set_cache(cache.as_deref());
                }
            }
            Change::Nothing => {}
        }
        let content = file.content();
        kit.write("a.toy", &content);
        let before = kit.all();
        kit.import();
        caches.push(kit.cache());
        let Some((id, held)) = kit.kept("a.toy") else {
            // Nothing was ever said in it, so it is not a session yet.
            prop_assert!(longest.is_empty() && File::conversation(&content).is_empty());
            prop_assert!(kit.store.sessions().unwrap().is_empty());
            continue;
        };
        let is_known = longest.starts_with(&content);
        if File::conversation(&content).is_empty() {
            // It says nothing any more. Everything that was imported stays.
            prop_assert_eq!(&held, &longest);
            prop_assert_eq!(kit.all(), before);
        } else if cut || is_known {
            // Everything that was imported stays.
            let kept = kit.all_keys(&id);
            let mut expected = File::conversation(&content);
            expected.retain(|key| !copies.contains(&key.as_str()));
            prop_assert!(held.starts_with(&content));
            prop_assert!(expected.iter().all(|key| kept.contains(key)) || !is_known);
        } else {
            let kept = kit.keys(&id).split_off(shared);
            let mut expected = File::conversation(&content);
            expected.retain(|key| !copies.contains(&key.as_str()));
            // A file that lost more than it gained removes nothing.
            let is_shorter = content.len() < longest.len() && kept.starts_with(&expected);
            prop_assert!(
                kept == expected || is_shorter,
                "{:?}: {:?} {:?}",
                change,
                kept,
                expected
            );
            prop_assert_eq!(&held, &content);
        }
        longest = held;
        if usize::from(again) % 3 == n % 3 {
            let before = kit.all();
            let (new, updated, _) = kit.counts();
            prop_assert_eq!((new, updated), (0, 0));
            prop_assert_eq!(kit.all(), before);
        }
        prop_assert_eq!(kit.store.sessions().unwrap().len(), sessions);
        prop_assert!(
            kit.store
                .read_session(&id)
                .unwrap()
                .verify()
                .unwrap()
                .is_ok()
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_session_follows_its_file_whatever_happens_and_nothing_is_imported_twice(
        changes in proptest::collection::vec(change(), 1..14),
        again in any::<u8>(),
    ) {
        follow(From::Start, &changes, again)?;
    }

    // F24
    #[test]
    fn f24_a_session_that_was_handed_over_follows_its_file_and_repeats_nothing(
        changes in proptest::collection::vec(change(), 1..14),
        again in any::<u8>(),
    ) {
        follow(From::HandOver, &changes, again)?;
    }
}

/// Every case that ever failed.
#[test]
fn a_session_follows_its_file_in_the_cases_that_once_failed() {
    use Change::{Cut, Damage, OldCache, Say};
    let cases = [
        vec![Damage, Damage, Say(2, false), Cut(4), Damage, Say(1, false)],
        vec![Say(1, false), Say(1, false), OldCache(0), Say(1, false)],
    ];
    for changes in cases {
        for again in 0..3 {
            follow(From::Start, &changes, again).unwrap();
            follow(From::HandOver, &changes, again).unwrap();
        }
    }
}
